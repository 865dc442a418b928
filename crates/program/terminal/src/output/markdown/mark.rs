//! Decides which marks of a line are emphasis and code. All others are ordinary characters, because a glob or a
//! multiplication must not lose its stars.

/// A part of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
enum InlinePart {
    Character(char),
    /// A character after a backslash, which makes it an ordinary character.
    Escaped(char),
    /// Code between backticks.
    Code(String),
    /// Stars or tildes in a row, and the characters before and after them.
    Marks {
        mark: char,
        count: usize,
        before: Option<char>,
        after: Option<char>,
    },
}

impl InlinePart {
    /// Returns whether the part may begin emphasis, because a word begins after it.
    fn opens(&self) -> bool {
        let Self::Marks { before, after, .. } = self else {
            return false;
        };
        let begins = |c: char| c.is_alphanumeric() || "`\"'([".contains(c);
        !before.is_some_and(char::is_alphanumeric) && after.is_some_and(begins)
    }

    /// Returns whether the part may end the emphasis that `opener` began.
    fn closes(&self, opener: &Self) -> bool {
        let (
            Self::Marks {
                mark,
                count,
                before,
                after,
            },
            Self::Marks {
                mark: begun,
                count: marks,
                ..
            },
        ) = (self, opener)
        else {
            return false;
        };
        let ends = before.is_some_and(|c| !c.is_whitespace());
        (mark, count) == (begun, marks) && ends && !after.is_some_and(char::is_alphanumeric)
    }

    fn may_be_emphasis(&self) -> bool {
        matches!(
            self,
            Self::Marks {
                mark: '*',
                count: 1..=3,
                ..
            } | Self::Marks {
                mark: '~',
                count: 2,
                ..
            }
        )
    }
}

/// Escapes every mark that is neither emphasis nor code.
pub(super) fn escape_plain_marks(line: &str) -> String {
    let characters: Vec<char> = line.chars().collect();
    let parts = parts(&characters);
    let mut is_emphasis = vec![false; parts.len()];
    for (place, opener) in parts.iter().enumerate() {
        let is_taken = is_emphasis.get(place).copied().unwrap_or_default();
        if is_taken || !opener.may_be_emphasis() || !opener.opens() {
            continue;
        }
        let behind = parts.iter().enumerate().skip(place + 1);
        let closer = behind.into_iter().find(|(_, part)| part.closes(opener));
        if let Some((end, _)) = closer {
            for marked in [place, end] {
                if let Some(marked) = is_emphasis.get_mut(marked) {
                    *marked = true;
                }
            }
        }
    }
    let escaped = parts.iter().zip(is_emphasis);
    escaped
        .map(|(part, is_emphasis)| written(part, is_emphasis))
        .collect()
}

fn written(part: &InlinePart, is_emphasis: bool) -> String {
    match part {
        InlinePart::Character(character) => character.to_string(),
        InlinePart::Escaped(character) => format!("\\{character}"),
        InlinePart::Code(code) => format!("`{code}`"),
        InlinePart::Marks { mark, count, .. } if is_emphasis => mark.to_string().repeat(*count),
        InlinePart::Marks { mark, count, .. } => format!("\\{mark}").repeat(*count),
    }
}

fn parts(line: &[char]) -> Vec<InlinePart> {
    let mut parts = Vec::new();
    let mut at = 0;
    while let Some(&character) = line.get(at) {
        let next = line.get(at + 1).copied();
        let row = run(line, at);
        match (character, next) {
            ('\\', Some(next @ ('*' | '~' | '`' | '|' | '\\'))) => {
                parts.push(InlinePart::Escaped(next));
                at += 2;
            }
            ('`', _) => {
                if let Some((code, end)) = code(line, at, row) {
                    parts.push(InlinePart::Code(code));
                    at = end;
                } else {
                    parts.extend(vec![InlinePart::Escaped('`'); row]);
                    at += row;
                }
            }
            ('*' | '~', _) => {
                parts.push(InlinePart::Marks {
                    mark: character,
                    count: row,
                    before: at.checked_sub(1).and_then(|at| line.get(at).copied()),
                    after: line.get(at + row).copied(),
                });
                at += row;
            }
            _ => {
                parts.push(InlinePart::Character(character));
                at += 1;
            }
        }
    }
    parts
}

/// Returns how many times the character at `at` is repeated there.
fn run(line: &[char], at: usize) -> usize {
    let rest = line.get(at..).unwrap_or_default();
    let same = rest.iter().take_while(|c| Some(*c) == rest.first());
    same.count()
}

/// Returns the code after `marks` backticks, and the position after its closing backticks. Code that contains
/// backticks is not recognised, because it could not be written with a single backtick around it.
fn code(line: &[char], at: usize, marks: usize) -> Option<(String, usize)> {
    let start = at + marks;
    let length = line.get(start..)?.iter().position(|c| *c == '`')?;
    let end = start + length;
    if length == 0 || run(line, end) != marks {
        return None;
    }
    let code: String = line.get(start..end)?.iter().collect();
    Some((code, end + marks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_emphasis_and_code_keep_their_marks() {
        for (line, expected) in [
            ("*a* **b c** ***d*** ~~e~~", "*a* **b c** ***d*** ~~e~~"),
            ("**`a`** and **\"b\"**.", "**`a`** and **\"b\"**."),
            ("2 * 3 * 4", "2 \\* 3 \\* 4"),
            ("2 ** 3 ** 4", "2 \\*\\* 3 \\*\\* 4"),
            ("**/*.rs", "\\*\\*/\\*.rs"),
            ("a*b*c", "a\\*b\\*c"),
            ("*open", "\\*open"),
            ("~/a ~b~", "\\~/a \\~b\\~"),
            ("`*` and ``*``", "`*` and `*`"),
            ("`a", "\\`a"),
            ("``a`b``", "\\`\\`a\\`b\\`\\`"),
            ("\\*kept\\*", "\\*kept\\*"),
            ("C:\\dir", "C:\\dir"),
            ("*a `*` b*", "*a `*` b*"),
        ] {
            assert_eq!(escape_plain_marks(line), expected, "{line}");
        }
    }
}
