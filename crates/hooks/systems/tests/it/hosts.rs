//! Coding agents as hosts: recorded events are read, and verdicts are written in the host's form.
//!
//! `hosts/<name>/*.json` are events that the real agent sent. `read.txt` and `answers.txt` next to them are
//! what is expected.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};
use tenterhook_engine::{Decision, EventKind, EventName, StopKind, ToolNames, ToolResult};
use tenterhook_protocol::JsonObject;
use tenterhook_systems::HOSTS;
use tenterhook_systems::form::FormError;
use tenterhook_systems::host::capability::Support;
use tenterhook_systems::host::installation::{HookPlace, PlaceForm};
use tenterhook_systems::host::verdict::HostVerdict;
use tenterhook_systems::host::{
    EventRole, HostAgent, HostCall, HostEvent, HostInput, HostMode, HostedEvent,
};

use crate::compare;

/// An event that a real agent sent.
#[derive(Debug, Deserialize)]
struct Recorded {
    event: String,
    variables: std::collections::BTreeMap<String, String>,
    input: JsonObject,
}

impl Recorded {
    fn variables(&self) -> Vec<(String, String)> {
        self.variables.clone().into_iter().collect()
    }
}

fn folder(host: &HostAgent) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/it/hosts")
        .join(host.name)
}

/// Returns the recorded events of a host with the names of their files.
fn recorded(host: &HostAgent) -> Vec<(String, Recorded)> {
    let mut found = Vec::new();
    let folder = folder(host);
    assert!(
        folder.exists(),
        "{} is missing: record events of {} there",
        folder.display(),
        host.title
    );
    for file in fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|it| it == "json") {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let text = fs::read_to_string(&path).unwrap();
            found.push((name, serde_json::from_str(&text).unwrap()));
        }
    }
    found.sort_by(|(a, _), (b, _)| a.cmp(b));
    found
}

fn read(host: &HostAgent, recorded: &Recorded) -> HostCall {
    let event = host.event(&recorded.event).unwrap();
    let variables = recorded.variables();
    let input = HostInput {
        object: &recorded.input,
        variables: &variables,
    };
    (host.read)(event, &input).unwrap()
}

#[test]
fn every_recorded_event_is_read_as_the_right_event() {
    for host in HOSTS {
        let mut text = String::new();
        for (name, recorded) in recorded(host) {
            let call = read(host, &recorded);
            let kind = host.event(&recorded.event).unwrap().kind;
            let origin = &call.origin;
            assert_eq!(origin.cwd, Path::new("/w/work"), "{} {name}", host.name);
            assert!(!origin.session_id.as_str().is_empty(), "{name}");
            writeln!(text, "{name} ({:?})", call.mode).unwrap();
            describe(&mut text, host, kind, &call.event);
            let extra: Vec<&str> = origin.extra.keys().map(String::as_str).collect();
            writeln!(text, "  extra: {}", extra.join(", ")).unwrap();
        }
        compare(&folder(host).join("read.txt"), &text);
    }
}

fn describe(text: &mut String, host: &HostAgent, kind: EventKind, event: &HostedEvent) {
    match event {
        HostedEvent::ToolCall(call) => {
            assert_eq!(kind, EventKind::PreToolUse);
            let input = call.arguments.as_object().unwrap();
            let operations = host.tools.operations(&call.name, input).unwrap().unwrap();
            writeln!(text, "  {} {} {}", call.id, call.name, call.arguments).unwrap();
            for operation in operations {
                let input = Value::Object(operation.input);
                writeln!(text, "  is {} {input}", operation.tool).unwrap();
            }
        }
        HostedEvent::ToolResult {
            call,
            result,
            duration_ms,
        } => {
            assert_eq!(kind, EventKind::PostToolUse);
            let error = if result.is_error { "error " } else { "" };
            writeln!(text, "  {} {} took {duration_ms:?}", call.id, call.name).unwrap();
            writeln!(text, "  {error}{:?}", result.joined_text()).unwrap();
        }
        HostedEvent::Repeated => writeln!(text, "  repeated").unwrap(),
        HostedEvent::Other(event) => {
            assert_eq!(event.info().kind, kind);
            let payload = Value::Object(event.payload().unwrap());
            writeln!(text, "  {} {payload}", event.name()).unwrap();
        }
    }
}

use EventRole::{Observer, OtherGate, PromptGate, Stop, ToolGate, ToolResult as Results};

const GATES: &[EventRole] = &[ToolGate, PromptGate, OtherGate];
const TEXTS: &[EventRole] = &[ToolGate, PromptGate, Results, Observer];
const ANY: &[EventRole] = &[ToolGate, PromptGate, OtherGate, Results, Stop, Observer];

/// The name of a verdict, the roles of events for which it makes sense, and its effects.
type Row = (&'static str, &'static [EventRole], fn(&mut HostVerdict));

const VERDICTS: &[Row] = &[
    ("none", ANY, |_| {}),
    ("deny", GATES, deny),
    ("deny with everything", &[ToolGate], |it| {
        deny(it);
        allow(it);
        rewrite(it);
        add_context(it);
        it.stop_run = Some("enough".to_owned());
        it.notices = vec!["a notice".to_owned()];
    }),
    ("ask", &[ToolGate], |it| {
        it.decision = Decision::Ask {
            reason: "is this wanted?".to_owned(),
            by: None,
        };
    }),
    ("allow", &[ToolGate], allow),
    ("rewrite", &[ToolGate], rewrite),
    ("allow and rewrite", &[ToolGate], |it| {
        allow(it);
        rewrite(it);
    }),
    ("context", TEXTS, add_context),
    ("rewrite prompt", &[PromptGate], |it| {
        it.prompt = Some("another prompt".to_owned());
    }),
    ("replace", &[Results], replace),
    ("withhold", &[Results], |it| {
        replace(it);
        it.is_withheld = true;
    }),
    ("replace with context", &[Results], |it| {
        replace(it);
        add_context(it);
    }),
    ("continue", &[Stop], |it| {
        it.follow_up = vec!["run the tests".to_owned()];
    }),
    ("stop the run", ANY, |it| {
        it.stop_run = Some("enough".to_owned());
    }),
    ("notice", ANY, |it| it.notices = vec!["a notice".to_owned()]),
];

fn deny(verdict: &mut HostVerdict) {
    verdict.decision = Decision::Stop {
        reason: "no sudo here".to_owned(),
        by: None,
        kind: StopKind::Denied,
    };
}

fn allow(verdict: &mut HostVerdict) {
    verdict.is_allowed = true;
}

fn rewrite(verdict: &mut HostVerdict) {
    verdict.input = json!({ "command": "echo changed" }).as_object().cloned();
}

fn add_context(verdict: &mut HostVerdict) {
    verdict.context = vec!["first".to_owned(), "second".to_owned()];
}

fn replace(verdict: &mut HostVerdict) {
    verdict.result = Some(ToolResult::text("hidden"));
}

/// Returns an input of an event: the first recorded one, or an empty one.
fn input_of<'a>(
    events: &'a [(String, Recorded)],
    event: &HostEvent,
    empty: &'a JsonObject,
) -> &'a JsonObject {
    let mut events = events.iter();
    let found = events.find(|(_, recorded)| recorded.event == event.name);
    found.map_or(empty, |(_, recorded)| &recorded.input)
}

#[test]
fn every_effect_is_written_in_the_form_of_the_host() {
    let empty = JsonObject::new();
    for host in HOSTS {
        let events = recorded(host);
        let mut text = String::new();
        for event in host.events {
            let object = input_of(&events, event, &empty);
            let input = HostInput {
                object,
                variables: &[],
            };
            writeln!(text, "# {}", event.name).unwrap();
            for (name, roles, effects) in VERDICTS {
                if !roles.contains(&event.role) {
                    continue;
                }
                let mut verdict = HostVerdict::default();
                effects(&mut verdict);
                let modes = [HostMode::Headless, HostMode::Interactive];
                let [headless, interactive] =
                    modes.map(|mode| answer(host, event, &input, mode, &verdict));
                if headless == interactive {
                    writeln!(text, "{name}: {headless}").unwrap();
                } else {
                    writeln!(text, "{name}, headless: {headless}").unwrap();
                    writeln!(text, "{name}, interactive: {interactive}").unwrap();
                }
            }
            let failure = host.failure_answer(event, "the guard failed");
            let printed = printed(&failure);
            writeln!(text, "failure: {printed}\n").unwrap();
        }
        compare(&folder(host).join("answers.txt"), &text);
    }
}

fn answer(
    host: &HostAgent,
    event: &HostEvent,
    input: &HostInput<'_>,
    mode: HostMode,
    verdict: &HostVerdict,
) -> String {
    let (answer, downgrades) = host.answer(event, input, mode, verdict.clone());
    let mut text = printed(&answer);
    for downgrade in downgrades {
        let effect = downgrade.effect;
        write!(text, "\n  {effect:?}: {}", downgrade.instead).unwrap();
    }
    text
}

fn printed(answer: &tenterhook_systems::host::answer::HostAnswer) -> String {
    let mut text = match answer.stdout.as_str() {
        "" => "nothing".to_owned(),
        stdout => stdout.trim_end().to_owned(),
    };
    if answer.status != 0 || !answer.stderr.is_empty() {
        let stderr = answer.stderr.trim_end();
        write!(text, " (status {}, stderr {stderr:?})", answer.status).unwrap();
    }
    text
}

#[test]
fn a_failure_stops_every_gate_and_nothing_else() {
    for host in HOSTS {
        for event in host.events {
            let answer = host.failure_answer(event, "the guard failed");
            let says_why = answer.stdout.contains("the guard failed")
                || answer.stderr.contains("the guard failed");
            assert_eq!(
                says_why,
                event.role.is_gate(),
                "{} {}: {answer:?}",
                host.name,
                event.name
            );
        }
    }
}

#[test]
fn capability_rows_name_events_of_the_host_and_do_not_contradict_one_another() {
    for host in HOSTS {
        let mut seen = Vec::new();
        for row in host.capabilities {
            assert!(
                host.event(row.event).is_some(),
                "{} {}",
                host.name,
                row.event
            );
            let key = (row.event, row.effect);
            let same = |(known, mode): &((&str, _), Option<HostMode>)| {
                *known == key && (mode.is_none() || row.mode.is_none() || *mode == row.mode)
            };
            assert!(!seen.iter().any(same), "{}: {row:?} twice", host.name);
            seen.push((key, row.mode));
        }
    }
}

#[test]
fn every_gate_of_a_host_can_be_stopped() {
    use tenterhook_systems::host::capability::HostEffect::{BlockPrompt, Deny};
    for host in HOSTS {
        for event in host.events.iter().filter(|event| event.role.is_gate()) {
            let is_prompt = event.role == PromptGate;
            let effect = if is_prompt { BlockPrompt } else { Deny };
            // In one of the modes the event may never fire.
            let modes = [HostMode::Headless, HostMode::Interactive];
            let mut support = modes
                .map(|mode| host.support(event.name, mode, effect))
                .into_iter();
            let is_honoured = support.any(|support| support == Support::Honoured);
            assert!(is_honoured, "{} {}", host.name, event.name);
        }
    }
}

#[test]
fn the_entries_of_every_event_are_written_for_the_configuration_of_the_host() {
    for host in HOSTS {
        let mut text = String::new();
        let installation = host.installation;
        let places = [
            ("user", installation.user),
            ("project", installation.project),
        ];
        for (name, place) in places {
            let Some(HookPlace { path, form, .. }) = place else {
                writeln!(text, "{name}: none\n").unwrap();
                continue;
            };
            writeln!(text, "{name}: {path}").unwrap();
            write_entries(&mut text, host, form);
        }
        compare(&folder(host).join("installation.txt"), &text);
    }
}

fn write_entries(text: &mut String, host: &HostAgent, form: PlaceForm) {
    let line = |event: &HostEvent| format!("/data/shim {} {}", host.name, event.name);
    match form {
        PlaceForm::Json { entry, .. } | PlaceForm::Toml { entry, .. } => {
            for event in host.events {
                writeln!(text, "{}", entry(event, &line(event))).unwrap();
            }
        }
        PlaceForm::Own { files } => {
            for file in files("/my data/shim") {
                let kind = if file.is_executable {
                    " (executable)"
                } else {
                    ""
                };
                writeln!(text, "file {:?}{kind}\n{}", file.path, file.text).unwrap();
            }
        }
    }
    text.push('\n');
}

/// A host, its call, and the canonical operations.
const OPERATIONS: &str = r#"[
["claude-code", "Bash", {"command": "ls", "timeout": 120000}, [["shell", {"cmd": "ls", "timeout": 120}]]],
["claude-code", "Bash", {"command": "ls", "timeout": 1500, "description": "x"}, [["shell", {"cmd": "ls", "timeout": 1.5, "description": "x"}]]],
["claude-code", "Edit", {"file_path": "/a", "old_string": "1", "new_string": "2", "replace_all": false}, [["edit_file", {"path": "/a", "old_text": "1", "new_text": "2", "replace_all": false}]]],
["claude-code", "Agent", {"prompt": "do", "subagent_type": "Explore", "description": "d"}, [["task", {"prompt": "do", "agent": "Explore", "description": "d"}]]],
["codex", "apply_patch", {"command": "*** Begin Patch\n*** Update File: b\n@@\n-2\n+3\n*** Delete File: c\n*** End Patch\n"}, [["edit_file", {"path": "b", "old_text": "2", "new_text": "3"}], ["delete_file", {"path": "c"}]]],
["copilot", "view", {"path": "a", "view_range": [1, 5]}, [["read_file", {"path": "a", "view_range": [1, 5]}]]],
["copilot", "grep", {"pattern": "x", "paths": "src"}, [["search", {"pattern": "x", "path": "src"}]]],
["copilot", "grep", {"pattern": "x", "paths": ["a", "b"]}, [["search", {"pattern": "x", "path": "a"}], ["search", {"pattern": "x", "path": "b"}]]],
["copilot", "glob", {"pattern": "*.rs"}, [["find_files", {"pattern": "*.rs"}]]],
["droid", "MultiEdit", {"file_path": "a", "changes": [{"old_str": "1", "new_str": "2"}, {"old_str": "3", "new_str": "4"}]}, [["edit_file", {"path": "a", "old_text": "1", "new_text": "2"}], ["edit_file", {"path": "a", "old_text": "3", "new_text": "4"}]]],
["droid", "Glob", {"patterns": ["*.rs"], "folder": "src"}, [["find_files", {"pattern": "*.rs", "path": "src"}]]],
["kimi", "Read", {"path": "a", "line_offset": 3, "n_lines": 2}, [["read_file", {"path": "a", "offset": 3, "limit": 2}]]],
["qwen", "read_file", {"file_path": "/a", "offset": 2, "limit": 2}, [["read_file", {"path": "/a", "offset": 3, "limit": 2}]]]
]"#;

type Translated = (String, String, Value, Vec<(String, Value)>);

#[test]
fn calls_of_hosts_become_canonical_operations() {
    let table: Vec<Translated> = serde_json::from_str(OPERATIONS).unwrap();
    for (host, tool, input, expected) in table {
        let host = HostAgent::by_name(&host).unwrap();
        let input = input.as_object().unwrap();
        let found = host.tools.operations(&tool, input).unwrap().unwrap();
        let found = found
            .into_iter()
            .map(|it| (it.tool, Value::Object(it.input)));
        assert_eq!(found.collect::<Vec<_>>(), expected, "{} {tool}", host.name);
    }
}

#[test]
fn a_wrapped_call_that_cannot_be_read_is_an_error_so_that_the_gate_denies() {
    let host = HostAgent::by_name("qwen").unwrap();
    let event = host.event("PreToolUse").unwrap();
    let read = |input: Value| {
        let payload = json!({
            "session_id": "s1", "cwd": "/w", "hook_event_name": "PreToolUse",
            "tool_name": "tool_call", "tool_input": input, "tool_use_id": "t1",
        });
        let object = payload.as_object().unwrap();
        let input = HostInput {
            object,
            variables: &[],
        };
        (host.read)(event, &input).map(|call| call.event)
    };
    let inner = json!({"name": "run_shell_command", "arguments": {"command": "ls"}});
    let HostedEvent::ToolCall(call) = read(inner).unwrap() else {
        panic!("not a call");
    };
    assert_eq!(call.name, "run_shell_command");
    for unreadable in [
        json!({"name": "run_shell_command", "arguments": "{\"command\": \"ls\"}"}),
        json!({"name": "run_shell_command", "arguments": ["ls"]}),
        json!({"name": "run_shell_command"}),
        json!({"name": 7, "arguments": {}}),
    ] {
        let problem = read(unreadable).unwrap_err().to_string();
        assert!(problem.contains("`tool_call`"), "{problem}");
    }
}

#[test]
fn every_recorded_event_is_read_back_as_an_event_of_the_catalogue() {
    for host in HOSTS {
        for (name, recorded) in recorded(host) {
            let kind = host.event(&recorded.event).unwrap().kind;
            let read = host.read_back(&EventName::Known(kind), &recorded.input);
            // An agent announces a prompt again, or says its folder only in a variable.
            let is_expected = |problem: &str| {
                problem.contains("repeats")
                    || problem.contains("`cwd` is missing") && !recorded.variables.is_empty()
            };
            let read = match read {
                Err(FormError::Invalid { problem, .. }) if is_expected(&problem) => continue,
                read => read.unwrap_or_else(|error| panic!("{} {name}: {error:?}", host.name)),
            };
            assert_eq!(
                read.origin.cwd,
                Path::new("/w/work"),
                "{} {name}",
                host.name
            );
            if let HostedEvent::ToolCall(call) = self::read(host, &recorded).event {
                let payload = read.event.payload().unwrap();
                assert_eq!(payload["tool_name"], call.name, "{} {name}", host.name);
                assert_eq!(payload["tool_input"], call.arguments);
                let guard =
                    host.read_back(&EventName::Known(EventKind::ToolGuard), &recorded.input);
                assert_eq!(
                    guard.unwrap().event.payload().unwrap()["tool_name"],
                    call.name
                );
            }
        }
    }
}

#[test]
fn an_event_of_an_agent_that_is_another_one_is_refused() {
    let host = HostAgent::by_name("claude-code").unwrap();
    let payload = json!({"hook_event_name": "PostToolUse", "tool_name": "Bash"});
    let object = payload.as_object().unwrap();
    let refusal = |kind| host.read_back(&EventName::Known(kind), object).unwrap_err();
    let FormError::OtherEvent { expected, .. } = refusal(EventKind::PreToolUse) else {
        panic!("read as the wrong event");
    };
    assert_eq!(expected, ["PreToolUse"]);
    let FormError::NoSuchEvent { available, .. } = refusal(EventKind::TokenBudgetExceeded) else {
        panic!("read as an event that the agent does not have");
    };
    assert!(available.contains(&"pre_tool_use"), "{available:?}");
}

/// Returns the result that Claude Code gets if a hook changes the text of a tool's result to hide something.
fn claude_result(response: &Value, change: fn(&str) -> String) -> Value {
    let host = HostAgent::by_name("claude-code").unwrap();
    let event = host.event("PostToolUse").unwrap();
    let payload = json!({
        "session_id": "s", "cwd": "/w", "hook_event_name": "PostToolUse",
        "tool_name": "Tool", "tool_input": {}, "tool_response": response,
    });
    let input = HostInput {
        object: payload.as_object().unwrap(),
        variables: &[],
    };
    let result = match (host.read)(event, &input).unwrap().event {
        HostedEvent::ToolResult { result, .. } => Some(result),
        HostedEvent::ToolCall(_) | HostedEvent::Other(_) | HostedEvent::Repeated => None,
    };
    let result = result.unwrap();
    let verdict = HostVerdict {
        result: Some(ToolResult::text(change(&result.joined_text()))),
        is_withheld: true,
        ..HostVerdict::default()
    };
    let (answer, downgrades) = host.answer(event, &input, HostMode::Headless, verdict);
    assert!(downgrades.is_empty(), "{response}: {downgrades:?}");
    let answer: Value = serde_json::from_str(&answer.stdout).unwrap();
    let replaced = answer.pointer("/hookSpecificOutput/updatedToolOutput");
    replaced.unwrap().clone()
}

#[test]
fn a_secret_is_removed_from_the_results_of_all_tools_of_claude_code() {
    let grep = |text: &str| json!({"mode": "content", "numFiles": 0, "filenames": [], "content": text, "numLines": 1});
    let glob = |files: &[&str]| json!({"filenames": files, "numFiles": 2, "truncated": false});
    let page = |text: &str| json!({"bytes": 9, "code": 200, "result": text, "url": "http://x"});
    let blocks = |text: &str| json!([{"type": "text", "text": text}]);
    let agent = |text: &str| json!({"status": "completed", "prompt": "p", "content": blocks(text)});
    let file = |text: &str| json!({"type": "text", "file": {"filePath": "/a", "content": text}});
    let structured = |text: &str| json!(format!("{{\"value\": \"{text}\"}}"));
    for (tool, response, redacted, hidden) in [
        ("Grep", grep("a: s3cret"), grep("a: ***"), grep("hidden")),
        (
            "Glob",
            glob(&["/s3cret", "/b"]),
            glob(&["/***", "/b"]),
            glob(&["hidden"]),
        ),
        ("WebFetch", page("s3cret"), page("***"), page("hidden")),
        ("Agent", agent("s3cret"), agent("***"), agent("hidden")),
        ("MCP", blocks("s3cret"), blocks("***"), blocks("hidden")),
        (
            "structured MCP",
            structured("s3cret"),
            structured("***"),
            json!("hidden"),
        ),
        ("Read", file("s3cret"), file("***"), file("hidden")),
    ] {
        let redact = |text: &str| text.replace("s3cret", "***");
        assert_eq!(claude_result(&response, redact), redacted, "{tool}");
        assert_eq!(
            claude_result(&response, |_| "hidden".to_owned()),
            hidden,
            "{tool}"
        );
    }
    let unknown = |text: &str| json!({"taskId": text, "n": 1, "more": {"x": [text]}});
    let changed = claude_result(&unknown("s3cret"), |text| text.replace("s3cret", "***"));
    assert_eq!(changed, unknown("***"));
}

#[test]
fn a_redacted_secret_never_reaches_a_script_of_codex() {
    let host = HostAgent::by_name("codex").unwrap();
    let event = host.event("PostToolUse").unwrap();
    // The second id is one of a call that a script of the model makes. The block throws in the script.
    for id in ["call_1", "exec-1"] {
        let payload = json!({
            "session_id": "s", "cwd": "/w", "hook_event_name": "PostToolUse", "tool_name": "Bash",
            "tool_input": {"command": "ls"}, "tool_response": "s3cret", "tool_use_id": id,
        });
        let input = HostInput {
            object: payload.as_object().unwrap(),
            variables: &[],
        };
        let verdict = HostVerdict {
            result: Some(ToolResult::text("***")),
            is_withheld: true,
            ..HostVerdict::default()
        };
        let (answer, downgrades) = host.answer(event, &input, HostMode::Headless, verdict);
        let printed: Value = serde_json::from_str(&answer.stdout).unwrap();
        assert_eq!(printed["decision"], "block", "{answer:?}");
        assert_eq!(printed["reason"], "***", "{answer:?}");
        assert!(downgrades.is_empty(), "{downgrades:?}");
    }
}

#[test]
fn hooks_of_results_are_lost_exactly_in_hosts_that_keep_their_own_results() {
    let lost = |host: &&&HostAgent| host.lost_event(EventKind::ToolResponseTransform).is_some();
    let names: Vec<&str> = HOSTS.iter().filter(lost).map(|host| host.name).collect();
    assert_eq!(
        names,
        ["cline", "droid", "goose", "kimi", "qwen"],
        "a new host is in this list if it cannot replace the result of a tool"
    );
    for host in HOSTS {
        assert_eq!(
            host.lost_event(EventKind::PreToolUse),
            None,
            "{}",
            host.name
        );
        if let Some(lost) = host.lost_event(EventKind::ToolResponseTransform) {
            assert!(lost.instead.contains("`pre_tool_use`"), "{lost:?}");
        }
    }
}
