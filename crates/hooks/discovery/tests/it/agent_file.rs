//! Agent files of docker-agent.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use tenterhook_discovery::load_file;
use tenterhook_engine::{EventKind, EventName, HookSpec, Layer, OnError};
use tenterhook_hookfile::{AgentDefinition, Toolset, ToolsetKind};
use tenterhook_systems::docker_agent::EVENTS;

use crate::{load, loaded, options};

/// Loads `hooks`, a flow mapping, as the hooks of the root agent.
fn specs(hooks: &str) -> Vec<HookSpec> {
    let text = format!("agents: {{root: {{model: m, hooks: {hooks}}}}}");
    let loaded = load("agent.yaml", &text);
    loaded
        .unwrap_or_else(|error| panic!("{}", error.render(false)))
        .specs
}

fn messages(hooks: &str) -> Vec<String> {
    let text = format!("agents: {{root: {{hooks: {hooks}}}}}");
    let error = load("agent.yaml", &text).expect_err(hooks);
    error.problems.into_iter().map(|p| p.message).collect()
}

fn known(spec: &HookSpec) -> EventKind {
    spec.event.as_ref().map(EventName::kind).unwrap()
}

fn toolset(kind: ToolsetKind) -> Toolset {
    Toolset {
        kind,
        only: None,
        read_only: false,
        allow_list: Vec::new(),
        deny_list: Vec::new(),
    }
}

#[test]
fn a_file_with_all_documented_events_loads_as_it_is() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures/docker_agent.yaml");
    let loaded = load_file(&path, Layer::Project, &options())
        .unwrap_or_else(|error| panic!("{}", error.render(false)));
    assert_eq!(loaded.warnings, []);
    let events: BTreeSet<_> = loaded.specs.iter().map(known).collect();
    assert_eq!(events.len(), 19, "{events:?}");
    let found: Vec<_> = loaded
        .specs
        .iter()
        .map(|spec| {
            (
                spec.id.as_str(),
                spec.source.line.unwrap(),
                spec.timeout.as_secs(),
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            ("no privileges", 20, 10),
            ("pre_tool_use#2", 30, 10),
            ("count the output", 36, 10),
            ("permission_request#1", 48, 5),
            ("session_start#1", 56, 60),
            ("session_start#2", 58, 10),
            ("user_prompt_submit#1", 64, 5),
            ("turn_start#1", 68, 60),
            ("turn_start#2", 70, 60),
            ("turn_end#1", 76, 5),
            ("before_llm_call#1", 80, 5),
            ("after_llm_call#1", 84, 5),
            ("session_end#1", 88, 10),
            ("pre_compact#1", 94, 5),
            ("before_compaction#1", 100, 30),
            ("after_compaction#1", 106, 10),
            ("subagent_stop#1", 112, 5),
            ("on_user_input#1", 116, 60),
            ("stop#1", 121, 10),
            ("notification#1", 125, 10),
            ("on_error#1", 129, 10),
            ("on_max_iterations#1", 133, 10),
            ("reviewer.stop#1", 141, 60),
        ]
    );
    let [file] = loaded.agent_files.as_slice() else {
        panic!("{:?}", loaded.agent_files);
    };
    assert_eq!(
        file.root(),
        Some(&AgentDefinition {
            name: "root".to_owned(),
            model: Some("openai/gpt-4o".to_owned()),
            description: Some("Watches its own life from start to end.".to_owned()),
            instruction: Some(
                "Do what the user asks.\nUse the shell for everything that has to run.\n"
                    .to_owned()
            ),
            sub_agents: vec!["reviewer".to_owned()],
            toolsets: Some(vec![
                toolset(ToolsetKind::Shell),
                toolset(ToolsetKind::Filesystem),
            ]),
            ..AgentDefinition::default()
        })
    );
    assert_eq!(file.agents.len(), 2);
}

#[test]
fn a_timeout_of_zero_or_none_is_a_minute() {
    // D-1
    let specs = specs(
        "{stop: [{type: command, command: a.b, timeout: 0}, {type: command, command: a.b},
                 {type: command, command: a.b, timeout: 30}]}",
    );
    let seconds: Vec<_> = specs.iter().map(|spec| spec.timeout.as_secs()).collect();
    assert_eq!(seconds, [60, 60, 30]);
}

#[test]
fn matchers_look_at_the_whole_name_of_the_tool() {
    for (matcher, subject, matches) in [
        // D-2
        ("'*'", "shell", true),
        ("''", "shell", true),
        ("shell|edit_file", "edit_file", true),
        ("mcp__.*", "mcp__git", true),
        // D-3
        ("shell", "shell_job", false),
    ] {
        let specs = specs(&format!(
            "{{pre_tool_use: [{{matcher: {matcher}, hooks: [{{type: command, command: cat}}]}}]}}"
        ));
        assert_eq!(
            specs[0].matcher.matches(Some(subject)),
            matches,
            "{matcher}"
        );
    }
    let absent = specs("{pre_tool_use: [{hooks: [{type: command, command: cat}]}]}");
    assert!(absent[0].matcher.is_everything());
}

#[test]
fn mistakes_are_named_as_docker_agent_names_them() {
    let hook = "hooks: [{type: command, command: cat}]";
    for (hooks, expected) in [
        // D-4
        (
            format!("{{pre_tool_use: [{{matcher: '[', {hook}}}]}}"),
            "invalid matcher",
        ),
        // D-5
        (
            "{stop: [{type: command, command: cat, on_error: blok}]}".to_owned(),
            "`on_error` cannot",
        ),
        // D-6
        (
            "{stop: [{type: command, command: cat, on_error: block}]}".to_owned(),
            "not supported",
        ),
        // D-7
        (
            format!("{{post_tool_use: [{{preempt_yolo: false, {hook}}}]}}"),
            "only valid on `pre_tool_use`",
        ),
        (
            format!("{{tool_guard: [{{preempt_yolo: true, {hook}}}]}}"),
            "only valid on `pre_tool_use`",
        ),
        (
            format!("{{post_tool_use: [{{preempt_yolo: null, {hook}}}]}}"),
            "only valid on `pre_tool_use`",
        ),
        // D-8
        (
            "{stop: [{type: command, command: cat, timeout: -1}]}".to_owned(),
            "`timeout` cannot",
        ),
        (
            "{pre_tool_use: [{matcher: shell}]}".to_owned(),
            "at least one hook is required",
        ),
        ("{stop: [{type: evaluator}]}".to_owned(), "not available"),
        ("{stop: 5}".to_owned(), "`stop` cannot be `5`"),
        (
            "{pre_tool_use: {matcher: shell}}".to_owned(),
            "at least one hook is required",
        ),
        (
            "{pre_tool_use: shell}".to_owned(),
            "`pre_tool_use` cannot be the string `shell`",
        ),
    ] {
        let found = messages(&hooks);
        assert_eq!(found.len(), 1, "{hooks}: {found:?}");
        assert!(found[0].contains(expected), "{hooks}: {found:?}");
    }
}

#[test]
fn every_event_can_be_configured_and_lights_up_only_itself() {
    // D-9
    for event in EVENTS {
        let hook = "{type: command, command: cat}";
        let text = if event.has_matcher {
            format!("{{{}: [{{matcher: shell, hooks: [{hook}]}}]}}", event.name)
        } else {
            format!("{{{}: [{hook}]}}", event.name)
        };
        let found: Vec<_> = specs(&text).iter().map(known).collect();
        assert_eq!(found, [event.kind], "{}", event.name);
    }
}

#[test]
fn only_events_that_stop_something_take_a_block() {
    let blocking: Vec<_> = EVENTS
        .iter()
        .filter(|event| {
            let hook = "{type: command, command: cat, on_error: block}";
            let text = if event.has_matcher {
                format!("{}: [{{hooks: [{hook}]}}]", event.name)
            } else {
                format!("{}: [{hook}]", event.name)
            };
            load(
                "agent.yaml",
                &format!("agents: {{root: {{hooks: {{{text}}}}}}}"),
            )
            .is_ok()
        })
        .map(|event| event.name)
        .collect();
    let mut expected = vec![
        "pre_tool_use",
        "tool_input_transform",
        "tool_guard",
        "post_tool_use",
        "permission_request",
        "user_prompt_submit",
        "user_steering_messages_submit",
        "user_followup_submit",
        "before_llm_call",
        "pre_compact",
        "before_compaction",
        "worktree_create",
    ];
    expected.retain(|name| EVENTS.iter().any(|event| event.name == *name));
    assert_eq!(BTreeSet::from_iter(blocking), BTreeSet::from_iter(expected));
}

#[test]
fn a_file_without_hooks_has_none() {
    // D-10
    for text in [
        "agents:",
        "agents: {}",
        "agents: {root: null}",
        "agents: {root: {model: m}}",
        "agents: {root: {hooks: null}}",
        "agents: {root: {hooks: {}}}",
        "agents: {root: {hooks: {stop: null, pre_tool_use: []}}}",
    ] {
        assert!(loaded("agent.yaml", text).specs.is_empty(), "{text}");
    }
}

#[test]
fn an_identical_hook_of_an_event_is_dropped_with_a_warning() {
    // D-11
    let text = "
agents:
  root:
    hooks:
      turn_start:
        - {type: builtin, command: add_prompt_files, args: [a]}
        - {type: builtin, command: add_prompt_files, args: [a]}
        - {type: builtin, command: add_prompt_files, args: [b]}
        - {type: builtin, command: add_prompt_files}
";
    let loaded = load("agent.yaml", text).unwrap();
    let lines: Vec<_> = loaded.specs.iter().map(|spec| spec.source.line).collect();
    assert_eq!(lines, [Some(6), Some(8), Some(9)]);
    let warnings: Vec<_> = loaded.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        ["agent.yaml:7:11: the hook is the same as the one on line 6"]
    );
}

#[test]
fn hooks_are_the_same_only_if_every_field_is() {
    // D-12, D-13, D-14
    let base = "type: command, command: cat";
    for (one, other, same) in [
        ("", "", true),
        ("name: a", "name: b", false),
        ("name: a", "", false),
        ("name: ''", "", true),
        ("timeout: 60", "", false),
        ("timeout: 60", "timeout: 0", false),
        ("timeout: 5", "timeout: 5", true),
        ("on_error: warn", "", false),
        ("on_error: warn", "on_error: ignore", false),
        ("working_dir: a", "working_dir: b", false),
        ("working_dir: '$HOME'", "working_dir: /home/ada", false),
        ("strict_output: true", "", false),
        ("strict_output: false", "", true),
        ("env: {A: '1', B: '2'}", "env: {B: '2', A: '1'}", true),
        ("env: {A: '1'}", "env: {A: '2'}", false),
        ("env: {A: '${env.T}'}", "env: {A: token}", false),
        ("env: null", "env: {}", true),
        ("env: {}", "", true),
        ("args: null", "args: []", true),
        ("args: [a, b]", "args: [b, a]", false),
        ("args: ['']", "args: []", false),
        ("args: ['a b']", "args: [a, b]", false),
        ("args: [a, b]", "args: [a, b]", true),
        // D-16
        ("model: a", "model: b", false),
        ("prompt: a", "prompt: b", false),
        ("schema: a", "schema: b", false),
    ] {
        let specs = specs(&format!(
            "{{turn_start: [{{{base}, {one}}}], turn_end: [{{{base}, {other}}}]}}"
        ));
        assert!(specs[0].definition.is_some());
        assert_eq!(
            specs[0].definition == specs[1].definition,
            same,
            "`{one}` and `{other}`"
        );
    }
    let types = specs(
        "{turn_start: [{type: builtin, command: add_date}, {type: command, command: add_date}]}",
    );
    assert_ne!(types[0].definition, types[1].definition);
}

#[test]
fn one_hook_below_two_matchers_stays_two_hooks_of_one_definition() {
    // D-15
    let specs = specs(
        "{pre_tool_use: [{matcher: shell, hooks: [{type: command, command: cat}]},
                         {matcher: 'sh.*', hooks: [{type: command, command: cat}]}]}",
    );
    assert_eq!(specs.len(), 2);
    assert_eq!(specs[0].definition, specs[1].definition);
}

#[test]
fn preempt_yolo_makes_a_hook_a_tool_guard() {
    let hooks = "hooks: [{type: command, command: cat}]";
    let specs = specs(&format!(
        "{{pre_tool_use: [{{preempt_yolo: true, {hooks}}}, {{preempt_yolo: false, {hooks}}}]}}"
    ));
    let found: Vec<_> = specs.iter().map(known).collect();
    assert_eq!(found, [EventKind::ToolGuard, EventKind::PreToolUse]);
}

#[test]
fn hooks_of_the_root_agent_are_for_all_and_those_of_others_for_their_own() {
    let hooks = "hooks: {stop: [{type: command, command: cat}]}";
    for (agents, expected) in [
        (
            format!("{{helper: {{{hooks}}}, root: {{{hooks}}}}}"),
            [Some("helper"), None],
        ),
        (
            format!("{{first: {{{hooks}}}, second: {{{hooks}}}}}"),
            [None, Some("second")],
        ),
    ] {
        let loaded = loaded("agent.yaml", &format!("agents: {agents}"));
        let found: Vec<_> = loaded.specs.iter().map(|s| s.agent.as_deref()).collect();
        assert_eq!(found, expected, "{agents}");
    }
}

#[test]
fn the_policy_is_that_of_the_dialect() {
    let specs = specs(
        "{pre_tool_use: [{hooks: [{type: command, command: cat}]}],
          before_llm_call: [{type: command, command: cat}, {type: command, command: ls, on_error: block}]}",
    );
    let found: Vec<_> = specs.iter().map(|spec| spec.policy.on_error).collect();
    assert_eq!(found, [OnError::Block, OnError::Warn, OnError::Block]);
}

#[test]
fn two_hooks_of_one_name_are_told_apart() {
    let specs = specs(
        "{stop: [{name: log, type: command, command: cat}], turn_end: [{name: log, type: command, command: cat}]}",
    );
    let ids: Vec<_> = specs.iter().map(|spec| spec.id.as_str()).collect();
    assert_eq!(ids, ["log", "log#2"]);
}

#[test]
fn an_agent_is_a_mapping_and_its_subagents_are_a_list_of_texts() {
    for (agents, message) in [
        ("{root: is fine}", "`root` cannot be the string `is fine`"),
        ("{root: [model]}", "`root` cannot be a list"),
        (
            "{root: {sub_agents: a}}",
            "`sub_agents` cannot be the string `a`",
        ),
        (
            "{root: {sub_agents: [a, 6, b]}}",
            "an item of `sub_agents` cannot be `6`",
        ),
    ] {
        let error = load("agent.yaml", &format!("agents: {agents}")).unwrap_err();
        let messages: Vec<_> = error.problems.iter().map(|p| p.message.as_str()).collect();
        assert_eq!(messages, [message], "{agents}");
    }
}

#[test]
fn the_cap_of_an_agent_is_a_whole_number() {
    for (written, cap) in [("3", Some(3)), ("0", None), ("null", None)] {
        let text = format!("agents: {{root: {{max_iterations: {written}}}}}");
        let loaded = loaded("agent.yaml", &text);
        assert_eq!(loaded.agent_files[0].agents[0].max_iterations, cap);
    }
    for written in ["-1", "many", "1.5", "[3]"] {
        let text = format!("agents: {{root: {{max_iterations: {written}}}}}");
        let error = load("agent.yaml", &text).unwrap_err();
        assert!(
            error.problems[0]
                .message
                .starts_with("`max_iterations` cannot be"),
            "{written}"
        );
    }
}

#[test]
fn an_agent_file_may_be_toml_or_json() {
    let toml = "[agents.root]\nmodel = \"m\"\n[[agents.root.hooks.stop]]\ntype = \"command\"\ncommand = \"cat\"\n";
    let json = r#"{"agents": {"root": {"model": "m", "hooks": {"stop": [{"type": "command", "command": "cat"}]}}}}"#;
    let [toml, json] = [("agent.toml", toml), ("agent.json", json)].map(|(path, text)| {
        let loaded = loaded(path, text);
        assert_eq!(loaded.agent_files[0].agents[0].model.as_deref(), Some("m"));
        loaded.specs
    });
    assert_eq!(toml[0].source.line, Some(3));
    assert_eq!(toml[0].definition, json[0].definition);
    assert_eq!(toml[0].timeout, Duration::from_mins(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_documented_hook_reads_an_event_with_line_ends_whole() {
    // The document's hooks write the event with `echo`, which must not change `\n` in a JSON string.
    let text = r#"
agents:
  root:
    hooks:
      pre_tool_use:
        - matcher: shell
          hooks:
            - type: command
              command: |
                INPUT=$(cat)
                echo "$INPUT" | grep -qF 'true\u000asudo reboot' && exit 2
                exit 0
"#;
    let engine = tenterhook_engine::Engine::new();
    engine
        .scope(tenterhook_engine::Scope::Global)
        .replace(loaded("agent.yaml", text).specs);
    let event = tenterhook_engine::event::PreToolUse::new("shell")
        .with_tool_input([("cmd", "true\nsudo reboot")]);
    let outcome = engine
        .dispatcher(tenterhook_engine::Origin::default())
        .dispatch(event)
        .await;
    assert!(
        outcome.decision().reason().is_some(),
        "the guard did not see the second line"
    );
}
