//! Prompts that scripts send while a chat is idle, for example from a timer.
//!
//! Each is recorded like a message and begins a turn. It has the rights of the turn before it, because the script got its
//! reasons there, and its answer goes to the chat of that turn. It never has more rights than the sender of that turn has
//! now: someone who may no longer talk to the agent cannot leave a timer behind that does. Scripts that send too many have
//! to wait: their prompts stay in their queue, whose length is limited.

use jiff::Timestamp;
use tenterhook_agent::Prompt;
use tenterhook_agent::extension::ScriptHost;
use tenterhook_protocol::EventId;
use tenterhook_protocol::event::SenderRole;
use tenterhook_protocol::journal::{JournalRecord, OutputRecord};
use tokio::time::Instant;

use super::step::{MailboxMessage, delivery_of};
use crate::conversations::agent_slot::{AgentSlot, LastTurn};
use crate::conversations::conversation_parts::ConversationParts;
use crate::conversations::gateway_events::{GatewayFailure, report_failure};
use crate::conversations::places::Places;
use tenterhook_channel::message::{IncomingMessage, IncomingPart, MAX_TEXT};
use tenterhook_channel::rate::RateLimit;
use tenterhook_channel::store::{InboxRecord, Recorded};

/// Who reports problems in the journal.
const REPORTER: &str = "gateway";

/// The prompts of scripts of one conversation.
pub(super) struct ScriptPrompts {
    rate: RateLimit,
    paused_until: Option<Instant>,
}

impl Default for ScriptPrompts {
    fn default() -> Self {
        Self {
            rate: RateLimit::of_scripts(),
            paused_until: None,
        }
    }
}

impl ScriptPrompts {
    /// Returns when prompts are heard again, if scripts have sent too many.
    pub(super) fn paused_until(&self) -> Option<Instant> {
        self.paused_until.filter(|until| Instant::now() < *until)
    }

    /// Takes a prompt and records it. Returns what goes into the mailbox. A prompt that cannot be recorded is reported.
    pub(super) async fn take(
        &mut self,
        host: &ScriptHost,
        turn: LastTurn,
        (parts, slot, places): (&ConversationParts, &AgentSlot, &Places),
    ) -> Option<MailboxMessage> {
        let LastTurn { role, message } = turn;
        if let Err(too_many) = self.rate.check("") {
            self.paused_until = Some(Instant::now() + too_many.retry_after);
            let seconds = too_many.seconds();
            let problem = format!(
                "an extension sends prompts to the idle chat `{}` too fast; the next one runs in {seconds} s",
                message.chat
            );
            report(parts, slot, &message, problem).await;
            return None;
        }
        let prompt = host.take_prompt()?;
        let Some(place) = places.take(&message.chat) else {
            let problem =
                "a prompt of an extension was dropped: too many messages wait for its chat";
            report(parts, slot, &message, problem.to_owned()).await;
            return None;
        };
        let recorded = record(prompt, (role, &message), (parts, slot));
        let problem = match recorded.await {
            Ok(record) => return Some(MailboxMessage { record, place }),
            Err(problem) => problem,
        };
        let problem = format!("a prompt of an extension was dropped: {problem}");
        report(parts, slot, &message, problem).await;
        None
    }
}

/// Records a prompt with the rights of an earlier turn, but no more than the sender of its first message has now.
///
/// # Errors
///
/// Returns why it was not recorded.
async fn record(
    prompt: Prompt,
    (role, message): (SenderRole, &IncomingMessage),
    (parts, slot): (&ConversationParts, &AgentSlot),
) -> Result<InboxRecord, String> {
    if prompt.text.len() > MAX_TEXT {
        return Err(format!("it is longer than {MAX_TEXT} bytes"));
    }
    let role = parts.roles.at_most(role, message).await;
    let role = role.map_err(|error| error.to_string())?;
    let (sent, extra) = (sent(message, &prompt), prompt.extra);
    let key = slot.key().clone();
    match parts.store.accept_script(sent, role, key, extra).await {
        Ok(Recorded::Fresh(record)) => Ok(record),
        Ok(Recorded::Full | Recorded::Duplicate) => Err("too many messages wait".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Returns a prompt as a message in the chat of an earlier one.
fn sent(earlier: &IncomingMessage, prompt: &Prompt) -> IncomingMessage {
    let id = EventId::generate().to_string();
    IncomingMessage {
        dedupe: format!("script:{id}"),
        message_id: id,
        parts: vec![IncomingPart::Text {
            text: prompt.text.clone(),
        }],
        reply_to: None,
        at: Timestamp::now(),
        ..earlier.clone()
    }
}

/// Reports a problem to the journal and to hooks.
async fn report(
    parts: &ConversationParts,
    slot: &AgentSlot,
    message: &IncomingMessage,
    problem: String,
) {
    let delivery = delivery_of(parts, slot).await;
    let dispatcher = delivery.dispatcher();
    dispatcher.record(|| JournalRecord::Output(OutputRecord::now(REPORTER, problem.as_str())));
    let failure = GatewayFailure {
        code: "script_prompt".to_owned(),
        error: problem,
        chat: Some(message.chat.clone()),
        ..GatewayFailure::default()
    };
    report_failure(dispatcher, &message.chat.channel, failure).await;
}
