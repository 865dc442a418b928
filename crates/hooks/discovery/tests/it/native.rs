//! Native hook files.

use std::path::Path;
use std::time::Duration;

use tenterhook_discovery::{LoadOptions, load_text};
use tenterhook_engine::event::PreToolUse;
use tenterhook_engine::{Engine, EventKind, Layer, OnError, Origin, Phase, Scope};

use crate::{load, loaded, options};

const YAML: &str = r#"
version: 1
defaults: {timeout: 5, on_error: warn, shell: bash, working_dir: /, env: {A: "1"}}
hooks:
  - name: no-sudo
    event: pre_tool_use
    matcher: "shell|edit_file"
    command: cat --fast
    shell: sh
    timeout: 500ms
    working_dir: /tmp
    env: {B: "v-${env.T}"}
    on_error: block
    phase: transform
    priority: -3
    strict_output: true
    agent: researcher
  - event: [stop, turn_end]
    argv: [cat, -n]
  - event: turn_start
    builtin: add_prompt_files
    args: [NOTES.md]
  - event: x-acme.deploy
    command: cat
"#;

const TOML: &str = r#"
version = 1

[defaults]
timeout = 5
on_error = "warn"
shell = "bash"
working_dir = "/"
env = { A = "1" }

[[hooks]]
name = "no-sudo"
event = "pre_tool_use"
matcher = "shell|edit_file"
command = "cat --fast"
shell = "sh"
timeout = 0.5
working_dir = "/tmp"
env.B = "v-${env.T}"
on_error = "block"
phase = "transform"
priority = -3
strict_output = true
agent = "researcher"

[[hooks]]
event = ["stop", "turn_end"]
argv = ["cat", "-n"]

[[hooks]]
event = "turn_start"
builtin = "add_prompt_files"
args = ["NOTES.md"]

[[hooks]]
event = "x-acme.deploy"
command = "cat"
"#;

const JSON: &str = r#"
{
  "version": 1,
  "defaults": {"timeout": "5s", "on_error": "warn", "shell": "bash", "working_dir": "/", "env": {"A": "1"}},
  "hooks": [
    {"name": "no-sudo", "event": "pre_tool_use", "matcher": "shell|edit_file", "command": "cat --fast",
     "shell": "sh", "timeout": "0.5s", "working_dir": "/tmp", "env": {"B": "v-${env.T}"}, "on_error": "block",
     "phase": "transform", "priority": -3, "strict_output": true, "agent": "researcher"},
    {"event": ["stop", "turn_end"], "argv": ["cat", "-n"]},
    {"event": "turn_start", "builtin": "add_prompt_files", "args": ["NOTES.md"]},
    {"event": "x-acme.deploy", "command": "cat"}
  ]
}
"#;

#[test]
fn every_key_of_a_hook_arrives() {
    let specs = loaded("hooks.yaml", YAML).specs;
    let first = &specs[0];
    assert_eq!(first.id.as_str(), "no-sudo");
    assert_eq!(first.event, Some(EventKind::PreToolUse.into()));
    assert_eq!(first.matcher.as_str(), "shell|edit_file");
    assert_eq!(first.timeout, Duration::from_millis(500));
    assert_eq!(first.phase, Phase::Transform);
    assert_eq!(first.priority, -3);
    assert_eq!(first.agent.as_deref(), Some("researcher"));
    assert_eq!(first.policy.on_error, OnError::Block);
    assert_eq!(first.handling.kind(), "command");
    assert_eq!(first.handling.describe(), "cat --fast");
    assert_eq!(first.source.to_string(), "hooks.yaml:5");
    assert_eq!(first.source.layer, Layer::Project);
    assert_eq!(
        first.definition.as_deref(),
        Some(
            r#"{"file":"native","name":"no-sudo","timeout":0.5,"working_dir":"/tmp","env":{"A":"1","B":"v-${env.T}"},"on_error":"block","strict_output":true,"phase":"transform","priority":-3,"agent":"researcher","shell":"sh","command":"cat --fast"}"#
        )
    );
    let rest: Vec<_> = specs[1..]
        .iter()
        .map(|spec| {
            (
                spec.id.as_str(),
                spec.handling.describe(),
                spec.policy.on_error,
            )
        })
        .collect();
    assert_eq!(
        rest,
        [
            ("stop#1", "cat -n".to_owned(), OnError::Warn),
            ("turn_end#1", "cat -n".to_owned(), OnError::Warn),
            (
                "turn_start#1",
                "add_prompt_files NOTES.md".to_owned(),
                OnError::Warn
            ),
            ("x-acme.deploy#1", "cat".to_owned(), OnError::Warn),
        ]
    );
}

#[test]
fn the_three_formats_say_the_same() {
    let [yaml, toml, json] =
        [("a.yaml", YAML), ("a.toml", TOML), ("a.json", JSON)].map(|(path, text)| -> Vec<_> {
            let specs = loaded(path, text).specs.into_iter();
            specs
                .map(|spec| (spec.id, spec.event, spec.definition, spec.timeout))
                .collect()
        });
    assert_eq!(yaml, toml);
    assert_eq!(yaml, json);
}

#[test]
fn a_gate_that_says_nothing_blocks_and_an_observer_warns() {
    let specs = loaded(
        "hooks.yaml",
        "hooks: [{event: [pre_tool_use, turn_end], command: cat}]",
    )
    .specs;
    let found: Vec<_> = specs.iter().map(|spec| spec.policy.on_error).collect();
    assert_eq!(found, [OnError::Block, OnError::Warn]);
    assert_eq!(specs[0].timeout, Duration::from_mins(1));
}

#[test]
fn a_default_of_block_is_for_gates_only() {
    let specs = loaded(
        "hooks.yaml",
        "{defaults: {on_error: block}, hooks: [{event: [post_tool_use, turn_end], command: cat}]}",
    )
    .specs;
    let found: Vec<_> = specs.iter().map(|spec| spec.policy.on_error).collect();
    assert_eq!(found, [OnError::Block, OnError::Warn]);
}

#[test]
fn files_without_hooks_have_none() {
    for (path, text) in [
        ("hooks.yaml", ""),
        ("hooks.yaml", "# nothing yet\n"),
        ("hooks.yaml", "hooks:\ndefaults:\n"),
        ("hooks.yaml", "version: 1"),
        ("hooks.toml", ""),
        ("hooks.json", "{}"),
        ("hooks.json", "null"),
    ] {
        assert!(loaded(path, text).specs.is_empty(), "{path} {text}");
    }
}

#[test]
fn anchors_and_merge_keys_are_followed() {
    let specs = loaded(
        "hooks.yaml",
        "
hooks:
  - &base
    event: pre_tool_use
    matcher: shell
    command: cat
  - <<: *base
    matcher: read_file
  - <<: [{matcher: edit_file}, *base]
    timeout: 3
",
    )
    .specs;
    let found: Vec<_> = specs
        .iter()
        .map(|spec| (spec.id.as_str(), spec.matcher.as_str(), spec.source.line))
        .collect();
    assert_eq!(
        found,
        [
            ("pre_tool_use#1", "shell", Some(4)),
            ("pre_tool_use#2", "read_file", Some(7)),
            ("pre_tool_use#3", "edit_file", Some(9)),
        ]
    );
}

#[test]
fn a_second_merge_key_is_a_duplicate_key() {
    let text = "hooks:\n  - &a {event: stop, command: cat}\n  - <<: *a\n    name: b\n    <<: {on_error: ignore}\n";
    let options = options();
    let error = load_text(Path::new("hooks.yaml"), text, Layer::Explicit, &options).unwrap_err();
    let error = &error.problems[0].message;
    assert!(
        error.contains("duplicate key `<<`, first on line 3"),
        "{error}"
    );
}

#[test]
fn a_file_of_aliases_does_not_grow_without_bounds() {
    let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for level in 1..20 {
        let before = format!("*a{}, ", level - 1).repeat(9);
        text.extend([format!("a{level}: &a{level} [{before}]\n")]);
    }
    let error = load("hooks.yaml", &text).expect_err("too much");
    let messages: Vec<_> = error.problems.iter().map(|p| p.message.as_str()).collect();
    assert!(
        messages.contains(&"the aliases in the file expand to too much data"),
        "{messages:?}"
    );
    let inside = load("hooks.yaml", "hooks: &a [*a]").expect_err("endless");
    assert_eq!(
        inside.problems[0].message,
        "the alias refers to a value that contains it"
    );
}

#[test]
fn nesting_is_bounded_in_every_format() {
    for (path, open, close) in [
        ("hooks.yaml", "[", "]"),
        ("hooks.json", "[", "]"),
        ("hooks.json", "{\"a\":", "}"),
        ("hooks.toml", "a = [", "]"),
    ] {
        let (first, rest) = (open, open.trim_start_matches("a = "));
        for depth in [100, 100_000] {
            let middle = if open.ends_with(':') { "1" } else { "" };
            let text = format!(
                "{first}{}{middle}{}",
                rest.repeat(depth),
                close.repeat(depth + 1)
            );
            assert!(load(path, &text).is_err(), "{path} {open} {depth}");
        }
    }
}

#[test]
fn numbers_and_booleans_are_taken_as_they_are_written_where_texts_are_expected() {
    let specs = loaded(
        "hooks.yaml",
        "hooks: [{event: stop, argv: [cat, 1.50, true], env: {PORT: 0x1F, DEBUG: true}}]",
    )
    .specs;
    assert_eq!(specs[0].handling.describe(), "cat 1.50 true");
    let definition = specs[0].definition.as_deref().unwrap();
    assert!(
        definition.contains(r#""env":{"DEBUG":"true","PORT":"0x1F"}"#),
        "{definition}"
    );
}

#[test]
fn definitions_differ_in_everything_that_makes_a_hook_run_differently() {
    let base = "event: pre_tool_use, command: cat";
    for (one, other, same) in [
        ("", "", true),
        ("timeout: 10", "timeout: 10s", true),
        ("timeout: 60", "", false),
        ("phase: main", "", true),
        ("phase: guard", "", false),
        ("priority: 1", "", false),
        ("agent: a", "agent: b", false),
        ("shell: sh", "", true),
        ("shell: bash", "", false),
        ("matcher: shell", "matcher: read", true),
        ("env: {A: a, B: b}", "env: {B: b, A: a}", true),
    ] {
        let specs = loaded(
            "hooks.yaml",
            &format!("hooks: [{{{base}, {one}}}, {{{base}, matcher: x, {other}}}]")
                .replace("matcher: x, matcher", "matcher"),
        )
        .specs;
        let [first, second] = specs.as_slice() else {
            panic!("{one} {other}");
        };
        assert_eq!(
            first.definition == second.definition,
            same,
            "`{one}` and `{other}`"
        );
    }
}

#[test]
fn built_ins_for_speech_run_before_other_hooks() {
    for (phase, expected) in [
        ("", Phase::Transform),
        ("phase: guard,", Phase::Guard),
        ("phase: main,", Phase::Main),
    ] {
        let args = "args: [engine=openai, \"base_url=http://127.0.0.1:9/v1\"]";
        let hook = format!("event: message_receive, builtin: stt, {phase} {args}");
        let specs = loaded("hooks.yaml", &format!("hooks: [{{{hook}}}]")).specs;
        let phases: Vec<Phase> = specs.iter().map(|spec| spec.phase).collect();
        assert_eq!(phases, [expected], "{phase}");
    }
}

#[test]
fn a_working_directory_that_is_empty_after_expansion_is_warned_of() {
    let loaded = load(
        "hooks.yaml",
        "hooks: [{event: stop, command: cat, working_dir: $NONE}]",
    )
    .unwrap();
    let warnings: Vec<_> = loaded.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        ["hooks.yaml:1:50: `working_dir: $NONE` expands to an empty path"]
    );
}

/// Runs the hooks of a file on a tool call, and returns what stopped it.
async fn stopped(text: &str, options: &LoadOptions) -> Option<String> {
    let loaded = load_text(Path::new("hooks.yaml"), text, Layer::Project, options).unwrap();
    let engine = Engine::new();
    engine.scope(Scope::Global).replace(loaded.specs);
    let hooks = engine.dispatcher(Origin::new("", options.directory.clone()));
    let event = PreToolUse::new("shell");
    let outcome = hooks.dispatch(event).await;
    outcome.decision().reason().map(str::to_owned)
}

#[tokio::test]
async fn a_loaded_command_runs_with_its_variables_in_its_directory() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("scripts")).unwrap();
    let options = LoadOptions {
        directory: dir.path().to_owned(),
        ..options()
    };
    let text = "
defaults: {env: {A: default, B: default}}
hooks:
  - event: pre_tool_use
    command: printf '%s|%s|%s' \"$A\" \"$B\" \"$(basename \"$PWD\")\" >&2; exit 2
    working_dir: scripts
    env: {A: 'v-${env.T}-$A-$$'}
";
    let reason = stopped(text, &options).await;
    assert_eq!(reason.as_deref(), Some("v-token-$A-$$|default|scripts"));
}
