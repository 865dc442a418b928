//! What others change between an installation and a removal stays.

use serde_json::{Value, json};

use crate::stage::{Stage, json_agent, toml_agent};

#[test]
fn edits_of_others_survive_a_removal() {
    let stage = Stage::new();
    stage.write(
        ".acme/settings.json",
        "{\n  // mine\n  \"model\": \"a\"\n}\n",
    );
    stage.install(json_agent());
    let text = stage.read(".acme/settings.json");
    stage.write(
        ".acme/settings.json",
        &text.replace("\"a\",", "\"b\", // new"),
    );
    stage.uninstall(json_agent());
    assert_eq!(
        stage.read(".acme/settings.json"),
        "{\n  // mine\n  \"model\": \"b\" // new\n}\n"
    );
}

#[test]
fn another_hook_in_a_list_that_was_added_survives() {
    let stage = Stage::new();
    stage.install(json_agent());
    // As a program does it: it reads the settings and writes them in its own layout.
    let mut settings: Value = serde_json::from_str(&stage.read(".acme/settings.json")).unwrap();
    let list = settings["hooks"]["PreToolUse"].as_array_mut().unwrap();
    list.insert(0, json!({"hooks": [{"command": "mine"}]}));
    settings["theme"] = "dark".into();
    stage.write(".acme/settings.json", &settings.to_string());
    stage.uninstall(json_agent());
    let settings: Value = serde_json::from_str(&stage.read(".acme/settings.json")).unwrap();
    assert_eq!(
        settings,
        json!({"hooks": {"PreToolUse": [{"hooks": [{"command": "mine"}]}]}, "theme": "dark"})
    );
}

#[test]
fn a_file_that_others_emptied_of_everything_else_is_removed_again() {
    let stage = Stage::new();
    let before = stage.snapshot();
    stage.install(json_agent());
    let settings: Value = serde_json::from_str(&stage.read(".acme/settings.json")).unwrap();
    stage.write(".acme/settings.json", &settings.to_string());
    stage.uninstall(json_agent());
    assert_eq!(stage.snapshot(), before);
}

#[test]
fn edits_before_a_second_installation_survive_too() {
    let stage = Stage::new();
    stage.write(".acme/config.toml", "a = 1\n");
    stage.install(toml_agent());
    let text = stage
        .read(".acme/config.toml")
        .replace("a = 1", "a = 2 # new");
    // Without one of the entries, so that the second installation has something to add.
    let (text, _) = text.rsplit_once("\n[[hooks]]").unwrap();
    stage.write(".acme/config.toml", text);
    assert_eq!(stage.install(toml_agent()).events.len(), 1);
    stage.uninstall(toml_agent());
    assert_eq!(stage.read(".acme/config.toml"), "a = 2 # new\n");
}

#[test]
fn an_entry_that_someone_changed_stays_until_a_removal() {
    let stage = Stage::new();
    stage.install(json_agent());
    let text = stage
        .read(".acme/settings.json")
        .replacen("\"*\"", "\"Bash\"", 1);
    stage.write(".acme/settings.json", &text);
    let plan = stage.install(json_agent());
    assert_eq!(plan.altered.len(), 1);
    assert_eq!(stage.read(".acme/settings.json"), text);
    assert_eq!(stage.status(json_agent()).places[0].altered, plan.altered);
    stage.uninstall(json_agent());
    assert!(!stage.home(".acme").exists());
}

#[test]
fn entries_without_a_record_are_found_and_removed() {
    let stage = Stage::new();
    stage.write(".acme/settings.json", "{\n  \"model\": \"a\"\n}\n");
    stage.install(json_agent());
    std::fs::remove_dir_all(stage.machine.data.join("install")).unwrap();
    let plan = stage.uninstall(json_agent());
    assert_eq!(plan.events.len(), json_agent().events.len());
    let text = stage.read(".acme/settings.json");
    assert!(
        !text.contains("tenterhook") && text.contains("\"model\": \"a\""),
        "{text}"
    );
}

#[test]
fn a_record_that_was_lost_is_made_again() {
    let stage = Stage::new();
    stage.write(".acme/settings.json", "{\n  \"model\": \"a\"\n}\n");
    stage.install(json_agent());
    let text = stage.read(".acme/settings.json");
    std::fs::remove_dir_all(stage.machine.data.join("install")).unwrap();
    assert!(stage.install(json_agent()).changes.is_empty());
    assert_eq!(stage.read(".acme/settings.json"), text);
    assert!(
        stage
            .machine
            .data
            .join("install/acme/user/record.json")
            .exists()
    );
    stage.uninstall(json_agent());
    assert!(!stage.read(".acme/settings.json").contains("tenterhook"));
}
