//! What is installed, and what would run twice.

use std::fs;

use tenterhook_install::{InstallScope, PlaceState, is_present};

use crate::stage::{Stage, curious_agent, json_agent, write_program};

#[test]
fn an_agent_is_found_by_its_program_or_its_folder() {
    let stage = Stage::new();
    assert!(!is_present(&stage.machine, json_agent()));
    let package = stage.machine.search_path[0].join("../lib/acme");
    write_program(&package.join("bin/acme.js"), "");
    fs::write(package.join("package.json"), "{\"version\": \"2.1.0\"}").unwrap();
    fs::create_dir_all(&stage.machine.search_path[0]).unwrap();
    std::os::unix::fs::symlink(
        "../lib/acme/bin/acme.js",
        stage.machine.search_path[0].join("acme"),
    )
    .unwrap();
    let status = stage.status(json_agent());
    assert!(status.is_present && !status.is_installed());
    assert_eq!(status.version.as_deref(), Some("2.1.0"));
    let stage = Stage::new();
    fs::create_dir_all(stage.home(".acme")).unwrap();
    let status = stage.status(json_agent());
    assert!(status.is_present && status.program.is_none());
}

#[test]
fn a_missing_entry_is_reported_and_added_again() {
    let stage = Stage::new();
    stage.install(json_agent());
    let event = json_agent().events[0].name;
    let text = stage
        .read(".acme/settings.json")
        .replace(&format!("acme {event}\""), "other\"");
    stage.write(".acme/settings.json", &text);
    let status = stage.status(json_agent());
    assert_eq!(status.places[0].state, PlaceState::Incomplete);
    assert_eq!(status.places[0].missing, [event]);
    assert_eq!(stage.install(json_agent()).events, [event]);
    assert_eq!(
        stage.status(json_agent()).places[0].state,
        PlaceState::Complete
    );
}

#[test]
fn a_setting_that_switches_all_hooks_off_is_reported_wherever_it_is() {
    let stage = Stage::new();
    stage.install(json_agent());
    assert_eq!(stage.status(json_agent()).switched_off, []);
    for path in [
        stage.home(".acme/local.json"),
        stage.project().join(".acme/settings.json"),
    ] {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "{\"off\": false}").unwrap();
        assert_eq!(stage.status(json_agent()).switched_off, []);
        fs::write(&path, "{\n  // quiet\n  \"off\": true,\n}").unwrap();
        let off = stage.status(json_agent()).switched_off;
        let found: Vec<_> = off
            .iter()
            .map(|off| (&off.path, off.key.as_str()))
            .collect();
        assert_eq!(found, [(&path, "off")]);
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn entries_of_the_user_and_the_project_run_twice() {
    let stage = Stage::new();
    fs::create_dir_all(stage.project()).unwrap();
    stage.install(json_agent());
    assert!(!stage.status(json_agent()).fires_twice());
    stage
        .try_install_in(json_agent(), &InstallScope::Project(stage.project()))
        .unwrap();
    let status = stage.status(json_agent());
    assert_eq!(
        status.repeated_by,
        [stage.project().join(".acme/settings.json")]
    );
}

#[test]
fn an_agent_that_reads_the_file_of_another_runs_its_entries_twice() {
    let stage = Stage::new();
    stage.install(curious_agent());
    stage.write(
        ".acme/settings.json",
        "{\"hooks\": {\"PreToolUse\": [{\"command\": \"mine\"}]}}",
    );
    assert!(!stage.status(curious_agent()).fires_twice());
    stage.install(json_agent());
    assert_eq!(
        stage.status(curious_agent()).repeated_by,
        [stage.home(".acme/settings.json")]
    );
    assert!(!stage.status(json_agent()).fires_twice());
}

#[test]
fn another_copy_of_the_shim_is_reported() {
    let stage = Stage::new();
    stage.write(
        ".acme/settings.json",
        "{\"hooks\": {\"PreToolUse\": [{\"command\": \"'/home/bo/data/bin/tenterhook-shim' acme PreToolUse\"}]}}",
    );
    stage.install(json_agent());
    let status = stage.status(json_agent());
    assert_eq!(
        status.places[0].other_shims,
        ["/home/bo/data/bin/tenterhook-shim"]
    );
    stage.uninstall(json_agent());
    assert!(stage.read(".acme/settings.json").contains("/home/bo/"));
}
