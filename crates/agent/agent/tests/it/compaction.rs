//! Compaction: when it happens, who may stop it, and what remains.

use tenterhook_agent::{AgentConfig, AgentLimits, CancellationToken, CompactionError, RunEnd};
use tenterhook_engine::Effect;
use tenterhook_engine::event::{
    AfterCompaction, BeforeCompaction, BeforeLlmCall, CompactionFailed, CompactionReason, Context,
    PreCompact,
};

use crate::stage::Stage;

const FILLING: &str = r"
context_window: 1000
turns:
  - {text: long answer, usage: {input_tokens: 800, output_tokens: 100}}
  - {text: next, usage: {input_tokens: 50, output_tokens: 10}}
  - {summary: they talked}
";

const TALK: &str = "turns: [{text: hello}, {summary: they said hello}]";

fn texts(agent: &tenterhook_agent::Agent) -> Vec<String> {
    agent
        .session()
        .messages()
        .into_iter()
        .map(|message| message.content)
        .collect()
}

async fn two_prompts(stage: &Stage, script: &str) -> tenterhook_agent::Agent {
    let mut agent = stage.config(script).build(stage.engine.clone()).unwrap();
    for prompt in ["one", "two"] {
        assert_eq!(
            agent.prompt(prompt, &CancellationToken::new()).await.end,
            RunEnd::Completed
        );
    }
    agent
}

fn compaction_events(stage: &Stage) -> Vec<String> {
    stage
        .names()
        .into_iter()
        .filter(|name| name.contains("compact"))
        .collect()
}

#[tokio::test]
async fn a_context_that_is_nearly_full_is_summarised_before_the_next_call() {
    let stage = Stage::empty();
    stage
        .engine
        .on(|_: &PreCompact| Effect::none().context("keep file names"));
    let agent = two_prompts(&stage, FILLING).await;
    assert_eq!(
        compaction_events(&stage),
        [
            "pre_compact",
            "before_compaction",
            "compaction_start",
            "after_compaction"
        ]
    );
    let summary = "The conversation so far was replaced by this summary of it:\n\nthey talked";
    assert_eq!(texts(&agent), [summary, "two", "next"]);
    let before = stage.only::<BeforeCompaction>();
    assert_eq!(
        (
            before.input_tokens,
            before.output_tokens,
            before.context_limit
        ),
        (800, 100, Some(1000))
    );
    assert_eq!(before.reason, CompactionReason::Threshold);
    assert_eq!(before.preparation.messages_to_summarize.len(), 2);
    let after = stage.only::<AfterCompaction>();
    assert_eq!(
        (after.input_tokens, after.output_tokens, after.from_hook),
        (800, 100, false)
    );
    assert_eq!(
        (after.summary.as_str(), stage.field("pre_compact", "source")),
        ("they talked", vec!["auto".to_owned()])
    );
    let asked = stage.all::<BeforeLlmCall>().into_iter().find(|call| {
        call.messages.len() == 2 && call.messages[1].content.contains("<conversation>")
    });
    assert!(
        asked.unwrap().messages[1]
            .content
            .ends_with("\n\nkeep file names")
    );
}

#[tokio::test]
async fn a_hook_may_supply_the_summary_and_no_model_is_asked() {
    // D-115
    let stage = Stage::empty();
    stage
        .engine
        .on(|_: &BeforeCompaction| Effect::<BeforeCompaction>::supply(&"by hand".to_owned()));
    let script = FILLING.replace("  - {summary: they talked}\n", "");
    let agent = two_prompts(&stage, &script).await;
    assert!(texts(&agent)[0].ends_with("\n\nby hand"));
    let after = stage.only::<AfterCompaction>();
    assert!(after.from_hook);
    assert_eq!(after.compaction_entry.unwrap().kind, "compaction");
}

#[tokio::test]
async fn either_hook_may_stop_a_compaction_and_the_run_goes_on() {
    // D-115
    let stage = Stage::empty();
    stage
        .engine
        .on(|_: &PreCompact| Effect::<PreCompact>::block("not yet"));
    let agent = two_prompts(&stage, FILLING).await;
    assert_eq!(compaction_events(&stage), ["pre_compact"]);
    assert_eq!(texts(&agent), ["one", "long answer", "two", "next"]);
    assert!(
        stage
            .human
            .screen()
            .contains(&"warning a pre_compact hook blocked the compaction: not yet".to_owned())
    );

    let stage = Stage::empty();
    stage
        .engine
        .on(|_: &BeforeCompaction| Effect::<BeforeCompaction>::block("silently"));
    two_prompts(&stage, FILLING).await;
    assert_eq!(
        compaction_events(&stage),
        ["pre_compact", "before_compaction"]
    );
    assert!(
        !stage
            .human
            .screen()
            .iter()
            .any(|line| line.contains("silently"))
    );
}

#[tokio::test]
async fn tool_results_that_fill_the_context_are_named_as_the_cause() {
    let stage = Stage::empty();
    let script = r"
turns:
  - tool_calls: [{name: list_directory}]
  - text: done
  - summary: listed
";
    let limits = AgentLimits {
        compact_at: Some(5),
        ..AgentLimits::default()
    };
    let (agent, report) = stage
        .play_with(script, |config| AgentConfig { limits, ..config })
        .await;
    assert_eq!(report.end, RunEnd::Completed);
    assert_eq!(stage.field("pre_compact", "source"), ["tool_overflow"]);
    assert!(texts(&agent)[0].ends_with("\n\nlisted"));
}

#[tokio::test]
async fn an_overflow_is_compacted_once_and_the_turn_tried_again() {
    let stage = Stage::empty();
    let script =
        "turns: [{text: hi}, {error: prompt is too long}, {text: better}, {summary: short}]";
    let agent = two_prompts(&stage, script).await;
    assert_eq!(
        stage.field("turn_end", "reason"),
        ["normal", "error", "normal"]
    );
    assert_eq!(stage.field("pre_compact", "source"), ["overflow"]);
    assert_eq!(
        stage.only::<AfterCompaction>().reason,
        CompactionReason::Overflow
    );
    assert!(!stage.names().contains(&"agent_error".to_owned()));
    assert_eq!(texts(&agent)[1..], ["two", "better"]);

    let stage = Stage::empty();
    let script = "turns: [{text: hi}, {error: prompt is too long, repeat: true}, {summary: short}]";
    let mut agent = stage.config(script).build(stage.engine.clone()).unwrap();
    agent.prompt("one", &CancellationToken::new()).await;
    let report = agent.prompt("two", &CancellationToken::new()).await;
    assert_eq!(
        report.end,
        RunEnd::Error {
            message: "prompt is too long".to_owned()
        }
    );
    assert_eq!(
        stage.field("turn_end", "reason"),
        ["normal", "error", "error"]
    );
    assert_eq!(stage.all::<AfterCompaction>().len(), 1);
}

#[tokio::test]
async fn the_user_may_compact_with_instructions() {
    let stage = Stage::empty();
    let (mut agent, _) = stage.play(TALK).await;
    let compacted = agent
        .compact(Some("be short".to_owned()), &CancellationToken::new())
        .await
        .unwrap();
    assert_eq!(compacted.summary, "they said hello");
    let before = stage.only::<BeforeCompaction>();
    assert_eq!(
        (before.reason, before.custom_instructions.as_deref()),
        (CompactionReason::Manual, Some("be short"))
    );
    assert_eq!(stage.field("pre_compact", "source"), ["manual"]);
    assert_eq!(texts(&agent).len(), 1);
}

#[tokio::test]
async fn a_compaction_that_fails_leaves_the_conversation() {
    let stage = Stage::empty();
    let mut agent = stage
        .config("turns: [{text: hello}]")
        .build(stage.engine.clone())
        .unwrap();
    let cancel = CancellationToken::new();
    assert_eq!(
        agent.compact(None, &cancel).await.unwrap_err(),
        CompactionError::Nothing
    );
    agent.prompt("go", &cancel).await;
    let error = agent.compact(None, &cancel).await.unwrap_err();
    assert_eq!(error.to_string(), "the summary could not be made");
    assert!(
        stage
            .only::<CompactionFailed>()
            .error
            .contains("no turn left for summaries")
    );
    assert_eq!(texts(&agent), ["go", "hello"]);
}

#[tokio::test]
async fn what_keeps_text_from_the_model_keeps_it_from_the_summary_too() {
    let stage = Stage::empty();
    stage.engine.on(|event: &BeforeLlmCall| {
        let mut messages = event.messages.clone().into_vec();
        for message in &mut messages {
            message.content = message.content.replace("canary", "***");
        }
        Effect::<BeforeLlmCall>::none().replace_messages(messages)
    });
    let mut agent = stage.config(TALK).build(stage.engine.clone()).unwrap();
    let cancel = CancellationToken::new();
    agent.prompt("my canary", &cancel).await;
    agent.compact(None, &cancel).await.unwrap();
    let sent = stage.all::<BeforeLlmCall>();
    assert!(sent[1].messages[1].content.contains("[user] my ***"));
}

#[tokio::test]
async fn what_a_context_hook_keeps_from_the_model_is_not_in_the_summary_either() {
    let stage = Stage::empty();
    stage.engine.on(|event: &Context| {
        let mut messages = event.messages.clone().into_vec();
        for message in &mut messages {
            message.content = message.content.replace("canary", "***");
        }
        Effect::<Context>::none().replace_messages(messages)
    });
    let mut agent = stage.config(TALK).build(stage.engine.clone()).unwrap();
    let cancel = CancellationToken::new();
    agent.prompt("my canary", &cancel).await;
    agent.compact(None, &cancel).await.unwrap();
    let sent = stage.all::<BeforeLlmCall>();
    let quoted = &sent.last().unwrap().messages[1].content;
    assert!(quoted.contains("[user] my ***"), "{quoted}");
}

#[tokio::test]
async fn a_compaction_that_did_not_come_about_waits_until_the_context_grew() {
    let stage = Stage::empty();
    stage
        .engine
        .on(|_: &PreCompact| Effect::<PreCompact>::block("not yet"));
    let script = r"
context_window: 1000
turns:
  - {text: a, usage: {input_tokens: 900, output_tokens: 10}}
  - {text: b, usage: {input_tokens: 915, output_tokens: 10}}
  - {text: c, usage: {input_tokens: 960, output_tokens: 10}}
  - {text: d, usage: {input_tokens: 1010, output_tokens: 10}}
  - {text: e, usage: {input_tokens: 1020, output_tokens: 10}}
";
    let mut agent = stage.config(script).build(stage.engine.clone()).unwrap();
    let mut asked = Vec::new();
    for prompt in ["1", "2", "3", "4", "5"] {
        agent.prompt(prompt, &CancellationToken::new()).await;
        asked.push(stage.all::<PreCompact>().len());
    }
    assert_eq!(asked, [0, 1, 1, 1, 2]);
}

#[tokio::test]
async fn a_failed_compaction_is_not_tried_again_before_each_call() {
    let stage = Stage::empty();
    let script = r"
context_window: 1000
turns:
  - {tool_calls: [{name: list_directory}], usage: {input_tokens: 900, output_tokens: 10}}
  - {tool_calls: [{name: list_directory, arguments: {path: .}}], usage: {input_tokens: 920, output_tokens: 10}}
  - {text: done, usage: {input_tokens: 930, output_tokens: 10}}
";
    stage.play(script).await;
    assert_eq!(stage.all::<CompactionFailed>().len(), 1);
}

#[tokio::test]
async fn a_cancellation_during_an_overflow_compaction_is_no_error() {
    let stage = Stage::empty();
    let cancel = CancellationToken::new();
    let token = cancel.clone();
    stage.engine.on(move |_: &PreCompact| {
        token.cancel();
        Effect::none()
    });
    let script = "turns: [{text: hi}, {error: prompt is too long}, {summary: short}]";
    let mut agent = stage.config(script).build(stage.engine.clone()).unwrap();
    agent.prompt("one", &CancellationToken::new()).await;
    let report = agent.prompt("two", &cancel).await;
    assert_eq!(report.end, RunEnd::Cancelled);
    assert_eq!(stage.field("turn_end", "reason"), ["normal", "cancelled"]);
    assert!(!stage.names().contains(&"agent_error".to_owned()));
}

#[tokio::test]
async fn every_model_call_is_numbered_from_one() {
    let stage = Stage::empty();
    let mut agent = stage.config(TALK).build(stage.engine.clone()).unwrap();
    agent.prompt("one", &CancellationToken::new()).await;
    let session = agent.session().clone();
    let mut resumed = AgentConfig {
        session: Some(session),
        ..stage.config(TALK)
    }
    .build(stage.engine.clone())
    .unwrap();
    resumed
        .compact(None, &CancellationToken::new())
        .await
        .unwrap();
    let numbers: Vec<u32> = stage
        .all::<BeforeLlmCall>()
        .into_iter()
        .map(|call| call.iteration)
        .collect();
    assert_eq!(numbers, [1, 1]);
}

#[tokio::test]
async fn a_hook_that_ends_the_run_at_the_summarys_model_call_keeps_the_conversation() {
    let stage = Stage::empty();
    let (mut agent, _) = stage.play(TALK).await;
    stage
        .engine
        .on(|_: &BeforeLlmCall| Effect::<BeforeLlmCall>::none().stop_run("enough"));
    let error = agent
        .compact(None, &CancellationToken::new())
        .await
        .unwrap_err();
    assert_eq!(
        error,
        CompactionError::Blocked {
            event: "before_llm_call",
            reason: "enough".to_owned()
        }
    );
    assert_eq!(texts(&agent), ["go", "hello"]);
}
