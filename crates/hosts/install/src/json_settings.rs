//! Settings in JSON, with comments and trailing commas, in which one object has a list of hooks for each event.
//!
//! The tree of the library says where members, commas and comments are. Its own changes are not used: they drop blank
//! lines of others when a member is added, and comments of others on the line of a member that is removed.

use std::iter;
use std::ops::Range;

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstNewlineKind, CstNode, CstObject, CstRootNode};
use serde_json::{Value, json};

use crate::edit_error::{EditError, position};
use crate::entry::{FoundEntry, LinePrefix, NewEntry};

/// The byte order mark, which some editors write at the beginning of a file.
const BOM: &str = "\u{feff}";

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
pub(crate) fn add<'e>(
    text: &str,
    keys: &[&'e str],
    entries: &'e [NewEntry],
) -> Result<WithEntries, EditError> {
    let (bom, body) = split_bom(text);
    let root = parse(body)?;
    let path = |entry: &'e NewEntry| [keys, &[entry.event.as_str()]].concat();
    let paths: Vec<_> = entries.iter().map(path).collect();
    // Before the first change, so that an error has the line of the file.
    for path in &paths {
        list_at(&root, path)?;
    }
    let mut body = body.to_owned();
    let mut created = Vec::new();
    for (path, entry) in paths.iter().zip(entries) {
        let root = parse(&body)?;
        let (container, rest) = list_at(&root, path)?;
        let known = path.len() - rest.len();
        for length in known + 1..=path.len() {
            let keys = path.iter().take(length);
            created.push(keys.map(|&key| key.to_owned()).collect());
        }
        let nested = |value, key: &&str| json!({*key: value});
        body = match rest {
            [] => append(&root, &container, None, &entry.value),
            [key, inner @ ..] => {
                let value = inner.iter().rev().fold(json!([entry.value]), nested);
                append(&root, &container, Some(key), &value)
            }
        };
    }
    Ok(WithEntries {
        text: format!("{bom}{body}"),
        created,
    })
}

/// Returns the whole settings, or `None` if the text is empty.
pub(crate) fn value(text: &str) -> Result<Option<Value>, EditError> {
    Ok(parse(split_bom(text).1)?.to_serde_value())
}

/// Returns the entries of Tenterhook in the object at `keys`.
pub(crate) fn find(
    text: &str,
    keys: &[&str],
    prefix: LinePrefix<'_>,
) -> Result<Vec<FoundEntry>, EditError> {
    let root = parse(split_bom(text).1)?;
    let mut found = Vec::new();
    let Some(events) = object_at(&root, keys)? else {
        return Ok(found);
    };
    for property in events.properties() {
        let (Some(name), Some(list)) = (property.decoded_name(), property.array_value()) else {
            continue;
        };
        for (index, element) in list.elements().iter().enumerate() {
            let value = element.to_serde_value().unwrap_or(Value::Null);
            if let Some(event) = prefix.event_in(&value) {
                found.push(FoundEntry {
                    event: event.to_owned(),
                    list: name.clone(),
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
    let (bom, body) = split_bom(text);
    let mut body = body.to_owned();
    loop {
        let root = parse(&body)?;
        let lists = object_at(&root, keys)?.map(|events| events.properties());
        let mut lists = lists.into_iter().flatten().filter_map(|it| it.value());
        let Some(handler) = lists.find_map(|list| first_handler(&list, prefix, selects)) else {
            break;
        };
        body = without(&root, &handler);
    }
    let mut created: Vec<_> = created.iter().collect();
    created.sort_by_key(|path| std::cmp::Reverse(path.len()));
    for path in created {
        let root = parse(&body)?;
        if let Some(member) = empty_member(&root, path)? {
            body = without(&root, &member);
        }
    }
    parse(&body)?;
    Ok(format!("{bom}{body}"))
}

/// Returns the first selected handler in a list. An entry that has other handlers is searched, and stays.
fn first_handler(
    list: &CstNode,
    prefix: LinePrefix<'_>,
    selects: &dyn Fn(&str) -> bool,
) -> Option<CstNode> {
    list.as_array()?.elements().into_iter().find_map(|element| {
        let value = element.to_serde_value()?;
        let event = prefix.event_in(&value)?;
        if prefix.is_whole(&value) && selects(event) {
            return Some(element);
        }
        let members = element.as_object()?.properties().into_iter();
        let mut lists = members.filter_map(|member| member.value());
        lists.find_map(|list| first_handler(&list, prefix, selects))
    })
}

/// Returns the property at a path if its value is an empty object or list without comments.
fn empty_member(root: &CstRootNode, path: &[String]) -> Result<Option<CstNode>, EditError> {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    let Some((name, parents)) = path.split_last() else {
        return Ok(None);
    };
    let parent = object_at(root, parents)?;
    let member = parent.and_then(|parent| parent.get(name));
    let is_empty = |it: &CstNode| {
        let is_container = it.as_object().is_some() || it.as_array().is_some();
        is_container && it.children().iter().all(|it| it.is_token() || is_space(it))
    };
    let member = member.filter(|it| it.value().as_ref().is_some_and(is_empty));
    Ok(member.map(CstNode::from))
}

/// Returns the text without a member of an object or list, its comma, and the white space on one side of it.
fn without(root: &CstRootNode, member: &CstNode) -> String {
    let comma = member.trailing_comma().map(CstNode::from);
    let end = comma.as_ref().unwrap_or(member);
    let before: Vec<_> = member.previous_siblings().take_while(is_space).collect();
    let after: Vec<_> = end.next_siblings().take_while(is_space).collect();
    let previous = member.previous_siblings().nth(before.len());
    let next = end.next_siblings().nth(after.len());
    let is_bracket = |it: &CstNode| it.is_token() && !it.is_comma();
    let is_first = previous.as_ref().is_some_and(is_bracket);
    let is_last = next.as_ref().is_some_and(is_bracket);
    // The line break that ends a comment stays.
    let comment = previous.as_ref().and_then(CstNode::as_comment);
    let is_free = comment.is_none_or(|it| !it.is_line_comment());
    let white_space = if is_first && is_last {
        [before, after].concat()
    } else if after.iter().any(CstNode::is_newline) || is_last && is_free {
        before
    } else {
        after
    };
    let previous_comma = || member.previous_siblings().find(CstNode::is_comma);
    for node in white_space.into_iter().chain(comma.or_else(previous_comma)) {
        node.remove();
    }
    let mut text = root.to_string();
    text.replace_range(range(member), "");
    text
}

fn is_space(node: &CstNode) -> bool {
    node.is_whitespace() || node.is_newline()
}

/// Returns the text with a member at the end of an object or list, after its last comma and comment.
fn append(root: &CstRootNode, container: &CstNode, key: Option<&str>, value: &Value) -> String {
    let newline = match root.newline_kind() {
        CstNewlineKind::CarriageReturnLineFeed => "\r\n",
        CstNewlineKind::LineFeed | CstNewlineKind::CarriageReturn => "\n",
    };
    let unit = root.single_indent_text().unwrap_or_else(|| "  ".to_owned());
    let mut outward = iter::successors(Some(container.clone()), |it| Some(it.parent()?.into()));
    let outer = outward.find_map(|it| it.indent_text());
    let outer = format!("{newline}{}", outer.unwrap_or_default());
    let members = container.children_exclude_trivia_and_tokens();
    let inner = members.iter().rev().find_map(CstNode::indent_text);
    let inner = inner.map_or_else(|| format!("{outer}{unit}"), |it| format!("{newline}{it}"));

    let key = key.map_or_else(String::new, |key| format!("{}: ", json!(key)));
    // The lines of the library have two spaces for each level.
    let lines = format!("{value:#}");
    let lines = lines.lines().map(|line| {
        let content = line.trim_start();
        unit.repeat((line.len() - content.len()) / 2) + content
    });
    let member = lines.collect::<Vec<_>>().join(&inner);

    let bracket = container.children().pop();
    let before = || bracket.iter().flat_map(CstNode::previous_siblings);
    let has_line = before().take_while(is_space).any(|it| it.is_newline());
    let closing = if has_line { "" } else { &outer };
    let last = members.last();
    let has_comma = last.is_some_and(|it| it.trailing_comma().is_some());
    let comma = if has_comma { "," } else { "" };
    let mut text = root.to_string();
    if let Some(content) = before().find(|it| !is_space(it)) {
        let member = format!("{inner}{key}{member}{comma}{closing}");
        text.insert_str(range(&content).end, &member);
    }
    if let Some(last) = last.filter(|_| !has_comma) {
        text.insert(range(last).end, ',');
    }
    text
}

fn split_bom(text: &str) -> (&str, &str) {
    text.split_at(if text.starts_with(BOM) { BOM.len() } else { 0 })
}

fn parse(text: &str) -> Result<CstRootNode, EditError> {
    CstRootNode::parse(text, &PARSING).map_err(|error| {
        let problem = lower_first(&error.kind().to_string());
        EditError::syntax(text, error.range().start, problem)
    })
}

fn lower_first(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(characters).collect()
}

/// Returns the object at a path of keys, if there is one.
fn object_at(root: &CstRootNode, keys: &[&str]) -> Result<Option<CstObject>, EditError> {
    let Some(value) = root.value() else {
        return Ok(None);
    };
    let (value, rest) = innermost(value, keys)?;
    if !rest.is_empty() {
        return Ok(None);
    }
    as_object(&value, keys).map(Some)
}

/// Returns the list at a path. If it does not exist, returns the innermost object on the path and the missing keys.
fn list_at<'k>(
    root: &CstRootNode,
    path: &'k [&'k str],
) -> Result<(CstNode, &'k [&'k str]), EditError> {
    let value = root.value();
    let value = value.unwrap_or_else(|| root.object_value_or_set().into());
    let (value, rest) = innermost(value, path)?;
    if rest.is_empty() && value.as_array().is_none() {
        return Err(wrong_type(&value, path, "a list"));
    }
    Ok((value, rest))
}

/// Returns the innermost value on a path of keys, and the keys without a value.
fn innermost<'k>(
    mut value: CstNode,
    path: &'k [&'k str],
) -> Result<(CstNode, &'k [&'k str]), EditError> {
    for (depth, key) in path.iter().enumerate() {
        let (done, rest) = path.split_at(depth);
        match property(&as_object(&value, done)?, key)? {
            Some(inner) => value = inner,
            None => return Ok((value, rest)),
        }
    }
    Ok((value, &[]))
}

fn as_object(value: &CstNode, keys: &[&str]) -> Result<CstObject, EditError> {
    value
        .as_object()
        .ok_or_else(|| wrong_type(value, keys, "an object"))
}

/// Returns the value of a property. A key that occurs twice is an error, because agents differ in which one they read.
fn property(object: &CstObject, key: &str) -> Result<Option<CstNode>, EditError> {
    let properties = object.properties().into_iter();
    let mut found = properties.filter(|it| it.decoded_name().as_deref() == Some(key));
    let first = found.next();
    if let Some(second) = found.next() {
        return Err(EditError::Twice {
            line: line(&second.into()),
            key: key.to_owned(),
        });
    }
    Ok(first.and_then(|it| it.value()))
}

fn wrong_type(value: &CstNode, keys: &[&str], expected: &'static str) -> EditError {
    let found = match value.to_serde_value() {
        Some(Value::String(_)) => "a string",
        Some(Value::Number(_)) => "a number",
        Some(Value::Bool(_)) => "a boolean",
        Some(Value::Object(_)) => "an object",
        Some(Value::Array(_)) => "a list",
        Some(Value::Null) | None => "null",
    };
    EditError::shape(line(value), keys, found, expected)
}

fn line(node: &CstNode) -> usize {
    let text = node.root_node().map(|root| root.to_string());
    position(&text.unwrap_or_default(), range(node).start).0
}

/// Returns the bytes of a node in the text.
fn range(node: &CstNode) -> Range<usize> {
    let before = node.previous_siblings().map(|it| it.to_string().len());
    let parent = node.parent().map(|parent| range(&parent.into()).start);
    let start = before.sum::<usize>() + parent.unwrap_or_default();
    start..start + node.to_string().len()
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
    fn entries_in_a_file_on_one_line_have_lines_of_their_own() {
        let text = r#"{"a":1,"hooks":{"Post":[]}}"#;
        let list = |indent: &str, event: &str| {
            let line = format!("\"command\": \"/d/bin/tenterhook-shim acme {event}\"");
            let lines = ["[", "  {", "    \"hooks\": [", "      {", "        LINE"];
            let ends = ["      }", "    ]", "  }", "]"];
            let lines: Vec<&str> = lines.into_iter().chain(ends).collect();
            lines.join(&format!("\n{indent}")).replace("LINE", &line)
        };
        let changed = added(text, &["Pre", "Post"]);
        assert_eq!(
            changed,
            format!(
                "{{\"a\":1,\"hooks\":{{\"Post\":{},\n  \"Pre\": {}\n}}}}",
                list("", "Post"),
                list("  ", "Pre")
            )
        );
        assert_eq!(
            removed(&changed, &[&["hooks", "Pre"]]),
            "{\"a\":1,\"hooks\":{\"Post\":[]\n}}"
        );
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
        let text = "{\"hooks\": {\n\"Post\": 1}}";
        let problem_of_two = add(text, &["hooks"], &[entry("Pre"), entry("Post")]).unwrap_err();
        assert_eq!(
            problem_of_two.to_string(),
            "line 2: `hooks.Post` is a number, expected a list"
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
