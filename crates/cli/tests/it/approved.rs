//! Attacks on approved hooks: an agent changes or removes what guards it, and a new session begins.
//!
//! After each attack, the guard must stop the same calls as before and no others, because its approved version runs.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;
use std::thread;

use serde_json::{Value, json};

use crate::search_path::search_path;
use crate::stage::{Ran, Test};

const HOOKS: &str = "\
hooks:
  - name: guard
    event: pre_tool_use
    command: sh .tenterhook/guard.sh
";

/// A file of a project, in whose text `RAN` stands for the file that shows that it ran.
type File = (&'static str, &'static str, u32);

const HOOK_FILE: [File; 2] = [
    (".tenterhook/hooks.yaml", HOOKS, 0o644),
    (
        ".tenterhook/guard.sh",
        "echo approved >> RAN\nif grep -q 'rm -rf'; then echo 'the guard says no' >&2; exit 2; fi\n",
        0o644,
    ),
];

const SCRIPT: File = (
    ".tenterhook/hooks/guard.py",
    "from tenterhook import deny, on

@on('pre_tool_use')
def guard(event):
    open('RAN', 'a').write('approved\\n')
    if 'rm -rf' in event.tool_input['cmd']:
        return deny('the guard says no')
",
    0o644,
);

const KODELET: File = (
    ".kodelet/hooks/guard",
    "#!/bin/sh
[ \"$1\" = hook ] && { echo before_tool_call; exit; }
echo approved >> RAN
if grep -q 'rm -rf'; then echo '{\"blocked\": true, \"reason\": \"the guard says no\"}'; fi
",
    0o755,
);

const EXTENSION: File = (
    ".kodelet/extensions/kodelet-extension-guard",
    "#!/usr/bin/env python3
import json, sys
while True:
    head = sys.stdin.buffer.readline()
    if not head:
        break
    sys.stdin.buffer.readline()
    message = json.loads(sys.stdin.buffer.read(int(head.split(b':')[1])))
    if message['method'] == 'extension.event' or 'event' in message['method']:
        open('RAN', 'a').write('approved\\n')
    if 'id' in message:
        is_start = message['method'] == 'extension.initialize'
        result = {'subscriptions': [{'event': 'tool.call'}]} if is_start else {}
        body = json.dumps({'jsonrpc': '2.0', 'id': message['id'], 'result': result}).encode()
        sys.stdout.buffer.write(b'content-length: %d\\n\\n' % len(body) + body)
        sys.stdout.buffer.flush()
",
    0o755,
);

const OPERATOR: File = (
    ".operator/hooks/guard.py",
    "def guard(event):
    open('RAN', 'a').write('approved\\n')

hooks = [('tool_call', guard)]
",
    0o644,
);

const PI: File = (
    ".pi/extensions/guard.js",
    "import { appendFileSync } from 'node:fs';
export default (pi) => {
  pi.on('tool_call', async (event) => {
    appendFileSync('RAN', 'approved\\n');
    if (JSON.stringify(event.input).includes('rm -rf')) return { block: true, reason: 'the guard says no' };
  });
};
",
    0o644,
);

const MORPHIX: &str = "from core.hooks_registry import hooks_registry

@hooks_registry.register('on_before_tool')
def guard(ctx):
    open('RAN', 'a').write('approved\\n')
";

/// A project of one hook system with an approved guard.
struct Fortress {
    files: Vec<File>,
    /// Whether its guard can deny.
    denies: bool,
    /// The last call in its folders.
    last: Option<Ran>,
}

impl Fortress {
    fn new(files: &[File]) -> Self {
        let last = Some(Test::new().args(["list"]).run());
        let mut this = Self {
            files: files.to_vec(),
            denies: files.iter().any(|(_, text, _)| text.contains("says no")),
            last,
        };
        this.build();
        let ran = this.call(&["trust", "--all"], "");
        assert_eq!(ran.status, 0, "{}", ran.stderr);
        this.last = Some(ran);
        this
    }

    /// Creates a project with a hook file whose guard runs a shell script.
    fn of_hook_file() -> Self {
        Self::new(&HOOK_FILE)
    }

    /// Writes the files in their approved version.
    fn build(&self) {
        for (path, text, mode) in &self.files {
            let path = self.path(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, self.text(text)).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(*mode)).unwrap();
        }
    }

    fn text(&self, text: &str) -> String {
        text.replace("RAN", self.marks().to_str().unwrap())
    }

    fn path(&self, path: &str) -> std::path::PathBuf {
        self.last.as_ref().unwrap().path("work").join(path)
    }

    fn marks(&self) -> std::path::PathBuf {
        self.last.as_ref().unwrap().path("ran")
    }

    fn call(&mut self, args: &[&str], stdin: &str) -> Ran {
        let last = self.last.take().unwrap();
        last.again(args.iter().copied()).stdin(stdin).run()
    }

    /// Fires a call of the shell tool in a subfolder of the project.
    fn fire(&self, below: &str, command: &str, flags: &[&str]) -> (i32, String) {
        let call = format!("cmd={command}");
        let args = [
            "fire",
            "pre_tool_use",
            "--no-journal",
            "--tool",
            "shell",
            "--arg",
            &call,
        ];
        self.call_with(below, &[&args[..], flags].concat(), &[])
    }

    fn taken_marks(&self) -> Vec<String> {
        let text = fs::read_to_string(self.marks()).unwrap_or_default();
        fs::write(self.marks(), "").unwrap();
        text.lines().map(str::to_owned).collect()
    }

    /// Asserts that the approved version guards a new session in a subfolder of the project.
    fn holds(&mut self, below: &str) {
        for flags in [&[][..], &["--deny-untrusted"]] {
            self.taken_marks();
            let (status, said) = self.fire(below, "rm -rf x", flags);
            let expected = if self.denies { 2 } else { 0 };
            assert_eq!(status, expected, "{:?} {flags:?}: {said}", self.files);
            assert!(!self.denies || said.contains("the guard says no"), "{said}");
            let (status, said) = self.fire(below, "ls", flags);
            assert_eq!(status, 0, "{:?} {flags:?}: {said}", self.files);
            assert_eq!(self.taken_marks(), ["approved", "approved"], "{said}");
        }
    }

    /// Asserts that a new session denies every call with this reason, and runs nothing.
    fn denies_all(&mut self, below: &str, reason: &str) {
        for flags in [&[][..], &["--deny-untrusted"]] {
            self.taken_marks();
            let (status, said) = self.fire(below, "ls", flags);
            assert_eq!(status, 2, "{flags:?}: {said}");
            assert!(said.contains(reason), "{flags:?}: {said}");
            assert!(self.taken_marks().is_empty(), "{said}");
        }
    }

    fn json(&mut self, args: &[&str]) -> Value {
        let ran = self.call(args, "");
        let json = ran.json();
        self.last = Some(ran);
        json
    }
}

/// Turns a folder into a repository with one commit.
pub(crate) fn commit(dir: &Path) {
    git(dir, &["init", "--quiet"]);
    git(dir, &["commit", "--quiet", "--allow-empty", "-m", "first"]);
}

fn git(dir: &Path, args: &[&str]) {
    let identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
    let output = Command::new("git")
        .arg("-C")
        .arg(dir)
        .args(identity)
        .args(args)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn removing_the_folder_of_hooks_removes_no_guard() {
    let mut fortress = Fortress::of_hook_file();
    fortress.holds("");
    fs::remove_dir_all(fortress.path(".tenterhook")).unwrap();
    fortress.holds("");
}

#[test]
fn moving_the_folder_of_hooks_removes_no_guard() {
    let mut fortress = Fortress::of_hook_file();
    fs::rename(fortress.path(".tenterhook"), fortress.path("x")).unwrap();
    fortress.holds("");
}

#[test]
fn a_file_instead_of_the_folder_of_hooks_removes_no_guard() {
    let mut fortress = Fortress::of_hook_file();
    fs::remove_dir_all(fortress.path(".tenterhook")).unwrap();
    fs::write(fortress.path(".tenterhook"), "").unwrap();
    fortress.holds("");
}

#[test]
fn a_dead_link_instead_of_the_folder_of_hooks_removes_no_guard() {
    let mut fortress = Fortress::of_hook_file();
    fs::remove_dir_all(fortress.path(".tenterhook")).unwrap();
    symlink("nowhere", fortress.path(".tenterhook")).unwrap();
    fortress.holds("");
}

#[test]
fn a_repository_made_below_the_project_hides_no_guard() {
    let mut fortress = Fortress::of_hook_file();
    for marker in ["empty/.git", "head/.git"] {
        fs::create_dir_all(fortress.path(marker)).unwrap();
    }
    fs::write(fortress.path("head/.git/HEAD"), "").unwrap();
    fs::create_dir_all(fortress.path("whole")).unwrap();
    git(&fortress.path("whole"), &["init", "--quiet"]);
    for below in ["empty", "head", "whole"] {
        fortress.holds(below);
    }
    fs::remove_dir_all(fortress.path(".tenterhook")).unwrap();
    for below in ["empty", "head", "whole"] {
        fortress.holds(below);
    }
}

#[test]
fn moving_the_repository_away_makes_the_guard_deny() {
    let mut fortress = Fortress::new(&HOOK_FILE[..0]);
    fortress.files = HOOK_FILE.to_vec();
    fortress.denies = true;
    fortress.build();
    commit(&fortress.path(""));
    let ran = fortress.call(&["trust", "--all"], "");
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    fortress.last = Some(ran);
    fortress.holds("");
    fs::rename(fortress.path(".git"), fortress.path("x")).unwrap();
    fortress.denies_all("", "there is no repository here now");
    // A different repository in the same folder is not the approved one either.
    let dir = fortress.path("");
    git(&dir, &["init", "--quiet"]);
    let another = ["commit", "--quiet", "--allow-empty", "-m", "another first"];
    git(&dir, &another);
    fortress.denies_all("", "does not have that commit");
    fs::remove_dir_all(fortress.path(".git")).unwrap();
    fs::rename(fortress.path("x"), fortress.path(".git")).unwrap();
    fortress.holds("");
}

#[test]
fn the_first_commit_of_a_repository_keeps_its_approvals_in_force() {
    let mut fortress = Fortress::new(&HOOK_FILE[..0]);
    fortress.files = HOOK_FILE.to_vec();
    fortress.denies = true;
    fortress.build();
    let dir = fortress.path("");
    git(&dir, &["init", "--quiet"]);
    let ran = fortress.call(&["trust", "--all"], "");
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    fortress.last = Some(ran);
    fortress.holds("");
    git(&dir, &["add", ".tenterhook"]);
    git(&dir, &["commit", "--quiet", "-m", "first"]);
    fortress.holds("");
}

#[test]
fn editing_the_script_of_a_guard_changes_nothing() {
    let mut fortress = Fortress::of_hook_file();
    let text = fortress.text("echo evil >> RAN\n");
    fs::write(fortress.path(".tenterhook/guard.sh"), text).unwrap();
    fortress.holds("");
}

/// A guard in the settings of Claude Code, in the forms in which such settings name scripts.
const CLAUDE_CODE: [&str; 4] = [
    r#"\"$CLAUDE_PROJECT_DIR\"/.claude/hooks/guard.sh"#,
    "${CLAUDE_PROJECT_DIR}/.claude/hooks/guard.sh",
    r#"bash \"$(git rev-parse --show-toplevel)/.claude/hooks/guard.sh\""#,
    "$(pwd)/.claude/hooks/guard.sh",
];

#[test]
fn editing_a_guard_that_the_settings_of_claude_code_name_changes_nothing() {
    for command in CLAUDE_CODE {
        let settings = format!(
            r#"{{"hooks": {{"PreToolUse": [{{"hooks": [{{"type": "command", "command": "{command}"}}]}}]}}}}"#
        );
        let mut fortress = Fortress::new(&[
            (
                ".tenterhook/hooks.yaml",
                "import: ../.claude/settings.json\n",
                0o644,
            ),
            (".claude/settings.json", settings.leak(), 0o644),
            (
                ".claude/hooks/guard.sh",
                "#!/bin/sh\n. \"$(dirname \"$0\")/lib/rules.sh\"\n",
                0o755,
            ),
            (".claude/hooks/lib/rules.sh", HOOK_FILE[1].1, 0o644),
        ]);
        fortress.holds("");
        for path in [".claude/hooks/lib/rules.sh", ".claude/hooks/guard.sh"] {
            let text = fortress.text("#!/bin/sh\necho evil >> RAN\n");
            fs::write(fortress.path(path), text).unwrap();
            fortress.holds("");
        }
        fs::remove_dir_all(fortress.path(".claude")).unwrap();
        fortress.holds("");
    }
}

#[test]
fn editing_the_hook_file_of_a_guard_changes_nothing() {
    let mut fortress = Fortress::of_hook_file();
    for text in [
        HOOKS.replace("pre_tool_use", "turn_end"),
        HOOKS.replace("guard", "other"),
        format!("{HOOKS}    matcher: nothing\n"),
        "hooks: []\n".to_owned(),
        "hooks: [\n".to_owned(),
        String::new(),
    ] {
        fs::write(fortress.path(".tenterhook/hooks.yaml"), &text).unwrap();
        // The new gate `other` is untrusted, so it denies if the options request that.
        if text.contains("other") {
            let (status, said) = fortress.fire("", "rm -rf x", &[]);
            assert_eq!(status, 2, "{said}");
            assert!(said.contains("the guard says no"), "{said}");
        } else {
            fortress.holds("");
        }
    }
}

#[test]
fn deleting_the_script_of_a_guard_changes_nothing() {
    let mut fortress = Fortress::of_hook_file();
    fs::remove_file(fortress.path(".tenterhook/guard.sh")).unwrap();
    fortress.holds("");
}

#[test]
fn taking_the_executable_bit_from_a_guard_changes_nothing() {
    for files in [
        &[KODELET][..],
        &[
            (
                ".tenterhook/hooks.yaml",
                "hooks: [{name: guard, event: pre_tool_use, command: ./.tenterhook/guard.sh}]",
                0o644,
            ),
            (
                ".tenterhook/guard.sh",
                "#!/bin/sh\necho approved >> RAN\nif grep -q 'rm -rf'; then echo 'the guard says no' >&2; exit 2; fi\n",
                0o755,
            ),
        ],
    ] {
        let mut fortress = Fortress::new(files);
        let guard = files.last().unwrap().0;
        fs::set_permissions(fortress.path(guard), fs::Permissions::from_mode(0o644)).unwrap();
        fortress.holds("");
    }
}

/// The guards of every folder that a project may have, with the folder to attack.
fn all_systems() -> Vec<(File, &'static str)> {
    vec![
        (SCRIPT, ".tenterhook"),
        (KODELET, ".kodelet"),
        (KODELET, ".kodelet/hooks"),
        (
            (".kodelet/plugins/o@r/hooks/guard", KODELET.1, 0o755),
            ".kodelet/plugins",
        ),
        (EXTENSION, ".kodelet/extensions"),
        (OPERATOR, ".operator/hooks"),
        (PI, ".pi/extensions"),
        (("core/hooks/guard.py", MORPHIX, 0o644), "core/hooks"),
        (
            ("workspaces/main/hooks/guard.py", MORPHIX, 0o644),
            "workspaces",
        ),
    ]
}

/// Runs an attack on all systems in parallel. Each has its own project and processes, and most of the time is spent
/// waiting for interpreters to start.
fn attack_all_systems(attack: impl Fn(File, &str) + Sync) {
    thread::scope(|scope| {
        for (file, folder) in all_systems() {
            let attack = &attack;
            // A failed attack makes the scope fail, with a message that names the files.
            scope.spawn(move || attack(file, folder));
        }
    });
}

#[test]
fn removing_the_folder_of_any_system_removes_no_guard() {
    attack_all_systems(|file, folder| {
        let mut fortress = Fortress::new(&[file]);
        fs::remove_dir_all(fortress.path(folder)).unwrap();
        fortress.holds("");
        fs::write(fortress.path(folder), "a file in its place").unwrap();
        fortress.holds("");
    });
}

#[test]
fn editing_a_guard_of_any_system_changes_nothing() {
    attack_all_systems(|file, _| {
        let mut fortress = Fortress::new(&[file]);
        let text = fortress.text(file.1);
        let evil = text.replace("approved", "evil").replace("says no", "");
        for text in [evil, String::new(), "}{ broken\n".to_owned()] {
            fs::write(fortress.path(file.0), text).unwrap();
            fortress.holds("");
        }
        fs::remove_file(fortress.path(file.0)).unwrap();
        fortress.holds("");
    });
}

#[test]
fn commands_say_that_the_approved_version_is_in_force() {
    let mut fortress = Fortress::of_hook_file();
    fs::remove_file(fortress.path(".tenterhook/hooks.yaml")).unwrap();
    let list = fortress.json(&["list", "--json"]);
    assert_eq!(list["hooks"][0]["trust"], "approved, file missing");
    assert_eq!(list["diverged"][0]["in_force"], true);
    assert_eq!(list["diverged"][0]["divergence"]["kind"], "missing");
    let shown = fortress.call(&["trust", "--show"], "");
    let text = &shown.stdout;
    assert!(
        text.contains("not in the project; the approved version is in force"),
        "{text}"
    );
    assert!(text.contains("command: sh .tenterhook/guard.sh"), "{text}");
    fortress.last = Some(shown);
    let script = fortress.text("echo evil >> RAN\n");
    fortress.build();
    fs::write(fortress.path(".tenterhook/guard.sh"), script).unwrap();
    let list = fortress.call(&["list", "--json"], "");
    assert_eq!(list.json()["hooks"][0]["trust"], "approved, file changed");
    assert_eq!(list.json()["withheld"], json!([]));
    assert!(
        list.stderr
            .contains("1 approved hook differs from the project"),
        "{}",
        list.stderr
    );
    let explained = list.again(["explain", "pre_tool_use"]).run();
    assert!(
        explained.stdout.contains("(approved, file changed)"),
        "{}",
        explained.stdout
    );
    let fired = explained
        .again([
            "fire",
            "pre_tool_use",
            "--json",
            "--no-journal",
            "--input",
            "-",
        ])
        .stdin("{\"tool_name\": \"shell\", \"tool_input\": {\"cmd\": \"ls\"}}")
        .run();
    assert_eq!(fired.json()["diverged"][0]["name"], "guard");
    let checked = fired.again(["check"]).run();
    assert_eq!(checked.status, 0, "{}", checked.stderr);
    assert!(
        checked.stderr.contains("its files changed"),
        "{}",
        checked.stderr
    );
    let revoked = checked.again(["trust", "--revoke", "guard"]).run();
    assert_eq!(revoked.status, 0, "{}", revoked.stderr);
    let list = revoked.again(["list", "--json"]).run().json();
    assert_eq!(list["diverged"], json!([]));
}

#[test]
fn a_second_copy_of_an_approved_repository_denies_until_that_is_settled() {
    let mut fortress = Fortress::new(&HOOK_FILE[..0]);
    fortress.files = HOOK_FILE.to_vec();
    fortress.denies = true;
    fortress.build();
    commit(&fortress.path(""));
    let ran = fortress.call(&["trust", "--all"], "");
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    fortress.last = Some(ran);
    let (from, to) = (fortress.path(""), fortress.path("../copy"));
    let copied = Command::new("cp").arg("-a").arg(&from).arg(&to).status();
    assert!(copied.unwrap().success());
    fortress.denies_all("../copy", "is another folder");
    fortress.holds("");
    // Accepting uses the approved version of the copy, whatever the copy contains now.
    fs::remove_dir_all(to.join(".tenterhook")).unwrap();
    let accepted = fortress.call_in("../copy", &["trust", "--accept"]);
    assert_eq!(accepted, "Accepted 1 approval here.\n");
    fortress.holds("../copy");
    fortress.holds("");
    assert!(
        fortress
            .call_in("../copy", &["trust", "--accept"])
            .contains("no approval to accept: none was given in another folder"),
    );
}

impl Fortress {
    /// Runs the program in a subfolder of the project, and returns its output.
    fn call_in(&self, below: &str, args: &[&str]) -> String {
        self.call_with(below, args, &[]).1
    }

    /// Runs the program in a subfolder of the project with these variables, and returns its exit status and output.
    fn call_with(&self, below: &str, args: &[&str], variables: &[(&str, &str)]) -> (i32, String) {
        let last = self.last.as_ref().unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_tenterhook"))
            .args(args)
            .current_dir(self.path(below))
            .env_clear()
            .env("PATH", search_path())
            .env("HOME", last.path("home"))
            .env("XDG_STATE_HOME", last.path("state"))
            .env("TENTERHOOK_CONFIG_DIR", last.path("config"))
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        let text = [output.stdout, output.stderr].concat();
        let status = output.status.code().unwrap();
        (status, String::from_utf8(text).unwrap())
    }
}

#[test]
fn a_repository_with_programs_of_its_own_starts_none_of_them_when_it_is_looked_at() {
    let mut fortress = Fortress::new(&HOOK_FILE[..0]);
    fortress.files = HOOK_FILE.to_vec();
    fortress.denies = true;
    fortress.build();
    commit(&fortress.path(""));
    let evil = fortress.path("evil.sh");
    let text = fortress.text("#!/bin/sh\necho evil >> RAN\n");
    fs::write(&evil, text).unwrap();
    fs::set_permissions(&evil, fs::Permissions::from_mode(0o755)).unwrap();
    let dir = fortress.path("");
    let program = evil.to_str().unwrap();
    for (key, value) in [
        ("core.fsmonitor", program),
        ("core.pager", program),
        ("core.sshCommand", program),
        ("remote.origin.url", dir.to_str().unwrap()),
        ("remote.origin.promisor", "true"),
        ("remote.origin.uploadpack", program),
        ("extensions.partialClone", "origin"),
        ("core.repositoryFormatVersion", "1"),
    ] {
        git(&dir, &["config", key, value]);
    }
    let ran = fortress.call(&["trust", "--all"], "");
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    fortress.last = Some(ran);
    fortress.holds("");
    // A commit that is missing is not fetched.
    fs::remove_dir_all(fortress.path(".git/objects")).unwrap();
    fs::create_dir_all(fortress.path(".git/objects")).unwrap();
    fortress.denies_all("", "does not apply");
}

#[test]
fn an_event_with_another_folder_leads_away_from_no_guard() {
    let mut fortress = Fortress::of_hook_file();
    for (cwd, reason) in [
        ("/", "the guard says no"),
        ("..", "the guard says no"),
        ("/nowhere", "working directory `/nowhere` does not exist"),
    ] {
        let event = json!({"tool_name": "shell", "tool_input": {"cmd": "rm -rf x"}, "cwd": cwd});
        let args = ["fire", "pre_tool_use", "--no-journal", "--input", "-"];
        let ran = fortress.call(&args, &event.to_string());
        assert_eq!(ran.status, 2, "{cwd}: {}", ran.stderr);
        assert!(ran.stdout.contains(reason), "{cwd}: {}", ran.stdout);
        fortress.last = Some(ran);
    }
}

#[test]
fn a_link_instead_of_the_project_leads_away_from_no_guard() {
    let fortress = Fortress::of_hook_file();
    let project = fortress.path("").canonicalize().unwrap();
    let other = project.with_file_name("other");
    fs::rename(&project, &other).unwrap();
    symlink(&other, &project).unwrap();
    for flags in [&[][..], &["--deny-untrusted"]] {
        // A shell that entered the folder through the link names the link in `PWD`.
        let named = [("PWD", project.to_str().unwrap())];
        let fire = ["fire", "pre_tool_use", "--no-journal", "--tool", "shell"];
        let (status, said) = fortress.call_with("", &[&fire[..], flags].concat(), &named);
        assert_eq!(status, 2, "{said}");
        assert!(said.contains("is another folder"), "{said}");
        let list = [&["list", "--json"], flags].concat();
        let said = fortress.call_in("", &list);
        assert!(!said.contains("is another folder"), "{said}");
        let (_, said) = fortress.call_with("", &list, &named);
        assert!(said.contains("is another folder"), "{said}");
    }
}

/// A hook file without a hook.
const NO_HOOKS: &str = "hooks: []\n";

impl Fortress {
    /// Asserts that the guard stops a call with these options.
    fn stops_with(&mut self, flags: &[&str]) {
        self.taken_marks();
        let (status, said) = self.fire("", "rm -rf x", flags);
        assert_eq!(status, 2, "{flags:?}: {said}");
        assert!(said.contains("the guard says no"), "{flags:?}: {said}");
    }

    /// Replaces a file or folder of the project with a link.
    fn link(&self, path: &str, target: &Path) {
        let path = self.path(path);
        if path.is_dir() {
            fs::remove_dir_all(&path).unwrap();
        } else {
            fs::remove_file(&path).unwrap();
        }
        symlink(target, &path).unwrap();
    }
}

#[test]
fn a_link_to_the_users_hook_file_removes_no_guard() {
    for (place, target) in [
        (".tenterhook/hooks.yaml", "hooks.yaml"),
        (".tenterhook", ""),
    ] {
        let mut fortress = Fortress::of_hook_file();
        let config = fortress.last.as_ref().unwrap().path("config");
        fs::create_dir_all(&config).unwrap();
        fs::write(config.join("hooks.yaml"), NO_HOOKS).unwrap();
        fortress.link(place, &config.join(target));
        fortress.holds("");
    }
}

#[test]
fn a_link_to_a_hook_file_that_the_call_names_removes_no_guard() {
    let mut fortress = Fortress::of_hook_file();
    fs::write(fortress.path("mine.yaml"), NO_HOOKS).unwrap();
    let mine = fortress.path("mine.yaml");
    let flags = ["--hooks", "mine.yaml"];
    fortress.stops_with(&flags);
    fortress.link(".tenterhook/hooks.yaml", &mine);
    fortress.stops_with(&flags);
}

#[test]
fn a_link_between_two_approved_hook_files_removes_no_guard() {
    let other: File = (
        ".tenterhook/hooks.d/other.yaml",
        "hooks:\n  - name: other\n    event: stop\n    command: 'true'\n",
        0o644,
    );
    let mut fortress = Fortress::new(&[HOOK_FILE[0], HOOK_FILE[1], other]);
    fortress.link(".tenterhook/hooks.yaml", Path::new("hooks.d/other.yaml"));
    fortress.stops_with(&[]);
    fortress.build();
    fs::remove_file(fortress.path(".tenterhook/hooks.yaml")).unwrap();
    fortress.build();
    fortress.link(".tenterhook/hooks.d/other.yaml", Path::new("../hooks.yaml"));
    fortress.stops_with(&[]);
}

#[test]
fn a_link_to_an_extension_that_the_call_names_removes_no_guard() {
    let mut fortress = Fortress::new(&[PI]);
    let mine = fortress.path("mine.js");
    fs::write(&mine, "export default () => {};\n").unwrap();
    let flags = ["-e", "mine.js"];
    fortress.stops_with(&flags);
    fortress.link(".pi/extensions/guard.js", &mine);
    fortress.stops_with(&flags);
}

#[test]
fn a_link_to_a_source_that_is_disabled_removes_no_guard() {
    let mut fortress = Fortress::of_hook_file();
    fs::create_dir_all(fortress.path("other/.tenterhook")).unwrap();
    fs::write(fortress.path("other/.tenterhook/hooks.yaml"), "hooks: [").unwrap();
    commit(&fortress.path("other"));
    let path = fortress.path("other/.tenterhook/hooks.yaml");
    let path = path.canonicalize().unwrap();
    let said = fortress.call_in("other", &["disable", "--yes", path.to_str().unwrap()]);
    assert!(said.starts_with("Disabled"), "{said}");
    let other = fortress.path("other/.tenterhook");
    fortress.link(".tenterhook", &other);
    fortress.holds("");
}

#[test]
fn a_link_instead_of_a_folder_of_the_project_leads_away_from_no_guard() {
    let mut fortress = Fortress::of_hook_file();
    let away = fortress.path("../away");
    fs::create_dir_all(&away).unwrap();
    fs::create_dir_all(fortress.path("sub")).unwrap();
    fortress.holds("sub");
    fortress.link("sub", &away);
    let named = fortress.path("").canonicalize().unwrap().join("sub");
    let named = [("PWD", named.to_str().unwrap())];
    let fire = ["fire", "pre_tool_use", "--no-journal", "--tool", "shell"];
    let (status, said) = fortress.call_with("sub", &fire, &named);
    assert_eq!(status, 2, "{said}");
    assert!(said.contains("is another folder"), "{said}");
    // The user who put the link there can accept it.
    let (_, accepted) = fortress.call_with("sub", &["trust", "--accept"], &named);
    assert_eq!(accepted, "Accepted 1 approval here.\n");
    fortress.holds("sub");
    fortress.holds("");
}

#[test]
fn a_program_in_a_folder_of_the_project_on_the_search_path_takes_no_place_in_a_guard() {
    let hooks = "hooks:\n  - name: guard\n    event: pre_tool_use\n    command: grep -q nothing; true\n  - name: other\n    event: pre_tool_use\n    command: ./check.sh\n";
    let files = [
        (".tenterhook/hooks.yaml", hooks, 0o644),
        (
            "check.sh",
            "#!/usr/bin/env sh\nif grep -q 'rm -rf'; then echo 'the guard says no' >&2; exit 2; fi\n",
            0o755,
        ),
    ];
    let mut fortress = Fortress::new(&files[..0]);
    fortress.files = files.to_vec();
    fortress.build();
    commit(&fortress.path(""));
    let ran = fortress.call(&["trust", "--all"], "");
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    fortress.last = Some(ran);
    fs::create_dir_all(fortress.path("bin")).unwrap();
    for name in ["grep", "sh", "git"] {
        let program = fortress.path("bin").join(name);
        fs::write(&program, fortress.text("#!/bin/sh\necho evil >> RAN\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = std::env::var("PATH").unwrap();
    let bin = fortress.path("bin");
    let fire = "fire pre_tool_use --no-journal --tool shell --arg";
    let args: Vec<&str> = fire.split(' ').chain(["cmd=rm -rf x"]).collect();
    for entry in [bin.to_str().unwrap(), "bin"] {
        let path = format!("{entry}:{path}");
        let (_, said) = fortress.call_with("", &args, &[("PATH", &path)]);
        assert!(said.contains("the guard says no"), "{entry}: {said}");
        assert!(fortress.taken_marks().is_empty(), "{entry}: {said}");
    }
}

/// Entries of a hook file that only work in this order.
const ENTRIES: [&str; 2] = [
    "  - name: rewriter\n    event: pre_tool_use\n    command: sh .tenterhook/rewriter.sh\n",
    "  - name: guard\n    event: pre_tool_use\n    command: sh .tenterhook/guard.sh\n",
];

#[test]
fn moving_approved_hooks_in_their_file_does_not_change_the_order_in_which_they_run() {
    let [rewriter, guard] = ENTRIES;
    let file = |entries: &[&str]| format!("hooks:\n{}", entries.concat());
    let fortress = Fortress::new(&HOOK_FILE[1..]);
    let hooks = fortress.path(".tenterhook/hooks.yaml");
    let answer = r#"echo '{"updated_input": {"cmd": "rm -rf x"}}'"#;
    fs::write(fortress.path(".tenterhook/rewriter.sh"), answer).unwrap();
    fs::write(&hooks, file(&ENTRIES)).unwrap();
    let said = fortress.call_in("", &["trust", "--all"]);
    assert!(said.contains("Approved 2 hooks"), "{said}");
    let new = "  - name: new\n    event: pre_tool_use\n    command: 'true'\n";
    for attack in [
        file(&[guard, rewriter]),
        file(&[guard]),
        file(&[guard, rewriter, new]),
    ] {
        fs::write(&hooks, attack).unwrap();
        let (status, said) = fortress.fire("", "ls", &[]);
        assert_eq!(status, 2, "{said}");
        assert!(said.contains("the guard says no"), "{said}");
    }
    // Approving another hook of the file does not approve the order.
    let said = fortress.call_in("", &["trust", "new"]);
    assert!(said.contains("Approved 1 hook"), "{said}");
    let (status, said) = fortress.fire("", "ls", &[]);
    assert_eq!(status, 2, "{said}");
    assert!(said.contains("moved in its file"), "{said}");
    let said = fortress.call_in("", &["trust", "--all"]);
    assert!(said.contains("Approved 2 hooks"), "{said}");
    let (status, said) = fortress.fire("", "ls", &[]);
    assert_eq!(status, 0, "{said}");
    assert!(!said.contains("moved in its file"), "{said}");
}

#[test]
fn a_file_whose_name_is_not_utf_8_is_named_when_it_cannot_be_approved() {
    use std::os::unix::ffi::OsStrExt as _;
    let mut fortress = Fortress::new(&[KODELET]);
    let name = std::ffi::OsStr::from_bytes(b"x\xff");
    let copy = fortress.path(".kodelet/hooks").join(name);
    fs::copy(fortress.path(KODELET.0), copy).unwrap();
    let said = fortress.call_in("", &["trust", "--all"]);
    assert!(said.contains(".kodelet/hooks/x"), "{said}");
    assert!(said.contains("its name is not UTF-8"), "{said}");
    fortress.stops_with(&[]);
    let said = fortress.call_in("", &["trust", "--revoke", KODELET.0]);
    assert!(said.contains("Revoked 1 approval"), "{said}");
}
