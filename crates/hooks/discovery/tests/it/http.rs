//! HTTP hooks in both kinds of files.

use tenterhook_engine::{EventKind, OnError};

use crate::{load, loaded};

const YAML: &str = r#"
hooks:
  - name: policy
    event: pre_tool_use
    http: https://policy.example.com/tool?key=canary-query
    headers: { Authorization: "Bearer ${env.T}", X-Literal: canary-literal }
    timeout: 5
    strict_output: true
  - event: stop
    http: http://localhost:8080/
    allow_private: true
"#;

const TOML: &str = r#"
[[hooks]]
name = "policy"
event = "pre_tool_use"
http = "https://policy.example.com/tool?key=canary-query"
headers = { x-literal = "canary-literal", Authorization = "Bearer ${env.T}" }
timeout = 5
strict_output = true

[[hooks]]
event = "stop"
http = "http://localhost:8080/"
allow_private = true
"#;

const AGENT: &str = r#"
agents:
  root:
    hooks:
      pre_tool_use:
        - matcher: shell
          hooks:
            - type: http
              url: https://policy.example.com/tool
              headers: { Authorization: "Bearer ${env.T}" }
              timeout: 5
      stop:
        - { type: http, url: "http://127.0.0.1:9/", allow_private: true }
"#;

#[test]
fn a_url_is_a_hook_in_both_kinds_of_file() {
    let specs = loaded("hooks.yaml", YAML).specs;
    let [policy, stop] = specs.as_slice() else {
        panic!("{specs:?}")
    };
    assert_eq!(policy.handling.kind(), "http");
    assert_eq!(
        policy.handling.describe(),
        "POST https://policy.example.com/tool?…"
    );
    assert_eq!(policy.policy.on_error, OnError::Block);
    assert_eq!(stop.handling.describe(), "POST http://localhost:8080/");

    let specs = loaded("agent.yaml", AGENT).specs;
    let [policy, stop] = specs.as_slice() else {
        panic!("{specs:?}")
    };
    assert_eq!(policy.event, Some(EventKind::PreToolUse.into()));
    assert_eq!(policy.handling.kind(), "http");
    assert_eq!(policy.timeout.as_secs(), 5);
    assert_eq!(policy.policy.on_error, OnError::Block);
    assert_eq!(stop.handling.describe(), "POST http://127.0.0.1:9/");
}

#[test]
fn a_definition_does_not_depend_on_how_headers_are_written_down() {
    let yaml = loaded("hooks.yaml", YAML).specs;
    let toml = loaded("hooks.toml", TOML).specs;
    assert_eq!(yaml[0].definition, toml[0].definition);
    assert_eq!(yaml[1].definition, toml[1].definition);
}

#[test]
fn every_key_of_an_http_hook_is_part_of_its_definition() {
    for changed in [
        YAML.replace("example.com/tool", "example.com/other"),
        YAML.replace("canary-literal", "another"),
        YAML.replace("${env.T}", "${env.HOME}"),
        YAML.replace("X-Literal", "X-Other"),
        YAML.replace("timeout: 5", "timeout: 6"),
        YAML.replace("strict_output: true", "strict_output: false"),
    ] {
        let (own, other) = (loaded("hooks.yaml", YAML), loaded("hooks.yaml", &changed));
        assert_ne!(own.specs[0].definition, other.specs[0].definition);
    }
    let public = |allow| {
        let text = format!(
            "hooks:\n  - event: stop\n    http: https://example.com/\n    allow_private: {allow}\n"
        );
        loaded("hooks.yaml", &text).specs[0].definition.clone()
    };
    assert_ne!(public(true), public(false));
}

#[test]
fn the_value_of_a_header_is_shown_nowhere() {
    for (path, text) in [("hooks.yaml", YAML), ("agent.yaml", AGENT)] {
        let loaded = loaded(path, text);
        let shown = format!("{loaded:?} {:?}", loaded.specs[0].definition);
        assert!(!shown.contains("canary-literal"), "{shown}");
        assert!(!shown.contains("Bearer"), "{shown}");
        assert!(!loaded.specs[0].handling.describe().contains("canary"));
    }
    let control = YAML.replace("canary-literal", r#""canary-literal\u0007""#);
    let error = load("hooks.yaml", &control).unwrap_err();
    assert!(!error.problems[0].message.contains("canary"), "{error:?}");
}

#[test]
fn the_examples_of_the_pages_load() {
    let pages = [
        include_str!("../../../../../docs/reference/hooks.md"),
        include_str!("../../../../../docs/reference/builtins.md"),
    ];
    let blocks = pages
        .iter()
        .flat_map(|page| page.split("```yaml native hook\n").skip(1));
    let examples = blocks.map(|block| block.split_once("\n```").unwrap().0);
    let mut count = 0;
    for example in examples.filter(|text| text.contains("http") || text.contains("unload")) {
        load("hooks.yaml", example).unwrap_or_else(|error| panic!("{}", error.render(false)));
        count += 1;
    }
    assert!(count >= 3, "{count}");
}
