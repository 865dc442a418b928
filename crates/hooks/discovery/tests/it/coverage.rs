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

fn shell(verdict: &str) -> String {
    format!("#!/bin/sh\necho '{verdict}'\n")
}

/// Asserts that a hook with this command runs the approved bytes of a script after the script was rewritten.
async fn assert_runs_approved(command: &str) {
    let project = Project::new(&format!("command: '{command}'"));
    let project = project.executable(".claude/hooks/guard.sh", &shell(DENY));
    project
        .assert_covers(".claude/hooks/guard.sh", &shell(ALLOW))
        .await;
}

#[tokio::test]
async fn a_guard_that_is_named_by_the_project_variable_of_a_host_cannot_be_rewritten() {
    for command in [
        r#""$CLAUDE_PROJECT_DIR"/.claude/hooks/guard.sh"#,
        r#""$CLAUDE_PROJECT_DIR/.claude/hooks/guard.sh""#,
        "${CLAUDE_PROJECT_DIR}/.claude/hooks/guard.sh",
        "${CLAUDE_PROJECT_DIR:-.}/.claude/hooks/guard.sh",
        r#"sh "$GEMINI_PROJECT_DIR/.claude/hooks/guard.sh""#,
        "$FACTORY_PROJECT_DIR/.claude/hooks/guard.sh",
        r#"cd "$CLAUDE_PROJECT_DIR" && .claude/hooks/guard.sh"#,
        "HOOK=$CLAUDE_PROJECT_DIR/.claude/hooks/guard.sh; exec sh $CLAUDE_PROJECT_DIR/.claude/hooks/guard.sh",
    ] {
        assert_runs_approved(command).await;
    }
}

#[tokio::test]
async fn a_guard_that_is_named_by_the_root_of_the_repository_cannot_be_rewritten() {
    for command in [
        "$(git rev-parse --show-toplevel)/.claude/hooks/guard.sh",
        r#""$(git rev-parse --show-toplevel)"/.claude/hooks/guard.sh"#,
        r#"bash "$(git rev-parse --show-toplevel 2>/dev/null || pwd)/.claude/hooks/guard.sh""#,
        "`git rev-parse --show-toplevel`/.claude/hooks/guard.sh",
    ] {
        assert_runs_approved(command).await;
    }
}

#[tokio::test]
async fn a_guard_that_is_named_by_the_working_folder_cannot_be_rewritten() {
    for command in [
        "$(pwd)/.claude/hooks/guard.sh",
        r#""$(pwd)/.claude/hooks/guard.sh""#,
        "$PWD/.claude/hooks/guard.sh",
        r#"sh "${PWD}"/.claude/hooks/guard.sh"#,
        "cd .claude/hooks && ./guard.sh",
    ] {
        assert_runs_approved(command).await;
    }
}

#[tokio::test]
async fn a_folder_that_becomes_a_link_after_the_approval_leads_a_name_of_an_approved_file_nowhere()
{
    // The first name keeps the file among the approved ones, so only the second one shows the attack.
    let command = "cat ./h/verdict > /dev/null; cat x/../h/verdict";
    let project = Project::new(&format!("command: '{command}'")).with("h/verdict", DENY);
    project.write("x/other", "");
    project.approve();
    let root = &project.place.project;
    fs::rename(root.join("x"), root.join("y")).unwrap();
    fs::create_dir_all(root.join("evil/x")).unwrap();
    std::os::unix::fs::symlink("evil/x", root.join("x")).unwrap();
    let loaded = project.load();
    project.write("evil/h/verdict", ALLOW);
    let reason = project.reason(&loaded, root).await;
    assert_eq!(reason.as_deref(), Some("approved"));
    assert_eq!(loaded.project_hooks[0].state, TrustState::Changed);
}

#[tokio::test]
async fn a_file_that_a_line_reads_into_its_shell_cannot_be_rewritten() {
    let project = Project::new("command: '. ./conf/guard.env; echo \"$verdict\"'");
    let project = project.with("conf/guard.env", &format!("verdict='{DENY}'\n"));
    project.approve();
    let loaded = project.load();
    project.write("conf/guard.env", &format!("verdict='{ALLOW}'\n"));
    let reason = project.reason(&loaded, &project.place.project).await;
    assert_eq!(reason.as_deref(), Some("approved"));
    assert_eq!(project.load().project_hooks[0].state, TrustState::Changed);
}

#[tokio::test]
async fn a_file_that_is_read_from_standard_input_cannot_be_rewritten() {
    for line in [
        "read -r verdict < conf/rules; echo \"$verdict\"",
        "while read -r line; do echo \"$line\"; done < conf/rules",
        "tee < conf/rules",
        "cat <> conf/rules",
        "{ cat; } < conf/rules",
        "exec 3< conf/rules; cat <&3",
    ] {
        let project = Project::new(&format!("command: '{line}'"));
        let project = project.with("conf/rules", &format!("{DENY}\n"));
        project
            .assert_covers("conf/rules", &format!("{ALLOW}\n"))
            .await;
    }
}

#[tokio::test]
async fn a_file_that_a_command_in_a_here_document_reads_cannot_be_rewritten() {
    for line in [
        r"cat <<E\n$(cat conf/rules)\nE\n",
        r"cat <<E\n`cat conf/rules`\nE\n",
    ] {
        let project = Project::new(&format!("command: \"{line}\"")).with("conf/rules", DENY);
        project.assert_covers("conf/rules", ALLOW).await;
    }
}

#[tokio::test]
async fn text_that_looks_like_a_here_document_hides_no_script() {
    for line in [
        r"true '<<true'\nsh h/guard.sh\ntrue\n",
        r"true # <<true\nsh h/guard.sh\ntrue\n",
        r"true <<'true x'\ntrue x\nsh h/guard.sh\ntrue\n",
        r"true <<A\r\nA\r\nsh h/guard.sh\n",
    ] {
        let project = Project::new(&format!("command: \"{line}\""));
        let project = project.with("h/guard.sh", &shell(DENY));
        project.assert_covers("h/guard.sh", &shell(ALLOW)).await;
    }
}

#[test]
fn a_link_outside_of_the_project_hides_no_file_that_is_created_later() {
    let project = Project::new("command: cat ../link/later");
    std::os::unix::fs::symlink(
        &project.place.project,
        project.place.project.join("../link"),
    )
    .unwrap();
    let Offer::Noted(notes) = project.offer() else {
        panic!("a file that is created later is not noted");
    };
    assert!(notes[0].contains("does not exist"), "{notes:?}");
}

#[tokio::test]
async fn a_guard_with_modules_data_and_helpers_next_to_it_works_and_none_of_them_can_be_changed() {
    for keys in [
        "command: python3 h/guard.py",
        "command: 'python3 \"$CLAUDE_PROJECT_DIR\"/h/guard.py'",
        "argv: [python3, h/guard.py]",
    ] {
        for (changed, text) in [
            ("h/rules.py", python(ALLOW)),
            ("h/lib/more.py", "name = 'no'\n".to_owned()),
            ("h/names.txt", "no".to_owned()),
            ("h/json.py", "loads = dumps = None\n".to_owned()),
        ] {
            let guard = "import os, json, rules\nfrom lib.more import name\n\
                names = open(os.path.join(os.path.dirname(__file__), 'names.txt')).read()\n\
                print(rules.verdict if name == names == 'yes' else json.dumps({}))\n";
            let project = Project::new(keys)
                .with("h/guard.py", guard)
                .with("h/rules.py", &python(DENY))
                .with("h/lib/more.py", "name = 'yes'\n")
                .with("h/names.txt", "yes");
            project.assert_covers(changed, &text).await;
        }
    }
}

#[tokio::test]
async fn a_helper_that_a_script_finds_next_to_itself_is_the_approved_one() {
    let script = "#!/bin/sh\n. \"$(dirname \"$0\")/helper\"\necho \"$verdict\"\n";
    let project = Project::new("command: h/guard.sh")
        .executable("h/guard.sh", script)
        .with("h/helper", &format!("verdict='{DENY}'\n"));
    project
        .assert_covers("h/helper", &format!("verdict='{ALLOW}'\n"))
        .await;
}

#[tokio::test]
async fn a_script_of_the_repository_outside_of_the_project_folder_is_covered_with_its_folder() {
    for command in [
        "../shared/guard.sh",
        "$(git rev-parse --show-toplevel)/shared/guard.sh",
    ] {
        let project = Project::new(&format!("command: {command}"))
            .executable(
                "../shared/guard.sh",
                "#!/bin/sh\n. \"$(dirname \"$0\")/lib/rules\"\necho \"$verdict\"\n",
            )
            .with("../shared/lib/rules", &format!("verdict='{DENY}'\n"));
        let marker = project.place.project.join(".git");
        fs::rename(&marker, project.place.project.join("../.git")).unwrap();
        project
            .assert_covers("../shared/lib/rules", &format!("verdict='{ALLOW}'\n"))
            .await;
    }
}

#[test]
fn a_script_that_reads_from_its_working_folder_or_changes_its_imports_is_noted() {
    for (script, text, noted) in [
        (
            "h/guard.py",
            "from pathlib import Path\nrules = Path.cwd() / 'x'\n",
            "`cwd`",
        ),
        (
            "h/guard.py",
            "import sys\nsys.path.insert(0, 'x')\n",
            "`sys.path`",
        ),
        ("h/guard.py", "import os\nos.chdir('x')\n", "`chdir`"),
        ("h/guard.js", "require(process.cwd() + '/x')\n", "`cwd`"),
        ("h/guard.py", "open('rules.txt')\n", "`rules.txt`"),
        ("h/guard.sh", ". ./.env\n", "`./.env`"),
        ("h/guard.sh", ". ./later.env\n", "`./later.env`"),
        ("h/guard.sh", ". h/helper.sh\n", "`h/helper.sh`"),
        (
            "h/guard.sh",
            ". \"$CLAUDE_PROJECT_DIR/x\"\n",
            "`PROJECT_DIR`",
        ),
        (
            "h/guard.sh",
            "sh $(git rev-parse --show-toplevel)/x\n",
            "`show-toplevel`",
        ),
        ("h/guard.sh", "sh $(pwd)/x\n", "`pwd`"),
        (
            "h/guard.sh",
            "for file in lib/*; do . \"$file\"; done\n",
            "`lib/`",
        ),
        ("h/guard.sh", "[ -f lib/off ] && exit\n", "`lib/off`"),
        (
            "h/guard.js",
            "require(require('path').resolve('lib/x'))\n",
            "`lib/x`",
        ),
        ("h/guard", "sh rules.txt\n", "`rules.txt`"),
    ] {
        let project = Project::new(&format!("command: {script}"))
            .with("rules.txt", "")
            .with(".env", "")
            .with("lib/more.js", "")
            .with("h/helper.sh", "")
            .executable(script, &format!("#!/usr/bin/env sh\n{text}"));
        let Offer::Noted(notes) = project.offer() else {
            panic!("{text}");
        };
        assert!(notes[0].contains(noted), "{text}: {notes:?}");
    }
}

#[test]
fn a_script_that_cannot_be_searched_is_noted_or_searched_in_part() {
    let large = format!("# {}\n. ./.env\n", "x".repeat(300_000));
    for (text, noted) in [
        (large.into_bytes(), "too large to be searched"),
        (b"# \xe9\n. ./.env\n".to_vec(), "`./.env`"),
    ] {
        for script in ["h/guard.sh", "h/helper"] {
            let project = Project::new("command: sh h/guard.sh").with("h/guard.sh", "");
            fs::write(project.place.project.join(script), &text).unwrap();
            project.write(".env", "");
            let Offer::Noted(notes) = project.offer() else {
                panic!("{script}: {noted}");
            };
            assert!(notes[0].contains(noted), "{script}: {notes:?}");
        }
    }
}

#[test]
fn what_changes_by_itself_in_the_folder_of_a_script_does_not_change_the_hook() {
    let project = Project::new("command: .tenterhook/guard.sh");
    let project = project.executable(".tenterhook/guard.sh", &shell(DENY));
    project.approve();
    for other in [
        ".tenterhook/guard.log",
        ".tenterhook/__pycache__/x.pyc",
        ".tenterhook/hooks.d/other.yaml",
        ".tenterhook/.git/index",
        ".tenterhook/hooks.toml",
    ] {
        project.write(other, "");
        assert_eq!(
            project.load().project_hooks[0].state,
            TrustState::Trusted,
            "{other}"
        );
    }
}

#[test]
fn a_folder_that_is_too_large_or_the_project_itself_is_noted_and_the_script_is_covered() {
    let project = Project::new("command: h/guard.sh").executable("h/guard.sh", &shell(DENY));
    for number in 0..10_001 {
        project.write(&format!("h/data/{number}"), "");
    }
    let root = Project::new("command: ./guard.sh").executable("guard.sh", &shell(DENY));
    for (project, script, noted) in [
        (project, "h/guard.sh", "an approval covers at most 10000"),
        (root, "guard.sh", "is in the folder of the project itself"),
    ] {
        let Offer::Noted(notes) = project.offer() else {
            panic!("{script}");
        };
        assert!(notes[0].contains(noted), "{notes:?}");
        project.approve();
        let item = project.load().project_hooks.remove(0);
        assert_eq!(item.state, TrustState::Trusted);
        project.write(script, &shell(ALLOW));
        assert_eq!(project.load().project_hooks[0].state, TrustState::Changed);
    }
}

#[tokio::test]
async fn a_verdict_that_is_read_from_a_file_is_the_approved_one() {
    for command in ["cat ./verdict", "cat ./verdict | cat"] {
        let project = Project::new(&format!("command: {command}")).with("verdict", DENY);
        project.assert_covers("verdict", ALLOW).await;
    }
}

#[tokio::test]
async fn a_file_that_is_read_in_a_subfolder_is_the_approved_one() {
    let project = Project::new("command: cat sub/verdict").with("sub/verdict", DENY);
    project.assert_covers("sub/verdict", ALLOW).await;
    let project = Project::new("command: cat ./verdict, working_dir: sub");
    let project = project.with("sub/verdict", DENY);
    assert_eq!(
        project.offer(),
        Offer::Covered(vec!["sub/verdict".to_owned()])
    );
    // The working folder of the agent has no influence either.
    let project = Project::new("command: cat ./verdict").with("verdict", DENY);
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
async fn a_module_from_the_python_path_is_the_approved_one() {
    for path in ["lib", "./lib", "/x:lib"] {
        let project = Project::new(&format!(
            "command: python3 h/check.py, env: {{PYTHONPATH: '{path}'}}"
        ));
        let project = project
            .with("h/check.py", "import rules\nprint(rules.verdict)\n")
            .with("lib/rules.py", &python(DENY));
        project.assert_covers("lib/rules.py", &python(ALLOW)).await;
    }
}

#[tokio::test]
async fn a_module_that_shadows_one_of_python_changes_the_hook() {
    let project = Project::new("command: python3 h/check.py, env: {PYTHONPATH: lib}");
    let project = project.with("lib/other.py", "").with(
        "h/check.py",
        &format!("import json\nprint(json.dumps(json.loads('{DENY}')))\n"),
    );
    let evil = "loads = dumps = lambda text: '{}'\n";
    project.assert_covers("lib/json.py", evil).await;
}

#[tokio::test]
async fn a_program_from_the_search_path_is_the_approved_one() {
    let project = Project::new("command: sh h/check.sh, env: {PATH: './bin:/usr/bin:/bin'}")
        .with("h/check.sh", "verdict\n")
        .executable("bin/verdict", &shell(DENY));
    project.assert_covers("bin/verdict", &shell(ALLOW)).await;
}

#[tokio::test]
async fn the_start_file_of_a_shell_is_the_approved_one() {
    let project = Project::new("command: bash h/check.sh, env: {BASH_ENV: h/start}")
        .with("h/check.sh", "echo \"$verdict\"\n")
        .with("h/start", &format!("verdict='{DENY}'\n"));
    project
        .assert_covers("h/start", &format!("verdict='{ALLOW}'\n"))
        .await;
}

#[test]
fn what_cannot_be_covered_is_noted() {
    for (keys, noted) in [
        ("command: make -fevil.mk", "`make`"),
        ("command: node --require=./evil.js h/check.js", "--require"),
        ("command: env PYTHONPATH=. python3 h/check.py", "`env`"),
        (
            "command: PYTHONPATH=. python3 h/check.py",
            "`.` is a folder",
        ),
        ("command: python3 -m evil", "`python3 -m`"),
        ("command: python3 < h/check.py", "names no script"),
        ("command: sh < h/check.sh", "names no script"),
        ("command: 'export PATH=bin:$PATH; echo x | cat'", "PATH=bin"),
        ("command: perl -Mevil h/check.pl", "`perl -Mevil`"),
        ("command: bash --rcfile evil.sh -i h/check.sh", "--rcfile"),
        ("command: sort --compress-program=./evil x", "`./evil`"),
        ("command: grep -r x lib", "`lib`"),
        ("command: cat lib", "`lib`"),
        ("command: cat rules", "write `./rules`"),
        ("command: sh h/check.sh lib", "`lib`"),
        ("command: sh h/check.sh rules", "`rules`"),
        ("command: sh h/check.sh ./new", "`./new`"),
        ("command: sh h/check.sh \"$X\"", "$X"),
        ("command: sh h/check.sh, env: {HOME: .}", "`.`"),
        (
            "command: sh h/check.sh, env: {LD_PRELOAD: evil.so}",
            "LD_PRELOAD",
        ),
        (
            "command: sh h/check.sh, env: {PERL5OPT: -Mevil}",
            "PERL5OPT",
        ),
        ("command: sh h/check.sh, env: {RUBYOPT: -revil}", "RUBYOPT"),
        (
            "command: sh h/check.sh, env: {NODE_OPTIONS: --require=./evil.js}",
            "`./evil.js`",
        ),
        (
            "command: sh h/check.sh, env: {GIT_SSH_COMMAND: evil.sh -x}",
            "GIT_SSH_COMMAND",
        ),
        ("command: sh h/check.sh, env: {ENV: '`./evil.sh`'}", "ENV"),
        (
            "command: sh h/check.sh, env: {PYTHONPATH: .}",
            "`.` is a folder",
        ),
        (
            "command: sh h/check.sh, env: {PYTHONPATH: ':/x'}",
            "working folder",
        ),
        ("command: sh h/check.sh, env: {PYTHONPATH: ../x}", "outside"),
        ("command: sh h/check.sh, env: {PATH: './bin:$PATH'}", "PATH"),
        ("command: sh h/check.sh, env: {RULES: rules}", "`rules`"),
        ("command: sh h/check.sh, env: {RULES_DIR: lib}", "`lib`"),
    ] {
        let project = Project::new(keys)
            .with("lib/rules", "")
            .with("bin/x", "")
            .with("rules", "")
            .with("evil.mk", "");
        let project = ["h/check.pl", "h/check.js", "h/check.py", "h/check.sh"]
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
