//! Hook files in a program that was built without the features that run their hooks.

use std::path::Path;

use tenterhook::files::{LoadOptions, load_text};
use tenterhook::{EventKind, Layer};

/// Loads a hook file of one hook, and returns the ids of its hooks or the first problem.
fn load(runs: &str) -> Result<Vec<String>, String> {
    let text = format!("hooks:\n  - name: guard\n    event: pre_tool_use\n    {runs}\n");
    let options = LoadOptions::of_process();
    match load_text(Path::new("hooks.yaml"), &text, Layer::Explicit, &options) {
        Ok(loaded) => Ok(loaded
            .specs
            .iter()
            .map(|spec| spec.id.to_string())
            .collect()),
        Err(error) => Err(error.problems.first().unwrap().message.clone()),
    }
}

#[test]
fn a_hook_whose_runner_was_not_compiled_in_is_an_error_that_names_the_feature() {
    for (runs, does, feature, is_compiled_in) in [
        (
            "command: \"true\"",
            "runs a command",
            "command",
            cfg!(feature = "command"),
        ),
        (
            "http: \"https://example.com/\"",
            "posts to a URL",
            "http",
            cfg!(feature = "http"),
        ),
        (
            "model: judge\n    prompt: Is it safe?",
            "asks a model",
            "model",
            cfg!(feature = "model"),
        ),
    ] {
        let loaded = load(runs);
        if is_compiled_in {
            assert_eq!(loaded, Ok(vec!["guard".to_owned()]), "{runs}");
            continue;
        }
        let expected = format!(
            "hook `guard` {does}; this program was built without the feature `{feature}` of `tenterhook`"
        );
        assert_eq!(loaded, Err(expected), "{runs}");
    }
    let page = include_str!("../../../../docs/how-to/embed.md");
    assert!(page.contains(
        "runs a command; this program was built without the feature `command` of `tenterhook`"
    ));
}

#[test]
fn a_lenient_load_reports_the_file_of_a_hook_that_cannot_run() {
    let text = "hooks:\n  - name: guard\n    event: pre_tool_use\n    command: \"true\"\n";
    let options = LoadOptions {
        lenient: true,
        ..LoadOptions::of_process()
    };
    let loaded = load_text(Path::new("hooks.yaml"), text, Layer::Explicit, &options).unwrap();
    assert_eq!(loaded.broken.len(), usize::from(!cfg!(feature = "command")));
}

#[test]
fn hooks_of_agent_keys_are_registered_after_the_hooks_of_their_file() {
    let text = "agents:\n  root:\n    redact_secrets: true\n    hooks:\n      pre_tool_use:\n        - matcher: shell\n          hooks: [{type: builtin, command: deny_commands, args: [sudo]}]\n";
    let options = LoadOptions::of_process();
    let loaded = load_text(Path::new("agent.yaml"), text, Layer::Explicit, &options).unwrap();
    let (listed, wired) = (loaded.specs.len(), loaded.wired.len());
    let last = loaded.wired.last().unwrap().id.clone();
    assert!(listed > 0 && wired > 0);
    let specs = loaded.into_specs();
    assert_eq!(specs.len(), listed + wired);
    assert_eq!(specs.last().unwrap().id, last);
}

#[test]
fn builtins_need_no_feature_unless_they_send_requests() {
    assert_eq!(
        load("builtin: deny_commands\n    args: [sudo]"),
        Ok(vec!["guard".to_owned()])
    );
    let loaded = load("builtin: http_post\n    args: [\"https://example.com/\"]");
    if cfg!(feature = "http") {
        assert_eq!(loaded, Ok(vec!["guard".to_owned()]));
    } else {
        let problem = "builtin `http_post`: this program was built without the feature `http` of `tenterhook`";
        assert_eq!(loaded, Err(problem.to_owned()));
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_projects_hook_does_not_run_unless_the_host_passes_approvals() {
    use tenterhook::files::{Layers, Sources, discover};

    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join(".tenterhook");
    std::fs::create_dir(&folder).unwrap();
    let text = "hooks:\n  - {event: pre_tool_use, builtin: deny_commands, args: [sudo]}\n";
    std::fs::write(folder.join("hooks.yaml"), text).unwrap();
    let layers = Layers {
        start: Some(home.path().to_owned()),
        ..Layers::default()
    };
    let sources = Sources::new(layers, LoadOptions::of_process());
    let found = discover(sources, Vec::new()).await.unwrap();
    assert!(found.specs.is_empty() && found.broken.is_empty());
    assert_eq!(found.project_hooks.len(), 1);
    assert!(
        found
            .project_hooks
            .iter()
            .all(|hook| hook.reason().is_some())
    );
}

/// Loads a hook folder with one executable that is a gate.
#[cfg(unix)]
#[tokio::test]
async fn files_of_a_folder_that_nothing_can_run_are_broken_and_their_gates_deny() {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use tenterhook::files::{FolderSearch, Layers};

    let home = tempfile::tempdir().unwrap();
    let hooks = home.path().join("hooks");
    fs::create_dir(&hooks).unwrap();
    let guard = hooks.join("guard");
    fs::write(&guard, "#!/bin/sh\necho pre_tool_use\n").unwrap();
    fs::set_permissions(&guard, Permissions::from_mode(0o755)).unwrap();
    let layers = Layers {
        user: Some(home.path().to_owned()),
        ..Layers::default()
    };
    let search = FolderSearch::of_layers(&layers).lenient(true).strict(true);
    let found = search.discover().await.unwrap();
    let gates = found.specs.iter().filter(|spec| {
        spec.event
            .as_ref()
            .is_some_and(|event| event.kind() == EventKind::PreToolUse)
    });
    assert_eq!(gates.count(), 1, "{:?}", found.files);
    let problems = found
        .broken
        .iter()
        .filter_map(|source| source.first_error());
    let problems: Vec<_> = problems.map(|problem| problem.message.as_str()).collect();
    if cfg!(feature = "command") {
        assert!(problems.is_empty(), "{problems:?}");
    } else {
        let expected = "hook `guard` runs a command; this program was built without the feature `command` of `tenterhook`";
        assert_eq!(problems, [expected]);
    }
}
