//! The list of events and the page of one event, as plain text for a terminal of 80 columns.

use serde_json::Value;
use tenterhook_engine::EventKind;

use crate::reference::field::{FieldRow, ObjectType};
use crate::reference::group::GROUPS;
use crate::reference::layout::{WIDTH, pretty, spaced, wrap};
use crate::reference::page::EventPage;

/// The widest column of names; the meaning of a longer name begins on the next line.
const MAX_NAME: usize = 24;

/// The words and the mark in the list of events.
const LEGEND: [(&str, &str); 3] = [
    (
        "gate",
        "Hooks can stop it. A hook that fails stops it too, unless you choose otherwise.",
    ),
    (
        "observer",
        "Hooks cannot stop it. Some of them may end the run, or change a result.",
    ),
    (
        "*",
        "`tenterhook run` never fires it. `tenterhook gateway run` fires the gateway events; programs that embed the \
         engine may fire the others.",
    ),
];

/// A line of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextLine {
    /// A heading.
    Heading(String),
    /// Any other line. An empty one separates paragraphs.
    Text(String),
}

/// Returns the list of all events, group by group.
pub fn list_lines() -> Vec<TextLine> {
    let names = EventKind::ALL.iter().map(|kind| kind.info().name.len());
    let width = names.max().unwrap_or_default();
    let mut text = TextPage::default();
    for group in GROUPS {
        text.heading(group.title);
        for kind in group.events() {
            let page = EventPage::of(kind);
            let mark = if page.is_missing_in_run() { '*' } else { ' ' };
            let name = format!("{mark} {:width$}  {:8}", page.name, page.class_name());
            text.row(0, (&name, name.len()), page.summary());
        }
    }
    text.heading("Legend");
    for (word, meaning) in LEGEND {
        text.row(2, (word, 8), meaning);
    }
    text.into_lines()
}

/// Returns the page of an event.
pub fn page_lines(page: &EventPage) -> Vec<TextLine> {
    let mut text = TextPage::default();
    text.heading(page.name);
    text.paragraph(&page.meaning);
    text.push(String::new());
    text.paragraph(&page.class_sentences());
    text.heading("When it fires");
    text.paragraph(&page.firing_sentences());
    text.heading("Payload");
    if page.has_open_payload {
        text.paragraph(page.open_payload_sentence());
    } else if page.fields.is_empty() {
        text.paragraph("The event has no fields of its own.");
    }
    text.fields(&page.fields, 2);
    for object in &page.objects {
        text.object(object);
    }
    text.heading("Example");
    text.json(&Value::Object(page.example.clone()));
    text.heading("What hooks may answer");
    for answer in &page.answers {
        text.wrapped(&answer.meaning, 2);
        text.json_line(&answer.answer);
    }
    text.heading("If a hook fails");
    text.paragraph(&page.on_failure);
    if !page.names.is_empty() {
        text.heading("Names in other hook systems");
        for names in &page.names {
            text.row(2, (names.system, 18), &names.names.join(", "));
        }
    }
    text.into_lines()
}

/// The lines of a page while it is written.
#[derive(Default)]
pub(crate) struct TextPage {
    lines: Vec<TextLine>,
}

impl TextPage {
    pub(crate) fn into_lines(self) -> Vec<TextLine> {
        self.lines
    }

    pub(crate) fn push(&mut self, line: String) {
        self.lines.push(TextLine::Text(line));
    }

    pub(crate) fn heading(&mut self, text: &str) {
        if !self.lines.is_empty() {
            self.push(String::new());
        }
        self.lines.push(TextLine::Heading(text.to_owned()));
    }

    pub(crate) fn paragraph(&mut self, text: &str) {
        self.wrapped(text, 2);
    }

    pub(crate) fn wrapped(&mut self, text: &str, indent: usize) {
        for line in wrap(text, WIDTH - indent) {
            self.push(format!("{:indent$}{line}", ""));
        }
    }

    fn fields(&mut self, fields: &[FieldRow], indent: usize) {
        let longest = fields.iter().map(|field| field.name.chars().count()).max();
        let width = longest.unwrap_or_default().min(MAX_NAME);
        for field in fields {
            self.row(indent, (&field.name, width), &described(field));
            for word in &field.words {
                let text = format!("`{}`: {}", word.word, word.meaning);
                self.wrapped(&text, indent + width + 4);
            }
        }
    }

    fn object(&mut self, object: &ObjectType) {
        self.push(String::new());
        self.wrapped(&format!("{}: {}", object.name, object.meaning), 2);
        self.fields(&object.fields, 4);
    }

    /// Adds a name and, in a separate column, its description.
    pub(crate) fn row(&mut self, indent: usize, (name, width): (&str, usize), text: &str) {
        let column = indent + width + 2;
        let mut lines = wrap(text, WIDTH - column).into_iter();
        if name.chars().count() > width {
            self.push(format!("{:indent$}{name}", ""));
        } else {
            let first = lines.next().unwrap_or_default();
            let line = format!("{:indent$}{name:width$}  {first}", "");
            self.push(line.trim_end().to_owned());
        }
        for line in lines {
            self.push(format!("{:column$}{line}", ""));
        }
    }

    /// Adds JSON over several lines.
    fn json(&mut self, value: &Value) {
        for line in pretty(value).lines() {
            self.push(format!("  {line}"));
        }
    }

    /// Adds JSON in one line.
    fn json_line(&mut self, value: &Value) {
        self.push(format!("    {}", spaced(value)));
    }
}

/// Returns the type and the meaning of a field, and whether it is required.
fn described(field: &FieldRow) -> String {
    let need = match (&field.default, field.required) {
        (_, true) => ", required".to_owned(),
        (Some(default), false) => format!(", default {default}"),
        (None, false) => String::new(),
    };
    format!("{}{need}. {}", field.type_name, field.meaning)
}
