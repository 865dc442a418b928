//! Folders of executables: which files are found, and which of them run.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tenterhook_discovery::{FileState, FolderHooks, FolderSearch, HookFolder, Layers};
use tenterhook_trust::{Approvals, Trust};

/// A home and a project in separate folders.
pub(crate) struct Place {
    _home: TempDir,
    pub(crate) home: PathBuf,
    pub(crate) project: PathBuf,
}

impl Place {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let whole = fs::canonicalize(dir.path()).unwrap();
        let (home, project) = (whole.join("home"), whole.join("project"));
        fs::create_dir_all(&home).unwrap();
        fs::create_dir_all(project.join(".git")).unwrap();
        Self {
            _home: dir,
            home,
            project,
        }
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.home.join("data")
    }

    pub(crate) fn layers(&self) -> Layers {
        Layers {
            system: Some(self.home.join("etc")),
            user: Some(self.home.join("config")),
            home: Some(self.home.clone()),
            start: Some(self.project.clone()),
        }
    }

    /// Writes an executable that declares an event and leaves a mark when it is asked for it.
    pub(crate) fn hook(&self, dir: &Path, name: &str, event: &str) -> PathBuf {
        let marks = self.home.join("asked");
        executable(
            dir,
            name,
            &format!(
                "#!/bin/sh\n[ \"$1\" = hook ] && echo x >> '{}' && echo {event}\n",
                marks.display()
            ),
        )
    }

    /// Returns how often executables were asked so far.
    pub(crate) fn asked(&self) -> usize {
        let marks = fs::read_to_string(self.home.join("asked")).unwrap_or_default();
        marks.lines().count()
    }

    fn local(&self) -> PathBuf {
        self.project.join(".kodelet/hooks")
    }

    fn local_plugin(&self, name: &str) -> PathBuf {
        self.project
            .join(".kodelet/plugins")
            .join(name)
            .join("hooks")
    }

    fn global(&self) -> PathBuf {
        self.home.join(".kodelet/hooks")
    }

    fn global_plugin(&self, name: &str) -> PathBuf {
        self.home.join(".kodelet/plugins").join(name).join("hooks")
    }

    /// Finds hooks for a user who trusts the project.
    async fn discover(&self) -> FolderHooks {
        FolderSearch::of_layers(&self.layers())
            .trust(Trust::Caller)
            .lenient(true)
            .deadline(Duration::from_secs(5))
            .discover()
            .await
            .unwrap()
    }
}

pub(crate) fn executable(dir: &Path, name: &str, text: &str) -> PathBuf {
    fs::create_dir_all(dir).unwrap();
    let path = dir.join(name);
    fs::write(&path, text).unwrap();
    mode(&path, 0o755);
    path
}

pub(crate) fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Returns the name and the event of each hook, in order.
fn hooks(discovered: &FolderHooks) -> Vec<(&str, &str)> {
    let specs = discovered.specs.iter();
    specs
        .map(|spec| (spec.id.as_str(), spec.event.as_ref().unwrap().as_str()))
        .collect()
}

fn state<'a>(discovered: &'a FolderHooks, path: &Path) -> &'a FileState {
    let found = discovered.files.iter().find(|file| file.path == path);
    &found
        .unwrap_or_else(|| panic!("not found: {}", path.display()))
        .state
}

// K-D1: empty and missing folders have no hooks and cause no error.
#[tokio::test]
async fn empty_and_missing_folders_have_no_hooks() {
    let place = Place::new();
    fs::create_dir_all(place.local()).unwrap();
    let discovered = place.discover().await;
    assert!(discovered.specs.is_empty() && discovered.files.is_empty());
    assert!(discovered.warnings.is_empty(), "{:?}", discovered.warnings);
}

// K-P1 and K-P2: white space around the declared name is ignored.
#[tokio::test]
async fn an_executable_declares_its_event() {
    let place = Place::new();
    place.hook(&place.local(), "a", "before_tool_call");
    place.hook(&place.local(), "b", "'  turn_end  '");
    place.hook(&place.local(), "c", "user_message_send");
    place.hook(&place.local(), "d", "after_tool_call");
    place.hook(&place.local(), "e", "agent_stop");
    let discovered = place.discover().await;
    assert_eq!(
        hooks(&discovered),
        [
            ("a", "pre_tool_use"),
            ("b", "turn_end"),
            ("c", "user_prompt_submit"),
            ("d", "post_tool_use"),
            ("e", "stop"),
        ]
    );
    let timeouts = discovered.specs.iter().map(|spec| spec.timeout);
    assert!(
        timeouts
            .into_iter()
            .all(|timeout| timeout == Duration::from_secs(30))
    );
}

// K-P3, K-P4, K-P5: a file that does not declare exactly one known event is broken, with the reason.
#[tokio::test]
async fn what_declares_no_event_is_no_hook_and_is_told() {
    let place = Place::new();
    let cases = [
        (
            "case",
            "#!/bin/sh\necho Turn_End\n",
            "the unknown event `Turn_End`",
        ),
        (
            "two",
            "#!/bin/sh\necho turn_end; echo agent_stop\n",
            "more than one word",
        ),
        (
            "unknown",
            "#!/bin/sh\necho session_start\n",
            "the unknown event `session_start`",
        ),
        ("empty", "#!/bin/sh\n", "it printed nothing"),
        (
            "fails",
            "#!/bin/sh\necho turn_end; echo broken >&2; exit 1\n",
            "exit status 1: broken",
        ),
        ("dies", "#!/bin/sh\nkill -9 $$\n", "killed by signal 9"),
        ("missing", "#!/nowhere/sh\n", "interpreter"),
        ("text", "echo turn_end\n", "neither a program nor a script"),
    ];
    for (name, text, _) in cases {
        executable(&place.local(), name, text);
    }
    let discovered = place.discover().await;
    assert!(discovered.specs.is_empty());
    for (name, _, problem) in cases {
        let state = state(&discovered, &place.local().join(name)).describe();
        assert!(state.contains(problem), "{name}: {state}");
        let broken = discovered.broken.iter().find(|it| it.path.ends_with(name));
        let message = &broken.unwrap().problems[0].message;
        assert!(message.contains(problem), "{name}: {message}");
    }
}

// K-P6: an executable that never answers delays neither the start nor the others forever.
#[tokio::test]
async fn an_executable_that_never_answers_is_given_up() {
    let place = Place::new();
    for number in 0..3 {
        executable(
            &place.local(),
            &format!("hangs{number}"),
            "#!/bin/sh\nexec sleep 300\n",
        );
    }
    place.hook(&place.local(), "works", "turn_end");
    let began = Instant::now();
    let discovered = place.discover().await;
    assert_eq!(hooks(&discovered), [("works", "turn_end")]);
    assert!(
        began.elapsed() < Duration::from_secs(12),
        "asked one after another"
    );
    let state = state(&discovered, &place.local().join("hangs0")).describe();
    assert!(state.contains("it did not answer within 5 s"), "{state}");
}

// K-D2, K-D3, K-D4: folders and files that are not executable are not hooks; only `.disable` disables.
#[tokio::test]
async fn what_may_not_be_executed_or_is_disabled_is_no_hook() {
    let place = Place::new();
    let local = place.local();
    fs::create_dir_all(local.join("folder")).unwrap();
    for name in [
        "plain",
        "off.disable",
        "on.DISABLE",
        "on.disabled",
        ".hidden",
    ] {
        place.hook(&local, name, "turn_end");
    }
    mode(&local.join("plain"), 0o644);
    let discovered = place.discover().await;
    let names: Vec<_> = hooks(&discovered)
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names, [".hidden", "on.DISABLE", "on.disabled"]);
    let plain = state(&discovered, &local.join("plain")).describe();
    assert!(plain.contains("is not executable"), "{plain}");
    assert_eq!(
        *state(&discovered, &local.join("off.disable")),
        FileState::Disabled
    );
    assert_eq!(place.asked(), 3);
}

// K-D5, K-D8: of two files with the same name, the first is the hook, even if they declare other events.
#[tokio::test]
async fn a_file_shadows_those_of_its_name_in_later_folders() {
    let place = Place::new();
    let first = place.hook(&place.local(), "guard", "after_tool_call");
    let second = place.hook(&place.global(), "guard", "before_tool_call");
    let discovered = place.discover().await;
    assert_eq!(hooks(&discovered), [("guard", "post_tool_use")]);
    assert_eq!(
        *state(&discovered, &second),
        FileState::Shadowed { by: first }
    );
    assert_eq!(place.asked(), 1, "what is shadowed is not asked");
}

// K-D6, K-D7: a broken, disabled or non-executable file hides no other.
#[tokio::test]
async fn a_file_that_does_not_work_shadows_nothing() {
    let place = Place::new();
    for name in ["bogus", "off", "plain", "crash"] {
        place.hook(&place.global(), name, "before_tool_call");
    }
    place.hook(&place.local(), "bogus", "no_such_event");
    place.hook(&place.local(), "off.disable", "turn_end");
    mode(&place.hook(&place.local(), "plain", "turn_end"), 0o644);
    executable(&place.local(), "crash", "#!/bin/sh\nexit 3\n");
    let discovered = place.discover().await;
    let names: Vec<_> = hooks(&discovered)
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names, ["bogus", "crash", "off", "plain"]);
    let sources = discovered
        .specs
        .iter()
        .map(|spec| spec.source.path.clone().unwrap());
    assert!(
        sources
            .into_iter()
            .all(|path| path.starts_with(place.global()))
    );
    assert_eq!(discovered.broken.len(), 3, "{:?}", discovered.broken);
}

// K-D9, K-D12: the names of plugin hooks begin with the plugin's name.
#[tokio::test]
async fn plugins_give_their_names_to_their_hooks() {
    let place = Place::new();
    for plugin in ["org@repo", "a@b@c", "plain"] {
        place.hook(&place.local_plugin(plugin), "h", "turn_end");
    }
    let discovered = place.discover().await;
    let names: Vec<_> = hooks(&discovered)
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names, ["a/b@c/h", "org/repo/h", "plain/h"]);
}

// K-D10, K-D11, K-D14: folders have precedence in their order; plugin hooks and plain hooks have
// different names.
#[tokio::test]
async fn folders_count_in_their_order() {
    let place = Place::new();
    place.hook(&place.global_plugin("org@repo"), "h", "turn_end");
    place.hook(&place.global_plugin("org@repo"), "four", "turn_end");
    place.hook(&place.global(), "three", "turn_end");
    place.hook(&place.local_plugin("org@repo"), "h", "turn_end");
    place.hook(&place.local(), "h", "turn_end");
    place.hook(&place.home.join("etc/hooks"), "h", "turn_end");
    place.hook(&place.project.join(".tenterhook/hooks"), "h", "turn_end");
    place.hook(&place.home.join("config/hooks"), "h2", "turn_end");
    let discovered = place.discover().await;
    let names: Vec<_> = hooks(&discovered)
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(
        names,
        ["h", "h", "h", "org/repo/h", "h2", "three", "org/repo/four"]
    );
    let shadowed = place.global_plugin("org@repo").join("h");
    assert!(matches!(
        state(&discovered, &shadowed),
        FileState::Shadowed { .. }
    ));
}

// K-D14: the hooks run in the same order.
#[tokio::test]
async fn hooks_of_folders_run_in_the_order_of_their_folders() {
    let place = Place::new();
    place.hook(&place.global_plugin("org@repo"), "four", "turn_end");
    place.hook(&place.global(), "three", "turn_end");
    place.hook(&place.local_plugin("org@repo"), "two", "turn_end");
    place.hook(&place.local(), "one", "turn_end");
    place.hook(&place.home.join("config/hooks"), "user", "turn_end");
    place.hook(&place.home.join("etc/hooks"), "system", "turn_end");
    place.hook(&place.project.join(".tenterhook/hooks"), "own", "turn_end");
    let engine = tenterhook_engine::Engine::builder().build();
    let specs = place.discover().await.specs;
    engine
        .scope(tenterhook_engine::Scope::Global)
        .replace(specs);
    let order: Vec<String> = engine
        .hooks()
        .iter()
        .map(|hook| hook.id.to_string())
        .collect();
    let expected = [
        "system",
        "user",
        "own",
        "one",
        "org/repo/two",
        "three",
        "org/repo/four",
    ];
    assert_eq!(order, expected);
}

// K-D13: files are in the byte order of their names.
#[tokio::test]
async fn files_of_a_folder_run_in_the_byte_order_of_their_names() {
    let place = Place::new();
    for name in ["a", "B", ".z"] {
        place.hook(&place.local(), name, "turn_end");
    }
    let discovered = place.discover().await;
    assert_eq!(
        hooks(&discovered),
        [(".z", "turn_end"), ("B", "turn_end"), ("a", "turn_end")]
    );
}

// K-D15, K-D16: links are followed; a link without a usable target is reported and hides no other file.
#[tokio::test]
async fn links_are_followed() {
    let place = Place::new();
    let elsewhere = place.home.join("elsewhere");
    let good = place.hook(&elsewhere, "good", "turn_end");
    let plain = place.hook(&elsewhere, "plain", "turn_end");
    mode(&plain, 0o644);
    fs::create_dir_all(place.local()).unwrap();
    symlink(&good, place.local().join("good")).unwrap();
    symlink(&plain, place.local().join("plain")).unwrap();
    symlink(elsewhere.join("nowhere"), place.local().join("dangling")).unwrap();
    symlink(&elsewhere, place.local().join("folder")).unwrap();
    place.hook(&place.global(), "dangling", "agent_stop");
    let plugin = place.home.join("plugin");
    place.hook(&plugin.join("hooks"), "linked", "turn_end");
    fs::create_dir_all(place.project.join(".kodelet/plugins")).unwrap();
    symlink(&plugin, place.project.join(".kodelet/plugins/o@r")).unwrap();

    let discovered = place.discover().await;
    assert_eq!(
        hooks(&discovered),
        [
            ("good", "turn_end"),
            ("o/r/linked", "turn_end"),
            ("dangling", "stop")
        ]
    );
    // A link to a folder is ignored, like a folder.
    assert!(
        discovered
            .files
            .iter()
            .all(|file| !file.path.ends_with("folder"))
    );
    for (name, problem) in [
        ("dangling", "points to a missing file"),
        ("plain", "is not executable"),
    ] {
        let state = state(&discovered, &place.local().join(name)).describe();
        assert!(state.contains(problem), "{name}: {state}");
    }
}

// K-D17: a folder that cannot be read is reported, and the other folders are not affected.
#[tokio::test]
async fn a_folder_that_cannot_be_read_does_not_take_the_others_away() {
    let place = Place::new();
    let plugin = place.project.join(".kodelet/plugins/org@repo");
    fs::create_dir_all(&plugin).unwrap();
    fs::write(plugin.join("hooks"), "a file").unwrap();
    place.hook(&place.local(), "works", "turn_end");
    let discovered = place.discover().await;
    assert_eq!(hooks(&discovered), [("works", "turn_end")]);
    let [broken] = &discovered.broken[..] else {
        panic!("{:?}", discovered.broken);
    };
    assert!(broken.path.ends_with("org@repo/hooks"), "{broken:?}");
    assert!(
        broken.problems[0]
            .message
            .contains("not a folder; Tenterhook expects"),
        "{broken:?}"
    );
}

#[tokio::test]
async fn an_unchanged_folder_is_not_asked_again_and_a_changed_file_is() {
    let place = Place::new();
    let path = place.hook(&place.local(), "one", "turn_end");
    place.hook(&place.local(), "two", "agent_stop");
    let discover = || async {
        FolderSearch::of_layers(&place.layers())
            .trust(Trust::Caller)
            .data_dir(Some(place.data()))
            .lenient(true)
            .discover()
            .await
            .unwrap()
    };
    let first = discover().await;
    assert_eq!(place.asked(), 2);
    assert_eq!(hooks(&discover().await), hooks(&first));
    assert_eq!(place.asked(), 2);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("turn_end", "after_tool_call")).unwrap();
    assert_eq!(
        hooks(&discover().await),
        [("one", "post_tool_use"), ("two", "stop")]
    );
    assert_eq!(place.asked(), 3);
    fs::write(place.data().join("probes.json"), "{ damaged").unwrap();
    assert_eq!(discover().await.specs.len(), 2);
    assert_eq!(place.asked(), 5);
}

#[tokio::test]
async fn a_program_that_another_one_declares_for_is_asked_each_time() {
    let place = Place::new();
    let tools = place.home.join("tools");
    let tool = |event: &str| {
        let text = format!("#!/bin/sh\n[ \"$1\" = hook ] && echo {event}\n");
        executable(&tools, "tool", &text);
        let text = format!("#!/bin/sh\n# {event} of $1\n[ \"$2\" = hook ] && echo {event}\n");
        executable(&tools, "interpreter", &text);
    };
    tool("turn_end");
    let at = tools.display();
    let wrapper = format!("#!/bin/sh\n# turn_end\nexec '{at}/tool' \"$@\"\n");
    executable(&place.local(), "wrapper", &wrapper);
    let script = format!("#!{at}/interpreter\nturn_end or agent_stop\n");
    executable(&place.local(), "script", &script);
    let discover = || async {
        let discovery = FolderSearch::of_layers(&place.layers()).trust(Trust::Caller);
        let discovery = discovery.data_dir(Some(place.data()));
        hooks(&discovery.discover().await.unwrap())
            .into_iter()
            .map(|(name, event)| format!("{name} {event}"))
            .collect::<Vec<_>>()
    };
    assert_eq!(discover().await, ["script turn_end", "wrapper turn_end"]);
    tool("agent_stop");
    assert_eq!(discover().await, ["script stop", "wrapper stop"]);
}

#[tokio::test]
async fn the_own_folder_takes_every_event_of_the_catalogue() {
    let place = Place::new();
    let own = place.project.join(".tenterhook/hooks");
    place.hook(&own, "canonical", "session_start");
    place.hook(&own, "documented", "before_tool_call");
    place.hook(&own, "both", "turn_end");
    place.hook(&place.local(), "foreign", "session_start");
    let discovered = place.discover().await;
    assert_eq!(
        hooks(&discovered),
        [
            ("both", "turn_end"),
            ("canonical", "session_start"),
            ("documented", "pre_tool_use"),
        ]
    );
}

#[tokio::test]
async fn what_is_managed_is_never_shadowed() {
    let place = Place::new();
    place.hook(&place.home.join("etc/hooks"), "guard", "pre_tool_use");
    place.hook(
        &place.project.join(".tenterhook/hooks"),
        "guard",
        "turn_end",
    );
    let discovered = place.discover().await;
    assert_eq!(
        hooks(&discovered),
        [("guard", "pre_tool_use"), ("guard", "turn_end")]
    );
}

#[tokio::test]
async fn folders_may_be_given_by_hand() {
    let place = Place::new();
    place.hook(&place.home.join("mine"), "h", "turn_end");
    let folder = HookFolder {
        dir: place.home.join("mine"),
        prefix: "org/repo/".to_owned(),
        layer: tenterhook_engine::Layer::Explicit,
        kind: &tenterhook_systems::kodelet::HOOK_FOLDER,
        project: None,
        file: None,
    };
    let discovered = FolderSearch::of_folders([folder])
        .lenient(true)
        .discover()
        .await
        .unwrap();
    assert_eq!(hooks(&discovered), [("org/repo/h", "turn_end")]);
}

#[tokio::test]
async fn an_untrusted_file_is_not_run_and_hides_nothing() {
    let place = Place::new();
    let untrusted = place.hook(&place.local(), "guard", "turn_end");
    place.hook(&place.global(), "guard", "before_tool_call");
    let approvals = Arc::new(Approvals::open(&place.data()).unwrap());
    let discovered = FolderSearch::of_layers(&place.layers())
        .trust(Trust::Review(approvals))
        .lenient(true)
        .discover()
        .await
        .unwrap();
    assert_eq!(hooks(&discovered), [("guard", "pre_tool_use")]);
    assert_eq!(*state(&discovered, &untrusted), FileState::Untrusted);
    assert_eq!(place.asked(), 1, "the untrusted one is not asked either");
}

const SCRIPT: &str = "from tenterhook import deny, on\n\n@on('pre_tool_use', matcher='shell', priority=3)\ndef guard(event):\n    return deny('no')\n\n\
                      @on(['stop', 'x-acme.done'])\ndef log(event):\n    pass\n";

#[tokio::test]
async fn a_script_of_the_own_folder_has_the_hooks_that_it_registers() {
    let place = Place::new();
    let own = place.project.join(".tenterhook/hooks");
    fs::create_dir_all(&own).unwrap();
    let node = "import { on } from 'tenterhook';\non('turn_end', function seen() {});\non('turn_end', function seen() {});\n";
    for (name, text) in [
        ("guard.py", SCRIPT),
        ("seen.mjs", node),
        ("_lib.py", "x = 1\n"),
        ("none.py", "x = 1\n"),
        ("broken.py", "import nowhere\n"),
        (
            "wrong.py",
            "from tenterhook import on\non('pre_tool')(print)\n",
        ),
        (
            "matcher.py",
            "from tenterhook import on\non('turn_start', matcher='shell')(print)\n",
        ),
    ] {
        fs::write(own.join(name), text).unwrap();
    }
    let discovered = place.discover().await;
    assert_eq!(
        hooks(&discovered),
        [
            ("guard.py:guard", "pre_tool_use"),
            ("guard.py:log", "stop"),
            ("guard.py:log", "x-acme.done"),
            ("seen.mjs:seen", "turn_end"),
            ("seen.mjs:seen#2", "turn_end"),
        ]
    );
    let guard = &discovered.specs[0];
    assert_eq!(
        (guard.matcher.to_string(), guard.priority),
        ("shell".to_owned(), 3)
    );
    assert_eq!(
        *state(&discovered, &own.join("_lib.py")),
        FileState::NotExecutable
    );
    for (name, problem) in [
        ("none.py", "the file registers no hooks"),
        ("broken.py", "line 1: ModuleNotFoundError"),
        ("wrong.py", "hook `print`: "),
        ("matcher.py", "`turn_start` cannot have a matcher"),
    ] {
        let found = state(&discovered, &own.join(name)).describe();
        assert!(found.contains(problem), "{name}: {found}");
    }
    // In a kodelet folder, scripts are just files without the permission to execute.
    fs::create_dir_all(place.local()).unwrap();
    fs::write(place.local().join("guard.py"), SCRIPT).unwrap();
    let discovered = place.discover().await;
    assert_eq!(
        *state(&discovered, &place.local().join("guard.py")),
        FileState::NotExecutable
    );
}

#[tokio::test]
async fn a_script_of_a_project_is_loaded_once_it_is_approved() {
    let place = Place::new();
    let own = place.project.join(".tenterhook/hooks");
    fs::create_dir_all(&own).unwrap();
    let mark = place.home.join("loaded");
    let text = format!(
        "import _lib\nopen({:?}, 'a').write('x')\n{SCRIPT}",
        mark.display().to_string()
    );
    fs::write(own.join("guard.py"), text).unwrap();
    fs::write(own.join("_lib.py"), "x = 1\n").unwrap();
    let discover = || async {
        let approvals = Arc::new(Approvals::open(&place.data()).unwrap());
        let search = FolderSearch::of_layers(&place.layers()).trust(Trust::Review(approvals));
        search.lenient(true).discover().await.unwrap()
    };
    let first = discover().await;
    assert!(first.specs.is_empty() && !mark.exists());
    assert_eq!(*state(&first, &own.join("guard.py")), FileState::Untrusted);
    let items: Vec<_> = first
        .project_hooks
        .into_iter()
        .map(|brought| brought.item)
        .collect();
    Approvals::open(&place.data())
        .unwrap()
        .approve(&items)
        .unwrap();
    assert_eq!(discover().await.specs.len(), 3);
    assert!(mark.exists());
    fs::write(own.join("_lib.py"), "x = 2\n").unwrap();
    let changed = discover().await;
    assert!(changed.project_hooks[0].is_approved_in_force);
    assert_eq!(changed.specs.len(), 3, "the approved version is in force");
}
