//! The JSON Schema of the whole contract.

use serde_json::{Value, json};

use crate::any_effect::AnyEffect;
use crate::any_outcome::AnyOutcome;
use crate::capability::Capability;
use crate::catalogue::{EventInfo, RewriteMode};
use crate::envelope::Origin;
use crate::event_kind::EventKind;
use crate::journal::JournalRecord;

/// Returns one JSON document. It contains, for every event, its payload and the keys of the effect
/// that it honours, and the types that all events share.
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

/// Returns the schema of the answers to one event: the keys of [`AnyEffect`] that the event
/// honours.
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
                    RewriteMode::Replace => "replaces the old value",
                    RewriteMode::Merge => "its keys replace the same keys of the old value",
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
