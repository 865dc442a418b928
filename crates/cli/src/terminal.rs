//! The terminal as an agent's frontend: streamed text, tool calls, questions.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _};
use std::sync::{Mutex, PoisonError};

use futures_util::future::BoxFuture;
use serde_json::Value;
use tenterhook::event::NotificationLevel;
use tenterhook::{JsonObject, Message, ToolCall, ToolResult, ToolUseId};
use tenterhook_agent::frontend::{Approval, ApprovalRequest, Denial, HookFailure, Question};
use tenterhook_agent::{Agent, Frontend};
use tenterhook_handlers::secret::Redactor;

use crate::check::count;
use crate::output::{self, style, styled};
use crate::progress::Progress;
use crate::safe::{inset, safe, safe_line};
use crate::stdin::Lines;

/// The most lines of a tool's result that are shown.
const RESULT_LINES: usize = 8;

/// What the agent says of a call that only the user could have allowed.
const UNANSWERED: &str = "it needs approval and nobody is there to give it";

/// How much is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    /// Everything that a person follows.
    Everything,
    /// Nothing on stdout: it is for one JSON object.
    Nothing,
}

/// A person at a terminal, or nobody where stdin is none.
pub(crate) struct Terminal {
    shown: Shown,
    is_interactive: bool,
    /// The agent whose name goes without saying.
    root: String,
    lines: Lines,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The last text did not end its line.
    is_line_open: bool,
    progress: Option<Progress>,
    /// Calls whose denial was shown, so that the text for the model need not be.
    denied: Vec<ToolUseId>,
    /// The tool that the user has just refused.
    refused: Option<String>,
    /// The call that the last line shows.
    last_call: Option<String>,
    /// An error was shown since somebody asked.
    has_error: bool,
    /// Why stdin gives no more lines.
    broken: Option<io::Error>,
}

impl Terminal {
    pub(crate) fn new(shown: Shown) -> Self {
        let is_interactive = shown == Shown::Everything && io::stdin().is_terminal();
        Self {
            shown,
            is_interactive,
            root: Agent::DEFAULT_NAME.to_owned(),
            lines: Lines::default(),
            state: Mutex::default(),
        }
    }

    /// Sets the name of the main agent.
    pub(crate) fn root(self, name: &str) -> Self {
        Self {
            root: name.to_owned(),
            ..self
        }
    }

    /// Waits for `what` with a sign of life, until something is shown.
    pub(crate) fn wait_for(&self, what: &str) {
        let progress = (self.shown == Shown::Everything).then(|| Progress::start(what));
        self.state().progress = progress;
    }

    /// Ends a line that is open and removes the sign of life.
    pub(crate) fn settle(&self) {
        self.state().settle();
    }

    /// Prints the beginning of a line that the user ends.
    pub(crate) fn question(&self, text: &str) {
        let mut state = self.state();
        state.settle();
        output::text(text);
        state.is_line_open = true;
    }

    /// Returns the user's next line; `None` is the end of stdin.
    pub(crate) async fn next_line(&self) -> io::Result<Option<String>> {
        let line = self.lines.next().await;
        if self.is_interactive && matches!(line, Ok(Some(_))) {
            // The user's Enter ended the line.
            self.state().is_line_open = false;
        }
        line
    }

    /// Returns an answer. Where there can be none any more, the reason is kept.
    async fn answer(&self) -> Option<String> {
        self.next_line().await.unwrap_or_else(|error| {
            self.state().broken = Some(error);
            None
        })
    }

    /// Returns why answers could not be read, once.
    pub(crate) fn take_broken(&self) -> Option<io::Error> {
        self.state().broken.take()
    }

    /// Says whether an error was shown since this was called last.
    pub(crate) fn take_error(&self) -> bool {
        std::mem::take(&mut self.state().has_error)
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prints a line, where anything is shown.
    pub(crate) fn line(&self, text: &str) {
        self.lines([text]);
    }

    /// Prints lines that stand together.
    pub(crate) fn lines<T: AsRef<str>>(&self, lines: impl IntoIterator<Item = T>) {
        if self.shown == Shown::Everything {
            let mut state = self.state();
            state.settle();
            for line in lines {
                state.last_call = None;
                output::line(line.as_ref());
            }
        }
    }

    /// Prints a line that shows a call.
    fn call_line(&self, before: &str, call: String) {
        if self.shown == Shown::Everything {
            let mut state = self.state();
            state.settle();
            output::line(format_args!("{before} {call}"));
            state.last_call = Some(call);
        }
    }

    fn note(&self, text: &str) {
        let mut state = self.state();
        state.settle();
        state.last_call = None;
        output::note(text);
    }

    /// Returns a tool call as a person would write it, with the agent that makes it if it is not the main one.
    fn call_text(&self, agent: &str, tool: &str, input: &JsonObject) -> String {
        let arguments = match input.iter().next() {
            Some((_, Value::String(only))) if input.len() == 1 => only.clone(),
            Some(_) => Value::Object(input.clone()).to_string(),
            None => String::new(),
        };
        let agent = if agent == self.root {
            String::new()
        } else {
            format!("{}: ", inset(agent, 4))
        };
        let tool = styled(style::STRONG, inset(tool, 4));
        let call = format!("{agent}{tool} {}", inset(&arguments, 4));
        call.trim_end().to_owned()
    }

    /// Asks until the answer is one of those that there are.
    async fn ask_approval(&self, suggestion: &str) -> Approval {
        let question = format!(
            "  run it? [y]es, [n]o, [a]lways `{}` in this session: ",
            inset(suggestion, 4)
        );
        loop {
            self.question(&question);
            let answer = self.answer().await.map(|answer| answer.to_lowercase());
            match answer.as_deref() {
                Some("y" | "yes") => return Approval::AllowOnce,
                Some("a" | "always") => return Approval::AllowSession,
                // At the end of stdin nobody is there any more, so nobody agreed.
                Some("n" | "no") | None => return Approval::Deny { reason: None },
                Some(_) => self.line("  answer y, n or a"),
            }
        }
    }

    /// Asks what a script wants to know. `None` is the end of stdin.
    async fn ask_for_script(&self, question: &Question) -> Option<String> {
        match question {
            Question::Confirm { title, message } => {
                let parts = [title.as_str(), message].into_iter();
                let text = parts.filter(|part| !part.is_empty()).collect::<Vec<_>>();
                let text = text.join(": ");
                self.line(&format!("{} {}", styled(style::CARE, "?"), inset(&text, 4)));
                loop {
                    self.question("  [y]es or [n]o: ");
                    match self.answer().await?.to_lowercase().as_str() {
                        "y" | "yes" => return Some("yes".to_owned()),
                        "n" | "no" => return Some("no".to_owned()),
                        _ => self.line("  answer y or n"),
                    }
                }
            }
            Question::Select { title, options } => {
                self.line(&format!("{} {}", styled(style::CARE, "?"), inset(title, 4)));
                for (place, option) in options.iter().enumerate() {
                    self.line(&format!("  {}. {}", place + 1, inset(option, 5)));
                }
                loop {
                    self.question("  which one? Enter for none: ");
                    let answer = self.answer().await?;
                    let chosen = answer
                        .parse::<usize>()
                        .ok()
                        .and_then(|at| at.checked_sub(1));
                    match chosen.and_then(|at| options.get(at)) {
                        Some(option) => return Some(option.clone()),
                        None if answer.is_empty() => return None,
                        None => {
                            self.line(&format!("  answer with a number up to {}", options.len()));
                        }
                    }
                }
            }
            Question::Input { title, placeholder } => {
                let before = placeholder
                    .as_ref()
                    .map(|text| format!(" [{}]", inset(text, 4)));
                let mark = styled(style::CARE, "?");
                self.question(&format!(
                    "{mark} {}{}: ",
                    inset(title, 4),
                    before.unwrap_or_default()
                ));
                self.answer().await
            }
            _ => None,
        }
    }
}

impl State {
    fn settle(&mut self) {
        self.progress = None;
        if std::mem::take(&mut self.is_line_open) {
            output::line("");
        }
    }
}

/// Returns a line that a script printed, as people see it.
pub(crate) fn script_line(worker: &str, line: &str) -> String {
    let before = styled(style::QUIET, format_args!("{}:", safe_line(worker)));
    format!("  {before} {}", safe_line(&without_secrets(line)))
}

/// Returns what hooks and processes say of themselves, without secrets: no hook has looked at it.
fn without_secrets(text: &str) -> Cow<'_, str> {
    Redactor::shared().redact(text)
}

impl Frontend for Terminal {
    fn text_delta(&self, _agent: &str, text: &str) {
        if self.shown == Shown::Nothing || text.is_empty() {
            return;
        }
        let mut state = self.state();
        state.progress = None;
        state.last_call = None;
        state.is_line_open = !text.ends_with('\n');
        output::text(safe(text));
    }

    fn message(&self, _agent: &str, _message: &Message) {
        self.settle();
    }

    fn tool_start(&self, agent: &str, call: &ToolCall) {
        let input = call.arguments.as_object().cloned().unwrap_or_default();
        let text = self.call_text(agent, &call.name, &input);
        self.call_line(&styled(style::NAME, "●"), text);
        self.wait_for(&format!("running {}", inset(&call.name, 4)));
    }

    fn tool_rewritten(&self, _agent: &str, call: &ToolCall, input: &JsonObject) {
        let text = self.call_text(&self.root, &call.name, input);
        let before = styled(style::CARE, "rewritten by a hook:");
        self.call_line(&format!("  {before}"), text);
    }

    fn tool_end(&self, _agent: &str, call: &ToolCall, result: &ToolResult) {
        let was_denied = {
            let mut state = self.state();
            let before = state.denied.len();
            state.denied.retain(|id| *id != call.id);
            state.denied.len() < before
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
        let lines: Vec<&str> = text.lines().collect();
        for line in lines.iter().take(RESULT_LINES) {
            self.line(&format!("    {}", styled(look, safe(line))));
        }
        if lines.len() > RESULT_LINES {
            self.line(&format!(
                "    {}",
                styled(
                    style::QUIET,
                    format_args!("… {} more lines", lines.len() - RESULT_LINES)
                )
            ));
        }
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
            return self.line(&format!("  {}", styled(style::BAD, "denied by you")));
        }
        let by = denial
            .event
            .map(|event| format!(" by a {event} hook"))
            .unwrap_or_default();
        let hint = if denial.event.is_none() && denial.reason == UNANSWERED {
            let tool = inset(&denial.call.name, 4);
            format!("; `--allow {tool}` or `--yes` would")
        } else {
            String::new()
        };
        self.line(&format!(
            "  {} {}{hint}",
            styled(style::BAD, format_args!("denied{by}:")),
            inset(&without_secrets(denial.reason), 4)
        ));
    }

    fn hook_notice(&self, event: &'static str, text: &str) {
        self.note(&format!(
            "  {} {}",
            styled(style::QUIET, format_args!("{event}:")),
            inset(&without_secrets(text), 4)
        ));
    }

    fn hook_failure(&self, event: &'static str, failure: &HookFailure<'_>) {
        if failure.let_through {
            let text = format!(
                "{event} went on although hook `{}` failed: {}",
                inset(failure.hook, 4),
                inset(&without_secrets(failure.cause), 4)
            );
            self.note(&format!("  {} {text}", styled(style::CARE, "let through:")));
        }
    }

    fn notification(&self, level: NotificationLevel, text: &str) {
        let (word, look) = match level {
            NotificationLevel::Error => ("error:", style::BAD),
            NotificationLevel::Warning => ("warning:", style::CARE),
            NotificationLevel::Info | _ => ("note:", style::QUIET),
        };
        let text = without_secrets(text);
        self.note(&format!("{} {}", styled(look, word), inset(&text, 4)));
        self.state().has_error |= level == NotificationLevel::Error;
    }

    fn script_output(&self, worker: &str, line: &str) {
        if self.shown == Shown::Everything {
            self.note(&script_line(worker, line));
        }
    }

    fn is_interactive(&self) -> bool {
        self.is_interactive
    }

    fn approve<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
        Box::pin(async move {
            let call = self.call_text(request.agent, request.tool, request.input);
            let is_shown = self.state().last_call.as_ref() == Some(&call);
            if !is_shown {
                self.call_line(&styled(style::CARE, "?"), call);
            }
            if let Some(reason) = request.reason {
                self.line(&format!("  {}", inset(&without_secrets(reason), 4)));
            }
            for (key, value) in request.metadata {
                let value = value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned);
                self.line(&format!("  {}: {}", inset(key, 4), inset(&value, 4)));
            }
            let approval = self.ask_approval(request.suggestion).await;
            if matches!(approval, Approval::Deny { .. }) {
                self.state().refused = Some(request.tool.to_owned());
            }
            self.wait_for(&format!("running {}", inset(request.tool, 4)));
            approval
        })
    }

    fn question<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Option<String>> {
        Box::pin(async move {
            if !self.is_interactive {
                return None;
            }
            let answer = self.ask_for_script(question).await;
            self.wait_for("waiting for the model");
            answer
        })
    }

    fn more_iterations(&self, limit: u32) -> BoxFuture<'_, Option<u32>> {
        Box::pin(async move {
            if !self.is_interactive {
                return None;
            }
            let calls = count(usize::try_from(limit).unwrap_or(usize::MAX), "model call");
            loop {
                let question = format!("The agent made {calls}. How many more? [0] ");
                self.question(&question);
                let answer = self.answer().await?;
                let more = if answer.is_empty() {
                    Ok(0)
                } else {
                    answer.parse::<u32>()
                };
                match more {
                    Ok(more) => return Some(more).filter(|more| *more > 0),
                    Err(_) => self.line("answer with a number"),
                }
            }
        })
    }
}
