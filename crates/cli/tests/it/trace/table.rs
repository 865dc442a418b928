//! Shows which event of which hook system fires in which conversation, and whose hooks receive it.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use tenterhook_engine::EventKind;
use tenterhook_systems::{docker_agent, kodelet, morphix, operator, pi};

use super::{is_of_a_gateway, stored};

/// The conversations.
const PLAYS: [&str; 5] = ["docker_agent", "kodelet", "pi", "operator", "morphix"];

/// Events that fire in no conversation, and why.
const MISSING: &[(&str, &str)] = &[("worktree_create", "the agent makes no worktrees")];

/// A system's names of events, with the names here.
fn events(system: &str) -> Vec<(&'static str, EventKind)> {
    match system {
        "docker_agent" => named(
            docker_agent::EVENTS
                .iter()
                .map(|event| (event.name, event.kind)),
        ),
        "kodelet" => {
            let hooks = kodelet::EVENTS.iter().map(|event| (event.name, event.kind));
            let extensions = kodelet::extension::EVENTS.iter();
            named(hooks.chain(extensions.map(|event| (event.name, event.kind))))
        }
        "pi" => named(pi::EVENTS.iter().map(|event| (event.name, event.kind))),
        "operator" => named(
            operator::EVENTS
                .iter()
                .map(|event| (event.name, event.kind)),
        ),
        _ => named(morphix::EVENTS.iter().map(|event| (event.name, event.kind))),
    }
}

fn named(
    events: impl Iterator<Item = (&'static str, EventKind)>,
) -> Vec<(&'static str, EventKind)> {
    events.filter(|(name, _)| !is_of_a_gateway(name)).collect()
}

/// The contents of a golden file: the fired events, and the event names that hooks received.
struct Seen {
    fired: BTreeSet<String>,
    told: BTreeSet<String>,
}

fn seen(play: &str) -> Seen {
    let text = stored(play);
    let (_, lists) = text.split_once("# events\n").unwrap();
    let (fired, told) = lists.split_once("# hooks\n").unwrap();
    let words = |list: &str| {
        let words = list
            .lines()
            .filter_map(|line| line.split_whitespace().next());
        words.map(str::to_owned).collect()
    };
    Seen {
        fired: words(fired),
        told: words(told),
    }
}

#[test]
fn every_event_of_every_document_fires_and_its_hooks_are_told() {
    let all = PLAYS.map(|play| (play, seen(play)));
    let mut table = String::new();
    let mut lacking = Vec::new();
    for (system, own) in &all {
        for (name, kind) in events(system) {
            let canonical = kind.info().name;
            let fired: Vec<&str> = all
                .iter()
                .filter(|(_, seen)| seen.fired.contains(canonical))
                .map(|(play, _)| *play)
                .collect();
            let told: Vec<&str> = all
                .iter()
                .filter(|(play, seen)| {
                    let same = events(play).into_iter().filter(|(_, other)| *other == kind);
                    same.map(|(name, _)| name)
                        .any(|name| seen.told.contains(name))
                })
                .map(|(play, _)| *play)
                .collect();
            let reason = MISSING.iter().find(|(missing, _)| *missing == name);
            if !own.told.contains(name) && reason.is_none() {
                lacking.push(format!("{system} {name}"));
            }
            let fired = reason.map_or_else(|| fired.join(" "), |(_, why)| format!("({why})"));
            writeln!(
                table,
                "| {system} | {name} | {canonical} | {fired} | {} |",
                told.join(" ")
            )
            .unwrap();
        }
    }
    println!(
        "| document | event | here | fires in the conversation of | hooks that were told |\n|---|---|---|---|---|\n{table}"
    );
    assert!(lacking.is_empty(), "no hook was told of {lacking:#?}");
}
