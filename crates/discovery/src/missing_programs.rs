//! Finds the missing programs of a shell line.
//!
//! A guard such as `jq -e … && exit 2` silently allows everything if `jq` is not installed. The result is
//! only used for warnings, so a line that is hard to parse yields no programs.

use std::path::Path;

use tenterhook_trust::in_search_path;

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

/// Returns the programs of a line that are not in the search path, each once. `dir` is the folder where
/// the line runs.
pub(crate) fn missing_programs(line: &str, dir: &Path) -> Vec<String> {
    // Here-documents, patterns of `case` and functions are not parsed.
    let is_hard = ["<<", "case ", "()", "PATH="]
        .iter()
        .any(|part| line.contains(part));
    if is_hard {
        return Vec::new();
    }
    let is_comment = |line: &&str| line.trim_start().starts_with('#');
    let lines: Vec<&str> = line.lines().filter(|line| !is_comment(line)).collect();
    let mut missing: Vec<String> = tenterhook_shell::commands(&lines.join("\n"))
        .iter()
        .filter_map(|words| {
            let is_before =
                |word: &&String| LEADING.contains(&word.as_str()) || is_assignment(word);
            let program = words.iter().find(|word| !is_before(word))?;
            let is_named = is_name(program) && !BUILT_IN.contains(&program.as_str());
            (is_named && in_search_path(program, dir).is_none()).then(|| program.clone())
        })
        .collect();
    missing.sort();
    missing.dedup();
    missing
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
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
    fn programs_that_are_not_installed_are_found_in_shell_lines() {
        for (line, expected) in [
            ("no-such-jq -e .x && exit 2", &["no-such-jq"][..]),
            (
                "cat | no-such-jq -r .tool_input.cmd | grep -q sudo && exit 2; exit 0",
                &["no-such-jq"],
            ),
            (
                "if no-such-a; then no-such-b; fi",
                &["no-such-a", "no-such-b"],
            ),
            ("X=1 no-such-a", &["no-such-a"]),
            ("cmd=$(no-such-a); echo \"$cmd\"", &["no-such-a"]),
            ("cat > log; exit 2", &[]),
            ("# no-such-a (no-such-b only)\nno-such-c", &["no-such-c"]),
            ("echo 'no-such-a; no-such-b'", &[]),
            ("cat <<EOF\nno-such-a\nEOF", &[]),
            ("$HOME/bin/x", &[]),
        ] {
            assert_eq!(missing_programs(line, Path::new("/")), expected, "{line}");
        }
    }
}
