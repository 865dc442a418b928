//! The engine through its public door.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops at the first thing that is not as it should be"
)]

mod commands;
mod dispatching;
mod folding;
#[cfg(unix)]
mod fork_server;
mod functions;
mod journal;
mod registering;
mod withholding;

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tenterhook::event::PreToolUse;
use tenterhook::{
    Answer, AnyEffect, Call, CommandHandler, EventKind, Handler, HandlerError, Handling, HookId,
    HookSpec, Matcher, OnError, Origin, Permission, Phase, Source, native_policy,
};
use tenterhook_dialects::docker_agent::DockerAgent;
use tenterhook_process::{Command, Program};

/// Returns a hook of `kind` that answers with `handling`.
pub(crate) fn spec(kind: EventKind, id: &str, handling: Handling) -> HookSpec {
    HookSpec {
        event: Some(kind.into()),
        id: HookId::new(id),
        matcher: Matcher::everything(),
        agent: None,
        handling,
        phase: Phase::Main,
        priority: 0,
        among: None,
        timeout: Duration::from_secs(20),
        policy: native_policy(kind.info(), None),
        source: Source::CODE,
        tools: None,
        definition: None,
    }
}

/// Returns a native command hook of `kind`.
pub(crate) fn command(kind: EventKind, id: &str, line: &str) -> HookSpec {
    let handler = CommandHandler::new(
        Command::new(Program::shell(line)),
        line,
        DockerAgent::native(),
    );
    spec(kind, id, Handling::Waiting(Arc::new(handler)))
}

/// The same hook with another failure policy.
pub(crate) fn on_error(mut spec: HookSpec, on_error: OnError) -> HookSpec {
    let info = spec.event.as_ref().unwrap().info();
    spec.policy = native_policy(info, Some(on_error));
    spec
}

/// A handler that waits as many turns of the runtime as it was told, then answers what it was told.
#[derive(Debug, Clone)]
pub(crate) struct Slow {
    pub(crate) turns: usize,
    pub(crate) answer: Result<AnyEffect, String>,
}

impl Handler for Slow {
    fn kind(&self) -> &'static str {
        "slow"
    }

    fn describe(&self) -> String {
        "slow".to_owned()
    }

    fn handle<'a>(&'a self, _call: &'a Call) -> futures_util::future::BoxFuture<'a, Answer> {
        Box::pin(async move {
            for _ in 0..self.turns {
                tokio::task::yield_now().await;
            }
            self.answer
                .clone()
                .map(|effect| Some(Box::new(effect)))
                .map_err(|problem| HandlerError::Other { problem })
        })
    }
}

/// A call of the tool `shell`.
pub(crate) fn shell_call(cmd: &str) -> PreToolUse {
    PreToolUse {
        tool_use_id: "call_1".into(),
        tool_name: "shell".to_owned(),
        tool_input: json!({ "cmd": cmd, "cwd": "src" })
            .as_object()
            .unwrap()
            .clone(),
        ..PreToolUse::default()
    }
}

/// Returns an effect that only gives a permission.
pub(crate) fn verdict(permission: Permission, reason: &str) -> AnyEffect {
    let mut effect = AnyEffect::default();
    effect.set_permission(permission, Some(reason.to_owned()));
    effect
}

/// An origin in a folder of its own.
pub(crate) fn origin(dir: &std::path::Path) -> Origin {
    Origin {
        session_id: "s1".into(),
        cwd: dir.to_owned(),
        ..Origin::default()
    }
}

#[test]
fn no_test_file_is_forgotten() {
    let main = include_str!("main.rs");
    let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it")).unwrap();
    for file in files {
        let name = file.unwrap().file_name().into_string().unwrap();
        let module = name.trim_end_matches(".rs");
        assert!(
            module == "main" || main.contains(&format!("mod {module};")),
            "{name} is not in main.rs"
        );
    }
}
