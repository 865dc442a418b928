//! A thousand hooks of one event under a low limit of descriptors.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::Value;

use crate::stage::{Ran, Test};

const HOOKS: usize = 1000;

/// Fires a tool call at guards that each record their run. One of them may deny.
fn fire(denier: Option<usize>) -> Ran {
    let mut hooks = "defaults: {timeout: 300}\nhooks:\n".to_owned();
    for number in 0..HOOKS {
        let decision = if denier == Some(number) {
            "deny"
        } else {
            "allow"
        };
        writeln!(
            hooks,
            "  - name: guard-{number}\n    event: tool_guard\n    \
             command: echo {number} >> ran.log; echo '{{\"decision\":\"{decision}\"}}'"
        )
        .unwrap();
    }
    Test::new()
        .args(["fire", "tool_guard", "--json", "--journal", "journal.jsonl"])
        .event(r#"{"tool_name": "shell"}"#)
        .hooks(&hooks)
        .descriptors(64)
        .run()
}

fn assert_every_guard_ran(ran: &Ran, report: &Value) {
    let numbers: BTreeSet<usize> = ran
        .file("ran.log")
        .lines()
        .map(|line| line.parse().unwrap())
        .collect();
    assert_eq!(ran.file("ran.log").lines().count(), HOOKS);
    assert_eq!(numbers, (0..HOOKS).collect());
    let runs = report["runs"].as_array().unwrap();
    let completed = runs.iter().filter(|run| run["status"] == "completed");
    assert_eq!((runs.len(), completed.count()), (HOOKS, HOOKS));
    assert_eq!(report["failures"], Value::Array(Vec::new()));
    // A record for each hook, and one for the dispatch.
    assert_eq!(ran.lines("journal.jsonl").len(), HOOKS + 1);
}

#[test]
fn a_thousand_guards_that_allow_all_run() {
    let ran = fire(None);
    let report = ran.json();
    assert_every_guard_ran(&ran, &report);
    assert_eq!(report["permission"], "allow");
    assert_eq!((ran.stderr.as_str(), ran.status), ("", 0));
}

#[test]
fn one_deny_among_a_thousand_guards_counts() {
    let ran = fire(Some(613));
    let report = ran.json();
    assert_every_guard_ran(&ran, &report);
    let runs = report["runs"].as_array().unwrap();
    let denied: Vec<&Value> = runs
        .iter()
        .filter(|run| run["effect"] == "deny")
        .map(|run| &run["hook"])
        .collect();
    assert_eq!(denied, ["guard-613"]);
    assert_eq!(report["permission"], "deny");
    assert!(
        ran.stderr
            .starts_with("tool_guard: stopped by `guard-613`: "),
        "{}",
        ran.stderr
    );
    assert_eq!(ran.status, 2);
}
