//! Finds the programs that the commands of a line name, to warn of those that are not installed.

use crate::assignment::is_assignment;
use crate::commands::commands;

/// Words of the shell that may precede a command.
const LEADING: [&str; 9] = [
    "!", "{", "then", "do", "else", "elif", "if", "while", "until",
];

/// Keywords and built-in commands of shells, which are not programs.
const BUILT_IN: [&str; 63] = [
    ".", ":", "[", "[[", "]", "]]", "alias", "bg", "break", "builtin", "case", "cd", "command",
    "continue", "coproc", "declare", "done", "echo", "elif", "else", "esac", "eval", "exec",
    "exit", "export", "false", "fg", "fi", "for", "function", "getopts", "hash", "if", "in",
    "jobs", "kill", "let", "local", "mapfile", "popd", "printf", "pushd", "pwd", "read",
    "readonly", "return", "select", "set", "shift", "shopt", "source", "test", "then", "time",
    "times", "trap", "true", "type", "typeset", "ulimit", "umask", "unset", "wait",
];

/// Returns the programs that the commands of a line name, each once and without built-in commands of the shell. Only for
/// warnings: a line that is hard to read, such as one with a here-document, yields no programs.
pub fn programs(line: &str) -> Vec<String> {
    // Here-documents, patterns of `case` and functions are not parsed.
    let is_hard = ["<<", "case ", "()", "PATH="]
        .iter()
        .any(|part| line.contains(part));
    if is_hard {
        return Vec::new();
    }
    let is_comment = |line: &&str| line.trim_start().starts_with('#');
    let lines: Vec<&str> = line.lines().filter(|line| !is_comment(line)).collect();
    let commands = commands(&lines.join("\n"));
    let mut programs: Vec<String> = commands
        .iter()
        .filter_map(|words| {
            let is_before =
                |word: &&String| LEADING.contains(&word.as_str()) || is_assignment(word);
            let program = words.iter().find(|word| !is_before(word))?;
            let is_named = is_name(program) && !BUILT_IN.contains(&program.as_str());
            is_named.then(|| program.clone())
        })
        .collect();
    programs.sort();
    programs.dedup();
    programs
}

fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic())
        && word
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "._+-".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_in_shell_lines() {
        for (line, expected) in [
            ("jq -e .x && exit 2", &["jq"][..]),
            (
                "cat | jq -r .tool_input.cmd | grep -q sudo && exit 2; exit 0",
                &["cat", "grep", "jq"],
            ),
            ("if a; then b; fi", &["a", "b"]),
            ("X=1 a", &["a"]),
            ("cmd=$(a); echo \"$cmd\"", &["a"]),
            ("cat > log; exit 2", &["cat"]),
            ("# a (b only)\nc", &["c"]),
            ("echo 'a; b'", &[]),
            ("cat <<EOF\na\nEOF", &[]),
            ("$HOME/bin/x", &[]),
        ] {
            assert_eq!(programs(line), expected, "{line}");
        }
    }
}
