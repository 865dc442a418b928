//! The dialect of native hooks: docker-agent's contract with Tenterhook's additions.

use std::sync::Arc;

use serde_json::{Value, json};
use tenterhook_engine::{
    Dialect, EventInfo, EventRef, OnError, Policy, ReadError, Reply, WriteError, native_policy,
};
use tenterhook_protocol::{AnyEffect, JsonObject};

use crate::docker_agent::contract::{Contract, ContractExtension};
use crate::docker_agent::{read, skeleton, write};

static CONTRACT: Contract = Contract {
    name: "native",
    shown_as: None,
    extension: Some(ContractExtension {
        keys: envelope_keys,
        zeros: envelope_zeros,
    }),
};

/// The keys with string values that native hooks get in addition to docker-agent's keys.
const ENVELOPE: [&str; 6] = [
    "event_id",
    "timestamp",
    "invoked_by",
    "parent_agent_id",
    "workspace",
    "recipe",
];

/// The dialect.
#[derive(Debug)]
pub struct Native;

impl Native {
    /// Creates the dialect.
    #[expect(
        clippy::new_ret_no_self,
        reason = "callers use a dialect only as a trait object"
    )]
    pub fn new() -> Arc<dyn Dialect> {
        Arc::new(Self)
    }
}

impl Dialect for Native {
    fn name(&self) -> &'static str {
        CONTRACT.name
    }

    fn write(&self, event: &EventRef) -> Result<Vec<u8>, WriteError> {
        write::write(&CONTRACT, event)
    }

    fn skeleton(&self, info: &EventInfo) -> Option<JsonObject> {
        skeleton::skeleton(&CONTRACT, info.kind)
    }

    fn read(
        &self,
        info: &EventInfo,
        reply: &Reply<'_>,
        strict: bool,
    ) -> Result<AnyEffect, ReadError> {
        read::read(&CONTRACT, info, reply, strict)
    }

    fn policy(&self, info: &EventInfo, configured: Option<OnError>) -> Policy {
        native_policy(info, configured)
    }
}

/// Returns the keys that tell native hooks where an event comes from.
fn envelope_keys(event: &EventRef) -> Vec<(&'static str, Value)> {
    let envelope = event.envelope();
    let origin = &envelope.origin;
    let parent = origin.agent.parent_id.as_ref().map(|id| id.as_str().into());
    vec![
        ("event_id", envelope.event_id().to_string().into()),
        ("sequence", envelope.sequence.into()),
        ("timestamp", envelope.timestamp().to_string().into()),
        ("invoked_by", origin.invoked_by.as_str().into()),
        ("parent_agent_id", parent.unwrap_or_default()),
        ("workspace", origin.workspace.clone().into()),
        ("recipe", origin.recipe.clone().into()),
        ("origin_extra", origin.extra.clone().into()),
    ]
}

fn envelope_zeros() -> Vec<(&'static str, Value)> {
    let texts = ENVELOPE.map(|key| (key, json!("")));
    texts
        .into_iter()
        .chain([("sequence", json!(0)), ("origin_extra", json!({}))])
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use tenterhook_engine::event::{PostToolUse, PreToolUse, Stop};
    use tenterhook_engine::{EventKind, Origin};
    use tenterhook_protocol::{AnyEvent, Envelope};

    use super::*;

    fn written(event: Arc<dyn AnyEvent>) -> BTreeSet<String> {
        let origin = Origin::new("s", "/w").with_workspace("w").with_recipe("r");
        let event = EventRef::new(event, Arc::new(Envelope::new(Arc::new(origin), 1)));
        let bytes = Native::new().write(&event).unwrap();
        let keys: JsonObject = serde_json::from_slice(&bytes).unwrap();
        keys.into_iter().map(|(key, _)| key).collect()
    }

    #[test]
    fn every_key_that_is_written_is_known_before() {
        let call = PreToolUse::new("shell");
        let result = PostToolUse::new("shell");
        let stop = Stop::new().with_response("done");
        let events: [Arc<dyn AnyEvent>; 3] = [Arc::new(call), Arc::new(result), Arc::new(stop)];
        for event in events {
            let known = Native::new().skeleton(event.info()).unwrap();
            for key in written(Arc::clone(&event)) {
                assert!(known.contains_key(&key), "{event:?}: {key}");
            }
        }
    }

    #[test]
    fn zeros_have_the_types_of_their_keys() {
        let keys = skeleton::skeleton(&CONTRACT, EventKind::BeforeLlmCall).unwrap();
        assert_eq!(keys["iteration"], json!(0));
        assert_eq!(keys["messages"], json!([]));
    }

    #[test]
    fn open_payloads_have_no_known_keys() {
        for kind in [EventKind::Custom, EventKind::TaskCreated] {
            assert_eq!(skeleton::skeleton(&CONTRACT, kind), None, "{kind:?}");
        }
    }
}
