//! Settings in JSON, with comments and trailing commas, in which one object has a list of hooks for each event.

use jsonc_parser::ast;
use jsonc_parser::common::Ranged as _;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde::Serialize as _;
use serde_json::ser::PrettyFormatter;
use serde_json::{Map, Serializer, Value, json};

use crate::brackets::{Brackets, JsonLayout};
use crate::edit_error::EditError;
use crate::entry::{FoundEntry, LinePrefix, NewEntry};
use crate::splice::{Splice, apply, newline};

/// The byte order mark, which some editors write at the beginning of a file.
const BOM: char = '\u{feff}';

const PARSING: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_loose_object_property_names: false,
    allow_trailing_commas: true,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// A text with entries, and the objects and lists that were added for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WithEntries {
    /// The text.
    pub(crate) text: String,
    /// The paths of the added objects and lists.
    pub(crate) created: Vec<Vec<String>>,
}

/// Adds entries at the end of the lists of their events in the object at `keys`.
pub(crate) fn add(
    text: &str,
    keys: &[&str],
    entries: &[NewEntry],
) -> Result<WithEntries, EditError> {
    let (bom, mut body) = without_bom(text);
    let mut created = Vec::new();
    for entry in entries {
        let (changed, added) = add_one(&body, keys, entry)?;
        body = changed;
        created.extend(added);
    }
    Ok(WithEntries {
        text: format!("{bom}{body}"),
        created,
    })
}

/// Returns the whole settings, or `None` if the text is empty.
pub(crate) fn value(text: &str) -> Result<Option<Value>, EditError> {
    let (_, body) = without_bom(text);
    Ok(parse(&body)?.as_ref().map(to_value))
}

/// Returns the entries of Tenterhook in the object at `keys`.
pub(crate) fn find(
    text: &str,
    keys: &[&str],
    prefix: LinePrefix<'_>,
) -> Result<Vec<FoundEntry>, EditError> {
    let (_, body) = without_bom(text);
    let root = parse(&body)?;
    let mut found = Vec::new();
    let Some(events) = object_at(&body, root.as_ref(), keys)? else {
        return Ok(found);
    };
    for property in &events.properties {
        let Some(list) = property.value.as_array() else {
            continue;
        };
        for (index, element) in list.elements.iter().enumerate() {
            let value = to_value(element);
            if let Some(event) = prefix.event_in(&value) {
                found.push(FoundEntry {
                    event: event.to_owned(),
                    list: property.name.as_str().to_owned(),
                    index,
                    value,
                });
            }
        }
    }
    Ok(found)
}

/// Removes the entries of Tenterhook that `selects` names, then the objects and lists in `created` that are empty.
pub(crate) fn remove(
    text: &str,
    keys: &[&str],
    prefix: LinePrefix<'_>,
    selects: &dyn Fn(&str) -> bool,
    created: &[Vec<String>],
) -> Result<String, EditError> {
    let (bom, mut body) = without_bom(text);
    loop {
        let root = parse(&body)?;
        let Some(events) = object_at(&body, root.as_ref(), keys)? else {
            break;
        };
        let lists = events
            .properties
            .iter()
            .filter_map(|it| it.value.as_array());
        let splices = lists
            .into_iter()
            .find_map(|list| removal(&body, list, prefix, selects));
        let Some(splices) = splices else { break };
        body = apply(&body, splices);
    }
    let mut created = created.to_vec();
    created.sort_by_key(|path| std::cmp::Reverse(path.len()));
    for path in &created {
        body = remove_if_empty(&body, path)?;
    }
    parse(&body)?;
    Ok(format!("{bom}{body}"))
}

/// Returns the changes that remove the first selected handler of a list. An entry that has other handlers stays.
fn removal(
    text: &str,
    list: &ast::Array<'_>,
    prefix: LinePrefix<'_>,
    selects: &dyn Fn(&str) -> bool,
) -> Option<Vec<Splice>> {
    list.elements
        .iter()
        .enumerate()
        .find_map(|(index, element)| {
            let value = to_value(element);
            let event = prefix.event_in(&value)?;
            if prefix.is_whole(&value) && selects(event) {
                return Some(Brackets::of_array(list).remove(text, index));
            }
            let members = element.as_object()?.properties.iter();
            let mut lists = members.filter_map(|member| member.value.as_array());
            lists.find_map(|list| removal(text, list, prefix, selects))
        })
}

/// Removes the property at a path if its value is an empty object or list without comments.
fn remove_if_empty(text: &str, path: &[String]) -> Result<String, EditError> {
    let root = parse(text)?;
    let Some((name, parents)) = path.split_last() else {
        return Ok(text.to_owned());
    };
    let parents: Vec<&str> = parents.iter().map(String::as_str).collect();
    let Some(parent) = object_at(text, root.as_ref(), &parents)? else {
        return Ok(text.to_owned());
    };
    let index = parent
        .properties
        .iter()
        .position(|it| it.name.as_str() == name);
    let is_empty = index
        .and_then(|index| parent.properties.get(index))
        .is_some_and(|it| {
            let brackets = match &it.value {
                ast::Value::Object(object) => Brackets::of_object(object),
                ast::Value::Array(array) => Brackets::of_array(array),
                ast::Value::StringLit(_)
                | ast::Value::NumberLit(_)
                | ast::Value::BooleanLit(_)
                | ast::Value::NullKeyword(_) => return false,
            };
            brackets.is_empty() && !brackets.has_only_comments(text)
        });
    Ok(match index.filter(|_| is_empty) {
        Some(index) => apply(text, Brackets::of_object(parent).remove(text, index)),
        None => text.to_owned(),
    })
}

fn add_one(
    text: &str,
    keys: &[&str],
    entry: &NewEntry,
) -> Result<(String, Vec<Vec<String>>), EditError> {
    let root = parse(text)?;
    let path: Vec<&str> = keys.iter().copied().chain([entry.event.as_str()]).collect();
    let layout = layout(text, root.as_ref());
    let Some(root) = root else {
        let value = nested(&path, json!([entry.value]));
        let gap = if text.is_empty() || text.ends_with('\n') {
            ""
        } else {
            layout.newline
        };
        let body = format!(
            "{text}{gap}{}{}",
            render(&value, &layout, ""),
            layout.newline
        );
        return Ok((body, missing_paths(&path, 0)));
    };
    let mut object = as_object(text, &root, &[])?;
    for (depth, key) in path.iter().enumerate() {
        let (done, rest) = path.split_at(depth + 1);
        let Some(value) = property(text, object, key)? else {
            let value = nested(rest, json!([entry.value]));
            let splices = Brackets::of_object(object).insert(text, &layout, |indent| {
                let colon = if layout.is_compact && !layout.is_spaced {
                    ":"
                } else {
                    ": "
                };
                format!("{}{colon}{}", json!(key), render(&value, &layout, indent))
            });
            return Ok((apply(text, splices), missing_paths(&path, depth)));
        };
        if rest.is_empty() {
            let Some(list) = value.as_array() else {
                let found = type_name(value);
                return Err(EditError::shape(
                    text,
                    value.range().start,
                    done,
                    found,
                    "a list",
                ));
            };
            let splices = Brackets::of_array(list).insert(text, &layout, |indent| {
                render(&entry.value, &layout, indent)
            });
            return Ok((apply(text, splices), Vec::new()));
        }
        object = as_object(text, value, done)?;
    }
    Err(EditError::Unsafe {
        what: "the entries from being added",
    })
}

/// Returns the paths from a depth on that did not exist.
fn missing_paths(path: &[&str], depth: usize) -> Vec<Vec<String>> {
    let lengths = depth + 1..=path.len();
    let prefix = |length| {
        path.iter()
            .take(length)
            .map(|&key| key.to_owned())
            .collect()
    };
    lengths.map(prefix).collect()
}

/// Returns the value in objects with these keys, the first one outermost.
fn nested(keys: &[&str], value: Value) -> Value {
    keys.iter().rev().fold(value, |value, &key| {
        Value::Object(Map::from_iter([(key.to_owned(), value)]))
    })
}

fn parse(text: &str) -> Result<Option<ast::Value<'_>>, EditError> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &PARSING);
    let parsed = parsed.map_err(|error| {
        let problem = error.kind().to_string();
        EditError::syntax(text, error.range().start, lower_first(&problem))
    })?;
    Ok(parsed.value)
}

fn lower_first(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(characters).collect()
}

/// Returns the object at a path of keys, if there is one.
fn object_at<'v, 't>(
    text: &str,
    root: Option<&'v ast::Value<'t>>,
    keys: &[&str],
) -> Result<Option<&'v ast::Object<'t>>, EditError> {
    let Some(root) = root else { return Ok(None) };
    let mut object = as_object(text, root, &[])?;
    for (depth, key) in keys.iter().enumerate() {
        let Some(value) = property(text, object, key)? else {
            return Ok(None);
        };
        object = as_object(text, value, keys.split_at(depth + 1).0)?;
    }
    Ok(Some(object))
}

fn as_object<'v, 't>(
    text: &str,
    value: &'v ast::Value<'t>,
    keys: &[&str],
) -> Result<&'v ast::Object<'t>, EditError> {
    value.as_object().ok_or_else(|| {
        EditError::shape(
            text,
            value.range().start,
            keys,
            type_name(value),
            "an object",
        )
    })
}

/// Returns the value of a property. A key that occurs twice is an error, because agents differ in which one they read.
fn property<'v, 't>(
    text: &str,
    object: &'v ast::Object<'t>,
    key: &str,
) -> Result<Option<&'v ast::Value<'t>>, EditError> {
    let mut found = object
        .properties
        .iter()
        .filter(|it| it.name.as_str() == key);
    let first = found.next();
    if let Some(second) = found.next() {
        return Err(EditError::Twice {
            line: crate::splice::position(text, second.range.start).0,
            key: key.to_owned(),
        });
    }
    Ok(first.map(|it| &it.value))
}

fn type_name(value: &ast::Value<'_>) -> &'static str {
    match value {
        ast::Value::StringLit(_) => "a string",
        ast::Value::NumberLit(_) => "a number",
        ast::Value::BooleanLit(_) => "a boolean",
        ast::Value::Object(_) => "an object",
        ast::Value::Array(_) => "a list",
        ast::Value::NullKeyword(_) => "null",
    }
}

fn to_value(value: &ast::Value<'_>) -> Value {
    match value {
        ast::Value::StringLit(text) => Value::String(text.value.clone().into_owned()),
        ast::Value::NumberLit(number) => {
            // A number that does not fit is compared as text.
            serde_json::from_str(number.value).unwrap_or_else(|_| json!(number.value))
        }
        ast::Value::BooleanLit(boolean) => Value::Bool(boolean.value),
        ast::Value::NullKeyword(_) => Value::Null,
        ast::Value::Array(array) => array.elements.iter().map(to_value).collect(),
        ast::Value::Object(object) => {
            let members = object.properties.iter();
            let members = members.map(|it| (it.name.as_str().to_owned(), to_value(&it.value)));
            Value::Object(members.collect())
        }
    }
}

fn without_bom(text: &str) -> (&'static str, String) {
    match text.strip_prefix(BOM) {
        Some(body) => ("\u{feff}", body.to_owned()),
        None => ("", text.to_owned()),
    }
}

fn layout(text: &str, root: Option<&ast::Value<'_>>) -> JsonLayout {
    let has_members = root
        .and_then(ast::Value::as_object)
        .is_some_and(|it| !it.properties.is_empty());
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let indented = lines.find(|line| line.starts_with([' ', '\t']));
    let unit = match indented {
        Some(line) if line.starts_with('\t') => "\t".to_owned(),
        Some(line) => " ".repeat(line.len() - line.trim_start_matches(' ').len()),
        None => "  ".to_owned(),
    };
    JsonLayout {
        newline: newline(text),
        unit,
        is_compact: has_members && !text.trim().contains('\n'),
        is_spaced: text.contains("\": "),
    }
}

/// Writes a value. All lines but the first begin with `indent`.
fn render(value: &Value, layout: &JsonLayout, indent: &str) -> String {
    if layout.is_compact {
        return value.to_string();
    }
    let mut bytes = Vec::new();
    let formatter = PrettyFormatter::with_indent(layout.unit.as_bytes());
    let written = value.serialize(&mut Serializer::with_formatter(&mut bytes, formatter));
    match (written, String::from_utf8(bytes)) {
        (Ok(()), Ok(text)) => text.replace('\n', &format!("{}{indent}", layout.newline)),
        // Neither happens for a value in memory.
        _ => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PREFIX: LinePrefix<'static> = LinePrefix("/d/bin/tenterhook-shim acme ");

    fn entry(event: &str) -> NewEntry {
        let command = format!("{}{event}", PREFIX.0);
        NewEntry {
            event: event.to_owned(),
            value: json!({"hooks": [{"command": command}]}),
        }
    }

    fn added(text: &str, events: &[&str]) -> String {
        let entries: Vec<NewEntry> = events.iter().map(|event| entry(event)).collect();
        add(text, &["hooks"], &entries).unwrap().text
    }

    fn removed(text: &str, created: &[&[&str]]) -> String {
        let created: Vec<Vec<String>> = created
            .iter()
            .map(|path| path.iter().map(|&key| key.to_owned()).collect())
            .collect();
        remove(text, &["hooks"], PREFIX, &|_| true, &created).unwrap()
    }

    #[test]
    fn an_empty_file_becomes_an_object() {
        let text = added("", &["Pre"]);
        assert_eq!(
            text,
            "{\n  \"hooks\": {\n    \"Pre\": [\n      {\n        \"hooks\": [\n          {\n            \
             \"command\": \"/d/bin/tenterhook-shim acme Pre\"\n          }\n        ]\n      }\n    ]\n  }\n}\n"
        );
        assert_eq!(added(&text, &[]), text);
    }

    #[test]
    fn comments_tabs_and_trailing_commas_are_followed() {
        let text = "{\n\t// mine\n\t\"a\": 1, // one\n\t\"hooks\": {\n\t\t\"Pre\": [\n\t\t\t{\"x\": 1},\n\t\t],\n\t},\n}\n";
        let line = "/d/bin/tenterhook-shim acme Pre";
        let expected = format!(
            "{{\n\t// mine\n\t\"a\": 1, // one\n\t\"hooks\": {{\n\t\t\"Pre\": [\n\t\t\t{{\"x\": 1}},\n\t\t\t{{\n\t\t\t\t\"hooks\": \
             [\n\t\t\t\t\t{{\n\t\t\t\t\t\t\"command\": \"{line}\"\n\t\t\t\t\t}}\n\t\t\t\t]\n\t\t\t}},\n\t\t],\n\t}},\n}}\n"
        );
        let changed = added(text, &["Pre"]);
        assert_eq!(changed, expected);
        assert_eq!(removed(&changed, &[]), text);
    }

    #[test]
    fn a_file_on_one_line_stays_on_one_line() {
        let text = r#"{"a":1,"hooks":{"Post":[]}}"#;
        let changed = added(text, &["Pre", "Post"]);
        assert_eq!(
            changed,
            r#"{"a":1,"hooks":{"Post":[{"hooks":[{"command":"/d/bin/tenterhook-shim acme Post"}]}],"Pre":[{"hooks":[{"command":"/d/bin/tenterhook-shim acme Pre"}]}]}}"#
        );
        assert_eq!(removed(&changed, &[&["hooks", "Pre"]]), text);
    }

    #[test]
    fn crlf_and_a_byte_order_mark_stay() {
        let text = "\u{feff}{\r\n    \"a\": 1\r\n}";
        let changed = added(text, &["Pre"]);
        assert!(changed.starts_with('\u{feff}') && changed.contains("\r\n    \"hooks\": {\r\n"));
        assert!(!changed.replace("\r\n", "").contains('\n'));
        assert_eq!(removed(&changed, &[&["hooks"], &["hooks", "Pre"]]), text);
    }

    #[test]
    fn handlers_of_others_stay_where_someone_put_them() {
        let ours = "/d/bin/tenterhook-shim acme Pre";
        let text = format!(
            r#"{{"hooks": {{"Pre": [{{"matcher": "x", "hooks": [{{"command": "{ours}"}}, {{"command": "mine"}}]}}, {{"hooks": [{{"command": "{ours}"}}]}}]}}}}"#
        );
        assert_eq!(
            removed(&text, &[&["hooks"], &["hooks", "Pre"]]),
            r#"{"hooks": {"Pre": [{"matcher": "x", "hooks": [{"command": "mine"}]}]}}"#
        );
    }

    #[test]
    fn comments_next_to_an_entry_survive_its_removal() {
        let ours = r#"{"command": "/d/bin/tenterhook-shim acme Pre"}"#;
        let text =
            format!("{{\"hooks\": {{\"Pre\": [\n  1, // one\n  {ours}, // a guard\n  2\n]}}}}");
        let expected = "{\"hooks\": {\"Pre\": [\n  1, // one\n  // a guard\n  2\n]}}";
        assert_eq!(removed(&text, &[]), expected);
        let text = format!("{{\"hooks\": {{\"Pre\": [\n  1, // one\n  {ours}, 2]}}}}");
        assert_eq!(
            removed(&text, &[]),
            "{\"hooks\": {\"Pre\": [\n  1, // one\n  2]}}"
        );
        let text = format!("{{\"hooks\": {{\"Pre\": [\n  // mine\n  {ours}]}}}}");
        assert_eq!(
            removed(&text, &[&["hooks"], &["hooks", "Pre"]]),
            "{\"hooks\": {\"Pre\": [\n  // mine\n  ]}}"
        );
    }

    #[test]
    fn problems_name_the_key_and_the_line() {
        let problem = |text: &str| {
            add(text, &["hooks"], &[entry("Pre")])
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            problem("[]"),
            "line 1: the file is a list, expected an object"
        );
        assert_eq!(
            problem("{\n\"hooks\": null}"),
            "line 2: `hooks` is null, expected an object"
        );
        assert_eq!(
            problem("{\"hooks\": {\n\n\"Pre\": {}}}"),
            "line 3: `hooks.Pre` is an object, expected a list"
        );
        assert_eq!(
            problem("{\"hooks\": {},\n\"hooks\": {}}"),
            "line 2: key `hooks` occurs twice"
        );
        assert_eq!(
            problem("{\n  \"a\": 1\n  \"b\": 2\n}"),
            "line 2, column 9: expected comma"
        );
    }

    #[test]
    fn entries_are_found_with_their_positions() {
        let text = added(r#"{"hooks": {"Pre": [{}]}}"#, &["Pre", "Post"]);
        let found = find(&text, &["hooks"], PREFIX).unwrap();
        let found: Vec<_> = found
            .iter()
            .map(|it| (it.list.as_str(), it.index))
            .collect();
        assert_eq!(found, [("Pre", 1), ("Post", 0)]);
    }
}
