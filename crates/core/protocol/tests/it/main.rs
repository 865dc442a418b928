//! What the types and the pages promise.
#![expect(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

mod content;
mod decision;
mod event;
#[cfg(feature = "schema")]
mod schema;
mod unique_json;
mod withhold;

#[cfg(feature = "schema")]
use std::fmt::Write as _;
use std::path::Path;

use tenterhook_protocol::events;
#[cfg(feature = "schema")]
use tenterhook_protocol::{EventKind, JsonObject};

#[test]
#[ignore = "compiles the dependencies again for a minute; `.ci/run` runs it"]
fn answers_that_an_event_does_not_honour_do_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}

/// Set it to write the schemas instead of comparing them.
#[cfg(feature = "schema")]
const UPDATE: &str = "TENTERHOOK_INTERNAL__UPDATE_DOCS";

#[test]
fn the_page_of_hooks_lists_what_a_failing_redactor_withholds() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/reference/hooks.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (_, section) = page.split_once("### When a redactor fails").unwrap();
    let rows: Vec<String> = section
        .lines()
        .skip_while(|line| !line.starts_with("| `"))
        .take_while(|line| line.starts_with("| `"))
        .map(|line| {
            line.split('|')
                .skip(1)
                .take(2)
                .collect::<Vec<_>>()
                .join("|")
        })
        .collect();
    let handing_on = events().filter(|info| info.hands_on_result());
    let expected: Vec<String> = handing_on
        .map(|info| {
            let results = info.rewrites.iter().filter(|rewrite| rewrite.is_result);
            let fields: Vec<String> = results
                .map(|rewrite| format!("`{}`", rewrite.field))
                .collect();
            format!(" `{}` | {} ", info.name, fields.join(", "))
        })
        .collect();
    assert_eq!(rows, expected);
}

#[cfg(feature = "schema")]
#[test]
fn the_schema_of_payloads_stays_as_it_is() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/payloads.json");
    let mut lines = String::from("{\n");
    for (number, kind) in EventKind::ALL.iter().enumerate() {
        let comma = if number == 0 { "" } else { ",\n" };
        let schema = kind.payload_schema().to_value();
        write!(lines, "{comma}\"{}\": {schema}", kind.info().name).unwrap();
    }
    lines.push_str("\n}\n");
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(&path, &lines).unwrap();
    }
    // Compared as JSON: whether keys keep their order depends on who else is compiled.
    let read = |text: &str| serde_json::from_str::<JsonObject>(text).unwrap();
    let written = read(&std::fs::read_to_string(&path).unwrap());
    for (event, schema) in &read(&lines) {
        assert_eq!(Some(schema), written.get(event), "{event}");
    }
    assert_eq!(
        EventKind::ALL.len(),
        written.len(),
        "run the test with {UPDATE}=1"
    );
}
