//! What the agent does in a turn: the command of an extension, the prompt of the messages, and the prompts that scripts
//! add.

use std::future;

use tenterhook_agent::extension::{
    CommandEnd, CommandFailure, ForeignCommand, PendingRequest, SessionRequest,
};
use tenterhook_agent::{Agent, CancellationToken, Prompt, RunEnd, RunReport};
use tenterhook_protocol::Usage;
use tenterhook_protocol::event::SessionSource;

use crate::conversations::chat_frontend::TurnView;

/// The maximum number of prompts of scripts in one turn. The limit stops scripts that answer each run with a prompt.
const MAX_SCRIPT_PROMPTS: usize = 16;

/// What a chat reads after a command that shows nothing.
const DONE: &str = "Done.";

/// What a script gets that requests another session.
const OWN_SESSION: &str =
    "a chat keeps its session; people begin a new one with the command `/new` of the chat";

/// The work of a turn.
pub(crate) struct TurnWork<'a> {
    /// The command of an extension with which the message begins, and the message.
    pub(crate) command: Option<(&'a ForeignCommand, &'a str)>,
    pub(crate) prompt: Prompt,
    pub(crate) view: &'a TurnView,
    pub(crate) cancel: &'a CancellationToken,
}

impl TurnWork<'_> {
    /// Does the work.
    ///
    /// # Errors
    ///
    /// Fails if the command fails. Then the agent does not run.
    pub(crate) async fn run(self, agent: &mut Agent) -> Result<RunReport, CommandFailure> {
        let cancel = self.cancel;
        let done = self.run_all(agent).await;
        if let Some(scripts) = agent.scripts().cloned() {
            // Another turn may have more rights than this one, so it does not run what this one has left over.
            scripts.forget_prompts();
            while let Some(request) = scripts.take_request() {
                apply(request, agent, cancel).await;
            }
        }
        done
    }

    async fn run_all(self, agent: &mut Agent) -> Result<RunReport, CommandFailure> {
        let is_command = self.command.is_some();
        let (view, cancel) = (self.view, self.cancel);
        let prompt = self.prompt_after_command(agent).await?;
        let mut report = match prompt {
            Some(prompt) => agent.prompt(prompt, cancel).await,
            None => without_run(),
        };
        let scripts = agent.scripts().cloned();
        for _ in 0..MAX_SCRIPT_PROMPTS {
            let next = scripts.as_ref().and_then(|scripts| scripts.take_prompt());
            let Some(prompt) = next.filter(|_| !cancel.is_cancelled()) else {
                break;
            };
            let earlier = report.usage;
            report = agent.prompt(prompt, cancel).await;
            add(&mut report.usage, &earlier);
        }
        if is_command {
            agent.save_script_entries().await;
            if !view.has_shown() {
                view.deliver_output(DONE.to_owned()).await;
            }
        }
        Ok(report)
    }

    /// Runs the command, if there is one. Returns the prompt of the turn, if it has one.
    async fn prompt_after_command(
        self,
        agent: &mut Agent,
    ) -> Result<Option<Prompt>, CommandFailure> {
        let Some((command, line)) = self.command else {
            return Ok(Some(self.prompt));
        };
        Ok(
            match run_command(agent, command, line, self.cancel).await? {
                CommandEnd::Respond(text) => {
                    self.view.deliver_output(text).await;
                    None
                }
                CommandEnd::Prompt(text) => Some(Prompt {
                    text,
                    ..self.prompt
                }),
                CommandEnd::Passed => Some(self.prompt),
                CommandEnd::Done | _ => None,
            },
        )
    }
}

/// Runs a command, and answers its requests about the session meanwhile.
async fn run_command(
    agent: &mut Agent,
    command: &ForeignCommand,
    line: &str,
    cancel: &CancellationToken,
) -> Result<CommandEnd, CommandFailure> {
    agent.start_session(SessionSource::Startup).await;
    let session = agent.session().id().clone();
    let (cwd, scripts) = (agent.cwd().to_owned(), agent.scripts().cloned());
    let mut running = Box::pin(command.run(line, (&session, &cwd), cancel));
    loop {
        let request = async {
            match &scripts {
                Some(scripts) => scripts.next_request().await,
                None => future::pending().await,
            }
        };
        tokio::select! {
            // A script that waits for its request is known only while the next request is polled.
            biased;
            request = request => apply(request, agent, cancel).await,
            end = &mut running => return end,
        }
    }
}

/// Applies a request of a script, if it concerns the chat's own session.
async fn apply(request: PendingRequest, agent: &mut Agent, cancel: &CancellationToken) {
    if matches!(request.request, SessionRequest::Compact(_)) {
        // The script gets the error.
        let _applied = agent.apply_request(request, cancel).await;
    } else {
        request.refuse(OWN_SESSION);
    }
}

fn add(total: &mut Usage, usage: &Usage) {
    for (total, count) in [
        (&mut total.input_tokens, usage.input_tokens),
        (&mut total.output_tokens, usage.output_tokens),
        (&mut total.cached_input_tokens, usage.cached_input_tokens),
        (&mut total.cached_write_tokens, usage.cached_write_tokens),
    ] {
        *total = total.saturating_add(count);
    }
}

/// Returns the report of a turn in which the agent did not run.
fn without_run() -> RunReport {
    RunReport {
        end: RunEnd::Completed,
        response: String::new(),
        turns: 0,
        usage: Usage::default(),
        cost: None,
    }
}
