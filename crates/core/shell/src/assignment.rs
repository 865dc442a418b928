//! Recognises the variables that a command line sets before a command.

/// Returns whether a word sets a variable, as `NAME=value`, `NAME+=value` and `NAME[0]=value` do.
pub(crate) fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        let name = name.strip_suffix('+').unwrap_or(name);
        // `x[0]=1` sets an element of an array.
        let name = name
            .strip_suffix(']')
            .and_then(|name| name.split_once('['))
            .map_or(name, |(name, _)| name);
        let mut characters = name.chars();
        characters
            .next()
            .is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
            && characters.all(|other| other.is_ascii_alphanumeric() || other == '_')
    })
}
