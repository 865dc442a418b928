//! The files for shells and for `man`: completion scripts and manual pages.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use crate::stage::Test;

/// Returns bash's completions for the last word of a command line.
fn complete(words: &[&str]) -> Vec<String> {
    let program = env!("CARGO_BIN_EXE_tenterhook");
    let asked = r#"
        source <("$1" completions bash) || exit 1
        shift
        COMP_WORDS=(tenterhook "$@")
        COMP_CWORD=$#
        registered=$(complete -p tenterhook) || exit 1
        [[ $registered =~ -F\ ([^ ]+) ]] || exit 1
        "${BASH_REMATCH[1]}" tenterhook "${COMP_WORDS[-1]}" "${COMP_WORDS[-2]}"
        printf '%s\n' "${COMPREPLY[@]}"
    "#;
    let output = Command::new("bash")
        .args(["--norc", "--noprofile", "-c", asked, "bash", program])
        .args(words)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let offered = String::from_utf8(output.stdout).unwrap();
    offered.lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_subcommands_and_options() {
    assert_eq!(complete(&["fi"]), ["fire"]);
    assert_eq!(complete(&["dis"]), ["disable"]);
    assert_eq!(complete(&["fire", "pre_tool_use", "--stri"]), ["--strict"]);
    assert_eq!(complete(&["completions", "z"]), ["zsh"]);
}

#[test]
fn each_shell_gets_a_script_that_names_every_subcommand() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let ran = Test::new().args(["completions", shell]).run();
        assert_eq!(ran.status, 0, "{shell}: {}", ran.stderr);
        for command in ["demo", "run", "fire", "trust", "sessions", "completions"] {
            assert!(ran.stdout.contains(command), "{shell}: {command}");
        }
    }
    let ran = Test::new().args(["completions", "csh"]).run();
    assert_eq!(ran.status, 64);
    assert!(ran.stderr.contains("invalid value 'csh'"), "{}", ran.stderr);
}

#[test]
fn each_subcommand_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("share/man1");
    let ran = Test::new().args(["man", dir.to_str().unwrap()]).run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let pages = fs::read_dir(&dir).unwrap();
    let pages: BTreeSet<String> = pages
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    for command in complete(&[""])
        .iter()
        .filter(|it| !it.starts_with('-') && *it != "help")
    {
        let page = format!("tenterhook-{command}.1");
        assert!(pages.contains(&page), "{page} is not in {pages:?}");
    }
    let page = fs::read_to_string(dir.join("tenterhook-fire.1")).unwrap();
    for part in [".SH NAME", ".SH SYNOPSIS", ".SH OPTIONS", "strict"] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn pages_that_cannot_be_written_name_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("taken");
    fs::write(&file, "").unwrap();
    let ran = Test::new().args(["man", file.to_str().unwrap()]).run();
    assert_eq!(ran.status, 1);
    let expected = format!("cannot write manual pages into `{}`", file.display());
    assert!(ran.stderr.contains(&expected), "{}", ran.stderr);
}
