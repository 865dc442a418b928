//! What the types and the pages promise.

#![expect(
    clippy::unwrap_used,
    reason = "a test stops at the first thing that is not as it should be"
)]

use std::fmt::Write as _;
use std::path::Path;

use tenterhook_protocol::capability::Capability;
use tenterhook_protocol::{EventClass, EventInfo, RewriteMode, Run, events};

#[test]
fn answers_that_an_event_does_not_honour_do_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}

/// Set it to write the page instead of comparing it.
const UPDATE: &str = "TENTERHOOK_INTERNAL__UPDATE_DOCS";

#[test]
fn the_page_of_events_is_the_catalogue() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/events.md");
    let table = page();
    let written = std::fs::read_to_string(&path).unwrap();
    // What stands below the table is written by hand.
    let notes = written
        .find("\n## ")
        .map_or("", |start| written.split_at(start).1);
    let page = format!("{table}{notes}");
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    assert!(
        written == page,
        "run the test with {UPDATE}=1 and look at the difference"
    );
}

#[test]
fn the_page_of_hooks_lists_what_a_failing_redactor_withholds() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/hooks.md");
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

fn page() -> String {
    let mut page = String::from(
        "# Events\n\n\
         Every event of the catalogue. A *gate* can stop what it announces, and a hook of it that fails denies by default; an \
         *observer* cannot.\n\
         The *subject* is what matchers look at. In *series* each hook sees what the one before left; in *parallel* all see the \
         same.\n\
         Payloads and effects are described in full by the crate's documentation. User-defined events are named `x-<vendor>.<name>`.\n\n\
         | event | class | run | subject | hooks may |\n|---|---|---|---|---|\n",
    );
    for info in events() {
        writeln!(page, "{}", row(info)).unwrap();
    }
    page
}

fn row(info: &EventInfo) -> String {
    let class = match info.class {
        EventClass::Gate => "gate",
        EventClass::Observer => "observer",
    };
    let run = match info.run {
        Run::Series => "series",
        Run::Parallel => "parallel",
    };
    let subject = info
        .subject
        .map(|subject| format!("`{subject}`"))
        .unwrap_or_default();
    format!(
        "| `{}` | {class} | {run} | {subject} | {} |",
        info.name,
        powers(info)
    )
}

fn powers(info: &EventInfo) -> String {
    let mut powers: Vec<String> = info
        .capabilities
        .iter()
        .map(|capability| power(capability).to_owned())
        .collect();
    powers.extend(info.rewrites.iter().map(|rewrite| match rewrite.mode {
        RewriteMode::Replace => format!("replace `{}`", rewrite.field),
        RewriteMode::Merge => format!("patch `{}`", rewrite.field),
    }));
    powers.extend(
        info.collects
            .iter()
            .map(|list| format!("add to `{}`", list.name)),
    );
    powers.extend(info.supplies.map(|_| "supply the product".to_owned()));
    if powers.is_empty() {
        "watch".to_owned()
    } else {
        powers.join(", ")
    }
}

fn power(capability: Capability) -> &'static str {
    match capability {
        Capability::Permission => "allow, ask, deny",
        Capability::Block => "block",
        Capability::Context => "add context",
        Capability::Inject => "inject messages",
        Capability::FollowUp => "add follow-ups",
        Capability::Handled => "handle it",
        Capability::StopRun => "stop the run",
        _ => "do more",
    }
}
