//! The terminal as an agent's frontend: streamed text, tool calls, questions.

use std::io::{BufRead as _, IsTerminal as _};
use std::sync::{Mutex, PoisonError};

use futures_util::future::BoxFuture;
use serde_json::Value;
use tenterhook::event::NotificationLevel;
use tenterhook::{JsonObject, Message, ToolCall, ToolResult, ToolUseId};
use tenterhook_agent::Frontend;
use tenterhook_agent::frontend::{Approval, ApprovalRequest, Denial, HookFailure};

use crate::output::{self, style, styled};
use crate::progress::Progress;

/// The most lines of a tool's result that are shown.
const RESULT_LINES: usize = 8;

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
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The last text did not end its line.
    is_line_open: bool,
    progress: Option<Progress>,
    /// Calls whose denial was shown, so that the text for the model need not be.
    denied: Vec<ToolUseId>,
}

impl Terminal {
    pub(crate) fn new(shown: Shown) -> Self {
        let is_interactive = shown == Shown::Everything && std::io::stdin().is_terminal();
        Self {
            shown,
            is_interactive,
            state: Mutex::default(),
        }
    }

    /// Waits for `what` with a sign of life, until something is shown.
    pub(crate) fn wait_for(&self, what: &str) {
        let progress = (self.shown == Shown::Everything).then(|| Progress::start(what));
        self.state().progress = progress;
    }

    /// Ends a line that is open and removes the sign of life.
    pub(crate) fn settle(&self) {
        let mut state = self.state();
        state.progress = None;
        if std::mem::take(&mut state.is_line_open) {
            output::line("");
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prints a line, where anything is shown.
    pub(crate) fn line(&self, text: &str) {
        if self.shown == Shown::Everything {
            self.settle();
            output::line(text);
        }
    }

    fn note(&self, text: &str) {
        self.settle();
        output::note(text);
    }
}

/// Reads a line of stdin without blocking the runtime. `None` is the end of stdin.
pub(crate) async fn read_line() -> Option<String> {
    let line = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        let read = std::io::stdin().lock().read_line(&mut line);
        read.ok().filter(|bytes| *bytes > 0).map(|_| line)
    });
    line.await.ok().flatten().map(|line| line.trim().to_owned())
}

/// Returns a tool call as a person would write it.
fn call_text(tool: &str, input: &JsonObject) -> String {
    let arguments = match input.iter().next() {
        Some((_, Value::String(only))) if input.len() == 1 => only.clone(),
        Some(_) => Value::Object(input.clone()).to_string(),
        None => String::new(),
    };
    format!("{} {arguments}", styled(style::STRONG, tool))
}

impl Frontend for Terminal {
    fn text_delta(&self, _agent: &str, text: &str) {
        if self.shown == Shown::Nothing || text.is_empty() {
            return;
        }
        let mut state = self.state();
        state.progress = None;
        state.is_line_open = !text.ends_with('\n');
        output::text(text);
    }

    fn message(&self, _agent: &str, _message: &Message) {
        self.settle();
    }

    fn tool_start(&self, agent: &str, call: &ToolCall) {
        let input = call.arguments.as_object().cloned().unwrap_or_default();
        let agent = if agent == "root" {
            String::new()
        } else {
            format!("{agent}: ")
        };
        self.line(&format!(
            "{} {agent}{}",
            styled(style::NAME, "●"),
            call_text(&call.name, &input)
        ));
        self.wait_for(&format!("running {}", call.name));
    }

    fn tool_rewritten(&self, _agent: &str, call: &ToolCall, input: &JsonObject) {
        let call = call_text(&call.name, input);
        self.line(&format!(
            "  {} {call}",
            styled(style::CARE, "rewritten by a hook:")
        ));
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
            self.line(&format!("    {}", styled(look, line)));
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
        let by = denial
            .event
            .map(|event| format!(" by a {event} hook"))
            .unwrap_or_default();
        self.line(&format!(
            "  {} {}",
            styled(style::BAD, format_args!("denied{by}:")),
            denial.reason
        ));
    }

    fn hook_notice(&self, event: &'static str, text: &str) {
        self.note(&format!(
            "  {} {text}",
            styled(style::QUIET, format_args!("{event}:"))
        ));
    }

    fn hook_failure(&self, event: &'static str, failure: &HookFailure<'_>) {
        if failure.let_through {
            let text = format!(
                "{event} went on although hook `{}` failed: {}",
                failure.hook, failure.cause
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
        self.note(&format!("{} {text}", styled(look, word)));
    }

    fn is_interactive(&self) -> bool {
        self.is_interactive
    }

    fn approve<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
        Box::pin(async move {
            self.line(&format!(
                "{} {}",
                styled(style::CARE, "?"),
                call_text(request.tool, request.input)
            ));
            if let Some(reason) = request.reason {
                self.line(&format!("  {reason}"));
            }
            for (key, value) in request.metadata {
                self.line(&format!("  {key}: {}", value.as_str().unwrap_or_default()));
            }
            let question = format!(
                "  run it? [y]es, [n]o, [a]lways `{}` in this session: ",
                request.suggestion
            );
            let approval = loop {
                output::text(&question);
                match read_line()
                    .await
                    .map(|answer| answer.to_lowercase())
                    .as_deref()
                {
                    Some("y" | "yes") => break Approval::AllowOnce,
                    Some("a" | "always") => break Approval::AllowSession,
                    // At the end of stdin nobody is there any more, so nobody agreed.
                    Some("n" | "no") | None => break Approval::Deny { reason: None },
                    Some(_) => self.line("  answer y, n or a"),
                }
            };
            self.wait_for(&format!("running {}", request.tool));
            approval
        })
    }

    fn more_iterations(&self, limit: u32) -> BoxFuture<'_, Option<u32>> {
        Box::pin(async move {
            if !self.is_interactive {
                return None;
            }
            self.settle();
            output::text(format_args!(
                "The agent made {limit} model calls. How many more? [0] "
            ));
            read_line()
                .await
                .and_then(|answer| answer.parse().ok())
                .filter(|more| *more > 0)
        })
    }
}
