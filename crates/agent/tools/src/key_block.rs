//! Recognises private keys of which a tool shows only some lines.
//!
//! A redactor recognises a key that spans several lines by its first or its last line. So when a tool shows only lines
//! between them, it shows the first line too. Otherwise these lines would look harmless.

/// The words that the first and the last line of a key have in common.
const KIND: &str = "PRIVATE KEY";
const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";

/// How many bytes of a line are checked.
pub(crate) const MAX_LINE_BYTES: usize = 1024;

/// Tracks lines of text, to tell whether a key has begun and not ended.
#[derive(Debug, Default)]
pub(crate) struct KeyBlock {
    lines: usize,
    open: Option<Open>,
}

/// A key whose first line has been seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Open {
    /// The number of its first line, from 1.
    pub(crate) line: usize,
    /// The marker in its first line.
    pub(crate) mark: String,
}

impl KeyBlock {
    /// Processes the next line.
    pub(crate) fn see(&mut self, line: &str) {
        self.lines += 1;
        let line = line
            .get(..line.floor_char_boundary(MAX_LINE_BYTES))
            .unwrap_or(line);
        let begin = line.rfind(BEGIN);
        let is_mark = |from: usize| line.get(from..).is_some_and(|mark| mark.contains(KIND));
        if let Some(begin) = begin.filter(|begin| is_mark(*begin))
            && line.rfind(END).is_none_or(|end| end < begin)
        {
            let mark = line.get(begin..).unwrap_or_default();
            let end = mark.find(KIND).unwrap_or_default();
            let tail = mark.get(end..).and_then(|rest| rest.find("-----"));
            let end = tail.map_or(mark.len(), |tail| end + tail + "-----".len());
            self.open = Some(Open {
                line: self.lines,
                mark: mark.get(..end).unwrap_or(mark).to_owned(),
            });
        } else if !is_in_key(line) {
            self.open = None;
        }
    }

    /// Returns the key that has begun, if the last line seen can be part of it.
    pub(crate) fn open(&self) -> Option<&Open> {
        self.open.as_ref()
    }
}

/// Reports whether a line can be inside a key: a part of the key, a header, or an empty line.
fn is_in_key(line: &str) -> bool {
    let line = line.trim_matches(|c: char| c.is_whitespace() || "\"',+>#*/|".contains(c));
    let is_of_key = |c: char| c.is_ascii_alphanumeric() || "+/=\\".contains(c);
    let is_header = || {
        let name = line.split_once(": ").map(|(name, _)| name);
        name.is_some_and(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'))
    };
    line.chars().all(is_of_key) || is_header()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open_after(lines: &[&str]) -> Option<(usize, String)> {
        let mut block = KeyBlock::default();
        for line in lines {
            block.see(line);
        }
        block.open().map(|open| (open.line, open.mark.clone()))
    }

    #[test]
    fn a_key_is_open_from_its_first_line_to_its_last() {
        let (begin, end) = (
            "-----BEGIN RSA PRIVATE KEY-----",
            "-----END RSA PRIVATE KEY-----",
        );
        let open = |line| Some((line, begin.to_owned()));
        assert_eq!(open_after(&["a", begin]), open(2));
        assert_eq!(
            open_after(&[begin, "Proc-Type: 4,ENCRYPTED", "", "MIIE+/=="]),
            open(1)
        );
        assert_eq!(
            open_after(&[
                "k = \"-----BEGIN RSA PRIVATE KEY-----\\n\" +",
                "  \"MIIE\\n\" +"
            ]),
            open(1)
        );
        assert_eq!(open_after(&[begin, "MIIE", end]), None);
        assert_eq!(open_after(&[&format!("{begin}\\nMIIE\\n{end}")]), None);
        assert_eq!(open_after(&["-----BEGIN CERTIFICATE-----", "MIIE"]), None);
    }

    #[test]
    fn text_that_only_names_the_first_line_opens_no_key_for_the_lines_behind() {
        let begin = "assert(text.contains(\"-----BEGIN PRIVATE KEY-----\"));";
        assert_eq!(open_after(&[begin, "let other = text.len();"]), None);
    }
}
