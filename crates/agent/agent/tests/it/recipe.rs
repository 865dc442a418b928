//! Recipe handlers in a conversation, and further requirements of kodelet's document for a host.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::ready;
use tenterhook_agent::{AgentConfig, CancellationToken, ContextSwaps, RunEnd};
use tenterhook_engine::event::{
    BeforeLlmCall, PostToolUse, PreToolUse, Stop, TurnEnd, UserPromptSubmit,
};
use tenterhook_engine::{Effect, EventKind, HookSpec, InvokedBy};
use tenterhook_runners::recipe::{
    ContextSwapper, Handled, RecipeHandler, RecipeHook, SwapContext, Thread,
};

use crate::stage::Stage;

/// Registers a recipe's handler like a recipe does: after all other hooks.
fn register(
    stage: &Stage,
    handler: impl RecipeHandler + 'static,
    swaps: Option<&Arc<ContextSwaps>>,
    once: bool,
) {
    let events = handler.events().to_vec();
    let swapper = swaps.map(|swaps| Arc::clone(swaps) as Arc<dyn ContextSwapper>);
    let hook = Arc::new(RecipeHook::new(Arc::new(handler), swapper, once));
    for kind in events {
        stage.engine.register(HookSpec {
            priority: i32::MIN,
            ..HookSpec::new(kind, "recipe", Arc::clone(&hook) as _)
        });
    }
}

/// Returns the messages of each model call, as role and text, without the system prompt.
fn sent(stage: &Stage) -> Vec<Vec<String>> {
    let calls = stage.all::<BeforeLlmCall>().into_iter();
    calls
        .map(|call| {
            let messages = call.messages.into_iter().skip(1);
            messages
                .map(|message| format!("{}: {}", message.role.as_str(), message.content))
                .collect()
        })
        .collect()
}

// K-H3: a handler with `once` runs only once, however often a turn ends.
#[tokio::test]
async fn a_swapped_context_is_all_that_the_model_gets_and_once_is_once() {
    let stage = Stage::empty();
    let swaps = Arc::new(ContextSwaps::default());
    register(&stage, SwapContext, Some(&swaps), true);
    let mut agent = AgentConfig {
        context_swaps: Some(Arc::clone(&swaps)),
        recipe: Some("compact".to_owned()),
        ..stage.config("turns: [{text: a summary}, {text: two}, {text: three}]")
    }
    .build(stage.engine.clone())
    .unwrap();
    for prompt in ["one", "more", "and more"] {
        agent.prompt(prompt, &CancellationToken::new()).await;
    }
    let sent = sent(&stage);
    assert_eq!(sent[0], ["user: one"]);
    assert_eq!(sent[1], ["user: a summary", "user: more"]);
    let third = [
        "user: a summary",
        "user: more",
        "assistant: two",
        "user: and more",
    ];
    assert_eq!(sent[2], third);
    assert!(agent.context_tokens() < 100);
}

// K-H4: a turn without text does not count for a recipe, and does not use up `once`.
#[tokio::test]
async fn a_turn_of_tools_alone_does_not_use_up_once() {
    let stage = Stage::empty();
    let swaps = Arc::new(ContextSwaps::default());
    register(&stage, SwapContext, Some(&swaps), true);
    let script = "turns: [{tool_calls: [{name: list_directory, arguments: {path: .}}]}, {text: done}, {text: two}]";
    let mut agent = AgentConfig {
        context_swaps: Some(swaps),
        ..stage.config(script)
    }
    .build(stage.engine.clone())
    .unwrap();
    for prompt in ["one", "more"] {
        agent.prompt(prompt, &CancellationToken::new()).await;
    }
    let sent = sent(&stage);
    assert_eq!(sent[1].len(), 3, "{sent:?}");
    assert_eq!(sent[2], ["user: done", "user: more"]);
}

// K-H6, K-H7: a handler that fails is reported, and the run continues.
#[tokio::test]
async fn a_thread_that_cannot_swap_says_so_and_goes_on() {
    let stage = Stage::empty();
    register(&stage, SwapContext, None, false);
    let (agent, report) = stage.play("turns: [{text: done}]").await;
    assert_eq!(report.end, RunEnd::Completed);
    let screen = stage.human.screen().join("\n");
    assert!(
        screen.contains("thread does not support context swapping"),
        "{screen}"
    );
    assert_eq!(agent.session().messages().len(), 2);
    // The context of a session without an agent cannot be swapped.
    let error = ContextSwaps::default()
        .swap_context(&"s".into(), "x")
        .unwrap_err();
    assert_eq!(error, "thread does not support context swapping");
}

/// A handler that records its input before a tool runs.
#[derive(Debug)]
struct Looks;

impl RecipeHandler for Looks {
    fn name(&self) -> &'static str {
        "looks"
    }

    fn events(&self) -> &[EventKind] {
        &[EventKind::PreToolUse]
    }

    fn pre_tool_use<'a>(
        &'a self,
        thread: Thread<'a>,
        event: &'a PreToolUse,
    ) -> Handled<'a, PreToolUse> {
        assert!(!thread.session().as_str().is_empty());
        let seen = event.tool_input["path"].to_string();
        ready(Ok(Effect::none().context(seen))).boxed()
    }
}

const CALL: &str =
    "turns: [{tool_calls: [{name: list_directory, arguments: {path: a}}]}, {text: done}]";

// K-H9, K-H10: a handler sees the input after changes by earlier hooks, and does not see calls that they block.
#[tokio::test]
async fn a_handler_of_a_recipe_runs_behind_the_hooks() {
    let stage = Stage::empty();
    register(&stage, Looks, None, false);
    stage.engine.on(|_: &PreToolUse| {
        let input = serde_json::json!({"path": "."});
        Effect::none().replace_input(input.as_object().cloned().unwrap_or_default())
    });
    let (agent, _) = stage.play(CALL).await;
    let texts = format!("{:?}", agent.session().messages());
    assert!(texts.contains(r#"\".\""#), "{texts}");
    let stage = Stage::empty();
    register(&stage, Looks, None, false);
    stage
        .engine
        .on(|_: &PreToolUse| Effect::<PreToolUse>::deny("no"));
    let (agent, _) = stage.play(CALL).await;
    let contexts = agent.session().messages().into_iter();
    assert!(
        contexts
            .into_iter()
            .all(|message| message.content != "\"a\"")
    );
}

// K-H16: observers receive blocked calls too.
#[tokio::test]
async fn a_blocked_call_is_heard_of_afterwards() {
    let stage = Stage::empty();
    stage
        .engine
        .on(|_: &PreToolUse| Effect::<PreToolUse>::deny("no"));
    stage.play(CALL).await;
    let used = stage.only::<PostToolUse>();
    assert!(used.blocked && used.result.joined_text().ends_with("Reason: no"));
}

// K-H17: a blocked message is not stored.
#[tokio::test]
async fn a_blocked_message_is_not_stored() {
    let stage = Stage::empty();
    stage
        .engine
        .on(|_: &UserPromptSubmit| Effect::<UserPromptSubmit>::block("r"));
    let (agent, report) = stage.play("turns: [{text: never}]").await;
    assert!(matches!(report.end, RunEnd::HookBlocked { .. }));
    assert!(agent.session().messages().is_empty());
    let screen = stage.human.screen().join("\n");
    assert!(screen.contains("message blocked by hook: r"), "{screen}");
}

// K-H18, K-H19: follow-ups are bounded, and they are not judged again as messages of the user.
#[tokio::test]
async fn follow_ups_are_bounded_and_not_judged_as_messages_of_the_user() {
    let stage = Stage::empty();
    stage.engine.on(|_: &Stop| Effect::none().follow_up("more"));
    let turns: Vec<String> = (0..20)
        .map(|number| format!("{{text: turn {number}}}"))
        .collect();
    let (_, report) = stage.play(&format!("turns: [{}]", turns.join(", "))).await;
    assert_eq!((report.end, report.turns), (RunEnd::Completed, 9));
    stage.only::<UserPromptSubmit>();
}

// K-P13: turns are counted for each message of the user, and also for the session.
#[tokio::test]
async fn turns_are_counted_within_a_message() {
    let stage = Stage::empty();
    let script = "turns: [{tool_calls: [{name: list_directory, arguments: {path: .}}]}, {text: one}, {text: two}]";
    let mut agent = stage.config(script).build(stage.engine.clone()).unwrap();
    for prompt in ["one", "two"] {
        agent.prompt(prompt, &CancellationToken::new()).await;
    }
    let turns: Vec<_> = stage
        .all::<TurnEnd>()
        .iter()
        .map(|turn| (turn.turn_index, turn.turn_number))
        .collect();
    assert_eq!(turns, [(0, 1), (1, 2), (0, 3)]);
}

// K-H12: a subagent's calls pass the same hooks and name the subagent. A recipe's observers ignore them.
#[tokio::test]
async fn a_subagent_says_so_and_keeps_its_conversation() {
    let stage = Stage::empty();
    let swaps = Arc::new(ContextSwaps::default());
    register(&stage, SwapContext, Some(&swaps), false);
    let origins = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = Arc::clone(&origins);
    stage.engine.subscribe(move |event| {
        if event.downcast::<TurnEnd>().is_some() {
            let origin = &event.envelope().origin;
            seen.lock()
                .unwrap()
                .push((origin.invoked_by, origin.recipe.clone()));
        }
    });
    let script = "turns: [{tool_calls: [{name: transfer_task, arguments: {agent: helper, task: look}}]}, \
                  {for: helper, text: looked}, {text: done}]";
    stage
        .play_with(script, |config| {
            let helper = tenterhook_agent::AgentSpec {
                name: "helper".to_owned(),
                ..tenterhook_agent::AgentSpec::default()
            };
            AgentConfig {
                agents: vec![helper],
                context_swaps: Some(swaps),
                recipe: Some("compact".to_owned()),
                ..config
            }
        })
        .await;
    let origins = origins.lock().unwrap();
    let invoked: Vec<_> = origins.iter().map(|(by, _)| *by).collect();
    assert_eq!(
        invoked,
        [InvokedBy::Subagent, InvokedBy::Main, InvokedBy::Main]
    );
    assert!(
        origins
            .iter()
            .all(|(_, recipe)| recipe.as_deref() == Some("compact"))
    );
    let screen = stage.human.screen().join("\n");
    assert!(!screen.contains("does not support"), "{screen}");
}
