//! The hook manager and its trigger: kodelet's shapes for a program that embeds the engine.

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tenterhook_discovery::{Conversation, FolderSearch, HookManager, Trigger};
use tenterhook_engine::{EventKind, HookSpec, Message, Origin, ToolResult, native_policy};
use tenterhook_protocol::event::{TurnEnd, UserPromptSubmit};
use tenterhook_trust::Trust;

use crate::folder::{Place, executable};

/// Returns a script that declares an event, and runs `run` when the event happens.
fn script(event: &str, run: &str) -> String {
    format!("#!/bin/sh\n[ \"$1\" = hook ] && {{ echo {event}; exit; }}\n{run}\n")
}

async fn manager(place: &Place, hooks: &[(&str, &str, &str)]) -> HookManager {
    for (name, event, run) in hooks {
        let folder = place.project.join(".kodelet/hooks");
        executable(&folder, name, &script(event, run));
    }
    HookManager::discover(
        FolderSearch::of_layers(&place.layers())
            .trust(Trust::Caller)
            .lenient(true),
    )
    .await
    .unwrap()
}

fn conversation(place: &Place) -> Conversation {
    Conversation {
        id: "c1".to_owned(),
        working_dir: place.project.clone(),
        ..Conversation::default()
    }
}

fn seen(place: &Place) -> Value {
    serde_json::from_str(&fs::read_to_string(place.project.join("seen")).unwrap()).unwrap()
}

#[tokio::test]
async fn a_manager_knows_its_hooks() {
    let place = Place::new();
    let hooks = [("a", "turn_end", "true"), ("b", "before_tool_call", "true")];
    let manager = manager(&place, &hooks).await;
    assert!(manager.has_hooks(EventKind::TurnEnd));
    assert!(!manager.has_hooks(EventKind::Stop));
    let names = |event| -> Vec<&str> { manager.hooks(event).map(|hook| hook.name).collect() };
    assert_eq!(names(EventKind::TurnEnd), ["a"]);
    assert!(names(EventKind::Stop).is_empty());
    let hook = manager.hook_by_name("b").unwrap();
    assert_eq!(hook.event.as_str(), "pre_tool_use");
    assert_eq!(hook.path, Some(&*place.project.join(".kodelet/hooks/b")));
    assert!(manager.hook_by_name("c").is_none());
    assert_eq!(manager.all_hooks().count(), 2);
}

// K-T7: zero means the default of 30 seconds; negative times cannot be expressed.
#[tokio::test]
async fn the_timeout_of_a_manager_can_be_set() {
    let place = Place::new();
    let hooks = [("a", "user_message_send", "sleep 30")];
    let mut manager = manager(&place, &hooks).await;
    manager.set_timeout(Duration::from_millis(300));
    let began = Instant::now();
    let outcome = manager
        .execute(Origin::default(), UserPromptSubmit::default())
        .await;
    assert!(
        outcome
            .decision()
            .reason()
            .unwrap()
            .contains("timed out after 0.3s")
    );
    assert!(began.elapsed() < Duration::from_secs(8));
    manager.set_timeout(Duration::ZERO);
    let waiting = manager.execute(Origin::default(), UserPromptSubmit::default());
    let waited = tokio::time::timeout(Duration::from_millis(600), waiting).await;
    assert!(waited.is_err(), "it has the default of 30 seconds again");
}

// K-H1: a trigger without hooks blocks and changes nothing, and does not even parse the input.
#[tokio::test]
async fn the_default_trigger_does_nothing() {
    let trigger = Trigger::default();
    assert_eq!(trigger.user_message_send("hi").await, Ok(()));
    assert_eq!(
        trigger
            .before_tool_call("bash", "{\"a\":", "1")
            .await
            .unwrap(),
        "{\"a\":"
    );
    let result = ToolResult::text("x");
    assert_eq!(
        trigger.after_tool_call("bash", "{}", &result, "1").await,
        None
    );
    assert!(
        trigger
            .agent_stop(vec![Message::user("hi")])
            .await
            .is_empty()
    );
    trigger.turn_end("done", 1).await;
}

#[tokio::test]
async fn each_moment_reaches_its_hooks() {
    let place = Place::new();
    let output = json!({"output": {"toolName": "bash", "success": true, "metadataType": "bash", "metadata": {"output": "safe"}}});
    let hooks = [
        (
            "user",
            "user_message_send",
            "case $(cat) in *secret*) echo '{\"blocked\":true,\"reason\":\"r\"}';; esac",
        ),
        (
            "before",
            "before_tool_call",
            "cat > seen; echo '{\"input\":{\"b\":2}}'",
        ),
        (
            "after",
            "after_tool_call",
            &format!("cat > seen; echo '{output}'"),
        ),
        (
            "stop",
            "agent_stop",
            "cat > seen; echo '{\"follow_up_messages\":[\"more\",\"\"]}'",
        ),
        ("turn", "turn_end", "cat > seen"),
    ];
    let manager = manager(&place, &hooks).await;
    let trigger = Trigger::new(&manager, conversation(&place));
    assert_eq!(trigger.user_message_send("hello").await, Ok(()));
    let blocked = trigger.user_message_send("a secret").await.unwrap_err();
    assert_eq!(blocked.to_string(), "blocked by hook: r");
    let input = trigger
        .before_tool_call("bash", "{\"a\": 1}", "call_1")
        .await;
    assert_eq!(input.unwrap(), "{\"b\":2}");
    assert_eq!(seen(&place)["tool_input"], json!({"a": 1}));
    assert_eq!(seen(&place)["tool_user_id"], "call_1");
    let result = trigger
        .after_tool_call("bash", "{\"b\":2}", &ToolResult::text("unsafe"), "call_1")
        .await;
    assert_eq!(result.unwrap().joined_text(), "safe");
    trigger
        .tool_call_blocked("bash", "{}", &blocked, "call_2")
        .await;
    assert_eq!(seen(&place)["tool_output"]["error"], "blocked by hook: r");
    assert_eq!(
        trigger.agent_stop(vec![Message::assistant("done")]).await,
        ["more"]
    );
    trigger.turn_end("done", 3).await;
    assert_eq!(seen(&place)["turn_number"], 3);
}

// K-H11, K-H12: later moments have the new id; events of subagents and recipes are marked.
#[tokio::test]
async fn a_conversation_may_get_another_id() {
    let place = Place::new();
    let manager = manager(&place, &[("turn", "turn_end", "cat > seen")]).await;
    let conversation = Conversation {
        is_subagent: true,
        recipe: Some("compact".to_owned()),
        ..conversation(&place)
    };
    let mut trigger = Trigger::new(&manager, conversation);
    trigger.turn_end("done", 1).await;
    assert_eq!(seen(&place)["conv_id"], "c1");
    assert_eq!(seen(&place)["invoked_by"], "subagent");
    assert_eq!(seen(&place)["recipe_name"], "compact");
    trigger.set_conversation_id("c2");
    trigger.turn_end("done", 1).await;
    assert_eq!(seen(&place)["conv_id"], "c2");
    assert_eq!(seen(&place)["cwd"], *place.project.to_string_lossy());
}

// K-H15: an input that hooks cannot check is blocked if there are hooks.
#[tokio::test]
async fn an_input_that_is_no_object_never_passes_a_guard() {
    let place = Place::new();
    let manager = manager(&place, &[("guard", "before_tool_call", "touch ran")]).await;
    let trigger = Trigger::new(&manager, conversation(&place));
    for input in ["", "{\"a\":", "[]", "null", r#"{"cmd":"ls","cmd":"rm"}"#] {
        let blocked = trigger
            .before_tool_call("bash", input, "1")
            .await
            .unwrap_err();
        assert!(blocked.reason.contains("hooks cannot check"), "{input}");
    }
    assert!(!place.project.join("ran").exists());
}

#[tokio::test]
async fn hooks_are_added_behind_those_that_were_found() {
    let place = Place::new();
    let mut manager = manager(&place, &[("found", "turn_end", "true")]).await;
    let before = manager.dispatcher(Origin::default());
    let own = Arc::new(tenterhook_runners::CommandHandler::new(
        tenterhook_process::Command::new(tenterhook_process::Program::shell("false")),
        "false",
        tenterhook_systems::kodelet::Kodelet::new(),
    ));
    manager.add([HookSpec {
        policy: native_policy(EventKind::TurnEnd.info(), None),
        ..HookSpec::new(EventKind::TurnEnd, "own", own)
    }]);
    let names: Vec<_> = manager.all_hooks().map(|hook| hook.name).collect();
    assert_eq!(names, ["found", "own"]);
    let turn = TurnEnd::new().with_response("done");
    assert_eq!(before.dispatch(turn).await.failures().len(), 1);
}
