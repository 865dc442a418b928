//! Folders of kodelet extensions: which extensions are found and started, and what they register.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tenterhook_discovery::{FileState, FolderHooks, FolderSearch, Layers};
use tenterhook_trust::{Approvals, Trust, TrustState};

use crate::folder::{Place, executable, mode};

/// An extension that answers the first request with the expression that replaces `WHAT`, and creates a
/// mark file when it starts.
const PEER: &str = "#!/usr/bin/env python3
import json, os, sys
open('MARKS', 'a').write('NAME ' + os.getcwd() + '\\n')
while True:
    head = sys.stdin.buffer.readline()
    if not head:
        break
    sys.stdin.buffer.readline()
    message = json.loads(sys.stdin.buffer.read(int(head.split(b':')[1])))
    if 'id' in message:
        params = message['params']
        result = WHAT if message['method'] == 'extension.initialize' else {}
        body = json.dumps({'jsonrpc': '2.0', 'id': message['id'], 'result': result}).encode()
        sys.stdout.buffer.write(b'content-length: %d\\n\\n' % len(body) + body)
        sys.stdout.buffer.flush()
";

const WATCHER: &str = "{'subscriptions': [{'event': 'turn.end'}]}";

fn marks(place: &Place) -> Vec<String> {
    let text = fs::read_to_string(place.home.join("marks")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Writes an extension. Its mark has the name of its file.
fn extension(place: &Place, dir: &Path, file: &str, what: &str) -> PathBuf {
    let text = PEER
        .replace("WHAT", what)
        .replace("NAME", file)
        .replace("MARKS", place.home.join("marks").to_str().unwrap());
    executable(dir, file, &text)
}

async fn discover(place: &Place, trust: Trust) -> FolderHooks {
    FolderSearch::of_layers(&place.layers())
        .trust(trust)
        .data_dir(Some(place.data()))
        .lenient(true)
        .discover()
        .await
        .unwrap()
}

fn approvals(place: &Place) -> Arc<Approvals> {
    Arc::new(Approvals::open(&place.data()).unwrap())
}

/// Returns the ids of the running extensions, in order.
fn ids(discovered: &FolderHooks) -> Vec<&str> {
    let extensions = discovered.extensions.iter();
    extensions.map(|extension| &*extension.id).collect()
}

fn state<'a>(discovered: &'a FolderHooks, path: &Path) -> &'a FileState {
    let found = discovered.files.iter().find(|file| file.path == path);
    &found.unwrap().state
}

#[tokio::test]
async fn executables_of_four_places_are_extensions_and_the_first_of_an_id_counts() {
    let place = Place::new();
    let local = place.project.join(".kodelet/extensions");
    let global = place.home.join(".kodelet/extensions");
    let plugin = |of: &Path| of.join(".kodelet/plugins/org@repo/extensions");
    for (dir, file) in [
        (local.clone(), "kodelet-extension-zeta"),
        (local.join("alpha"), "kodelet-extension-b"),
        (local.join("alpha"), "kodelet-extension-a"),
        (local.clone(), "other"),
        (local.join("deep/er"), "kodelet-extension-deep"),
        (local.join("none"), "script"),
        (plugin(&place.project), "kodelet-extension-zeta"),
        (global.clone(), "kodelet-extension-alpha"),
        (global.clone(), "kodelet-extension-own"),
        (plugin(&place.home), "kodelet-extension-zeta"),
        (plugin(&place.home), "kodelet-extension-more"),
    ] {
        extension(&place, &dir, file, WATCHER);
    }
    let discovered = discover(&place, Trust::Caller).await;
    let expected = ["alpha", "zeta", "org@repo/zeta", "own", "org@repo/more"];
    assert_eq!(ids(&discovered), expected, "{:?}", discovered.files);
    let hooks: Vec<&str> = discovered.specs.iter().map(|it| it.id.as_str()).collect();
    assert_eq!(hooks, expected.map(|id| format!("{id}:turn.end")));
    let marks = marks(&place);
    assert_eq!(marks.len(), 5, "what is shadowed is not started: {marks:?}");
    let nested = format!("kodelet-extension-a {}", local.join("alpha").display());
    assert!(marks.contains(&nested), "it runs in its folder: {marks:?}");
    let shadowed = state(&discovered, &global.join("kodelet-extension-alpha"));
    let by = local.join("alpha/kodelet-extension-a");
    assert_eq!(*shadowed, FileState::Shadowed { by });
}

#[tokio::test]
async fn a_linked_folder_is_the_extension_that_the_folder_is() {
    let place = Place::new();
    let elsewhere = place.home.join("elsewhere");
    extension(&place, &elsewhere, "kodelet-extension-x", WATCHER);
    let global = place.home.join(".kodelet/extensions");
    fs::create_dir_all(&global).unwrap();
    std::os::unix::fs::symlink(&elsewhere, global.join("linked")).unwrap();
    let discovered = discover(&place, Trust::Caller).await;
    assert_eq!(ids(&discovered), ["linked"], "{:?}", discovered.files);
}

// E16: an extension that does not run leaves its id to the next one.
#[tokio::test]
async fn an_extension_that_does_not_run_leaves_its_id_free() {
    let place = Place::new();
    let local = place.project.join(".kodelet/extensions");
    let global = place.home.join(".kodelet/extensions");
    for name in ["plain", "broken", "crash", "off"] {
        extension(
            &place,
            &global,
            &format!("kodelet-extension-{name}"),
            WATCHER,
        );
    }
    let plain = extension(&place, &local, "kodelet-extension-plain", WATCHER);
    mode(&plain, 0o644);
    let broken = executable(&local.join("broken"), "kodelet-extension-x", "echo\n");
    let crash = executable(&local, "kodelet-extension-crash", "#!/bin/sh\nexit 3\n");
    let off = extension(
        &place,
        &local.join("off"),
        "kodelet-extension-off.disable",
        WATCHER,
    );
    let discovered = discover(&place, Trust::Caller).await;
    assert_eq!(ids(&discovered), ["broken", "crash", "off", "plain"]);
    let layers: Vec<_> = discovered.specs.iter().map(|it| it.source.layer).collect();
    assert_eq!(layers, [tenterhook_engine::Layer::User; 4]);
    assert_eq!(*state(&discovered, &off), FileState::Disabled);
    for (path, problem) in [
        (broken, "a `#!` line"),
        (crash, "it exited with status 3"),
        (plain, "is not executable"),
    ] {
        let said = state(&discovered, &path).describe();
        assert!(said.contains(problem), "{said}");
        assert!(
            discovered.broken.iter().any(|it| it.path == path),
            "{path:?}"
        );
    }
}

// E15: if two tools have the same name, only the later tool is ignored.
#[tokio::test]
async fn a_name_that_is_taken_is_refused_and_nothing_else() {
    let place = Place::new();
    let dir = place.home.join(".kodelet/extensions");
    let what = "{'tools': [{'name': 'find', 'description': 'first'}, {'name': ''}], 'commands': [{'name': 'review'}]}";
    extension(&place, &dir, "kodelet-extension-a", what);
    let what = "{'tools': [{'name': 'find', 'description': 'second'}, {'name': 'sum'}], \
                'commands': [{'name': 'review'}, {'name': 'test'}], \
                'subscriptions': [{'event': 'agent.start'}]}";
    let second = extension(&place, &dir, "kodelet-extension-b", what);
    let discovered = discover(&place, Trust::Caller).await;
    let had: Vec<(&str, Vec<&str>, Vec<&str>)> = discovered
        .extensions
        .iter()
        .map(|it| {
            let tools = it.tools.iter().map(|tool| &*tool.name).collect();
            let commands = it.commands.iter().map(|command| &*command.name).collect();
            (&*it.id, tools, commands)
        })
        .collect();
    let expected = [
        ("a", vec!["find"], vec!["review"]),
        ("b", vec!["sum"], vec!["test"]),
    ];
    assert_eq!(had, expected);
    assert_eq!(discovered.extensions[0].tools[0].description, "first");
    assert_eq!(
        discovered.warnings,
        [
            "a tool of extension `a` has no name and is ignored",
            "tool `find` of extension `b` is ignored, because extension `a` has one with the same name",
            "command `review` of extension `b` is ignored, because extension `a` has one with the same name",
        ]
    );
    assert_eq!(
        state(&discovered, &second).describe(),
        "runs for agent_start; tools: find, sum; commands: review, test"
    );
}

#[tokio::test]
async fn hooks_have_the_priorities_and_times_of_their_subscriptions() {
    let place = Place::new();
    let dir = place.home.join(".kodelet/extensions");
    let what = "{'subscriptions': [{'event': 'tool.call', 'priority': -4, 'timeoutInSec': 2}, \
                {'event': 'tool.call'}]}";
    extension(&place, &dir, "kodelet-extension-a", what);
    let discovered = discover(&place, Trust::Caller).await;
    let had: Vec<_> = discovered
        .specs
        .iter()
        .map(|it| (it.id.as_str(), it.priority, it.timeout))
        .collect();
    let expected = [
        ("a:tool.call", -4, Duration::from_secs(2)),
        ("a:tool.call#2", 0, Duration::from_secs(30)),
    ];
    assert_eq!(had, expected);
}

#[tokio::test]
async fn each_extension_has_a_folder_for_what_it_keeps() {
    let place = Place::new();
    let what = "{'name': params['extension']['dataDir'] if os.path.isdir(params['extension']['dataDir']) else ''}";
    for root in [&place.project, &place.home] {
        let dir = root.join(".kodelet/plugins/org@repo/extensions");
        let name = format!("kodelet-extension-{}", root.file_name().unwrap().display());
        extension(&place, &dir, &name, what);
    }
    let discovered = discover(&place, Trust::Caller).await;
    let mut folders = Vec::new();
    for found in &discovered.extensions {
        let registration = found.extension.registration().await.unwrap();
        folders.push(PathBuf::from(&registration.name));
    }
    assert_eq!(folders.len(), 2);
    assert_ne!(folders[0], folders[1]);
    for folder in folders {
        assert!(
            folder.starts_with(place.data().join("extensions")),
            "{folder:?}"
        );
    }
}

#[tokio::test]
async fn an_extension_of_a_project_is_never_started_before_it_is_approved() {
    let place = Place::new();
    let dir = place.project.join(".kodelet/extensions/guard");
    let path = extension(&place, &dir, "kodelet-extension-guard", WATCHER);
    executable(&dir, "lib.py", "x = 1\n");
    let found = discover(&place, Trust::Review(approvals(&place))).await;
    assert_eq!(*state(&found, &path), FileState::Untrusted);
    assert!(found.specs.is_empty() && marks(&place).is_empty());
    let brought = &found.project_hooks[0];
    assert_eq!(brought.state, TrustState::Untrusted);
    let own = brought.item.files.iter().map(|file| &file.path);
    let covered = brought.item.covered.iter().map(|file| &file.path);
    let files: Vec<_> = own.chain(covered).collect();
    let expected = ["kodelet-extension-guard", "lib.py"]
        .map(|name| Path::new(".kodelet/extensions/guard").join(name));
    assert_eq!(files, expected.iter().collect::<Vec<_>>());
    let mut book = Approvals::open(&place.data()).unwrap();
    book.approve(std::slice::from_ref(&brought.item)).unwrap();

    let found = discover(&place, Trust::Approved(approvals(&place))).await;
    assert_eq!(ids(&found), ["guard"]);
    let ran_in = marks(&place)[0].clone();
    assert!(
        ran_in.contains(place.data().to_str().unwrap()),
        "a copy runs: {ran_in}"
    );

    fs::write(dir.join("lib.py"), "x = 2\n").unwrap();
    let found = FolderSearch::of_layers(&place.layers())
        .trust(Trust::Approved(approvals(&place)))
        .deny_untrusted(true)
        .lenient(true)
        .discover()
        .await
        .unwrap();
    assert_eq!(found.project_hooks[0].state, TrustState::Changed);
    assert!(found.project_hooks[0].is_approved_in_force);
    assert!(matches!(*state(&found, &path), FileState::Script { .. }));
    assert_eq!(ids(&found), ["guard"]);
    assert_eq!(
        marks(&place),
        [ran_in.as_str(); 2],
        "the approved copy runs again"
    );
}

#[tokio::test]
async fn a_folder_that_cannot_be_read_takes_no_other_away() {
    let place = Place::new();
    fs::create_dir_all(place.home.join(".kodelet")).unwrap();
    fs::write(place.home.join(".kodelet/extensions"), "").unwrap();
    let plugin = place.home.join(".kodelet/plugins/plain/extensions");
    extension(&place, &plugin, "kodelet-extension-a", WATCHER);
    let layers = Layers {
        start: None,
        ..place.layers()
    };
    let discovered = FolderSearch::of_layers(&layers)
        .lenient(true)
        .discover()
        .await
        .unwrap();
    assert_eq!(ids(&discovered), ["plain/a"]);
    assert_eq!(
        *discovered.files[0].kind,
        tenterhook_systems::kodelet::EXTENSION_FOLDER
    );
    assert!(
        discovered.broken[0].path.ends_with("extensions"),
        "{:?}",
        discovered.broken
    );
}
