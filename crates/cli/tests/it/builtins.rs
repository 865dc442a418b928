//! `docs/reference/builtins.md`: every built-in has a section, and the examples work as described.

use std::collections::BTreeSet;

use serde_json::Value;
use tenterhook_builtins::builtin::BUILTINS;

use crate::stage::Test;

const PAGE: &str = include_str!("../../../../docs/reference/builtins.md");

/// The section of a built-in.
struct Section {
    name: &'static str,
    /// The fenced blocks in order: their languages and texts.
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
        let example = section
            .blocks
            .iter()
            .find(|(kind, _)| kind.starts_with("yaml"));
        let (_, example) = example.unwrap_or_else(|| panic!("{} has no example", section.name));
        assert!(example.contains(&format!("builtin: {}", section.name)));
    }
}

#[test]
fn every_section_says_whether_the_built_in_has_arguments() {
    for builtin in BUILTINS {
        let mut sections = PAGE.split("\n## ").skip(1);
        let section = sections.find(|text| text.lines().next() == Some(builtin.name));
        let says = |text| section.is_some_and(|section| section.contains(text));
        assert_eq!(
            says("**Arguments:** none") || says("It takes no arguments."),
            builtin.arguments == "none",
            "`{}` takes as arguments: {}; say so in its section of docs/reference/builtins.md",
            builtin.name,
            builtin.arguments
        );
    }
}

#[test]
fn every_example_is_accepted_without_a_word() {
    for section in sections() {
        for (_, hooks) in section
            .blocks
            .iter()
            .filter(|(kind, _)| kind.starts_with("yaml"))
        {
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

#[test]
fn the_model_gets_the_end_of_a_large_result_and_the_file_is_gone_after_the_session() {
    let ran = Test::new()
        .args(["run", "go", "--no-journal", "--yes"])
        .script(
            "turns:\n  - tool_calls: [{name: shell, arguments: {cmd: \"seq 1 2500\"}}]\n  - text: done\n",
        )
        .hooks(
            "hooks:\n  - {event: [tool_response_transform, session_end], builtin: limit_large_tool_results}\n  \
             - {event: post_tool_use, command: \"cat > seen.json; ls $TMPDIR/tenterhook-tool-results-*/*/ > files\"}\n",
        )
        .run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let seen = ran.file("seen.json");
    assert!(seen.contains("Tool call result was too large"), "{seen}");
    assert!(
        seen.contains("2500") && !seen.contains("u000a400\\"),
        "{seen}"
    );
    assert!(ran.file("files").starts_with("tool-result-"));
    let folders = std::fs::read_dir(ran.path("tmp")).unwrap();
    let sessions: usize = folders
        .map(|folder| std::fs::read_dir(folder.unwrap().path()).unwrap().count())
        .sum();
    assert_eq!(sessions, 0);
}

#[test]
fn the_same_question_is_answered_without_the_model() {
    let data = tempfile::tempdir().unwrap();
    let ask = |script: &str| {
        Test::new()
            .args(["run", "what is a hook?", "--no-journal"])
            .variable("TENTERHOOK_DATA_DIR", data.path().to_str().unwrap())
            .script(script)
            .hooks("hooks: [{event: stop, builtin: cache_response}]")
            .run()
    };
    assert_eq!(
        ask("turns: [{text: a callback}]").all(),
        ("a callback\n", "", 0)
    );
    let again = ask("turns: [{text: something else}]");
    assert_eq!(again.all(), ("a callback\n", "", 0));
}

/// D-113
#[test]
fn a_run_ends_at_the_limit_of_the_builtin() {
    let ran = Test::new()
        .args(["run", "go", "--no-journal", "--json"])
        .script(
            "turns:\n  - tool_calls: [{name: list_directory}]\n  \
             - tool_calls: [{name: list_directory, arguments: {path: .}}]\n  - text: never\n",
        )
        .hooks("hooks: [{event: before_llm_call, builtin: max_iterations, args: [2]}]")
        .run();
    let report = ran.json();
    assert_eq!(report["end"], "hook_blocked", "{report}");
    let reason = "Agent terminated: max_iterations builtin reached its limit of 2 model call(s).";
    assert!(
        report["reason"].as_str().unwrap().ends_with(reason),
        "{report}"
    );
    assert_eq!(report["turns"], 3);
}
