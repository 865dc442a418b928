//! The description of one tool of a system: its names, its arguments, and how operations are packed into a call.

use serde_json::Value;
use tenterhook_protocol::JsonObject;

use crate::tool_names::python::is_true_in_python;

/// A problem with arguments. The table adds the system and the tool.
pub(crate) type Problem = String;

/// The description of one tool of a system.
#[derive(Debug, Clone, Copy)]
pub struct ToolRow {
    /// The system's name for the tool.
    pub name: &'static str,
    /// The canonical tool. For a patch format with several operations, it is the tool of the most frequent operation.
    pub tool: &'static str,
    /// The arguments, including those that have the same name in both systems.
    pub arguments: &'static [ArgumentRow],
    /// The argument that selects the tool, such as morphix' `action`, if there is one.
    pub selector: Option<Selector>,
    /// How operations are packed into the arguments.
    pub packing: Packing,
    /// Other names by which matchers of the system find the tool.
    pub matched_as: &'static [&'static str],
    /// The place in the system's public source that declares the tool.
    pub reference: &'static str,
}

/// An argument that selects one of several tools with the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Selector {
    /// The argument's name.
    pub key: &'static str,
    /// The value that selects this row; `None` selects it for calls without the argument.
    pub value: Option<&'static str>,
    /// Another required argument, whose value must be true in Python. A string of spaces is true.
    pub with: Option<&'static str>,
}

impl Selector {
    pub(crate) fn selects(self, input: &JsonObject) -> bool {
        let given = input.get(self.key).filter(|value| !is_blank(value));
        let is_chosen = match self.value {
            Some(value) => given.and_then(Value::as_str) == Some(value),
            None => given.is_none(),
        };
        let has = |key| input.get(key).is_some_and(is_true_in_python);
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
    /// How the system's values differ from the canonical ones.
    pub unit: Unit,
}

/// The difference between a system's values of an argument and the canonical values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// There is no difference.
    Same,
    /// The system counts lines from 0; the canonical argument counts from 1.
    LinesFromZero,
    /// The system names the last line, counted from 1; the canonical argument is the number of lines. The system's
    /// first line is in the argument named here, the canonical one in `offset`.
    LastLine(&'static str),
    /// The text is literal unless the argument named here is true; the canonical argument is a regular expression.
    LiteralUnless(&'static str),
    /// The system counts milliseconds; the canonical argument counts seconds.
    Milliseconds,
}

/// The way in which a call's arguments contain operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// The call is a single operation.
    One,
    /// A list of strings. Each string is one argument of a separate operation. Contains the list's name and the
    /// argument.
    Each(&'static str, &'static str),
    /// Like [`Each`](Self::Each), but the argument may also be a single string, or absent.
    EachOrOne(&'static str, &'static str),
    /// A list of objects. Each has the arguments of a separate operation. Contains the list's name.
    Objects(&'static str),
    /// A list of edits. Each is a separate operation. Contains the list's name, and the keys of old and new text.
    Edits(&'static str, &'static str, &'static str),
    /// A patch between `*** Begin Patch` and `*** End Patch`, in the argument named here.
    Envelope(&'static str),
    /// A unified diff of one file, in the argument named here or under one of its aliases.
    Diff(&'static str, &'static [&'static str]),
}

/// Creates the row of a tool whose calls are single operations.
pub const fn single(
    name: &'static str,
    tool: &'static str,
    arguments: &'static [ArgumentRow],
) -> ToolRow {
    ToolRow {
        name,
        tool,
        arguments,
        selector: None,
        packing: Packing::One,
        matched_as: &[],
        reference: "",
    }
}

impl ToolRow {
    /// Returns text for documentation: which calls the row is for, and how its arguments correspond.
    pub fn describe(&self) -> (String, String) {
        let when = match self.selector {
            None => String::new(),
            Some(Selector {
                key: "",
                with: Some(key),
                ..
            }) => format!(" (with `{key}`)"),
            Some(Selector { key, value, with }) => {
                let value =
                    value.map_or_else(|| " left out".to_owned(), |value| format!(": {value}"));
                let with = with.map_or_else(String::new, |key| format!(", with `{key}`"));
                format!(" (`{key}`{value}{with})")
            }
        };
        let mut arguments: Vec<String> = self.arguments.iter().map(ArgumentRow::describe).collect();
        arguments.extend(match self.packing {
            Packing::One => None,
            Packing::Each(list, argument) => Some(format!("`{list}[]` → `{argument}`")),
            Packing::EachOrOne(list, argument) => {
                Some(format!("`{list}` or `{list}[]` → `{argument}`"))
            }
            Packing::Objects(list) => Some(format!("the arguments are in `{list}[]`")),
            Packing::Edits(list, old, new) => Some(format!(
                "`{list}[]`: `{old}` → `old_text`, `{new}` → `new_text`"
            )),
            Packing::Envelope(key) => Some(format!("`{key}`: a patch of several files")),
            Packing::Diff(key, _) => Some(format!("`{key}`: a unified diff of one file")),
        });
        (when, arguments.join("; "))
    }

    /// Returns whether one call can contain operations of different canonical tools.
    pub(crate) fn is_several(&self) -> bool {
        matches!(self.packing, Packing::Envelope(_))
    }

    /// Sets the place where the tool is declared.
    #[must_use]
    pub const fn at(self, reference: &'static str) -> Self {
        Self { reference, ..self }
    }

    /// Sets the argument, and its value, that selects the tool.
    #[must_use]
    pub const fn when(self, key: &'static str, value: &'static str) -> Self {
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

    /// Restricts the row to calls without the argument `key` and, if `with` is set, with that argument.
    #[must_use]
    pub const fn without(self, key: &'static str, with: Option<&'static str>) -> Self {
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

    /// Restricts the row to calls with the argument `key`.
    #[must_use]
    pub const fn only_with(self, key: &'static str) -> Self {
        // No argument has an empty name, so only `with` restricts the row.
        self.without("", Some(key))
    }

    /// Adds other names by which matchers of the system find the tool.
    #[must_use]
    pub const fn matched_as(self, names: &'static [&'static str]) -> Self {
        Self {
            matched_as: names,
            ..self
        }
    }

    /// Sets how operations are packed.
    #[must_use]
    pub const fn packed(self, packing: Packing) -> Self {
        Self { packing, ..self }
    }
}

/// Creates an argument with the same name in both.
pub const fn same(name: &'static str) -> ArgumentRow {
    renamed(name, name)
}

/// Creates an argument from the system's name and the canonical name.
pub const fn renamed(own: &'static str, canonical: &'static str) -> ArgumentRow {
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
            Unit::Milliseconds => format!("{names} (milliseconds)"),
        }
    }

    /// Adds further names that the system accepts.
    #[must_use]
    pub const fn or(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    /// Sets how values differ.
    #[must_use]
    pub const fn unit(self, unit: Unit) -> Self {
        Self { unit, ..self }
    }
}

/// Returns whether a value counts as a missing argument.
pub(crate) fn is_blank(value: &Value) -> bool {
    value.is_null() || value.as_str().is_some_and(|text| text.trim().is_empty())
}
