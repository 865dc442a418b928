//! Formats a model's Markdown as it streams. A line is shown when it is complete, and a table when all its lines have
//! arrived.
//!
//! A complete line is enough to format it, so nothing more is held back, and nothing that was shown is drawn again.
//! The held text is bounded: a longer line or table is shown as it was written.

mod mark;

use termimad::crossterm::style::{Attribute, Color};
use termimad::minimad::Alignment;
use termimad::{CompoundStyle, LineStyle, MadSkin};

use crate::output::{style, styled};
use tenterhook_protocol::escape::escape_untrusted;

/// The longest line and the longest table that are held back, in bytes.
const MAX_HELD: usize = 16 << 10;

/// The largest width of formatted text, in columns.
const MAX_WIDTH: usize = 120;

/// The smallest width.
const MIN_WIDTH: usize = 20;

/// The deepest indentation.
const MAX_INDENT: usize = 16;

/// The fence of an open code block. The closing fence must begin with it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Fence(String);

impl Fence {
    /// Reads the opening fence of a code block.
    fn opened_by(line: &str) -> Option<Self> {
        let line = line.trim_start();
        let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let marks: String = line.chars().take_while(|c| *c == mark).collect();
        // An opening fence has at least three marks. A language may follow, but no further mark.
        let rest = line.strip_prefix(&marks)?;
        (marks.len() >= 3 && !rest.contains(mark)).then_some(Self(marks))
    }

    fn is_closed_by(&self, line: &str) -> bool {
        let line = line.trim();
        line.starts_with(&self.0) && line.chars().all(|c| self.0.starts_with(c))
    }
}

/// Formats text that arrives in pieces.
#[derive(Debug)]
pub struct Markdown {
    skin: MadSkin,
    /// An incomplete line.
    line: String,
    /// The lines of an incomplete table.
    table: String,
    fence: Option<Fence>,
    /// Whether the current line is too long to be held back.
    is_plain: bool,
    width: fn() -> usize,
}

impl Default for Markdown {
    fn default() -> Self {
        Self {
            skin: skin(),
            line: String::new(),
            table: String::new(),
            fence: None,
            is_plain: false,
            width: terminal_width,
        }
    }
}

impl Markdown {
    /// Adds a piece of text, and returns the text that can be shown now.
    pub fn push(&mut self, text: &str) -> String {
        let mut shown = String::new();
        for piece in text.split_inclusive('\n') {
            if self.is_plain {
                shown.push_str(&escape_untrusted(piece));
                self.is_plain = !piece.ends_with('\n');
                continue;
            }
            self.line.push_str(piece);
            if self.line.ends_with('\n') {
                let line = std::mem::take(&mut self.line);
                self.push_line(line.trim_end_matches(['\n', '\r']), &mut shown);
            } else if self.line.len() > MAX_HELD {
                self.end_table(&mut shown);
                shown.push_str(&escape_untrusted(&std::mem::take(&mut self.line)));
                self.is_plain = true;
            }
        }
        shown
    }

    /// Returns the rest, at the end of the text.
    pub fn end(&mut self) -> String {
        let shown = self.flush();
        self.fence = None;
        shown
    }

    /// Returns the held text, so that something else can be shown after it. A code block stays
    /// open.
    pub fn flush(&mut self) -> String {
        let mut shown = String::new();
        if std::mem::take(&mut self.is_plain) {
            shown.push('\n');
        }
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.push_line(&line, &mut shown);
        }
        self.end_table(&mut shown);
        shown
    }

    /// Adds a complete line.
    fn push_line(&mut self, line: &str, shown: &mut String) {
        let line = escape_untrusted(line);
        if let Some(fence) = &self.fence {
            if fence.is_closed_by(&line) {
                self.fence = None;
            } else {
                shown.push_str(&code(&line));
            }
            return;
        }
        if line.trim_start().starts_with('|') && self.table.len() + line.len() <= MAX_HELD {
            self.table.push_str(&line);
            self.table.push('\n');
            return;
        }
        self.end_table(shown);
        self.fence = Fence::opened_by(&line);
        if self.fence.is_none() {
            self.set(&line, shown);
        }
    }

    fn end_table(&mut self, shown: &mut String) {
        let table = std::mem::take(&mut self.table);
        if !table.is_empty() {
            self.set(table.trim_end_matches('\n'), shown);
        }
    }

    /// Formats a line or a table.
    fn set(&self, text: &str, shown: &mut String) {
        let text = text.replace('\t', "    ");
        let rest = text.trim_start();
        // Keep the indentation here, because the parser would take deep indentation for code.
        let indent = (text.len() - rest.len()).min(MAX_INDENT);
        let lines: Vec<String> = rest.lines().map(set_line).collect();
        let width = (self.width)().saturating_sub(indent);
        let set = self.skin.text(&lines.join("\n"), Some(width)).to_string();
        for line in set.lines() {
            let line = format!("{:indent$}{line}", "");
            shown.push_str(line.trim_end());
            shown.push('\n');
        }
        if set.is_empty() {
            shown.push('\n');
        }
    }
}

/// Returns a line in which marks that are not emphasis or code are escaped. Rules and list items keep their marks.
fn set_line(line: &str) -> String {
    let is_rule = line.len() >= 3 && line.chars().all(|c| c == '*' || c == ' ');
    if is_rule {
        return "---".to_owned();
    }
    match line.strip_prefix("* ") {
        Some(item) => format!("* {}", mark::escape_plain_marks(item)),
        None => mark::escape_plain_marks(line.trim_start()),
    }
}

fn code(line: &str) -> String {
    format!("  {}\n", styled(style::NAME, line))
}

fn terminal_width() -> usize {
    let (width, _) = termimad::terminal_size();
    usize::from(width).clamp(MIN_WIDTH, MAX_WIDTH)
}

/// Returns the style of Markdown. It uses the terminal's own colours, which are readable on every background.
fn skin() -> MadSkin {
    let mut skin = MadSkin::no_style();
    skin.bold = CompoundStyle::with_attr(Attribute::Bold);
    skin.italic = CompoundStyle::with_attr(Attribute::Italic);
    skin.strikeout = CompoundStyle::with_attr(Attribute::CrossedOut);
    skin.inline_code = CompoundStyle::with_fg(Color::Cyan);
    for header in &mut skin.headers {
        *header = LineStyle::new(CompoundStyle::with_attr(Attribute::Bold), Alignment::Left);
    }
    skin
}

#[cfg(test)]
mod tests {
    use super::*;

    fn markdown() -> Markdown {
        Markdown {
            width: || 40,
            ..Markdown::default()
        }
    }

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    /// Returns the output for text that arrives in pieces of `size` characters.
    fn shown(text: &str, size: usize) -> String {
        let mut markdown = markdown();
        let characters: Vec<char> = text.chars().collect();
        let mut shown: String = characters
            .chunks(size)
            .map(|piece| markdown.push(&piece.iter().collect::<String>()))
            .collect();
        shown.push_str(&markdown.end());
        assert_eq!(markdown.flush(), "");
        shown
    }

    #[test]
    fn text_is_the_same_however_it_arrives() {
        for (text, expected) in [
            ("plain", "plain\n"),
            ("# Head\n\nbody", "Head\n\nbody\n"),
            ("a **bold** and `code`", "a bold and code\n"),
            ("- one\n- two\n", "• one\n• two\n"),
            ("1. one\n2. two\n", "1. one\n2. two\n"),
            (
                "```rust\nlet a = *b * c*;\n```\nafter",
                "  let a = *b * c*;\nafter\n",
            ),
            ("~~~\n```\n~~~\n", "  ```\n"),
            ("2 ** 3 ** 4", "2 ** 3 ** 4\n"),
            ("a ~~ b ~~ c * d", "a ~~ b ~~ c * d\n"),
            ("**/*.rs and *.md", "**/*.rs and *.md\n"),
            ("x**y**z", "x**y**z\n"),
            (
                "* item\n    - *deep*\n***\n",
                "• item\n    • deep\n――――――――――――――――――――――――――――――――――――――――\n",
            ),
            ("\\*kept\\*", "*kept*\n"),
            ("    kept\n", "    kept\n"),
            (
                "2 * 3 * 4 and snake_case_name",
                "2 * 3 * 4 and snake_case_name\n",
            ),
            ("see [docs](http://a/b)", "see [docs](http://a/b)\n"),
            ("\u{1b}[2Jgone", "\\u{1b}[2Jgone\n"),
            ("open ```", "open ```\n"),
            ("```\nnever closed", "  never closed\n"),
        ] {
            for size in [1, 3, text.len()] {
                assert_eq!(plain(&shown(text, size)), expected, "{text:?} by {size}");
            }
        }
    }

    #[test]
    fn a_line_is_shown_when_it_is_whole_and_a_table_when_all_of_it_is_there() {
        let mut markdown = markdown();
        assert_eq!(markdown.push("one **t"), "");
        assert_eq!(plain(&markdown.push("wo**\nthree")), "one two\n");
        assert_eq!(plain(&markdown.end()), "three\n");
        assert_eq!(markdown.push("|a|b|\n|-|-|\n|1|2|\n"), "");
        let table = plain(&markdown.push("\n"));
        assert!(table.contains('1') && table.contains('│'), "{table}");
    }

    #[test]
    fn a_long_line_is_wrapped_between_words() {
        let text = "word ".repeat(20);
        let set = plain(&shown(&text, 7));
        assert!(
            set.lines().count() == 3 && set.lines().all(|line| line.len() <= 40),
            "{set}"
        );
    }

    #[test]
    fn what_is_held_back_is_bounded_and_nothing_is_lost() {
        let mut markdown = markdown();
        let long = "x".repeat(MAX_HELD + 1);
        assert_eq!(markdown.push(&long), long);
        assert_eq!(markdown.push("more"), "more");
        assert_eq!(markdown.push(" end\n*next*"), " end\n");
        assert_eq!(plain(&markdown.end()), "next\n");
        let row = format!("|{}|\n", "y".repeat(1000));
        let shown: String = (0..40).map(|_| markdown.push(&row)).collect();
        assert!(!shown.is_empty());
    }
}
