//! What an approval covers. Every attack changes a project file after the hook was approved.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use tenterhook_discovery::{LoadOptions, Loaded, load_file};
use tenterhook_engine::{Dispatcher, Engine, Layer, Origin, Scope};
use tenterhook_protocol::event::PreToolUse;
use tenterhook_trust::{Approvals, Trust, TrustState};

use crate::folder::{Place, executable};

/// A project with one hook.
struct Project {
    place: Place,
}

/// What an approval of a hook would cover.
#[derive(Debug, PartialEq, Eq)]
enum Offer {
    /// The hook cannot be approved.
    Refused(String),
    /// The person who approves sees these notes about what can change later.
    Noted(Vec<String>),
    /// The approval covers everything that the hook loads: these files.
    Covered(Vec<String>),
}

const HOOKS: &str = ".tenterhook/hooks.yaml";

impl Project {
    /// Creates a project with a hook that has these keys.
    fn new(keys: &str) -> Self {
        let project = Self {
            place: Place::new(),
        };
        project.write(
            HOOKS,
            &format!("hooks:\n  - {{name: guard, event: pre_tool_use, {keys}}}\n"),
        );
        project
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.place.project.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn with(self, path: &str, text: &str) -> Self {
        self.write(path, text);
        self
    }

    fn executable(self, path: &str, text: &str) -> Self {
        let path = self.place.project.join(path);
        let name = path.file_name().unwrap().to_str().unwrap();
        executable(path.parent().unwrap(), name, text);
        self
    }

    fn load(&self) -> Loaded {
        let approvals = Approvals::open(&self.place.data()).unwrap();
        let options = LoadOptions {
            trust: Trust::Review(Arc::new(approvals)),
            directory: self.place.project.clone(),
            ..LoadOptions::of_process()
        };
        load_file(&self.place.project.join(HOOKS), Layer::Project, &options).unwrap()
    }

    fn offer(&self) -> Offer {
        let mut loaded = self.load();
        if let Some(refused) = loaded.untrusted.first() {
            return Offer::Refused(format!("{:?}", refused.problems));
        }
        let item = loaded.project_hooks.remove(0).item;
        if item.unread.is_empty() {
            let files = item
                .files
                .iter()
                .map(|file| file.path.display().to_string());
            Offer::Covered(files.collect())
        } else {
            Offer::Noted(item.unread)
        }
    }

    fn approve(&self) {
        let brought = self.load().project_hooks;
        let items: Vec<_> = brought.into_iter().map(|brought| brought.item).collect();
        let mut approvals = Approvals::open(&self.place.data()).unwrap();
        approvals.approve(&items).unwrap();
    }

    /// Runs the loaded hook, and returns why it denies.
    async fn reason(&self, loaded: &Loaded, dir: &Path) -> Option<String> {
        let engine = Engine::builder().build();
        engine.scope(Scope::Global).replace(loaded.specs.clone());
        let dispatcher: Dispatcher = engine.dispatcher(Origin::new("", dir.to_owned()));
        let event = || PreToolUse::new("shell");
        let outcome = dispatcher.dispatch_with(event).await;
        outcome.decision().reason().map(str::to_owned)
    }

    /// Approves the hook, changes a file, and checks that the hook still gives the same answer.
    async fn assert_covers(&self, changed: &str, text: &str) {
        let offer = self.offer();
        assert!(matches!(offer, Offer::Covered(_)), "{offer:?}");
        self.approve();
        let loaded = self.load();
        assert_eq!(loaded.project_hooks[0].state, TrustState::Trusted);
        let dir = &self.place.project;
        let before = self.reason(&loaded, dir).await;
        assert_eq!(before.as_deref(), Some("approved"));
        self.write(changed, text);
        assert_eq!(self.reason(&loaded, dir).await, before);
        assert_eq!(self.load().project_hooks[0].state, TrustState::Changed);
    }
}

/// A verdict in the wire format of hooks.
const DENY: &str = r#"{"decision": "block", "reason": "approved"}"#;
const ALLOW: &str = "{}";

fn python(verdict: &str) -> String {
    format!("verdict = '{verdict}'\n")
}

#[tokio::test]
async fn a_verdict_that_is_read_from_a_file_is_the_approved_one() {
    let project = Project::new("command: cat verdict").with("verdict", DENY);
    project.assert_covers("verdict", ALLOW).await;
}

#[tokio::test]
async fn a_file_that_is_read_in_a_subfolder_is_the_approved_one() {
    let project = Project::new("command: cat sub/verdict").with("sub/verdict", DENY);
    project.assert_covers("sub/verdict", ALLOW).await;
    let project = Project::new("command: cat verdict, working_dir: sub");
    let project = project.with("sub/verdict", DENY);
    assert_eq!(
        project.offer(),
        Offer::Covered(vec!["sub/verdict".to_owned()])
    );
    // The working folder of the agent has no influence either.
    let project = Project::new("command: cat verdict").with("verdict", DENY);
    project.approve();
    let loaded = project.load();
    project.write("sub/verdict", ALLOW);
    let sub = project.place.project.join("sub");
    assert_eq!(
        project.reason(&loaded, &sub).await.as_deref(),
        Some("approved")
    );
}

#[tokio::test]
async fn a_file_that_appears_later_is_not_read() {
    let project = Project::new("command: cat verdict");
    project.approve();
    let loaded = project.load();
    project.write("verdict", ALLOW);
    let reason = project.reason(&loaded, &project.place.project).await;
    assert!(
        reason.is_some(),
        "`cat` fails, and a gate that fails denies"
    );
}

#[tokio::test]
async fn a_module_from_the_python_path_is_the_approved_one() {
    for path in [".", ":/x", "./"] {
        let project = Project::new(&format!(
            "command: python3 check.py, env: {{PYTHONPATH: '{path}'}}"
        ));
        let project = project
            .with("check.py", "import rules\nprint(rules.verdict)\n")
            .with("rules.py", &python(DENY));
        project.assert_covers("rules.py", &python(ALLOW)).await;
    }
}

#[tokio::test]
async fn a_module_that_shadows_one_of_python_changes_the_hook() {
    let project = Project::new("command: python3 check.py, env: {PYTHONPATH: .}");
    let project = project.with(
        "check.py",
        &format!("import json\nprint(json.dumps(json.loads('{DENY}')))\n"),
    );
    let evil = "loads = dumps = lambda text: '{}'\n";
    project.assert_covers("json.py", evil).await;
}

#[tokio::test]
async fn a_program_from_the_search_path_is_the_approved_one() {
    let script = |verdict: &str| format!("#!/bin/sh\necho '{verdict}'\n");
    let project = Project::new("command: sh check.sh, env: {PATH: './bin:/usr/bin:/bin'}")
        .with("check.sh", "verdict\n")
        .executable("bin/verdict", &script(DENY));
    project.assert_covers("bin/verdict", &script(ALLOW)).await;
    let project = Project::new("command: sh check.sh, env: {PATH: ':/usr/bin:/bin'}")
        .with("check.sh", "verdict\n")
        .executable("verdict", &script(DENY));
    project.assert_covers("verdict", &script(ALLOW)).await;
}

#[tokio::test]
async fn the_start_file_of_a_shell_is_the_approved_one() {
    let project = Project::new("command: bash check.sh, env: {BASH_ENV: start}")
        .with("check.sh", "echo \"$verdict\"\n")
        .with("start", &format!("verdict='{DENY}'\n"));
    project
        .assert_covers("start", &format!("verdict='{ALLOW}'\n"))
        .await;
}

#[test]
fn folders_of_libraries_count_with_their_files() {
    for (keys, expected) in [
        (
            "command: perl -Ilib check.pl",
            &["check.pl", "lib/rules", "lib/sub/Rules.pm"][..],
        ),
        (
            "command: perl check.pl, env: {PERL5LIB: lib}",
            &["check.pl", "lib/rules", "lib/sub/Rules.pm"],
        ),
        (
            "command: node check.js, env: {NODE_PATH: ./lib}",
            &["check.js", "lib/rules", "lib/sub/Rules.pm"],
        ),
        (
            "command: ruby check.rb, env: {RUBYLIB: '/x:lib'}",
            &["check.rb", "lib/rules", "lib/sub/Rules.pm"],
        ),
        (
            "command: ./check.sh, env: {LD_LIBRARY_PATH: lib}",
            &["check.sh", "lib/rules"],
        ),
        ("command: jq -f rules", &["rules"]),
        (
            "command: jq -L lib -f x.jq",
            &["x.jq", "lib/rules", "lib/sub/Rules.pm"],
        ),
        ("command: python3 -I check.py", &["check.py"]),
        ("command: python3 -E check.py", &["check.py"]),
    ] {
        let project = Project::new(keys)
            .with("lib/rules", "")
            .with("lib/sub/Rules.pm", "")
            .with("rules", ".")
            .with("x.jq", "include \"rules\"; .");
        let project = ["check.pl", "check.js", "check.rb", "check.py", "check.sh"]
            .into_iter()
            .fold(project, |project, script| project.executable(script, ""));
        let expected = expected.iter().map(ToString::to_string).collect();
        assert_eq!(project.offer(), Offer::Covered(expected), "{keys}");
    }
}

#[test]
fn what_cannot_be_covered_is_noted() {
    for (keys, noted) in [
        ("command: make -fevil.mk", "`make`"),
        ("command: node --require=./evil.js check.js", "--require"),
        ("command: env PYTHONPATH=. python3 check.py", "`env`"),
        (
            "command: PYTHONPATH=. python3 check.py",
            "shell command line",
        ),
        ("command: python3 -m evil", "`-m`"),
        ("command: python3 -mevil", "`-mevil`"),
        ("command: perl -Mevil check.pl", "`-Mevil`"),
        ("command: bash --rcfile evil.sh -i check.sh", "--rcfile"),
        ("command: sort --compress-program=./evil.sh x", "--compress"),
        ("command: jq -f import.jq", "`import.jq`"),
        ("command: grep -r x lib", "`-r`"),
        ("command: cat lib", "`lib`"),
        ("command: sh check.sh lib", "`lib`"),
        ("command: sh check.sh rules", "`rules`"),
        ("command: sh check.sh ./new", "`./new`"),
        ("command: sh check.sh new.json", "`new.json`"),
        ("command: sh check.sh -frules", "`rules`"),
        ("command: sh check.sh '@rules'", "`rules`"),
        ("command: sh check.sh rules=./rules", "rules"),
        ("command: sh mentions.sh", "`rules`"),
        ("command: sh check.sh, env: {HOME: .}", "HOME"),
        (
            "command: sh check.sh, env: {LD_PRELOAD: ./evil.so}",
            "LD_PRELOAD",
        ),
        ("command: sh check.sh, env: {PERL5OPT: -Mevil}", "PERL5OPT"),
        ("command: sh check.sh, env: {RUBYOPT: -revil}", "RUBYOPT"),
        (
            "command: sh check.sh, env: {NODE_OPTIONS: --require=./evil.js}",
            "NODE_OPTIONS",
        ),
        (
            "command: sh check.sh, env: {GIT_SSH_COMMAND: ./evil.sh}",
            "GIT_SSH_COMMAND",
        ),
        ("command: sh check.sh, env: {ENV: '`./evil.sh`'}", "ENV"),
        ("command: sh check.sh, env: {PYTHONPATH: ../x}", "outside"),
        ("command: sh check.sh, env: {RULES: rules}", "RULES"),
        ("command: sh check.sh, env: {RULES_DIR: lib}", "RULES_DIR"),
    ] {
        let project = Project::new(keys)
            .with("lib/rules", "")
            .with("rules", "")
            .with("import.jq", "import \"evil\" as evil; .")
            .with("mentions.sh", "cat rules\n")
            .with("evil.mk", "")
            .with("evil.sh", "");
        let project = ["check.pl", "check.js", "check.py", "check.sh"]
            .into_iter()
            .fold(project, |project, script| project.executable(script, ""));
        match project.offer() {
            Offer::Noted(notes) => {
                assert!(
                    notes.iter().any(|note| note.contains(noted)),
                    "{keys}: {notes:?}"
                );
            }
            other @ (Offer::Refused(_) | Offer::Covered(_)) => panic!("{keys}: {other:?}"),
        }
    }
}

#[test]
fn a_library_folder_with_too_many_files_is_noted() {
    let project = Project::new("command: python3 check.py, env: {PYTHONPATH: .}");
    let project = project.with("check.py", "");
    for number in 0..300 {
        project.write(&format!("lib/m{number}.py"), "");
    }
    let Offer::Noted(notes) = project.offer() else {
        panic!("the folder is covered");
    };
    assert!(notes[0].contains("`.` is a folder"), "{notes:?}");
}

#[test]
fn a_first_line_that_loads_code_is_refused() {
    for line in [
        "/usr/bin/python3 -mevil",
        "/usr/bin/env -S node --require=./evil.js",
        "/usr/bin/env -S NODE_OPTIONS=--require=./evil.js node",
        "/usr/bin/env -S PYTHONPATH=. python3",
        "/usr/bin/env -S PATH=.:/bin python3",
        "/usr/bin/env -S BASH_ENV=./evil.sh bash",
        "/usr/bin/make -fevil.mk",
    ] {
        let project = Project::new("command: ./check").executable("check", &format!("#!{line}\n"));
        match project.offer() {
            Offer::Refused(problem) => assert!(problem.contains("its first line"), "{problem}"),
            other @ (Offer::Noted(_) | Offer::Covered(_)) => panic!("{line}: {other:?}"),
        }
    }
}

#[test]
fn a_space_that_does_not_show_is_another_command() {
    let project = Project::new("command: '/x/tool'");
    project.approve();
    assert_eq!(project.load().project_hooks[0].state, TrustState::Trusted);
    for end in ["\u{a0}", "\u{2003}", "\u{200b}", " ", "\t"] {
        let text = format!(
            "hooks:\n  - {{name: guard, event: pre_tool_use, command: \"/x/tool{}\"}}\n",
            end.replace('\t', "\\t")
        );
        project.write(HOOKS, &text);
        let state = project.load().project_hooks[0].state;
        assert_eq!(state, TrustState::Changed, "{end:?}");
    }
}
