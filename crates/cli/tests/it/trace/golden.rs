//! Writes a conversation as text that is the same in each run: one line per event, with its key fields.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Map, Value};

use super::play::Played;

/// The fields that every event has, or that differ from run to run. They are left out.
const LEFT_OUT: &[&str] = &[
    "agent",
    "conv_id",
    "cwd",
    "event",
    "event_id",
    "headers",
    "hook_event_name",
    "hook_point",
    "invoked_by",
    "payload",
    "sequence",
    "signal",
    "timestamp",
    "type",
];

/// The longest value that is shown.
const MAX_SHOWN: usize = 60;

/// The placeholders of ids, in the order in which the ids appear.
#[derive(Default)]
struct Names {
    known: Vec<String>,
}

/// Returns the golden text: the events and the hooks' inputs.
pub(crate) fn golden(played: &Played) -> String {
    let folder = played.ran.path("");
    let mut names = Names::default();
    let mut text = "# events\n".to_owned();
    for event in &played.events {
        let name = event["event"].as_str().unwrap();
        text += &line(name, event, &folder, &mut names);
    }
    text += "# hooks\n";
    for told in played.ran.lines("trace.jsonl") {
        let name = told["name"].as_str().unwrap();
        text += &line(name, &told["event"], &folder, &mut names);
    }
    text
}

fn line(name: &str, event: &Value, folder: &Path, names: &mut Names) -> String {
    let fields = event.as_object().cloned().unwrap_or_else(Map::new);
    let mut line = name.to_owned();
    for (key, value) in &fields {
        if !LEFT_OUT.contains(&key.as_str()) && !is_a_time(key) {
            write!(line, " {key}={}", shown(value, folder, names)).unwrap();
        }
    }
    line + "\n"
}

fn is_a_time(key: &str) -> bool {
    key.contains("duration") || key.ends_with("_ms") || key.ends_with("time")
}

fn shown(value: &Value, folder: &Path, names: &mut Names) -> String {
    match value {
        Value::String(text) => format!("{:?}", cut(&names.stable(text, folder))),
        Value::Array(items) if items.iter().any(Value::is_object) => format!("[{}]", items.len()),
        Value::Object(fields) => {
            let keys: Vec<&str> = fields.keys().map(String::as_str).collect();
            let whole = names.stable(&value.to_string(), folder);
            if whole.len() <= MAX_SHOWN
                && !keys.iter().any(|key| is_a_time(key) || *key == "timestamp")
            {
                whole
            } else {
                format!("{{{}}}", keys.join(" "))
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
            names.stable(&value.to_string(), folder)
        }
    }
}

fn cut(text: &str) -> String {
    let mut shown: String = text.chars().take(MAX_SHOWN).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

impl Names {
    /// Replaces ids and the folder with placeholders.
    fn stable(&mut self, text: &str, folder: &Path) -> String {
        let mut text = text.replace(folder.to_str().unwrap().trim_end_matches('/'), "[DIR]");
        // A project's data folder is named after the project's path.
        if let Some((before, after)) = text.split_once("/sessions/work-") {
            let rest = after.trim_start_matches(|c: char| c.is_ascii_hexdigit());
            text = format!("{before}/sessions/[PROJECT]{rest}");
        }
        for start in (0..text.len()).rev() {
            let Some(id) = text.get(start..start + 36).filter(|id| is_id(id)) else {
                continue;
            };
            let id = id.to_owned();
            let number = self.number(&id);
            text = text.replace(&id, &format!("[{number}]"));
        }
        text
    }

    fn number(&mut self, id: &str) -> usize {
        if let Some(place) = self.known.iter().position(|known| known == id) {
            return place + 1;
        }
        self.known.push(id.to_owned());
        self.known.len()
    }
}

fn is_id(text: &str) -> bool {
    let is_right = |(place, c): (usize, char)| match place {
        8 | 13 | 18 | 23 => c == '-',
        _ => c.is_ascii_hexdigit(),
    };
    text.char_indices().all(is_right)
}
