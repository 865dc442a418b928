//! `docs/builtins.md`: every built-in has its section, and the examples do what the page says.

use std::collections::BTreeSet;

use serde_json::Value;
use tenterhook_handlers::builtin::BUILTINS;

use crate::stage::Test;

const PAGE: &str = include_str!("../../../../docs/builtins.md");

/// The section of a built-in.
struct Section {
    name: &'static str,
    /// The fenced blocks in order: what they are of, and their text.
    blocks: Vec<(&'static str, &'static str)>,
}

fn sections() -> Vec<Section> {
    let sections = PAGE.split("\n## ").skip(1);
    sections
        .map(|text| {
            let (name, body) = text.split_once('\n').unwrap();
            let fenced = body.split("```").skip(1).step_by(2);
            let blocks = fenced.map(|block| block.split_once('\n').unwrap());
            Section {
                name,
                blocks: blocks.collect(),
            }
        })
        .collect()
}

#[test]
fn every_builtin_has_a_section_with_an_example() {
    let documented: BTreeSet<&str> = sections().iter().map(|section| section.name).collect();
    let known: BTreeSet<&str> = BUILTINS.iter().map(|builtin| builtin.name).collect();
    assert_eq!(documented, known);
    for section in sections() {
        let example = section.blocks.iter().find(|(kind, _)| *kind == "yaml");
        let (_, example) = example.unwrap_or_else(|| panic!("{} has no example", section.name));
        assert!(example.contains(&format!("builtin: {}", section.name)));
    }
}

#[test]
fn every_example_is_accepted_without_a_word() {
    for section in sections() {
        for (_, hooks) in section.blocks.iter().filter(|(kind, _)| *kind == "yaml") {
            let ran = Test::new()
                .args(["check", "hooks.yaml"])
                .file("hooks.yaml", hooks)
                .run();
            assert_eq!(
                (ran.status, ran.stderr.as_str()),
                (0, ""),
                "{}",
                section.name
            );
        }
    }
}

#[test]
fn every_event_has_the_outcome_that_the_page_says() {
    for section in sections() {
        for blocks in section.blocks.windows(3) {
            let [("yaml", hooks), ("json", event), ("json", expected)] = blocks else {
                continue;
            };
            let mut event: Value = serde_json::from_str(event).unwrap();
            let name = event.as_object_mut().unwrap().remove("event").unwrap();
            let ran = Test::new()
                .args(["fire", name.as_str().unwrap(), "--json"])
                .hooks(hooks)
                .event(&event.to_string())
                .run();
            let outcome: Value = serde_json::from_str(&ran.stdout)
                .unwrap_or_else(|_| panic!("{}: {} {}", section.name, ran.stdout, ran.stderr));
            let expected: Value = serde_json::from_str(expected).unwrap();
            for (key, value) in expected.as_object().unwrap() {
                assert_eq!(&outcome[key], value, "{} {key}: {outcome}", section.name);
            }
        }
    }
}
