//! Decides whether a shell line needs its shell.
//!
//! A line of plain words means the same to `sh`, to `bash` and to `exec`. Running it without a shell is
//! several times as fast for a small program. In case of doubt, the shell is used: a line is plain only
//! if none of its characters could have another meaning.

/// Builtins and keywords of POSIX `sh`, `dash`, `bash` and the shells that other systems use as `sh`.
const SHELL_WORDS: &[&str] = &[
    ".",
    ":",
    "alias",
    "autoload",
    "bg",
    "bind",
    "break",
    "builtin",
    "caller",
    "case",
    "cd",
    "chdir",
    "command",
    "compgen",
    "complete",
    "compopt",
    "continue",
    "coproc",
    "declare",
    "dirs",
    "disown",
    "do",
    "done",
    "echo",
    "elif",
    "else",
    "emulate",
    "enable",
    "end",
    "esac",
    "eval",
    "exec",
    "exit",
    "export",
    "false",
    "fc",
    "fg",
    "fi",
    "float",
    "for",
    "foreach",
    "function",
    "getopts",
    "hash",
    "help",
    "history",
    "if",
    "in",
    "integer",
    "jobs",
    "kill",
    "let",
    "local",
    "logout",
    "mapfile",
    "nameref",
    "newgrp",
    "nocorrect",
    "noglob",
    "popd",
    "print",
    "printf",
    "pushd",
    "pwd",
    "read",
    "readarray",
    "readonly",
    "repeat",
    "return",
    "select",
    "set",
    "setopt",
    "shift",
    "shopt",
    "source",
    "suspend",
    "test",
    "then",
    "time",
    "times",
    "trap",
    "true",
    "type",
    "typeset",
    "ulimit",
    "umask",
    "unalias",
    "unset",
    "unsetopt",
    "until",
    "wait",
    "whence",
    "while",
];

/// Returns the words of a line without shell syntax, or `None` if the line needs its shell.
pub fn plain_words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = line.trim_end_matches('\n').chars();
    while let Some(character) = characters.next() {
        match character {
            ' ' | '\t' => words.extend(word.take()),
            '\'' | '"' => quoted(character, &mut characters, word.get_or_insert_default())?,
            _ if is_plain(character) => word.get_or_insert_default().push(character),
            _ => return None,
        }
    }
    words.extend(word);
    let first = words.first()?;
    let is_for_shell = first.is_empty()
        || first.contains('=')
        || first.starts_with('%')
        || SHELL_WORDS.contains(&first.as_str());
    (!is_for_shell).then_some(words)
}

/// Appends the text up to the closing quote. Returns `None` if shells could read the text in
/// different ways.
fn quoted(quote: char, characters: &mut std::str::Chars<'_>, word: &mut String) -> Option<()> {
    loop {
        match characters.next()? {
            end if end == quote => return Some(()),
            '$' | '`' | '\\' => return None,
            character if character.is_control() => return None,
            character => word.push(character),
        }
    }
}

fn is_plain(character: char) -> bool {
    character.is_ascii_alphanumeric() || "_./:=@%+,-".contains(character)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_words_avoid_the_shell() {
        let table: &[(&str, Option<&[&str]>)] = &[
            ("check", Some(&["check"])),
            ("./check.sh", Some(&["./check.sh"])),
            (
                "/usr/bin/env python3 -m hook",
                Some(&["/usr/bin/env", "python3", "-m", "hook"]),
            ),
            ("  check\t--all  \n", Some(&["check", "--all"])),
            (
                "check --level=3 a,b x@y 50% +x",
                Some(&["check", "--level=3", "a,b", "x@y", "50%", "+x"]),
            ),
            ("check 'two words'", Some(&["check", "two words"])),
            ("check \"two words\"", Some(&["check", "two words"])),
            (
                "check pre'fix'ed\"!\" ''",
                Some(&["check", "prefixed!", ""]),
            ),
            (
                "check 'a;b|c&d>e<f(g)*?[h]{i}~#'",
                Some(&["check", "a;b|c&d>e<f(g)*?[h]{i}~#"]),
            ),
            ("'/opt/my hooks/check'", Some(&["/opt/my hooks/check"])),
            ("check \"grüße\"", Some(&["check", "grüße"])),
            ("check grüße", None),
            ("", None),
            ("  \n", None),
            ("check; other", None),
            ("check\nother", None),
            ("check && other", None),
            ("check | other", None),
            ("check &", None),
            ("check > file", None),
            ("check 2>&1", None),
            ("check < file", None),
            ("check $HOME", None),
            ("check \"$HOME\"", None),
            ("check '$HOME'", None),
            ("check `date`", None),
            ("check \"`date`\"", None),
            ("check a\\ b", None),
            ("check \"a\\\"b\"", None),
            ("check *.rs", None),
            ("check a?c", None),
            ("check [ab]", None),
            ("check {a,b}", None),
            ("check ~/x", None),
            ("check # comment", None),
            ("! check", None),
            ("(check)", None),
            ("[ -f x ]", None),
            ("LEVEL=3 check", None),
            ("\"A=b\" check", None),
            ("'' check", None),
            ("%1", None),
            ("echo hi", None),
            ("true", None),
            ("exec check", None),
            ("cd sub", None),
            (". ./env", None),
            ("if check", None),
            ("'echo' hi", None),
            ("check 'open", None),
            ("check \"open", None),
            ("check 'a\nb'", None),
            ("check \0", None),
        ];
        for (line, expected) in table {
            let words = plain_words(line);
            let words: Option<Vec<&str>> = words
                .as_ref()
                .map(|words| words.iter().map(String::as_str).collect());
            assert_eq!(words.as_deref(), *expected, "{line:?}");
        }
    }
}
