//! An agent's shell tries to change the hooks that guard it.

use std::fs;

use crate::stage::{Ran, Test, eventually};

const PROGRAM: &str = env!("CARGO_BIN_EXE_tenterhook");

/// A project with an approved hook and an unapproved one, and a user with a source of hooks and a disabled one.
fn approved() -> Ran {
    let hooks = "hooks:
  - {name: one, event: post_tool_use, command: ./.tenterhook/log.sh one}
  - {name: two, event: post_tool_use, command: ./.tenterhook/log.sh two}
";
    let test = Test::new()
        .args(["trust", "one"])
        .executable(".tenterhook/log.sh", "#!/bin/sh\nexit 0\n")
        .file(".tenterhook/hooks.yaml", hooks);
    fs::create_dir(test.work().join(".git")).unwrap();
    let folder = test.work().join("../config/hooks.d");
    fs::create_dir(&folder).unwrap();
    for name in ["on.yaml", "off.yaml"] {
        let hooks = "hooks: [{event: turn_end, command: \"true\"}]";
        fs::write(folder.join(name), hooks).unwrap();
    }
    let ran = test.run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let ran = ran
        .again(["disable", "off.yaml", "--yes", "--no-journal"])
        .run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    ran
}

/// Returns the approved hooks and the disabled sources.
fn store(ran: &Ran) -> [String; 2] {
    let data = ran.path("home/.local/share/tenterhook");
    let read = |path| fs::read_to_string(data.join(path)).unwrap();
    [read("trust/trust.json"), read("disabled.json")]
}

/// Lets the agent's shell try every way to change them, after running `before`. Returns the errors.
fn try_all(before: &str) -> String {
    let ran = approved();
    let stored = store(&ran);
    let tries = [
        "trust --all",
        "trust two",
        "trust --revoke",
        "disable on.yaml --yes",
        "enable off.yaml",
        "install claude-code",
        "uninstall claude-code",
        "allow 7K3MZQ2P --once --yes",
        "allow 7K3MZQ2P --revoke",
    ];
    let lines = tries.map(|words| format!("{PROGRAM} {words} 2>> said; echo $? >> said\n"));
    let script = lines.concat();
    let ran = ran
        .again(["run", "go", "--yes", "--no-journal", "--model", "scripted:script.yaml"])
        .file("try.sh", &format!("{script}touch tried\n"))
        .file(
            "script.yaml",
            &format!(
                "turns: [{{tool_calls: [{{name: shell, arguments: {{cmd: '{before} sh try.sh > out 2>&1 < /dev/null; \
                 until test -e tried; do sleep 0.05; done'}}}}]}}, {{text: done}}]"
            ),
        )
        .run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let said = ran.file("said");
    for action in [
        "approve hooks",
        "revoke approvals",
        "disable hooks",
        "enable hooks",
        "install hooks",
        "uninstall hooks",
        "let a denied call through",
        "revoke exceptions",
    ] {
        let refusal = format!("a program that Tenterhook runs cannot {action}");
        assert!(said.contains(&refusal), "{before}: {said}");
    }
    assert_eq!(
        said.matches("64\n").count(),
        tries.len(),
        "{before}: {said}"
    );
    assert_eq!(store(&ran), stored, "{before}");
    said
}

#[test]
fn a_command_of_the_agent_approves_revokes_disables_and_enables_nothing() {
    try_all("");
}

#[test]
fn an_empty_environment_is_no_way_around() {
    try_all(
        "env -i PATH=\"$PATH\" HOME=\"$HOME\" TENTERHOOK_CONFIG_DIR=\"$TENTERHOOK_CONFIG_DIR\"",
    );
}

#[test]
fn a_session_of_its_own_is_no_way_around() {
    try_all("setsid env -u TENTERHOOK_AGENT");
}

#[test]
fn a_process_that_is_nobodys_child_any_more_is_no_way_around() {
    let said = try_all("env -u TENTERHOOK_AGENT setsid sh -c \"sh try.sh > out 2>&1 &\"; : ");
    assert!(
        said.contains("has to run while that one is stopped"),
        "{said}"
    );
}

#[test]
fn a_command_of_the_agent_may_look_at_what_is_approved() {
    let ran = approved();
    let ran = ran
        .again(["run", "go", "--yes", "--no-journal", "--model", "scripted:script.yaml"])
        .file(
            "script.yaml",
            &format!(
                "turns: [{{tool_calls: [{{name: shell, arguments: {{cmd: '{PROGRAM} trust --show > shown'}}}}]}}, {{text: done}}]"
            ),
        )
        .run();
    assert!(
        ran.file("shown").contains("2 hooks of this project"),
        "{}",
        ran.stderr
    );
}

#[test]
fn another_program_may_approve_while_an_agent_works() {
    let ran = approved();
    let running = ran
        .again(["run", "go", "--yes", "--no-journal", "--model", "scripted:script.yaml"])
        .file(
            "script.yaml",
            "turns: [{tool_calls: [{name: shell, arguments: {cmd: 'touch busy; until test -e go; do sleep 0.05; done'}}]}, {text: done}]",
        )
        .start();
    eventually(|| running.work().join("busy").exists().then_some(()));
    let output = running.beside(["trust", "--all"]);
    fs::write(running.work().join("go"), "").unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(running.finish().status, 0);
}
