//! The JSON Schema of the contract.

use serde_json::{Value, json};
use tenterhook_protocol::schema::schema;
use tenterhook_protocol::{EventKind, FieldInfo, FieldType};

#[test]
fn an_effect_schema_holds_what_the_event_honours_and_nothing_else() {
    let keys = |name: &str| {
        let schema = schema();
        let properties = schema
            .pointer(&format!("/events/{name}/effect/properties"))
            .cloned()
            .unwrap();
        let mut keys: Vec<String> = properties.as_object().unwrap().keys().cloned().collect();
        keys.sort();
        keys
    };
    assert_eq!(keys("turn_start"), ["context", "metadata", "notices"]);
    assert_eq!(
        keys("before_compaction"),
        ["block", "metadata", "notices", "supply"]
    );
    assert_eq!(
        keys("pre_tool_use"),
        [
            "block",
            "context",
            "metadata",
            "notices",
            "permission",
            "rewrite",
            "stop_run"
        ]
    );
}

#[test]
fn the_fields_of_the_catalogue_are_those_of_the_schemas() {
    for kind in EventKind::ALL {
        let schema = kind.payload_schema().to_value();
        let properties = schema.get("properties").and_then(Value::as_object);
        let required = schema.get("required").and_then(Value::as_array);
        let is_closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
        let mut described: Vec<FieldInfo> = properties
            .into_iter()
            .flatten()
            .map(|(name, property)| FieldInfo {
                name: name.clone().leak(),
                value: type_of(property),
                words: words_of(&schema, property).leak(),
                is_required: required.is_some_and(|list| list.contains(&json!(name))),
            })
            .collect();
        described.sort_unstable_by_key(|field| field.name);
        let info = kind.info();
        let mut fields = info.fields.unwrap_or_default().to_vec();
        fields.sort_unstable_by_key(|field| field.name);
        if *kind == EventKind::Custom {
            assert!(info.has_open_payload());
            continue;
        }
        assert_eq!(fields, described, "{}", info.name);
        assert_eq!(info.has_open_payload(), !is_closed, "{}", info.name);
    }
}

fn type_of(property: &Value) -> FieldType {
    let named = property.get("type");
    let first = named.and_then(|named| named.as_array()?.first());
    match first.or(named).and_then(Value::as_str) {
        Some("string") => FieldType::Text,
        Some("integer" | "number") => FieldType::Number,
        Some("boolean") => FieldType::Boolean,
        Some("array") => FieldType::List,
        Some("object") => FieldType::Map,
        _ => FieldType::Other,
    }
}

/// Returns the allowed words of a property whose type is one of the schema's definitions.
fn words_of(schema: &Value, property: &Value) -> Vec<&'static str> {
    let path = property.get("$ref").and_then(Value::as_str);
    let Some(defined) = path.and_then(|path| schema.pointer(path.strip_prefix('#')?)) else {
        return Vec::new();
    };
    let listed = defined.get("enum").and_then(Value::as_array).into_iter();
    let choices = defined.get("oneOf").and_then(Value::as_array).into_iter();
    let words = listed
        .flatten()
        .chain(choices.flatten().map(|choice| &choice["const"]));
    words
        .map(|word| &*word.as_str().unwrap().to_owned().leak())
        .collect()
}

#[test]
fn every_event_has_a_payload_schema() {
    let schema = schema();
    for kind in EventKind::ALL {
        let payload = schema.pointer(&format!(
            "/events/{}/payload",
            kind.info().name.replace('/', "~1")
        ));
        assert!(
            payload.is_some_and(Value::is_object),
            "{}",
            kind.info().name
        );
    }
}
