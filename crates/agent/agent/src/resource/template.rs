//! Prompt templates: prompts that users would otherwise type again and again.

use std::path::PathBuf;

use super::place::ResourceSource;

/// A prompt that the user calls by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PromptTemplate {
    /// The name. A line `/name` expands to the template.
    pub name: String,
    /// What it is for: the description in the file's front matter, else its first line.
    pub description: String,
    /// The expected arguments, as the file describes them.
    pub argument_hint: Option<String>,
    /// The file.
    pub path: PathBuf,
    /// Who provides it.
    pub source: ResourceSource,
    pub(super) body: String,
}

impl PromptTemplate {
    /// Returns the prompt for a call with these arguments. If the template has no placeholders, the arguments are
    /// appended.
    pub(super) fn fill(&self, arguments: &str) -> String {
        let words = words(arguments);
        match substitute(&self.body, &words) {
            Some(filled) => filled,
            None if arguments.is_empty() => self.body.clone(),
            None => format!("{}\n\n{arguments}", self.body),
        }
    }
}

/// A part of a template that is replaced with words of the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Placeholder {
    /// The first word, from 1.
    from: usize,
    most: usize,
}

impl Placeholder {
    const ALL: Self = Self {
        from: 1,
        most: usize::MAX,
    };

    /// Reads a placeholder from the text after a dollar sign. Returns it with the rest.
    fn read(text: &str) -> Option<(Self, &str)> {
        for name in ["ARGUMENTS", "@"] {
            if let Some(rest) = text.strip_prefix(name) {
                return Some((Self::ALL, rest));
            }
        }
        if let Some(slice) = text.strip_prefix("{@:") {
            let (slice, rest) = slice.split_once('}')?;
            let (from, most) = match slice.split_once(':') {
                Some((from, most)) => (from, number(most)?),
                None => (slice, usize::MAX),
            };
            let from = number(from)?.max(1);
            return Some((Self { from, most }, rest));
        }
        let end = text.find(|c: char| !c.is_ascii_digit());
        let (digits, rest) = text.split_at(end.unwrap_or(text.len()));
        let from = number(digits)?;
        Some((Self { from, most: 1 }, rest))
    }

    fn fill(self, words: &[String]) -> String {
        let Some(skipped) = self.from.checked_sub(1) else {
            return String::new();
        };
        let chosen = words.iter().skip(skipped).take(self.most);
        let chosen: Vec<&str> = chosen.map(String::as_str).collect();
        chosen.join(" ")
    }
}

fn number(digits: &str) -> Option<usize> {
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(usize::MAX))
}

/// Fills words into the placeholders. A word that looks like a placeholder is not filled again. Returns `None` if
/// there are no placeholders.
fn substitute(body: &str, words: &[String]) -> Option<String> {
    let mut filled = String::with_capacity(body.len());
    let mut has_places = false;
    let mut rest = body;
    while let Some((before, behind)) = rest.split_once('$') {
        filled.push_str(before);
        rest = behind;
        if let Some((placeholder, behind)) = Placeholder::read(behind) {
            has_places = true;
            filled.push_str(&placeholder.fill(words));
            rest = behind;
        } else {
            filled.push('$');
        }
    }
    filled.push_str(rest);
    has_places.then_some(filled)
}

/// Splits arguments into words. Quotes keep spaces in a word.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in text.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            None if c == '"' || c == '\'' => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_at_blanks_and_quotes_keep_them_together() {
        for (text, expected) in [
            ("", &[][..]),
            ("  ", &[]),
            ("a  b\nc", &["a", "b", "c"]),
            (r#"one "two three" four"#, &["one", "two three", "four"]),
            ("'it is' \"it's\"", &["it is", "it's"]),
            ("a'b c'd", &["ab cd"]),
            ("'' x", &["", "x"]),
            ("'no end", &["no end"]),
        ] {
            assert_eq!(words(text), expected, "{text:?}");
        }
    }

    #[test]
    fn places_for_words_are_filled_once() {
        for (body, arguments, expected) in [
            ("fix $1 in $2", "it 'the parser'", "fix it in the parser"),
            ("fix $1 and $3.", "a b", "fix a and ."),
            ("all: $@", "a b c", "all: a b c"),
            ("all: $ARGUMENTS", "a 'b c'", "all: a b c"),
            ("$1: ${@:2}", "a b c", "a: b c"),
            ("${@:2:1}|${@:0:2}", "a b c", "b|a b"),
            ("${@:9}", "a", ""),
            ("$1", "'$2 $@'", "$2 $@"),
            ("$0$10", "a", ""),
            (
                "a $ sign, $x, ${@:x}, ${HOME} and $",
                "",
                "a $ sign, $x, ${@:x}, ${HOME} and $",
            ),
            ("no place", "", "no place"),
            ("no place", "b c", "no place\n\nb c"),
            ("$99999999999999999999999", "a", ""),
        ] {
            let template = PromptTemplate {
                name: "t".to_owned(),
                description: String::new(),
                argument_hint: None,
                path: PathBuf::new(),
                source: ResourceSource::User,
                body: body.to_owned(),
            };
            assert_eq!(template.fill(arguments), expected, "{body}");
        }
    }
}
