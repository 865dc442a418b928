//! Settings in TOML: a list of tables `[[hooks]]`, and single values in other tables.
//!
//! New tables are added at the end of the text, and removed with exactly the lines that they occupy.

use std::fmt::Write as _;
use std::ops::Range;

use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::edit_error::EditError;
use crate::entry::{FoundEntry, LinePrefix, NewEntry};
use crate::splice::{Splice, apply, newline};

/// Adds a table for each entry at the end of the text.
pub(crate) fn add(text: &str, list: &str, entries: &[NewEntry]) -> Result<String, EditError> {
    let document = parse(text)?;
    let count = tables(text, &document, list)?.len();
    let mut changed = text.to_owned();
    for entry in entries {
        append_table(
            &mut changed,
            &format!("[[{}]]", toml_key(list)),
            &entry.value,
        )?;
    }
    let is_added = parse(&changed)
        .and_then(|document| Ok(tables(&changed, &document, list)?.len()))
        .is_ok_and(|now| now == count + entries.len());
    if !is_added {
        return Err(EditError::Unsafe {
            what: "the entries from being added",
        });
    }
    Ok(changed)
}

/// Returns the entries of Tenterhook in a list of tables.
pub(crate) fn find(
    text: &str,
    list: &str,
    prefix: LinePrefix<'_>,
) -> Result<Vec<FoundEntry>, EditError> {
    let document = parse(text)?;
    let tables = tables(text, &document, list)?;
    let entries = tables.iter().enumerate().filter_map(|(index, table)| {
        let value = to_value(table.get_ref());
        let event = prefix.event_in(&value)?.to_owned();
        Some(FoundEntry {
            event,
            list: list.to_owned(),
            index,
            value,
        })
    });
    Ok(entries.collect())
}

/// Removes the entries of Tenterhook that `selects` names from a list of tables.
pub(crate) fn remove(
    text: &str,
    list: &str,
    prefix: LinePrefix<'_>,
    selects: &dyn Fn(&str) -> bool,
) -> Result<String, EditError> {
    let document = parse(text)?;
    let ours = tables(text, &document, list)?.into_iter().filter(|table| {
        let value = to_value(table.get_ref());
        prefix.is_whole(&value) && prefix.event_in(&value).is_some_and(selects)
    });
    let splices = ours.map(|table| Splice::delete(whole_lines(text, &extent(table))));
    let changed = apply(text, splices.collect());
    parse(&changed)?;
    Ok(changed)
}

/// Returns the whole text as a value.
pub(crate) fn value(text: &str) -> Result<Value, EditError> {
    let members = parse(text)?.into_inner().into_iter();
    let members =
        members.map(|(key, value)| (key.into_inner().into_owned(), to_value(value.get_ref())));
    Ok(Value::Object(members.collect()))
}

/// Sets a string in the table at `path`, which is added at the end of the text if it does not exist.
pub(crate) fn set(text: &str, path: &[&str], key: &str, value: &str) -> Result<String, EditError> {
    let document = parse(text)?;
    let changed = if let Some(table) = table_at(document.get_ref(), path) {
        set_in_table(text, table, key, value)?
    } else {
        let header: Vec<String> = path.iter().map(|key| toml_key(key)).collect();
        let value = Map::from_iter([(key.to_owned(), Value::String(value.to_owned()))]);
        let mut changed = text.to_owned();
        append_table(
            &mut changed,
            &format!("[{}]", header.join(".")),
            &Value::Object(value),
        )?;
        changed
    };
    let is_set = get(&changed, path, key).is_ok_and(|it| it.as_deref() == Some(value));
    if !is_set {
        return Err(EditError::Unsafe {
            what: "the value from being added",
        });
    }
    Ok(changed)
}

/// Sets a string in a table of the text.
fn set_in_table(
    text: &str,
    table: &DeTable<'_>,
    key: &str,
    value: &str,
) -> Result<String, EditError> {
    let quoted = toml_string(value);
    if let Some(old) = table.get(key) {
        return Ok(if old.get_ref().as_str() == Some(value) {
            text.to_owned()
        } else {
            apply(text, vec![Splice::replace(old.span(), quoted)])
        });
    }
    // After the last value of the table itself, which may have other tables.
    let values = table.values().filter(|it| !it.get_ref().is_table());
    let last = values.map(|it| it.span().end).max();
    let end = last.ok_or(EditError::Unsafe {
        what: "the value from being added",
    })?;
    let line = format!("{}{} = {quoted}", newline(text), toml_key(key));
    Ok(apply(text, vec![Splice::insert(end, line)]))
}

/// Returns the string with this key in the table at `path`.
pub(crate) fn get(text: &str, path: &[&str], key: &str) -> Result<Option<String>, EditError> {
    let document = parse(text)?;
    let value = table_at(document.get_ref(), path).and_then(|table| table.get(key));
    let text = value.and_then(|value| value.get_ref().as_str());
    Ok(text.map(str::to_owned))
}

/// Removes a value from the table at `path`, and the table if it has no other.
pub(crate) fn unset(text: &str, path: &[&str], key: &str) -> Result<String, EditError> {
    let document = parse(text)?;
    let found = path.split_last().and_then(|(name, parents)| {
        let parent = table_at(document.get_ref(), parents)?;
        let (name, table) = parent.get_key_value(*name)?;
        Some((name, table, table.get_ref().as_table()?))
    });
    let Some((_, outer, table)) = found else {
        return Ok(text.to_owned());
    };
    let Some((key, value)) = table.get_key_value(key) else {
        return Ok(text.to_owned());
    };
    let range = if table.len() == 1 {
        outer.span().start..value.span().end
    } else {
        key.span().start..value.span().end
    };
    let lines = if table.len() == 1 {
        whole_lines(text, &range)
    } else {
        line_range(text, &range)
    };
    let changed = apply(text, vec![Splice::delete(lines)]);
    if get(&changed, path, key.get_ref()).is_ok_and(|it| it.is_none()) {
        return Ok(changed);
    }
    Err(EditError::Unsafe {
        what: "the value from being removed",
    })
}

fn parse(text: &str) -> Result<Spanned<DeTable<'_>>, EditError> {
    DeTable::parse(text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start);
        EditError::syntax(text, offset, error.message().replace('\n', ", "))
    })
}

/// Returns the tables of a list. A missing list has none.
fn tables<'d, 't>(
    text: &str,
    document: &'d Spanned<DeTable<'t>>,
    list: &str,
) -> Result<Vec<&'d Spanned<DeValue<'t>>>, EditError> {
    let Some(value) = document.get_ref().get(list) else {
        return Ok(Vec::new());
    };
    let wrong = |found: &'static str| {
        EditError::shape(text, value.span().start, &[list], found, "tables `[[…]]`")
    };
    let Some(elements) = value.get_ref().as_array() else {
        return Err(wrong("a single value"));
    };
    let elements: Vec<_> = elements.iter().collect();
    let is_table = |it: &&Spanned<DeValue<'_>>| {
        let start = text.get(it.span().start..).unwrap_or("");
        it.get_ref().is_table() && start.starts_with('[')
    };
    if elements.is_empty() || !elements.iter().all(is_table) {
        return Err(wrong("an array on the right of `=`"));
    }
    Ok(elements)
}

fn table_at<'d, 't>(root: &'d DeTable<'t>, path: &[&str]) -> Option<&'d DeTable<'t>> {
    let mut table = root;
    for key in path {
        table = table.get(*key)?.get_ref().as_table()?;
    }
    Some(table)
}

/// Returns the range from a table's header to the end of its last value.
fn extent(table: &Spanned<DeValue<'_>>) -> Range<usize> {
    let end = match table.get_ref() {
        DeValue::Table(members) => members.values().map(|value| extent(value).end).max(),
        DeValue::Array(elements) => elements.iter().map(|value| extent(value).end).max(),
        DeValue::String(_)
        | DeValue::Integer(_)
        | DeValue::Float(_)
        | DeValue::Boolean(_)
        | DeValue::Datetime(_) => None,
    };
    let span = table.span();
    span.start..end.unwrap_or(span.end).max(span.end)
}

/// Returns the lines of a range, with their last line ending. What follows on the last line, such as a comment, stays.
fn line_range(text: &str, range: &Range<usize>) -> Range<usize> {
    let before = text.get(..range.start).unwrap_or("");
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let rest = text.get(range.end..).unwrap_or("");
    let spaces = rest.len() - rest.trim_start_matches([' ', '\t']).len();
    let follows = rest.get(spaces..).unwrap_or("");
    let ending = if follows.starts_with("\r\n") {
        2
    } else {
        usize::from(follows.starts_with('\n'))
    };
    start..range.end + spaces + ending
}

/// Returns the lines of a table, and the empty line before it.
fn whole_lines(text: &str, range: &Range<usize>) -> Range<usize> {
    let lines = line_range(text, range);
    let before = text.get(..lines.start).unwrap_or("");
    let empty_line = ["\r\n", "\n"].into_iter().find(|ending| {
        let rest = before.strip_suffix(ending);
        rest.is_some_and(|rest| rest.ends_with('\n'))
    });
    lines.start - empty_line.map_or(0, str::len)..lines.end
}

/// Adds a table at the end, after an empty line.
fn append_table(text: &mut String, header: &str, value: &Value) -> Result<(), EditError> {
    let ending = newline(text);
    if !text.is_empty() {
        if !text.ends_with('\n') {
            text.push_str(ending);
        }
        text.push_str(ending);
    }
    let body =
        toml::to_string(value).map_err(|error| EditError::syntax("", 0, error.to_string()))?;
    text.push_str(header);
    text.push_str(ending);
    text.push_str(&body.replace('\n', ending));
    Ok(())
}

/// Writes a key, in quotes if it needs them.
fn toml_key(key: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !key.is_empty() && key.chars().all(is_bare) {
        return key.to_owned();
    }
    toml_string(key)
}

/// Writes a basic string.
fn toml_string(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            control if control.is_control() => {
                // Writing to a string cannot fail.
                let _written = write!(quoted, "\\u{:04X}", u32::from(control));
            }
            plain => quoted.push(plain),
        }
    }
    quoted.push('"');
    quoted
}

fn to_value(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::String(text.clone().into_owned()),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => number.into(),
            Err(_) => Value::String(number.as_str().to_owned()),
        },
        DeValue::Float(number) => match number.as_str().parse::<f64>() {
            Ok(number) => number.into(),
            Err(_) => Value::String(number.as_str().to_owned()),
        },
        DeValue::Boolean(boolean) => Value::Bool(*boolean),
        DeValue::Datetime(time) => Value::String(time.to_string()),
        DeValue::Array(elements) => elements.iter().map(|it| to_value(it.get_ref())).collect(),
        DeValue::Table(members) => {
            let members = members.iter();
            let members =
                members.map(|(key, value)| (key.get_ref().to_string(), to_value(value.get_ref())));
            Value::Object(members.collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PREFIX: LinePrefix<'static> = LinePrefix("/d/bin/tenterhook-shim acme ");

    fn entry(event: &str) -> NewEntry {
        let command = format!("{}{event}", PREFIX.0);
        NewEntry {
            event: event.to_owned(),
            value: json!({"event": event, "command": command, "timeout": 30}),
        }
    }

    fn added(text: &str, events: &[&str]) -> String {
        let entries: Vec<NewEntry> = events.iter().map(|event| entry(event)).collect();
        add(text, "hooks", &entries).unwrap()
    }

    fn removed(text: &str) -> String {
        remove(text, "hooks", PREFIX, &|_| true).unwrap()
    }

    #[test]
    fn tables_are_added_at_the_end_and_removed_with_their_lines() {
        let text = "model = \"x\"\n\n# mine\n[[hooks]]\nevent = \"Pre\"\ncommand = \"mine\" # c\n\n[p]\na = 1\n# end\n";
        let changed = added(text, &["Pre", "Post"]);
        assert_eq!(
            changed,
            format!(
                "{text}\n[[hooks]]\nevent = \"Pre\"\ncommand = \"/d/bin/tenterhook-shim acme Pre\"\ntimeout = 30\n\
                 \n[[hooks]]\nevent = \"Post\"\ncommand = \"/d/bin/tenterhook-shim acme Post\"\ntimeout = 30\n"
            )
        );
        assert_eq!(removed(&changed), text);
        let found = find(&changed, "hooks", PREFIX).unwrap();
        let found: Vec<_> = found
            .iter()
            .map(|it| (it.event.as_str(), it.index))
            .collect();
        assert_eq!(found, [("Pre", 1), ("Post", 2)]);
        assert_eq!(removed(&added("", &["Pre"])), "");
        let crlf = "a = 1\r\n";
        assert!(!added(crlf, &["Pre"]).replace("\r\n", "").contains('\n'));
        assert_eq!(removed(&added(crlf, &["Pre"])), crlf);
    }

    #[test]
    fn what_someone_added_after_an_entry_survives() {
        let changed = added("a = 1\n", &["Pre", "Post"]);
        let edited = changed.replace(
            "timeout = 30\n\n[[",
            "timeout = 30 # mine\n# more\n\n[p]\nb = 2\n\n[[",
        );
        assert_eq!(removed(&edited), "a = 1\n# mine\n# more\n\n[p]\nb = 2\n");
    }

    #[test]
    fn an_array_on_the_right_of_an_equals_sign_is_refused() {
        let problem = |text: &str| add(text, "hooks", &[entry("Pre")]).unwrap_err().to_string();
        assert_eq!(
            problem("a = 1\nhooks = []"),
            "line 2: `hooks` is an array on the right of `=`, expected tables `[[…]]`"
        );
        assert_eq!(
            problem("hooks = 1"),
            "line 1: `hooks` is a single value, expected tables `[[…]]`"
        );
        assert!(problem("a = \n").starts_with("line 1, column 5: "));
    }

    #[test]
    fn a_value_is_set_replaced_and_removed() {
        let path = ["hooks", "state", "/h/a.json:pre:0:0"];
        let text = "model = \"x\"\n\n[projects.\"/p\"]\ntrust = \"t\"\n";
        let once = set(text, &path, "hash", "one").unwrap();
        assert_eq!(
            once,
            format!("{text}\n[hooks.state.\"/h/a.json:pre:0:0\"]\nhash = \"one\"\n")
        );
        let twice = set(&once, &path, "hash", "two").unwrap();
        assert_eq!(twice, once.replace("one", "two"));
        assert_eq!(set(&twice, &path, "hash", "two").unwrap(), twice);
        assert_eq!(unset(&twice, &path, "hash").unwrap(), text);
        let more = format!("{twice}enabled = true # mine\n");
        let rest = unset(&more, &path, "hash").unwrap();
        assert_eq!(rest, more.replace("hash = \"two\"\n", ""));
        assert_eq!(
            set(&rest, &path, "hash", "two").unwrap().lines().count(),
            more.lines().count()
        );
        assert!(set("hooks = 1\n", &path, "hash", "one").is_err());
    }
}
