//! The folders and the environment of an agent.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use tenterhook_install::proof::sandbox::Sandbox;

#[test]
fn an_agent_gets_no_variables_of_the_user_but_a_few_harmless_ones() {
    let sandbox = Sandbox::create().unwrap();
    let environment = sandbox.environment(&[PathBuf::from("/agents/bin")]);
    let known = [
        "HOME",
        "LANG",
        "LC_ALL",
        "LOGNAME",
        "NO_COLOR",
        "PATH",
        "SHELL",
        "TENTERHOOK_DATA_DIR",
        "TERM",
        "TMPDIR",
        "USER",
        "XDG_CACHE_HOME",
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
        "XDG_RUNTIME_DIR",
        "XDG_STATE_HOME",
    ];
    for (name, value) in &environment {
        assert!(known.iter().any(|known| name == known), "{name:?}");
        if name == "PATH" {
            assert!(
                value.to_string_lossy().starts_with("/agents/bin:"),
                "{value:?}"
            );
        }
    }
    // `CARGO_MANIFEST_DIR` is set in this test, and it is not passed.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
}

#[test]
fn no_one_else_can_enter_the_folder_for_sockets() {
    let sandbox = Sandbox::create().unwrap();
    let run = sandbox.home().with_file_name("run");
    assert_eq!(
        fs::metadata(run).unwrap().permissions().mode() & 0o777,
        0o700
    );
}

#[test]
fn a_sandbox_leaves_nothing_behind() {
    let sandbox = Sandbox::create().unwrap();
    let (home, work) = (sandbox.home(), sandbox.work());
    assert!(home.is_dir() && work.is_dir());
    drop(sandbox);
    assert!(!home.exists() && !work.exists());
}
