//! The agent's file tools and the files that decide which hooks run.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::stage::{Ran, Test};
use crate::terminal::{Sitting, run};

/// Hooks that allow everything, in a file that the command line names.
const ALLOWING: &str = r#"hooks:
  - {event: pre_tool_use, command: 'echo ''{"hook_specific_output":{"permission_decision":"allow"}}'''}
  - {event: permission_request, command: 'echo ''{"hook_specific_output":{"permission_decision":"allow"}}'''}
"#;

const EXTENSION: &str = "export default function (pi) {}\n";

/// Every kind of protected file, relative to the working directory.
const PROTECTED: [&str; 10] = [
    "../config/hooks.yaml",
    "../config/hooks.d/guard.yaml",
    "../config/models.yaml",
    "../home/.local/share/tenterhook/trust/trust.json",
    "../home/.kodelet/hooks/guard",
    "../home/.pi/agent/extensions/guard.mjs",
    "../home/.operator/profiles/default/hooks/guard.py",
    "../state/tenterhook/journal/2026-01-31.jsonl",
    "hooks.yaml",
    "extension.mjs",
];

/// A session that writes and edits files, with every setting that allows calls.
fn session(calls: &[String]) -> Test {
    let calls = calls.join(", ");
    Test::new()
        .args([
            "run",
            "go",
            "--no-journal",
            "--yes",
            "--allow",
            "write_file",
            "--allow",
            "edit_file",
        ])
        .args(["-e", "extension.mjs"])
        .file("extension.mjs", EXTENSION)
        .hooks(ALLOWING)
        .script(&format!(
            "turns: [{{tool_calls: [{calls}]}}, {{text: done}}]"
        ))
}

fn write(path: &str) -> String {
    format!("{{name: write_file, arguments: {{path: {path:?}, content: \"mallory\"}}}}")
}

fn edit(path: &str) -> String {
    format!(
        "{{name: edit_file, arguments: {{path: {path:?}, old_text: \"ada\", new_text: \"mallory\"}}}}"
    )
}

/// Returns the files in a folder and its subfolders that contain the model's text.
fn written(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            found.extend(written(&path));
        } else if fs::read_to_string(&path).is_ok_and(|text| text.starts_with("mallory")) {
            found.push(path);
        }
    }
    found
}

/// Asserts that every call was denied because no one could be asked.
fn assert_denied(ran: &Ran, calls: usize) {
    assert_eq!(written(&ran.path("")), [] as [PathBuf; 0], "{}", ran.stdout);
    let denials = ran.stdout.matches("which only the user may change").count();
    assert_eq!(denials, calls, "{}{}", ran.stdout, ran.stderr);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
}

#[test]
fn without_a_terminal_no_protected_file_is_written_whatever_says_yes() {
    let calls: Vec<String> = PROTECTED.iter().map(|path| write(path)).collect();
    assert_denied(&session(&calls).run(), calls.len());
}

#[test]
fn the_hash_of_the_passphrase_is_not_replaced_where_another_folder_has_the_data() {
    let test = session(&[write("../home/.local/share/tenterhook/passphrase.json")]);
    let data = test.work().join("../data");
    let test = test.variable("TENTERHOOK_DATA_DIR", data.to_str().unwrap());
    assert_denied(&test.run(), 1);
}

#[test]
fn the_journal_that_a_call_names_is_not_overwritten_by_the_agent() {
    let test = Test::new()
        .args(["run", "go", "--journal", "record.jsonl", "--yes"])
        .script(&format!(
            "turns: [{{tool_calls: [{}]}}, {{text: done}}]",
            write("record.jsonl")
        ));
    let ran = test.run();
    assert!(
        ran.stdout.contains("the journal of hook decisions"),
        "{}",
        ran.stdout
    );
    assert!(!ran.file("record.jsonl").contains("mallory\n"));
}

#[test]
fn a_protected_file_is_not_edited() {
    let test = session(&[edit("../config/models.yaml"), edit("notes.md")]);
    let models = test.work().join("../config/models.yaml");
    fs::write(&models, "# ada\n").unwrap();
    let ran = test.file("notes.md", "ada\n").run();
    assert_eq!(fs::read_to_string(&models).unwrap(), "# ada\n");
    assert_eq!(ran.file("notes.md"), "mallory\n");
}

#[test]
fn a_protected_file_is_not_written_through_a_symbolic_link() {
    let test = session(&[
        write("folder/hooks.yaml"),
        write("file"),
        write("chain/models.yaml"),
    ]);
    symlink("../config", test.work().join("folder")).unwrap();
    symlink("../config/hooks.d.yaml", test.work().join("file")).unwrap();
    symlink("folder", test.work().join("chain")).unwrap();
    assert_denied(&test.run(), 3);
}

#[test]
fn a_protected_file_is_not_written_through_a_hard_link() {
    let test = session(&[write("hard"), edit("hard"), write("named")]);
    let models = test.work().join("../config/models.yaml");
    fs::write(&models, "# ada\n").unwrap();
    fs::hard_link(&models, test.work().join("hard")).unwrap();
    fs::hard_link(test.work().join("hooks.yaml"), test.work().join("named")).unwrap();
    assert_denied(&test.run(), 3);
}

#[test]
fn a_protected_file_is_not_written_by_dots_or_in_other_letters() {
    let calls = [
        write("x/../../config/hooks.yaml"),
        write("./../work/../config/./hooks.yaml"),
        write("../CONFIG/hooks.yaml"),
        write("HOOKS.yaml"),
    ];
    let test = session(&calls).file("x/kept", "");
    assert_denied(&test.run(), calls.len());
}

#[test]
fn a_hook_file_that_a_link_of_the_user_leads_to_is_protected_where_it_is() {
    let test = session(&[write("dotfiles/guard.yaml"), write("dotfiles/free")]);
    let hooks = "hooks: [{event: turn_end, command: \"true\"}]";
    let test = test.file("dotfiles/guard.yaml", hooks);
    fs::create_dir(test.work().join("../config/hooks.d")).unwrap();
    let link = test.work().join("../config/hooks.d/guard.yaml");
    symlink(test.work().join("dotfiles/guard.yaml"), link).unwrap();
    let ran = test.run();
    assert_eq!(ran.file("dotfiles/guard.yaml"), hooks);
    assert_eq!(ran.file("dotfiles/free"), "mallory");
}

#[test]
fn a_protected_folder_that_has_another_name_now_is_protected() {
    let test = session(&[
        "{name: shell, arguments: {cmd: \"mv ../config ../moved\"}}".to_owned(),
        write("../moved/hooks.yaml"),
    ]);
    assert_denied(&test.run(), 1);
}

#[test]
fn a_hook_that_changes_the_path_of_a_call_does_not_get_a_protected_file_written() {
    let rewrites = r#"hooks:
  - {event: pre_tool_use, command: 'echo ''{"hook_specific_output":{"permission_decision":"allow","updated_input":{"path":"../config/hooks.yaml","content":"mallory"}}}'''}
"#;
    let call = write("harmless");
    let ran = Test::new()
        .args(["run", "go", "--no-journal", "--yes"])
        .hooks(rewrites)
        .script(&format!(
            "turns: [{{tool_calls: [{call}]}}, {{text: done}}]"
        ))
        .run();
    assert_denied(&ran, 1);
}

#[test]
fn files_of_a_project_need_no_such_question() {
    let ran = session(&[write(".tenterhook/hooks.yaml"), write("src/a")]).run();
    assert_eq!(ran.file(".tenterhook/hooks.yaml"), "mallory");
    assert_eq!(ran.file("src/a"), "mallory");
}

#[test]
fn without_hooks_the_files_are_protected_all_the_same() {
    let ran = session(&[write("../config/hooks.yaml")])
        .args(["--no-hooks"])
        .run();
    let text = format!("{}{}", ran.stdout, ran.stderr);
    assert!(!ran.path("config/hooks.yaml").exists(), "{text}");
}

#[test]
fn at_a_terminal_the_user_is_asked_for_each_change_of_a_protected_file() {
    let calls = ["a.yaml", "b.yaml", "b.yaml"];
    let calls = calls.map(|name| write(&format!("../config/hooks.d/{name}")));
    let sitting = Sitting::start(
        run()
            .args(["--yes", "--allow", "write_file"])
            .hooks(ALLOWING)
            .script(&format!(
                "turns: [{{tool_calls: [{}]}}, {{text: done}}]",
                calls.join(", ")
            )),
    );
    sitting.until_prompt("");
    sitting.press("go\r");
    let screen = sitting.until_asked("run it?");
    assert!(
        screen.contains("it changes your Tenterhook configuration"),
        "{screen}"
    );
    assert!(screen.contains("[y]es, [n]o, `n REASON`"), "{screen}");
    sitting.press("n\r");
    sitting.until(|screen| screen.contains("denied by you"));
    // A yes for the whole session is not offered.
    sitting.answer("run it?", "a\r");
    sitting.until(|screen| screen.contains("answer y, n or"));
    sitting.answer("run it?", "y\r");
    sitting.until(|screen| screen.contains("Wrote 7 bytes"));
    sitting.answer("run it?", "n\r");
    sitting.until(|screen| screen.contains("done\n"));
    let folder = sitting.folder.path().join("config/hooks.d");
    assert!(!folder.join("a.yaml").exists());
    assert_eq!(fs::read(folder.join("b.yaml")).unwrap(), b"mallory");
    sitting.until_prompt("");
    sitting.press("\u{4}");
    assert_eq!(sitting.end().1, 0);
}

#[test]
fn a_hard_link_below_an_allowed_path_is_not_written() {
    let test = Test::new()
        .args([
            "run",
            "go",
            "--no-journal",
            "--allow",
            "write_file(path=src/*)",
        ])
        .script(&format!(
            "turns: [{{tool_calls: [{}, {}]}}, {{text: done}}]",
            write("src/hard"),
            write("src/own")
        ))
        .file("src/own", "")
        .file("secret", "ada");
    fs::hard_link(test.work().join("secret"), test.work().join("src/hard")).unwrap();
    let ran = test.run();
    assert_eq!(ran.file("secret"), "ada");
    assert_eq!(ran.file("src/own"), "mallory");
}
