//! `tenterhook snapshot`: changes of agents are undone.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::stage::{Ran, Test};

/// A work tree and its user's data folder.
struct Home {
    folder: TempDir,
}

impl Home {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let tree = folder.path().join("tree");
        fs::create_dir(&tree).unwrap();
        let made = Command::new("git")
            .args(["init", "--quiet"])
            .current_dir(&tree)
            .status();
        assert!(made.unwrap().success());
        Self { folder }
    }

    fn tree(&self) -> std::path::PathBuf {
        self.folder.path().join("tree")
    }

    fn call<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Test {
        Test::new().args(args).variable(
            "TENTERHOOK_DATA_DIR",
            self.folder.path().join("data").to_str().unwrap(),
        )
    }

    fn snapshot<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Ran {
        let tree = self.tree();
        let test = self.call(["snapshot", "--dir", tree.to_str().unwrap()]);
        test.args(args).run()
    }

    /// Lets an agent run a command in the work tree.
    fn agent(&self, command: &str) {
        let tree = self.tree();
        let ran = self
            .call(["run", "go", "--yes", "--no-journal", "--cwd", tree.to_str().unwrap()])
            .script(&format!(
                "turns:\n  - tool_calls: [{{name: shell, arguments: {{cmd: {command:?}}}}}]\n  - text: done\n"
            ))
            .hooks("hooks: [{event: [turn_start, turn_end, session_end], builtin: snapshot}]")
            .run();
        assert_eq!((ran.status, ran.stderr.as_str()), (0, ""), "{}", ran.stdout);
    }
}

fn read(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok()
}

#[test]
fn a_turn_of_an_agent_is_listed_and_taken_back() {
    let home = Home::new();
    fs::write(home.tree().join("kept"), "before").unwrap();
    assert_eq!(home.snapshot(["list"]).all(), ("No checkpoints.\n", "", 0));
    home.agent("echo after > kept; echo new > made");
    let list = home.snapshot(["list", "--json"]).json();
    let checkpoint = &list["checkpoints"][0];
    assert_eq!(
        (&checkpoint["id"], &checkpoint["kind"], &checkpoint["files"]),
        (&1.into(), &"turn".into(), &2.into())
    );
    let dry = home.snapshot(["undo", "--dry-run"]);
    assert_eq!(
        dry.all(),
        (
            "Would restore 2 files.\n  written kept\n  removed made\n",
            "",
            0
        )
    );
    assert_eq!(read(&home.tree().join("kept")).as_deref(), Some("after\n"));
    let undone = home.snapshot(["undo"]);
    let expected = "Restored 2 files. To undo this, run `tenterhook snapshot reset 2`.\n  written kept\n  removed made\n";
    assert_eq!(undone.all(), (expected, "", 0));
    assert_eq!(read(&home.tree().join("kept")).as_deref(), Some("before"));
    assert_eq!(read(&home.tree().join("made")), None);
    let listed = home.snapshot(["list"]);
    assert!(listed.stdout.contains("undone"), "{}", listed.stdout);
    assert_eq!(home.snapshot(["reset", "2"]).status, 0);
    assert_eq!(read(&home.tree().join("made")).as_deref(), Some("new\n"));
}

#[test]
fn a_person_keeps_a_state_and_goes_back_to_it() {
    let home = Home::new();
    fs::write(home.tree().join("a"), "one").unwrap();
    let kept = home
        .snapshot(["checkpoint", "--label", "before the refactoring", "--json"])
        .json();
    assert_eq!(kept["checkpoint"], 1);
    fs::write(home.tree().join("a"), "two").unwrap();
    let refused = home.snapshot(["reset", "1"]);
    let expected = "error: 1 file changed since the checkpoint: a\n\
                    hint: `--force` saves a checkpoint of their current state, then overwrites them\n";
    assert_eq!(refused.refusal(), (expected, 1));
    let report = home.snapshot(["reset", "1", "--force", "--json"]).json();
    assert_eq!(report["written"], Value::from(vec!["a"]));
    assert_eq!(read(&home.tree().join("a")).as_deref(), Some("one"));
}

#[test]
fn wrong_calls_say_what_is_wrong() {
    let home = Home::new();
    for (args, error, status) in [
        (&["undo"][..], "error: there is nothing to undo\n", 1),
        (&["undo", "0"], "error: invalid value '0' for '[COUNT]'", 64),
        (&["reset", "7"], "error: checkpoint 7 does not exist\n", 1),
        (&["reset", "x"], "error: invalid value 'x' for '<ID>'", 64),
        (&["restore"], "error: unrecognized subcommand 'restore'", 64),
    ] {
        let ran = home.snapshot(args.iter().copied());
        let (stderr, found) = ran.refusal();
        assert!(stderr.starts_with(error), "{args:?}: {stderr}");
        assert_eq!(found, status, "{args:?}");
    }
    let outside = Test::new().args(["snapshot", "list"]).run();
    let (stderr, status) = outside.refusal();
    assert!(stderr.contains("is not in a git work tree"), "{stderr}");
    assert_eq!(status, 1);
    let missing = Test::new()
        .args(["snapshot", "list", "--dir", "missing"])
        .run();
    assert_eq!(missing.refusal().1, 64);
}
