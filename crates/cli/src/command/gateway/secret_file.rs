//! `gateway.env`, the file with secrets next to the settings.
//!
//! A service manager reads it into the environment of the gateway. So that a person at a terminal sees the same, the
//! commands that use secrets read it, too: the program replaces itself, with these variables in its environment. Changing
//! the environment of a process with threads is not possible safely.

use std::env;
use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use crate::agent_args::AgentArgs;
use tenterhook_channel::channel_secrets::check_private;
use tenterhook_setup::error::CliError;
use tenterhook_setup::exit::Exit;

use crate::command::gateway::args::SettingsArgs;
use crate::command::gateway::settings;

/// The name of the file.
pub(super) const SECRET_FILE: &str = "gateway.env";

/// The maximum size of the file in bytes.
const MAX_FILE: u64 = 64 << 10;

/// Puts the variables of `gateway.env` into the environment, if the file has some that are not there. Variables of the
/// environment take precedence. On success, this returns only if nothing had to be done.
pub(super) fn load(args: &SettingsArgs, agent: &AgentArgs) -> Result<(), CliError> {
    let Some(settings) = settings::path(args, agent)? else {
        return Ok(());
    };
    let path = settings.with_file_name(SECRET_FILE);
    let Some(text) = read(&path).map_err(|cause| unusable(&path, &cause))? else {
        return Ok(());
    };
    let mut variables = parse(&text).map_err(|cause| unusable(&path, &cause))?;
    variables.retain(|(name, _)| env::var_os(name).is_none());
    if variables.is_empty() {
        return Ok(());
    }
    let failed = |error: &std::io::Error| {
        CliError::new(
            Exit::Failed,
            "cannot start this program with the variables of `gateway.env`",
        )
        .cause(error)
    };
    let program = env::current_exe().map_err(|error| failed(&error))?;
    let mut words = env::args_os();
    let mut command = Command::new(program);
    if let Some(name) = words.next() {
        command.arg0(name);
    }
    Err(failed(&command.args(words).envs(variables).exec()))
}

fn unusable(path: &Path, cause: &str) -> CliError {
    let message = format!(
        "cannot use the file with secrets `{}`: {cause}",
        path.display()
    );
    CliError::new(Exit::Config, message)
}

/// Reads the file. Returns `None` if the file does not exist.
fn read(path: &Path) -> Result<Option<String>, String> {
    match std::fs::metadata(path) {
        // Opening a pipe would block.
        Ok(found) if !found.is_file() => return Err("it is not a regular file".to_owned()),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        _ => {}
    }
    let text = File::open(path).and_then(|file| {
        check_private(&file.metadata()?)?;
        let mut text = String::new();
        file.take(MAX_FILE + 1).read_to_string(&mut text)?;
        Ok(text)
    });
    let text = text.map_err(|error| error.to_string())?;
    if text.len() as u64 > MAX_FILE {
        return Err("it is larger than 64 KiB".to_owned());
    }
    Ok(Some(text))
}

/// Reads lines of the form `NAME=VALUE`, which mean the same to systemd. What systemd would change in a value is an error.
fn parse(text: &str) -> Result<Vec<(String, String)>, String> {
    let mut variables = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        // A message never shows the line, because it may contain a secret.
        let wrong = |expected: &str| format!("line {}: expected {expected}", index + 1);
        let (name, value) = line.split_once('=').ok_or_else(|| wrong("`NAME=VALUE`"))?;
        let name = name.trim_end();
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty()
            || !name.chars().all(is_name)
            || name.starts_with(|c: char| c.is_ascii_digit())
        {
            return Err(wrong("a name of letters, digits and `_` before the `=`"));
        }
        let value = value.trim_start();
        let quoted = ['"', '\''].iter().find_map(|quote| {
            let inner = value.strip_prefix(*quote)?.strip_suffix(*quote)?;
            Some(inner)
        });
        let value = quoted.unwrap_or(value);
        if value.contains(['"', '\'', '\\', '\0']) {
            return Err(wrong("a value without quotes and backslashes inside"));
        }
        variables.push((name.to_owned(), value.to_owned()));
    }
    Ok(variables)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_variables_as_for_a_service_manager() {
        let text = "# a key\n\n; old\nA=1\n B = two words \nC=\"x y\"\nD='#1'\nE=\nF=a=b#c\n";
        let expected = [
            ("A", "1"),
            ("B", "two words"),
            ("C", "x y"),
            ("D", "#1"),
            ("E", ""),
            ("F", "a=b#c"),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(parse(text).unwrap(), expected);
    }

    #[test]
    fn an_error_names_the_line_and_never_shows_a_secret() {
        for line in [
            "sk-secret",
            "export KEY=sk-secret",
            "1A=sk-secret",
            "=sk-secret",
            "A=\"sk-secret",
            "A=sk-secret\\",
            "A='sk-\"secret'",
        ] {
            let error = parse(&format!("B=1\n{line}")).unwrap_err();
            assert!(error.starts_with("line 2: expected"), "{line}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
