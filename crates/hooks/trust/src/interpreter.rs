//! Checks whether the `#!` line of a script runs anything that the approval does not cover.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::programs::{Interpreter, program_name};
use crate::search_path::{find_program, in_search_path};

/// How many bytes of the first line are read. The system reads no more.
const MAX_FIRST_LINE: usize = 256;

/// Options that make a program run the file with the `#!` line.
const RUN_OPTIONS: [(&str, &str); 8] = [
    ("awk", "-f"),
    ("deno", "run"),
    ("gawk", "-f"),
    ("jq", "-f"),
    ("mawk", "-f"),
    ("nawk", "-f"),
    ("sed", "-f"),
    ("uv", "run --script"),
];

/// Refuses a script whose interpreter is in the project, is found there by `env`, or gets an option or a
/// variable that may load code. `dir` is the folder where it runs, with the search path `search`. Without
/// it, with the `PATH` of this process. Returns a note if the interpreter may load more than the script.
pub fn check_interpreter(
    bytes: &[u8],
    dir: &Path,
    root: &Path,
    search: Option<&OsStr>,
) -> Result<Option<String>, String> {
    // Perl and other interpreters read the options of such a line even after a byte order mark or
    // spaces, where the system does not recognize it.
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let spaces = text.iter().take_while(|byte| b" \t".contains(byte)).count();
    let text = text.get(spaces..).unwrap_or_default();
    let Some(line) = first_line(text) else {
        return Ok(None);
    };
    if line.len() + "#!".len() >= MAX_FIRST_LINE || line.contains(&0) {
        return Err("its first line is too long or contains a zero byte".to_owned());
    }
    let line = String::from_utf8_lossy(line);
    // The system splits only at these two characters, so a carriage return is part of the last word.
    let mut words = line.split([' ', '\t']).filter(|word| !word.is_empty());
    let interpreter = Path::new(words.next().unwrap_or_default());
    let words: Vec<&str> = words.map(|word| word.trim_end_matches('\r')).collect();
    let is_env = interpreter.file_name().is_some_and(|name| name == "env");
    let (name, options) = if is_env {
        of_env(&words)?
    } else {
        (interpreter.to_str().unwrap_or_default(), words.as_slice())
    };
    let found = is_env.then(|| find_program(name, dir, search));
    let found = found.flatten();
    let canonical = std::fs::canonicalize(interpreter).ok();
    let target = found
        .as_ref()
        .and_then(|found| std::fs::canonicalize(found).ok());
    for program in [Some(interpreter.to_owned()), canonical, found, target]
        .into_iter()
        .flatten()
    {
        let is_elsewhere = ["/proc", "/dev"]
            .iter()
            .any(|place| program.starts_with(place));
        if program.is_relative() || program.starts_with(root) || is_elsewhere {
            return Err(format!(
                "its interpreter `{}` is a file of the project; use one outside of the project",
                program.display().to_string().escape_debug()
            ));
        }
    }
    note_of(name, options)
}

/// Returns the interpreter that `env` starts, and its options.
fn of_env<'a, 'w>(words: &'w [&'a str]) -> Result<(&'a str, &'w [&'a str]), String> {
    let mut rest = words;
    let mut name = None;
    while let Some((word, others)) = rest.split_first() {
        rest = others;
        if word.contains(['$', '\'', '"', '\\', '#']) {
            return Err(format!(
                "its first line passes `{}` to `env`, expected a word without quotes, `$`, `\\` or `#`",
                word.escape_debug()
            ));
        }
        if word.contains('=') || (word.starts_with('-') && !["-S", "-i"].contains(word)) {
            return Err(format!(
                "its first line passes `{}` to `env`, which may make its interpreter load other files",
                word.escape_debug()
            ));
        }
        if !word.starts_with('-') {
            name = Some(*word);
            break;
        }
    }
    let name = name.ok_or("its first line does not say which interpreter `env` starts")?;
    Ok((name, rest))
}

/// Refuses options that may load code. Returns a note if the interpreter is unknown.
fn note_of(interpreter: &str, options: &[&str]) -> Result<Option<String>, String> {
    let name = program_name(interpreter);
    let refused = |problem: &str| {
        format!(
            "its first line runs `{}` with `{}`: {problem}",
            interpreter.escape_debug(),
            options.join(" ").escape_debug()
        )
    };
    let known = Interpreter::named(name);
    if let Some(known) = known {
        let before = std::iter::once(&"").chain(options);
        let mut pairs = before.zip(options);
        return match pairs.find(|(before, option)| !known.loads_nothing_by(before, option)) {
            Some((_, other)) => Err(refused(&format!("`{other}` may make it load other files"))),
            None => Ok(None),
        };
    }
    let joined = options.join(" ");
    if !joined.is_empty() && !RUN_OPTIONS.contains(&(name, &joined)) {
        return Err(refused("Tenterhook does not know what these options load"));
    }
    Ok(Some(format!(
        "its interpreter `{interpreter}` may load other files, which can change without a new approval"
    )))
}

/// Returns the interpreter that the first line of a script names, if it does not exist. `dir` is the
/// folder where the script runs.
pub fn missing_interpreter(bytes: &[u8], dir: &Path) -> Option<String> {
    started(bytes, dir)?.err()
}

/// Returns the path of a script's interpreter with the time of its last change. Empty for a program, or
/// if the interpreter does not exist. `dir` is the folder where the script runs.
pub fn interpreter_version(bytes: &[u8], dir: &Path) -> String {
    let version = || {
        let program = std::fs::canonicalize(started(bytes, dir)?.ok()?).ok()?;
        let metadata = program.metadata().ok()?;
        let changed = metadata.modified().ok()?;
        let changed = changed.duration_since(std::time::UNIX_EPOCH).ok()?;
        let (path, changed) = (program.display(), changed.as_nanos());
        Some(format!("{path} {} {changed}", metadata.len()))
    };
    version().unwrap_or_default()
}

/// Returns what is behind `#!` in the first line of a script.
fn first_line(bytes: &[u8]) -> Option<&[u8]> {
    let line = bytes.strip_prefix(b"#!")?;
    line.split(|byte| *byte == b'\n').next()
}

/// Returns the program that the first line of a script starts. The error is its name, if it does not exist.
fn started(bytes: &[u8], dir: &Path) -> Option<Result<PathBuf, String>> {
    let line = first_line(bytes)?;
    let line = String::from_utf8_lossy(line.get(..line.len().min(MAX_FIRST_LINE))?);
    // A carriage return is part of the name, which is why a script with Windows line ends fails.
    let mut words = line.split([' ', '\t']).filter(|word| !word.is_empty());
    let interpreter = words.next().unwrap_or_default();
    let path = dir.join(interpreter);
    if !path.is_file() {
        return Some(Err(interpreter.to_owned()));
    }
    if !path.ends_with("env") {
        return Some(Ok(path));
    }
    let named = words.find(|word| !word.starts_with('-') && !word.contains('='))?;
    Some(in_search_path(named, dir).ok_or_else(|| named.to_owned()))
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
    fn an_interpreter_of_the_project_or_with_something_to_load_is_refused() {
        let (dir, root) = (Path::new("/p/sub"), Path::new("/p"));
        for (line, is_noted) in [
            ("#!/bin/sh\n", Ok(false)),
            ("#! /bin/sh -e\n", Ok(false)),
            ("#!/bin/bash -euo pipefail\n", Ok(false)),
            ("#!/usr/bin/env sh\n", Ok(false)),
            ("#!/usr/bin/env -S LANG=C sh -e\n", Err(())),
            ("#!/usr/bin/env -S python3 -I -u\n", Ok(false)),
            ("#!/usr/bin/python3.12 -IB\n", Ok(false)),
            ("#!/usr/bin/env -S node --no-warnings\n", Ok(false)),
            ("#!/usr/bin/perl -wT\n", Ok(false)),
            ("#!/usr/bin/awk -f\n", Ok(true)),
            ("#!/usr/bin/make\n", Ok(true)),
            ("#!/usr/bin/env bun\n", Ok(true)),
            ("#!/usr/bin/env -S uv run --script\n", Ok(true)),
            ("#!/usr/bin/env python3\n", Ok(false)),
            ("#!/usr/bin/fish\n", Ok(true)),
            ("\x7fELF", Ok(false)),
            ("#!/p/bin/sh\n", Err(())),
            ("#!bin/sh\n", Err(())),
            ("#!\n", Err(())),
            ("#!/usr/bin/env\n", Err(())),
            ("#!/usr/bin/env ./tool\n", Err(())),
            ("#!/usr/bin/env -S LANG=C ./tool\n", Err(())),
            ("#!/usr/bin/env -S sh payload\n", Err(())),
            ("#!/bin/sh ./payload\n", Err(())),
            ("#!/proc/self/cwd/payload\n", Err(())),
            ("#!/usr/bin/python3 -mevil\n", Err(())),
            ("#!/usr/bin/python3 -Im evil\n", Err(())),
            ("#!/usr/bin/python3 -Werror::evil.Warning\n", Err(())),
            ("#!/usr/bin/env -S node --require=./evil.js\n", Err(())),
            ("#!/usr/bin/env -S node --import ./evil.js\n", Err(())),
            (
                "#!/usr/bin/env -S NODE_OPTIONS=--require=./evil.js node\n",
                Err(()),
            ),
            ("#!/usr/bin/env -S PYTHONPATH=. python3\n", Err(())),
            ("#!/usr/bin/env -S PATH=.:/bin python3\n", Err(())),
            ("#!/usr/bin/env -S BASH_ENV=./evil.sh bash\n", Err(())),
            ("#!/usr/bin/env -SPYTHONPATH=. python3\n", Err(())),
            ("#!/usr/bin/env -C sub python3\n", Err(())),
            ("#!/usr/bin/env -S PYTHON\\x50ATH=. python3\n", Err(())),
            ("#!/usr/bin/make -fevil.mk\n", Err(())),
            ("#!/usr/bin/perl -I.\n", Err(())),
            ("#!/usr/bin/perl -Mevil\n", Err(())),
            ("#!/usr/bin/ruby -r./evil\n", Err(())),
            ("#!/bin/bash --rcfile evil -i\n", Err(())),
            ("#!/bin/sh -o evil\n", Err(())),
            ("  #!/usr/bin/perl -I.\n", Err(())),
            ("\u{feff}#!/usr/bin/perl -I.\n", Err(())),
        ] {
            let checked = check_interpreter(line.as_bytes(), dir, root, None);
            let found = checked.as_ref().map(Option::is_some).map_err(|_| ());
            assert_eq!(found, is_noted, "{line}: {checked:?}");
        }
        let long = format!("#!/bin/sh {}\n", "x".repeat(MAX_FIRST_LINE));
        assert!(check_interpreter(long.as_bytes(), dir, root, None).is_err());
    }
}
