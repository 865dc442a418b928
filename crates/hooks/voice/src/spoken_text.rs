//! What is spoken of an answer: Markdown as words.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// What is spoken instead of a block of code.
const CODE_BLOCK: &str = "code block";

/// Returns the words of a text in Markdown. Each block is on its own line and ends like a sentence. Of addresses, the host is
/// left; tables and HTML are left out.
pub fn spoken_text(markdown: &str) -> String {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut spoken = SpokenBlocks::default();
    for event in Parser::new_ext(markdown, options) {
        spoken.add(event);
    }
    spoken.end_block();
    spoken.blocks.join("\n")
}

/// Returns whether [`spoken_text`] says everything that a text in Markdown shows, in at most `max_chars` characters. Code,
/// tables, pictures, addresses and HTML are not spoken.
pub fn is_spoken_whole(markdown: &str, max_chars: usize) -> bool {
    let options = Options::all();
    let is_spoken = |event: Event<'_>| match event {
        Event::Start(tag) => matches!(
            tag,
            Tag::Paragraph
                | Tag::Heading { .. }
                | Tag::List(_)
                | Tag::Item
                | Tag::BlockQuote(_)
                | Tag::Emphasis
                | Tag::Strong
        ),
        Event::Text(text) => !text.contains("://"),
        Event::Code(_) | Event::SoftBreak | Event::HardBreak | Event::Rule | Event::End(_) => true,
        Event::InlineMath(_)
        | Event::DisplayMath(_)
        | Event::Html(_)
        | Event::InlineHtml(_)
        | Event::FootnoteReference(_)
        | Event::TaskListMarker(_) => false,
    };
    Parser::new_ext(markdown, options).all(is_spoken)
        && spoken_text(markdown).chars().count() <= max_chars
}

#[derive(Default)]
struct SpokenBlocks {
    blocks: Vec<String>,
    current: String,
    /// How many elements that are not spoken are open.
    silent: usize,
}

impl SpokenBlocks {
    fn add(&mut self, event: Event<'_>) {
        match event {
            Event::Start(Tag::CodeBlock(_)) => {
                self.end_block();
                self.push(CODE_BLOCK);
                self.end_block();
                self.silent += 1;
            }
            Event::Start(Tag::Table(_) | Tag::HtmlBlock | Tag::MetadataBlock(_)) => {
                self.end_block();
                self.silent += 1;
            }
            Event::End(
                TagEnd::CodeBlock | TagEnd::Table | TagEnd::HtmlBlock | TagEnd::MetadataBlock(_),
            ) => self.silent = self.silent.saturating_sub(1),
            // A list inside an item begins a new sentence.
            Event::Start(Tag::Paragraph | Tag::Heading { .. } | Tag::Item | Tag::List(_))
            | Event::End(TagEnd::Paragraph | TagEnd::Heading(_) | TagEnd::Item)
            | Event::Rule => self.end_block(),
            Event::Text(text) | Event::Code(text) => self.push(&text),
            Event::SoftBreak | Event::HardBreak => self.push(" "),
            Event::Start(_)
            | Event::End(_)
            | Event::InlineMath(_)
            | Event::DisplayMath(_)
            | Event::Html(_)
            | Event::InlineHtml(_)
            | Event::FootnoteReference(_)
            | Event::TaskListMarker(_) => {}
        }
    }

    fn push(&mut self, text: &str) {
        if self.silent == 0 {
            self.current.push_str(text);
        }
    }

    fn end_block(&mut self) {
        let text = std::mem::take(&mut self.current);
        let is_separator = |c: char| c.is_whitespace() || c.is_control();
        let words = text.split(is_separator).filter(|word| !word.is_empty());
        let mut line = words.map(spoken_word).collect::<Vec<String>>().join(" ");
        // Without letters and digits there is nothing to speak.
        if !line.chars().any(char::is_alphanumeric) {
            return;
        }
        if !line.ends_with(|c: char| c.is_ascii_punctuation() || is_sentence_end(c)) {
            line.push('.');
        }
        self.blocks.push(line);
    }
}

/// Returns a word, or the host if the word has an address.
fn spoken_word(word: &str) -> String {
    let scheme = ["https://", "http://"]
        .into_iter()
        .find_map(|scheme| word.split_once(scheme));
    let Some((before, address)) = scheme else {
        return word.to_owned();
    };
    let is_closing = |c: char| {
        matches!(
            c,
            '.' | ',' | ';' | ':' | '!' | '?' | ')' | ']' | '}' | '"' | '\'' | '>'
        )
    };
    let end = address.trim_end_matches(is_closing).len();
    let (address, after) = address.split_at_checked(end).unwrap_or((address, ""));
    let authority = address.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = host.split(':').next().unwrap_or_default();
    let host = host.strip_prefix("www.").unwrap_or(host);
    format!("{before}{host}{after}")
}

fn is_sentence_end(c: char) -> bool {
    matches!(c, '.' | '!' | '?' | '…' | '。' | '！' | '？')
}

/// Returns the beginning of a text that has at most `max_chars` characters: whole sentences, or else whole words.
pub(crate) fn cut_at_sentence(text: &str, max_chars: usize) -> &str {
    let Some((limit, _)) = text.char_indices().nth(max_chars) else {
        return text;
    };
    let kept = text.get(..limit).unwrap_or(text);
    let mut sentence = None;
    let mut word = None;
    let mut previous = ' ';
    // The character after the limit decides whether the limit is the end of a sentence or a word.
    for (at, c) in text.char_indices().take(max_chars.saturating_add(1)) {
        if c.is_whitespace() {
            word = Some(at);
            if is_sentence_end(previous) || c == '\n' {
                sentence = Some(at);
            }
        } else if matches!(previous, '。' | '！' | '？') {
            sentence = Some(at);
        }
        previous = c;
    }
    let end = sentence.or(word).unwrap_or(limit);
    kept.get(..end).unwrap_or(kept).trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    // G91
    #[test]
    fn an_answer_is_spoken_as_words() {
        let markdown = include_str!("spoken_text/answer.md");
        let golden = include_str!("spoken_text/answer.txt");
        assert_eq!(format!("{}\n", spoken_text(markdown)), golden);
    }

    #[test]
    fn an_answer_with_something_that_is_not_spoken_is_not_whole() {
        for (markdown, is_whole) in [
            ("# Hello\n\nAll *is* **well**:\n\n- one\n- two", true),
            ("Run `ls`.", true),
            ("Too long for twenty characters.", false),
            ("```\nls\n```", false),
            ("|a|\n|-|\n|b|", false),
            ("[x](https://a.org)", false),
            ("https://a.org/b", false),
            ("![x](a.png)", false),
            ("a <b>", false),
            ("- [ ] one", false),
        ] {
            let max_chars = if markdown.starts_with("Too") { 20 } else { 100 };
            assert_eq!(is_spoken_whole(markdown, max_chars), is_whole, "{markdown}");
        }
    }

    #[test]
    fn a_long_text_ends_after_a_sentence_or_a_word() {
        for (text, max_chars, expected) in [
            ("One. Two three.", 100, "One. Two three."),
            ("One. Two three.", 15, "One. Two three."),
            ("One. Two three.", 14, "One."),
            ("One. Two three.", 4, "One."),
            ("One two", 6, "One"),
            ("One two", 3, "One"),
            ("Number 3.5 is big", 12, "Number 3.5"),
            ("Title\nNext one", 12, "Title"),
            ("äöüäöü", 3, "äöü"),
            ("一。二三", 3, "一。"),
            ("", 5, ""),
        ] {
            assert_eq!(
                cut_at_sentence(text, max_chars),
                expected,
                "{text} {max_chars}"
            );
        }
    }
}
