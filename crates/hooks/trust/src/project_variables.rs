//! The ways in which a command names the folder of its project.
//!
//! | in the command | the folder |
//! |---|---|
//! | `$PWD`, `${PWD}`, `$(pwd)` | where the hook runs |
//! | `$CLAUDE_PROJECT_DIR` and the variables of other hosts | the project |
//! | `$(git rev-parse --show-toplevel)` | the root of the repository |

use tenterhook_systems::HOSTS;

use crate::project::ProjectRoots;

/// Characters that stand for the folders. No command contains them.
const DIRECTORY: char = '\u{1}';
const PROJECT: char = '\u{2}';
const ROOT: char = '\u{3}';

/// Commands that print a folder, as they are substituted.
const COMMANDS: [(&str, char, char); 4] = [
    ("$(pwd", ')', DIRECTORY),
    ("`pwd", '`', DIRECTORY),
    ("$(git rev-parse --show-toplevel", ')', ROOT),
    ("`git rev-parse --show-toplevel", '`', ROOT),
];
/// Words after such a command with which it still prints the folder.
const REST: [&str; 6] = ["-P", "2>/dev/null", "||", "pwd", "echo", "."];

/// Replaces each name of a folder with as many characters that stand for the folder, so that every position
/// stays the same.
pub(crate) fn mask(line: &str) -> String {
    let mut masked = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(next) = rest.chars().next() {
        let (length, sign) = folder_name(rest).unwrap_or((0, next));
        let length = if length == 0 {
            masked.push(next);
            next.len_utf8()
        } else {
            masked.extend(std::iter::repeat_n(sign, length));
            length
        };
        rest = rest.get(length..).unwrap_or_default();
    }
    masked
}

/// Returns text with the folders in place of the characters that stand for them.
pub(crate) fn unmask(text: &str, roots: ProjectRoots<'_>) -> String {
    let mut found = String::with_capacity(text.len());
    let mut before = None;
    for next in text.chars() {
        let folder = match next {
            DIRECTORY => Some(roots.dir),
            PROJECT => Some(roots.project),
            ROOT => Some(roots.root),
            _ => None,
        };
        match folder {
            Some(_) if before == Some(next) => {}
            Some(folder) => found.push_str(&folder.to_string_lossy()),
            None => found.push(next),
        }
        before = Some(next);
    }
    found
}

/// Returns the length of the name of a folder at the start of a text, and what stands for the folder.
fn folder_name(text: &str) -> Option<(usize, char)> {
    if let Some((begin, end, sign)) = COMMANDS.iter().find(|(begin, ..)| text.starts_with(begin)) {
        let rest = text.get(begin.len()..)?;
        let rest = rest.get(..rest.find(*end)?)?;
        let is_known = rest.split_whitespace().all(|word| REST.contains(&word));
        return is_known.then_some((begin.len() + rest.len() + 1, *sign));
    }
    let rest = text.strip_prefix('$')?;
    let braced = rest.strip_prefix('{');
    let named = braced.unwrap_or(rest);
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let (name, rest) = named.split_at(named.find(|c| !is_of_name(c)).unwrap_or(named.len()));
    let mut variables = HOSTS.iter().flat_map(|host| host.project_variables);
    let sign = match name {
        "PWD" => DIRECTORY,
        _ if variables.any(|known| *known == name) => PROJECT,
        _ => return None,
    };
    let length = 1 + name.len();
    if braced.is_none() {
        return Some((length, sign));
    }
    // `${NAME:-.}` has another value only where the variable is not set.
    let end = rest.find('}')?;
    let default = rest.get(..end)?;
    let is_known = default.is_empty() || default.starts_with(":-") || default.starts_with('-');
    is_known.then_some((length + 2 + end, sign))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn every_name_of_the_folder_is_found_and_no_other_text() {
        let roots = ProjectRoots {
            dir: Path::new("/r/p/sub"),
            project: Path::new("/r/p"),
            root: Path::new("/r"),
        };
        for (line, expected) in [
            ("$PWD/a ${PWD}/a", "/r/p/sub/a /r/p/sub/a"),
            ("$(pwd)/a `pwd`/a", "/r/p/sub/a /r/p/sub/a"),
            ("\"$CLAUDE_PROJECT_DIR\"/a", "\"/r/p\"/a"),
            ("${CLAUDE_PROJECT_DIR}/a", "/r/p/a"),
            ("${CLAUDE_PROJECT_DIR:-.}/a", "/r/p/a"),
            ("$GEMINI_PROJECT_DIR/a", "/r/p/a"),
            ("$FACTORY_PROJECT_DIR/a", "/r/p/a"),
            ("$(git rev-parse --show-toplevel)/a", "/r/a"),
            (
                "$(git rev-parse --show-toplevel 2>/dev/null || pwd)/a",
                "/r/a",
            ),
            ("$CLAUDE_PROJECT_DIRS/a", "$CLAUDE_PROJECT_DIRS/a"),
            ("$(pwd; ./evil)/a", "$(pwd; ./evil)/a"),
            ("${PWD%/*}/a", "${PWD%/*}/a"),
            ("$HOME/ü", "$HOME/ü"),
            ("$(pwd", "$(pwd"),
            ("${PWD", "${PWD"),
        ] {
            let masked = mask(line);
            assert_eq!(masked.len(), line.len(), "{line}");
            assert_eq!(unmask(&masked, roots), expected, "{line}");
        }
    }
}
