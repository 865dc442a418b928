//! Whether the interpreter of a script is the project's: nobody approved that.

use std::path::{Path, PathBuf};

/// How much of the first line is read; the system reads no more.
const LONGEST: usize = 256;

/// Refuses a script whose interpreter stands in the project, or is found there by `env`. `dir` is where it runs.
pub(crate) fn check_interpreter(bytes: &[u8], dir: &Path, root: &Path) -> Result<(), String> {
    let Some(line) = bytes.strip_prefix(b"#!") else {
        return Ok(());
    };
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line.get(..line.len().min(LONGEST)).unwrap_or_default());
    let mut words = line.split_whitespace();
    let interpreter = Path::new(words.next().unwrap_or_default());
    let is_env = interpreter.file_name().is_some_and(|name| name == "env");
    let is_option = |word: &&str| word.starts_with('-') || word.contains('=');
    let named = words.by_ref().find(|word| !is_option(word));
    if let Some(word) = named
        .filter(|_| !is_env)
        .or_else(|| words.find(|word| !is_option(word)))
    {
        return Err(format!(
            "its first line gives the interpreter `{}` to run, expected options only",
            word.escape_debug()
        ));
    }
    let found = named.and_then(|name| in_search_path(name, dir));
    let canonical = std::fs::canonicalize(interpreter).ok();
    for program in [Some(interpreter.to_owned()), canonical, found]
        .into_iter()
        .flatten()
    {
        let is_elsewhere = ["/proc", "/dev"]
            .iter()
            .any(|place| program.starts_with(place));
        if program.is_relative() || program.starts_with(root) || is_elsewhere {
            return Err(format!(
                "its interpreter `{}` is a file of the project, expected one outside of it",
                program.display().to_string().escape_debug()
            ));
        }
    }
    Ok(())
}

/// Returns the interpreter that the first line of a script names and that is not there. `dir` is where it runs.
pub(crate) fn missing_interpreter(bytes: &[u8], dir: &Path) -> Option<String> {
    let line = bytes.strip_prefix(b"#!")?;
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line.get(..line.len().min(LONGEST)).unwrap_or_default());
    // A carriage return belongs to the name: that is how a script with Windows line ends fails.
    let mut words = line.split([' ', '\t']).filter(|word| !word.is_empty());
    let interpreter = words.next().unwrap_or_default();
    if !dir.join(interpreter).is_file() {
        return Some(interpreter.to_owned());
    }
    if Path::new(interpreter)
        .file_name()
        .is_none_or(|name| name != "env")
    {
        return None;
    }
    let named = words.find(|word| !word.starts_with('-') && !word.contains('='))?;
    in_search_path(named, dir)
        .is_none()
        .then(|| named.to_owned())
}

/// Returns the program that the search path finds for a name.
pub(crate) fn in_search_path(name: &str, dir: &Path) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(dir.join(name));
    }
    let search = std::env::var_os("PATH")?;
    std::env::split_paths(&search)
        .map(|place| dir.join(place).join(name))
        .find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_interpreter_is_named() {
        let dir = Path::new("/");
        for (line, missing) in [
            ("#!/bin/sh -e\n", None),
            ("#!/usr/bin/env sh\n", None),
            ("#!/usr/bin/env -S A=b sh -e\n", None),
            ("\x7fELF", None),
            ("#!/opt/nowhere/ruby\n", Some("/opt/nowhere/ruby")),
            (
                "#!/usr/bin/env no-such-interpreter\n",
                Some("no-such-interpreter"),
            ),
            ("#!/bin/sh\r\n", Some("/bin/sh\r")),
            ("#!\n", Some("")),
        ] {
            let found = missing_interpreter(line.as_bytes(), dir);
            assert_eq!(found.as_deref(), missing, "{line}");
        }
    }

    #[test]
    fn an_interpreter_of_the_project_is_refused() {
        let (dir, root) = (Path::new("/p/sub"), Path::new("/p"));
        for (line, is_refused) in [
            ("#!/bin/sh\n", false),
            ("#! /bin/sh -e\n", false),
            ("#!/usr/bin/env sh\n", false),
            ("#!/usr/bin/env -S A=b sh -e\n", false),
            ("\x7fELF", false),
            ("#!/p/bin/sh\n", true),
            ("#!bin/sh\n", true),
            ("#!\n", true),
            ("#!/usr/bin/env ./tool\n", true),
            ("#!/usr/bin/env -S A=b ./tool\n", true),
            ("#!/usr/bin/env -S sh payload\n", true),
            ("#!/bin/sh ./payload\n", true),
            ("#!/proc/self/cwd/payload\n", true),
        ] {
            let checked = check_interpreter(line.as_bytes(), dir, root);
            assert_eq!(checked.is_err(), is_refused, "{line}");
        }
    }
}
