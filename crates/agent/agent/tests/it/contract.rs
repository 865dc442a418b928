//! The parts of docker-agent's contract for a run that no other test of this binary covers.

use std::sync::{Arc, Mutex};

use futures_util::future::{self, BoxFuture};
use serde_json::{Value, json};
use tenterhook_agent::frontend::{Approval, ApprovalRequest, Frontend};
use tenterhook_agent::{AgentConfig, AgentSpec, CancellationToken, Permissions, RunEnd};
use tenterhook_engine::Effect;
use tenterhook_engine::event::{
    AfterLlmCall, BeforeLlmCall, PermissionRequest, PreToolUse, ToolGuard, ToolInputTransform,
    ToolResponseTransform, UserPromptSubmit,
};

use crate::stage::{Stage, tool_texts};

const TOUCH: &str = r"
turns:
  - tool_calls: [{name: shell, arguments: {cmd: touch made}}]
  - text: done
";

fn yes() -> Permissions {
    Permissions::new().yes(true)
}

/// A user who says yes and remembers the metadata of each question.
#[derive(Default)]
struct Reader {
    metadata: Mutex<Vec<Value>>,
}

impl Frontend for Reader {
    fn is_interactive(&self) -> bool {
        true
    }

    fn approve<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
        let metadata = Value::Object(request.metadata.clone());
        self.metadata.lock().unwrap().push(metadata);
        Box::pin(future::ready(Approval::AllowOnce))
    }
}

/// Plays a tool call to a user who says yes, and returns the metadata of each question.
async fn asked(stage: &Stage, permissions: Permissions) -> Vec<Value> {
    let reader = Arc::new(Reader::default());
    let frontend = Arc::clone(&reader) as Arc<dyn Frontend>;
    stage
        .play_with(TOUCH, |config| AgentConfig {
            permissions,
            frontend,
            ..config
        })
        .await;
    assert!(stage.path().join("made").exists());
    std::mem::take(&mut *reader.metadata.lock().unwrap())
}

#[tokio::test]
async fn a_guard_that_asks_shows_what_it_has_to_say_also_under_yes() {
    // D-100
    let stage = Stage::empty();
    stage
        .engine
        .on(|_: &ToolGuard| Effect::<ToolGuard>::ask("sure?").metadata("risk", "high"));
    assert_eq!(asked(&stage, yes()).await, [json!({"risk": "high"})]);
}

#[tokio::test]
async fn a_guard_that_allows_lets_run_what_yes_lets_run() {
    // D-102
    let stage = Stage::empty();
    stage
        .engine
        .on(|_: &ToolGuard| Effect::<ToolGuard>::allow());
    stage
        .play_with(TOUCH, |config| AgentConfig {
            permissions: yes(),
            ..config
        })
        .await;
    assert!(stage.path().join("made").exists());
    assert_eq!(
        stage.field("tool_approval_decision", "source"),
        ["mode_yes"]
    );
}

#[tokio::test]
async fn a_question_carries_the_words_of_all_hooks_and_those_of_the_guard_count() {
    // D-106
    let stage = Stage::empty();
    stage.engine.on(|_: &ToolGuard| {
        Effect::<ToolGuard>::none()
            .metadata("by", "guard")
            .metadata("a", "1")
    });
    stage.engine.on(|_: &PermissionRequest| {
        Effect::<PermissionRequest>::none()
            .metadata("by", "request")
            .metadata("b", "2")
    });
    let said = json!({"by": "guard", "a": "1", "b": "2"});
    assert_eq!(asked(&stage, Permissions::new()).await, [said]);
    let silent = Stage::empty();
    assert_eq!(asked(&silent, Permissions::new()).await, [json!({})]);
}

/// Registers a hook that cancels the run and then never answers.
macro_rules! cancels {
    ($stage:expr, $event:ident, $cancel:expr) => {{
        let cancel = $cancel.clone();
        $stage.engine.on_async(move |_: &$event| {
            cancel.cancel();
            Box::pin(future::pending::<Effect<$event>>())
        });
    }};
}

#[tokio::test]
async fn a_cancellation_during_any_gate_is_no_denial() {
    // D-104
    for gate in [
        "tool_input_transform",
        "tool_guard",
        "pre_tool_use",
        "permission_request",
    ] {
        let stage = Stage::attended([]);
        let cancel = CancellationToken::new();
        match gate {
            "tool_input_transform" => cancels!(stage, ToolInputTransform, cancel),
            "tool_guard" => cancels!(stage, ToolGuard, cancel),
            "pre_tool_use" => cancels!(stage, PreToolUse, cancel),
            _ => cancels!(stage, PermissionRequest, cancel),
        }
        let mut agent = stage.config(TOUCH).build(stage.engine.clone()).unwrap();
        let report = agent.prompt("go", &cancel).await;
        assert_eq!(report.end, RunEnd::Cancelled, "{gate}");
        assert_eq!(
            stage.field("tool_approval_decision", "decision"),
            ["cancelled"],
            "{gate}"
        );
        assert_eq!(
            stage.field("tool_approval_decision", "source"),
            ["context_cancelled"],
            "{gate}"
        );
        assert!(!stage.names().contains(&"permission_denied".to_owned()));
        assert_eq!(tool_texts(&agent), ["The tool call was cancelled."]);
        assert!(!stage.path().join("made").exists(), "{gate}");
    }
}

#[tokio::test]
async fn only_what_a_user_says_is_a_prompt_that_was_submitted() {
    // D-111
    let stage = Stage::empty();
    let script = r"
turns:
  - tool_calls: [{name: transfer_task, arguments: {agent: helper, task: look}}]
  - {for: helper, text: seen}
  - text: done
";
    let helper = AgentSpec {
        name: "helper".to_owned(),
        ..AgentSpec::default()
    };
    stage
        .play_with(script, |config| AgentConfig {
            agents: vec![helper],
            permissions: yes(),
            ..config
        })
        .await;
    assert_eq!(stage.only::<UserPromptSubmit>().prompt, "go");
}

#[tokio::test]
async fn each_model_call_of_a_run_has_the_next_number_and_is_told_of_once() {
    // D-113, D-114
    let stage = Stage::empty();
    let script = r"
name: tiny
turns:
  - {tool_calls: [{name: list_directory}], usage: {input_tokens: 3, output_tokens: 2}}
  - {text: done, usage: {input_tokens: 5, output_tokens: 1}}
";
    let (_, report) = stage.play(script).await;
    assert_eq!(report.end, RunEnd::Completed);
    let numbers: Vec<u32> = stage
        .all::<BeforeLlmCall>()
        .iter()
        .map(|call| call.iteration)
        .collect();
    assert_eq!(numbers, [1, 2]);
    let after = stage.all::<AfterLlmCall>();
    let tokens: Vec<_> = after
        .iter()
        .map(|call| {
            let usage = call.usage.unwrap();
            (usage.input_tokens, usage.output_tokens)
        })
        .collect();
    assert_eq!(tokens, [(3, 2), (5, 1)]);
    assert!(after.iter().all(|call| call.cost.is_none()));
    assert!(after.iter().all(|call| call.model_id.ends_with("/tiny")));
    assert_eq!(stage.field("turn_end", "reason"), ["continue", "normal"]);
}

#[tokio::test]
async fn a_result_that_no_hook_changes_arrives_as_it_is() {
    // D-105
    let stage = Stage::empty();
    stage
        .engine
        .on(|_: &ToolResponseTransform| Effect::<ToolResponseTransform>::none());
    let script = "turns: [{tool_calls: [{name: shell, arguments: {cmd: echo raw}}]}, {text: done}]";
    let (agent, _) = stage
        .play_with(script, |config| AgentConfig {
            permissions: yes(),
            ..config
        })
        .await;
    assert_eq!(tool_texts(&agent), ["raw\n"]);
}
