//! Finds incomplete private keys: blocks whose end or beginning was cut off.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::found::Secret;

/// The rule that finds a complete block.
const RULE: &str = "private-key";

/// The first or the last line of a block. A message may quote just this line, so part of the key must be there too.
static MARK: LazyLock<Regex> = LazyLock::new(|| {
    let regex = Regex::new(r"(?i)-----(BEGIN|END)[ A-Z0-9_-]{0,100}PRIVATE KEY(?: BLOCK)?-----");
    let Ok(regex) = regex else {
        unreachable!("the expression is part of the program, and a test compiles it");
    };
    regex
});

/// The lines of a key at the end of the text. All but the last are long. In JSON, `\n` ends a line.
static KEY: LazyLock<Regex> = LazyLock::new(|| {
    let line = r"[A-Za-z0-9+/=]";
    let end = r"(?:\\[nr]|\s)";
    let Ok(regex) = Regex::new(&format!("(?:{line}{{16,}}{end}+)*{line}*{end}*$")) else {
        unreachable!("the expression is part of the program, and a test compiles it");
    };
    regex
});

/// The shortest part of a key that is worth hiding, in characters.
const MIN_KEY: usize = 16;

/// Returns whether the text may contain the first or the last line of a block.
pub(super) fn may_be_in(text: &str) -> bool {
    memchr::memmem::find(text.as_bytes(), b"-----").is_some()
}

/// Returns the incomplete blocks. `found` are the secrets that are already known.
pub(super) fn find_parts(text: &str, found: &[Secret]) -> Vec<Secret> {
    // Every text passes through here, and few contain such a line, so this cheap test comes first.
    if !may_be_in(text) {
        return Vec::new();
    }
    let whole: Vec<&Range<usize>> = found
        .iter()
        .filter(|secret| secret.rule == RULE)
        .map(|secret| &secret.range)
        .collect();
    let is_whole = |at: usize| whole.iter().any(|range| range.contains(&at));
    let mut parts = Vec::new();
    for mark in MARK.captures_iter(text) {
        let (Some(line), Some(kind)) = (mark.get(0), mark.get(1)) else {
            continue;
        };
        if is_whole(line.start()) {
            continue;
        }
        let range = if kind.as_str().eq_ignore_ascii_case("begin") {
            // The end of the key is unknown, so everything after its first line is hidden.
            line.start()..text.len()
        } else {
            start_of_key(text.get(..line.start()).unwrap_or_default())..line.end()
        };
        let key = text.get(range.clone()).unwrap_or_default();
        if key.len() - line.len() >= MIN_KEY {
            parts.push(Secret { range, rule: RULE });
        }
    }
    parts
}

/// Returns where the key begins whose lines are at the end of the text.
fn start_of_key(text: &str) -> usize {
    KEY.find(text).map_or(text.len(), |key| key.start())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Redactor;

    /// Returns the first line, the key and the last line of a block.
    fn block(kind: &str) -> [String; 3] {
        let line = "q7Zk2WvR9xT4bN6mJ1cH8dL5sP3fG0yAuEoIqB7nXr/+aBcDeFgHiJkLmNoPqRsT";
        [
            format!("-----BEGIN {kind}PRIVATE KEY-----\n"),
            format!("{line}\n").repeat(4) + "shortEnd==\n",
            format!("-----END {kind}PRIVATE KEY-----"),
        ]
    }

    #[test]
    fn a_key_without_its_end_is_redacted_to_the_end_of_the_text() {
        for kind in ["", "RSA ", "OPENSSH "] {
            let [first, key, _] = block(kind);
            for length in MIN_KEY..key.len() {
                let text = format!("the key:\n{first}{}", key.get(..length).unwrap());
                let redacted = Redactor::shared().redact(&text);
                assert_eq!(redacted, "the key:\n[REDACTED:private-key]", "{length}");
            }
        }
    }

    #[test]
    fn a_key_without_its_beginning_is_redacted_up_to_its_end() {
        for kind in ["", "RSA ", "OPENSSH "] {
            let [_, key, last] = block(kind);
            for start in 0..key.len() - 30 {
                let rest = key.get(start..).unwrap();
                let text = format!("[... 77 bytes omitted ...]\n{rest}{last}\nthe end");
                let redacted = Redactor::shared().redact(&text);
                assert!(redacted.ends_with("[REDACTED:private-key]\nthe end"));
                let left = redacted.len()
                    - "[... 77 bytes omitted ...]\n[REDACTED:private-key]\nthe end".len();
                assert!(left <= MIN_KEY + 1, "{start}: {redacted}");
            }
        }
    }

    #[test]
    fn a_part_of_a_key_in_json_is_found_too() {
        let [first, key, last] = block("");
        for text in [format!("{first}{key}"), format!("{key}{last}")] {
            let text = text.replace('\n', "\\n");
            assert_eq!(Redactor::shared().redact(&text), "[REDACTED:private-key]");
        }
    }

    #[test]
    fn lines_without_a_key_are_left_alone() {
        for text in [
            "A key begins with -----BEGIN PRIVATE KEY-----",
            "-----BEGIN PRIVATE KEY-----",
            "the last line is -----END PRIVATE KEY-----",
            "-----END RSA PRIVATE KEY-----\n",
            "-----BEGIN CERTIFICATE-----\nq7Zk2WvR9xT4bN6mJ1cH8dL5sP3fG0yAuEoIqB7nXr\n",
        ] {
            assert_eq!(Redactor::shared().redact(text), text);
        }
    }
}
