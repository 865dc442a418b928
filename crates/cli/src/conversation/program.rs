//! A program that uses the agent instead of a person: it reads events, or it calls methods.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use tenterhook_agent::Frontend;
use tenterhook_engine::{Engine, Registration};
use tenterhook_jsonrpc::notification;

use super::format::Format;
use super::record::SessionReport;
use tenterhook_terminal::Terminal;
use tenterhook_terminal::interrupt::Interrupts;
use tenterhook_terminal::output::json_lines::{self, JsonLines, JsonLinesWriter};
use tenterhook_terminal::rpc::{RpcCaller, RpcClient};

/// The program that uses the agent, if there is one. With a person, all fields are `None`.
pub(crate) struct Program {
    output: Option<Output>,
    client: Option<Arc<RpcClient>>,
    caller: Option<RpcCaller>,
}

/// The JSON lines that are written to stdout.
struct Output {
    feed: JsonLines,
    writer: JsonLinesWriter,
    following: Registration,
}

/// The last line that a program reads: the report.
#[derive(Serialize)]
struct LastLine<'a> {
    r#type: &'static str,
    #[serde(flatten)]
    report: &'a SessionReport<'a>,
}

impl Program {
    /// Connects a program, if the output format is for programs.
    pub(crate) fn of(
        format: Format,
        engine: &Engine,
        terminal: &Arc<Terminal>,
        interrupts: &Interrupts,
    ) -> Self {
        let form: fn(Value) -> Value = match format {
            Format::Jsonl => |event| event,
            Format::Rpc => |event| notification("event", &event),
            Format::Text | Format::Answer | Format::Json => {
                return Self {
                    output: None,
                    client: None,
                    caller: None,
                };
            }
        };
        let (feed, writer) = json_lines::start(interrupts);
        let following = feed.follow(engine, form);
        let client = (format == Format::Rpc)
            .then(|| Arc::new(RpcClient::new(feed.clone(), Arc::clone(terminal))));
        Self {
            caller: client
                .as_ref()
                .map(|client| RpcCaller::listen(Arc::clone(client))),
            client,
            output: Some(Output {
                feed,
                writer,
                following,
            }),
        }
    }

    /// Returns the frontend that shows output and asks questions: the client, or else the terminal.
    pub(crate) fn frontend(&self, terminal: &Arc<Terminal>) -> Arc<dyn Frontend> {
        match &self.client {
            Some(client) => Arc::clone(client) as _,
            None => Arc::clone(terminal) as _,
        }
    }

    /// Takes the caller of methods. Returns `None` if no program calls methods, and on every later call.
    pub(super) fn take_caller(&mut self) -> Option<RpcCaller> {
        self.caller.take()
    }

    /// Writes the report as the last line.
    pub(super) async fn report(&self, report: &SessionReport<'_>) {
        if let Some(output) = &self.output {
            let last = LastLine {
                r#type: "report",
                report,
            };
            output.feed.send(&last).await;
        }
    }

    /// Waits until everything is written.
    pub(super) async fn finish(self) {
        if let Some(output) = self.output {
            output.following.unsubscribe();
            output.writer.finish(&output.feed).await;
        }
    }
}
