//! The terminal as the frontend of an agent: shows streamed text, tool calls, hooks and questions.
//!
//! `frontend/state.rs` prints and reads lines, `frontend/ask.rs` asks questions, `frontend/call.rs` describes tool
//! calls, and `frontend/display.rs` keeps what scripts display.

mod ask;
mod call;
mod display;
mod state;

use std::sync::Arc;
use std::time::{Duration, Instant};

use anstream::adapter::strip_str;
use futures_util::future::{self, BoxFuture};
use serde_json::Value;
use tenterhook_agent::Frontend;
use tenterhook_agent::frontend::{
    Approval, ApprovalRequest, AskedBy, Denial, HookFailure, ScriptDisplay, ScriptDrawing,
    ScriptQuestion,
};
use tenterhook_engine::event::NotificationLevel;
use tenterhook_engine::{JsonObject, Message, ToolCall, ToolResult, message_extra};

pub use self::state::{Terminal, Verbosity};
use crate::editor::Editor;
use crate::output::plural::count;
use crate::output::script_output::{script_line, without_secrets};
use crate::output::{self, progress, style, styled};
use tenterhook_protocol::escape::{escape_indented, escape_line, escape_untrusted};

/// The maximum number of lines of a tool's result that are shown.
const MAX_RESULT_LINES: usize = 8;

/// The longest duration of a tool call that is not shown.
const QUICK: Duration = Duration::from_secs(1);

/// The reason of a denial if only the user could have allowed the call and no one could be asked. The engine writes
/// this text.
const UNANSWERED: &str = "it needs approval and no one is there to give it";

/// Returns the name of a hook as it is shown to people.
fn hook_text(event: &str, hook: Option<&str>) -> String {
    match hook {
        Some(hook) => format!("hook `{}` ({event})", escape_line(hook)),
        None => format!("a {event} hook"),
    }
}

/// Returns lines that say who requires the question about a call, and why.
fn why_asked(request: &ApprovalRequest<'_>) -> Vec<String> {
    let reason = request
        .reason
        .map(|reason| escape_indented(&without_secrets(reason), 4));
    let why = match (request.by, reason) {
        (AskedBy::Hook { event, hook }, reason) => Some(format!(
            "{} asks: {}",
            hook_text(event, hook),
            reason.unwrap_or_default()
        )),
        (AskedBy::Rule, Some(rule)) => Some(format!("the rule `{rule}` asks")),
        (_, reason) => reason,
    };
    let metadata = request.metadata.iter().map(|(key, value)| {
        let value = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        format!(
            "{}: {}",
            escape_indented(key, 4),
            escape_indented(&value, 4)
        )
    });
    let lines = why.into_iter().chain(metadata);
    lines.map(|line| format!("  {line}")).collect()
}

impl Frontend for Terminal {
    fn text_delta(&self, _agent: &str, text: &str) {
        if self.verbosity != Verbosity::Full || text.is_empty() {
            return;
        }
        let mut state = self.state();
        state.last_call = None;
        let Some(markdown) = &mut state.markdown else {
            state.progress = None;
            state.is_line_open = !text.ends_with('\n');
            return output::text(escape_untrusted(text));
        };
        let set = markdown.push(text);
        if !set.is_empty() {
            state.progress = None;
            output::set(&set);
        }
    }

    fn message(&self, _agent: &str, _message: &Message) {
        let mut state = self.state();
        state.end_open_line();
        if let Some(markdown) = &mut state.markdown {
            output::set(&markdown.end());
        }
    }

    fn extension_message(&self, _agent: &str, message: &Message) {
        if self.verbosity != Verbosity::Full || message.content.is_empty() {
            return;
        }
        let name = message.extra.get(message_extra::CUSTOM_TYPE);
        let name = name.and_then(Value::as_str).unwrap_or_default();
        self.print_line(&format!(
            "{} {}",
            styled(style::NAME, format_args!("[{}]", escape_line(name))),
            escape_indented(&without_secrets(&message.content), 4)
        ));
    }

    fn extension_lines(&self, _agent: &str, _message: &Message, lines: &[String]) {
        if self.verbosity == Verbosity::Full {
            self.print_lines(call::rendered_lines(lines, ""));
        }
    }

    fn shows_tool_lines(&self) -> bool {
        self.verbosity == Verbosity::Full
    }

    fn tool_start_lines(&self, agent: &str, call: &ToolCall, lines: &[String]) {
        self.state().began.push((call.id.clone(), Instant::now()));
        // If the user is asked about the call, the question shows the call itself.
        self.state().last_call = None;
        let agent = self.agent_prefix(agent);
        let mut lines = call::rendered_lines(lines, "  ");
        if let Some(first) = lines.first_mut() {
            *first = format!("{} {agent}{}", styled(style::NAME, "●"), first.trim_start());
        }
        self.print_lines(lines);
        self.wait_for(&format!("running {}", escape_indented(&call.name, 4)));
    }

    fn tool_end_lines(&self, agent: &str, call: &ToolCall, result: &ToolResult, lines: &[String]) {
        if self.state().denied.contains(&call.id) {
            return self.tool_end(agent, call, result);
        }
        self.state().began.retain(|(id, _)| *id != call.id);
        self.print_lines(call::rendered_lines(lines, "    "));
        self.wait_for("waiting for the model");
    }

    fn tool_start(&self, agent: &str, call: &ToolCall) {
        let input = call.arguments.as_object().cloned().unwrap_or_default();
        let text = self.call_text(agent, &call.name, &input);
        self.state().began.push((call.id.clone(), Instant::now()));
        self.print_call(&styled(style::NAME, "●"), text);
        self.wait_for(&format!("running {}", escape_indented(&call.name, 4)));
    }

    fn tool_rewritten(&self, _agent: &str, call: &ToolCall, input: &JsonObject) {
        let text = self.call_text(&self.root, &call.name, input);
        let before = styled(style::CARE, "rewritten by a hook:");
        self.print_call(&format!("  {before}"), text);
    }

    fn shows_progress(&self) -> bool {
        self.verbosity == Verbosity::Full && progress::is_seen()
    }

    fn tool_update(&self, _agent: &str, _call: &ToolCall, partial: &ToolResult) {
        if let Some(progress) = &self.state().progress {
            progress.show_partial(&partial.joined_text());
        }
    }

    fn tool_end(&self, _agent: &str, call: &ToolCall, result: &ToolResult) {
        let (was_denied, began) = {
            let mut state = self.state();
            let place = state.began.iter().position(|(id, _)| *id == call.id);
            let began = place.map(|place| state.began.swap_remove(place).1);
            let before = state.denied.len();
            state.denied.retain(|id| *id != call.id);
            (state.denied.len() < before, began)
        };
        if was_denied {
            return self.wait_for("waiting for the model");
        }
        let text = result.joined_text();
        let look = if result.is_error {
            style::BAD
        } else {
            style::QUIET
        };
        let all: Vec<&str> = text.lines().collect();
        let shown = all.iter().take(MAX_RESULT_LINES);
        let mut lines: Vec<String> = shown
            .map(|line| format!("    {}", styled(look, escape_untrusted(line))))
            .collect();
        let mut quiet = |text: String| lines.push(format!("    {}", styled(style::QUIET, text)));
        if all.len() > MAX_RESULT_LINES {
            quiet(call::more(all.len() - MAX_RESULT_LINES));
        }
        let took = began.map_or(Duration::ZERO, |began| began.elapsed());
        if took >= QUICK {
            quiet(format!("took {:.1} s", took.as_secs_f64()));
        }
        self.print_lines(lines);
        self.wait_for("waiting for the model");
    }

    fn tool_denied(&self, _agent: &str, denial: &Denial<'_>) {
        self.state().denied.push(denial.call.id.clone());
        let was_refused = {
            let mut state = self.state();
            denial.event.is_none()
                && state
                    .refused
                    .take_if(|tool| *tool == denial.call.name)
                    .is_some()
        };
        if was_refused {
            return self.print_line(&format!("  {}", styled(style::BAD, "denied by you")));
        }
        let by = denial
            .event
            .map(|event| format!(" by {}", hook_text(event, denial.hook)))
            .unwrap_or_default();
        let hint = if denial.event.is_none() && denial.reason == UNANSWERED {
            let tool = escape_indented(&denial.call.name, 4);
            format!("; to allow it, pass `--allow {tool}` or `--yes`")
        } else {
            String::new()
        };
        let text = format!(
            "  {} {}{hint}",
            styled(style::BAD, format_args!("denied{by}:")),
            escape_indented(&without_secrets(denial.reason), 4)
        );
        if self.verbosity == Verbosity::AnswerOnly {
            let call = escape_indented(&denial.call.name, 4);
            return self.print_note(&format!("{call}:{text}"));
        }
        self.print_line(&text);
    }

    fn hook_notice(&self, event: &'static str, text: &str) {
        self.print_note(&format!(
            "  {} {}",
            styled(style::QUIET, format_args!("{event}:")),
            escape_indented(&without_secrets(text), 4)
        ));
    }

    fn hook_failure(&self, event: &'static str, failure: &HookFailure<'_>) {
        if failure.let_through {
            let text = format!(
                "{event} proceeded although hook `{}` failed: {}",
                escape_indented(failure.hook, 4),
                escape_indented(&without_secrets(failure.cause), 4)
            );
            self.print_note(&format!("  {} {text}", styled(style::CARE, "let through:")));
        }
    }

    fn notification(&self, level: NotificationLevel, text: &str) {
        let (word, look) = match level {
            NotificationLevel::Error => ("error:", style::BAD),
            NotificationLevel::Warning => ("warning:", style::CARE),
            NotificationLevel::Info | _ => ("note:", style::QUIET),
        };
        let text = without_secrets(text);
        self.print_note(&format!(
            "{} {}",
            styled(look, word),
            escape_indented(&text, 4)
        ));
        self.state().has_error |= level == NotificationLevel::Error;
    }

    fn display<'a>(&'a self, display: &'a ScriptDisplay) -> BoxFuture<'a, ()> {
        match display {
            ScriptDisplay::Notice { level, message } => {
                self.notification(*level, &strip_str(message).to_string());
            }
            ScriptDisplay::EditorText { text, replaces } => {
                if let Some(editor) = self.editor() {
                    editor.change_prompt(text, *replaces);
                }
            }
            ScriptDisplay::Alert { code, text } => display::alert(*code, text),
            ScriptDisplay::Title { text } => {
                if self.is_interactive {
                    display::set_title(text);
                }
            }
            ScriptDisplay::Status { .. }
            | ScriptDisplay::Widget { .. }
            | ScriptDisplay::WorkingMessage { .. }
            | _ => {
                let mut state = self.state();
                state.displayed.apply(display);
                let text = state.displayed.work();
                if let Some(progress) = &state.progress {
                    progress.set_text(text);
                }
            }
        }
        Box::pin(future::ready(()))
    }

    fn editor_text(&self) -> String {
        self.editor().map(Editor::prompt_text).unwrap_or_default()
    }

    fn script_output(&self, worker: &str, line: &str) {
        self.print_note(&script_line(worker, line));
    }

    fn is_interactive(&self) -> bool {
        self.is_interactive
    }

    fn approve<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
        Box::pin(async move {
            let call = self.call_text(request.agent, request.tool, request.input);
            let is_shown = self.state().last_call.as_ref() == Some(&call);
            if !is_shown {
                self.print_call(&styled(style::CARE, "?"), call);
            }
            let asked = Instant::now();
            self.print_lines(why_asked(&request));
            let suggestion = Some(request.suggestion).filter(|_| request.by != AskedBy::Protection);
            let approval = self.ask_approval(suggestion).await;
            self.state().record_approval(asked, &approval, request.tool);
            self.wait_for(&format!("running {}", escape_indented(request.tool, 4)));
            approval
        })
    }

    fn question<'a>(&'a self, question: &'a ScriptQuestion) -> BoxFuture<'a, Option<String>> {
        Box::pin(async move {
            if !self.is_interactive {
                return None;
            }
            let answer = self.ask_for_script(question).await;
            self.wait_for("waiting for the model");
            answer
        })
    }

    fn can_draw(&self) -> bool {
        cfg!(unix) && self.has_editor()
    }

    fn draw<'a>(&'a self, drawing: &'a Arc<ScriptDrawing>) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            self.show_drawing(drawing).await;
            self.wait_for("waiting for the model");
        })
    }

    fn question_withdrawn(&self) {
        self.print_line("  The question was withdrawn.");
    }

    fn more_iterations(&self, limit: u32) -> BoxFuture<'_, Option<u32>> {
        Box::pin(async move {
            if !self.is_interactive {
                return None;
            }
            let calls = count(usize::try_from(limit).unwrap_or(usize::MAX), "model call");
            self.print_line(&format!("The agent made {calls}."));
            loop {
                let answer = self.ask("  how many more? [0] ").await?;
                let more = if answer.is_empty() {
                    Ok(0)
                } else {
                    answer.parse::<u32>()
                };
                match more {
                    Ok(more) => return Some(more).filter(|more| *more > 0),
                    Err(_) => self.print_line("  answer with a number"),
                }
            }
        })
    }
}
