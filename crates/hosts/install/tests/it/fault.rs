//! Interrupted, concurrent and impossible installations.

use std::fs;

use tenterhook_install::InstallScope;

use crate::stage::{Stage, file_agent, json_agent, toml_agent};

#[test]
fn the_original_is_stored_before_the_first_change() {
    let stage = Stage::new();
    let text = "{\n  \"model\": \"a\"\n}\n";
    let settings = stage.write(".acme/settings.json", text);
    let installer = stage.installer();
    let plan = installer
        .plan_install(json_agent(), &InstallScope::User, false)
        .unwrap();
    // Another program writes between plan and change: as in a crash, everything but the change itself has happened.
    fs::write(&settings, "{\"model\": \"b\"}").unwrap();
    let error = installer.apply(&plan).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("another program changed it at the same time"),
        "{error}"
    );
    let folder = stage.machine.data.join("install/acme/user");
    let original = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let original = original
        .into_iter()
        .find(|path| !path.ends_with("record.json"))
        .unwrap();
    assert_eq!(fs::read_to_string(original).unwrap(), text);
    fs::write(&settings, text).unwrap();
    drop(installer);
    stage.uninstall(json_agent());
    assert_eq!(stage.read(".acme/settings.json"), text);
    assert!(!folder.exists());
}

#[test]
fn an_interrupted_installation_is_completed_by_the_next() {
    let stage = Stage::new();
    let before = stage.snapshot();
    stage.install(file_agent());
    // The first of two files was written.
    fs::remove_dir_all(stage.home(".acme/plugins/tenterhook/more")).unwrap();
    stage.install(file_agent());
    assert!(
        stage
            .home(".acme/plugins/tenterhook/more/plugin.json")
            .exists()
    );
    stage.uninstall(file_agent());
    assert_eq!(stage.snapshot(), before);
}

#[test]
fn concurrent_installations_wait_for_one_another() {
    let stage = Stage::new();
    stage.write(".acme/settings.json", "{\n  \"model\": \"a\"\n}\n");
    let before = stage.snapshot();
    let hosts = [json_agent(), toml_agent(), json_agent(), toml_agent()];
    std::thread::scope(|scope| {
        for host in hosts {
            scope.spawn(|| stage.install(host));
        }
    });
    assert!(stage.install(json_agent()).changes.is_empty());
    let text = stage.read(".acme/settings.json");
    assert_eq!(
        text.matches("tenterhook-shim").count(),
        json_agent().events.len()
    );
    stage.uninstall(toml_agent());
    stage.uninstall(json_agent());
    assert_eq!(stage.snapshot(), before);
}

#[test]
fn a_damaged_record_stops_a_removal() {
    let stage = Stage::new();
    stage.install(json_agent());
    let text = stage.read(".acme/settings.json");
    fs::write(
        stage.machine.data.join("install/acme/user/record.json"),
        "{}",
    )
    .unwrap();
    let installer = stage.installer();
    let error = installer
        .plan_removal(json_agent(), &InstallScope::User)
        .unwrap_err();
    assert!(error.to_string().contains("record.json"), "{error}");
    assert!(installer.remove_unused_programs().is_err() && stage.machine.shim().exists());
    assert_eq!(stage.read(".acme/settings.json"), text);
}

#[test]
fn an_agent_without_a_project_file_is_refused() {
    let stage = Stage::new();
    let mut installation = tenterhook_systems::host::installation::Installation {
        project: None,
        ..*json_agent().installation
    };
    installation.after = "";
    let host = Box::leak(Box::new(tenterhook_systems::host::HostAgent {
        installation: Box::leak(Box::new(installation)),
        ..*json_agent()
    }));
    let error = stage
        .try_install_in(host, &InstallScope::Project(stage.project()))
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "Acme has no hook configuration for a project"
    );
}
