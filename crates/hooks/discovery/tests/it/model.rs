//! Model hooks of files, with a scripted client.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex};

use futures_util::future::{BoxFuture, FutureExt as _, ready};
use serde_json::json;
use tenterhook_discovery::{LoadOptions, Loaded, load_text};
use tenterhook_engine::event::{PreToolUse, TurnStart, UserPromptSubmit};
use tenterhook_engine::{Engine, Layer, OnError, Origin, Scope};
use tenterhook_runners::Services;
use tenterhook_runners::model::{ModelClient, ModelError, ModelQuestion};

use crate::{loaded, options};

/// Returns prepared replies and records the questions.
#[derive(Debug, Default)]
struct Client {
    replies: Mutex<VecDeque<&'static str>>,
    questions: Mutex<Vec<ModelQuestion>>,
}

impl Client {
    fn new(replies: impl IntoIterator<Item = &'static str>) -> Arc<Self> {
        Arc::new(Self {
            replies: Mutex::new(replies.into_iter().collect()),
            questions: Mutex::default(),
        })
    }

    fn prompts(&self) -> Vec<(String, String)> {
        let questions = self.questions.lock().unwrap();
        let pairs = questions.iter();
        pairs
            .map(|question| (question.model.clone(), question.prompt.clone()))
            .collect()
    }
}

impl ModelClient for Client {
    fn ask(&self, question: ModelQuestion) -> BoxFuture<'_, Result<String, ModelError>> {
        self.questions.lock().unwrap().push(question);
        let reply = self.replies.lock().unwrap().pop_front();
        let reply = reply.ok_or_else(|| ModelError::new("no reply is left"));
        ready(reply.map(str::to_owned)).boxed()
    }
}

/// Loads a file with a client.
fn with(client: &Arc<Client>, path: &str, text: &str) -> Loaded {
    let options = LoadOptions {
        services: Services {
            model: Some(Arc::clone(client) as Arc<dyn ModelClient>),
            ..Services::default()
        },
        directory: std::env::temp_dir(),
        ..options()
    };
    let loaded = load_text(Path::new(path), text, Layer::Project, &options);
    loaded.unwrap_or_else(|error| panic!("{}", error.render(false)))
}

fn engine(loaded: Loaded) -> Engine {
    let engine = Engine::new();
    engine.scope(Scope::Global).replace(loaded.specs);
    engine
}

fn call(cmd: &str) -> PreToolUse {
    let input = json!({ "cmd": cmd });
    PreToolUse::new("shell").with_tool_input(input.as_object().cloned().unwrap())
}

// D-16
#[tokio::test]
async fn two_model_hooks_that_differ_in_one_key_both_run() {
    let agent_file = |hooks: &str| {
        format!("agents: {{root: {{hooks: {{pre_tool_use: [{{hooks: [{hooks}]}}]}}}}}}")
    };
    let native = |hooks: &str| format!("hooks: [{hooks}]");
    let base = "model: a/b, prompt: one, schema: pre_tool_use_decision";
    for (other, both) in [
        (
            "model: a/c, prompt: one, schema: pre_tool_use_decision",
            true,
        ),
        (
            "model: a/b, prompt: two, schema: pre_tool_use_decision",
            true,
        ),
        ("model: a/b, prompt: one", true),
        (base, false),
    ] {
        for (path, text) in [
            (
                "agent.yaml",
                agent_file(&format!(
                    "{{type: model, {base}}}, {{type: model, {other}}}"
                )),
            ),
            (
                "hooks.yaml",
                native(&format!(
                    "{{event: pre_tool_use, {base}}}, {{event: pre_tool_use, {other}}}"
                )),
            ),
        ] {
            let reply = r#"{"decision":"allow"}"#;
            let client = Client::new([reply, reply]);
            let engine = engine(with(&client, path, &text));
            let dispatcher = engine.dispatcher(Origin::default());
            let outcome = dispatcher.dispatch(call("ls")).await;
            assert!(outcome.is_allowed());
            let expected = if both { 2 } else { 1 };
            assert_eq!(client.prompts().len(), expected, "{path}: {other}");
        }
    }
}

// D-79
#[tokio::test]
async fn a_judge_after_a_rewriting_hook_sees_what_was_rewritten() {
    let text = r#"
agents:
  root:
    hooks:
      pre_tool_use:
        - matcher: shell
          hooks:
            - type: command
              command: "echo '{\"hook_specific_output\":{\"updated_input\":{\"cmd\":\"ls -h\"}}}'"
            - type: model
              model: openai/gpt-4o
              schema: pre_tool_use_decision
              prompt: "Judge {{ .ToolName }}: {{ .ToolInput.cmd }}"
"#;
    let client = Client::new([r#"{"decision":"deny","reason":"no"}"#]);
    let engine = engine(with(&client, "agent.yaml", text));
    let outcome = engine
        .dispatcher(Origin::default())
        .dispatch(call("ls"))
        .await;
    assert!(!outcome.decision().is_proceed());
    let prompt = ("openai/gpt-4o".to_owned(), "Judge shell: ls -h".to_owned());
    assert_eq!(client.prompts(), [prompt]);
}

#[tokio::test]
async fn a_model_may_have_a_name_of_the_agent_file() {
    let text = r#"
models:
  judge: {provider: openai, model: gpt-4o-mini}
agents:
  root:
    hooks:
      turn_start:
        - {type: model, model: judge, prompt: "Advise on {{ .Cwd }}."}
        - {type: model, model: other/one, prompt: Advise.}
"#;
    let client = Client::new(["Be careful.", " "]);
    let engine = engine(with(&client, "agent.yaml", text));
    let origin = Origin::new("", "/w");
    let outcome = engine
        .dispatcher(origin)
        .dispatch(TurnStart::default())
        .await;
    assert_eq!(outcome.context(), ["Be careful."]);
    let mut prompts = client.prompts();
    prompts.sort();
    let expected = [
        ("openai/gpt-4o-mini", "Advise on /w."),
        ("other/one", "Advise."),
    ];
    let expected = expected.map(|(model, prompt)| (model.to_owned(), prompt.to_owned()));
    assert_eq!(prompts, expected);
}

#[test]
fn hooks_load_without_a_client_and_say_what_they_are() {
    let loaded = loaded(
        "hooks.yaml",
        "hooks: [{event: tool_guard, model: openai:gpt-4o, schema: decision, prompt: 'May {{ tool_name }} run?', timeout: 5}]",
    );
    let [spec] = &loaded.specs[..] else {
        panic!("{:?}", loaded.specs);
    };
    assert_eq!(spec.handling.kind(), "model");
    assert_eq!(spec.handling.describe(), "openai:gpt-4o (decision)");
    assert_eq!(spec.policy.on_error, OnError::Block);
    assert_eq!(spec.timeout.as_secs(), 5);
    let definition = spec.definition.as_deref().unwrap();
    for part in [
        r#""model":"openai:gpt-4o""#,
        r#""prompt":"May {{ tool_name }} run?""#,
        r#""schema":"pre_tool_use_decision""#,
    ] {
        assert!(definition.contains(part), "{definition}");
    }
}

#[test]
fn the_examples_of_the_pages_load() {
    for (page, fence) in [
        (
            include_str!("../../../../../docs/reference/builtins.md"),
            "```yaml native hook\n",
        ),
        (model_hooks(), "```yaml\n"),
    ] {
        let blocks: Vec<&str> = page.split(fence).skip(1).collect();
        assert!(!blocks.is_empty());
        for block in blocks {
            let (text, _) = block.split_once("\n```").unwrap();
            assert!(!loaded("hooks.yaml", text).specs.is_empty(), "{text}");
        }
    }
}

/// Returns the section on model hooks.
fn model_hooks() -> &'static str {
    let (_, section) = include_str!("../../../../../docs/reference/hooks.md")
        .split_once("\n## Model hooks\n")
        .unwrap();
    section.split("\n## ").next().unwrap()
}

#[tokio::test]
async fn an_agent_file_gives_context_in_the_syntax_of_its_document() {
    let text = r#"
agents:
  root:
    hooks:
      user_prompt_submit:
        - type: builtin
          command: add_context
          args:
            - "Asked in {{ .Cwd }}: {{ .Prompt | truncate 4 }}"
            - "{{ if not .Prompt }}nothing{{ end }}"
            - "{{ .HookEventName }}"
"#;
    let engine = engine(loaded("agent.yaml", text));
    let origin = Origin::new("", "/w");
    let event = UserPromptSubmit::new("héllo");
    let outcome = engine.dispatcher(origin).dispatch(event).await;
    assert_eq!(outcome.context(), ["Asked in /w: hél…\nuser_prompt_submit"]);
}
