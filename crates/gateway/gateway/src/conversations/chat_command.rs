//! Commands that people write in a chat.

use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::{Error, StrDeserializer};
use tenterhook_agent::extension::ForeignCommand;
use tenterhook_protocol::event::SenderRole;

use tenterhook_channel::labels::clean_label;
use tenterhook_channel::settings::BusyMode;

/// What `/help` answers without extensions.
const HELP: &str = "\
/new begins a new conversation
/stop stops the current answer
/status shows what the agent does
/busy MODE decides what happens to messages while the agent works: steer, follow_up, collect, interrupt or refuse \
(owners only)
/help shows this list";

/// The commands of the agent that cannot be used in a chat.
const AGENT_COMMANDS: [&str; 16] = [
    "clear", "compact", "exit", "fork", "hooks", "label", "model", "name", "quit", "reload",
    "resume", "session", "sessions", "thinking", "tools", "tree",
];

/// A command of a chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChatCommand {
    New,
    Stop,
    Help,
    Status,
    Busy(BusyMode),
}

/// Returns what `/help` answers, with the commands that extensions add for owners.
pub(crate) fn help(role: SenderRole, commands: &[ForeignCommand]) -> String {
    let mut help = HELP.to_owned();
    let commands = commands.iter().filter(|_| role == SenderRole::Owner);
    for command in commands {
        let description = clean_label(&command.description);
        help.push_str(format!("\n{command} {description}").trim_end());
    }
    help
}

/// Returns the command of an extension with which a message begins, unless the gateway has a command of that name.
///
/// # Errors
///
/// Explains to the sender why the message is refused.
pub(crate) fn of_extension<'a>(
    text: &str,
    role: SenderRole,
    commands: &'a [ForeignCommand],
) -> Result<Option<&'a ForeignCommand>, String> {
    let Some(line) = text.trim().strip_prefix('/') else {
        return Ok(None);
    };
    let name = line.split(char::is_whitespace).next().unwrap_or_default();
    let name = name.split_once('@').map_or(name, |(name, _)| name);
    let is_named = |command: &&ForeignCommand| command.names.iter().any(|own| own == name);
    match commands.iter().find(is_named) {
        Some(_) if role != SenderRole::Owner => Err(format!("Only owners can use `/{name}`.")),
        found => Ok(found),
    }
}

/// Reads a message. Returns `Ok(None)` for a message that is not a command.
///
/// # Errors
///
/// Explains to the sender why the message is refused.
pub(crate) fn parse(text: &str, role: SenderRole) -> Result<Option<ChatCommand>, String> {
    let text = text.trim();
    if is_shell_command(text) {
        return Err("Commands that begin with `!` cannot be used in a chat.".to_owned());
    }
    let Some(line) = text.strip_prefix('/') else {
        return Ok(None);
    };
    let (name, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    // In groups, some services add the name of the bot: `/stop@bot`.
    let name = name.split_once('@').map_or(name, |(name, _)| name);
    let command = match name {
        "new" => ChatCommand::New,
        "stop" => ChatCommand::Stop,
        "help" => ChatCommand::Help,
        "status" => ChatCommand::Status,
        "busy" if role == SenderRole::Owner => ChatCommand::Busy(read_mode(argument.trim())?),
        "busy" => return Err("Only owners can use `/busy`.".to_owned()),
        name if AGENT_COMMANDS.contains(&name) => {
            return Err(format!("`/{name}` cannot be used in a chat."));
        }
        _ => return Ok(None),
    };
    if role == SenderRole::Guest {
        return Err("Guests cannot use commands.".to_owned());
    }
    Ok(Some(command))
}

fn is_shell_command(text: &str) -> bool {
    let Some(command) = text.strip_prefix('!') else {
        return false;
    };
    let command = command.trim_start_matches('!').trim_start();
    let first = command.chars().next();
    first.is_some_and(|first| first.is_ascii_alphanumeric() || "./~$({".contains(first))
}

fn read_mode(word: &str) -> Result<BusyMode, String> {
    let deserializer: StrDeserializer<'_, Error> = word.into_deserializer();
    BusyMode::deserialize(deserializer).map_err(|_| {
        "Expected `/busy` with `steer`, `follow_up`, `collect`, `interrupt` or `refuse`.".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    // G83
    #[test]
    fn commands_depend_on_the_role() {
        use SenderRole::{Guest, Member, Owner};
        let command = |command| Ok(Some(command));
        let refused = |part: &str| Err(part.to_owned());
        let table = [
            ("hello", Guest, Ok(None)),
            ("!", Guest, Ok(None)),
            ("!!! great", Owner, refused("`!`")),
            ("!id", Member, refused("`!`")),
            ("!!ls -l", Owner, refused("`!`")),
            ("/new", Member, command(ChatCommand::New)),
            (" /stop@bot ", Member, command(ChatCommand::Stop)),
            ("/help", Owner, command(ChatCommand::Help)),
            ("/status", Guest, refused("Guests")),
            (
                "/busy collect",
                Owner,
                command(ChatCommand::Busy(BusyMode::Collect)),
            ),
            ("/busy", Owner, refused("Expected")),
            ("/busy steer", Member, refused("Only owners")),
            ("/model gpt", Member, refused("`/model`")),
            ("/reload", Owner, refused("`/reload`")),
            ("/review src", Member, Ok(None)),
        ];
        for (text, role, expected) in table {
            match (parse(text, role), expected) {
                (Err(found), Err(part)) => assert!(found.contains(&part), "{text}: {found}"),
                (found, expected) => assert_eq!(found, expected, "{text}"),
            }
        }
    }
}
