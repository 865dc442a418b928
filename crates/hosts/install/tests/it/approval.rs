//! Agents that run only hooks that the person approved.

use tenterhook_install::{ApprovalState, InstallPlan, InstallScope};

use crate::stage::{Stage, careful_agent};

fn approve(stage: &Stage) -> InstallPlan {
    let installer = stage.installer();
    let plan = installer
        .plan_install(careful_agent(), &InstallScope::User, true)
        .unwrap();
    installer.apply(&plan).unwrap();
    plan
}

#[test]
fn nothing_is_approved_without_consent() {
    let stage = Stage::new();
    let config = stage.write(".acme/config.toml", "model = \"x\"\n");
    assert_eq!(
        stage.install(careful_agent()).approval,
        ApprovalState::Missing
    );
    assert_eq!(std::fs::read_to_string(config).unwrap(), "model = \"x\"\n");
    assert_eq!(
        stage.status(careful_agent()).places[0].approval,
        ApprovalState::Missing
    );
}

#[test]
fn an_approval_is_recorded_and_removed() {
    let stage = Stage::new();
    stage.write(".acme/config.toml", "model = \"x\" # mine");
    let before = stage.snapshot();
    assert_eq!(approve(&stage).approval, ApprovalState::Recorded);
    let config = stage.read(".acme/config.toml");
    let key = format!(
        "[hooks.state.\"{}:PreToolUse:0\"]",
        stage.home(".acme/hooks.json").display()
    );
    assert!(
        config.starts_with("model = \"x\" # mine\n") && config.contains(&key),
        "{config}"
    );
    assert_eq!(
        stage.status(careful_agent()).places[0].approval,
        ApprovalState::Recorded
    );
    // Without a question, an existing approval is enough.
    let again = stage.install(careful_agent());
    assert!(again.changes.is_empty() && again.approval == ApprovalState::Recorded);
    stage.uninstall(careful_agent());
    assert_eq!(stage.snapshot(), before);
}

#[test]
fn settings_that_changed_meanwhile_lose_only_the_approvals() {
    let stage = Stage::new();
    approve(&stage);
    let config = stage.read(".acme/config.toml");
    stage.write(
        ".acme/config.toml",
        &format!("{config}\n[projects.\"/p\"]\ntrust = true\n"),
    );
    stage.uninstall(careful_agent());
    assert_eq!(
        stage.read(".acme/config.toml").trim(),
        "[projects.\"/p\"]\ntrust = true"
    );
    assert!(!stage.home(".acme/hooks.json").exists());
}

#[test]
fn an_approval_follows_an_entry_that_moved() {
    let stage = Stage::new();
    approve(&stage);
    let text = stage
        .read(".acme/hooks.json")
        .replace("\"PreToolUse\": [", "\"PreToolUse\": [{},");
    stage.write(".acme/hooks.json", &text);
    assert_eq!(
        stage.install(careful_agent()).approval,
        ApprovalState::Missing
    );
    assert_eq!(approve(&stage).approval, ApprovalState::Recorded);
    let config = stage.read(".acme/config.toml");
    assert!(
        config.contains(":PreToolUse:1\"]") && !config.contains(":PreToolUse:0\"]"),
        "{config}"
    );
    stage.uninstall(careful_agent());
    assert!(!stage.home(".acme/config.toml").exists());
}
