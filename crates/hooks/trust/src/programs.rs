//! What Tenterhook knows about programs: which run a script, which do nothing with the files that they do not name,
//! and which variables make them load something.

use std::ffi::OsStr;
use std::path::Path;

/// A program that runs the script that follows its options.
#[derive(Debug)]
pub(crate) struct Interpreter {
    names: &'static [&'static str],
    /// Letters of options that load nothing. They may be combined, as in `-eu`.
    letters: &'static str,
    /// Other options that load nothing.
    options: &'static [&'static str],
}

/// The names that may follow `-o` of a shell.
const SHELL_OPTIONS: [&str; 3] = ["errexit", "nounset", "pipefail"];

/// All interpreters, with the options that load nothing. Any other option may load code.
const INTERPRETERS: &[Interpreter] = &[
    Interpreter {
        names: &["sh", "bash", "dash", "ksh", "zsh", ".", "source"],
        letters: "Cefnuvx",
        options: &["--norc", "--noprofile", "--posix"],
    },
    Interpreter {
        names: &["python"],
        letters: "BEIOPRSbdqsuvx",
        options: &[],
    },
    Interpreter {
        names: &["node"],
        letters: "",
        options: &[
            "--enable-source-maps",
            "--experimental-strip-types",
            "--no-deprecation",
            "--no-warnings",
        ],
    },
    Interpreter {
        names: &["ruby"],
        letters: "w",
        options: &["--disable-gems", "--disable=gems"],
    },
    Interpreter {
        names: &["perl"],
        letters: "TWXtw",
        options: &[],
    },
];

impl Interpreter {
    /// Returns the interpreter with this name, such as `python3.12`.
    pub(crate) fn named(program: &str) -> Option<&'static Self> {
        let name = program_name(program);
        INTERPRETERS.iter().find(|row| row.names.contains(&name))
    }

    /// Returns whether a word after `before` is an option that loads nothing, as `-euo` and `pipefail` of a shell.
    pub(crate) fn loads_nothing_by(&self, before: &str, option: &str) -> bool {
        let is_shell = self.names.contains(&"sh");
        let letters = option.strip_prefix('-').filter(|it| !it.is_empty());
        let letters = letters.map(|it| it.strip_suffix('o').filter(|_| is_shell).unwrap_or(it));
        let is_named = is_shell && before.starts_with('-') && before.ends_with('o');
        self.options.contains(&option)
            || (is_named && SHELL_OPTIONS.contains(&option))
            || letters.is_some_and(|it| it.chars().all(|letter| self.letters.contains(letter)))
    }
}

/// What a program does with the words after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProgramKind {
    /// It reads or runs the files that they name, and maybe others.
    Runs,
    /// It reads the files that they name, and no others.
    Reads,
    /// It searches for them as text, or only looks whether a file exists.
    Looks,
    /// It writes the files that they name, or takes them as text.
    Ignores,
}

/// The programs and builtins of a shell that read nothing except what their words name.
const PROGRAMS: [(ProgramKind, &str); 3] = [
    (
        ProgramKind::Reads,
        "base64 cat cmp cut date diff head jq sha256sum sort tail tr uniq wc",
    ),
    (ProgramKind::Looks, "[ [[ egrep fgrep grep test"),
    (
        ProgramKind::Ignores,
        ": break case continue done echo esac exit export false fi for in local mkdir printf read return rm rmdir set \
         shift sleep tee touch true truncate unset wait",
    ),
];

/// Words of a shell after which a command follows.
const BEFORE_COMMANDS: &str = "! command do elif else exec if nohup then time until while { }";

/// Returns whether a command follows a word.
pub(crate) fn is_before_command(word: &str) -> bool {
    BEFORE_COMMANDS.split(' ').any(|known| known == word)
}

/// Returns what a program does with the words after it. `None` if that is not known.
pub(crate) fn kind_of(program: &str) -> Option<ProgramKind> {
    let name = program_name(program);
    let has = |names: &str| names.split(' ').any(|known| known == name);
    let found = PROGRAMS.iter().find(|(_, names)| has(names));
    found.map(|(kind, _)| *kind)
}

/// Returns the name of a program without folder and version, for example `python` for
/// `/usr/bin/python3.12`.
pub(crate) fn program_name(program: &str) -> &str {
    let name = Path::new(program).file_name().and_then(OsStr::to_str);
    let name = name.unwrap_or(program);
    let family = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    if family.is_empty() || name == "base64" {
        name
    } else {
        family
    }
}

/// Variables that make programs load or run something, or say where they search for it. A name that ends in
/// `*` stands for every name with that beginning.
const LOADS: &str = "BASH_* BUNDLE* BUN_* CARGO* CDPATH CLASSPATH CURL_HOME DENO_* DYLD_* EDITOR ENV FPATH GCONV_PATH \
    GEM_* GIT_* GLIBC_TUNABLES HOME IFS JAVA* JDK_* LD_* LESS* LOCPATH LUA* MAKE* NODE_* NPM_* OPENSSL_* PAGER PERL* \
    PHP* PROMPT_COMMAND PS4 PYTHON* RUBY* RUST* SHELL SHELLOPTS SSH_* TERMINFO* VIRTUAL_ENV VISUAL WGETRC XDG_* \
    ZDOTDIR _JAVA* npm_*";

/// Variables with such a beginning that load nothing.
const HARMLESS: &str = "GIT_AUTHOR_* GIT_COMMITTER_* GIT_OPTIONAL_LOCKS GIT_TERMINAL_PROMPT NODE_ENV NODE_NO_WARNINGS \
    PYTHONDONTWRITEBYTECODE PYTHONHASHSEED PYTHONIOENCODING PYTHONUNBUFFERED PYTHONUTF8";

/// Returns whether a variable makes programs load or run something that is not a list of folders.
pub(crate) fn makes_load(name: &str) -> bool {
    let is_among = |names: &str| {
        names
            .split_whitespace()
            .any(|known| match known.strip_suffix('*') {
                Some(beginning) => name.starts_with(beginning),
                None => name == known,
            })
    };
    is_among(LOADS) && !is_among(HARMLESS) && !is_search_path(name)
}

/// Returns whether a variable has folders in which programs search, such as `PYTHONPATH`.
pub(crate) fn is_search_path(name: &str) -> bool {
    name.ends_with("PATH") || name.ends_with("LIB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_make_programs_load_something_are_known() {
        for (name, loads) in [
            ("NODE_OPTIONS", true),
            ("PERL5OPT", true),
            ("LD_PRELOAD", true),
            ("HOME", true),
            ("GIT_SSH_COMMAND", true),
            ("BASH_ENV", true),
            ("PYTHONPATH", false),
            ("GIT_AUTHOR_NAME", false),
            ("PYTHONUNBUFFERED", false),
            ("LEVEL", false),
        ] {
            assert_eq!(makes_load(name), loads, "{name}");
        }
    }
}
