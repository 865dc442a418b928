//! Operator's hook files: the examples of its document, and its conformance cases.

use std::fmt::Write as _;

use serde_json::{Value, json};
use tenterhook_engine::event::{
    AgentEnd, BeforeAgentStart, BeforeCompaction, ChannelConnect, Context, MessageEnd, MessagePart,
    MessageReceive, MessageSend, PostToolUse, PreToolUse, ResourcesDiscover, SessionBeforeFork,
    SessionBeforeSwitch, SessionBeforeTree, ToolExecutionEnd, UserInput,
};
use tenterhook_engine::{Dispatched, Engine, Message, Role, ToolResult, parse_event};
use tenterhook_runners::worker::Registered;
use tenterhook_systems::operator::EVENTS;

use crate::stage::{PROVIDED, Stage, run_without_host};

const API: &str = "operator";

const TYPES: &str = "from operator_use.program.hooks.types import *\nfrom operator_use.program.hooks import types as t\n";

/// A file with one handler for each body, in order.
fn file(event: &str, bodies: &[&str]) -> String {
    let mut handlers = String::new();
    let mut list = String::new();
    for (number, body) in bodies.iter().enumerate() {
        writeln!(handlers, "async def h{number}(event):\n    {body}").unwrap();
        write!(list, "('{event}', h{number}), ").unwrap();
    }
    format!("from operator_use.program.hooks import types as t\n{handlers}hooks = [{list}]\n")
}

async fn stage(event: &str, bodies: &[&str]) -> Stage {
    let stage = Stage::new();
    stage.add(API, "a.py", &file(event, bodies)).await;
    stage
}

fn object(value: &Value) -> tenterhook_engine::JsonObject {
    value.as_object().unwrap().clone()
}

fn call(cmd: &str) -> PreToolUse {
    PreToolUse::new("shell")
        .with_tool_use_id("c1")
        .with_tool_input(object(&json!({"cmd": cmd, "cwd": "/w"})))
}

fn done(result: ToolResult) -> PostToolUse {
    PostToolUse::new("shell")
        .with_tool_use_id("c1")
        .with_result(result)
}

/// The document's example of a hook file, as it stands there.
const LOGGING: &str = r#"
# .operator/hooks/logging.py
async def on_agent_end(event):
    print(f"Done: {len(event.messages)} messages")

async def on_tool_execution_end(event):
    print(f"Tool '{event.tool_result.name}' finished")

hooks = [
    ('agent_end', on_agent_end),
    ('tool_execution_end', on_tool_execution_end),
]
"#;

/// The same, with a print that can be seen.
const SEEN: &str = "
import builtins
def print(text):
    with open('DIR/printed', 'a') as file:
        builtins.print(text, file=file)
";

#[tokio::test]
async fn the_logging_example_of_operator_runs() {
    let stage = Stage::new();
    stage.add(API, ".operator/hooks/logging.py", LOGGING).await;
    let seen = format!("{SEEN}{LOGGING}");
    stage.add(API, ".operator/hooks/seen.py", &seen).await;
    let end = AgentEnd::new(vec![Message::user("a"), Message::assistant("b")]);
    let outcome = stage.hooks().dispatch(end).await;
    assert!(outcome.failures().is_empty(), "{:?}", outcome.failures());
    let end = ToolExecutionEnd::new("shell", ToolResult::default());
    let outcome = stage.hooks().dispatch(end).await;
    assert!(outcome.failures().is_empty(), "{:?}", outcome.failures());
    assert_eq!(
        stage.written("printed").await,
        "Done: 2 messages\nTool 'terminal' finished\n"
    );
}

// O11, O12, O13: a call is blocked, its arguments are replaced as a whole, and a block behind new
// arguments still blocks.
#[tokio::test]
async fn handlers_of_tool_call_block_and_replace_arguments() {
    let block = "return t.ToolCallEventResult(block=True, reason='not here')";
    let params = "return t.ToolCallEventResult(params={'cmd': 'ls -h'})";
    let sees = "assert event.input == {'cmd': 'ls -h'} and event.type == 'tool_call' and event.tool_call_id == 'c1'";
    for (bodies, stopped, input) in [
        (&[block][..], Some("not here"), None),
        (
            &["return t.ToolCallEventResult(block=1)"],
            Some("stopped by a hook"),
            None,
        ),
        (&[params, sees], None, Some(json!({"cmd": "ls -h"}))),
        (
            &[params, block],
            Some("not here"),
            Some(json!({"cmd": "ls -h"})),
        ),
        (
            &[block, "raise ValueError('it is not asked')"],
            Some("not here"),
            None,
        ),
        (&["return t.ToolCallEventResult()"], None, None),
        (&["event.input['cmd'] = 'changed'"], None, None),
    ] {
        let stage = stage("tool_call", bodies).await;
        let outcome = stage.hooks().dispatch(call("ls")).await;
        assert!(outcome.failures().is_empty(), "{bodies:?}: {outcome:?}");
        assert_eq!(outcome.decision().reason(), stopped, "{bodies:?}");
        let rewritten = outcome
            .into_rewritten()
            .map(|event| json!(event.tool_input));
        assert_eq!(rewritten, input, "{bodies:?}");
    }
}

// O14, O15: each handler sees the result as the one before left it, and a field that is not set
// stays as it is.
#[tokio::test]
async fn handlers_of_tool_result_patch_one_after_another() {
    let stage = stage(
        "tool_result",
        &[
            "return t.ToolResultEventResult(content=event.content.replace('secret', '***'))",
            "assert event.content == 'a *** b', event.content\n    return t.ToolResultEventResult(is_error=True)",
            "assert event.is_error\n    return t.ToolResultEventResult(terminate=True)",
        ],
    )
    .await;
    let outcome = stage
        .hooks()
        .dispatch(done(ToolResult::text("a secret b")))
        .await;
    assert!(outcome.failures().is_empty(), "{:?}", outcome.failures());
    let result = outcome.into_rewritten().unwrap().result;
    assert_eq!(result.joined_text(), "a *** b");
    assert!(result.is_error && result.terminate);
    // A call that was denied has no result there.
    let blocked = done(ToolResult::error("secret")).with_blocked(true);
    let outcome = stage.hooks().dispatch(blocked).await;
    assert!(outcome.failures().is_empty() && outcome.into_rewritten().is_none());
}

// O9, O10: messages are replaced one after another; a handler that raises changes nothing.
#[tokio::test]
async fn handlers_of_context_replace_messages_one_after_another() {
    let stage = stage(
        "context",
        &[
            "return t.ContextEventResult(messages=[m for m in event.messages if m.role != 'system'])",
            "raise RuntimeError('no')",
            "assert [m.content for m in event.messages] == ['hi'] and event.messages[0].tool_calls is None\n    \
             return t.ContextEventResult(messages=event.messages + [{'role': 'user', 'content': 'and more'}])",
        ],
    )
    .await;
    let event = Context::new(vec![
        Message::text(Role::System, "rules"),
        Message::user("hi"),
    ]);
    let outcome = stage.hooks().dispatch(event).await;
    let causes: Vec<_> = outcome
        .failures()
        .iter()
        .map(|failure| &*failure.cause)
        .collect();
    assert_eq!(causes, ["a.py:5: RuntimeError: no"]);
    let messages = outcome.into_rewritten().unwrap().messages;
    assert_eq!(*messages, [Message::user("hi"), Message::user("and more")]);
}

// O22: the prompt of the last handler counts, and each sees the one before it.
#[tokio::test]
async fn handlers_of_before_agent_start_replace_the_prompt() {
    for (bodies, prompt) in [
        (
            &[
                "return t.BeforeAgentStartEventResult(system_prompt=event.system_prompt + ' one')",
                "return t.BeforeAgentStartEventResult()",
                "return t.BeforeAgentStartEventResult(system_prompt=event.system_prompt + ' two')",
            ][..],
            Some("base one two"),
        ),
        (
            &["return t.BeforeAgentStartEventResult(system_prompt='')"],
            Some(""),
        ),
        (&["return None"], None),
    ] {
        let stage = stage("before_agent_start", bodies).await;
        let event = BeforeAgentStart::new("hi").with_system_prompt("base");
        let outcome = stage.hooks().dispatch(event).await;
        assert!(outcome.failures().is_empty(), "{:?}", outcome.failures());
        let rewritten = outcome.into_rewritten().map(|event| event.system_prompt);
        assert_eq!(rewritten.as_deref(), prompt);
    }
}

// O24, O25, O26: what is about to happen to a session is vetoed, or done by the hook.
#[tokio::test]
async fn handlers_of_session_before_events_veto_or_supply() {
    let compaction =
        "return t.SessionBeforeCompactResult(compaction=t.CompactionResult(summary='short'))";
    let cancel = "return t.SessionBeforeCompactResult(cancel=True)";
    for (bodies, stopped, supplied) in [
        (&[compaction][..], None, Some("short")),
        (
            &["return t.SessionBeforeCompactResult(compaction={'summary': 'dict'})"],
            None,
            Some("dict"),
        ),
        (
            &[
                compaction,
                "return t.SessionBeforeCompactResult(compaction='other')",
            ],
            None,
            Some("short"),
        ),
        (
            &[compaction, cancel],
            Some("stopped by a hook"),
            Some("short"),
        ),
        (
            &["return t.SessionBeforeCompactResult(cancel=False)"],
            None,
            None,
        ),
    ] {
        let stage = stage("session_before_compact", bodies).await;
        let outcome = stage.hooks().dispatch(BeforeCompaction::default()).await;
        assert!(outcome.failures().is_empty(), "{:?}", outcome.failures());
        assert_eq!(outcome.decision().reason(), stopped, "{bodies:?}");
        assert_eq!(outcome.supplied().as_deref(), supplied, "{bodies:?}");
    }
    let veto = "return t.SessionBeforeSwitchResult(cancel=event.reason == 'new')";
    let switch = stage("session_before_switch", &[veto]).await;
    let outcome = switch
        .hooks()
        .dispatch(SessionBeforeSwitch::default())
        .await;
    assert!(outcome.decision().reason().is_some());
    let fork = stage(
        "session_before_fork",
        &["return t.SessionBeforeForkResult(cancel=True)"],
    )
    .await;
    let outcome = fork.hooks().dispatch(SessionBeforeFork::default()).await;
    assert!(outcome.decision().reason().is_some());
    let tree = stage(
        "session_before_tree",
        &["assert event.preparation.target_id == 'e1'\n    \
           return t.SessionBeforeTreeResult(summary='s', custom_instructions='c', replace_instructions=True, label='l')"],
    )
    .await;
    let mut event = SessionBeforeTree::default();
    event.preparation.target_id = "e1".into();
    let outcome = tree.hooks().dispatch(event).await;
    assert!(outcome.failures().is_empty(), "{:?}", outcome.failures());
    assert_eq!(outcome.supplied().as_deref(), Some("s"));
    let preparation = outcome.into_rewritten().unwrap().preparation;
    assert_eq!(preparation.custom_instructions.as_deref(), Some("c"));
    assert_eq!(
        (
            preparation.replace_instructions,
            preparation.label.as_deref()
        ),
        (true, Some("l"))
    );
}

// O23: an input is changed, or is the hook's.
#[tokio::test]
async fn handlers_of_input_transform_and_handle() {
    let shout = "return t.InputEventResult(action='transform', text=event.text.upper())";
    let handled = "return t.InputEventResult(action='handled')";
    for (bodies, text, is_handled) in [
        (
            &[
                shout,
                "return t.InputEventResult(action='transform', text=event.text + '!')",
            ][..],
            Some("HI!"),
            false,
        ),
        (&[handled, shout], None, true),
        (&["return t.InputEventResult()"], None, false),
    ] {
        let stage = stage("input", bodies).await;
        let event = UserInput::new("hi");
        let outcome = stage.hooks().dispatch(event).await;
        assert!(outcome.failures().is_empty(), "{:?}", outcome.failures());
        assert_eq!(outcome.is_handled(), is_handled, "{bodies:?}");
        let rewritten = outcome.into_rewritten().map(|event| event.text);
        assert_eq!(rewritten.as_deref(), text, "{bodies:?}");
    }
}

/// What the document says of the two hooks that come with Operator.
const SPEECH: &str = "
from operator_use.bus.types import AudioPart, TextPart
from operator_use.program.hooks.types import MessageReceiveResult, MessageSendResult

async def stt(event):
    if not any(isinstance(part, AudioPart) for part in event.parts):
        return None
    parts = [TextPart('heard ' + part.audio) if part.type == 'audio' else part for part in event.parts]
    return MessageReceiveResult(action='transform', parts=parts, text='not this')

def tts(event):
    if event.is_voice:
        return MessageSendResult(parts=[AudioPart('/tmp/' + event.response_text + '.mp3', mime_type='audio/mpeg')])

hooks = [('message:receive', stt), ('message:send', tts)]
";

fn part(kind: &str, text: Option<&str>, data: Option<&str>) -> MessagePart {
    MessagePart {
        kind: kind.to_owned(),
        text: text.map(str::to_owned),
        data: data.map(str::to_owned),
        ..MessagePart::default()
    }
}

// O27, O30, O31: speech becomes text in its place, the text is that of the parts, and a spoken
// question has a spoken answer.
#[tokio::test]
async fn messages_of_channels_become_text_and_speech() {
    let stage = Stage::new();
    stage.add(API, "speech.py", SPEECH).await;
    let image = MessagePart {
        media_type: Some("image/png".to_owned()),
        metadata: object(&json!({"width": 3})),
        ..part("image", None, Some("aGk="))
    };
    let event = MessageReceive::new("telegram")
        .with_text("hello")
        .with_parts(vec![
            part("text", Some("hello"), None),
            part("audio", None, Some("a.ogg")),
            image.clone(),
            part("file", None, Some("/tmp/a.pdf")),
        ]);
    let outcome = stage.hooks().dispatch(event.clone()).await;
    assert!(outcome.failures().is_empty(), "{:?}", outcome.failures());
    let heard = outcome.into_rewritten().unwrap();
    assert_eq!(heard.text, "hello\nheard a.ogg");
    let parts = [
        part("text", Some("hello"), None),
        part("text", Some("heard a.ogg"), None),
        image,
        part("file", None, Some("/tmp/a.pdf")),
    ];
    assert_eq!(heard.parts, parts);
    let typed = event.with_parts(vec![part("text", Some("hello"), None)]);
    assert!(
        stage
            .hooks()
            .dispatch(typed)
            .await
            .into_rewritten()
            .is_none()
    );
    for (is_voice, parts) in [(false, 0), (true, 1)] {
        let event = MessageSend::default()
            .with_response_text("yes")
            .with_is_voice(is_voice);
        let outcome = stage.hooks().dispatch(event).await;
        assert!(outcome.failures().is_empty(), "{:?}", outcome.failures());
        let sent = outcome.parts();
        assert_eq!(sent.len(), parts);
        assert!(
            sent.iter()
                .all(|part| part.data.as_deref() == Some("/tmp/yes.mp3"))
        );
    }
}

// O29: a message that any handler rejects is dropped, with the reason; no later handler sees it.
#[tokio::test]
async fn a_rejected_message_is_dropped_with_its_reason() {
    let stage = stage(
        "message:receive",
        &[
            "return t.MessageReceiveResult(action='transform', text='new')",
            "return t.MessageReceiveResult(action='reject', reason='not ' + event.text)",
            "raise ValueError('it is not asked')",
        ],
    )
    .await;
    let outcome = stage.hooks().dispatch(MessageReceive::default()).await;
    assert_eq!(outcome.decision().reason(), Some("not new"));
    assert!(outcome.failures().is_empty(), "{:?}", outcome.failures());
}

#[tokio::test]
async fn results_that_operator_drops_count_here() {
    let connect = stage(
        "channel:connect",
        &["return t.ChannelConnectResult(allow=event.channel_id != 'irc', reason='no irc')"],
    )
    .await;
    for (channel, stopped) in [("irc", Some("no irc")), ("slack", None)] {
        let event = ChannelConnect::new(channel.to_owned());
        assert_eq!(
            connect.hooks().dispatch(event).await.decision().reason(),
            stopped
        );
    }
    let end = stage(
        "message_end",
        &["event.message.content = 'new'\n    return t.MessageEndEventResult(message=event.message)"],
    )
    .await;
    let event = MessageEnd::new(Message::assistant("old"));
    let outcome = end.hooks().dispatch(event).await;
    assert_eq!(
        outcome.into_rewritten().unwrap().message,
        Message::assistant("new")
    );
    let discover = stage(
        "resources_discover",
        &["import pathlib\n    return t.ResourcesDiscoverResult(skill_paths=[pathlib.Path(event.cwd) / 'skills'])"],
    )
    .await;
    let outcome = discover
        .hooks()
        .dispatch(ResourcesDiscover::default())
        .await;
    assert!(outcome.failures().is_empty(), "{:?}", outcome.failures());
    assert_eq!(outcome.skill_paths(), [discover.path("skills")]);
}

// O2, O4: a handler that raises, or returns what is no result of its event, is reported; the others
// run and nothing stops.
#[tokio::test]
async fn a_handler_of_operator_that_fails_is_reported_and_stops_nothing() {
    let guard = "return t.ToolCallEventResult(block=True, reason='still here')";
    for (body, cause) in [
        ("raise ValueError('no luck')", "a.py:3: ValueError: no luck"),
        (
            "return {'block': True}",
            "returned a `dict`, expected a `ToolCallEventResult` or None",
        ),
        (
            "return t.ContextEventResult()",
            "returned a `ContextEventResult`, expected a `ToolCallEventResult`",
        ),
        (
            "return t.ToolCallEventResult(params=[1])",
            "`params` is not a dict",
        ),
        (
            "return t.ToolCallEventResult(params={'a': object()})",
            "a object cannot be sent to the host",
        ),
        ("import sys\n    sys.exit(3)", "a.py:4: SystemExit: 3"),
        ("return t.Nothing()", "has no attribute 'Nothing'"),
    ] {
        let alone = stage("tool_call", &[body]).await;
        let outcome = alone.hooks().dispatch(call("ls")).await;
        assert_eq!(outcome.decision().reason(), None, "{body}");
        let [failure] = outcome.failures() else {
            panic!("{body}: {outcome:?}");
        };
        assert!(failure.cause.contains(cause), "{body}: {}", failure.cause);
        assert!(failure.let_through, "{body}");
        let guarded = stage("tool_call", &[body, guard]).await;
        let outcome = guarded.hooks().dispatch(call("ls")).await;
        assert_eq!(outcome.decision().reason(), Some("still here"), "{body}");

        let strict = Stage::with(Engine::builder().strict(true).build());
        strict.add(API, "a.py", &file("tool_call", &[body])).await;
        let outcome = strict.hooks().dispatch(call("ls")).await;
        assert!(!outcome.decision().is_proceed(), "{body}");
    }
    // What an observer returns counts for nothing.
    let observer = stage("agent_end", &["return {'any': object}"]).await;
    let outcome = observer.hooks().dispatch(AgentEnd::default()).await;
    assert!(outcome.failures().is_empty(), "{:?}", outcome.failures());
}

// O34: a file that exports no hooks is reported, whatever is wrong with it; a function may return the list.
#[tokio::test]
async fn files_of_operator_say_what_is_wrong_with_them() {
    let stage = Stage::new();
    for (text, message) in [
        ("import nowhere\n", "a.py:1: ModuleNotFoundError"),
        (
            "x = 1\n",
            "a.py: TypeError: `hooks` is nothing, expected a list of (event, handler)",
        ),
        ("hooks = 3\n", "`hooks` is 3"),
        ("hooks = []\n", "`hooks` is empty"),
        (
            "hooks = [('input', 3)]\n",
            "item 1 of `hooks` is ('input', 3), expected (event, handler)",
        ),
        ("hooks = [('input', print), ('x',)]\n", "item 2 of `hooks`"),
        (
            "def hooks():\n    return [1 / 0]\n",
            "a.py:2: ZeroDivisionError",
        ),
    ] {
        let error = stage.load(API, "a.py", text).await.unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
    }
    let listed = "def hooks():\n    return [['input', lambda event: None], ('agent_end', print)]\n";
    let (_, Registered { hooks, .. }) = stage.load(API, "b.py", listed).await.unwrap();
    let names: Vec<_> = hooks
        .iter()
        .map(|hook| (&*hook.name, &*hook.event))
        .collect();
    assert_eq!(names, [("<lambda>", "input"), ("print", "agent_end")]);
}

/// Writes every event that comes, with its class.
const WITNESS: &str = "
import dataclasses, json
def write(event):
    assert dataclasses.is_dataclass(event)
    told = {'class': type(event).__name__, **dataclasses.asdict(event)}
    with open('DIR/' + event.type, 'w') as file:
        json.dump(told, file)
";

/// A payload of the catalogue and the fields that handlers see, for events whose fields are not
/// those of the catalogue.
const FIELDS: &str = r#"
["session_start", {"source": "clear", "previous_session": "s0"}, {"reason": "new", "previous_session_file": "s0"}]
["session_shutdown", {"reason": "error"}, {"reason": "quit", "target_session_file": null}]
["session_compact", {"summary": "s", "from_hook": true, "reason": "manual"}, {"compaction_entry": null, "from_extension": true}]
["compaction_end", {"summary": "s", "input_tokens": 7, "reason": "manual"}, {"tokens_before": 7, "summary": "s"}]
["agent_end", {"messages": [], "reason": "aborted"}, {"messages": [], "reason": "aborted"}]
["turn_start", {"turn_index": 2, "started_at_ms": 1500}, {"turn_index": 2, "timestamp": 1.5}]
["turn_end", {"turn_index": 2, "tool_results": [{"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "is_error": true}]}, {"turn_index": 2, "message": null, "tool_results": [{"content": "a\nb", "is_error": true}]}]
["message_update", {"message": {"role": "assistant", "content": "hello"}, "delta": "lo"}, {"message": {"role": "assistant", "content": "lo"}}]
["tool_execution_start", {"tool_use_id": "c1", "tool_name": "shell", "tool_input": {"cmd": "ls"}}, {"tool_call": {"id": "c1", "name": "terminal", "args": {"cmd": "ls"}, "input": {"cmd": "ls"}}}]
["tool_execution_update", {"tool_use_id": "c1", "tool_name": "shell", "partial_result": {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "is_error": true}}, {"partial_tool_result": {"id": "c1", "name": "terminal", "content": "a\nb", "is_error": true}}]
["tool_execution_end", {"tool_use_id": "c1", "tool_name": "shell", "result": {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "is_error": true}}, {"tool_result": {"id": "c1", "name": "terminal", "content": "a\nb", "is_error": true}}]
["tool_execution_failure", {"tool_use_id": "c1", "tool_name": "shell", "tool_input": {"cmd": "ls"}, "error": "no"}, {"tool_call_id": "c1", "tool_name": "terminal", "input": {"cmd": "ls"}, "error": "no"}]
["tool_call", {"tool_use_id": "c1", "tool_name": "shell", "tool_input": {"cmd": "ls"}}, {"tool_call_id": "c1", "tool_name": "terminal", "input": {"cmd": "ls"}}]
["tool_result", {"tool_use_id": "c1", "tool_name": "shell", "tool_input": {"cmd": "ls"}, "result": {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "is_error": true}}, {"tool_call_id": "c1", "tool_name": "terminal", "input": {"cmd": "ls"}, "content": "a\nb", "is_error": true}]
["before_provider_request", {"payload": {"model": "m", "messages": [], "top_p": 1}}, {"model": "m", "messages": [], "options": {"top_p": 1}}]
["after_provider_response", {"model_id": "a/b", "response": "hi"}, {"model": "a/b", "response": "hi"}]
["queue_update", {"queue": "follow_up", "message": "a", "messages": ["a"]}, {"queue": "followup", "message": "a", "messages": ["a"]}]
["subagent_end", {"task_id": "t", "label": "l", "result": "r", "child_session_id": "c", "parent_session_id": "p"}, {"task_id": "t", "label": "l", "status": "completed", "result": "r"}]
["gateway:startup", {"channel_ids": ["c"]}, {"channel_ids": ["c"]}]
["gateway:stop", {"channel_ids": ["c"], "reason": "failed"}, {"channel_ids": ["c"], "reason": "failed"}]
["channel:connect", {"channel_id": "c", "kind": "telegram", "account": "7"}, {"channel_id": "c", "kind": "telegram", "account": "7"}]
["channel:disconnect", {"channel_id": "c", "reason": "removed"}, {"channel_id": "c", "reason": "removed"}]
["message:receive", {"channel_id": "c", "chat_id": "h", "user_id": "u", "text": "a", "stt_enabled": false, "role": "owner", "is_direct": true}, {"channel_id": "c", "chat_id": "h", "user_id": "u", "text": "a", "parts": [], "stt_enabled": false, "message_id": "", "thread_id": null, "reply_to": null, "is_direct": true, "is_voice": false, "role": "owner", "busy": false, "sender_name": null}]
["message:send", {"channel_id": "c", "chat_id": "h", "input_text": "a", "response_text": "b", "is_voice": true}, {"channel_id": "c", "chat_id": "h", "input_text": "a", "response_text": "b", "is_voice": true, "tts_enabled": null, "message_ids": [], "user_id": "", "is_error": false, "audio_formats": []}]
["message:cancel", {"channel_id": "c", "chat_id": "h", "user_id": "u", "reason": "shutdown"}, {"channel_id": "c", "chat_id": "h", "user_id": "u", "reason": "shutdown"}]
["gateway:error", {"channel_id": "c", "error": "e", "code": "conflict", "will_retry": true}, {"channel_id": "c", "error": "e", "chat_id": null, "message_id": null, "code": "conflict", "will_retry": true}]
["user_bash", {"command": "ls", "cwd": "/w"}, {"command": "ls", "exclude_from_context": false, "cwd": "/w"}]
"#;

// O6, O17, O19, G6: the type of an event is fixed, and its fields have the document's names and defaults.
#[tokio::test]
async fn every_event_of_operator_has_the_fields_of_its_document() {
    let stage = Stage::new();
    let names: Vec<_> = EVENTS
        .iter()
        .map(|event| format!("('{}', write)", event.name))
        .collect();
    let text = format!("{WITNESS}hooks = [{}]\n", names.join(", "));
    assert_eq!(
        stage.add(API, "witness.py", &text).await.len(),
        EVENTS.len()
    );
    for line in FIELDS.trim().lines() {
        let (name, payload, fields): (&str, Value, Value) = serde_json::from_str(line).unwrap();
        let event = EVENTS.iter().find(|event| event.name == name).unwrap();
        let event = parse_event(&event.kind.into(), payload).unwrap();
        let Dispatched { outcome, .. } = stage.hooks().dispatch_any(event).await;
        assert!(
            outcome.failures.is_empty(),
            "{name}: {:?}",
            outcome.failures
        );
        let mut seen: Value = serde_json::from_str(&stage.written(name).await).unwrap();
        let seen = seen.as_object_mut().unwrap();
        assert_eq!(seen.remove("type").unwrap(), name);
        let class = seen.remove("class").unwrap();
        let is_class = |class: &str| class.eq_ignore_ascii_case(&name.replace(['_', ':'], ""));
        assert!(
            class
                .as_str()
                .and_then(|class| class.strip_suffix("Event"))
                .is_some_and(is_class)
        );
        assert_eq!(Value::from(seen.clone()), fields, "{name}");
    }
}

// The bus awaits each handler, across files too.
#[tokio::test]
async fn handlers_of_an_observed_event_run_one_after_another() {
    let stage = Stage::new();
    let waits = "import asyncio\nasync def slow(event):\n    for _ in range(500):\n        await asyncio.sleep(0)\n    \
                 open('DIR/order', 'a').write('slow ')\nhooks = [('agent_end', slow)]\n";
    let quick = "def quick(event):\n    open('DIR/order', 'a').write('quick')\nhooks = [('agent_end', quick)]\n";
    stage.add(API, "a.py", waits).await;
    stage.add(API, "b.py", quick).await;
    let outcome = stage.hooks().dispatch(AgentEnd::default()).await;
    assert!(outcome.failures().is_empty(), "{:?}", outcome.failures());
    assert_eq!(stage.written("order").await, "slow quick");
}

// O27: the classes and helpers under each name that they have had in Operator.
const IMPORTS: &str = r"
import typing
from operator_use.program.hooks import types as t
from operator_use.hooks.types import *
kept = ToolCallEvent
from program.hooks.types import *
assert ToolCallEvent is kept is t.ToolCallEvent
assert isinstance(kept(), HookEvent) and len(typing.get_args(HookEvent)) > 40
assert SessionBeforeTreeEvent().preparation == TreePreparation('', None, None, [])
assert SubagentEndEvent().status is SubagentStatus.completed
assert f'{SubagentStatus.failed}' == 'failed' == SubagentStatus.failed

from program.bus.types import *
from operator_use.bus.types import TextPart as same
assert same is TextPart and typing.get_args(ContentPart) == (TextPart, AudioPart, ImagePart, FilePart)
parts = [TextPart('a'), AudioPart('a.ogg'), FilePart('f.pdf'), ImagePart(images=['i'], paths=['i.png']), TextPart('b')]
assert text_from_parts(parts) == 'a\nb' and text_from_parts([]) == ''
assert media_paths_from_parts(parts) == ['a.ogg', 'f.pdf', 'i.png']
assert [phase.value for phase in StreamPhase] == ['start', 'chunk', 'end', 'done', 'error']
message = OutgoingMessage('stdio', 'c', parts, stream_phase=StreamPhase.DONE)
assert message.metadata == {} and IncomingMessage('stdio', 'c').timestamp

from operator_use.hooks import Hooks
from program.hooks.service import Hooks as bus
assert Hooks is bus
try:
    import operator_use.inference.types
except ModuleNotFoundError as error:
    assert 'Operator is not installed' in str(error), error
    print('passed')
";

#[test]
fn the_classes_of_operator_have_the_names_of_each_of_its_versions() {
    run_without_host(&format!("{PROVIDED}{IMPORTS}"));
}

/// A package like Operator's own, and a hook that needs both it and the classes of hooks.
const INSTALLED: [(&str, &str); 4] = [
    (
        "site/operator_use/__init__.py",
        "from operator_use.hooks.types import ToolCallEvent\nVERSION = '9'\n",
    ),
    ("site/operator_use/inference/__init__.py", ""),
    ("site/operator_use/inference/types.py", "LIMIT = 3\n"),
    (
        "site/operator_use/hooks/types.py",
        "class ToolCallEvent: pass\nclass NewestEvent: pass\n",
    ),
];
const NEEDS_INSTALLED: &str = "
import sys
sys.path.append('DIR/site')
from operator_use import VERSION
from operator_use.inference.types import LIMIT
from operator_use.hooks.types import NewestEvent, ToolCallEvent, ToolCallEventResult

def guard(event):
    assert isinstance(event, ToolCallEvent)
    return ToolCallEventResult(block=True, reason=f'{VERSION} {LIMIT} {NewestEvent.__name__}')

hooks = [('tool_call', guard)]
";

#[tokio::test]
async fn a_hook_reaches_an_installed_operator_and_keeps_the_classes_of_its_events() {
    let stage = Stage::new();
    for (name, text) in INSTALLED {
        stage.write(name, text);
    }
    stage.add(API, "hooks/guard.py", NEEDS_INSTALLED).await;
    let outcome = stage.hooks().dispatch(call("ls")).await;
    assert!(outcome.failures().is_empty(), "{:?}", outcome.failures());
    assert_eq!(outcome.decision().reason(), Some("9 3 NewestEvent"));

    let missing = "from operator_use.settings import x\nhooks = []\n";
    let error = stage
        .load(API, "hooks/other.py", missing)
        .await
        .unwrap_err();
    let error = error.to_string();
    assert!(
        error.starts_with("other.py:1: ModuleNotFoundError"),
        "{error}"
    );
    assert!(
        error.contains("site/operator_use does not contain it"),
        "{error}"
    );
}

#[tokio::test]
async fn a_hook_of_operator_imports_the_package_next_to_it_or_of_its_project() {
    for root in ["", ".operator/hooks/"] {
        let stage = Stage::new();
        for (name, text) in INSTALLED {
            let name = name.strip_prefix("site/").unwrap_or(name);
            stage.write(&format!("{root}{name}"), text);
        }
        let text = NEEDS_INSTALLED
            .lines()
            .filter(|line| !line.contains("sys"))
            .collect::<Vec<_>>()
            .join("\n");
        stage.add(API, ".operator/hooks/guard.py", &text).await;
        let outcome = stage.hooks().dispatch(call("ls")).await;
        assert!(outcome.failures().is_empty(), "{:?}", outcome.failures());
        assert_eq!(
            outcome.decision().reason(),
            Some("9 3 NewestEvent"),
            "{root}"
        );
    }
}

#[tokio::test]
async fn a_hook_that_needs_operator_says_so() {
    let stage = Stage::new();
    let text = "from operator_use.inference.types import AudioFormat\nhooks = []\n";
    let error = stage
        .load(API, "stt.py", text)
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("Operator is not installed"), "{error}");
}

// O2, O4, O5, O7, O8: the bus of the document, without a host.
const BUS: &str = r"
import asyncio
from operator_use.program.hooks.service import Hooks
from operator_use.program.hooks.types import AgentEndEvent, ToolCallEvent

async def main():
    hooks, seen = Hooks(), []
    unsubscribe = hooks.register('tool_call', lambda event: 'a')

    @hooks.on('tool_call')
    async def broken(event):
        raise ValueError('no')

    @hooks.on('tool_call')
    async def nothing(event):
        event.input['seen'] = True

    hooks.register('tool_call', lambda event: event.input['seen'])
    unsub = hooks.subscribe(lambda event: seen.append(event.type))
    assert hooks.handler_count('tool_call') == 4
    assert hooks.registered_events() == ['tool_call']
    assert await hooks.emit(ToolCallEvent(tool_call_id='c')) == ['a', None, True]
    assert await hooks.emit(AgentEndEvent()) == []
    assert seen == ['tool_call', 'agent_end']
    unsubscribe(); unsubscribe()
    hooks.unregister('agent_end', print)
    assert hooks.handler_count('tool_call') == 3
    hooks.clear('tool_call')
    assert hooks.registered_events() == []
    hooks.clear()
    await hooks.emit(AgentEndEvent(messages=[1], reason='error'))
    assert len(seen) == 3
    unsub()
    try:
        unsub()
    except ValueError:
        print('passed')

asyncio.run(main())
";

#[test]
fn the_bus_of_operator_can_be_tried_without_a_host() {
    run_without_host(&format!("{PROVIDED}{TYPES}{BUS}"));
}

// A result of a subclass was taken for one of another event, and the call went through.
#[tokio::test]
async fn a_result_of_a_subclass_blocks_like_one_of_its_class() {
    let subclass = "class Deny(t.ToolCallEventResult):\n        def __init__(self, rule):\n            \
                    super().__init__(block=True, reason='by rule')\n            self.rule = rule\n    return Deny('r1')";
    let property = "class ToolCallEventResult:\n        @property\n        def block(self): return True\n        \
                    reason = 'by rule'\n    return ToolCallEventResult()";
    for body in [subclass, property] {
        let stage = stage("tool_call", &[body]).await;
        let outcome = stage.hooks().dispatch(call("ls")).await;
        assert!(outcome.failures().is_empty(), "{outcome:?}");
        assert_eq!(outcome.decision().reason(), Some("by rule"), "{body}");
    }
}

#[tokio::test]
async fn a_result_with_blocked_instead_of_block_is_a_failure() {
    for body in [
        "result = t.ToolCallEventResult()\n    result.blocked = True\n    return result",
        "return t.ToolCallEventResult(blocked=True)",
        "class Deny(t.ToolCallEventResult):\n        blocked = True\n    return Deny()",
        "class ToolCallEventResult:\n        blocked = True\n    return ToolCallEventResult()",
    ] {
        let stage = stage("tool_call", &[body]).await;
        let outcome = stage.hooks().dispatch(call("ls")).await;
        let failures = format!("{:?}", outcome.failures());
        assert!(failures.contains("blocked"), "{body}: {failures}");
    }
}
