//! Lists chats, and sends to one.

use crate::ancestry::require_user;
use jiff::Timestamp;
use serde::Deserialize as _;
use serde_json::json;
use tenterhook_channel::store::ChatSummary;
use tenterhook_protocol::escape::escape_line;
use tenterhook_setup::error::CliError;
use tenterhook_setup::exit::Exit;
use tenterhook_setup::session_store::absolute;
use tenterhook_terminal::interrupt::Interrupts;
use tenterhook_terminal::output::table::{self, Cell, plain};
use tenterhook_terminal::output::{self, style};

use crate::command::gateway::args::{ListArgs, SendArgs};
use crate::command::gateway::client::{call, entries, text as text_of};

pub(super) async fn chats(args: ListArgs, interrupts: &Interrupts) -> Result<(), CliError> {
    let listed = json!({ "chats": call("chats", json!({}), interrupts).await? });
    if args.json {
        output::json(&listed);
        return Ok(());
    }
    let chats = entries(&listed, "chats").filter_map(|chat| ChatSummary::deserialize(chat).ok());
    let rows: Vec<Vec<Cell>> = chats.map(|chat| row(&chat)).collect();
    if rows.is_empty() {
        output::line("No chats.");
    }
    table::lines(&rows).iter().for_each(output::line);
    Ok(())
}

fn row(chat: &ChatSummary) -> Vec<Cell> {
    let at = Timestamp::from_millisecond(chat.at).map(|at| at.to_string());
    vec![
        (escape_line(&chat.chat.to_string()), style::NAME),
        (at.unwrap_or_default(), style::QUIET),
        plain(escape_line(&chat.title)),
    ]
}

pub(super) async fn send(args: SendArgs, interrupts: &Interrupts) -> Result<(), CliError> {
    require_user("send to a chat")?;
    let file = args.file.as_deref().map(absolute).transpose()?;
    let text = args.text.unwrap_or_default();
    let params = json!({ "chat": args.chat, "text": text, "file": file, "wait": args.wait });
    let sent = call("send", params, interrupts).await?;
    let (chat, state) = (escape_line(&args.chat), text_of(&sent, "state"));
    if args.wait && state != "delivered" {
        let message =
            format!("the message to `{chat}` was accepted, but its service does not have it yet");
        return Err(CliError::new(Exit::Failed, message).hint(
            "the gateway tries for 24 hours; `tenterhook gateway status` shows whether the channel is connected",
        ));
    }
    output::line(format_args!("`{chat}`: {state}."));
    Ok(())
}
