//! Which event of which document fires in which conversation, and whose hooks are told of it.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use tenterhook::EventKind;
use tenterhook_dialects::{docker_agent, kodelet, kodelet_extension, morphix, operator, pi};

use super::{is_of_a_gateway, stored};

/// The conversations.
const PLAYS: [&str; 5] = ["docker_agent", "kodelet", "pi", "operator", "morphix"];

/// Events that no conversation has, and why.
const MISSING: &[(&str, &str)] = &[("worktree_create", "the agent makes no worktrees")];

/// The names of a system's events, with what they are here.
fn events(system: &str) -> Vec<(&'static str, EventKind)> {
    match system {
        "docker_agent" => named(
            docker_agent::EVENTS
                .iter()
                .map(|event| (event.name, event.kind)),
        ),
        "kodelet" => {
            let hooks = kodelet::EVENTS.iter().map(|event| (event.name, event.kind));
            let extensions = kodelet_extension::EVENTS.iter();
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

/// What a golden file says: the events that fired, and the names that hooks were told.
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
