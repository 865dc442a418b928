//! Names of commands that people type because other programs have them.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue};
use clap::{Command, CommandFactory as _};
use tenterhook_hookfile::nearest;
use tenterhook_terminal::output;

use crate::args::Args;

/// Names that work, and the real name of each. Help does not list them.
const OTHER_NAMES: [(&str, &str); 5] = [
    ("approve", "trust"),
    ("logs", "inspect"),
    ("paths", "list"),
    ("validate", "check"),
    ("version", "--version"),
];

/// Names that do not work, and the command to suggest for each. Spellings similar to one of them, to another name or to
/// a command need no row.
const SUGGESTIONS: [(&str, &str); 41] = [
    ("add", "install"),
    ("block", "init"),
    ("chat", "run"),
    ("config", "list"),
    ("create", "init"),
    ("debug", "explain"),
    ("deny", "init"),
    ("dispatch", "fire"),
    ("dry-run", "fire"),
    ("emit", "fire"),
    ("exec", "run"),
    ("guard", "init"),
    ("health", "doctor"),
    ("history", "inspect"),
    ("hook", "list"),
    ("hooks", "list"),
    ("info", "status"),
    ("journal", "inspect"),
    ("lint", "check"),
    ("log", "inspect"),
    ("ls", "list"),
    ("new", "init"),
    ("off", "disable"),
    ("on", "enable"),
    ("permit", "trust"),
    ("remove", "uninstall"),
    ("restart", "reload"),
    ("restore", "snapshot"),
    ("revoke", "trust --revoke"),
    ("serve", "gateway"),
    ("server", "gateway"),
    ("setup", "install"),
    ("show", "list"),
    ("simulate", "fire"),
    ("start", "daemon"),
    ("trigger", "fire"),
    ("undo", "snapshot"),
    ("update", "install"),
    ("upgrade", "install"),
    ("verify", "check"),
    ("why", "explain"),
];

/// Replaces another name of a command with its real name, and prints the real name on stderr.
pub(crate) fn with_real_name(mut words: Vec<OsString>) -> Vec<OsString> {
    let named = command_position(&words).and_then(|at| words.get_mut(at));
    if let Some(word) = named
        && let Some(real) = find(&OTHER_NAMES, word)
    {
        output::note(format_args!("note: this command is `tenterhook {real}`"));
        *word = real.into();
    }
    words
}

/// Replaces the suggestion of the argument parser, which compares only letters, if a command has another word for
/// what the user wants.
pub(crate) fn suggest_command(mut error: clap::Error, words: &[OsString]) -> clap::Error {
    let named = command_position(words).and_then(|at| words.get(at));
    let unknown = error.get(ContextKind::InvalidSubcommand);
    if let (Some(word), Some(ContextValue::String(unknown))) = (named, unknown)
        && word == unknown.as_str()
        && let Some(real) = meant(unknown)
    {
        let suggested = ContextValue::Strings(vec![real]);
        error.insert(ContextKind::SuggestedSubcommand, suggested);
    }
    error
}

/// Returns the command that a user may mean with `word`.
fn meant(word: &str) -> Option<String> {
    let program = Args::command();
    let mut rows = OTHER_NAMES.iter().chain(&SUGGESTIONS);
    let names = rows.clone().map(|(name, _)| *name);
    let known = names.chain(program.get_subcommands().map(Command::get_name));
    let near = nearest(word, known)?;
    let real = rows.find(|(name, _)| *name == near).map(|(_, real)| *real);
    Some(real.unwrap_or(near).to_owned())
}

fn find(rows: &[(&str, &'static str)], word: &OsString) -> Option<&'static str> {
    let mut rows = rows.iter();
    rows.find(|(name, _)| word == name).map(|(_, real)| *real)
}

/// Returns where the name of the command is: the first word that is neither an option nor the value of `--color`. With
/// `help`, it is the next word.
fn command_position(words: &[OsString]) -> Option<usize> {
    let is_name = |at: &usize| {
        let word = words.get(*at).map(|word| word.as_encoded_bytes());
        let is_value = words.get(at - 1).is_some_and(|before| before == "--color");
        word.is_some_and(|word| !word.starts_with(b"-")) && !is_value
    };
    let at = (1..words.len()).find(is_name)?;
    let is_help = words.get(at).is_some_and(|word| word == "help");
    Some(if is_help { at + 1 } else { at })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_leads_to_a_command_and_none_hides_one() {
        let program = Args::command();
        for (name, real) in OTHER_NAMES.iter().chain(&SUGGESTIONS) {
            assert!(program.find_subcommand(name).is_none(), "{name}");
            let real = real.split(' ').next().unwrap();
            assert!(
                real == "--version" || program.find_subcommand(real).is_some(),
                "{real}"
            );
        }
    }
}
