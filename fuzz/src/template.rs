//! Templates of prompts and of context, which a hook file contains.

use std::sync::{Arc, LazyLock};

use tenterhook_engine::{Envelope, EventId, EventName, EventRef, Origin, parse_event};
use tenterhook_runners::template::{MissingKey, SOURCE_LIMIT, Template, TemplateScope};
use tenterhook_systems::docker_agent::DockerAgent;
use tenterhook_systems::example::example;
use tenterhook_systems::native::Native;

/// The longest text that a rendering may produce.
const LIMIT: usize = 4 << 10;

/// The event that templates are rendered with.
static EVENT: LazyLock<EventRef> = LazyLock::new(|| {
    let name = name();
    let event = parse_event(&name, example(&name).into()).expect("an example is an event");
    let origin = Arc::new(Origin::new("s1", "/project"));
    let time = jiff::Timestamp::UNIX_EPOCH;
    let envelope = Envelope::stamped(origin, 1, EventId::generate(), time);
    EventRef::new(Arc::from(event), Arc::new(envelope))
});

fn name() -> EventName {
    "post_tool_use".parse().expect("an event of the catalogue")
}

/// Checks a template. The first byte selects the dialect, and what a missing key means.
pub fn check(data: &[u8]) {
    let Some((number, rest)) = crate::selected(data) else {
        return;
    };
    let Ok(source) = std::str::from_utf8(rest) else {
        return;
    };
    let dialect = if number & 1 == 0 {
        Native::new()
    } else {
        DockerAgent::agent_file()
    };
    // Without events, the keys are not known, so any key may be used.
    let events = if number & 2 == 0 {
        vec![name()]
    } else {
        Vec::new()
    };
    let missing = if number & 4 == 0 {
        MissingKey::Failure
    } else {
        MissingKey::Printed
    };
    let scope = TemplateScope::new(dialect, &events);
    let template = match Template::parse(source, &scope, missing, LIMIT) {
        Ok(template) => template,
        Err(error) => {
            let before = source
                .get(..error.offset)
                .expect("an offset in the template");
            assert_eq!(error.line, before.matches('\n').count() + 1, "{error}");
            assert!(!error.message.is_empty());
            return;
        }
    };
    assert!(source.len() <= SOURCE_LIMIT);
    let first = template.render(&EVENT);
    match &first {
        Ok(text) => assert!(text.len() <= LIMIT, "{} bytes", text.len()),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    assert_eq!(first, template.render(&EVENT), "two renderings differ");
}
