//! Finds the known word that is most similar to an unknown one, for "did you mean …?".

/// The smallest Jaro-Winkler similarity, from 0 to 1, at which a word is suggested.
const THRESHOLD: f64 = 0.86;

/// Returns the candidate that is most similar to `found`, or `None` if no candidate is similar enough.
/// Ignores case, `_` and `-`.
pub fn nearest<'a>(found: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // The cost of a comparison is the product of both lengths, so skip very long words.
    if found.len() > 64 {
        return None;
    }
    let found = folded(found);
    let score = |candidate: &str| {
        let candidate = folded(candidate);
        let edits = strsim::damerau_levenshtein(&found, &candidate);
        // For short words, one edit per three characters is close enough, even if the similarity is low.
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

/// Returns the words in backticks, separated by commas and "or".
pub fn one_of<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
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
