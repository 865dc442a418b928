//! Decides whether a command is a Python script that a fork server can run.

use std::ffi::OsStr;
use std::path::Path;

use crate::{Program, Shell};
use tenterhook_shell::plain_words;

/// Flags of the interpreter that work the same with a fork server as in a fresh process. Letters
/// may be joined.
const LETTERS: &str = "BEIOPRSbdqsu";

/// The allowed values of `-X`. Values that make the interpreter report on its own start are not allowed.
const OPTIONS: &[&str] = &[
    "dev",
    "faulthandler",
    "frozen_modules",
    "int_max_str_digits",
    "no_debug_ranges",
    "pycache_prefix",
    "utf8",
    "warn_default_encoding",
];

/// A command that runs a Python script. Knows where the interpreter's flags end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PythonScript {
    #[cfg_attr(not(unix), expect(dead_code, reason = "only a fork server reads it"))]
    /// How many words there are between the interpreter and the script.
    pub(crate) flags: usize,
}

/// Why a command cannot be run by a fork server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotForkable {
    /// This system has no `fork`.
    #[error("a fork server needs a Unix system")]
    Platform,
    /// The line uses shell syntax.
    #[error("the command needs a shell, which a fork server does not start")]
    ShellSyntax,
    /// The program is not called `python`, `python3` or `python3.<n>`.
    #[error("`{program}` is not a Python interpreter")]
    NotPython {
        /// The program.
        program: String,
    },
    /// No file follows the flags.
    #[error("the command names no script")]
    NoScript,
    /// A flag is unknown, or runs something other than a script.
    #[error("a fork server cannot run Python with `{flag}`")]
    Flag {
        /// The flag.
        flag: String,
    },
}

impl PythonScript {
    /// Recognises a command of the form `python3 FLAGS SCRIPT ARGUMENTS`, given as words or as a
    /// line without shell syntax.
    ///
    /// Allowed flags are `-B -E -I -O -P -R -S -b -d -q -s -u`, `-W WARNING`, and `-X` with `dev`,
    /// `faulthandler`, `frozen_modules`, `int_max_str_digits`, `no_debug_ranges`, `pycache_prefix`,
    /// `utf8` or `warn_default_encoding`. This does not check that the interpreter and the script
    /// exist.
    ///
    /// # Errors
    ///
    /// Fails if a fork server cannot run the command.
    pub fn of(program: &Program) -> Result<Self, NotForkable> {
        if cfg!(not(unix)) {
            return Err(NotForkable::Platform);
        }
        match program {
            Program::Exec { argv } => Self::of_words(argv),
            Program::Shell {
                shell: Shell::Pwsh, ..
            } => Err(NotForkable::ShellSyntax),
            Program::Shell { line, .. } => {
                let words = plain_words(line).ok_or(NotForkable::ShellSyntax)?;
                Self::of_words(&words)
            }
        }
    }

    fn of_words<T: AsRef<OsStr>>(words: &[T]) -> Result<Self, NotForkable> {
        let mut words = words.iter().map(|word| word.as_ref().to_string_lossy());
        let program = words.next().unwrap_or_default();
        if !is_python(&program) {
            let program = program.into_owned();
            return Err(NotForkable::NotPython { program });
        }
        let mut flags = 0;
        while let Some(word) = words.next() {
            let Some(letters) = word.strip_prefix('-').filter(|_| word != "-") else {
                return if word == "-" || word.is_empty() {
                    Err(NotForkable::NoScript)
                } else {
                    Ok(Self { flags })
                };
            };
            let value_at = letters.find(['W', 'X']);
            let (alone, with_value) = letters
                .split_at_checked(value_at.unwrap_or(letters.len()))
                .unwrap_or_default();
            let mut is_known = alone.chars().all(|letter| LETTERS.contains(letter));
            flags += 1;
            if let Some(kind) = with_value.chars().next() {
                let mut value = with_value.get(1..).unwrap_or_default().to_owned();
                if value.is_empty() {
                    flags += 1;
                    value = words.next().ok_or(NotForkable::NoScript)?.into_owned();
                }
                let name = value.split('=').next().unwrap_or_default();
                is_known &= kind == 'W' || OPTIONS.contains(&name);
            }
            if !is_known {
                let flag = word.into_owned();
                return Err(NotForkable::Flag { flag });
            }
        }
        Err(NotForkable::NoScript)
    }
}

fn is_python(program: &str) -> bool {
    let name = Path::new(program).file_name().and_then(OsStr::to_str);
    name.and_then(|name| name.strip_prefix("python"))
        .is_some_and(|version| {
            version.is_empty()
                || version == "3"
                || version.strip_prefix("3.").is_some_and(|minor| {
                    !minor.is_empty() && minor.bytes().all(|byte| byte.is_ascii_digit())
                })
        })
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn flag(flag: &str) -> Result<usize, NotForkable> {
        let flag = flag.to_owned();
        Err(NotForkable::Flag { flag })
    }

    fn not_python(program: &str) -> Result<usize, NotForkable> {
        let program = program.to_owned();
        Err(NotForkable::NotPython { program })
    }

    #[test]
    fn a_fork_server_runs_python_scripts_and_nothing_else() {
        let table = [
            ("python3 hook.py", Ok(0)),
            ("python hook.py --fast -c x", Ok(0)),
            ("/usr/bin/python3.12 ./hooks/hook.py", Ok(0)),
            ("python3 'my hook.py'", Ok(0)),
            ("python3 -I hook.py", Ok(1)),
            ("python3 -IBOO -u hook.py", Ok(2)),
            ("python3 -W error -Wignore hook.py", Ok(3)),
            ("python3 -BX utf8=1 -Xdev hook.py", Ok(3)),
            ("python3 -X importtime hook.py", flag("-X")),
            ("python3 -Ximporttime hook.py", flag("-Ximporttime")),
            ("python3 -c pass", flag("-c")),
            ("python3 -m hook", flag("-m")),
            ("python3 -Bm hook", flag("-Bm")),
            ("python3 -i hook.py", flag("-i")),
            ("python3 -v hook.py", flag("-v")),
            ("python3 --version", flag("--version")),
            ("python3 -- hook.py", flag("--")),
            ("python3", Err(NotForkable::NoScript)),
            ("python3 -", Err(NotForkable::NoScript)),
            ("python3 ''", Err(NotForkable::NoScript)),
            ("python3 -B -W", Err(NotForkable::NoScript)),
            ("python2 hook.py", not_python("python2")),
            ("python3.x hook.py", not_python("python3.x")),
            ("./hook.py", not_python("./hook.py")),
            ("/usr/bin/env python3 hook.py", not_python("/usr/bin/env")),
            ("python3 hook.py | tee log", Err(NotForkable::ShellSyntax)),
            ("python3 $HOME/hook.py", Err(NotForkable::ShellSyntax)),
            ("LEVEL=1 python3 hook.py", Err(NotForkable::ShellSyntax)),
            ("", Err(NotForkable::ShellSyntax)),
        ];
        for (line, expected) in table {
            let found = PythonScript::of(&Program::shell(line)).map(|script| script.flags);
            assert_eq!(found, expected, "{line}");
        }
    }

    #[test]
    fn words_are_taken_as_they_are() {
        let program = Program::exec(["python3", "$HOME/hook.py", "a|b"]);
        assert_eq!(PythonScript::of(&program), Ok(PythonScript { flags: 0 }));
        assert_eq!(
            PythonScript::of(&Program::exec::<[&str; 0]>([])).map(|script| script.flags),
            not_python("")
        );
    }

    #[test]
    fn a_line_for_another_shell_is_refused() {
        let line = "python3 hook.py".to_owned();
        let shell = Shell::Pwsh;
        let found = PythonScript::of(&Program::Shell { shell, line });
        assert_eq!(found, Err(NotForkable::ShellSyntax));
    }
}
