//! Folders of other systems' scripts: which files of them are hooks, and in which order.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use tenterhook::event::PreToolUse;
use tenterhook::{Engine, Layer, Origin, Scope};
use tenterhook_config::{
    Approvals, Discovered, Discovery, FileState, FolderName, Trust, TrustState,
};

use crate::folder::{Place, mode};

/// A file of morphix whose handler writes its name into the arguments.
fn morphix(name: &str) -> String {
    format!(
        "from core.hooks_registry import hooks_registry\n\n@hooks_registry.register('on_before_tool')\ndef {name}(ctx):\n    \
         ctx.parameters.setdefault('seen', []).append('{name} in ' + ctx.workspace)\n"
    )
}

const OPERATOR: &str = "def seen(event):\n    pass\n\nhooks = [('tool_call', seen)]\n";

fn write(dir: &Path, files: &[(&str, &str)]) {
    fs::create_dir_all(dir).unwrap();
    for (name, text) in files {
        fs::write(dir.join(name), text).unwrap();
    }
}

fn name(text: &str) -> FolderName {
    text.parse().unwrap()
}

fn search(place: &Place) -> Discovery {
    Discovery::of_layers(&place.layers()).trust(Trust::Caller)
}

/// Returns the hooks in the order in which they run, of one event.
fn order(discovered: Discovered) -> Vec<String> {
    let hooks = engine(discovered).hooks();
    hooks.iter().map(|hook| hook.id.to_string()).collect()
}

fn engine(discovered: Discovered) -> Engine {
    let engine = Engine::new();
    engine.scope(Scope::Global).replace(discovered.specs);
    engine
}

fn place() -> Place {
    let place = Place::new();
    let core = place.project.join("core/hooks");
    write(
        &core,
        &[
            ("b.py", &morphix("b")),
            ("a.py", &morphix("a")),
            (
                "__init__.py",
                "import core.hooks_registry as hooks_registry\n",
            ),
            ("_lib.py", &morphix("lib")),
            ("react.py", "def useEffect():\n    raise SystemExit\n"),
            ("pre-commit", "#!/bin/sh\necho hooks_registry\n"),
            (
                "broken.py",
                "from core.hooks_registry import hooks_registry\nimport nowhere\n",
            ),
        ],
    );
    mode(&core.join("pre-commit"), 0o755);
    mode(&core.join("a.py"), 0o755);
    for workspace in ["main", "lab"] {
        let dir = place.project.join("workspaces").join(workspace);
        write(&dir.join("hooks"), &[("a.py", &morphix(workspace))]);
    }
    place
}

// M19: the hooks of one workspace only, behind those of all.
#[tokio::test]
async fn files_of_morphix_are_those_of_the_core_and_of_the_workspace() {
    let place = place();
    for (chosen, expected) in [
        (None, "main"),
        (Some(name("main")), "main"),
        (Some(name("lab")), "lab"),
    ] {
        let discovered = search(&place).workspace(chosen).discover().await;
        assert_eq!(
            order(discovered),
            ["a.py:a", "b.py:b", &format!("{expected}/a.py:{expected}")]
        );
    }
    let discovered = search(&place).discover().await;
    let found: Vec<_> = discovered
        .files
        .iter()
        .map(|file| file.name.as_str())
        .collect();
    assert_eq!(
        found,
        ["a.py", "b.py", "broken.py", "main/a.py"],
        "what others have in folders of these names is none of them"
    );
    assert_eq!(discovered.warnings.len(), 1, "{:?}", discovered.warnings);
    assert!(discovered.warnings[0].contains("broken.py:2: ModuleNotFoundError"));
    let nowhere = search(&place)
        .workspace(Some(name("nowhere")))
        .discover()
        .await;
    assert_eq!(
        nowhere.warnings[0],
        "no project folder has a workspace `nowhere`: there is no `workspaces/nowhere`"
    );
    assert_eq!(order(nowhere), ["a.py:a", "b.py:b"]);
}

// M1: the workspace is that of the event.
#[tokio::test]
async fn handlers_of_morphix_are_told_the_workspace_of_the_event() {
    let place = place();
    let engine = engine(search(&place).workspace(Some(name("lab"))).discover().await);
    let call = PreToolUse {
        tool_name: "shell".to_owned(),
        ..PreToolUse::default()
    };
    for (workspace, expected) in [(None, "main"), (Some("lab"), "lab")] {
        let origin = Origin {
            workspace: workspace.map(str::to_owned),
            ..Origin::default()
        };
        let outcome = engine.dispatcher(origin).dispatch(call.clone()).await;
        let seen = ["a", "b", "lab"].map(|hook| format!("{hook} in {expected}"));
        let rewritten = outcome.rewritten().unwrap();
        assert_eq!(rewritten.tool_input["seen"], serde_json::json!(seen));
    }
}

#[tokio::test]
async fn a_file_of_morphix_needs_an_approval_of_its_own() {
    let place = place();
    let discover = || async {
        let approvals = Arc::new(Approvals::open(&place.data()).unwrap());
        let search = search(&place).trust(Trust::Approved(approvals));
        search.discover().await
    };
    let first = discover().await;
    assert!(first.specs.is_empty());
    let items: Vec<_> = first
        .brought
        .into_iter()
        .map(|brought| brought.item)
        .filter(|item| item.source == Path::new("workspaces/main/hooks"))
        .collect();
    Approvals::open(&place.data())
        .unwrap()
        .approve(&items)
        .unwrap();
    assert_eq!(order(discover().await), ["main/a.py:main"]);
    write(
        &place.project.join("workspaces/main/hooks"),
        &[("a.py", &morphix("other"))],
    );
    let states: Vec<_> = discover()
        .await
        .brought
        .into_iter()
        .map(|brought| (brought.item.name, brought.state))
        .collect();
    let expected = [
        ("a.py", TrustState::Untrusted),
        ("b.py", TrustState::Untrusted),
        ("broken.py", TrustState::Untrusted),
        ("a.py", TrustState::Changed),
    ];
    assert_eq!(
        states,
        expected.map(|(name, state)| (name.to_owned(), state))
    );
}

// O34: files that begin with `_` are skipped, and all others are loaded.
#[tokio::test]
async fn files_of_an_operator_profile_run_before_those_of_the_project() {
    let place = Place::new();
    let profiles = place.home.join(".operator/profiles");
    write(
        &profiles.join("default/hooks"),
        &[("z.py", OPERATOR), ("a.py", OPERATOR), ("_x.py", OPERATOR)],
    );
    write(&profiles.join("work/hooks"), &[("a.py", OPERATOR)]);
    write(
        &place.project.join(".operator/hooks"),
        &[("a.py", OPERATOR)],
    );
    for (chosen, expected) in [
        (
            None,
            &["default/a.py:seen", "default/z.py:seen", "a.py:seen"][..],
        ),
        (Some(name("work")), &["work/a.py:seen", "a.py:seen"]),
        (Some(name("nobody")), &["a.py:seen"]),
    ] {
        let discovered = search(&place)
            .operator_profile(chosen.clone())
            .discover()
            .await;
        let warned = discovered.warnings.len();
        assert_eq!(
            warned,
            usize::from(chosen == Some(name("nobody"))),
            "{chosen:?}"
        );
        assert_eq!(order(discovered), expected);
    }
    // Nobody has to approve what is the user's own.
    let own = search(&place).trust(Trust::nobody()).discover().await;
    let layers: Vec<_> = own.specs.iter().map(|spec| spec.source.layer).collect();
    assert_eq!(layers, [Layer::User; 2]);
    let project = own.files.iter().find(|file| file.layer == Layer::Project);
    assert_eq!(project.unwrap().state, FileState::Untrusted);
}
