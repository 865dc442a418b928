//! Markdown as the HTML that Telegram understands. All text is escaped, and what Telegram cannot show stays text.

use std::fmt::Write as _;

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

/// Returns a Markdown text as Telegram's HTML.
pub(super) fn to_html(markdown: &str) -> String {
    let mut renderer = Renderer::default();
    for event in Parser::new_ext(
        markdown,
        Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS,
    ) {
        renderer.add(event);
    }
    renderer.html.truncate(renderer.html.trim_end().len());
    renderer.html
}

/// Escapes a text for HTML.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c => escaped.push(c),
        }
    }
    escaped
}

#[derive(Default)]
struct Renderer {
    html: String,
    /// For each open list, the number of its next item, if it is numbered.
    lists: Vec<Option<u64>>,
    /// How many quotes are open. Telegram does not nest them.
    quotes: usize,
    /// The targets of the open links, if Telegram accepts them as links.
    links: Vec<Option<String>>,
    /// The part of the open link's text.
    label_from: usize,
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "Telegram has no form for the other tags, so only their text is shown"
)]
impl Renderer {
    fn add(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.open(tag),
            Event::End(tag) => self.close(tag),
            // The parser's options leave out mathematics and footnotes.
            Event::Text(text)
            | Event::Html(text)
            | Event::InlineHtml(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text)
            | Event::FootnoteReference(text) => self.html.push_str(&escape(&text)),
            Event::Code(text) => {
                let _infallible = write!(self.html, "<code>{}</code>", escape(&text));
            }
            Event::SoftBreak | Event::HardBreak => self.html.push('\n'),
            Event::Rule => self.html.push_str("———\n\n"),
            Event::TaskListMarker(is_done) => {
                self.html.push_str(if is_done { "☑ " } else { "☐ " });
            }
        }
    }

    fn open(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { level, .. } => {
                self.html.push_str(if level == HeadingLevel::H1 {
                    "<b><u>"
                } else {
                    "<b>"
                });
            }
            Tag::BlockQuote(_) => {
                self.quotes += 1;
                if self.quotes == 1 {
                    self.html.push_str("<blockquote>");
                }
            }
            Tag::CodeBlock(kind) => {
                self.start_line();
                self.html.push_str(&opening_of(&kind));
            }
            Tag::List(first) => {
                self.start_line();
                self.lists.push(first);
            }
            Tag::Item => self.open_item(),
            Tag::Emphasis => self.html.push_str("<i>"),
            Tag::Strong => self.html.push_str("<b>"),
            Tag::Strikethrough => self.html.push_str("<s>"),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => self.open_link(&dest_url),
            _ => {}
        }
    }

    fn close(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.end_block(),
            TagEnd::Heading(level) => {
                self.html.push_str(if level == HeadingLevel::H1 {
                    "</u></b>"
                } else {
                    "</b>"
                });
                self.end_block();
            }
            TagEnd::BlockQuote(_) => {
                self.quotes = self.quotes.saturating_sub(1);
                if self.quotes == 0 {
                    self.html.truncate(self.html.trim_end().len());
                    self.html.push_str("</blockquote>\n\n");
                }
            }
            TagEnd::CodeBlock => {
                self.html.truncate(self.html.trim_end_matches('\n').len());
                self.html.push_str("</code></pre>\n\n");
            }
            TagEnd::List(_) => {
                self.lists.pop();
                if self.lists.is_empty() {
                    self.end_block();
                }
            }
            TagEnd::Item => {
                self.html.truncate(self.html.trim_end().len());
                self.html.push('\n');
            }
            TagEnd::Emphasis => self.html.push_str("</i>"),
            TagEnd::Strong => self.html.push_str("</b>"),
            TagEnd::Strikethrough => self.html.push_str("</s>"),
            TagEnd::Link | TagEnd::Image => self.close_link(),
            _ => {}
        }
    }

    /// Ends the current line, if there is one.
    fn start_line(&mut self) {
        if !self.html.is_empty()
            && !self.html.ends_with('\n')
            && !self.html.ends_with("<blockquote>")
        {
            self.html.push('\n');
        }
    }

    fn end_block(&mut self) {
        self.html.truncate(self.html.trim_end_matches('\n').len());
        self.html.push_str("\n\n");
    }

    fn open_item(&mut self) {
        self.start_line();
        let depth = self.lists.len().saturating_sub(1);
        self.html.push_str(&"  ".repeat(depth));
        match self.lists.last_mut() {
            Some(Some(number)) => {
                let _infallible = write!(self.html, "{number}. ");
                *number += 1;
            }
            _ => self.html.push_str("• "),
        }
    }

    fn open_link(&mut self, target: &str) {
        let is_shown = ["https://", "http://", "tg://", "mailto:"]
            .iter()
            .any(|scheme| target.starts_with(scheme));
        // An image inside a link would be a link inside a link.
        let target = (is_shown && self.links.is_empty()).then(|| escape(target));
        if let Some(target) = &target {
            let _infallible = write!(self.html, "<a href=\"{target}\">");
        }
        self.label_from = self.html.len();
        self.links.push(target);
    }

    fn close_link(&mut self) {
        if let Some(Some(target)) = self.links.pop() {
            if self.html.len() == self.label_from {
                self.html.push_str(&target);
            }
            self.html.push_str("</a>");
        }
    }
}

fn opening_of(kind: &CodeBlockKind<'_>) -> String {
    let language = match kind {
        CodeBlockKind::Fenced(info) => info.split_whitespace().next().unwrap_or_default(),
        CodeBlockKind::Indented => "",
    };
    if language.is_empty() {
        "<pre><code>".to_owned()
    } else {
        format!("<pre><code class=\"language-{}\">", escape(language))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_becomes_the_html_of_telegram() {
        for (markdown, html) in [
            (
                "a **b** *c* ~~d~~ `e<f`",
                "a <b>b</b> <i>c</i> <s>d</s> <code>e&lt;f</code>",
            ),
            (
                "1 < 2 & <script>x</script>",
                "1 &lt; 2 &amp; &lt;script&gt;x&lt;/script&gt;",
            ),
            ("# One\n\ntwo\nthree", "<b><u>One</u></b>\n\ntwo\nthree"),
            ("- a\n- b\n  - c\n\nd", "• a\n• b\n  • c\n\nd"),
            ("3. a\n4. b", "3. a\n4. b"),
            ("- **a**\n  - b", "• <b>a</b>\n  • b"),
            ("- [x] a\n- [ ] b", "• ☑ a\n• ☐ b"),
            (
                "```rust\nlet a = &b;\n```\nx",
                "<pre><code class=\"language-rust\">let a = &amp;b;</code></pre>\n\nx",
            ),
            ("> a\n> > b\n\nc", "<blockquote>a\n\nb</blockquote>\n\nc"),
            (
                "[a](https://b.example/?c=\"d\"&e) [f](javascript:g)",
                "<a href=\"https://b.example/?c=&quot;d&quot;&amp;e\">a</a> f",
            ),
            (
                "| a | b |\n|---|---|\n| 1 | 2 |",
                "| a | b |\n|---|---|\n| 1 | 2 |",
            ),
            ("---", "———"),
            ("", ""),
        ] {
            assert_eq!(to_html(markdown), html, "{markdown}");
        }
    }
}
