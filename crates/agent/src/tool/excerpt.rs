//! Texts cut to what a model should read: the beginning and the end.

use tenterhook_process::cut;

/// The longest text that a tool gives to the model, in bytes.
pub(super) const LONGEST: usize = 48 * 1024;

/// The part of it that shows the beginning; the rest shows the end, where errors stand.
const HEAD: usize = 32 * 1024;

/// Cuts a text that is too long, between words, and says how much is missing.
pub(crate) fn excerpt(text: String) -> String {
    if text.len() <= LONGEST {
        return text;
    }
    cut::omit_middle(&text, HEAD, LONGEST - HEAD).into_owned()
}

/// Cuts a text to its first words, at most `longest` bytes.
pub(crate) fn shortened(text: &str, longest: usize) -> String {
    let head = cut::head(text, longest);
    if head.len() == text.len() {
        text.to_owned()
    } else {
        format!("{}…", head.trim_end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_text_stays() {
        assert_eq!(excerpt("é".repeat(10)), "é".repeat(10));
    }

    #[test]
    fn a_shortened_text_says_that_it_is() {
        assert_eq!(shortened("éa b", 5), "éa b");
        assert_eq!(shortened("éa bc", 5), "éa…");
    }

    #[test]
    fn a_long_text_keeps_its_ends_and_names_the_gap() {
        let text = format!("begin{}end", "é".repeat(40_000));
        let cut = excerpt(text.clone());
        assert!(cut.starts_with("begin") && cut.ends_with("end"));
        assert!(cut.len() < LONGEST + 100);
        let gap: usize = cut
            .split("[... ")
            .nth(1)
            .unwrap()
            .split(' ')
            .next()
            .unwrap()
            .parse()
            .unwrap();
        let marker = format!("\n[... {gap} bytes omitted ...]\n").len();
        assert_eq!(cut.len() - marker + gap, text.len());
    }
}
