//! Translates the calls to one tool: a system's arguments to operations, and canonical arguments back.

use serde_json::Value;
use tenterhook_engine::CanonicalCall;
use tenterhook_protocol::JsonObject;

use crate::tool_names::row::{ArgumentRow, Packing, Problem, Selector, ToolRow, Unit, is_blank};
use crate::tool_names::{envelope, unified_diff};

impl ToolRow {
    /// Returns whether an operation of this tool can be the canonical `tool`.
    pub fn can_be(&self, tool: &str) -> bool {
        self.tool == tool || (self.is_several() && envelope::TOOLS.contains(&tool))
    }

    /// Returns the operations of a call.
    pub(crate) fn operations(&self, input: &JsonObject) -> Result<Vec<CanonicalCall>, Problem> {
        input
            .keys()
            .try_for_each(|key| self.refuse_other_case(key))?;
        let mut input = input.clone();
        if let Some(selector) = self.selector {
            input.remove(selector.key);
        }
        let operations = match self.packing {
            Packing::One => vec![self.operation(input)?],
            Packing::Each(list, argument) => self.each(input, (list, argument))?,
            Packing::EachOrOne(list, argument) => match input.remove(list) {
                None | Some(Value::Null) => vec![self.operation(input)?],
                Some(Value::String(text)) => {
                    insert_new(&mut input, argument, text.into())?;
                    vec![self.operation(input)?]
                }
                Some(items) => {
                    input.insert(list.to_owned(), items);
                    self.each(input, (list, argument))?
                }
            },
            Packing::Objects(list) => self.objects(input, list)?,
            Packing::Edits(list, old, new) if input.contains_key(list) => {
                self.edits(input, list, (old, new))?
            }
            Packing::Edits(_, old, new) => vec![self.operation(flat_edit(input, (old, new))?)?],
            Packing::Envelope(key) => {
                let patch = take_text(&mut input, key, &[])?;
                envelope::operations(&patch, &input)?
            }
            Packing::Diff(key, aliases) => {
                let patch = take_text(&mut input, key, aliases)?;
                let edits = unified_diff::edits(&patch)?;
                let operation = |(old, new): (String, String)| {
                    let mut input = input.clone();
                    insert_new(&mut input, "old_text", old.into())?;
                    insert_new(&mut input, "new_text", new.into())?;
                    self.operation(input)
                };
                edits.into_iter().map(operation).collect::<Result<_, _>>()?
            }
        };
        if operations.is_empty() {
            return Err("it contains no operation".to_owned());
        }
        Ok(operations)
    }

    fn each(
        &self,
        mut input: JsonObject,
        (list, argument): (&'static str, &'static str),
    ) -> Result<Vec<CanonicalCall>, Problem> {
        let items = take_list(&mut input, list)?;
        let operation = |item: Value| {
            let mut input = input.clone();
            insert_new(&mut input, argument, string(list, item)?.into())?;
            self.operation(input)
        };
        items.into_iter().map(operation).collect()
    }

    fn edits(
        &self,
        mut input: JsonObject,
        list: &str,
        texts: (&'static str, &'static str),
    ) -> Result<Vec<CanonicalCall>, Problem> {
        let items = take_list(&mut input, list)?;
        let (old, new) = texts;
        let flat = [old, new, "old_text", "new_text"];
        if let Some(key) = flat.iter().find(|key| input.contains_key(**key)) {
            return Err(format!("`{key}` and `{list}` cannot be given together"));
        }
        let operation = |item: Value| {
            let edit = flat_edit(item_object(list, item)?, texts)?;
            self.operation(with_item(&input, edit)?)
        };
        items.into_iter().map(operation).collect()
    }

    fn objects(&self, mut input: JsonObject, list: &str) -> Result<Vec<CanonicalCall>, Problem> {
        let items = take_list(&mut input, list)?;
        let operation = |item: Value| self.operation(with_item(&input, item_object(list, item)?)?);
        items.into_iter().map(operation).collect()
    }

    /// Returns the operation of a call that contains only one.
    fn operation(&self, input: JsonObject) -> Result<CanonicalCall, Problem> {
        Ok(CanonicalCall {
            tool: self.tool.to_owned(),
            input: self.renamed_back(input)?,
        })
    }

    /// Translates arguments to their canonical names and units.
    pub(crate) fn renamed_back(&self, mut input: JsonObject) -> Result<JsonObject, Problem> {
        let mut canonical = JsonObject::new();
        for argument in self.arguments {
            if let Some((own, value)) = take(&mut input, argument.own, argument.aliases)? {
                let value = argument
                    .unit
                    .canonical(own, value, &mut input, &canonical)?;
                canonical.insert(argument.canonical.to_owned(), value);
            }
        }
        for (key, value) in input {
            self.refuse_other_case(&key)?;
            // `command` became `cmd`, so a `cmd` next to it would hide what the tool runs.
            insert_new(&mut canonical, &key, value)?;
        }
        Ok(canonical)
    }

    /// Refuses a key that differs from an argument only in case: systems written in Go treat both as the argument.
    fn refuse_other_case(&self, key: &str) -> Result<(), Problem> {
        let packed: &[&str] = match &self.packing {
            Packing::One => &[],
            Packing::Each(list, _) | Packing::EachOrOne(list, _) | Packing::Objects(list) => {
                &[list]
            }
            Packing::Edits(list, old, new) => &[list, old, new],
            Packing::Envelope(patch) | Packing::Diff(patch, _) => &[patch],
        };
        let own = self.arguments.iter().map(|argument| argument.own);
        let aliases = self.arguments.iter().flat_map(|argument| argument.aliases);
        let selector = self.selector.map(|selector| selector.key);
        let mut names = own
            .chain(aliases.copied())
            .chain(packed.iter().copied())
            .chain(selector);
        if names.clone().any(|name| name == key) {
            return Ok(());
        }
        match names.find(|name| name.eq_ignore_ascii_case(key)) {
            Some(name) => Err(format!("unknown key `{key}`; did you mean `{name}`?")),
            None => Ok(()),
        }
    }

    /// Translates canonical arguments to the system's names.
    pub(crate) fn view(&self, tool: &str, input: &JsonObject) -> Result<JsonObject, Problem> {
        let mut rest = input.clone();
        let mut own = JsonObject::new();
        if let Some(Selector {
            key,
            value: Some(value),
            ..
        }) = self.selector
        {
            own.insert(key.to_owned(), value.into());
        }
        for argument in self.arguments {
            if let Some(value) = rest.remove(argument.canonical) {
                let value = argument.unit.own(argument, value, &own)?;
                own.insert(argument.own.to_owned(), value);
                if let Unit::LiteralUnless(flag) = argument.unit {
                    own.insert(flag.to_owned(), true.into());
                }
            }
        }
        self.pack(tool, &mut rest, &mut own)?;
        for (key, value) in rest {
            insert_new(&mut own, &key, value)?;
        }
        Ok(own)
    }

    /// Packs the arguments of one operation in the form of the system's call.
    fn pack(&self, tool: &str, rest: &mut JsonObject, own: &mut JsonObject) -> Result<(), Problem> {
        match self.packing {
            Packing::One => {}
            Packing::Each(list, argument) => {
                let value = rest.remove(argument).into_iter().collect();
                own.insert(list.to_owned(), Value::Array(value));
            }
            Packing::EachOrOne(list, argument) => {
                own.extend(rest.remove(argument).map(|value| (list.to_owned(), value)));
            }
            Packing::Objects(list) => {
                let item = std::mem::take(own);
                own.insert(list.to_owned(), Value::Array(vec![item.into()]));
            }
            Packing::Edits(list, old, new) => {
                let mut edit = JsonObject::new();
                for (canonical, theirs) in [("old_text", old), ("new_text", new)] {
                    let value = rest.remove(canonical);
                    edit.extend(value.map(|value| (theirs.to_owned(), value)));
                }
                own.insert(list.to_owned(), Value::Array(vec![edit.into()]));
            }
            Packing::Envelope(key) => {
                let patch = envelope::written(tool, rest)?;
                own.insert(key.to_owned(), patch.into());
            }
            Packing::Diff(key, _) => {
                let old = take_text(rest, "old_text", &[])?;
                let new = take_text(rest, "new_text", &[])?;
                own.insert(key.to_owned(), unified_diff::written(&old, &new).into());
            }
        }
        Ok(())
    }

    /// Translates a hook's new arguments for this tool to canonical names.
    pub(crate) fn canonical_input(
        &self,
        tool: &str,
        own: &JsonObject,
    ) -> Result<JsonObject, Problem> {
        let mut own = own.clone();
        if let Some(Selector {
            key,
            value: Some(value),
            ..
        }) = self.selector
            && let Some(given) = own.remove(key)
            && given != value
        {
            return Err(format!(
                "`{key}` is {given}, expected `{value}`; a hook cannot change the tool"
            ));
        }
        match self.packed_key().filter(|key| !own.contains_key(*key)) {
            // The hook changed only other arguments.
            Some(_) => self.renamed_back(own),
            None => self.one_operation(tool, &own),
        }
    }

    fn packed_key(&self) -> Option<&'static str> {
        match self.packing {
            Packing::One | Packing::EachOrOne(..) => None,
            Packing::Each(key, _)
            | Packing::Objects(key)
            | Packing::Edits(key, ..)
            | Packing::Envelope(key)
            | Packing::Diff(key, _) => Some(key),
        }
    }

    fn one_operation(&self, tool: &str, own: &JsonObject) -> Result<JsonObject, Problem> {
        let mut operations = self.operations(own)?;
        match (operations.pop(), operations.is_empty()) {
            (Some(operation), true) if operation.tool == tool => Ok(operation.input),
            (Some(operation), true) => Err(format!(
                "it became a call to `{}` instead of `{tool}`",
                operation.tool
            )),
            (last, _) => Err(format!(
                "it became {} operations, expected one",
                operations.len() + usize::from(last.is_some())
            )),
        }
    }
}

impl Unit {
    fn canonical(
        self,
        key: &str,
        value: Value,
        input: &mut JsonObject,
        canonical: &JsonObject,
    ) -> Result<Value, Problem> {
        Ok(match self {
            Self::Same => value,
            // `null` counts as a missing argument.
            _ if value.is_null() => value,
            Self::LinesFromZero => line(key, &value)?.saturating_add(1).into(),
            Self::Milliseconds => match (value.as_u64(), value.as_f64()) {
                (Some(number), _) if number % 1000 == 0 => (number / 1000).into(),
                (_, Some(number)) => (number / 1000.0).into(),
                _ => return Err(format!("`{key}` is {value}, expected milliseconds")),
            },
            Self::LastLine(first) => {
                let last = line(key, &value)?;
                let first = canonical
                    .get("offset")
                    .map_or(Ok(1), |value| line(first, value))?;
                let lines = last
                    .checked_sub(first)
                    .and_then(|lines| lines.checked_add(1));
                let lines = lines
                    .ok_or_else(|| format!("`{key}` is {last}, which is before line {first}"))?;
                lines.into()
            }
            Self::LiteralUnless(flag) => match input.remove(flag) {
                Some(Value::Bool(true)) => value,
                None | Some(Value::Null | Value::Bool(false)) => {
                    escape(&string(key, value)?).into()
                }
                Some(other) => {
                    return Err(format!("`{flag}` is {other}, expected true or false"));
                }
            },
        })
    }

    fn own(self, argument: &ArgumentRow, value: Value, own: &JsonObject) -> Result<Value, Problem> {
        let key = argument.canonical;
        Ok(match self {
            Self::Same | Self::LiteralUnless(_) => value,
            _ if value.is_null() => value,
            Self::LinesFromZero => {
                // A model that counts from 0 may send line 0, which is the first line too.
                line(key, &value)?.saturating_sub(1).into()
            }
            Self::Milliseconds => match (value.as_u64(), value.as_f64()) {
                (Some(number), _) => number.saturating_mul(1000).into(),
                (None, Some(number)) => (number * 1000.0).into(),
                _ => return Err(format!("`{key}` is {value}, expected seconds")),
            },
            Self::LastLine(first) => {
                let count = line(key, &value)?;
                let first = own.get(first).and_then(Value::as_u64).unwrap_or(1);
                first.saturating_add(count).saturating_sub(1).into()
            }
        })
    }
}

/// Writes text as a regular expression that matches only this text.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if "\\.+*?()|[]{}^$#&-~".contains(character) {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

/// Returns an item of a list of objects.
fn item_object(list: &str, item: Value) -> Result<JsonObject, Problem> {
    let Value::Object(item) = item else {
        return Err(format!("`{list}` holds {}, expected objects", kind(&item)));
    };
    Ok(item)
}

/// Adds the keys of an item to the arguments that are next to its list.
fn with_item(input: &JsonObject, item: JsonObject) -> Result<JsonObject, Problem> {
    let mut input = input.clone();
    for (key, value) in item {
        insert_new(&mut input, &key, value)?;
    }
    Ok(input)
}

/// Translates the keys of an edit to canonical names.
fn flat_edit(
    mut edit: JsonObject,
    (old, new): (&'static str, &'static str),
) -> Result<JsonObject, Problem> {
    let mut flat = JsonObject::new();
    for (theirs, canonical) in [(old, "old_text"), (new, "new_text")] {
        let value = edit.remove(theirs);
        flat.extend(value.map(|value| (canonical.to_owned(), value)));
    }
    for (key, value) in edit {
        insert_new(&mut flat, &key, value)?;
    }
    Ok(flat)
}

/// Removes an argument under any of its names. Two names with different values are ambiguous.
fn take<'a>(
    input: &mut JsonObject,
    own: &'a str,
    aliases: &[&'a str],
) -> Result<Option<(&'a str, Value)>, Problem> {
    let mut found: Option<(&str, Value)> = None;
    for name in std::iter::once(&own).chain(aliases) {
        let Some(value) = input.remove(*name) else {
            continue;
        };
        match &found {
            Some((first, known)) if !is_blank(known) && !is_blank(&value) && *known != value => {
                return Err(format!(
                    "`{first}` and `{name}` are the same argument but have different values"
                ));
            }
            Some((_, known)) if !is_blank(known) || is_blank(&value) => {}
            _ => found = Some((name, value)),
        }
    }
    Ok(found)
}

fn take_text(
    input: &mut JsonObject,
    key: &'static str,
    aliases: &[&'static str],
) -> Result<String, Problem> {
    match take(input, key, aliases)? {
        Some((_, Value::String(text))) => Ok(text),
        Some((key, other)) => Err(format!("`{key}` is {}, expected a string", kind(&other))),
        None => Err(format!("`{key}` is missing")),
    }
}

/// Removes a list argument. Some systems also accept the list as JSON text.
fn take_list(input: &mut JsonObject, key: &str) -> Result<Vec<Value>, Problem> {
    let value = input
        .remove(key)
        .ok_or_else(|| format!("`{key}` is missing"))?;
    let value = if let Value::String(text) = &value {
        serde_json::from_str(text)
            .map_err(|error| format!("`{key}` is a string that is not JSON: {error}"))?
    } else {
        value
    };
    let Value::Array(items) = value else {
        return Err(format!("`{key}` is {}, expected a list", kind(&value)));
    };
    if items.is_empty() {
        return Err(format!("`{key}` is empty"));
    }
    Ok(items)
}

/// Returns the text in an argument.
fn string(key: &str, value: Value) -> Result<String, Problem> {
    let Value::String(text) = value else {
        return Err(format!("`{key}` holds {}, expected a string", kind(&value)));
    };
    Ok(text)
}

fn line(key: &str, value: &Value) -> Result<u64, Problem> {
    value
        .as_u64()
        .ok_or_else(|| format!("`{key}` is {value}, expected a line number"))
}

/// Adds an argument, unless its name is already in use.
fn insert_new(input: &mut JsonObject, key: &str, value: Value) -> Result<(), Problem> {
    if input.contains_key(key) {
        return Err(format!("`{key}` is given twice, once under another name"));
    }
    input.insert(key.to_owned(), value);
    Ok(())
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
