//! Messages that arrive while the agent works.

use std::sync::{Arc, OnceLock};

use serde_json::json;
use tenterhook_agent::{
    AgentConfig, AgentHandle, CancellationToken, Permissions, Prompt, RunEnd, SubmitOutcome,
};
use tenterhook_engine::event::{
    InputSource, PostToolUse, QueueKind, UserFollowupSubmit, UserSteeringSubmit,
};
use tenterhook_engine::{Effect, Image};

use crate::stage::Stage;

const LOOK_THEN_SAY: &str = r"
turns:
  - tool_calls: [{name: list_directory}]
  - text: first
  - text: second
";

fn texts(agent: &tenterhook_agent::Agent) -> Vec<String> {
    agent
        .session()
        .messages()
        .into_iter()
        .map(|message| message.content)
        .collect()
}

#[tokio::test]
async fn a_steering_message_is_heard_after_the_tools() {
    let stage = Stage::empty();
    let slot: Arc<OnceLock<AgentHandle>> = Arc::default();
    let in_hook = Arc::clone(&slot);
    stage.engine.on_async(move |_: &PostToolUse| {
        let handle = in_hook.get().unwrap().clone();
        Box::pin(async move {
            handle.steer("look elsewhere").await.unwrap();
            Effect::none()
        })
    });
    let mut agent = stage
        .config(LOOK_THEN_SAY)
        .build(stage.engine.clone())
        .unwrap();
    slot.set(agent.handle()).unwrap();
    let report = agent.prompt("go", &CancellationToken::new()).await;
    assert_eq!(report.end, RunEnd::Completed);
    assert_eq!(stage.field("turn_end", "reason"), ["steered", "normal"]);
    assert_eq!(
        texts(&agent),
        ["go", "", "[empty]", "look elsewhere", "first"]
    );
    assert_eq!(
        stage.only::<UserSteeringSubmit>().messages,
        ["look elsewhere"]
    );
    assert_eq!(
        stage.field("queue_update", "message"),
        ["look elsewhere", ""]
    );
    assert_eq!(
        stage.field("queue_update", "queue"),
        ["steering", "steering"]
    );
}

#[tokio::test]
async fn a_follow_up_waits_until_the_agent_is_done() {
    let stage = Stage::empty();
    let mut agent = stage
        .config(LOOK_THEN_SAY)
        .build(stage.engine.clone())
        .unwrap();
    agent.handle().follow_up("and then").await.unwrap();
    agent.prompt("go", &CancellationToken::new()).await;
    assert_eq!(
        stage.field("turn_end", "reason"),
        ["continue", "continue", "normal"]
    );
    assert_eq!(
        texts(&agent),
        ["go", "", "[empty]", "first", "and then", "second"]
    );
    assert_eq!(stage.only::<UserFollowupSubmit>().prompt, "and then");
}

#[tokio::test]
async fn a_queue_has_an_end() {
    let stage = Stage::empty();
    let agent = stage
        .config(LOOK_THEN_SAY)
        .build(stage.engine.clone())
        .unwrap();
    let handle = agent.handle();
    for _ in 0..64 {
        handle.steer("more").await.unwrap();
        handle.follow_up("more").await.unwrap();
    }
    let full = handle.steer("more").await.unwrap_err().to_string();
    assert_eq!(
        full,
        "the queue `steering` is full: 64 messages are waiting"
    );
    let full = handle.follow_up("more").await.unwrap_err().to_string();
    assert_eq!(
        full,
        "the queue `follow_up` is full: 64 messages are waiting"
    );
    assert_eq!(handle.waiting(), 128);
    assert_eq!(stage.field("queue_update", "queue").len(), 128);
}

#[tokio::test]
async fn a_message_that_was_not_heard_can_be_withdrawn() {
    let stage = Stage::empty();
    let mut agent = stage
        .config("turns: [{text: done}]")
        .build(stage.engine.clone())
        .unwrap();
    let handle = agent.handle();
    let image = Image::new("image/png", "aGk=");
    for number in 1..=2 {
        let prompt = Prompt {
            images: vec![image.clone()],
            source: InputSource::Channel,
            extra: [("inbox_id".to_owned(), json!(number))]
                .into_iter()
                .collect(),
            ..Prompt::from("look")
        };
        let queued = handle.submit_prompt(prompt, QueueKind::Steering).await;
        assert_eq!(queued, Ok(SubmitOutcome::Queued));
    }
    let withdrawn = handle.withdraw(|extra| extra["inbox_id"] == 1).await;
    assert_eq!(withdrawn.len(), 1);
    assert_eq!(withdrawn[0].text, "look");
    assert_eq!(handle.waiting(), 1);
    agent.prompt("go", &CancellationToken::new()).await;
    assert_eq!(texts(&agent), ["go", "look", "done"]);
    let messages = agent.session().messages();
    assert_eq!(messages[1].images, [image]);
    let sources = stage.field("user_input", "source");
    assert_eq!(sources, ["channel", "channel", "interactive"]);
}

#[tokio::test]
async fn refused_messages_end_the_run_and_leave_the_session() {
    // D-112
    let stage = Stage::empty();
    stage
        .engine
        .on(|_: &UserFollowupSubmit| Effect::<UserFollowupSubmit>::block("no more"));
    let mut agent = stage
        .config(LOOK_THEN_SAY)
        .build(stage.engine.clone())
        .unwrap();
    agent.handle().follow_up("and then").await.unwrap();
    let report = agent.prompt("go", &CancellationToken::new()).await;
    assert_eq!(
        report.end,
        RunEnd::HookBlocked {
            event: "user_followup_submit",
            reason: "no more".to_owned()
        }
    );
    assert_eq!(
        stage.field("turn_end", "reason"),
        ["continue", "hook_blocked"]
    );
    assert_eq!(texts(&agent), ["go", "", "[empty]", "first"]);

    let stage = Stage::empty();
    stage
        .engine
        .on(|_: &UserSteeringSubmit| Effect::<UserSteeringSubmit>::block("no"));
    let mut agent = stage
        .config(LOOK_THEN_SAY)
        .build(stage.engine.clone())
        .unwrap();
    agent.handle().steer("one").await.unwrap();
    agent.handle().steer("two").await.unwrap();
    let report = agent.prompt("go", &CancellationToken::new()).await;
    assert_eq!(
        report.end,
        RunEnd::HookBlocked {
            event: "user_steering_submit",
            reason: "no".to_owned()
        }
    );
    assert_eq!(texts(&agent), ["go"]);
}

// P18
#[tokio::test]
async fn a_steering_message_skips_the_calls_that_did_not_run_yet() {
    let script = r"
turns:
  - tool_calls:
      - {name: shell, arguments: {cmd: echo one}}
      - {name: shell, arguments: {cmd: touch two}}
      - {name: list_directory}
  - text: heard
";
    let stage = Stage::empty();
    let mut agent = AgentConfig {
        permissions: Permissions::new().yes(true),
        ..stage.config(script)
    }
    .build(stage.engine.clone())
    .unwrap();
    let handle = agent.handle();
    stage.engine.on_async(move |event: &PostToolUse| {
        let handle = event
            .result
            .joined_text()
            .contains("one")
            .then(|| handle.clone());
        Box::pin(async move {
            if let Some(handle) = handle {
                handle.steer("stop that").await.unwrap();
            }
            Effect::none()
        })
    });
    let report = agent.prompt("go", &CancellationToken::new()).await;
    assert_eq!(report.end, RunEnd::Completed);
    let skipped = "The tool call was skipped because the user sent a message.";
    assert_eq!(
        texts(&agent),
        ["go", "", "one\n", skipped, skipped, "stop that", "heard"]
    );
    assert!(!stage.path().join("two").exists());
    assert_eq!(stage.field("turn_end", "reason"), ["steered", "normal"]);
    let count = |name: &str| stage.names().iter().filter(|heard| *heard == name).count();
    for (name, times) in [
        ("tool_execution_start", 3),
        ("tool_execution_end", 3),
        ("pre_tool_use", 1),
        ("post_tool_use", 1),
    ] {
        assert_eq!(count(name), times, "{name}");
    }
}
