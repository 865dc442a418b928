//! Which marks of a line are emphasis and code. All others are characters of the text: a glob or a product must not lose its stars.

/// A part of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Character(char),
    /// A character behind a backslash that makes it one of the text.
    Escaped(char),
    /// What stands between backticks.
    Code(String),
    /// Stars or tildes in a row, and the characters beside them.
    Marks {
        mark: char,
        count: usize,
        before: Option<char>,
        after: Option<char>,
    },
}

impl Part {
    /// Says whether the part may begin emphasis: a word begins here.
    fn opens(&self) -> bool {
        let Self::Marks { before, after, .. } = self else {
            return false;
        };
        let begins = |c: char| c.is_alphanumeric() || "`\"'([".contains(c);
        !before.is_some_and(char::is_alphanumeric) && after.is_some_and(begins)
    }

    /// Says whether the part may end what `opener` began.
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

/// Makes every mark a character of the text that is no emphasis and no code.
pub(super) fn settle(line: &str) -> String {
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
    let settled = parts.iter().zip(is_emphasis);
    settled
        .map(|(part, is_emphasis)| written(part, is_emphasis))
        .collect()
}

fn written(part: &Part, is_emphasis: bool) -> String {
    match part {
        Part::Character(character) => character.to_string(),
        Part::Escaped(character) => format!("\\{character}"),
        Part::Code(code) => format!("`{code}`"),
        Part::Marks { mark, count, .. } if is_emphasis => mark.to_string().repeat(*count),
        Part::Marks { mark, count, .. } => format!("\\{mark}").repeat(*count),
    }
}

fn parts(line: &[char]) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut at = 0;
    while let Some(&character) = line.get(at) {
        let next = line.get(at + 1).copied();
        let row = run(line, at);
        match (character, next) {
            ('\\', Some(next @ ('*' | '~' | '`' | '|' | '\\'))) => {
                parts.push(Part::Escaped(next));
                at += 2;
            }
            ('`', _) => {
                if let Some((code, end)) = code(line, at, row) {
                    parts.push(Part::Code(code));
                    at = end;
                } else {
                    parts.extend(vec![Part::Escaped('`'); row]);
                    at += row;
                }
            }
            ('*' | '~', _) => {
                parts.push(Part::Marks {
                    mark: character,
                    count: row,
                    before: at.checked_sub(1).and_then(|at| line.get(at).copied()),
                    after: line.get(at + row).copied(),
                });
                at += row;
            }
            _ => {
                parts.push(Part::Character(character));
                at += 1;
            }
        }
    }
    parts
}

/// Returns how often the character at a place stands there in a row.
fn run(line: &[char], at: usize) -> usize {
    let rest = line.get(at..).unwrap_or_default();
    let same = rest.iter().take_while(|c| Some(*c) == rest.first());
    same.count()
}

/// Returns the code behind `marks` backticks, and where the line goes on behind it. Code with backticks of its own is none: it could
/// not be written with one around it.
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
            assert_eq!(settle(line), expected, "{line}");
        }
    }
}
