//! Several models: which one is selected, how much it thinks, and what the session keeps of that.

use std::sync::Arc;

use serde_json::{Value, json};
use tenterhook_agent::sessions::entry_kind::{MODEL_CHANGE, THINKING_LEVEL_CHANGE};
use tenterhook_agent::{
    Agent, AgentConfig, CancellationToken, Models, SessionStore, ThinkingLevel,
};
use tenterhook_engine::event::{BeforeLlmCall, ModelSelect, SessionEndReason, ThinkingLevelSelect};
use tenterhook_engine::journal::{JournalRecord, ModelCallRecord};
use tenterhook_engine::{Engine, MemoryJournal};
use tenterhook_providers::{Provider, Scripted};

use crate::remote::{finish, open, say};
use crate::stage::Stage;

fn model(name: &str) -> Arc<dyn Provider> {
    let script = format!("name: {name}\nturns: [{{text: I am {name}, repeat: true}}]");
    Arc::new(Scripted::parse("play", &script).unwrap())
}

fn config(stage: &Stage, others: &[&str]) -> AgentConfig {
    let others = others.iter().map(|name| ((*name).to_owned(), model(name)));
    AgentConfig {
        model: Some(model("one")),
        model_name: Some("one".to_owned()),
        models: Models::fixed(others),
        cwd: stage.path().into(),
        frontend: Arc::clone(&stage.human) as _,
        ..AgentConfig::default()
    }
}

fn stored(stage: &Stage, others: &[&str]) -> AgentConfig {
    let sessions = SessionStore::of_project(&stage.path().join("data"), stage.path());
    AgentConfig {
        sessions: Some(sessions),
        ..config(stage, others)
    }
}

async fn ask(agent: &mut Agent) -> String {
    agent.prompt("go", &CancellationToken::new()).await.response
}

fn selections(stage: &Stage) -> Vec<Value> {
    let heard = stage.heard().into_iter();
    heard
        .filter(|event| event.name.ends_with("_select"))
        .map(|event| event.payload)
        .collect()
}

fn selected(model: &str, previous: &str, source: &str) -> Value {
    json!({
        "model": format!("scripted/{model}"),
        "previous_model": format!("scripted/{previous}"),
        "source": source,
    })
}

#[tokio::test]
async fn another_model_answers_from_the_next_turn_on() {
    let stage = Stage::empty();
    let mut agent = config(&stage, &["two"])
        .build(stage.engine.clone())
        .unwrap();
    assert_eq!(ask(&mut agent).await, "I am one");
    assert!(agent.set_model("two").await.unwrap());
    assert_eq!(agent.model().to_string(), "scripted/two");
    assert_eq!(ask(&mut agent).await, "I am two");
    assert_eq!(selections(&stage), [selected("two", "one", "set")]);
    let asked: Vec<String> = stage
        .all::<BeforeLlmCall>()
        .into_iter()
        .map(|event| event.model_id)
        .collect();
    assert_eq!(asked, ["scripted/one", "scripted/two"]);
    let entries = agent.session().entries().iter();
    let notes: Vec<_> = entries
        .filter(|entry| entry.kind == MODEL_CHANGE)
        .map(|entry| entry.data.clone().unwrap())
        .collect();
    assert_eq!(notes, [json!({"model": "scripted/two", "name": "two"})]);
}

// P37: a selection that does not change fires no event.
#[tokio::test]
async fn the_same_model_and_the_same_level_are_no_event() {
    let stage = Stage::empty();
    let mut agent = config(&stage, &[]).build(stage.engine.clone()).unwrap();
    assert!(!agent.set_model("one").await.unwrap());
    assert!(agent.set_thinking(ThinkingLevel::High).await);
    assert!(!agent.set_thinking(ThinkingLevel::High).await);
    assert!(stage.all::<ModelSelect>().is_empty());
    let select = stage.only::<ThinkingLevelSelect>();
    assert_eq!((&*select.level, select.previous_level), ("high", None));
    assert_eq!(agent.session().entries().len(), 1);
    assert_eq!(agent.session().entries()[0].kind, THINKING_LEVEL_CHANGE);
}

#[tokio::test]
async fn the_listed_models_follow_each_other_in_a_ring() {
    let stage = Stage::empty();
    let mut agent = config(&stage, &["two", "three"])
        .build(stage.engine.clone())
        .unwrap();
    assert_eq!(agent.models(), ["one", "two", "three"]);
    for _ in 0..3 {
        assert!(agent.next_model().await.unwrap());
    }
    let expected = [
        selected("two", "one", "cycle"),
        selected("three", "two", "cycle"),
        selected("one", "three", "cycle"),
    ];
    assert_eq!(selections(&stage), expected);
}

#[tokio::test]
async fn a_choice_that_there_is_not_leaves_everything_as_it_was() {
    let stage = Stage::empty();
    let mut agent = config(&stage, &[]).build(stage.engine.clone()).unwrap();
    let error = agent.set_model("nine").await.unwrap_err().to_string();
    assert_eq!(error, "unknown model `nine`, expected `one`");
    let error = agent.next_model().await.unwrap_err().to_string();
    assert_eq!(
        error,
        "there is no other model: `one` is the only one in the list"
    );
    assert_eq!(agent.model().to_string(), "scripted/one");
    assert!(selections(&stage).is_empty() && agent.session().entries().is_empty());
}

#[tokio::test]
async fn a_session_goes_on_with_the_model_and_the_level_that_it_was_led_with() {
    let stage = Stage::empty();
    let mut agent = stored(&stage, &["two"])
        .build(stage.engine.clone())
        .unwrap();
    agent.set_model("two").await.unwrap();
    agent.set_thinking(ThinkingLevel::Low).await;
    ask(&mut agent).await;
    let id = agent.session().id().clone();
    agent.end_session(SessionEndReason::Quit).await;

    let before = selections(&stage).len();
    let mut agent = stored(&stage, &["two"])
        .build(stage.engine.clone())
        .unwrap();
    agent.resume(&id, &CancellationToken::new()).await.unwrap();
    let level = json!({"level": "low"});
    let restored = selections(&stage).split_off(before);
    assert_eq!(restored, [selected("two", "one", "restore"), level]);
    let names = stage.names();
    let at = |name: &str| names.iter().rposition(|other| other == name).unwrap();
    assert!(at("session_start") < at("model_select"));
    assert_eq!(ask(&mut agent).await, "I am two");
    let notes = agent.session().entries().iter();
    let notes = notes.filter(|entry| entry.kind.ends_with("_change"));
    assert_eq!(notes.count(), 2, "what is restored is noted already");
}

#[tokio::test]
async fn a_builder_may_keep_its_model_and_the_session_learns_of_it() {
    let stage = Stage::empty();
    let folder = SessionStore::of_project(&stage.path().join("data"), stage.path());
    let mut agent = stored(&stage, &["two"])
        .build(stage.engine.clone())
        .unwrap();
    agent.set_model("two").await.unwrap();
    ask(&mut agent).await;
    let id = agent.session().id().clone();
    agent.end_session(SessionEndReason::Quit).await;
    let opened = folder.open(&id).unwrap().session;
    assert_eq!(opened.model().as_deref(), Some("two"));
    let mut agent = AgentConfig {
        session: Some(opened),
        keeps_model: true,
        ..stored(&stage, &["two"])
    }
    .build(stage.engine.clone())
    .unwrap();
    assert_eq!(ask(&mut agent).await, "I am one");
    assert_eq!(agent.session().model().as_deref(), Some("one"));
}

#[tokio::test]
async fn a_model_that_is_gone_is_named_and_the_session_goes_on() {
    let stage = Stage::empty();
    let mut agent = stored(&stage, &["two"])
        .build(stage.engine.clone())
        .unwrap();
    agent.set_model("two").await.unwrap();
    ask(&mut agent).await;
    let id = agent.session().id().clone();
    agent.end_session(SessionEndReason::Quit).await;
    let mut agent = stored(&stage, &[]).build(stage.engine.clone()).unwrap();
    agent.resume(&id, &CancellationToken::new()).await.unwrap();
    let expected = "warning the session continues with `scripted/one` instead of `scripted/two`: unknown model `two`, expected `one`";
    assert!(stage.human.screen().contains(&expected.to_owned()));
    assert_eq!(ask(&mut agent).await, "I am one");
}

#[tokio::test]
async fn a_choice_goes_along_into_a_new_session_and_is_noted_there() {
    let stage = Stage::empty();
    let mut agent = config(&stage, &["two"])
        .build(stage.engine.clone())
        .unwrap();
    agent.set_model("two").await.unwrap();
    agent.new_session(&CancellationToken::new()).await.unwrap();
    assert_eq!(ask(&mut agent).await, "I am two");
    assert_eq!(agent.session().model().as_deref(), Some("two"));
    assert_eq!(selections(&stage).len(), 1);
}

#[tokio::test]
async fn services_are_told_the_level_and_nothing_where_there_is_none() {
    for (model, level, path, expected) in [
        ("openai:gpt-5", None, "/reasoning_effort", Value::Null),
        (
            "openai:gpt-5",
            Some("off"),
            "/reasoning_effort",
            json!("none"),
        ),
        (
            "openai:gpt-5",
            Some("xhigh"),
            "/reasoning_effort",
            json!("xhigh"),
        ),
        ("ollama:m", Some("off"), "/think", json!(false)),
        ("ollama:m", Some("minimal"), "/think", json!("low")),
        ("ollama:m", None, "/think", Value::Null),
    ] {
        let stage = Stage::empty();
        let (service, mut agent) = open(&stage, model, [finish(say(&["hi"]), "stop")]).await;
        if let Some(level) = level {
            agent.set_thinking(level.parse().unwrap()).await;
        }
        ask(&mut agent).await;
        let body = &service.bodies()[0];
        let found = body.pointer(path).cloned().unwrap_or_default();
        assert_eq!(found, expected, "{model} {level:?}: {body}");
    }
}

// D-114: a call without a known price has no cost, and a free call costs 0.
#[tokio::test]
async fn a_cost_is_told_where_the_price_is_known() {
    const TURNS: &str = "turns: [{text: hi, usage: {input_tokens: 1000, output_tokens: 500}}]";
    for (price, usage, expected) in [
        ("price: {input: 2, output: 4}", TURNS, json!(0.004)),
        ("price: {input: 0, output: 0}", TURNS, json!(0.0)),
        ("name: play", TURNS, Value::Null),
        (
            "price: {input: 2, output: 4}",
            "turns: [{text: hi}]",
            Value::Null,
        ),
        (
            "price: {input: 2, output: 4, up_to: 999}",
            TURNS,
            Value::Null,
        ),
    ] {
        let stage = Stage::empty();
        let (_, report) = stage.play(&format!("{price}\n{usage}")).await;
        assert_eq!(json!(report.cost), expected, "{price}");
        let told = stage.heard().into_iter();
        let told = told.filter(|event| event.name == "after_llm_call");
        let costs: Vec<Option<Value>> = told
            .map(|event| event.payload.get("cost").cloned())
            .collect();
        assert_eq!(costs, [Some(expected).filter(|cost| !cost.is_null())]);
    }
}

#[tokio::test]
async fn the_journal_has_the_tokens_and_the_cost_of_each_model_call_of_a_session() {
    let journal = Arc::new(MemoryJournal::new());
    let engine = Engine::builder().journal(journal.clone()).build();
    let script = "price: {input: 2, output: 4}\n\
        turns: [{text: hi, usage: {input_tokens: 1000, output_tokens: 500}}]";
    let config = Stage::silent().config(script);
    let mut agent = config.build(engine).unwrap();
    agent.prompt("go", &CancellationToken::new()).await;
    // The script has no more turns, so this call fails.
    agent.prompt("again", &CancellationToken::new()).await;
    let calls: Vec<ModelCallRecord> = journal
        .take()
        .into_iter()
        .map(|record| {
            let JournalRecord::ModelCall(call) = record else {
                panic!("{record:?}");
            };
            call
        })
        .collect();
    let [answered, failed] = &calls[..] else {
        panic!("{calls:?}")
    };
    assert_eq!(answered.cost, Some(0.004));
    assert_eq!(answered.usage.unwrap().input_tokens, 1000);
    assert_eq!(answered.session_id.as_ref(), Some(agent.session().id()));
    assert_eq!(answered.agent.as_deref(), Some("root"));
    assert!(failed.error.is_some() && failed.usage.is_none());
}

#[test]
fn levels_are_read_as_they_are_written() {
    for level in ThinkingLevel::ALL {
        assert_eq!(level.as_str().parse(), Ok(level));
    }
    let error = "much".parse::<ThinkingLevel>().unwrap_err().to_string();
    assert!(error.contains("`much`") && error.contains("xhigh"));
}
