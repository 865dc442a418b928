//! Settings in TOML: a list of tables `[[hooks]]`, and single values in other tables.
//!
//! Tables are added at the end of the text, and removed with exactly the lines that they occupy. A document of
//! `toml_edit` would be printed anew as a whole, which moves dotted keys and changes line endings of others.

use std::ops::Range;

use serde::Deserialize as _;
use serde_json::{Value, json};
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use crate::edit_error::{EditError, position};
use crate::entry::{FoundEntry, LinePrefix, NewEntry};

/// Adds a table for each entry at the end of the text.
pub(crate) fn add(text: &str, list: &str, entries: &[NewEntry]) -> Result<String, EditError> {
    let count = tables(text, list)?.len();
    let mut changed = text.to_owned();
    for entry in entries {
        append_table(&mut changed, &json!({list: [entry.value]}))?;
    }
    let is_added = tables(&changed, list).is_ok_and(|now| now.len() == count + entries.len());
    checked(is_added, changed, "the entries from being added")
}

/// Returns the entries of Tenterhook in a list of tables.
pub(crate) fn find(
    text: &str,
    list: &str,
    prefix: LinePrefix<'_>,
) -> Result<Vec<FoundEntry>, EditError> {
    let tables = tables(text, list)?.into_iter().enumerate();
    let entries = tables.filter_map(|(index, (_, value))| {
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
    let tables = tables(text, list)?.into_iter();
    let (ours, others): (Vec<_>, Vec<_>) = tables.partition(|(_, value)| {
        prefix.is_whole(value) && prefix.event_in(value).is_some_and(selects)
    });
    let mut changed = text.to_owned();
    // The last one first, so that the positions of the others stay.
    for (range, _) in ours.iter().rev() {
        changed.replace_range(table_lines(text, range), "");
    }
    // A table of others can stand between an entry and a table of the entry.
    let mut expected = value(text)?;
    if let Some(members) = expected.as_object_mut().filter(|_| !ours.is_empty()) {
        members.remove(list);
        if !others.is_empty() {
            let others = others.into_iter().map(|(_, value)| value);
            members.insert(list.to_owned(), others.collect());
        }
    }
    let is_removed = value(&changed).is_ok_and(|it| it == expected);
    checked(is_removed, changed, "the entries from being removed")
}

/// Returns the whole text as a value.
pub(crate) fn value(text: &str) -> Result<Value, EditError> {
    toml::from_str(text).map_err(|error| syntax(text, &error))
}

/// Sets a string in the table at `path`, which is added at the end of the text if it does not exist.
pub(crate) fn set(text: &str, path: &[&str], key: &str, value: &str) -> Result<String, EditError> {
    let document = parse(text)?;
    let pair = json!({key: value});
    let mut changed = text.to_owned();
    if let Some(table) = table_at(document.get_ref(), path) {
        let line = toml::to_string(&pair).map_err(|error| unprintable(&error))?;
        if let Some((key, old)) = table.get_key_value(key) {
            changed.replace_range(key.span().start..old.span().end, line.trim_end());
        } else {
            // After the last value of the table itself, which may have other tables.
            let values = table.values().filter(|it| !it.get_ref().is_table());
            let end = values.map(|it| it.span().end).max();
            let what = "the value from being added";
            let end = end.ok_or(EditError::Unsafe { what })?;
            changed.insert_str(end, &format!("{}{}", newline(text), line.trim_end()));
        }
    } else {
        let nested = path
            .iter()
            .rev()
            .fold(pair, |inner, &key| json!({key: inner}));
        append_table(&mut changed, &nested)?;
    }
    let is_set = get(&changed, path, key).is_ok_and(|it| it.as_deref() == Some(value));
    checked(is_set, changed, "the value from being added")
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
        let outer = table_at(document.get_ref(), parents)?.get(*name)?;
        let table = outer.get_ref().as_table()?;
        let (key, value) = table.get_key_value(key)?;
        Some(if table.len() == 1 {
            table_lines(text, &(outer.span().start..value.span().end))
        } else {
            lines(text, &(key.span().start..value.span().end))
        })
    });
    let mut changed = text.to_owned();
    changed.replace_range(found.unwrap_or_default(), "");
    let is_gone = get(&changed, path, key).is_ok_and(|it| it.is_none());
    checked(is_gone, changed, "the value from being removed")
}

fn checked(is_done: bool, text: String, what: &'static str) -> Result<String, EditError> {
    is_done.then_some(text).ok_or(EditError::Unsafe { what })
}

fn parse(text: &str) -> Result<Spanned<DeTable<'_>>, EditError> {
    DeTable::parse(text).map_err(|error| syntax(text, &error))
}

fn syntax(text: &str, error: &toml::de::Error) -> EditError {
    let offset = error.span().map_or(0, |span| span.start);
    EditError::syntax(text, offset, error.message().replace('\n', ", "))
}

fn unprintable(error: &toml::ser::Error) -> EditError {
    EditError::syntax("", 0, error.to_string())
}

/// Returns the range and the value of each table of a list. A missing list has none.
fn tables(text: &str, list: &str) -> Result<Vec<(Range<usize>, Value)>, EditError> {
    let document = parse(text)?;
    let Some(value) = document.get_ref().get(list) else {
        return Ok(Vec::new());
    };
    let line = position(text, value.span().start).0;
    let wrong = |found| EditError::shape(line, &[list], found, "tables `[[…]]`");
    let Some(elements) = value.get_ref().as_array() else {
        return Err(wrong("a single value"));
    };
    let is_table = |it: &Spanned<DeValue<'_>>| {
        let start = text.get(it.span().start..).unwrap_or("");
        it.get_ref().is_table() && start.starts_with('[')
    };
    if elements.is_empty() || !elements.iter().all(is_table) {
        return Err(wrong("an array on the right of `=`"));
    }
    let tables = elements.iter().map(|table| {
        let value = Value::deserialize(ValueDeserializer::from(table.clone()));
        Ok((extent(table), value.map_err(|error| syntax(text, &error))?))
    });
    tables.collect()
}

fn table_at<'d, 't>(root: &'d DeTable<'t>, path: &[&str]) -> Option<&'d DeTable<'t>> {
    path.iter()
        .try_fold(root, |table, key| table.get(*key)?.get_ref().as_table())
}

/// Returns the range from a table's header to the end of its last value.
fn extent(table: &Spanned<DeValue<'_>>) -> Range<usize> {
    let value = table.get_ref();
    let members = value.as_table().into_iter().flat_map(|it| it.values());
    let inner = members.chain(value.as_array().into_iter().flatten());
    let end = inner.map(|value| extent(value).end).max();
    let span = table.span();
    span.start..end.unwrap_or(span.end).max(span.end)
}

/// Returns the lines of a range, with their last line ending. What follows on the last line, such as a comment, stays.
fn lines(text: &str, range: &Range<usize>) -> Range<usize> {
    let (before, rest) = (text.get(..range.start), text.get(range.end..));
    let start = before.and_then(|it| it.rfind('\n')).map_or(0, |it| it + 1);
    let rest = rest.unwrap_or("");
    let follows = rest.trim_start_matches([' ', '\t']);
    let ending = ["\r\n", "\n"]
        .into_iter()
        .find(|it| follows.starts_with(it));
    start..range.end + rest.len() - follows.len() + ending.map_or(0, str::len)
}

/// Returns the lines of a table, and the empty line before it.
fn table_lines(text: &str, range: &Range<usize>) -> Range<usize> {
    let lines = lines(text, range);
    let before = text.get(..lines.start).unwrap_or("");
    let empty_line = ["\r\n", "\n"].into_iter().find(|ending| {
        let rest = before.strip_suffix(ending);
        rest.is_some_and(|rest| rest.ends_with('\n'))
    });
    lines.start - empty_line.map_or(0, str::len)..lines.end
}

/// Adds a table at the end, after an empty line.
fn append_table(text: &mut String, table: &Value) -> Result<(), EditError> {
    let ending = newline(text);
    let table = toml::to_string(table).map_err(|error| unprintable(&error))?;
    if !text.is_empty() {
        if !text.ends_with('\n') {
            text.push_str(ending);
        }
        text.push_str(ending);
    }
    text.push_str(&table.replace('\n', ending));
    Ok(())
}

/// Returns the line ending of a text: the ending of its first line.
fn newline(text: &str) -> &'static str {
    let first = text.split_inclusive('\n').next().unwrap_or("");
    if first.ends_with("\r\n") {
        "\r\n"
    } else {
        "\n"
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
    fn a_table_of_others_inside_an_entry_is_not_lost() {
        let text = format!(
            "{}\n[p]\nb = 2\n\n[hooks.env]\nc = 3\n",
            added("", &["Pre"])
        );
        let problem = remove(&text, "hooks", PREFIX, &|_| true).unwrap_err();
        let expected = "an unusual notation in this file keeps the entries from being removed";
        assert_eq!(problem.to_string(), expected);
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
