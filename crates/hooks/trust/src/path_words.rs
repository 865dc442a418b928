//! Finds the parts of text that may be paths.

use std::path::Path;

use crate::source_files::is_source;

/// Returns every part of text that may be a path.
pub(crate) fn candidates(text: &str) -> impl Iterator<Item = &str> {
    std::iter::once(text)
        .chain(tokens(text).filter(move |token| *token != text))
        .flat_map(|token| std::iter::once(token).chain(attached(token)))
}

/// Returns whether a word names a file rather than being plain text: it has a `/`, or it ends like a script.
pub(crate) fn names_file(text: &str) -> bool {
    text.contains('/') || is_source(Path::new(text))
}

/// Returns whether a word that names no existing file is written like the path of one.
pub(crate) fn is_path_like(text: &str) -> bool {
    let has_name = text.chars().any(char::is_alphanumeric);
    has_name && names_file(text) && !text.starts_with(['-', '+']) && text.chars().all(is_of_path)
}

/// Returns what may be a path after the letter of an option, as in `-fevil.mk`, or after `@`, `+` or `%`.
fn attached(token: &str) -> impl Iterator<Item = &str> {
    let behind_letter = token.strip_prefix('-').and_then(|rest| {
        let mut letters = rest.chars();
        letters.next().map(|_| letters.as_str())
    });
    let behind_sign = token.strip_prefix(['@', '+', '%']);
    behind_letter
        .into_iter()
        .chain(behind_sign)
        .filter(|rest| !rest.is_empty())
}

/// Splits text into the parts that may be paths.
pub(crate) fn tokens(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c| !is_of_path(c))
        .filter(|token| !token.is_empty())
}

fn is_of_path(character: char) -> bool {
    character.is_alphanumeric() || "_./@%+-~".contains(character)
}
