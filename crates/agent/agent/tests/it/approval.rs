//! The questions to the user, and the effects of the answers.

use serde_json::json;
use tenterhook_agent::frontend::Approval;
use tenterhook_agent::{AgentConfig, CancellationToken, Permissions, RunEnd};
use tenterhook_engine::Effect;
use tenterhook_engine::event::{PermissionRequest, PreToolUse};

use crate::stage::{Human, Stage, tool_texts};

const TWICE: &str = r"
turns:
  - tool_calls: [{name: shell, arguments: {cmd: echo hi}}]
  - tool_calls: [{name: shell, arguments: {cmd: echo hi}}]
  - text: done
";

fn deny(reason: &str) -> Approval {
    Approval::Deny {
        reason: Some(reason.to_owned()),
    }
}

#[tokio::test]
async fn a_yes_is_for_one_call_or_for_the_session() {
    let once = Stage::attended([Approval::AllowOnce, Approval::AllowOnce]);
    once.play(TWICE).await;
    assert_eq!(once.human.asked().len(), 2);
    assert_eq!(
        once.field("tool_approval_decision", "source"),
        ["user_approved", "user_approved"]
    );

    let session = Stage::attended([Approval::AllowSession]);
    session.play(TWICE).await;
    assert_eq!(session.human.asked().len(), 1);
    assert_eq!(
        session.field("tool_approval_decision", "source"),
        ["user_approved_session", "session_allow"]
    );
    let names = session.names();
    let waiting = names
        .iter()
        .position(|name| name == "waiting_for_user")
        .unwrap();
    assert_eq!(names[waiting - 1], "permission_request");
    assert_eq!(
        session.field("waiting_for_user", "reason"),
        ["tool_approval", "idle"]
    );
}

#[tokio::test]
async fn a_no_is_told_to_the_model_with_its_reason() {
    let stage = Stage::attended([deny("not now"), Approval::Deny { reason: None }]);
    let (agent, _) = stage.play(TWICE).await;
    assert_eq!(
        tool_texts(&agent),
        [
            "The tool call was rejected by the user. Reason: not now",
            "The tool call was rejected by the user."
        ]
    );
    assert_eq!(stage.field("permission_denied", "by"), ["user", "user"]);
}

#[tokio::test]
async fn a_hook_may_answer_for_the_user() {
    let stage = Stage::empty();
    stage
        .engine
        .on(|_: &PermissionRequest| Effect::<PermissionRequest>::allow());
    let (agent, _) = stage.play(TWICE).await;
    assert_eq!(tool_texts(&agent), ["hi\n", "hi\n"]);
    assert_eq!(
        stage.field("tool_approval_decision", "source")[0],
        "permission_request_hook_allow"
    );
}

#[tokio::test]
async fn an_allowing_pre_tool_use_hook_skips_the_question_and_an_asking_one_raises_it() {
    let stage = Stage::attended([]);
    stage
        .engine
        .on(|_: &PreToolUse| Effect::<PreToolUse>::allow());
    stage.play(TWICE).await;
    assert_eq!(stage.human.asked().len(), 0);
    assert!(!stage.names().contains(&"permission_request".to_owned()));

    let stage = Stage::attended([Approval::AllowOnce]);
    stage
        .engine
        .on(|_: &PreToolUse| Effect::<PreToolUse>::ask("a read, but of what?"));
    let script = "turns: [{tool_calls: [{name: list_directory}]}, {text: done}]";
    stage
        .play_with(script, |config| AgentConfig {
            permissions: Permissions::new().yes(true),
            ..config
        })
        .await;
    assert_eq!(
        stage.human.asked(),
        ["list_directory {} a read, but of what?"]
    );
}

#[tokio::test]
async fn an_asking_hook_outweighs_an_allowing_one() {
    let stage = Stage::attended([deny("no"), deny("no")]);
    stage
        .engine
        .on(|_: &PreToolUse| Effect::<PreToolUse>::allow());
    stage
        .engine
        .on(|_: &PreToolUse| Effect::<PreToolUse>::ask("sure?"));
    stage.play(TWICE).await;
    assert_eq!(stage.human.asked().len(), 2);
}

#[tokio::test]
async fn arguments_changed_before_the_question_are_judged_again() {
    let stage = Stage::attended([]);
    stage.engine.on(|_: &PermissionRequest| {
        Effect::<PermissionRequest>::allow()
            .patch_input(json!({"cmd": "rm -rf x"}).as_object().unwrap().clone())
    });
    let rules = Permissions::new().deny("shell(cmd=rm *)".parse().unwrap());
    let (agent, _) = stage
        .play_with(TWICE, |config| AgentConfig {
            permissions: rules,
            ..config
        })
        .await;
    assert_eq!(
        tool_texts(&agent)[0],
        "The tool call was denied. Reason: the permission rule `shell(cmd=rm *)` denies it"
    );
}

#[tokio::test]
async fn a_cancellation_during_the_question_is_no_denial() {
    let cancel = CancellationToken::new();
    let stage = Stage::with(Human {
        is_there: true,
        gives_up: Some(cancel.clone()),
        ..Human::default()
    });
    let mut agent = stage.config(TWICE).build(stage.engine.clone()).unwrap();
    let report = agent.prompt("go", &cancel).await;
    assert_eq!(report.end, RunEnd::Cancelled);
    assert_eq!(
        stage.field("tool_approval_decision", "decision"),
        ["cancelled"]
    );
    assert_eq!(
        stage.field("tool_approval_decision", "source"),
        ["context_cancelled"]
    );
    assert_eq!(stage.field("turn_end", "reason"), ["cancelled"]);
    assert!(!stage.names().contains(&"permission_denied".to_owned()));
    assert_eq!(tool_texts(&agent), ["The tool call was cancelled."]);
}

#[tokio::test]
async fn a_yes_for_a_tool_leaves_the_questions_of_ask_rules() {
    let stage = Stage::attended([Approval::AllowSession, Approval::AllowSession]);
    let script = r"
turns:
  - tool_calls:
      - {name: write_file, arguments: {path: a, content: x}}
      - {name: write_file, arguments: {path: b, content: x}}
      - {name: write_file, arguments: {path: secret, content: x}}
      - {name: write_file, arguments: {path: secret, content: x}}
  - text: done
";
    let rules = Permissions::new().ask("write_file(path=secret*)".parse().unwrap());
    stage
        .play_with(script, |config| AgentConfig {
            permissions: rules,
            ..config
        })
        .await;
    assert_eq!(
        stage.field("tool_approval_decision", "source"),
        [
            "user_approved_session",
            "session_allow",
            "user_approved_session",
            "session_allow"
        ]
    );
    let suggested: Vec<_> = stage
        .all::<PermissionRequest>()
        .into_iter()
        .flat_map(|event| event.suggestions)
        .collect();
    assert_eq!(suggested, ["write_file", "write_file(path=secret)"]);
}
