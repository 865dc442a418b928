//! Expands braces: `r{m,}` makes the words `rm` and `r`.

/// How many words the braces of one word may make.
const MAX_WORDS: usize = 64;

/// How many braces and commas of one word are read.
const MAX_MARKS: usize = 256;

/// The words that the braces of a word make.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Expansion {
    /// The word has no braces to expand.
    Unchanged,
    Words(Vec<String>),
    TooMany,
}

/// A word, with the positions of the braces and commas in it that are not quoted.
#[derive(Default)]
pub(crate) struct BracedWord {
    pub(crate) text: String,
    marks: Vec<usize>,
}

impl BracedWord {
    /// Appends a brace or comma that a shell may expand.
    pub(crate) fn push_mark(&mut self, mark: char) {
        self.marks.push(self.text.len());
        self.text.push(mark);
    }

    pub(crate) fn expanded(&self) -> Expansion {
        if self.marks.len() < 3 {
            return Expansion::Unchanged;
        }
        if self.marks.len() > MAX_MARKS {
            return Expansion::TooMany;
        }
        let mut open = vec![(self.text.clone(), self.marks.clone())];
        let mut words = Vec::new();
        while let Some((text, marks)) = open.pop() {
            if words.len() + open.len() > MAX_WORDS {
                return Expansion::TooMany;
            }
            match first_group(&text, &marks) {
                // The last alternative is pushed first, so that the words keep their order.
                Some(group) => open.extend(group.alternatives(&text, &marks).rev()),
                None => words.push(text),
            }
        }
        if words.len() == 1 {
            return Expansion::Unchanged;
        }
        Expansion::Words(words)
    }
}

/// Braces with commas between them.
struct Group {
    /// The positions of the opening brace, the commas and the closing brace.
    bounds: Vec<usize>,
}

/// Finds the first braces that contain a comma, from the left.
fn first_group(text: &str, marks: &[usize]) -> Option<Group> {
    let is = |at: &usize, mark: &str| text.get(*at..).is_some_and(|rest| rest.starts_with(mark));
    let starts = marks.iter().enumerate().filter(|(_, at)| is(at, "{"));
    for (first, start) in starts {
        let mut depth = 0_usize;
        let mut bounds = vec![*start];
        for at in marks.iter().skip(first + 1) {
            if is(at, "{") {
                depth += 1;
            } else if is(at, ",") && depth == 0 {
                bounds.push(*at);
            } else if is(at, "}") && depth == 0 {
                bounds.push(*at);
                break;
            } else if is(at, "}") {
                depth -= 1;
            }
        }
        let is_closed = bounds.last().is_some_and(|last| is(last, "}"));
        if is_closed && bounds.len() > 2 {
            return Some(Group { bounds });
        }
    }
    None
}

impl Group {
    /// Returns the word with each of the alternatives instead of the braces.
    fn alternatives<'a>(
        &'a self,
        text: &'a str,
        marks: &'a [usize],
    ) -> impl DoubleEndedIterator<Item = (String, Vec<usize>)> + 'a {
        let pairs = self.bounds.iter().zip(self.bounds.iter().skip(1));
        pairs.map(move |(before, after)| {
            let start = self.bounds.first().copied().unwrap_or_default();
            let end = self.bounds.last().copied().unwrap_or_default();
            let pieces = [0..start, before + 1..*after, end + 1..text.len()];
            let mut word = String::new();
            let mut kept = Vec::new();
            for piece in pieces {
                let inside = marks.iter().filter(|at| piece.contains(at));
                kept.extend(inside.map(|at| at - piece.start + word.len()));
                word.push_str(text.get(piece).unwrap_or_default());
            }
            (word, kept)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> Expansion {
        let mut word = BracedWord::default();
        for character in text.chars() {
            match character {
                '{' | ',' | '}' => word.push_mark(character),
                other => word.text.push(other),
            }
        }
        word.expanded()
    }

    #[test]
    fn braces_make_words_in_order() {
        for (text, expected) in [
            ("r{m,}", &["rm", "r"][..]),
            ("{sudo,reboot}", &["sudo", "reboot"]),
            ("s{u,}d{o,}", &["sudo", "sud", "sdo", "sd"]),
            ("a{b,{c,d}e}f", &["abf", "acef", "adef"]),
            ("{{a,b}", &["{a", "{b"]),
            ("{a}{b,c}", &["{a}b", "{a}c"]),
            ("ü{é,ß}", &["üé", "üß"]),
        ] {
            let expected = expected.iter().map(ToString::to_string).collect();
            assert_eq!(expanded(text), Expansion::Words(expected), "{text}");
        }
    }

    #[test]
    fn other_braces_stay() {
        for text in ["", "a", "{}", "{a}", "a,b,c", "{a,b", "a,b}", "}a,b{", "{,"] {
            assert_eq!(expanded(text), Expansion::Unchanged, "{text}");
        }
    }

    #[test]
    fn braces_that_make_too_many_words_are_not_expanded() {
        assert_eq!(expanded(&"{a,b}".repeat(40)), Expansion::TooMany);
        assert_eq!(expanded(&"{".repeat(5000)), Expansion::TooMany);
    }
}
