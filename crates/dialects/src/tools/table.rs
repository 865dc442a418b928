//! A system's tools as data, and the two directions in which the data is read.

use serde_json::Value;
use tenterhook::{CanonicalCall, OwnCall, ToolInputError, ToolNames};
use tenterhook_protocol::JsonObject;

use super::{envelope, unified_diff};

/// One tool of a system.
#[derive(Debug, Clone, Copy)]
pub struct ToolRow {
    /// The system's name of the tool.
    pub name: &'static str,
    /// The canonical tool that it stands for. An envelope names the tool that its most frequent
    /// operation is.
    pub tool: &'static str,
    /// The arguments whose names or units differ, and those that are called the same.
    pub arguments: &'static [ArgumentRow],
    /// The argument that says which tool it is: morphix' `action`.
    pub selector: Option<Selector>,
    /// How operations are packed into the arguments.
    pub form: Form,
    /// Where the system's public source declares the tool.
    pub reference: &'static str,
}

/// An argument that chooses between several tools of one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Selector {
    /// The argument.
    pub key: &'static str,
    /// The value that chooses this row. `None` is a call without the argument.
    pub value: Option<&'static str>,
    /// Another argument that the call must have.
    pub with: Option<&'static str>,
}

impl Selector {
    fn selects(self, input: &JsonObject) -> bool {
        let given = input.get(self.key).filter(|value| !is_blank(value));
        let is_chosen = match self.value {
            Some(value) => given.and_then(Value::as_str) == Some(value),
            None => given.is_none(),
        };
        let has = |key| input.get(key).is_some_and(|value| !is_blank(value));
        is_chosen && self.with.is_none_or(has)
    }
}

/// One argument of a system's tool.
#[derive(Debug, Clone, Copy)]
pub struct ArgumentRow {
    /// The canonical name.
    pub canonical: &'static str,
    /// The system's name.
    pub own: &'static str,
    /// Other names that the system accepts.
    pub aliases: &'static [&'static str],
    /// How values differ.
    pub unit: Unit,
}

/// How the values of an argument differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// They do not.
    Same,
    /// The system counts lines from 0, the catalogue from 1.
    LinesFromZero,
    /// The system names the last line, counted from 1; the catalogue says how many lines there are. The system's
    /// first line is the argument named here, the catalogue's is `offset`.
    LastLine(&'static str),
    /// The text is taken literally unless the argument named here is true; in the catalogue it is an expression.
    LiteralUnless(&'static str),
}

/// How operations are packed into a call's arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The call is one operation.
    One,
    /// A list of texts, each the value of one argument of an operation of its own: the list's name and the argument.
    Each(&'static str, &'static str),
    /// A list of edits, each an operation of its own: the list's name, and the old and the new text in its items.
    Edits(&'static str, &'static str, &'static str),
    /// A patch between `*** Begin Patch` and `*** End Patch`, in the argument named here.
    Envelope(&'static str),
    /// A unified diff of one file, in the argument named here or one of its other names.
    Diff(&'static str, &'static [&'static str]),
}

/// Makes a row of a call that is one operation.
pub(crate) const fn single(
    name: &'static str,
    tool: &'static str,
    arguments: &'static [ArgumentRow],
) -> ToolRow {
    ToolRow {
        name,
        tool,
        arguments,
        selector: None,
        form: Form::One,
        reference: "",
    }
}

impl ToolRow {
    /// Says whether an operation of this tool can be the canonical `tool`.
    pub(super) fn can_be(&self, tool: &str) -> bool {
        self.tool == tool || (self.is_several() && envelope::TOOLS.contains(&tool))
    }

    /// Describes the row for people: which calls it is for, and the system's arguments with the canonical ones.
    pub fn describe(&self) -> (String, String) {
        let when = match self.selector {
            None => String::new(),
            Some(Selector { key, value, with }) => {
                let value =
                    value.map_or_else(|| " left out".to_owned(), |value| format!(": {value}"));
                let with = with.map_or_else(String::new, |key| format!(", with `{key}`"));
                format!(" (`{key}`{value}{with})")
            }
        };
        let mut arguments: Vec<String> = self.arguments.iter().map(ArgumentRow::describe).collect();
        arguments.extend(match self.form {
            Form::One => None,
            Form::Each(list, argument) => Some(format!("`{list}[]` → `{argument}`")),
            Form::Edits(list, old, new) => Some(format!(
                "`{list}[]`: `{old}` → `old_text`, `{new}` → `new_text`"
            )),
            Form::Envelope(key) => Some(format!("`{key}`: a patch of several files")),
            Form::Diff(key, _) => Some(format!("`{key}`: a unified diff of one file")),
        });
        (when, arguments.join("; "))
    }

    /// Says whether one call can be operations of different canonical tools.
    pub(super) fn is_several(&self) -> bool {
        matches!(self.form, Form::Envelope(_))
    }

    /// Says where the tool is declared.
    pub(crate) const fn at(self, reference: &'static str) -> Self {
        Self { reference, ..self }
    }

    /// Says which argument chooses the tool.
    pub(crate) const fn when(self, key: &'static str, value: &'static str) -> Self {
        let selector = Selector {
            key,
            value: Some(value),
            with: None,
        };
        Self {
            selector: Some(selector),
            ..self
        }
    }

    /// Says that the row is for calls without the argument `key` that have the argument `with`, if that is given.
    pub(crate) const fn without(self, key: &'static str, with: Option<&'static str>) -> Self {
        let selector = Selector {
            key,
            value: None,
            with,
        };
        Self {
            selector: Some(selector),
            ..self
        }
    }

    /// Says how operations are packed.
    pub(crate) const fn packed(self, form: Form) -> Self {
        Self { form, ..self }
    }
}

/// Makes an argument that has the same name in both.
pub(crate) const fn same(name: &'static str) -> ArgumentRow {
    renamed(name, name)
}

/// Makes an argument: the system's name, then the canonical one.
pub(crate) const fn renamed(own: &'static str, canonical: &'static str) -> ArgumentRow {
    ArgumentRow {
        canonical,
        own,
        aliases: &[],
        unit: Unit::Same,
    }
}

impl ArgumentRow {
    fn describe(&self) -> String {
        let own = std::iter::once(&self.own).chain(self.aliases);
        let own = own
            .map(|name| format!("`{name}`"))
            .collect::<Vec<_>>()
            .join(" or ");
        let names = if self.own == self.canonical {
            own
        } else {
            format!("{own} → `{}`", self.canonical)
        };
        match self.unit {
            Unit::Same => names,
            Unit::LinesFromZero => format!("{names} (first line: 0)"),
            Unit::LastLine(_) => format!("{names} (the last line)"),
            Unit::LiteralUnless(flag) => format!("{names} (literal unless `{flag}`)"),
        }
    }

    /// Adds names that the system accepts as well.
    pub(crate) const fn or(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    /// Says how values differ.
    pub(crate) const fn unit(self, unit: Unit) -> Self {
        Self { unit, ..self }
    }
}

/// The tools of one system.
#[derive(Debug, Clone)]
pub(crate) struct ToolTable {
    system: &'static str,
    pub(crate) rows: &'static [ToolRow],
}

/// The problem with arguments; the table adds whose they are.
pub(super) type Problem = String;

impl ToolTable {
    pub(crate) const fn new(system: &'static str, rows: &'static [ToolRow]) -> Self {
        Self { system, rows }
    }

    /// Returns the row that a call of the system belongs to: the first whose selector fits.
    fn row_of(&self, name: &str, input: &JsonObject) -> Option<&'static ToolRow> {
        let mut rows = self.rows.iter().filter(|row| row.name == name);
        rows.find(|row| row.selector.is_none_or(|selector| selector.selects(input)))
    }

    /// Returns the row under which hooks of the system see a tool: the first one of the canonical tool. A tool of
    /// ours that only has another name than the canonical one keeps it if the system has that name too.
    fn row_for(&self, tool: &str) -> Option<&'static ToolRow> {
        let canonical = native_row(tool).map_or(tool, |row| row.tool);
        let mut rows = self.rows.iter().filter(|row| row.tool == canonical);
        let mut same_name = rows
            .clone()
            .filter(|row| canonical != tool && row.name == tool);
        same_name.next().or_else(|| rows.next())
    }

    fn error(&self, tool: &str, problem: Problem) -> ToolInputError {
        ToolInputError {
            system: self.system,
            tool: tool.to_owned(),
            problem,
        }
    }
}

/// Returns the row of a tool of ours that is not canonical.
fn native_row(tool: &str) -> Option<&'static ToolRow> {
    super::NATIVE_TOOLS.iter().find(|row| row.name == tool)
}

impl ToolNames for ToolTable {
    fn system(&self) -> &'static str {
        self.system
    }

    fn names(&self, tool: &str) -> Vec<&'static str> {
        self.row_for(tool).map(|row| row.name).into_iter().collect()
    }

    fn canonical_name<'a>(&self, name: &'a str) -> &'a str {
        let mut rows = self.rows.iter().filter(|row| row.name == name);
        let first = rows.next().filter(|row| !row.is_several());
        first
            .filter(|first| rows.all(|row| row.tool == first.tool))
            .map_or(name, |row| row.tool)
    }

    fn operations(
        &self,
        name: &str,
        input: &JsonObject,
    ) -> Result<Option<Vec<CanonicalCall>>, ToolInputError> {
        let Some(row) = self.row_of(name, input) else {
            return Ok(None);
        };
        let operations = row.operations(input);
        operations
            .map(Some)
            .map_err(|problem| self.error(name, problem))
    }

    fn view(&self, tool: &str, input: &JsonObject) -> Result<Option<OwnCall>, ToolInputError> {
        let Some(row) = self.row_for(tool) else {
            return Ok(None);
        };
        let canonical = native_row(tool).map(|row| row.renamed_back(input.clone()));
        let canonical = canonical.transpose();
        let own = canonical.and_then(|canonical| row.view(canonical.as_ref().unwrap_or(input)));
        own.map(|input| {
            Some(OwnCall {
                name: row.name.to_owned(),
                input,
            })
        })
        .map_err(|problem| self.error(row.name, problem))
    }

    fn canonical_input(&self, tool: &str, own: &JsonObject) -> Result<JsonObject, ToolInputError> {
        let Some(row) = self.row_for(tool) else {
            return Ok(own.clone());
        };
        let canonical = row.canonical_input(own);
        let input = canonical.and_then(|canonical| match native_row(tool) {
            Some(native) => native.view(&canonical),
            None => Ok(canonical),
        });
        input.map_err(|problem| self.error(row.name, problem))
    }
}

impl ToolRow {
    /// Returns what a call does.
    fn operations(&self, input: &JsonObject) -> Result<Vec<CanonicalCall>, Problem> {
        input
            .keys()
            .try_for_each(|key| self.refuse_other_case(key))?;
        let mut input = input.clone();
        if let Some(selector) = self.selector {
            input.remove(selector.key);
        }
        let operations = match self.form {
            Form::One => vec![self.operation(input)?],
            Form::Each(list, argument) => {
                let items = take_list(&mut input, list)?;
                let operation = |item: Value| {
                    let mut input = input.clone();
                    insert_new(&mut input, argument, string(list, item)?.into())?;
                    self.operation(input)
                };
                items.into_iter().map(operation).collect::<Result<_, _>>()?
            }
            Form::Edits(list, old, new) if input.contains_key(list) => {
                self.edits(input, list, (old, new))?
            }
            Form::Edits(_, old, new) => vec![self.operation(flat_edit(input, (old, new))?)?],
            Form::Envelope(key) => {
                let patch = take_text(&mut input, key, &[])?;
                envelope::operations(&patch, &input)?
            }
            Form::Diff(key, aliases) => {
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
            return Err("it names nothing to do".to_owned());
        }
        Ok(operations)
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
            let Value::Object(edit) = item else {
                return Err(format!("`{list}` holds {}, expected objects", kind(&item)));
            };
            let mut input = input.clone();
            for (key, value) in flat_edit(edit, texts)? {
                insert_new(&mut input, &key, value)?;
            }
            self.operation(input)
        };
        items.into_iter().map(operation).collect()
    }

    /// Returns the operation of arguments that are one.
    fn operation(&self, input: JsonObject) -> Result<CanonicalCall, Problem> {
        Ok(CanonicalCall {
            tool: self.tool.to_owned(),
            input: self.renamed_back(input)?,
        })
    }

    /// Gives arguments their canonical names and units.
    fn renamed_back(&self, mut input: JsonObject) -> Result<JsonObject, Problem> {
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

    /// Refuses a key that differs from an argument in case only: systems written in Go read both as the argument.
    fn refuse_other_case(&self, key: &str) -> Result<(), Problem> {
        let packed: &[&str] = match &self.form {
            Form::One => &[],
            Form::Each(list, _) => &[list],
            Form::Edits(list, old, new) => &[list, old, new],
            Form::Envelope(patch) | Form::Diff(patch, _) => &[patch],
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

    /// Returns arguments under the system's names.
    fn view(&self, input: &JsonObject) -> Result<JsonObject, Problem> {
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
        self.pack(&mut rest, &mut own)?;
        for (key, value) in rest {
            insert_new(&mut own, &key, value)?;
        }
        Ok(own)
    }

    /// Puts the arguments of one operation into the form of the call.
    fn pack(&self, rest: &mut JsonObject, own: &mut JsonObject) -> Result<(), Problem> {
        match self.form {
            Form::One => {}
            Form::Each(list, argument) => {
                let value = rest.remove(argument).into_iter().collect();
                own.insert(list.to_owned(), Value::Array(value));
            }
            Form::Edits(list, old, new) => {
                let mut edit = JsonObject::new();
                for (canonical, theirs) in [("old_text", old), ("new_text", new)] {
                    let value = rest.remove(canonical);
                    edit.extend(value.map(|value| (theirs.to_owned(), value)));
                }
                own.insert(list.to_owned(), Value::Array(vec![edit.into()]));
            }
            Form::Envelope(key) => {
                let patch = envelope::deletion(&take_text(rest, "path", &[])?)?;
                own.insert(key.to_owned(), patch.into());
            }
            Form::Diff(key, _) => {
                let old = take_text(rest, "old_text", &[])?;
                let new = take_text(rest, "new_text", &[])?;
                own.insert(key.to_owned(), unified_diff::written(&old, &new).into());
            }
        }
        Ok(())
    }

    /// Returns what a hook wrote for this tool under canonical names.
    fn canonical_input(&self, own: &JsonObject) -> Result<JsonObject, Problem> {
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
                "`{key}` is {given}, expected `{value}`: a hook cannot make it another tool"
            ));
        }
        match self.packed_key().filter(|key| !own.contains_key(*key)) {
            // The hook changes other arguments only.
            Some(_) => self.renamed_back(own),
            None => self.one_operation(&own),
        }
    }

    fn packed_key(&self) -> Option<&'static str> {
        match self.form {
            Form::One => None,
            Form::Each(key, _)
            | Form::Edits(key, ..)
            | Form::Envelope(key)
            | Form::Diff(key, _) => Some(key),
        }
    }

    fn one_operation(&self, own: &JsonObject) -> Result<JsonObject, Problem> {
        let mut operations = self.operations(own)?;
        match (operations.pop(), operations.is_empty()) {
            (Some(operation), true) if operation.tool == self.tool => Ok(operation.input),
            (Some(operation), true) => Err(format!(
                "it became `{}`, which is another tool than `{}`",
                operation.tool, self.tool
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
            // `null` stands for an argument that is left out.
            _ if value.is_null() => value,
            Self::LinesFromZero => line(key, &value)?.saturating_add(1).into(),
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
                // Line 0 is the first line too, for a model that counts from there.
                line(key, &value)?.saturating_sub(1).into()
            }
            Self::LastLine(first) => {
                let count = line(key, &value)?;
                let first = own.get(first).and_then(Value::as_u64).unwrap_or(1);
                first.saturating_add(count).saturating_sub(1).into()
            }
        })
    }
}

/// Writes a text as an expression that matches it and nothing else.
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

/// Gives the texts of an edit their canonical names.
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

/// Says whether a value stands for an argument that is left out.
fn is_blank(value: &Value) -> bool {
    value.is_null() || value.as_str().is_some_and(|text| text.trim().is_empty())
}

/// Takes an argument under any of its names. Two names with different values are ambiguous.
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
                    "`{first}` and `{name}` are the same argument and differ"
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
        Some((key, other)) => Err(format!("`{key}` is {}, expected a text", kind(&other))),
        None => Err(format!("`{key}` is missing")),
    }
}

/// Takes a list. Some systems also accept it as a text of JSON.
fn take_list(input: &mut JsonObject, key: &str) -> Result<Vec<Value>, Problem> {
    let value = input
        .remove(key)
        .ok_or_else(|| format!("`{key}` is missing"))?;
    let value = if let Value::String(text) = &value {
        serde_json::from_str(text)
            .map_err(|error| format!("`{key}` is a text that is not JSON: {error}"))?
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

/// Returns a text that stands in an argument.
fn string(key: &str, value: Value) -> Result<String, Problem> {
    let Value::String(text) = value else {
        return Err(format!("`{key}` holds {}, expected a text", kind(&value)));
    };
    Ok(text)
}

fn line(key: &str, value: &Value) -> Result<u64, Problem> {
    value
        .as_u64()
        .ok_or_else(|| format!("`{key}` is {value}, expected a line number"))
}

/// Adds an argument whose name must not be in use.
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
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
