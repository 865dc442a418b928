//! Finds the parts of text that may be paths.

use std::ffi::OsStr;
use std::path::Path;

/// Returns every part of text that may be a path.
pub(crate) fn candidates(text: &str) -> impl Iterator<Item = &str> {
    std::iter::once(text)
        .chain(tokens(text))
        .flat_map(|token| std::iter::once(token).chain(attached(token)))
}

/// Returns whether a word that does not name an existing file is probably a path.
pub(crate) fn looks_like_path(text: &str) -> bool {
    let extension = Path::new(text).extension().and_then(OsStr::to_str);
    let has_name_end = extension.is_some_and(|end| end.chars().all(|c| c.is_ascii_alphabetic()));
    !text.contains("://") && (text.contains('/') || (has_name_end && !text.starts_with('-')))
}

/// Returns what may be a path after the letter of an option, as in `-fevil.mk`, or after `@`, `+` or `%`.
pub(crate) fn attached(token: &str) -> impl Iterator<Item = &str> {
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
    let is_of_path = |c: char| c.is_alphanumeric() || "_./@%+-~".contains(c);
    text.split(move |c| !is_of_path(c))
        .filter(|token| !token.is_empty())
}

pub(crate) fn has_extension(text: &str) -> bool {
    let extension = Path::new(text).extension();
    extension.is_some_and(|extension| !extension.is_empty())
}
