//! Finds out what the variables of a hook make programs load.
//!
//! For a list of folders such as `PYTHONPATH`, the approval covers the files of every folder that is in
//! the project, and the program gets the copies. An empty entry means the working folder, like `.`.
//! For variables that make programs load or run something in another way, the person who approves gets
//! a note.

use std::ops::Range;

/// Which files of a folder an approval covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// Only files directly in the folder.
    Own,
    /// All files below it.
    Whole,
}

/// The meaning of one entry of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    /// A folder from which programs or libraries are loaded.
    Folder(Depth),
    /// A file that runs.
    File,
    /// Text whose meaning only the program knows.
    Text,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Folders, separated by `:`.
    List(Depth),
    /// A file that a shell runs before its script.
    StartFile,
    /// Text that makes programs load or run something, or says where they search for it.
    Loads,
    Harmless,
}

/// Variables that programs other than the script read. A name that ends in `*` matches every name with
/// that beginning. The first matching row applies.
const KNOWN: &[(&str, Kind)] = &[
    ("PATH", Kind::List(Depth::Own)),
    ("LD_LIBRARY_PATH", Kind::List(Depth::Own)),
    ("DYLD_LIBRARY_PATH", Kind::List(Depth::Own)),
    ("NODE_PATH", Kind::List(Depth::Whole)),
    ("PERL5LIB", Kind::List(Depth::Whole)),
    ("PERLLIB", Kind::List(Depth::Whole)),
    ("PYTHONPATH", Kind::List(Depth::Whole)),
    ("RUBYLIB", Kind::List(Depth::Whole)),
    ("BASH_ENV", Kind::StartFile),
    ("ENV", Kind::StartFile),
    ("GIT_AUTHOR_*", Kind::Harmless),
    ("GIT_COMMITTER_*", Kind::Harmless),
    ("GIT_OPTIONAL_LOCKS", Kind::Harmless),
    ("GIT_TERMINAL_PROMPT", Kind::Harmless),
    ("NODE_ENV", Kind::Harmless),
    ("NODE_NO_WARNINGS", Kind::Harmless),
    ("PYTHONDONTWRITEBYTECODE", Kind::Harmless),
    ("PYTHONHASHSEED", Kind::Harmless),
    ("PYTHONIOENCODING", Kind::Harmless),
    ("PYTHONUNBUFFERED", Kind::Harmless),
    ("PYTHONUTF8", Kind::Harmless),
    ("BASH_*", Kind::Loads),
    ("BUNDLE*", Kind::Loads),
    ("BUN_*", Kind::Loads),
    ("CARGO*", Kind::Loads),
    ("CDPATH", Kind::Loads),
    ("CLASSPATH", Kind::Loads),
    ("CURL_HOME", Kind::Loads),
    ("DENO_*", Kind::Loads),
    ("DYLD_*", Kind::Loads),
    ("EDITOR", Kind::Loads),
    ("FPATH", Kind::Loads),
    ("GCONV_PATH", Kind::Loads),
    ("GEM_*", Kind::Loads),
    ("GIT_*", Kind::Loads),
    ("GLIBC_TUNABLES", Kind::Loads),
    ("HOME", Kind::Loads),
    ("IFS", Kind::Loads),
    ("JAVA*", Kind::Loads),
    ("JDK_*", Kind::Loads),
    ("_JAVA*", Kind::Loads),
    ("LD_*", Kind::Loads),
    ("LESS*", Kind::Loads),
    ("LOCPATH", Kind::Loads),
    ("LUA*", Kind::Loads),
    ("MAKE*", Kind::Loads),
    ("NODE_*", Kind::Loads),
    ("NPM_*", Kind::Loads),
    ("npm_*", Kind::Loads),
    ("OPENSSL_*", Kind::Loads),
    ("PAGER", Kind::Loads),
    ("PERL*", Kind::Loads),
    ("PHP*", Kind::Loads),
    ("PROMPT_COMMAND", Kind::Loads),
    ("PS4", Kind::Loads),
    ("PYTHON*", Kind::Loads),
    ("RUBY*", Kind::Loads),
    ("RUST*", Kind::Loads),
    ("SHELL", Kind::Loads),
    ("SHELLOPTS", Kind::Loads),
    ("SSH_*", Kind::Loads),
    ("TERMINFO*", Kind::Loads),
    ("VIRTUAL_ENV", Kind::Loads),
    ("VISUAL", Kind::Loads),
    ("WGETRC", Kind::Loads),
    ("XDG_*", Kind::Loads),
    ("ZDOTDIR", Kind::Loads),
];

/// The entries of a value, and a note if it can name more than these.
#[derive(Debug)]
pub(crate) struct Entries {
    pub(crate) entries: Vec<(Range<usize>, Entry)>,
    pub(crate) note: Option<&'static str>,
}

/// Reads the value of a variable.
pub(crate) fn entries(name: &str, value: &str) -> Entries {
    let kind = kind(name);
    let is_path = |text: &str| {
        text.chars()
            .all(|c| c.is_alphanumeric() || "_./+- ".contains(c))
    };
    let mut note = None;
    let mut entries = vec![(0..value.len(), Entry::Text)];
    match kind {
        Some(Kind::List(depth)) => {
            // Programs ignore an empty variable, except `PATH`, where it means the working folder.
            let is_unset = value.is_empty() && name != "PATH";
            entries = if is_unset {
                Vec::new()
            } else {
                list(value, depth)
            };
            note = value
                .contains('$')
                .then_some("its value depends on the environment");
        }
        Some(Kind::StartFile) if is_path(value) => entries = vec![(0..value.len(), Entry::File)],
        Some(Kind::StartFile | Kind::Loads) => {
            note = Some(
                "programs load or run what it names, and that can change without a new approval",
            );
        }
        None if value.contains('$') => note = Some("its value depends on the environment"),
        None if has_relative_entry(value) => {
            note =
                Some("it names the working folder, where files can change without a new approval");
        }
        Some(Kind::Harmless) | None => {}
    }
    Entries { entries, note }
}

fn kind(name: &str) -> Option<Kind> {
    let fits = |known: &str| match known.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == known,
    };
    KNOWN
        .iter()
        .find(|(known, _)| fits(known))
        .map(|(_, kind)| *kind)
}

/// Returns the entries of a list, except those that depend on the environment.
fn list(value: &str, depth: Depth) -> Vec<(Range<usize>, Entry)> {
    let mut entries = Vec::new();
    let mut begin = 0;
    for entry in value.split(':') {
        let range = begin..begin + entry.len();
        begin = range.end + 1;
        if !entry.contains('$') {
            entries.push((range, Entry::Folder(depth)));
        }
    }
    entries
}

/// Returns whether a value looks like a list of folders, one of which is relative or empty.
fn has_relative_entry(value: &str) -> bool {
    let is_relative = |entry: &str| {
        [".", ".."].contains(&entry) || entry.starts_with("./") || entry.starts_with("../")
    };
    let is_list = value.contains(':') && value.contains('/') && !value.contains("://");
    let mut entries = value.split(':');
    entries.any(|entry| {
        (value.contains(':') && is_relative(entry))
            || [".", ".."].contains(&entry)
            || (is_list && entry.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, value: &str) -> (Vec<String>, bool) {
        let found = entries(name, value);
        let texts = found.entries.into_iter().map(|(range, entry)| {
            let text = value.get(range).unwrap();
            format!("{entry:?} {text}")
        });
        (texts.collect(), found.note.is_some())
    }

    #[test]
    fn lists_of_folders_are_read_entry_by_entry() {
        for (name, value, expected) in [
            ("PYTHONPATH", ".", &["Folder(Whole) ."][..]),
            ("PYTHONPATH", ":/x", &["Folder(Whole) ", "Folder(Whole) /x"]),
            (
                "PERL5LIB",
                "lib::",
                &["Folder(Whole) lib", "Folder(Whole) ", "Folder(Whole) "],
            ),
            ("NODE_PATH", "", &[]),
            ("PATH", "", &["Folder(Own) "]),
            ("BASH_ENV", "evil.sh", &["File evil.sh"]),
        ] {
            assert_eq!(
                found(name, value),
                (expected.iter().map(ToString::to_string).collect(), false)
            );
        }
    }

    #[test]
    fn variables_that_make_programs_load_something_are_noted() {
        for (name, value, is_noted) in [
            ("NODE_OPTIONS", "--require=./evil.js", true),
            ("PERL5OPT", "-Mevil", true),
            ("RUBYOPT", "-revil", true),
            ("LD_PRELOAD", "./evil.so", true),
            ("HOME", ".", true),
            ("GIT_SSH_COMMAND", "./evil", true),
            ("GIT_EXTERNAL_DIFF", "./evil", true),
            ("BASH_ENV", "$(./evil)", true),
            ("ENV", "`./evil`", true),
            ("PATH", "./bin:$PATH", true),
            ("MY_PATH", ":/x", true),
            ("MY_PATH", "/y:.", true),
            ("MY_HOME", ".", true),
            ("GIT_AUTHOR_NAME", "me", false),
            ("PYTHONUNBUFFERED", "1", false),
            ("LEVEL", "strict", false),
            ("SERVICE", "https://example.com/x", false),
        ] {
            assert_eq!(found(name, value).1, is_noted, "{name}={value}");
        }
    }
}
