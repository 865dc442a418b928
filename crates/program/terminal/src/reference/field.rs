//! The fields of a payload, read from its JSON Schema.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;
use tenterhook_engine::{EventKind, JsonObject};

/// The key below which a host adds facts of its own. Every event has it, so no page lists it.
const EXTRA: &str = "extra";

/// One field of a payload, or of an object in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FieldRow {
    /// The name.
    pub name: String,
    /// The type in words: `string`, `array of Message`.
    #[serde(rename = "type")]
    pub type_name: String,
    /// The object type that the field holds, or holds a list of.
    #[serde(skip)]
    pub object: Option<String>,
    /// Whether the field must be there.
    pub required: bool,
    /// The value that stands for a missing field, unless that is `null`, `false`, zero or empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// What the field means.
    pub meaning: String,
    /// The allowed words, if the field has a fixed set of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<WordRow>,
}

/// One word of a fixed set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WordRow {
    /// The word.
    pub word: String,
    /// What it means.
    pub meaning: String,
}

/// A type of objects in payloads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ObjectType {
    /// The name, as field types use it.
    pub name: String,
    /// What it is.
    pub meaning: String,
    /// Its fields.
    pub fields: Vec<FieldRow>,
}

/// The fields of one event, and the types of the objects in them.
#[derive(Debug)]
pub(crate) struct Payload {
    pub(crate) meaning: String,
    pub(crate) fields: Vec<FieldRow>,
    pub(crate) objects: Vec<ObjectType>,
}

impl Payload {
    /// Reads the schema of an event's payload.
    pub(crate) fn of(kind: EventKind, schema: &Value) -> Self {
        let reader = SchemaReader { root: schema };
        let info = kind.info();
        let mut fields = reader.fields(schema);
        // A map of JSON sorts its keys in some builds; the catalogue has the order of the declaration.
        let position = |field: &FieldRow| {
            let mut names = info.fields.unwrap_or_default().iter();
            names.position(|info| info.name == field.name)
        };
        fields.sort_by_key(position);
        Self {
            meaning: meaning(schema),
            objects: reader.objects(&fields),
            fields: if info.has_open_payload() {
                Vec::new()
            } else {
                fields
            },
        }
    }
}

/// Reads types of one schema.
struct SchemaReader<'a> {
    root: &'a Value,
}

/// What the schema says about the values of a field.
#[derive(Debug, Default)]
struct ValueType {
    name: String,
    object: Option<String>,
    words: Vec<WordRow>,
}

impl ValueType {
    fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..Self::default()
        }
    }
}

impl<'a> SchemaReader<'a> {
    fn fields(&self, object: &'a Value) -> Vec<FieldRow> {
        let required = object.get("required").and_then(Value::as_array);
        let is_required = |name: &str| {
            let mut names = required.into_iter().flatten();
            names.any(|required| required == name)
        };
        let properties = object.get("properties").and_then(Value::as_object);
        let rows = properties.into_iter().flatten();
        rows.filter(|(name, _)| *name != EXTRA)
            .map(|(name, property)| {
                let value = self.value_type(property);
                FieldRow {
                    required: is_required(name),
                    default: property
                        .get("default")
                        .filter(|value| says_more(value))
                        .cloned(),
                    meaning: meaning(property),
                    type_name: value.name,
                    object: value.object,
                    words: value.words,
                    name: name.clone(),
                }
            })
            .collect()
    }

    /// Returns the object types of the fields and, after each, the types of its own fields.
    fn objects(&self, fields: &[FieldRow]) -> Vec<ObjectType> {
        let mut found = Vec::new();
        let mut seen = BTreeSet::new();
        self.add_objects(fields, &mut seen, &mut found);
        found
    }

    fn add_objects(
        &self,
        fields: &[FieldRow],
        seen: &mut BTreeSet<String>,
        found: &mut Vec<ObjectType>,
    ) {
        for name in fields.iter().filter_map(|field| field.object.as_ref()) {
            let Some(definition) = self.definition(name) else {
                continue;
            };
            if !seen.insert(name.clone()) {
                continue;
            }
            let fields = self.fields(definition);
            found.push(ObjectType {
                name: name.clone(),
                meaning: meaning(definition),
                fields: fields.clone(),
            });
            self.add_objects(&fields, seen, found);
        }
    }

    fn definition(&self, name: &str) -> Option<&'a Value> {
        self.root.get("$defs")?.get(name)
    }

    fn value_type(&self, property: &'a Value) -> ValueType {
        if let Some(path) = property.get("$ref").and_then(Value::as_str) {
            return self.referenced(path.rsplit('/').next().unwrap_or_default());
        }
        let choices = property.get("anyOf").and_then(Value::as_array);
        let mut choices = choices.into_iter().flatten();
        // The other choice is `null`, which stands for a field that is left out.
        if let Some(choice) = choices.find(|choice| choice.get("$ref").is_some()) {
            return self.value_type(choice);
        }
        let names = property.get("type");
        let first = names.and_then(|names| names.as_array()?.first());
        match first.or(names).and_then(Value::as_str) {
            Some("array") => self.array(property),
            Some(name) => ValueType::named(name),
            None => ValueType::named("any JSON value"),
        }
    }

    fn referenced(&self, name: &str) -> ValueType {
        let Some(definition) = self.definition(name) else {
            return ValueType::named("any JSON value");
        };
        let words = definition.get("oneOf").and_then(Value::as_array);
        let words: Vec<WordRow> = words.into_iter().flatten().filter_map(word).collect();
        if !words.is_empty() {
            return ValueType {
                words,
                ..ValueType::named("string")
            };
        }
        if definition.get("properties").is_some() {
            return ValueType {
                object: Some(name.to_owned()),
                ..ValueType::named(name)
            };
        }
        self.value_type(definition)
    }

    fn array(&self, property: &'a Value) -> ValueType {
        let item = property.get("items").map(|items| self.value_type(items));
        let item = item.unwrap_or_else(|| ValueType::named("any JSON value"));
        let name = if item.object.is_some() {
            format!("array of {}", item.name)
        } else {
            format!("array of {}s", item.name)
        };
        ValueType { name, ..item }
    }
}

/// Returns a word of a fixed set.
fn word(choice: &Value) -> Option<WordRow> {
    let word = choice.get("const")?.as_str()?.to_owned();
    let meaning = meaning(choice);
    Some(WordRow { word, meaning })
}

/// Returns whether a default means something other than a missing value.
fn says_more(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) | Value::Object(_) => false,
        Value::Bool(true) => true,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
    }
}

/// Returns the first paragraph of a description as one line, without the links of rustdoc.
fn meaning(schema: &Value) -> String {
    let text = schema.get("description").and_then(Value::as_str);
    let paragraph = text.unwrap_or_default().split("\n\n").next();
    let words: Vec<&str> = paragraph.unwrap_or_default().split_whitespace().collect();
    without_links(&words.join(" "))
}

/// Returns text in which links, `[text](path)` and ``[`text`]``, are replaced with their text, because their targets
/// are Rust items.
fn without_links(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, link)) = rest.split_once('[') {
        let Some((label, after)) = link.split_once(']') else {
            break;
        };
        plain.push_str(before);
        plain.push_str(label);
        let target = after
            .strip_prefix('(')
            .and_then(|target| target.split_once(')'));
        rest = target.map_or(after, |(_, after)| after);
    }
    plain.push_str(rest);
    plain
}

/// Returns a payload with its keys in the order of the fields.
pub(crate) fn ordered(payload: &JsonObject, fields: &[FieldRow]) -> JsonObject {
    let mut rest = payload.clone();
    let mut ordered = JsonObject::new();
    for field in fields {
        if let Some(value) = payload.get(&field.name) {
            ordered.insert(field.name.clone(), value.clone());
        }
    }
    rest.retain(|key, _| !ordered.contains_key(key));
    ordered.extend(rest);
    ordered
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn links_of_rustdoc_become_their_text() {
        for (text, expected) in [
            ("as [`Message`] says", "as `Message` says"),
            (
                "a [notice](crate::reference::Effect::notice) too",
                "a notice too",
            ),
            ("no link", "no link"),
            ("open [bracket", "open [bracket"),
        ] {
            assert_eq!(without_links(text), expected);
        }
    }

    #[test]
    fn types_are_words() {
        let schema = json!({
            "description": "First\nparagraph.\n\nSecond.",
            "properties": {
                "list": {"type": "array", "items": {"type": "string"}},
                "maybe": {"type": ["integer", "null"]},
                "object": {"anyOf": [{"$ref": "#/$defs/Thing"}, {"type": "null"}]},
                "things": {"type": "array", "items": {"$ref": "#/$defs/Thing"}},
                "word": {"$ref": "#/$defs/Word", "default": "a"},
                "any": {},
            },
            "required": ["list"],
            "$defs": {
                "Thing": {"description": "A thing.", "properties": {"id": {"type": "string"}}},
                "Word": {"oneOf": [{"type": "string", "const": "a", "description": "The first."}]},
            },
        });
        let reader = SchemaReader { root: &schema };
        let fields = reader.fields(&schema);
        let of = |name: &str| {
            let field = fields.iter().find(|field| field.name == name).unwrap();
            (field.type_name.as_str(), field.required, field.words.len())
        };
        assert_eq!(of("list"), ("array of strings", true, 0));
        assert_eq!(of("maybe"), ("integer", false, 0));
        assert_eq!(of("object"), ("Thing", false, 0));
        assert_eq!(of("things"), ("array of Thing", false, 0));
        assert_eq!(of("word"), ("string", false, 1));
        assert_eq!(of("any"), ("any JSON value", false, 0));
        assert_eq!(meaning(&schema), "First paragraph.");
        assert_eq!(reader.objects(&fields).len(), 1);
    }
}
