//! The terminal as an agent's frontend: streamed text, tool calls, questions.

mod ask;
mod call;

use std::borrow::Cow;
use std::io::{self, IsTerminal as _};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use tenterhook::event::NotificationLevel;
use tenterhook::{JsonObject, Message, ToolCall, ToolResult, ToolUseId};
use tenterhook_agent::frontend::{
    Approval, ApprovalRequest, AskedBy, Denial, HookFailure, Question,
};
use tenterhook_agent::{Agent, Frontend};
use tenterhook_handlers::secret::Redactor;

use crate::answers::Answers;
use crate::check::count;
use crate::data_dir::data_dir;
use crate::editor::{Entered, LineMode, Purpose, Words};
use crate::interrupt::{Echoes, Interrupts};
use crate::markdown::Markdown;
use crate::output::{self, above, style, styled};
use crate::progress::{self, Progress};
use crate::safe::{inset, safe, safe_line};
use crate::stdin::Lines;

/// The most lines of a tool's result that are shown.
const RESULT_LINES: usize = 8;

/// How long a tool may take without the time being shown.
const QUICK: Duration = Duration::from_secs(1);

/// What the agent says of a call that only the user could have allowed.
const UNANSWERED: &str = "it needs approval and nobody is there to give it";

/// How much is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    /// Everything that a person follows.
    Everything,
    /// What the user should know, on stderr: stdout is for the answer.
    Answer,
    /// Nothing on stdout: it is for a program.
    Nothing,
}

/// A person at a terminal, or nobody where stdin is none.
pub(crate) struct Terminal {
    shown: Shown,
    is_interactive: bool,
    /// The agent whose name goes without saying.
    root: String,
    answers: Answers,
    interrupts: Interrupts,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The last text did not end its line.
    is_line_open: bool,
    progress: Option<Progress>,
    echoes: Echoes,
    /// Sets the model's text, where it is set.
    markdown: Option<Markdown>,
    /// When the calls under way began, without the time for questions.
    began: Vec<(ToolUseId, Instant)>,
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
    pub(crate) fn new(shown: Shown, interrupts: &Interrupts) -> Self {
        let is_interactive = shown == Shown::Everything && io::stdin().is_terminal();
        let is_colourful = shown == Shown::Everything && output::is_colourful_terminal();
        let answers = if is_interactive && can_edit() {
            Answers::edited(LineMode::Edited {
                history: data_dir().map(|data| data.join("history")),
                is_coloured: is_colourful,
            })
        } else if is_interactive {
            Answers::plain()
        } else {
            Answers::Lines(Lines::default())
        };
        Self {
            shown,
            is_interactive,
            root: Agent::DEFAULT_NAME.to_owned(),
            answers,
            interrupts: interrupts.clone(),
            state: Mutex::new(State {
                markdown: is_colourful.then(Markdown::default),
                echoes: interrupts.echoes(),
                ..State::default()
            }),
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
        let is_shown = self.shown == Shown::Everything && !above::is_open();
        let progress = is_shown.then(|| Progress::start(what));
        self.state().progress = progress;
    }

    /// Ends a line that is open and removes the sign of life.
    pub(crate) fn settle(&self) {
        self.state().settle();
    }

    /// Changes what lines can be completed to, where they can.
    pub(crate) fn complete(&self, change: impl FnOnce(&mut Words)) {
        if let Answers::Person(editor) = &self.answers {
            editor.complete(change);
        }
    }

    /// Returns the user's next line, for a prompt or a command.
    pub(crate) async fn prompt(&self) -> io::Result<Entered> {
        if self.is_interactive {
            self.begin_line("> ");
        }
        self.read(Purpose::Prompt).await
    }

    /// Says whether the keys of a line are read one by one, Ctrl-C among them.
    pub(crate) fn has_editor(&self) -> bool {
        matches!(&self.answers, Answers::Person(editor) if editor.is_edited())
    }

    /// Prints the beginning of a line that the user ends, unless the editor draws it.
    fn begin_line(&self, text: &str) {
        let mut state = self.state();
        state.settle();
        if let Answers::Lines(_) = self.answers {
            output::text(text);
            state.is_line_open = true;
        }
    }

    async fn read(&self, purpose: Purpose) -> io::Result<Entered> {
        let entered = self.answers.read(purpose).await?;
        if self.is_interactive && matches!(entered, Entered::Line(_)) {
            // The user's Enter ended the line.
            self.state().is_line_open = false;
        }
        Ok(entered)
    }

    /// Returns an answer; `None` where there is none. Where there can be none any more, the reason is kept.
    async fn ask(&self, question: &str) -> Option<String> {
        loop {
            self.begin_line(question);
            match self.read(Purpose::Answer(question.to_owned())).await {
                Ok(Entered::Line(line)) => return Some(line.trim().to_owned()),
                Ok(Entered::Cleared) => {}
                Ok(Entered::End) => return None,
                Ok(Entered::Interrupted) => {
                    self.interrupts.interrupt();
                    return None;
                }
                Err(error) => {
                    self.state().broken = Some(error);
                    return None;
                }
            }
        }
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
}

impl State {
    /// Notes what came of a question that was asked at `asked`.
    fn be_asked(&mut self, asked: Instant, approval: &Approval, tool: &str) {
        let waited = asked.elapsed();
        for (_, began) in &mut self.began {
            *began += waited;
        }
        if matches!(approval, Approval::Deny { .. }) {
            self.refused = Some(tool.to_owned());
        }
    }

    fn settle(&mut self) {
        self.progress = None;
        if self.echoes.is_new() && !self.is_line_open && !above::is_open() {
            output::clear_line();
        }
        if let Some(markdown) = &mut self.markdown {
            output::set(&markdown.flush());
        }
        if std::mem::take(&mut self.is_line_open) {
            output::line("");
        }
    }
}

/// Says whether stdout is a terminal on which a line can be edited: one that can move its cursor.
fn can_edit() -> bool {
    let name = std::env::var_os("TERM").unwrap_or_default();
    io::stdout().is_terminal() && (cfg!(windows) || !(name.is_empty() || name == "dumb"))
}

/// Returns a hook as it is named to people.
fn hook_text(event: &str, hook: Option<&str>) -> String {
    match hook {
        Some(hook) => format!("hook `{}` ({event})", safe_line(hook)),
        None => format!("a {event} hook"),
    }
}

/// Returns who wants a call asked, and why.
fn why_asked(request: &ApprovalRequest<'_>) -> Vec<String> {
    let reason = request
        .reason
        .map(|reason| inset(&without_secrets(reason), 4));
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
        format!("{}: {}", inset(key, 4), inset(&value, 4))
    });
    let lines = why.into_iter().chain(metadata);
    lines.map(|line| format!("  {line}")).collect()
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
        if self.shown != Shown::Everything || text.is_empty() {
            return;
        }
        let mut state = self.state();
        state.last_call = None;
        let Some(markdown) = &mut state.markdown else {
            state.progress = None;
            state.is_line_open = !text.ends_with('\n');
            return output::text(safe(text));
        };
        let set = markdown.push(text);
        if !set.is_empty() {
            state.progress = None;
            output::set(&set);
        }
    }

    fn message(&self, _agent: &str, _message: &Message) {
        let mut state = self.state();
        state.settle();
        if let Some(markdown) = &mut state.markdown {
            output::set(&markdown.end());
        }
    }

    fn tool_start(&self, agent: &str, call: &ToolCall) {
        let input = call.arguments.as_object().cloned().unwrap_or_default();
        let text = self.call_text(agent, &call.name, &input);
        self.state().began.push((call.id.clone(), Instant::now()));
        self.call_line(&styled(style::NAME, "●"), text);
        self.wait_for(&format!("running {}", inset(&call.name, 4)));
    }

    fn tool_rewritten(&self, _agent: &str, call: &ToolCall, input: &JsonObject) {
        let text = self.call_text(&self.root, &call.name, input);
        let before = styled(style::CARE, "rewritten by a hook:");
        self.call_line(&format!("  {before}"), text);
    }

    fn shows_progress(&self) -> bool {
        self.shown == Shown::Everything && progress::is_seen()
    }

    fn tool_update(&self, _agent: &str, _call: &ToolCall, partial: &ToolResult) {
        if let Some(progress) = &self.state().progress {
            progress.tell(&partial.joined_text());
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
        let shown = all.iter().take(RESULT_LINES);
        let mut lines: Vec<String> = shown
            .map(|line| format!("    {}", styled(look, safe(line))))
            .collect();
        let mut quiet = |text: String| lines.push(format!("    {}", styled(style::QUIET, text)));
        if all.len() > RESULT_LINES {
            quiet(call::more(all.len() - RESULT_LINES));
        }
        let took = began.map_or(Duration::ZERO, |began| began.elapsed());
        if took >= QUICK {
            quiet(format!("took {:.1} s", took.as_secs_f64()));
        }
        self.lines(lines);
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
            .map(|event| format!(" by {}", hook_text(event, denial.hook)))
            .unwrap_or_default();
        let hint = if denial.event.is_none() && denial.reason == UNANSWERED {
            let tool = inset(&denial.call.name, 4);
            format!("; `--allow {tool}` or `--yes` would")
        } else {
            String::new()
        };
        let text = format!(
            "  {} {}{hint}",
            styled(style::BAD, format_args!("denied{by}:")),
            inset(&without_secrets(denial.reason), 4)
        );
        if self.shown == Shown::Answer {
            let call = inset(&denial.call.name, 4);
            return self.note(&format!("{call}:{text}"));
        }
        self.line(&text);
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
            let asked = Instant::now();
            self.lines(why_asked(&request));
            let suggestion = Some(request.suggestion).filter(|_| request.by != AskedBy::Protection);
            let approval = self.ask_approval(suggestion).await;
            self.state().be_asked(asked, &approval, request.tool);
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
            self.line(&format!("The agent made {calls}."));
            loop {
                let answer = self.ask("  how many more? [0] ").await?;
                let more = if answer.is_empty() {
                    Ok(0)
                } else {
                    answer.parse::<u32>()
                };
                match more {
                    Ok(more) => return Some(more).filter(|more| *more > 0),
                    Err(_) => self.line("  answer with a number"),
                }
            }
        })
    }
}
