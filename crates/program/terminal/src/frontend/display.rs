//! What scripts display next to the conversation: a status, widgets, and the text while the agent works.
//!
//! The terminal shows lines, so a status and widgets are printed before a prompt if they have changed since the last
//! one. While the agent works, the status is part of the progress line.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal as _};

use anstream::adapter::strip_str;
use tenterhook_agent::frontend::{ScriptDisplay, WidgetPlacement};

use crate::output::script_output::without_secrets;
use crate::output::{self, style, styled};
use tenterhook_protocol::escape::escape_line;

/// The maximum number of statuses, and of widgets. Further ones are not shown.
const MAX_KEYS: usize = 32;

/// The maximum number of lines of a widget. Further lines are not shown.
const MAX_LINES: usize = 10;

/// The maximum length of a line, in characters.
const MAX_LINE: usize = 200;

/// The maximum length of the status in the progress line, in characters. A progress line must fit into one row.
const MAX_PROGRESS: usize = 40;

/// What scripts display. All texts are safe to print.
#[derive(Debug, Default)]
pub(super) struct Displayed {
    statuses: BTreeMap<String, String>,
    /// All are shown above the prompt, because there is no line below it.
    widgets: BTreeMap<(WidgetPlacement, String), Vec<String>>,
    /// The text while the agent works, instead of the usual one.
    working: Option<String>,
    /// The lines at the beginning of the session, and whether they were printed.
    header: (Vec<String>, bool),
    /// The last lines above the prompt.
    footer: Vec<String>,
    /// What the program waits for.
    work: String,
    /// The lines that were printed last.
    printed: Vec<String>,
}

impl Displayed {
    /// Applies a change of a status, a widget or the working message.
    pub(super) fn apply(&mut self, display: &ScriptDisplay) {
        match display {
            ScriptDisplay::Status { key, text } => {
                let text = text.as_deref().map(|text| safe(text, MAX_LINE));
                let text = text.filter(|text| !text.trim().is_empty());
                put(&mut self.statuses, key.clone(), text);
            }
            ScriptDisplay::Widget {
                key,
                lines,
                placement,
            } => {
                let lines: Option<Vec<String>> = lines.as_ref().map(|lines| {
                    let lines = lines.iter().flat_map(|line| line.split('\n'));
                    let lines = lines.take(MAX_LINES);
                    lines.map(|line| safe(line, MAX_LINE)).collect()
                });
                match placement {
                    WidgetPlacement::Header => self.set_header(lines.unwrap_or_default()),
                    WidgetPlacement::Footer => self.footer = lines.unwrap_or_default(),
                    WidgetPlacement::Above | WidgetPlacement::Below => {
                        for place in [WidgetPlacement::Above, WidgetPlacement::Below] {
                            self.widgets.remove(&(place, key.clone()));
                        }
                        put(&mut self.widgets, (*placement, key.clone()), lines);
                    }
                }
            }
            ScriptDisplay::WorkingMessage { text } => {
                self.working = text.as_deref().map(|text| safe(text, MAX_PROGRESS));
            }
            ScriptDisplay::Notice { .. }
            | ScriptDisplay::Title { .. }
            | ScriptDisplay::EditorText { .. }
            | _ => {}
        }
    }

    fn set_header(&mut self, lines: Vec<String>) {
        if self.header.0 != lines {
            self.header = (lines, false);
        }
    }

    /// Records what the program waits for.
    pub(super) fn begin_work(&mut self, what: &str) {
        what.clone_into(&mut self.work);
    }

    /// Returns the text of the progress line.
    pub(super) fn work(&self) -> String {
        let what = self.working.as_deref().unwrap_or(&self.work);
        let status: String = self.status().chars().take(MAX_PROGRESS).collect();
        if status.is_empty() {
            what.to_owned()
        } else {
            format!("{what} · {status}")
        }
    }

    fn status(&self) -> String {
        let statuses: Vec<&str> = self.statuses.values().map(String::as_str).collect();
        statuses.join("  ")
    }

    /// Returns the lines to print before a prompt. There are none if they have not changed.
    pub(super) fn take_changed_lines(&mut self) -> Vec<String> {
        let mut lines: Vec<String> = self.widgets.values().flatten().cloned().collect();
        let status = self.status();
        if !status.is_empty() {
            lines.push(status);
        }
        lines.extend(self.footer.iter().cloned());
        let header = if std::mem::replace(&mut self.header.1, true) {
            Vec::new()
        } else {
            self.header.0.clone()
        };
        if lines == self.printed {
            lines.clear();
        } else {
            self.printed.clone_from(&lines);
        }
        let lines = header.into_iter().chain(lines);
        lines.map(|line| styled(style::QUIET, line)).collect()
    }
}

/// Sets or removes a value. A value with a new key is dropped if there are too many.
fn put<K: Ord, V>(values: &mut BTreeMap<K, V>, key: K, value: Option<V>) {
    match value {
        None => drop(values.remove(&key)),
        Some(value) if values.len() < MAX_KEYS || values.contains_key(&key) => {
            values.insert(key, value);
        }
        Some(_) => {}
    }
}

/// Returns text of a script on one line: without styles and secrets, escaped, and at most `longest` characters long.
fn safe(text: &str, longest: usize) -> String {
    let plain = strip_str(text).to_string().replace('\t', " ");
    let safe = escape_line(&without_secrets(&plain));
    safe.chars().take(longest).collect()
}

/// Returns whether stdout is a terminal that understands control sequences.
fn has_sequences() -> bool {
    let is_simple = std::env::var_os("TERM").is_none_or(|name| name == "dumb" || name.is_empty());
    io::stdout().is_terminal() && !is_simple
}

/// Sets the title of the terminal's window, if stdout is a terminal that has one.
pub(super) fn set_title(text: &str) {
    if has_sequences() {
        output::title(&safe(text, MAX_LINE));
    }
}

/// Shows a notification of a script, if stdout is a terminal. Anything that is not a plain notification is dropped.
pub(super) fn alert(code: u16, text: &str) {
    if has_sequences()
        && let Some(sequence) = alert_sequence(code, text)
    {
        output::sequence(&sequence);
    }
}

/// Returns the control sequence of a notification. `None` if it could do anything other than show text: terminals also
/// use these numbers for progress, for macros, and for questions that they answer with keys.
fn alert_sequence(code: u16, text: &str) -> Option<String> {
    let shown = |text: &str| safe(text, MAX_LINE);
    let body = match code {
        0 => return Some("\u{7}".to_owned()),
        9 => {
            let is_command = text.starts_with(|first: char| first.is_ascii_digit());
            format!("9;{}", (!is_command).then(|| shown(text))?)
        }
        777 => format!("777;notify;{}", shown(text.strip_prefix("notify;")?)),
        99 => {
            let (metadata, body) = text.split_once(';')?;
            let is_harmless = |pair: &str| {
                matches!(pair, "" | "d=0" | "d=1" | "p=title" | "p=body")
                    || pair.strip_prefix("i=").is_some_and(|id| {
                        id.len() <= 64 && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
                    })
            };
            let is_harmless = metadata.split(':').all(is_harmless);
            format!("99;{metadata};{}", is_harmless.then(|| shown(body))?)
        }
        _ => return None,
    };
    Some(format!("\u{1b}]{body}\u{7}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(key: &str, text: Option<&str>) -> ScriptDisplay {
        ScriptDisplay::Status {
            key: key.to_owned(),
            text: text.map(str::to_owned),
        }
    }

    fn changed(displayed: &mut Displayed) -> Vec<String> {
        let lines = displayed.take_changed_lines().into_iter();
        lines.map(|line| strip_str(&line).to_string()).collect()
    }

    #[test]
    fn a_status_and_widgets_are_lines_that_are_printed_when_they_change() {
        let mut displayed = Displayed::default();
        assert_eq!(changed(&mut displayed), Vec::<String>::new());
        displayed.apply(&status("plan", Some("plan mode")));
        displayed.apply(&status("cost", Some("$1")));
        displayed.apply(&ScriptDisplay::Widget {
            key: "todo".to_owned(),
            lines: Some(vec!["one\ntwo".to_owned()]),
            placement: WidgetPlacement::Below,
        });
        assert_eq!(changed(&mut displayed), ["one", "two", "$1  plan mode"]);
        assert_eq!(changed(&mut displayed), Vec::<String>::new());
        displayed.begin_work("waiting for the model");
        assert_eq!(displayed.work(), "waiting for the model · $1  plan mode");
        displayed.apply(&ScriptDisplay::WorkingMessage {
            text: Some("thinking".to_owned()),
        });
        displayed.apply(&status("cost", None));
        assert_eq!(displayed.work(), "thinking · plan mode");
        assert_eq!(changed(&mut displayed), ["one", "two", "plan mode"]);
    }

    #[test]
    fn a_header_is_printed_once_and_a_footer_comes_last() {
        let mut displayed = Displayed::default();
        let widget = |placement, lines: &[&str]| ScriptDisplay::Widget {
            key: "x".to_owned(),
            lines: Some(lines.iter().map(|&line| line.to_owned()).collect()),
            placement,
        };
        displayed.apply(&widget(WidgetPlacement::Footer, &["foot"]));
        displayed.apply(&widget(WidgetPlacement::Above, &["above"]));
        displayed.apply(&status("a", Some("on")));
        displayed.apply(&widget(WidgetPlacement::Header, &["head"]));
        assert_eq!(changed(&mut displayed), ["head", "above", "on", "foot"]);
        displayed.apply(&widget(WidgetPlacement::Header, &["head"]));
        displayed.apply(&widget(WidgetPlacement::Footer, &["new foot"]));
        assert_eq!(changed(&mut displayed), ["above", "on", "new foot"]);
        displayed.apply(&widget(WidgetPlacement::Footer, &[]));
        assert_eq!(changed(&mut displayed), ["above", "on"]);
    }

    #[test]
    fn only_plain_notifications_become_control_sequences() {
        for (code, text, expected) in [
            (0, "ignored", Some("\u{7}")),
            (9, "done", Some("\u{1b}]9;done\u{7}")),
            (9, "6;\"run\"", None),
            (9, "4;1;50", None),
            (
                777,
                "notify;Pi;Ready\u{1b}]0;x\u{7}",
                Some("\u{1b}]777;notify;Pi;Ready\u{7}"),
            ),
            (777, "precmd;x", None),
            (99, "i=1:d=0;Pi", Some("\u{1b}]99;i=1:d=0;Pi\u{7}")),
            (
                99,
                "i=1:p=body;Ready",
                Some("\u{1b}]99;i=1:p=body;Ready\u{7}"),
            ),
            (99, ";Ready", Some("\u{1b}]99;;Ready\u{7}")),
            (99, "i=1:p=?;", None),
            (99, "i=1:a=report;x", None),
            (99, "i=\u{1b}c;x", None),
            (52, "c;eA==", None),
        ] {
            let sequence = alert_sequence(code, text);
            assert_eq!(sequence.as_deref(), expected, "{code} {text:?}");
        }
    }

    #[test]
    fn what_scripts_display_is_bounded_and_harmless() {
        let mut displayed = Displayed::default();
        displayed.apply(&status("a", Some("\u{1b}[31mred\u{1b}[0m\u{7}\u{202e}\nx")));
        assert_eq!(changed(&mut displayed), ["red\\u{202e}\\nx"]);
        for number in 0..2 * MAX_KEYS {
            displayed.apply(&status(&number.to_string(), Some("x")));
        }
        assert_eq!(displayed.statuses.len(), MAX_KEYS);
        displayed.apply(&status("a", Some(&"x".repeat(2 * MAX_LINE))));
        assert_eq!(displayed.statuses["a"].len(), MAX_LINE);
    }
}
