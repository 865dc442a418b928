//! "Did you mean": the known word that is most like an unknown one.

/// How like two words have to be.
const THRESHOLD: f64 = 0.86;

/// Returns the candidate that is most like `found`, if any is like it at all. Case, `_` and `-` do not count.
pub(crate) fn nearest<'a>(
    found: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    // Comparing takes time in the product of both lengths.
    if found.len() > 64 {
        return None;
    }
    let found = folded(found);
    let score = |candidate: &str| {
        let candidate = folded(candidate);
        let edits = strsim::damerau_levenshtein(&found, &candidate);
        // One edit in three characters is as near as it gets without being the same word.
        let is_near = edits * 3 <= found.chars().count().max(3);
        let similarity = strsim::jaro_winkler(&found, &candidate);
        (is_near || similarity >= THRESHOLD).then_some(similarity)
    };
    candidates
        .into_iter()
        .filter_map(|candidate| Some((score(candidate)?, candidate)))
        .reduce(|best, next| if next.0 > best.0 { next } else { best })
        .map(|(_, candidate)| candidate)
}

fn folded(word: &str) -> String {
    word.chars()
        .filter(|c| !matches!(c, '_' | '-'))
        .flat_map(char::to_lowercase)
        .collect()
}

/// Returns the words in backticks, the last two joined by "or".
pub(crate) fn one_of<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let words: Vec<String> = words.into_iter().map(|word| format!("`{word}`")).collect();
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        Some((last, _)) => last.clone(),
        None => "nothing".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_found_and_a_strange_one_is_left_alone() {
        let known = ["pre_tool_use", "post_tool_use", "stop", "session_start"];
        for (found, expected) in [
            ("PreToolUse", Some("pre_tool_use")),
            ("pre_tool_usee", Some("pre_tool_use")),
            ("post_tool", Some("post_tool_use")),
            ("stpo", Some("stop")),
            ("sesion-start", Some("session_start")),
            ("weather", None),
            ("", None),
        ] {
            assert_eq!(nearest(found, known), expected, "{found}");
        }
    }
}
