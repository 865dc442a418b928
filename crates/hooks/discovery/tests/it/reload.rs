//! Hooks that follow their files.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tenterhook_discovery::{
    ChangeKind, DisabledSources, FixedHooks, FolderName, FolderSearch, FoundScript, LoadOptions,
    Reloaded, Reloader, Sources, load_files,
};
use tenterhook_engine::event::PreToolUse;
use tenterhook_engine::{Engine, Layer, Origin, Outcome, Scope};
use tenterhook_process::CancellationToken;
use tenterhook_runners::worker::ScriptServer;
use tenterhook_systems::morphix::WORKSPACE;
use tenterhook_trust::{Approvals, Trust};
use tokio::time::timeout;

use crate::folder::{Place, executable};

/// A script that counts its calls and writes the number into the arguments.
fn counter(name: &str) -> String {
    format!(
        "from tenterhook import on, patch\ncalls = 0\n\n@on('pre_tool_use')\ndef {name}(event):\n    global calls\n    calls += 1\n    \
         return patch(tool_input={{**(event.tool_input or {{}}), '{name}': calls}})\n"
    )
}

/// The same script in JavaScript.
fn node_counter(name: &str) -> String {
    format!(
        "import {{ on, patch }} from 'tenterhook';\nlet calls = 0;\non('pre_tool_use', function {name}(event) {{\n  calls += 1;\n  \
         return patch({{ tool_input: {{ ...event.tool_input, {name}: calls }} }});\n}});\n"
    )
}

const GUARD: &str = "from tenterhook import deny, on\n\n@on('pre_tool_use')\ndef guard(event):\n    return deny('no')\n";

/// A session whose hooks follow their files.
struct Session {
    place: Place,
    engine: Engine,
    reloader: Option<Reloader>,
    scripts: Vec<FoundScript>,
    is_strict: bool,
    denies: bool,
    trusts_all: bool,
}

impl Session {
    fn new() -> Self {
        Self {
            place: Place::new(),
            engine: Engine::new(),
            reloader: None,
            scripts: Vec::new(),
            is_strict: false,
            denies: false,
            trusts_all: false,
        }
    }

    fn user(&self, name: &str) -> PathBuf {
        self.place.home.join("config/hooks").join(name)
    }

    fn project(&self, name: &str) -> PathBuf {
        self.place.project.join(".tenterhook/hooks").join(name)
    }

    fn approvals(&self) -> Approvals {
        Approvals::open(&self.place.data()).unwrap()
    }

    /// Loads the existing files and begins to follow them.
    async fn begin(mut self) -> Self {
        let layers = self.place.layers();
        let trust = if self.trusts_all {
            Trust::Caller
        } else {
            Trust::Approved(Arc::new(self.approvals()))
        };
        let options = LoadOptions {
            trust: trust.clone(),
            deny_untrusted: self.denies,
            ..LoadOptions::of_process()
        };
        let search = FolderSearch::of_layers(&layers)
            .trust(trust)
            .deny_untrusted(self.denies)
            .strict(self.is_strict)
            .data_dir(Some(self.place.data()));
        let files = layers
            .hook_files_and(&[], &DisabledSources::default(), &options.trust)
            .files;
        let mut loaded = load_files(files, &options).unwrap();
        let discovered = search.clone().lenient(true).discover().await.unwrap();
        loaded.specs.extend(discovered.specs);
        loaded.project_hooks.extend(discovered.project_hooks);
        loaded.diverged.extend(discovered.diverged);
        let scope = self.engine.scope(Scope::Global);
        scope.replace(loaded.specs.clone());
        let sources = Sources {
            layers,
            named: Vec::new(),
            options,
            search,
            approvals: (!self.trusts_all).then(|| self.place.data()),
        };
        let fixed = FixedHooks::default();
        // Like tools and commands, these keep their scripts loaded.
        let has_commands = |script: &&FoundScript| !script.commands.is_empty();
        let scripts = discovered.scripts.iter().filter(has_commands);
        self.scripts = scripts.cloned().collect();
        let reloader = Reloader::new(scope, sources, &loaded, discovered.files, fixed);
        self.reloader = Some(reloader.with_additions(discovered.scripts, discovered.extensions));
        self
    }

    /// Approves all current hooks of the project.
    async fn approve(&self) {
        let layers = self.place.layers();
        let trust = Trust::Review(Arc::new(self.approvals()));
        let options = LoadOptions {
            trust: trust.clone(),
            ..LoadOptions::of_process()
        };
        let files = load_files(layers.hook_files(&options.trust), &options).unwrap();
        let found = FolderSearch::of_layers(&layers)
            .trust(trust)
            .lenient(true)
            .discover()
            .await
            .unwrap();
        let brought = files.project_hooks.into_iter().chain(found.project_hooks);
        let items: Vec<_> = brought.map(|brought| brought.item).collect();
        self.approvals().approve(&items).unwrap();
    }

    async fn reload(&mut self) -> Reloaded {
        self.reloader.as_mut().unwrap().reload().await
    }

    /// Reloads, and returns the notices.
    async fn lines(&mut self) -> Vec<String> {
        let reloaded = self.reload().await;
        assert_eq!(reloaded.problems, [""; 0]);
        let changes = reloaded.changes.iter();
        changes.map(ToString::to_string).collect()
    }

    async fn call(&self) -> Outcome<PreToolUse> {
        let dispatcher = self.engine.dispatcher(Origin::default());
        let event = PreToolUse::new("shell");
        dispatcher.dispatch(event).await
    }

    /// Calls the hooks, and returns the arguments that they wrote.
    async fn counts(&self) -> serde_json::Value {
        let outcome = self.call().await;
        assert_eq!(outcome.failures(), []);
        outcome
            .rewritten()
            .map_or(json!({}), |event| event.tool_input.clone().into())
    }

    /// Follows the files, or reloads them if asked, and returns the notices.
    async fn look(&mut self, is_asked: bool) -> Vec<String> {
        let reloader = self.reloader.as_mut().unwrap();
        let outcome = if is_asked {
            reloader.reload().await
        } else {
            reloader.follow().await
        };
        let changes = outcome.changes.iter().map(ToString::to_string);
        changes.chain(outcome.problems).collect()
    }

    async fn stopped(&self) -> Option<String> {
        self.call().await.decision().reason().map(str::to_owned)
    }
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

const NOTHING: [&str; 0] = [];

#[tokio::test]
async fn a_script_that_changes_leaves_the_state_of_the_others_alone() {
    let mut session = Session::new();
    for (name, text) in [
        ("a.py", counter("a")),
        ("b.py", counter("b")),
        ("c.mjs", node_counter("c")),
        ("d.mjs", node_counter("d")),
    ] {
        write(&session.user(name), &text);
    }
    session = session.begin().await;
    assert_eq!(
        session.counts().await,
        json!({"a": 1, "b": 1, "c": 1, "d": 1})
    );
    assert_eq!(session.lines().await, NOTHING);
    assert_eq!(
        session.counts().await,
        json!({"a": 2, "b": 2, "c": 2, "d": 2})
    );
    write(&session.user("b.py"), &counter("b2"));
    write(&session.user("d.mjs"), &node_counter("d2"));
    assert_eq!(
        session.lines().await,
        ["reloaded b.py: 1 hook", "reloaded d.mjs: 1 hook"]
    );
    assert_eq!(
        session.counts().await,
        json!({"a": 3, "b2": 1, "c": 3, "d2": 1})
    );
    fs::remove_file(session.user("b.py")).unwrap();
    write(&session.user("e.py"), &counter("e"));
    assert_eq!(
        session.lines().await,
        ["reloaded e.py: 1 hook", "unloaded b.py: its hooks are gone"]
    );
    assert_eq!(
        session.counts().await,
        json!({"a": 4, "c": 4, "d2": 2, "e": 1})
    );
    // The previous version is loaded again.
    write(&session.user("b.py"), &counter("b"));
    assert_eq!(session.lines().await, ["reloaded b.py: 1 hook"]);
    assert_eq!(
        session.counts().await,
        json!({"a": 5, "b": 1, "c": 5, "d2": 3, "e": 2})
    );
}

#[tokio::test]
async fn what_scripts_load_is_loaded_anew_too() {
    for (helper, script, before, after) in [
        ("_lib.py", "hook.py", "NAME = 'one'\n", "NAME = 'two'\n"),
        (
            "_lib.mjs",
            "hook.mjs",
            "export const NAME = 'one';\n",
            "export const NAME = 'two';\n",
        ),
    ] {
        let mut session = Session::new();
        let text = if script == "hook.py" {
            "import _lib\nfrom tenterhook import on, patch\n@on('pre_tool_use')\ndef hook(event):\n    return patch(tool_input={'name': _lib.NAME})\n"
        } else {
            "import { NAME } from './_lib.mjs';\nimport { on, patch } from 'tenterhook';\n\
             on('pre_tool_use', function hook() { return patch({ tool_input: { name: NAME } }); });\n"
        };
        write(&session.user(helper), before);
        write(&session.user(script), text);
        session = session.begin().await;
        assert_eq!(session.counts().await, json!({"name": "one"}));
        write(&session.user(helper), after);
        assert_eq!(
            session.lines().await,
            [format!("reloaded {script}: 1 hook")]
        );
        assert_eq!(session.counts().await, json!({"name": "two"}));
        write(&session.user(helper), before);
        assert_eq!(
            session.lines().await,
            [format!("reloaded {script}: 1 hook")]
        );
        assert_eq!(session.counts().await, json!({"name": "one"}));
    }
}

/// An interpreter keeps the modules that it has loaded, so a helper would not register its hooks again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guard_that_a_helper_module_registers_survives_a_reload() {
    let common = "from tenterhook import deny, on\n@on('pre_tool_use')\ndef guard(event):\n    return deny('no')\n";
    let script = "import _common\nfrom tenterhook import on\n@on('session_start')\ndef start(event):\n    pass\n";
    let session = Session::new();
    write(&session.user("_common.py"), common);
    write(&session.user("a.py"), script);
    let mut session = session.begin().await;
    assert_eq!(session.stopped().await.as_deref(), Some("no"));
    write(&session.user("a.py"), &format!("{script}# changed\n"));
    session.look(true).await;
    assert_eq!(session.stopped().await.as_deref(), Some("no"));
}

#[tokio::test]
async fn calls_under_way_finish_on_the_hooks_that_they_began_with() {
    let mut session = Session::new();
    let (began, go_on) = (
        session.place.home.join("began"),
        session.place.home.join("go_on"),
    );
    let text = format!(
        "import asyncio, os\nfrom tenterhook import deny, on\n@on('pre_tool_use')\nasync def slow(event):\n    open({:?}, 'w').close()\n    \
         while not os.path.exists({:?}):\n        await asyncio.sleep(0.005)\n    return deny('old')\n",
        began.display().to_string(),
        go_on.display().to_string()
    );
    write(&session.user("slow.py"), &text);
    session = session.begin().await;
    let dispatcher = session.engine.dispatcher(Origin::default());
    let under_way = tokio::spawn(async move {
        let outcome = dispatcher.dispatch(PreToolUse::default()).await;
        outcome.decision().reason().map(str::to_owned)
    });
    while !began.exists() {
        tokio::task::yield_now().await;
    }
    write(&session.user("slow.py"), &GUARD.replace("'no'", "'new'"));
    assert_eq!(session.lines().await, ["reloaded slow.py: 1 hook"]);
    assert_eq!(session.stopped().await.as_deref(), Some("new"));
    fs::write(go_on, "").unwrap();
    assert_eq!(under_way.await.unwrap().as_deref(), Some("old"));
}

// A guard must not get lost if its file breaks during a session, with or without a requested reload.
#[tokio::test]
async fn a_source_that_breaks_during_a_session_stays_in_force_as_it_was() {
    for is_asked in [false, true] {
        let mut session = Session::new();
        write(&session.user("guard.py"), GUARD);
        write(
            &session.user("log.mjs"),
            "import { on } from 'tenterhook';\non('turn_end', function log() {});\n",
        );
        let kodelet = session.place.home.join(".kodelet/hooks");
        let text = "#!/bin/sh\n[ \"$1\" = hook ] && echo before_tool_call\nexit 0\n";
        let ours = executable(&kodelet, "ours", text);
        let yaml = session.place.home.join("config/hooks.yaml");
        let hooks = "hooks: [{name: ask, event: permission_request, command: echo}]\n";
        write(&yaml, hooks);
        session = session.begin().await;
        assert_eq!(session.stopped().await.as_deref(), Some("no"));
        assert_eq!(session.engine.hooks().len(), 4);
        write(&session.user("guard.py"), "import nowhere\n");
        write(&session.user("log.mjs"), "syntax error\n");
        write(&ours, "#!/bin/sh\nexit 3\n");
        write(&yaml, "hoks: []\n");
        let lines = session.look(is_asked).await;
        assert_eq!(lines.len(), 4, "{lines:?}");
        for (line, name) in lines
            .iter()
            .zip(["hooks.yaml", "guard.py", "log.mjs", "ours"])
        {
            let stays =
                format!("{name} can no longer be loaded, so its previous version stays in force: ");
            assert!(line.starts_with(&stays), "{line}");
        }
        assert_eq!(session.engine.hooks().len(), 4);
        assert_eq!(session.stopped().await.as_deref(), Some("no"));
        assert_eq!(session.look(is_asked).await, NOTHING, "it is reported once");
        // A different mistake is reported, and a file with its old content again needs no reload.
        write(&session.user("guard.py"), "import nowhere_else\n");
        assert_eq!(session.look(is_asked).await.len(), 1);
        write(&session.user("guard.py"), GUARD);
        assert_eq!(session.look(false).await, NOTHING);
        assert_eq!(session.stopped().await.as_deref(), Some("no"));
    }
}

#[tokio::test]
async fn a_guard_that_changes_or_disappears_stays_in_force_until_a_reload_is_asked_for() {
    let mut session = Session::new();
    write(&session.user("guard.py"), GUARD);
    write(&session.user("gone.py"), &counter("gone"));
    session = session.begin().await;
    write(&session.user("guard.py"), &counter("weak"));
    fs::remove_file(session.user("gone.py")).unwrap();
    write(&session.user("new.py"), &counter("new"));
    assert_eq!(
        session.look(false).await,
        [
            "guard.py has changed; its previous version stays in force until you reload",
            "reloaded new.py: 1 hook",
            "gone.py is gone; its hooks stay in force until you reload",
        ]
    );
    assert_eq!(session.stopped().await.as_deref(), Some("no"));
    assert_eq!(session.engine.hooks().len(), 3);
    assert_eq!(session.look(false).await, NOTHING);
    assert_eq!(
        session.look(true).await,
        [
            "reloaded guard.py: 1 hook",
            "unloaded gone.py: its hooks are gone"
        ]
    );
    assert_eq!(session.counts().await, json!({"weak": 1, "new": 1}));
}

#[tokio::test]
async fn executables_and_hook_files_are_followed_too() {
    let mut session = Session::new();
    let dir = session.user("");
    let yaml = session.place.home.join("config/hooks.d/a.yaml");
    executable(
        &dir,
        "guard",
        "#!/bin/sh\n[ \"$1\" = hook ] && echo pre_tool_use || echo '{\"decision\": \"deny\", \"reason\": \"one\"}'\n",
    );
    session = session.begin().await;
    assert_eq!(session.stopped().await.as_deref(), Some("one"));
    executable(
        &dir,
        "guard",
        "#!/bin/sh\n[ \"$1\" = hook ] && echo turn_end\n",
    );
    assert_eq!(session.lines().await, ["reloaded guard: 1 hook"]);
    assert_eq!(session.stopped().await, None);
    write(
        &yaml,
        "hooks: [{name: y, event: pre_tool_use, command: echo two >&2; exit 2}]\n",
    );
    assert_eq!(session.lines().await, ["reloaded a.yaml: 1 hook"]);
    assert_eq!(session.stopped().await.as_deref(), Some("two"));
    write(&yaml, "hooks: []\n");
    assert_eq!(
        session.lines().await,
        ["unloaded a.yaml: its hooks are gone"]
    );
    assert_eq!(session.stopped().await, None);
}

#[tokio::test]
async fn hooks_stay_when_their_folder_becomes_a_dead_link() {
    let mut session = Session::new();
    let dir = session.place.home.join("config/hooks.d");
    let guard = "hooks: [{name: y, event: pre_tool_use, command: echo two >&2; exit 2}]\n";
    write(&dir.join("a.yaml"), guard);
    session = session.begin().await;
    fs::remove_dir_all(&dir).unwrap();
    std::os::unix::fs::symlink("/nowhere-at-all", &dir).unwrap();
    let said = session.look(true).await.join("\n");
    assert!(
        said.contains("hooks.d") && said.contains("which does not exist"),
        "{said}"
    );
    assert_eq!(session.stopped().await.as_deref(), Some("two"));
}

const GOES_ON: &str =
    "guard.py differs from its approved version, which stays in force until you approve the change";

#[tokio::test]
async fn an_agent_does_not_get_rid_of_the_guards_of_its_project() {
    let mut session = Session::new();
    let guard = session.project("guard.py");
    write(&guard, GUARD);
    session.approve().await;
    session = session.begin().await;
    assert_eq!(session.stopped().await.as_deref(), Some("no"));
    let goes_on = GOES_ON;
    for change in [&GUARD.replace("'no'", "'yes'"), "import nowhere\n", ""] {
        write(&guard, change);
        assert_eq!(session.lines().await, [goes_on], "{change}");
        assert_eq!(session.lines().await, NOTHING);
        assert_eq!(session.stopped().await.as_deref(), Some("no"));
    }
    fs::remove_file(&guard).unwrap();
    assert_eq!(session.lines().await, [goes_on]);
    assert_eq!(session.stopped().await.as_deref(), Some("no"));
    // A hook runs from its approval on, until the approval is revoked.
    write(&guard, &GUARD.replace("'no'", "'yes'"));
    session.approve().await;
    assert_eq!(session.lines().await, ["reloaded guard.py: 1 hook"]);
    assert_eq!(session.stopped().await.as_deref(), Some("yes"));
    let project = session.place.project.clone();
    session.approvals().revoke(&project, |_| true).unwrap();
    assert_eq!(session.lines().await, ["guard.py needs your approval"]);
    assert_eq!(session.stopped().await, None);
}

#[tokio::test]
async fn an_approved_guard_stays_in_force_during_a_session_that_denies_what_is_untrusted() {
    let mut session = Session {
        denies: true,
        ..Session::new()
    };
    let guard = session.project("guard.py");
    write(&guard, GUARD);
    session.approve().await;
    session = session.begin().await;
    assert_eq!(session.stopped().await.as_deref(), Some("no"));
    write(&guard, "# nothing\n");
    assert_eq!(session.lines().await, [GOES_ON]);
    assert_eq!(session.stopped().await.as_deref(), Some("no"));
    fs::remove_file(&guard).unwrap();
    assert_eq!(session.lines().await, [GOES_ON]);
    assert_eq!(session.stopped().await.as_deref(), Some("no"));
}

#[tokio::test]
async fn a_guard_that_was_restored_when_the_session_began_stays_in_force() {
    let mut session = Session::new();
    let guard = session.project("guard.py");
    write(&guard, GUARD);
    session.approve().await;
    write(&guard, "# nothing\n");
    session = session.begin().await;
    assert_eq!(session.stopped().await.as_deref(), Some("no"));
    assert_eq!(session.lines().await, NOTHING);
    write(&guard, "# nothing else\n");
    assert_eq!(session.lines().await, [GOES_ON]);
    assert_eq!(session.stopped().await.as_deref(), Some("no"));
    fs::remove_dir_all(guard.parent().unwrap()).unwrap();
    session.lines().await;
    assert_eq!(session.stopped().await.as_deref(), Some("no"));
    session.reload().await;
    assert_eq!(
        session.stopped().await.as_deref(),
        Some("no"),
        "a reload is no approval"
    );
    let project = session.place.project.clone();
    session.approvals().revoke(&project, |_| true).unwrap();
    session.reload().await;
    assert_eq!(session.stopped().await, None);
}

// M19: a switch unloads the hooks of one workspace and loads those of the other.
#[tokio::test]
async fn a_switch_of_workspaces_leaves_all_other_hooks_alone() {
    let file = |name: &str| {
        format!(
            "from core.hooks_registry import hooks_registry\ncalls = 0\n@hooks_registry.register('on_before_tool')\ndef {name}(ctx):\n    \
             global calls\n    calls += 1\n    ctx.parameters['{name}'] = calls\n"
        )
    };
    for trusts_all in [true, false] {
        let mut session = Session {
            trusts_all,
            ..Session::new()
        };
        let project = session.place.project.clone();
        write(&project.join("core/hooks/all.py"), &file("all"));
        write(&project.join("workspaces/main/hooks/m.py"), &file("m"));
        if !trusts_all {
            session.approve().await;
        }
        write(&project.join("workspaces/lab/hooks/l.py"), &file("l"));
        session = session.begin().await;
        assert_eq!(session.counts().await, json!({"all": 1, "m": 1}));
        let lab: FolderName = "lab".parse().unwrap();
        let reloader = session.reloader.as_mut().unwrap();
        let changes = reloader.switch_to(&WORKSPACE, lab).await.changes;
        let kinds: Vec<_> = changes.into_iter().map(|change| change.kind).collect();
        let came = if trusts_all {
            ChangeKind::Reloaded { hooks: 1 }
        } else {
            ChangeKind::Waits { goes_on: false }
        };
        assert_eq!(kinds, [came, ChangeKind::Removed]);
        let expected = if trusts_all {
            json!({"all": 2, "l": 1})
        } else {
            json!({"all": 2})
        };
        assert_eq!(session.counts().await, expected);
        let reloader = session.reloader.as_mut().unwrap();
        reloader
            .switch_to(&WORKSPACE, "main".parse().unwrap())
            .await;
        assert_eq!(session.counts().await, json!({"all": 3, "m": 1}));
    }
}

#[tokio::test]
async fn a_change_is_noticed_also_in_folders_that_come_later() {
    let mut session = Session::new().begin().await;
    let path = session.user("a.py");
    // The first wait starts watching.
    session.reloader.as_mut().unwrap().changed().await;
    assert_eq!(session.lines().await, NOTHING);
    for text in [counter("a"), counter("b")] {
        write(&path, &text);
        let mut lines = Vec::new();
        while lines.is_empty() {
            session.reloader.as_mut().unwrap().changed().await;
            lines = session.lines().await;
        }
        assert_eq!(lines, ["reloaded a.py: 1 hook"]);
    }
}

#[tokio::test]
async fn reading_the_files_is_not_a_change() {
    let mut session = Session::new();
    let path = session.user("a.py");
    write(&path, &counter("a"));
    session = session.begin().await;
    // The first wait starts watching.
    session.reloader.as_mut().unwrap().changed().await;
    assert_eq!(session.lines().await, NOTHING);
    write(&path, &counter("b"));
    let mut lines = Vec::new();
    let mut wakes = 0;
    while lines.is_empty() {
        session.reloader.as_mut().unwrap().changed().await;
        wakes += 1;
        lines = session.lines().await;
    }
    assert!(wakes <= 2, "{wakes}");
    // What happens within a second after the last reload is its own doing.
    while let Ok(()) = timeout(
        Duration::from_secs(1),
        session.reloader.as_mut().unwrap().changed(),
    )
    .await
    {
        wakes += 1;
        assert!(wakes <= 3, "each reload causes the next one");
        assert_eq!(session.lines().await, NOTHING);
    }
}

#[tokio::test]
async fn a_folder_that_cannot_be_looked_at_changes_nothing() {
    let mut session = Session::new();
    write(&session.user("guard.py"), GUARD);
    session = session.begin().await;
    let config = session.place.home.join("config/hooks");
    fs::rename(&config, session.place.home.join("away")).unwrap();
    fs::write(&config, "").unwrap();
    let reloaded = session.reload().await;
    assert_eq!((reloaded.changes.len(), reloaded.problems.len()), (0, 1));
    assert_eq!(session.stopped().await.as_deref(), Some("no"));
    assert_eq!(
        session.reload().await,
        Reloaded::default(),
        "it is reported once"
    );
    assert_eq!(session.engine.hooks()[0].source.layer, Layer::User);
}

/// An extension of pi with a gate and a command, which share a variable, and more registrations.
fn extension(log: &Path, version: &str, more: &str) -> String {
    format!(
        "import fs from 'node:fs';\nlet calls = 0;\nexport default function (pi: any) {{\n  \
         pi.on('tool_call', () => {{ calls += 1; }});\n  pi.registerCommand('count', {{ handler: async () => \
         fs.appendFileSync({:?}, `{version} ${{calls}}\\n`) }});\n  {more}\n}}\n",
        log.display().to_string()
    )
}

#[tokio::test]
async fn a_command_runs_the_code_of_the_version_in_force() {
    let session = Session::new();
    let log = session.place.project.join("log");
    let file = session.place.home.join(".pi/agent/extensions/counter.ts");
    write(&file, &extension(&log, "first", ""));
    let mut session = session.begin().await;
    let command = Arc::clone(&session.scripts[0].in_force);
    let run = async || {
        let never = CancellationToken::new();
        let ran = command.run_command(("count", ""), "s", Duration::from_secs(20), &never);
        ran.await.unwrap();
        fs::read_to_string(&log).unwrap()
    };
    session.counts().await;
    assert_eq!(run().await, "first 1\n");
    write(&file, &extension(&log, "second", ""));
    let stays = session.look(false).await;
    assert!(
        stays[0].contains("stays in force until you reload"),
        "{stays:?}"
    );
    session.counts().await;
    assert_eq!(run().await, "first 1\nfirst 2\n");
    assert_eq!(session.lines().await, ["reloaded counter.ts: 1 hook"]);
    session.counts().await;
    assert_eq!(run().await, "first 1\nfirst 2\nsecond 1\n");
    // An unchanged extension keeps its state.
    assert_eq!(session.lines().await, [""; 0]);
    session.counts().await;
    assert!(run().await.ends_with("second 1\nsecond 2\n"));
    // A broken version does not replace it.
    write(&file, "export default function (\n");
    session.look(true).await;
    assert!(run().await.ends_with("second 2\nsecond 2\n"));
    write(
        &file,
        &extension(
            &log,
            "third",
            "pi.registerCommand('other', { handler() {} });",
        ),
    );
    let notices = session.look(true).await;
    assert_eq!(
        notices,
        [
            "reloaded counter.ts: 1 hook",
            "`counter.ts` registers other tools, commands, flags or providers than when the session began; they take effect \
             in a new session"
        ]
    );
    assert!(run().await.ends_with("third 0\n"));
}
