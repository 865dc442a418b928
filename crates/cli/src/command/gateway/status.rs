//! Shows the gateway that runs and its channels, stops it, and opens its page.

use std::time::Duration;

use crate::ancestry::require_user;
use serde_json::{Value, json};
use tenterhook_channel::store::Store;
use tenterhook_protocol::escape::escape_line;
use tenterhook_setup::error::CliError;
use tenterhook_setup::exit::Exit;
use tenterhook_terminal::interrupt::Interrupts;
use tenterhook_terminal::output::progress::ProgressLine;
use tenterhook_terminal::output::table::{self, Cell, plain};
use tenterhook_terminal::output::{self, style};

use crate::command::gateway::args::{ChannelsArgs, ChannelsCommand, ListArgs};
use crate::command::gateway::client::{call, entries, state_folder, text};
use crate::command::gateway::grant::give_rights;

pub(super) async fn status(args: ListArgs, interrupts: &Interrupts) -> Result<(), CliError> {
    let status = call("status", json!({}), interrupts).await?;
    if args.json {
        output::json(&status);
        return Ok(());
    }
    match status.get("address").and_then(Value::as_str) {
        Some(address) => output::line(format_args!("Listening on {}.", escape_line(address))),
        None => output::line("The server is off."),
    }
    list_channels(&status);
    let failed = status.get("reload").map(|reload| text(reload, "error"));
    if let Some(problem) = failed.filter(|problem| !problem.is_empty()) {
        output::line(format_args!("The last reload failed: {problem}"));
    }
    let of_messages = status.get("messages").and_then(Value::as_object);
    let all = status.as_object().into_iter().chain(of_messages).flatten();
    for (name, number) in all.filter(|(_, value)| value.is_number()) {
        let name = escape_line(&name.replace('_', " "));
        output::line(format_args!("{name}: {number}"));
    }
    Ok(())
}

pub(super) async fn channels(args: ChannelsArgs, interrupts: &Interrupts) -> Result<(), CliError> {
    if let Some(ChannelsCommand::Restart { name }) = args.command {
        require_user("restart a channel")?;
        call("channels.restart", json!({ "name": name }), interrupts).await?;
        output::line(format_args!("Restarted `{}`.", escape_line(&name)));
        return Ok(());
    }
    let listed = call("channels", json!({}), interrupts).await?;
    let listed = json!({ "channels": listed });
    if args.list.json {
        output::json(&listed);
    } else {
        list_channels(&listed);
    }
    Ok(())
}

pub(super) async fn reload(is_json: bool, interrupts: &Interrupts) -> Result<(), CliError> {
    require_user("reload the gateway's settings and hooks")?;
    let changes = call("reload", json!({}), interrupts).await;
    let changes = changes.map_err(|error| match error.hint {
        Some(_) => error,
        None => error.hint("nothing has changed; `tenterhook gateway check` shows every problem of the settings and hooks"),
    })?;
    if is_json {
        output::json(&changes);
    } else {
        reload_lines(&changes).iter().for_each(output::line);
    }
    Ok(())
}

/// The changes of a reload, and how they are shown.
const RELOADED: [(&str, &str); 5] = [
    ("started", "Started"),
    ("stopped", "Stopped"),
    ("restarted", "Restarted"),
    ("adjusted", "New rules, still connected"),
    (
        "needs_restart",
        "not applied until the gateway is started again",
    ),
];

/// The hooks that a reload has changed, and how they are shown.
const RELOADED_HOOKS: [(&str, &str); 3] = [
    ("added", "Added hooks"),
    ("changed", "Changed hooks"),
    ("removed", "Removed hooks"),
];

/// Describes what a reload has changed.
pub(super) fn reload_lines(changes: &Value) -> Vec<String> {
    let mut lines = vec!["The settings and hooks were reloaded.".to_owned()];
    let mut add = |from: &Value, key, shown| {
        let names: Vec<String> = entries(from, key)
            .filter_map(Value::as_str)
            .map(|name| format!("`{}`", escape_line(name)))
            .collect();
        if !names.is_empty() {
            lines.push(format!("{shown}: {}", names.join(", ")));
        }
    };
    for (key, shown) in RELOADED {
        add(changes, key, shown);
    }
    let hooks = changes.get("hooks").unwrap_or(&Value::Null);
    for (key, shown) in RELOADED_HOOKS {
        add(hooks, key, shown);
    }
    match changes.get("turns_with_old_hooks").and_then(Value::as_u64) {
        Some(1) => lines.push("1 turn keeps the old hooks until it ends.".to_owned()),
        Some(turns @ 2..) => {
            lines.push(format!("{turns} turns keep the old hooks until they end."));
        }
        Some(0) | None => {}
    }
    let notes = entries(changes, "notes").filter_map(Value::as_str);
    lines.extend(notes.map(|note| format!("note: {}", escape_line(note))));
    lines
}

/// How often it is looked whether the gateway has stopped.
const STOP_INTERVAL: Duration = Duration::from_millis(50);

/// How long a gateway may need beyond the time that it has named: to close its files and to write its journal.
const STOP_MARGIN: Duration = Duration::from_secs(10);

/// Stops the gateway, and returns when another one could start.
pub(super) async fn stop(interrupts: &Interrupts) -> Result<(), CliError> {
    require_user("stop the gateway")?;
    let stopping = call("stop", json!({}), interrupts).await?;
    let within = stopping.get("within_seconds").and_then(Value::as_u64);
    let within = Duration::from_secs(within.unwrap_or_default()) + STOP_MARGIN;
    let folder = state_folder()?;
    let _progress = ProgressLine::start("waiting for the gateway to stop".to_owned());
    let stopped = async {
        let is_in_use = || {
            let folder = folder.clone();
            tokio::task::spawn_blocking(move || Store::is_in_use(&folder))
        };
        while is_in_use().await.unwrap_or(false) {
            tokio::time::sleep(STOP_INTERVAL).await;
        }
    };
    let waiting = tokio::time::timeout(within, stopped);
    match interrupts.token().run_until_cancelled(waiting).await {
        None => Err(CliError::new(
            Exit::Interrupted,
            "interrupted; the gateway still stops",
        )),
        Some(Err(_)) => {
            let seconds = within.as_secs();
            let message = format!("the gateway has not stopped within {seconds} seconds");
            Err(CliError::new(Exit::Failed, message)
                .hint("see what it does in its own terminal or log; Ctrl-C there ends it at once"))
        }
        Some(Ok(())) => {
            output::line("The gateway has stopped.");
            Ok(())
        }
    }
}

/// Prints a link that opens a page. `page` describes the page and its user.
pub(super) async fn open(page: Value, interrupts: &Interrupts) -> Result<(), CliError> {
    let action = "open the gateway's page";
    let opened = give_rights(("open", false), action, page, interrupts).await?;
    output::line(text(&opened, "url"));
    Ok(())
}

fn list_channels(listed: &Value) {
    let rows: Vec<Vec<Cell>> = entries(listed, "channels").map(row).collect();
    if rows.is_empty() {
        output::line("No channels.");
    }
    table::lines(&rows).iter().for_each(output::line);
}

fn row(channel: &Value) -> Vec<Cell> {
    let state = text(channel, "state");
    let look = match state.as_str() {
        "up" => style::GOOD,
        "backing_off" | "blocked" => style::BAD,
        _ => style::CARE,
    };
    vec![
        (text(channel, "id"), style::NAME),
        plain(text(channel, "kind")),
        (state.replace('_', " "), look),
        (format!("since {}", text(channel, "since")), style::QUIET),
        plain(reason(channel)),
    ]
}

/// Returns why a channel is not connected, and when it is tried again.
fn reason(channel: &Value) -> String {
    let (error, next) = (text(channel, "error"), text(channel, "next_attempt"));
    if next.is_empty() {
        error
    } else {
        format!("{error}; next attempt at {next}")
    }
}
