//! The order of events through whole runs.

use tenterhook_agent::{AgentConfig, CancellationToken, RunEnd};
use tenterhook_builtins::ResponseCache;
use tenterhook_builtins::builtin::{BuiltinConfig, builtin};
use tenterhook_engine::event::{
    AgentEnd, BeforeAgentStart, BeforeLlmCall, Context, MessageEnd, MessageUpdate,
    SessionEndReason, SessionSource, SessionStart, ToolSelection, TurnStart, UserInput,
    UserPromptSubmit,
};
use tenterhook_engine::{Effect, EventKind, HookSpec, Message, Role, message_extra};
use tenterhook_runners::Services;
use tenterhook_systems::native::Native;

use crate::stage::Stage;

const SAY: &str = "turns: [{text: hello}, {text: again}]";

const LIST_THEN_SAY: &str = r"
turns:
  - tool_calls: [{name: list_directory}]
  - text: done
";

fn system_texts(messages: &[Message]) -> Vec<&str> {
    messages
        .iter()
        .filter(|message| message.role == Role::System)
        .map(|message| message.content.as_str())
        .collect()
}

#[tokio::test]
async fn a_whole_session_fires_its_events_in_order() {
    let stage = Stage::empty();
    let (agent, report) = stage.play(LIST_THEN_SAY).await;
    agent.end_session(SessionEndReason::Quit).await;
    assert_eq!(report.end, RunEnd::Completed);
    assert_eq!((report.response.as_str(), report.turns), ("done", 2));
    let expected = [
        "session_start",
        "resources_discover",
        "user_input",
        "user_prompt_submit",
        "before_agent_start",
        "agent_start",
        "turn_start",
        "context",
        "before_llm_call",
        "tool_selection",
        "provider_request",
        "provider_response",
        "after_llm_call",
        "tool_execution_start",
        "tool_input_transform",
        "tool_guard",
        "pre_tool_use",
        "tool_approval_decision",
        "tool_response_transform",
        "post_tool_use",
        "tool_execution_end",
        "turn_end",
        "turn_start",
        "context",
        "before_llm_call",
        "tool_selection",
        "provider_request",
        "provider_response",
        "after_llm_call",
        "stop",
        "turn_end",
        "agent_end",
        "agent_settled",
        "waiting_for_user",
        "session_end",
    ];
    assert_eq!(stage.names(), expected);
    assert_eq!(stage.field("turn_end", "reason"), ["continue", "normal"]);
}

/// Returns an answer of the scripted model as the session stores it.
fn answer(text: &str) -> Message {
    Message::assistant(text).with_extra(message_extra::MODEL, "scripted/play")
}

#[tokio::test]
async fn each_message_starts_grows_and_ends() {
    let stage = Stage::empty();
    stage.play("turns: [{text: one two}]").await;
    let names: Vec<_> = stage
        .heard()
        .into_iter()
        .map(|event| event.name)
        .filter(|name| name.starts_with("message_"))
        .collect();
    let expected = [
        "message_start",
        "message_end",
        "message_start",
        "message_update",
        "message_update",
        "message_update",
        "message_end",
    ];
    assert_eq!(names, expected);
    assert_eq!(stage.field("message_update", "delta"), ["one ", "two", ""]);
    let updates = stage.all::<MessageUpdate>().into_iter();
    let parts: Vec<_> = updates.map(|update| update.extra["part"].clone()).collect();
    assert_eq!(parts, ["text", "text", "end"]);
    assert_eq!(stage.human.screen(), ["text one ", "text two"]);
}

#[tokio::test]
async fn session_context_stays_and_turn_context_is_for_one_call() {
    let stage = Stage::empty();
    stage
        .engine
        .on(|_: &SessionStart| Effect::none().context("of the session"));
    stage
        .engine
        .on(|event: &TurnStart| Effect::none().context(format!("of turn {}", event.turn_index)));
    stage
        .engine
        .on(|event: &UserPromptSubmit| Effect::none().context(format!("of {}", event.prompt)));
    let mut agent = AgentConfig {
        instruction: "base".to_owned(),
        ..stage.config(&format!("{LIST_THEN_SAY}  - text: more\n"))
    }
    .build(stage.engine.clone())
    .unwrap();
    agent.start_session(SessionSource::Startup).await;
    for prompt in ["one", "two"] {
        agent.prompt(prompt, &CancellationToken::new()).await;
    }
    let calls = stage.all::<BeforeLlmCall>();
    let sent: Vec<_> = calls
        .iter()
        .map(|call| system_texts(&call.messages))
        .collect();
    assert_eq!(
        sent,
        [
            ["base", "of the session", "of one", "of turn 0"],
            ["base", "of the session", "of one", "of turn 1"],
            ["base", "of the session", "of two", "of turn 0"],
        ]
    );
    assert_eq!(
        system_texts(&agent.session().messages()),
        ["of the session"]
    );
    assert_eq!(
        calls.iter().map(|call| call.iteration).collect::<Vec<_>>(),
        [1, 2, 1]
    );
    assert_eq!(calls[0].model_id, "scripted/play");
}

#[tokio::test]
async fn a_resumed_session_goes_on_and_says_nothing_twice() {
    let stage = Stage::empty();
    stage
        .engine
        .on(|_: &SessionStart| Effect::none().context("rules"));
    let (agent, _) = stage.play(SAY).await;
    let session = agent.session().clone();
    let mut resumed = AgentConfig {
        session: Some(session),
        ..stage.config(SAY)
    }
    .build(stage.engine.clone())
    .unwrap();
    resumed.start_session(SessionSource::Resume).await;
    resumed.prompt("and", &CancellationToken::new()).await;
    let texts: Vec<_> = resumed
        .session()
        .messages()
        .into_iter()
        .map(|message| message.content)
        .collect();
    assert_eq!(texts, ["rules", "go", "hello", "and", "hello"]);
    assert_eq!(
        stage.field("session_start", "source"),
        ["startup", "resume"]
    );
}

#[tokio::test]
async fn an_input_can_be_dealt_with_or_changed_by_a_hook() {
    let stage = Stage::empty();
    stage
        .engine
        .on(|event: &UserInput| match event.text.as_str() {
            "/help" => Effect::handled(),
            text => Effect::<UserInput>::none().replace_text(text.to_uppercase()),
        });
    let mut agent = stage.config(SAY).build(stage.engine.clone()).unwrap();
    let cancel = CancellationToken::new();
    assert_eq!(agent.prompt("/help", &cancel).await.end, RunEnd::Handled);
    assert!(agent.session().entries().is_empty());
    assert_eq!(agent.prompt("shout", &cancel).await.end, RunEnd::Completed);
    assert_eq!(agent.session().messages()[0].content, "SHOUT");
    assert_eq!(stage.field("user_prompt_submit", "prompt"), ["SHOUT"]);
}

#[tokio::test]
async fn before_agent_start_changes_prompt_messages_and_tools() {
    let stage = Stage::empty();
    stage.engine.on(|_: &BeforeAgentStart| {
        Effect::none()
            .replace_system_prompt(String::new())
            .inject(Message::user("extra"))
            .disable_tool("shell".to_owned())
    });
    let (_, report) = stage
        .play("turns: [{tool_calls: [{name: shell, arguments: {cmd: ls}}]}, {text: ok}]")
        .await;
    assert_eq!(report.end, RunEnd::Completed);
    let sent = &stage.all::<BeforeLlmCall>()[0].messages;
    assert_eq!(
        sent.iter()
            .map(|message| message.content.as_str())
            .collect::<Vec<_>>(),
        ["go", "extra"]
    );
    assert!(
        !stage.all::<ToolSelection>()[0]
            .tools
            .contains(&"shell".to_owned())
    );
    assert!(stage.names().contains(&"tools_disabled".to_owned()));
    assert!(!stage.names().contains(&"pre_tool_use".to_owned()));
}

#[tokio::test]
async fn messages_are_replaced_for_one_call_only() {
    let stage = Stage::empty();
    stage.engine.on(|event: &Context| {
        Effect::<Context>::none().replace_messages(event.messages[..1].to_vec())
    });
    stage.engine.on(|event: &BeforeLlmCall| {
        let mut messages = event.messages.clone().into_vec();
        messages.push(Message::user("last"));
        Effect::<BeforeLlmCall>::none().replace_messages(messages)
    });
    let (agent, _) = stage
        .play_with(SAY, |config| AgentConfig {
            instruction: "base".to_owned(),
            ..config
        })
        .await;
    let sent = &stage.all::<BeforeLlmCall>()[0].messages;
    assert_eq!(**sent, [Message::system("base"), Message::user("last")]);
    assert_eq!(
        agent.session().messages(),
        [Message::user("go"), answer("hello")]
    );
}

#[tokio::test]
async fn a_message_is_stored_as_hooks_left_it_in_its_own_role() {
    let stage = Stage::empty();
    stage
        .engine
        .on(|event: &MessageEnd| match event.message.role {
            Role::Assistant => Effect::none().replace_message(Message::user("redacted")),
            Role::User | Role::System | Role::Tool | _ => Effect::none(),
        });
    let (agent, report) = stage.play(SAY).await;
    assert_eq!(
        agent.session().messages(),
        [Message::user("go"), answer("redacted")]
    );
    assert_eq!(report.response, "redacted");
    assert_eq!(
        stage.only::<AgentEnd>().messages,
        agent.session().messages()
    );
}

#[tokio::test]
async fn the_same_conversation_gets_the_kept_answer_without_a_turn() {
    let stage = Stage::empty();
    let services = Services {
        data_dir: Some(stage.path().join("data")),
        ..Services::default()
    };
    let setup = BuiltinConfig {
        arguments: &[],
        env: &[],
        working_dir: None,
        services: &services,
        events: &[],
        dialect: &Native::new(),
    };
    let handler = builtin("cache_response", &setup).unwrap();
    let registered = stage
        .engine
        .register(HookSpec::new(EventKind::Stop, "cache", handler));
    let responses = ResponseCache::new(&stage.path().join("data"));
    for (script, expected) in [
        ("turns: [{text: the first}]", "the first"),
        ("turns: [{text: the second}]", "the first"),
    ] {
        let responses = responses.clone();
        let (agent, report) = stage
            .play_with(script, |config| AgentConfig {
                responses: Some(responses),
                ..config
            })
            .await;
        assert_eq!(report.response, expected);
        assert_eq!(agent.session().messages().last().unwrap().content, expected);
    }
    registered.unsubscribe();
    let names = stage.names();
    let count = |name: &str| names.iter().filter(|known| *known == name).count();
    assert_eq!(
        (count("turn_start"), count("before_llm_call"), count("stop")),
        (1, 1, 2)
    );
}
