//! Keys of an agent that declare built-ins.

use tenterhook_engine::{EventName, HookSpec, Layer, OnError};

use crate::{load, options};

/// Returns the hooks that the keys of agents declare. The text is a flow mapping of agents.
fn wired(agents: &str) -> Vec<HookSpec> {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options();
    options.services.data_dir = Some(folder.path().to_owned());
    let text = format!("agents: {agents}");
    let path = std::path::Path::new("agent.yaml");
    tenterhook_discovery::load_text(path, &text, Layer::Explicit, &options)
        .unwrap_or_else(|error| panic!("{}", error.render(false)))
        .wired
}

/// Returns the event, the agent and the built-in of each hook. `+` marks hooks that agents without a name have too.
fn short(specs: &[HookSpec]) -> Vec<String> {
    let one = |spec: &HookSpec| {
        let event = spec.event.as_ref().map(EventName::as_str).unwrap();
        let agent = spec.agent.as_deref().unwrap_or("all");
        let more = if spec.includes_unnamed { "+" } else { "" };
        format!("{event} {agent}{more} {}", spec.handling.describe())
    };
    specs.iter().map(one).collect()
}

#[test]
fn every_key_of_an_agent_wires_its_builtin_and_the_limit_is_always_there() {
    // D-118
    let redaction = [
        "tool_input_transform all redact_secrets",
        "before_llm_call all redact_secrets",
        "tool_response_transform all redact_secrets",
    ];
    let limit = [
        "tool_response_transform all limit_large_tool_results",
        "session_end all limit_large_tool_results",
    ];
    for (keys, before, after) in [
        ("redact_secrets: true", &[][..], &[][..]),
        ("add_date: true", &["turn_start root+ add_date"], &[]),
        ("add_date: false", &[], &[]),
        (
            "add_prompt_files: [A.md, B.md], add_date: true, add_environment_info: true",
            &[
                "turn_start root+ add_date",
                "turn_start root+ add_prompt_files A.md B.md",
                "session_start root+ add_environment_info",
            ],
            &[],
        ),
        ("add_prompt_files: []", &[], &[]),
        (
            "cache: {enabled: true}",
            &[],
            &["stop root+ cache_response"],
        ),
        ("cache: {enabled: false}", &[], &[]),
    ] {
        let expected: Vec<&str> = before
            .iter()
            .chain(&redaction)
            .chain(&limit)
            .chain(after)
            .copied()
            .collect();
        let found = wired(&format!("{{root: {{model: m, {keys}}}}}"));
        assert_eq!(short(&found), expected, "{keys}");
        assert!(found.iter().all(|spec| spec.source.layer == Layer::Code));
    }
    assert_eq!(
        short(&wired("{root: {redact_secrets: false}}")),
        limit,
        "the one key that is on unless it is false"
    );
}

#[test]
fn snapshots_are_taken_between_redaction_and_limit_where_an_agent_wants_them() {
    // D-118
    let found = short(&wired("{root: {snapshot: true, redact_secrets: false}}"));
    assert_eq!(
        found,
        [
            "session_start root+ snapshot",
            "turn_start root+ snapshot",
            "turn_end root+ snapshot",
            "session_end root+ snapshot",
            "tool_response_transform all limit_large_tool_results",
            "session_end all limit_large_tool_results",
        ]
    );
}

#[test]
fn a_redaction_that_fails_stops_what_it_guards() {
    use OnError::{Block, Warn};
    let found = wired("{root: {model: m}}");
    let policies: Vec<_> = found.iter().map(|spec| spec.policy.on_error).collect();
    // The third hook redacts results. If it fails, the result is withheld.
    assert_eq!(policies, [Block, Block, Block, Warn, Warn]);
}

#[test]
fn gates_of_the_root_agent_are_for_all_and_context_is_for_the_agent_that_asks() {
    let found = wired("{helper: {add_date: true}, root: {add_date: true}}");
    assert_eq!(
        short(&found),
        [
            "turn_start root+ add_date",
            "tool_input_transform all redact_secrets",
            "before_llm_call all redact_secrets",
            "tool_response_transform all redact_secrets",
            "tool_response_transform all limit_large_tool_results",
            "session_end all limit_large_tool_results",
            "turn_start helper add_date",
        ]
    );
}

#[test]
fn what_a_person_wrote_is_not_wired_again() {
    let hooks = "hooks: {turn_start: [{type: builtin, command: add_date}]}";
    let found = wired(&format!(
        "{{root: {{add_date: true, redact_secrets: false, {hooks}}}, helper: {{add_date: true}}}}"
    ));
    assert!(!short(&found).iter().any(|hook| hook.ends_with("add_date")));
    let other = "hooks: {turn_start: [{type: builtin, command: add_date, timeout: 5}]}";
    let found = wired(&format!("{{root: {{add_date: true, {other}}}}}"));
    assert_eq!(short(&found)[0], "turn_start root+ add_date");
}

#[test]
fn a_key_of_the_wrong_type_is_a_mistake() {
    for (keys, message) in [
        ("add_date: 5", "`add_date` cannot be `5`"),
        (
            "redact_secrets: 'no'",
            "`redact_secrets` cannot be the string `no`",
        ),
        (
            "add_prompt_files: A.md",
            "`add_prompt_files` cannot be the string `A.md`",
        ),
        ("cache: true", "`cache` cannot be `true`"),
        (
            "cache: {enabled: maybe}",
            "`enabled` cannot be the string `maybe`",
        ),
    ] {
        let error = load("agent.yaml", &format!("agents: {{root: {{{keys}}}}}")).unwrap_err();
        let messages: Vec<_> = error.problems.iter().map(|p| p.message.as_str()).collect();
        assert_eq!(messages, [message], "{keys}");
    }
}
