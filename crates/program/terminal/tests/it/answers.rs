//! Every example on a page is one that the engine accepts.

use tenterhook_engine::{EventKind, EventName, Reply, parse_event};
use tenterhook_protocol::AnyEffect;
use tenterhook_systems::native::Native;
use tenterhook_terminal::reference::EventPage;

/// Reads an answer as the engine reads what a native command hook of the event printed.
fn read(kind: EventKind, answer: &serde_json::Value) -> AnyEffect {
    let stdout = answer.to_string();
    let reply = Reply::Exited {
        status: 0,
        stdout: stdout.as_bytes(),
        stderr: b"",
        stdout_omitted: 0,
    };
    Native::new().read(kind.info(), &reply, true).unwrap()
}

/// Returns the parts of an effect, as the pages name them.
fn parts(effect: &AnyEffect) -> Vec<String> {
    let mut parts: Vec<String> = effect
        .capabilities()
        .map(|capability| capability.as_str().to_owned())
        .collect();
    let rewrites = effect.rewrite.keys();
    parts.extend(rewrites.map(|field| format!("rewrite.{field}")));
    let lists = effect.collect.keys();
    parts.extend(lists.map(|list| format!("collect.{list}")));
    parts.extend(effect.supply.iter().map(|_| "supply".to_owned()));
    parts.extend(effect.notices.iter().map(|_| "notices".to_owned()));
    parts
}

#[test]
fn the_catalogue_accepts_every_example_answer() {
    for kind in EventKind::ALL {
        let page = EventPage::of(*kind);
        for answer in &page.answers {
            let effect = read(*kind, &answer.answer);
            let name = format!("{} {}", page.name, answer.part);
            assert_eq!(parts(&effect), [answer.part.as_str()], "{name}");
            assert!(!answer.meaning.is_empty(), "{name}");
            let checked = kind.info().check(&effect);
            assert!(checked.is_ok(), "{name}: {checked:?}");
        }
    }
}

#[test]
fn there_is_an_example_of_everything_that_hooks_may_answer() {
    for kind in EventKind::ALL {
        let info = kind.info();
        let answers = EventPage::of(*kind).answers;
        let parts: Vec<&str> = answers.iter().map(|answer| answer.part.as_str()).collect();
        let mut expected: Vec<String> = info
            .capabilities
            .iter()
            .map(|capability| capability.as_str().to_owned())
            .collect();
        expected.extend(
            info.rewrites
                .iter()
                .map(|row| format!("rewrite.{}", row.field)),
        );
        expected.extend(
            info.collects
                .iter()
                .map(|list| format!("collect.{}", list.name)),
        );
        expected.extend(info.supplies.map(|_| "supply".to_owned()));
        expected.push("notices".to_owned());
        assert_eq!(parts, expected, "{}", info.name);
    }
}

#[test]
fn every_example_rewrite_changes_the_example_payload() {
    for kind in EventKind::ALL {
        let page = EventPage::of(*kind);
        let name = if *kind == EventKind::Custom {
            "x-acme.deploy".parse().unwrap()
        } else {
            EventName::Known(*kind)
        };
        let payload = serde_json::Value::Object(page.example.clone());
        let event = parse_event(&name, payload).unwrap();
        for answer in &page.answers {
            let effect = read(*kind, &answer.answer);
            for (field, value) in effect.rewrite {
                let mut rewritten = event.boxed_clone();
                rewritten.rewrite(&field, value).unwrap();
                let (before, after) = (event.payload().unwrap(), rewritten.payload().unwrap());
                assert_ne!(before, after, "{} {field}", page.name);
            }
        }
    }
}
