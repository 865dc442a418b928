//! Model hooks with a scripted client.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _, pending, ready};
use proptest::proptest;
use serde_json::{Value, json};
use tenterhook_engine::{
    Dispatched, Engine, EventName, Handler, HookObserver, HookRun, HookSpec, HookVerdict, Matcher,
    Origin, Permission, Phase, RawExchange, Source,
};
use tenterhook_protocol::parse_event;
use tenterhook_runners::model::{
    ModelClient, ModelDecision, ModelError, ModelHandler, ModelHook, ModelHookError, ModelQuestion,
    PROMPT_LIMIT, REPLY_LIMIT, Shape,
};
use tokio_util::sync::CancellationToken;

use crate::table::{code, rows};
use crate::{names, native};

const PAGE: &str = include_str!("../../../../../docs/reference/hooks.md");

/// Gives prepared replies and remembers the questions. Without a reply left it never answers.
#[derive(Debug, Default)]
pub(crate) struct Client {
    replies: Mutex<VecDeque<Result<String, ModelError>>>,
    questions: Mutex<Vec<ModelQuestion>>,
    asked: CancellationToken,
    dropped: Arc<CancellationToken>,
}

impl Client {
    pub(crate) fn new<'a>(replies: impl IntoIterator<Item = &'a str>) -> Arc<Self> {
        let replies = replies.into_iter().map(|reply| Ok(reply.to_owned()));
        Arc::new(Self {
            replies: Mutex::new(replies.collect()),
            ..Self::default()
        })
    }

    fn questions(&self) -> Vec<ModelQuestion> {
        self.questions.lock().unwrap().clone()
    }
}

impl ModelClient for Client {
    fn ask(&self, question: ModelQuestion) -> BoxFuture<'_, Result<String, ModelError>> {
        self.questions.lock().unwrap().push(question);
        let reply = self.replies.lock().unwrap().pop_front();
        self.asked.cancel();
        if let Some(reply) = reply {
            return ready(reply).boxed();
        }
        let guard = (*self.dropped).clone().drop_guard();
        async move {
            let _guard = guard;
            pending().await
        }
        .boxed()
    }
}

fn hook<'a>(
    prompt: &'a str,
    shape: Shape,
    events: &'a [EventName],
    dialect: &'a Arc<dyn tenterhook_engine::Dialect>,
) -> ModelHook<'a> {
    ModelHook {
        model: "acme/judge",
        prompt,
        shape,
        events,
        dialect,
    }
}

pub(crate) fn make(
    prompt: &str,
    shape: Shape,
    event: &str,
    client: Option<Arc<Client>>,
) -> Result<ModelHandler, ModelHookError> {
    let client = client.map(|client| client as Arc<dyn ModelClient>);
    ModelHandler::new(&hook(prompt, shape, &names(&[event]), &native()), client)
}

/// Makes an engine with one hook.
fn engine(event: &str, handler: ModelHandler, timeout: Duration) -> Engine {
    let engine = Engine::new();
    add(&engine, event, handler, timeout);
    engine
}

fn add(engine: &Engine, event: &str, handler: ModelHandler, timeout: Duration) {
    let name: EventName = event.parse().unwrap();
    let spec = HookSpec {
        id: "judge".into(),
        matcher: Matcher::everything(),
        agent: None,
        includes_unnamed: false,
        handling: Handler::Async(Arc::new(handler)),
        phase: Phase::Main,
        priority: 0,
        order_within_layer: None,
        hears_stops: false,
        timeout,
        policy: tenterhook_engine::native_policy(name.info(), None),
        source: Source::CODE,
        tools: None,
        definition: None,
        event: Some(name),
    };
    std::mem::forget(engine.register(spec));
}

async fn dispatch(engine: &Engine, event: &str, payload: Value) -> Dispatched {
    let event = parse_event(&event.parse().unwrap(), payload).unwrap();
    engine
        .dispatcher(Origin::default())
        .dispatch_any(event)
        .await
}

fn call() -> Value {
    json!({"tool_name": "shell", "tool_use_id": "c1", "tool_input": {"cmd": "rm -rf /"}})
}

/// Asks a judge with that reply whether a call may happen.
async fn judged(reply: &str) -> Dispatched {
    let handler = make(
        "{{ .ToolName }}",
        Shape::Decision,
        "pre_tool_use",
        Some(Client::new([reply])),
    );
    let engine = engine("pre_tool_use", handler.unwrap(), Duration::from_secs(5));
    dispatch(&engine, "pre_tool_use", call()).await
}

/// Keeps the raw answer of the last run.
#[derive(Debug, Default)]
struct RawReply(Mutex<Option<RawExchange>>);

impl HookObserver for RawReply {
    fn hook_ended(&self, run: &HookRun<'_>, _took: Duration, _verdict: HookVerdict<'_>) {
        *self.0.lock().unwrap() = run.exchange.cloned();
    }

    fn requests_details(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn an_observer_sees_a_reply_that_is_not_a_decision() {
    let replies = Arc::new(RawReply::default());
    let client = Some(Client::new(["Certainly! Allow."]));
    let handler = make("{{ .ToolName }}", Shape::Decision, "pre_tool_use", client);
    let engine = Engine::builder().observer(replies.clone()).build();
    add(
        &engine,
        "pre_tool_use",
        handler.unwrap(),
        Duration::from_secs(5),
    );
    let outcome = dispatch(&engine, "pre_tool_use", call()).await.outcome;
    assert_eq!(outcome.failures.len(), 1);
    let raw = replies.0.lock().unwrap().take().unwrap();
    assert_eq!(*raw.stdout, *b"Certainly! Allow.");
    assert!(raw.input_bytes > "shell".len());
}

// D-91, D-92
#[tokio::test]
async fn every_reply_of_the_page_is_read_as_it_says() {
    let rows = rows(PAGE, "| reply | decision |");
    assert!(rows.len() > 20, "{}", rows.len());
    for row in rows {
        let reply = match row[0].strip_prefix("```` ") {
            Some(fenced) => fenced
                .trim_end_matches(" ````")
                .replace("json ", "json\n")
                .replace(" ```", "\n```"),
            None => code(&row[0]).unwrap_or_default().to_owned(),
        };
        let found = ModelDecision::parse(&reply)
            .map(|decision| format!("{}: {}", decision.permission.as_str(), decision.reason));
        let outcome = judged(&reply).await.outcome;
        match row[1].as_str() {
            "failure" => {
                assert!(found.is_err(), "{reply}: {found:?}");
                assert_eq!(outcome.permission, Permission::Deny, "{reply}");
                assert_eq!(outcome.failures.len(), 1, "{reply}");
            }
            expected => {
                assert_eq!(found.unwrap(), expected, "{reply}");
                let notice = format!("🤖 model judge: {}", expected.replacen(": ", " — ", 1));
                assert_eq!(outcome.notices, [notice]);
                assert!(outcome.failures.is_empty(), "{reply}");
            }
        }
    }
}

// D-90
#[tokio::test]
async fn a_decision_is_asked_for_with_a_strict_schema() {
    let client = Client::new([r#"{"decision":"deny","reason":"it deletes"}"#]);
    let prompt = "Judge {{ .ToolInput | toJSON }} in <{{ .ToolInput.path }}>";
    let handler = make(
        prompt,
        Shape::Decision,
        "pre_tool_use",
        Some(Arc::clone(&client)),
    );
    let engine = engine("pre_tool_use", handler.unwrap(), Duration::from_secs(5));
    let outcome = dispatch(&engine, "pre_tool_use", call()).await.outcome;
    assert_eq!(outcome.permission, Permission::Deny);
    assert_eq!(outcome.permission_reason.as_deref(), Some("it deletes"));
    let [question] = &client.questions()[..] else {
        panic!("{client:?}");
    };
    assert_eq!(question.model, "acme/judge");
    assert_eq!(
        question.prompt,
        r#"Judge {"cmd":"rm -rf /"} in <<no value>>"#
    );
    let schema = question.schema.as_ref().unwrap();
    assert_eq!(schema.name, "pre_tool_use_decision");
    assert_eq!(schema.schema["additionalProperties"], json!(false));
    assert_eq!(
        schema.schema["properties"]["decision"]["enum"],
        json!(["allow", "ask", "deny"])
    );
    assert_eq!(schema.schema["required"], json!(["decision", "reason"]));
}

// D-89
#[tokio::test]
async fn without_a_schema_the_reply_is_context() {
    for (reply, context) in [(" Be careful.\n", &["Be careful."][..]), (" \n", &[])] {
        let client = Client::new([reply]);
        let handler = make(
            "Advise on {{ cwd }}",
            Shape::Context,
            "turn_start",
            Some(Arc::clone(&client)),
        );
        let engine = engine("turn_start", handler.unwrap(), Duration::from_secs(5));
        let dispatched = dispatch(&engine, "turn_start", json!({})).await;
        assert_eq!(dispatched.event.event().name(), "turn_start");
        assert_eq!(dispatched.outcome.context, context);
        assert_eq!(client.questions()[0].schema, None);
    }
}

// D-88
#[test]
fn a_hook_that_makes_no_sense_is_refused() {
    for (prompt, shape, event, expected) in [
        (
            "{{ .Nope }}",
            Shape::Decision,
            "pre_tool_use",
            "parse prompt template: unknown field `.Nope`",
        ),
        (
            "{{ if }}",
            Shape::Decision,
            "pre_tool_use",
            "parse prompt template: a value is missing",
        ),
        (
            "x",
            Shape::Context,
            "stop",
            "`stop` does not accept context",
        ),
        (
            "x",
            Shape::Decision,
            "turn_start",
            "`turn_start` does not accept a decision",
        ),
    ] {
        let error = make(prompt, shape, event, None).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

// D-93
#[tokio::test]
async fn without_a_client_the_first_use_fails() {
    let handler = make("x", Shape::Decision, "pre_tool_use", None).unwrap();
    let engine = engine("pre_tool_use", handler, Duration::from_secs(5));
    let outcome = dispatch(&engine, "pre_tool_use", call()).await.outcome;
    assert_eq!(outcome.permission, Permission::Deny);
    let cause = format!("{:?}", outcome.failures);
    assert!(cause.contains("no ModelClient configured"), "{cause}");
}

#[tokio::test]
async fn prompts_and_replies_that_are_too_long_are_failures() {
    let client = Client::new([r#"{"decision":"allow"}"#]);
    let handler = make(
        "{{ .ToolInput.cmd }}",
        Shape::Decision,
        "pre_tool_use",
        Some(Arc::clone(&client)),
    );
    let long = engine("pre_tool_use", handler.unwrap(), Duration::from_secs(5));
    let payload =
        json!({"tool_name": "shell", "tool_input": {"cmd": "x".repeat(PROMPT_LIMIT + 1)}});
    let outcome = dispatch(&long, "pre_tool_use", payload).await.outcome;
    assert_eq!(outcome.permission, Permission::Deny);
    assert_eq!(client.questions(), []);
    let reply = format!("{}{}", r#"{"decision":"allow"}"#, " ".repeat(REPLY_LIMIT));
    let outcome = judged(&reply).await.outcome;
    assert_eq!(outcome.permission, Permission::Deny);
    assert!(format!("{:?}", outcome.failures).contains("longer than 64 KiB"));
}

#[tokio::test]
async fn an_error_of_the_service_denies() {
    let client = Client::new([]);
    client
        .replies
        .lock()
        .unwrap()
        .push_back(Err(ModelError::new("busy")));
    let handler = make("x", Shape::Decision, "tool_guard", Some(client)).unwrap();
    let engine = engine("tool_guard", handler, Duration::from_secs(5));
    let outcome = dispatch(&engine, "tool_guard", call()).await.outcome;
    assert_eq!(outcome.permission, Permission::Deny);
    assert!(format!("{:?}", outcome.failures).contains("model `acme/judge`: busy"));
}

#[tokio::test]
async fn a_timeout_and_a_cancellation_end_the_request() {
    let client = Client::new([]);
    let handler = make(
        "x",
        Shape::Decision,
        "pre_tool_use",
        Some(Arc::clone(&client)),
    )
    .unwrap();
    let quick = engine("pre_tool_use", handler, Duration::from_millis(20));
    let outcome = dispatch(&quick, "pre_tool_use", call()).await.outcome;
    assert_eq!(outcome.permission, Permission::Deny);
    assert!(client.dropped.is_cancelled());

    let client = Client::new([]);
    let handler = make(
        "x",
        Shape::Decision,
        "pre_tool_use",
        Some(Arc::clone(&client)),
    )
    .unwrap();
    let patient = engine("pre_tool_use", handler, Duration::from_mins(5));
    let cancel = CancellationToken::new();
    let dispatcher = patient
        .dispatcher(Origin::default())
        .with_cancel(cancel.clone());
    let event = parse_event(&"pre_tool_use".parse().unwrap(), call()).unwrap();
    let (denied, ()) = tokio::join!(dispatcher.dispatch_any(event), async {
        client.asked.cancelled().await;
        cancel.cancel();
    });
    assert_eq!(denied.outcome.permission, Permission::Deny);
    assert!(client.dropped.is_cancelled());
}

proptest! {
    #[test]
    fn text_around_a_decision_does_not_change_it(before in "[^{}]{0,40}", after in "[^{}]{0,40}") {
        for word in ["allow", "ask", "deny"] {
            let reply = format!("{before}{{\"decision\":\"{word}\",\"reason\":\"r\"}}{after}");
            let decision = ModelDecision::parse(&reply).unwrap();
            assert_eq!((decision.permission.as_str(), &*decision.reason), (word, "r"));
        }
    }

    #[test]
    fn two_objects_are_never_one_decision(between in ".{0,40}") {
        for (first, second) in [("allow", "deny"), ("deny", "allow"), ("allow", "allow")] {
            let object = |word: &str| format!("{{\"decision\":\"{word}\"}}");
            let reply = format!("{}{between}{}", object(first), object(second));
            assert!(ModelDecision::parse(&reply).is_err(), "{reply}");
        }
    }
}
