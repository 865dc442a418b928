//! docker-agent's contract, case by case: agent files with real shell commands, and their outcomes.

mod aggregation;
mod environment;
mod exit;
mod failure;
mod pipeline;

use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;
use tenterhook_discovery::{LoadOptions, load_text};
use tenterhook_engine::{
    AnyOutcome, Decision, Dispatcher, Engine, EventName, Layer, Origin, Permission, Scope,
    parse_event,
};
use tenterhook_hookfile::Environment;
use tenterhook_systems::docker_agent::DockerAgent;

/// A command hook.
pub(crate) fn sh(line: &str) -> Value {
    json!({"type": "command", "command": line})
}

/// A command hook that prints an answer.
pub(crate) fn says(answer: &Value) -> Value {
    sh(&format!("printf '%s' '{answer}'"))
}

/// The same hook with more keys.
pub(crate) fn with(mut hook: Value, more: &Value) -> Value {
    let more = more.as_object().unwrap().clone();
    hook.as_object_mut().unwrap().extend(more);
    hook
}

/// The configuration of an event: entries if it has matchers, otherwise hooks.
pub(crate) fn entries(event: &str, hooks: &[Value]) -> Value {
    if DockerAgent::event(event).unwrap().has_matcher {
        json!([{"hooks": hooks}])
    } else {
        json!(hooks)
    }
}

/// A folder, and an engine with the hooks of an agent file.
pub(crate) struct Stage {
    pub(crate) dir: TempDir,
    engine: Engine,
}

impl Stage {
    /// Hooks of one event.
    pub(crate) fn new(event: &str, hooks: &[Value]) -> Self {
        Self::of(&json!({ event: entries(event, hooks) }))
    }

    /// Hooks as they are written below `hooks`.
    pub(crate) fn of(hooks: &Value) -> Self {
        Self::with_variables(hooks, &[])
    }

    /// Hooks that may use these variables.
    pub(crate) fn with_variables(hooks: &Value, variables: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let options = LoadOptions {
            directory: dir.path().to_owned(),
            environment: Environment::new(variables.iter().copied()),
            ..crate::options()
        };
        let text = json!({"agents": {"root": {"hooks": hooks}}}).to_string();
        let loaded = load_text(Path::new("agent.json"), &text, Layer::Project, &options)
            .unwrap_or_else(|error| panic!("{}", error.render(false)));
        let engine = Engine::new();
        engine.scope(Scope::Global).replace(loaded.specs);
        Self { dir, engine }
    }

    pub(crate) fn dispatcher(&self) -> Dispatcher {
        self.engine
            .dispatcher(Origin::new("s1", self.dir.path().to_owned()))
    }

    /// Sends the event with this name in docker-agent.
    pub(crate) async fn fire(&self, event: &str) -> Said {
        self.fire_with(event, &json!({})).await
    }

    /// Sends an event with these keys in addition to the usual ones.
    pub(crate) async fn fire_with(&self, event: &str, more: &Value) -> Said {
        send(&self.dispatcher(), event, more).await
    }

    /// Returns the text of a file in the folder. Empty if the file does not exist.
    pub(crate) fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.dir.path().join(name)).unwrap_or_default()
    }
}

/// Sends an event through a dispatcher.
pub(crate) async fn send(dispatcher: &Dispatcher, event: &str, more: &Value) -> Said {
    let kind = DockerAgent::event(event).unwrap().kind;
    let payload = with(payload(event), more);
    let sent = parse_event(&EventName::Known(kind), payload).unwrap();
    let done = dispatcher.dispatch_any(sent).await;
    let payload = done.event.payload().unwrap().clone();
    Said {
        decision: done.decision(),
        any: done.outcome,
        event: Value::Object(payload),
    }
}

/// The keys that an event requires.
fn payload(event: &str) -> Value {
    let call = || json!({"tool_name": "shell", "tool_use_id": "call_1", "tool_input": {"cmd": "ls", "cwd": "src"}});
    match event {
        "pre_tool_use"
        | "permission_request"
        | "tool_guard"
        | "tool_input_transform"
        | "post_tool_use" => call(),
        "tool_response_transform" => with(call(), &json!({"tool_response": "raw"})),
        "session_start" => json!({"source": "startup"}),
        "session_end" => json!({"reason": "quit"}),
        "user_prompt_submit" => json!({"prompt": "hi"}),
        "before_llm_call" => json!({"messages": [{"role": "user", "content": "m"}]}),
        "pre_compact" => json!({"source": "manual"}),
        "before_compaction" => json!({"reason": "threshold"}),
        "after_compaction" => json!({"reason": "threshold", "summary": "s"}),
        "notification" => json!({"level": "warning", "message": "m"}),
        "on_error" => json!({"error": "e"}),
        _ => json!({}),
    }
}

/// The result of an event.
pub(crate) struct Said {
    decision: Decision,
    pub(crate) any: AnyOutcome,
    pub(crate) event: Value,
}

impl Said {
    /// Returns why the operation, or the run, stops.
    pub(crate) fn stopped(&self) -> Option<&str> {
        match &self.decision {
            Decision::Stop { reason, .. } => Some(reason),
            Decision::Proceed | Decision::Ask { .. } => self.any.stop_run.as_deref(),
        }
    }

    #[track_caller]
    pub(crate) fn assert_goes_on(&self) {
        assert_eq!(self.stopped(), None);
        assert_eq!(self.any.failures, []);
    }

    pub(crate) fn permission(&self) -> Permission {
        self.any.permission
    }

    /// Returns all messages for the user.
    pub(crate) fn notices(&self) -> String {
        self.any.notices.join("\n")
    }

    /// Returns all context for the model.
    pub(crate) fn context(&self) -> String {
        self.any.context.join("\n")
    }
}
