//! Describes what is wrong with a YAML file in the words of the documentation.

use std::fmt::Display;

/// Parts of the parser's messages, and what they mean to a person who writes the file.
const WORDS: [(&str, &str); 6] = [
    ("unknown field `", "unknown key `"),
    ("missing field `", "missing key `"),
    ("duplicate field `", "duplicate key `"),
    ("expected sequence start", "expected a list"),
    (
        "expected mapping start",
        "expected a mapping of keys to values",
    ),
    ("unexpected end of input", "the text ends too early"),
];

/// Returns the name of a file with the position of an error in it, and the problem.
pub(crate) fn describe(name: &str, error: &serde_saphyr::Error) -> (String, String) {
    let error = error.without_snippet();
    let message = |error: &dyn Display| {
        let text = error.to_string();
        WORDS
            .iter()
            .fold(text, |text, (from, to)| text.replace(from, to))
    };
    let Some(location) = error.location() else {
        return (name.to_owned(), message(error));
    };
    let (line, column) = (location.line(), location.column());
    let text = message(error);
    let text = text.strip_suffix(&format!(" at line {line}, column {column}"));
    let problem = text.map_or_else(|| message(error), str::to_owned);
    (format!("{name}:{line}:{column}"), problem)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_problem_names_its_position_once_and_has_no_words_of_the_parser() {
        type Lists = BTreeMap<String, Vec<u32>>;
        let error = serde_saphyr::from_str::<Lists>("a: [1]\nturns: 1\n").unwrap_err();
        let (place, problem) = describe("s.yaml", &error);
        assert_eq!((&*place, &*problem), ("s.yaml:2:8", "expected a list"));
        let error = serde_saphyr::from_str::<Lists>("1").unwrap_err();
        let (place, problem) = describe("s.yaml", &error);
        assert_eq!(place, "s.yaml:1:1");
        assert_eq!(problem, "expected a mapping of keys to values");
    }
}
