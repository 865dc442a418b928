//! Tests that every key of an imported file does what the reference page says. The table of the systems is the only
//! source of both.

use std::path::Path;

use serde_json::{Map, Value, json};
use tenterhook_systems::settings_file::{HookSettings, KeyEffect, KeyPlace, SettingsKey};
use tenterhook_systems::{HookSystem, SYSTEMS};

use crate::hook_file::read;
use crate::problem::Severity;
use crate::reference_page::compare;
use crate::report::Report;
use crate::source::SourceText;

fn systems() -> impl Iterator<Item = (&'static HookSystem, &'static HookSettings)> {
    let systems = SYSTEMS.iter();
    systems.filter_map(|system| Some((*system, system.settings?)))
}

fn described(effect: KeyEffect) -> String {
    match effect {
        KeyEffect::Carried => "as in the agent".to_owned(),
        KeyEffect::Display => "no effect, because it is only shown".to_owned(),
        KeyEffect::Separate(what) => format!("about something else: {what}"),
        KeyEffect::Ignored(instead) => format!("a warning: {instead}"),
        KeyEffect::RefusedWithHttp => "an error if the file has HTTP hooks".to_owned(),
        KeyEffect::Refused(why) => format!("an error: {why}"),
        KeyEffect::OfOtherType => "only for types that need the agent".to_owned(),
    }
}

const fn place_name(place: KeyPlace) -> &'static str {
    match place {
        KeyPlace::File => "next to `hooks`",
        KeyPlace::Group => "next to `matcher`",
        KeyPlace::Hook => "in a hook",
    }
}

fn table() -> String {
    let mut table = "| agent | where | keys | result |\n|---|---|---|---|\n".to_owned();
    for (system, settings) in systems() {
        let mut rows: Vec<(&str, String, Vec<String>)> = Vec::new();
        for key in settings.keys {
            let (place, result) = (place_name(key.place), described(key.effect));
            let name = format!("`{}`", key.name);
            match rows
                .iter_mut()
                .find(|row| (row.0, &row.1) == (place, &result))
            {
                Some(row) => row.2.push(name),
                None => rows.push((place, result, vec![name])),
            }
        }
        for (place, result, names) in rows {
            let names = names.join(", ");
            table.extend([format!(
                "| `{}` | {place} | {names} | {result} |\n",
                system.name
            )]);
        }
    }
    table
}

#[test]
fn the_reference_page_has_every_key_of_an_imported_file() {
    compare("the keys of imported files", &table());
}

/// Returns a file with a hook and one more key.
fn file(settings: &HookSettings, key: &SettingsKey, hook: Value) -> String {
    let event = settings
        .events
        .iter()
        .find(|event| event.kind.info().subject == Some("tool_name"));
    let event = event.unwrap().name;
    let add = |place: KeyPlace, mut object: Value| {
        let map: &mut Map<String, Value> = object.as_object_mut().unwrap();
        if key.place == place && !map.contains_key(key.name) {
            map.insert(key.name.to_owned(), json!({}));
        }
        object
    };
    let hook = add(KeyPlace::Hook, hook);
    let entry = if settings.has_groups {
        add(KeyPlace::Group, json!({ "hooks": [hook] }))
    } else {
        hook
    };
    add(KeyPlace::File, json!({ "hooks": { event: [entry] } })).to_string()
}

/// Returns the problems that say what a key does, with whether each is an error.
fn reported(system: &HookSystem, text: &str) -> Vec<(bool, String)> {
    let place = system.settings.unwrap().user;
    let mut report = Report::new(SourceText::new(&Path::new("/h").join(place), text));
    read(&mut report);
    let problems = report.into_problems().into_iter();
    let is_about_keys = |message: &str| {
        let mut words = [
            "not supported",
            "cannot be used",
            "unknown",
            "no effect",
            "restricts",
        ]
        .iter();
        words.any(|word| message.contains(word))
    };
    problems
        .filter(|problem| is_about_keys(&problem.message))
        .map(|problem| (problem.severity == Severity::Error, problem.message))
        .collect()
}

#[test]
fn every_key_does_what_the_table_says() {
    for (system, settings) in systems() {
        let command = settings.command_keys[0];
        for key in settings.keys {
            let line = json!({ "type": "command", command: "true" });
            let found = reported(system, &file(settings, key, line));
            let http = json!({ "type": "http", "url": "http://127.0.0.1:1/" });
            let with_http = reported(system, &file(settings, key, http));
            let (name, expected) = (
                key.name,
                match key.effect {
                    KeyEffect::Ignored(text) => vec![(false, text)],
                    KeyEffect::Refused(text) => vec![(true, text)],
                    KeyEffect::Carried
                    | KeyEffect::Display
                    | KeyEffect::Separate(_)
                    | KeyEffect::RefusedWithHttp
                    | KeyEffect::OfOtherType => Vec::new(),
                },
            );
            assert_eq!(
                found.len(),
                expected.len(),
                "{} {name}: {found:?}",
                system.name
            );
            for ((is_error, message), (expects_error, text)) in found.iter().zip(expected) {
                assert_eq!(*is_error, expects_error, "{name}");
                assert!(
                    message.contains(name) && message.contains(text),
                    "{name}: {message}"
                );
            }
            let is_refused = with_http
                .iter()
                .any(|(_, message)| message.contains("restricts"));
            assert_eq!(
                is_refused,
                key.effect == KeyEffect::RefusedWithHttp,
                "{name}"
            );
        }
    }
}

#[test]
fn a_key_that_no_table_has_is_reported() {
    for (system, settings) in systems() {
        for place in [KeyPlace::Group, KeyPlace::Hook] {
            if place == KeyPlace::Group && !settings.has_groups {
                continue;
            }
            let key = SettingsKey {
                place,
                name: "no_such_key",
                effect: KeyEffect::Carried,
            };
            let line = json!({ "type": "command", settings.command_keys[0]: "true" });
            let found = reported(system, &file(settings, &key, line));
            assert_eq!(found.len(), 1, "{}: {found:?}", system.name);
            assert!(found[0].1.contains("`no_such_key`"), "{found:?}");
        }
    }
}
