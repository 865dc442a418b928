//! Shortens text for the model to its beginning and end.

use tenterhook_protocol::excerpt;

/// The longest text that a tool gives to the model, in bytes.
pub(crate) const MAX_BYTES: usize = 48 * 1024;

/// The bytes of it that show the beginning. The rest shows the end, where errors usually are.
const HEAD: usize = 32 * 1024;

/// Cuts the middle out of text that is too long, between words, and says how much is missing.
pub fn excerpt(text: String) -> String {
    if text.len() <= MAX_BYTES {
        return text;
    }
    excerpt::omit_middle(&text, HEAD, MAX_BYTES - HEAD).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_text_stays() {
        assert_eq!(excerpt("é".repeat(10)), "é".repeat(10));
    }

    #[test]
    fn a_long_text_keeps_its_ends_and_names_the_gap() {
        let text = format!("begin{}end", "é".repeat(40_000));
        let cut = excerpt(text.clone());
        assert!(cut.starts_with("begin") && cut.ends_with("end"));
        assert!(cut.len() < MAX_BYTES + 100);
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
