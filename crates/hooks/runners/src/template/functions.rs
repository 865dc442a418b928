//! The functions that templates can call, and how templates print values.

use std::fmt::Write as _;

use minijinja::value::{Rest, ValueKind};
use minijinja::{Environment, Error, ErrorKind, Output, Value, filters, tests};

use super::scope::MissingKey;

/// The text that is printed for a missing value.
const NO_VALUE: &str = "<no value>";

/// The filters of the native syntax.
pub(super) const FILTERS: &[&str] = &[
    "default", "first", "items", "last", "length", "lower", "toJSON", "tojson", "trim", "truncate",
    "upper",
];

/// The tests of the native syntax.
pub(super) const TESTS: &[&str] = &[
    "defined",
    "undefined",
    "none",
    "string",
    "number",
    "mapping",
    "sequence",
];

/// Adds the functions and the formatter to an environment.
pub(super) fn add(environment: &mut Environment<'_>, missing: MissingKey) {
    environment.add_filter("lower", filters::lower);
    environment.add_filter("upper", filters::upper);
    environment.add_filter("trim", filters::trim);
    environment.add_filter("length", filters::length);
    environment.add_filter("default", filters::default);
    environment.add_filter("first", filters::first);
    environment.add_filter("last", filters::last);
    environment.add_filter("items", filters::items);
    environment.add_filter("tojson", |value: &Value| json(value));
    environment.add_filter("toJSON", |value: &Value| json(value));
    environment.add_filter("truncate", move |value: &Value, bytes: i64| {
        truncate(bytes, value, missing)
    });
    environment.add_test("defined", tests::is_defined);
    environment.add_test("undefined", tests::is_undefined);
    environment.add_test("none", tests::is_none);
    environment.add_test("string", tests::is_string);
    environment.add_test("number", tests::is_number);
    environment.add_test("mapping", tests::is_mapping);
    environment.add_test("sequence", tests::is_sequence);
    environment.set_formatter(move |out, _state, value| print(out, value, missing));
    add_translated(environment, missing);
}

/// Adds the functions that translated templates call. Their names start with `_`, which no name of
/// the native syntax does.
fn add_translated(environment: &mut Environment<'_>, missing: MissingKey) {
    environment.add_function("_get", move |value: &Value, name: &str| {
        get(value, name, missing)
    });
    environment.add_function("_items", |value: &Value| items(value));
    environment.add_function("_index", |value: &Value, keys: Rest<Value>| {
        keys.iter()
            .try_fold(value.clone(), |value, key| index(&value, key))
    });
    environment.add_function("_len", |value: &Value| {
        value
            .len()
            .ok_or_else(|| wrong(format!("{} has no length", describe(value))))
    });
    environment.add_function("_toJSON", |value: &Value| json(value));
    environment.add_function("_truncate", move |bytes: i64, value: &Value| {
        truncate(bytes, value, missing)
    });
    environment.add_function("_printf", move |format: &str, values: Rest<Value>| {
        printf(format, &values, missing)
    });
    environment.add_function("_eq", |value: &Value, others: Rest<Value>| {
        others
            .iter()
            .try_fold(false, |found, other| Ok(found || are_equal(value, other)?))
    });
    environment.add_function("_ne", |a: &Value, b: &Value| {
        are_equal(a, b).map(|equal| !equal)
    });
    environment.add_function("_lt", |a: &Value, b: &Value| Ok(order(a, b)?.is_lt()));
    environment.add_function("_le", |a: &Value, b: &Value| Ok(order(a, b)?.is_le()));
    environment.add_function("_gt", |a: &Value, b: &Value| Ok(order(a, b)?.is_gt()));
    environment.add_function("_ge", |a: &Value, b: &Value| Ok(order(a, b)?.is_ge()));
}

/// Adds the functions that only templates over arguments have, except `bash`.
pub(super) fn add_for_arguments(environment: &mut Environment<'_>) {
    environment.add_function("_default", |value: &Value, default: String| {
        let is_empty = is_nothing(value) || value.as_str() == Some("");
        if is_empty {
            return Ok(default);
        }
        text(value, MissingKey::Printed)
    });
}

fn wrong(message: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, message)
}

fn is_nothing(value: &Value) -> bool {
    value.is_undefined() || value.is_none()
}

/// Describes the type of a value, for messages.
fn describe(value: &Value) -> String {
    const NAMES: [(ValueKind, &str); 6] = [
        (ValueKind::Undefined, "nothing"),
        (ValueKind::None, "nothing"),
        (ValueKind::Map, "an object"),
        (ValueKind::Seq, "a list"),
        (ValueKind::String, "a string"),
        (ValueKind::Number, "a number"),
    ];
    let kind = value.kind();
    let named = NAMES.iter().find(|(known, _)| *known == kind);
    named.map_or_else(
        || format!("a value of type {kind}"),
        |(_, name)| (*name).to_owned(),
    )
}

fn print(out: &mut Output<'_>, value: &Value, missing: MissingKey) -> Result<(), Error> {
    out.write_str(&text(value, missing)?)
        .map_err(|_| Error::new(ErrorKind::WriteFailure, "the text cannot be written"))
}

/// Returns a value as it is printed: a string unchanged, any other value as JSON.
fn text(value: &Value, missing: MissingKey) -> Result<String, Error> {
    match (is_nothing(value), missing) {
        (true, MissingKey::Failure) => return Err(wrong("there is no value to print".to_owned())),
        (true, MissingKey::Printed) => return Ok(NO_VALUE.to_owned()),
        (false, _) => {}
    }
    match value.as_str() {
        Some(text) => Ok(text.to_owned()),
        None => json(value),
    }
}

fn json(value: &Value) -> Result<String, Error> {
    serde_json::to_string(value).map_err(|error| wrong(error.to_string()))
}

/// Cuts text to at most `bytes` bytes without splitting a character, and marks the cut with `…`.
fn truncate(bytes: i64, value: &Value, missing: MissingKey) -> Result<String, Error> {
    let Ok(bytes) = usize::try_from(bytes) else {
        return Err(wrong(format!("`truncate` cannot keep {bytes} bytes")));
    };
    let mut text = text(value, missing)?;
    if text.len() > bytes {
        text.truncate(text.floor_char_boundary(bytes));
        text.push('…');
    }
    Ok(text)
}

/// Returns the value of a key. If no key has exactly this name, it is read as a Go name.
fn get(value: &Value, name: &str, missing: MissingKey) -> Result<Value, Error> {
    if value.kind() != ValueKind::Map {
        return Err(wrong(format!("{} has no `{name}`", describe(value))));
    }
    let exact = value.get_attr(name)?;
    if !exact.is_undefined() {
        return Ok(exact);
    }
    let key = super::go::key_of(name);
    let found = value.get_attr(&key)?;
    if found.is_undefined() && missing == MissingKey::Failure {
        return Err(wrong(format!("there is no key `{name}`")));
    }
    Ok(found)
}

/// Returns the pairs that a loop iterates over: index and item of a list, or key and value of an object.
fn items(value: &Value) -> Result<Vec<Value>, Error> {
    let pair = |a: Value, b: Value| Value::from(vec![a, b]);
    if is_nothing(value) {
        return Ok(Vec::new());
    }
    let kind = value.kind();
    if kind == ValueKind::Map {
        let keys = value.try_iter()?;
        return keys
            .map(|key| Ok(pair(key.clone(), value.get_item(&key)?)))
            .collect();
    }
    if kind != ValueKind::Seq {
        return Err(wrong(format!(
            "`range` cannot iterate over {}",
            describe(value)
        )));
    }
    let items = value.try_iter()?.enumerate();
    Ok(items
        .map(|(index, item)| pair(Value::from(index), item))
        .collect())
}

/// Returns an item of a list or an object. A missing key is not an error, so that a template can
/// test for it.
fn index(value: &Value, key: &Value) -> Result<Value, Error> {
    match (value.kind(), key.as_str(), key.as_usize()) {
        (ValueKind::Map, Some(key), _) => {
            let found = value.get_attr(key)?;
            Ok(if found.is_undefined() {
                Value::from(())
            } else {
                found
            })
        }
        (ValueKind::Seq, None, Some(at)) if at < value.len().unwrap_or_default() => {
            value.get_item(key)
        }
        (ValueKind::Seq, None, _) => Err(wrong(format!("the list has no item {key}"))),
        _ => Err(wrong(format!(
            "`index` cannot look for {} in {}",
            describe(key),
            describe(value)
        ))),
    }
}

fn are_equal(a: &Value, b: &Value) -> Result<bool, Error> {
    if is_nothing(a) || is_nothing(b) {
        return Ok(is_nothing(a) && is_nothing(b));
    }
    if a.kind() != b.kind() {
        return Err(incomparable(a, b));
    }
    Ok(a == b)
}

fn order(a: &Value, b: &Value) -> Result<std::cmp::Ordering, Error> {
    match (a.kind(), b.kind()) {
        (ValueKind::Number, ValueKind::Number) | (ValueKind::String, ValueKind::String) => {
            Ok(a.cmp(b))
        }
        _ => Err(incomparable(a, b)),
    }
}

fn incomparable(a: &Value, b: &Value) -> Error {
    wrong(format!(
        "{} cannot be compared with {}",
        describe(a),
        describe(b)
    ))
}

/// Formats values. The verbs of the format were checked when the template was parsed.
fn printf(format: &str, values: &[Value], missing: MissingKey) -> Result<String, Error> {
    let mut values = values.iter();
    let mut printed = String::new();
    let mut rest = format;
    while let Some((before, after)) = rest.split_once('%') {
        printed.push_str(before);
        let verb = after.chars().next();
        rest = after
            .get(verb.map_or(0, char::len_utf8)..)
            .unwrap_or_default();
        if verb == Some('%') {
            printed.push('%');
            continue;
        }
        let value = values.next().cloned().unwrap_or_default();
        let fits = match verb {
            Some('d') => value.is_integer(),
            Some('t') => value.kind() == ValueKind::Bool,
            _ => true,
        };
        if !fits {
            let verb = verb.unwrap_or_default();
            return Err(wrong(format!(
                "`%{verb}` cannot print {}",
                describe(&value)
            )));
        }
        if verb == Some('q') {
            let text = text(&value, missing)?;
            write!(printed, "{}", serde_json::Value::from(text))
                .map_err(|_| wrong(String::new()))?;
        } else {
            printed.push_str(&text(&value, missing)?);
        }
    }
    printed.push_str(rest);
    Ok(printed)
}
