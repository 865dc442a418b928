//! Shows who asks to be admitted to a channel, and decides.

use crate::ancestry::require_user;
use serde_json::{Value, json};
use tenterhook_channel::approval_card::describe_sender;
use tenterhook_setup::error::CliError;
use tenterhook_setup::warning::warn;
use tenterhook_terminal::interrupt::Interrupts;
use tenterhook_terminal::output::table::{self, Cell, plain};
use tenterhook_terminal::output::{self, style};

use crate::command::gateway::args::{ListArgs, PairCommand};
use crate::command::gateway::client::{Proven, administer, entries, text};
use crate::command::gateway::grant::give_rights;

pub(super) async fn pair(command: PairCommand, interrupts: &Interrupts) -> Result<(), CliError> {
    let (method, params) = match command {
        PairCommand::List(args) => return list(args, interrupts).await,
        PairCommand::Approve {
            channel,
            code,
            role,
        } => (
            "pair.approve",
            json!({ "channel": channel, "code": code, "role": role.word() }),
        ),
        PairCommand::Deny { channel, code } => {
            ("pair.deny", json!({ "channel": channel, "code": code }))
        }
        PairCommand::Revoke { channel, sender } => (
            "pair.revoke",
            json!({ "channel": channel, "sender": sender }),
        ),
    };
    let action = "decide who may talk to the agent";
    let done = if method == "pair.approve" {
        give_rights((method, true), action, params, interrupts).await?
    } else {
        require_user(action)?;
        administer(method, params, Proven::No, interrupts).await?
    };
    output::line(done_line(method, &done));
    Ok(())
}

fn done_line(method: &str, done: &Value) -> String {
    let (sender, role) = (person(done), text(done, "role"));
    match method {
        "pair.approve" => format!("Admitted {sender} as {role}."),
        "pair.deny" => format!("Refused {sender}."),
        _ => format!("Revoked the admission of {sender}."),
    }
}

/// Describes a person: the name, which anyone can choose, and the id.
fn person(of: &Value) -> String {
    let name = text(of, "name");
    let name = Some(name.as_str()).filter(|name| !name.is_empty());
    describe_sender(name, &format!("`{}`", text(of, "sender")))
}

async fn list(args: ListArgs, interrupts: &Interrupts) -> Result<(), CliError> {
    let listed = administer("pair.list", json!({}), Proven::No, interrupts).await?;
    let listed = json!({ "channels": listed });
    if args.json {
        output::json(&listed);
        return Ok(());
    }
    let rows: Vec<Vec<Cell>> = entries(&listed, "channels").flat_map(rows_of).collect();
    if rows.is_empty() {
        output::line("No one asks to be admitted, and no one was admitted.");
    }
    table::lines(&rows).iter().for_each(output::line);
    for problem in entries(&listed, "channels").map(|it| text(it, "error")) {
        if !problem.is_empty() {
            warn(problem);
        }
    }
    Ok(())
}

/// Returns who decided about a sender, if it is known.
fn decider(decided: &Value) -> String {
    match text(decided, "decided_by") {
        by if by.is_empty() => String::new(),
        by => format!(" by {by}"),
    }
}

/// Returns the rows of a channel: who asks, then who was admitted.
fn rows_of(channel: &Value) -> Vec<Vec<Cell>> {
    let row = |sender: &Value, state: String, time: String| {
        vec![
            (text(channel, "channel"), style::NAME),
            plain(text(sender, "sender")),
            plain(text(sender, "name")),
            plain(state),
            (time, style::QUIET),
        ]
    };
    let requests = entries(channel, "requests").map(|request| {
        let state = match text(request, "code") {
            code if code.is_empty() => format!("denied{}", decider(request)),
            code => format!("asks with the code {code}"),
        };
        row(
            request,
            state,
            format!("until {}", text(request, "expires")),
        )
    });
    let admitted = entries(channel, "admitted").map(|sender| {
        let since = format!("since {}", text(sender, "since"));
        let role = format!("{}{}", text(sender, "role"), decider(sender));
        row(sender, role, since)
    });
    requests.chain(admitted).collect()
}
