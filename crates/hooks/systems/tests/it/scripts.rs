//! The scripts of agents whose hooks are executables.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use tenterhook_systems::host::HostAgent;

use crate::plugins::own_files;

/// Runs Cline's script for an event with a shim of these lines, or without a shim. Returns what it prints.
fn run(event: &str, shim: Option<&str>) -> String {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("it's a shim");
    if let Some(lines) = shim {
        write(&path, &format!("#!/bin/sh\n{lines}\n"));
    }
    let host = HostAgent::by_name("cline").unwrap();
    let files = own_files(host, &path);
    let file = files.iter().find(|file| file.path == event).unwrap();
    assert!(file.is_executable);
    let script = dir.path().join(event);
    write(&script, &file.text);
    let mut command = Command::new(&script);
    let ran = command.stdin(Stdio::null()).output().unwrap();
    assert!(ran.status.success());
    String::from_utf8(ran.stdout).unwrap()
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn is_denial(printed: &str) -> bool {
    let answer: Value = serde_json::from_str(printed).unwrap();
    let get = |key: &str| answer.get(key).unwrap();
    get("cancel") == &Value::Bool(true) && get("errorMessage").is_string()
}

#[test]
fn the_answer_of_the_shim_is_printed() {
    assert_eq!(run("PreToolUse", Some("exit 0")), "");
    let answer = r#"{"cancel":true,"errorMessage":"a\nb"}"#;
    let printed = run("PreToolUse", Some(&format!("printf '%s\\n' '{answer}'")));
    assert_eq!(printed, format!("{answer}\n"));
    let named = run("PostToolUse", Some("echo \"{$1 $2}\""));
    assert_eq!(named, "{cline PostToolUse}\n");
}

#[test]
fn every_failure_of_the_shim_denies_calls_and_nothing_else() {
    let failures = [
        None,
        Some("kill -9 $$"),
        Some("echo '{}'; exit 1"),
        Some("echo oops"),
        Some("printf '{\"cancel\":'"),
    ];
    for shim in failures {
        assert!(is_denial(&run("PreToolUse", shim)), "{shim:?}");
        assert_eq!(run("PostToolUse", shim), "", "{shim:?}");
    }
}
