//! JSON Schema of the whole contract.

use serde_json::{Value, json};

use crate::capability::Capability;
use crate::catalogue::{EventInfo, RewriteMode};
use crate::effect::AnyEffect;
use crate::envelope::Origin;
use crate::event_kind::EventKind;
use crate::journal::JournalRecord;
use crate::outcome::AnyOutcome;

/// Returns one document: for every event its payload and the keys of the effect that it honours, and the
/// shapes that all events share.
pub fn schema() -> Value {
    let events: serde_json::Map<String, Value> = EventKind::ALL
        .iter()
        .map(|kind| (kind.info().name.to_owned(), event_schema(*kind)))
        .collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Tenterhook protocol",
        "events": events,
        "origin": schemars::schema_for!(Origin),
        "effect": schemars::schema_for!(AnyEffect),
        "outcome": schemars::schema_for!(AnyOutcome),
        "journal": schemars::schema_for!(JournalRecord),
    })
}

fn event_schema(kind: EventKind) -> Value {
    let info = kind.info();
    json!({
        "class": info.class,
        "run": info.run,
        "subject": info.subject,
        "payload": kind.payload_schema(),
        "effect": effect_schema(info),
    })
}

/// Returns the schema of what hooks of one event may answer: the keys of [`AnyEffect`] that it honours.
fn effect_schema(info: &EventInfo) -> Value {
    let whole = schemars::schema_for!(AnyEffect).to_value();
    let always = ["notices", "metadata"].into_iter();
    let honoured = info.capabilities.iter().map(Capability::as_str);
    let special = [
        ("rewrite", !info.rewrites.is_empty()),
        ("collect", !info.collects.is_empty()),
        ("supply", info.supplies.is_some()),
    ];
    let keys = honoured
        .chain(
            special
                .into_iter()
                .filter_map(|(key, used)| used.then_some(key)),
        )
        .chain(always);
    let mut properties: serde_json::Map<String, Value> = keys
        .filter_map(|key| Some((key.to_owned(), whole.get("properties")?.get(key)?.clone())))
        .collect();
    if !info.rewrites.is_empty() {
        let fields: serde_json::Map<String, Value> = info
            .rewrites
            .iter()
            .map(|rewrite| {
                let how = match rewrite.mode {
                    RewriteMode::Replace => "takes the place of the old value",
                    RewriteMode::Merge => "its keys take the place of the same keys",
                };
                (rewrite.field.to_owned(), json!({ "description": how }))
            })
            .collect();
        properties.insert(
            "rewrite".to_owned(),
            json!({ "properties": fields, "additionalProperties": false }),
        );
    }
    json!({
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
        "$defs": whole.get("$defs"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
