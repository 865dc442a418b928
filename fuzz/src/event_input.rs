//! Events that are read from JSON: the input of `tenterhook fire`, and what hooks of every system got.

use std::sync::Arc;

use serde_json::Value;
use tenterhook_engine::{
    Envelope, EventId, EventName, EventRef, JsonObject, Origin, UniqueObject, parse_event,
};
use tenterhook_systems::form::{Form, forms};
use tenterhook_systems::native::Native;

/// Checks an input. The first line selects the event.
pub fn check(data: &[u8]) {
    let Some((name, json)) = crate::event(data) else {
        return;
    };
    let Ok(UniqueObject(object)) = serde_json::from_slice(json) else {
        return;
    };
    if let Ok(form) = Form::recognise(&name, &object) {
        assert_eq!(
            Form::by_name(form.name).map(|form| form.name),
            Some(form.name)
        );
    }
    for form in forms() {
        read(form, &name, &object);
    }
}

/// Reads the object in one form. An error must have a text.
fn read(form: &Form, name: &EventName, object: &JsonObject) {
    let read = match form.read(name, object) {
        Ok(read) => read,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    assert_eq!(read.event.name(), name.to_string());
    assert_eq!(read.event.info().kind, name.kind());
    let payload = read.event.payload().expect("a payload is JSON");
    // The payload is the event: reading it again changes nothing.
    let again = parse_event(name, payload.clone().into()).expect("a payload is an event");
    assert_eq!(again.payload().expect("a payload is JSON"), payload);
    write(
        &EventRef::new(Arc::from(read.event), envelope(read.origin)),
        name,
    );
}

/// Writes the event for the hooks of every system.
fn write(event: &EventRef, name: &EventName) {
    let dialects = forms().filter_map(|form| form.dialect(name));
    for dialect in dialects.chain([Native::new()]) {
        if !dialect.has_event(event) {
            continue;
        }
        // A dialect may not have this event, or no tool for this call.
        if let Ok(written) = event.encoded(&*dialect) {
            let written: Value = serde_json::from_slice(&written).expect("an event is JSON");
            assert!(written.is_object(), "{}: {written}", dialect.name());
        }
    }
}

fn envelope(origin: Origin) -> Arc<Envelope> {
    let time = jiff::Timestamp::UNIX_EPOCH;
    Arc::new(Envelope::stamped(
        Arc::new(origin),
        1,
        EventId::generate(),
        time,
    ))
}
