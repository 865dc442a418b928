//! Tests of the engine's public interface.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops at the first thing that is not as it should be"
)]

mod dispatching;
mod exceptions;
mod folding;
mod functions;
mod journal;
mod observing;
mod registering;
#[cfg(feature = "tracing")]
mod spans;
mod tool_call;

use std::time::Duration;

use serde_json::json;
use tenterhook_engine::event::PreToolUse;
use tenterhook_engine::{
    Answer, AnyEffect, AsyncHandler, Call, EventKind, Handler, HandlerError, HookId, HookSpec,
    Matcher, OnError, Permission, Phase, Source, native_policy,
};

/// Returns a hook for `kind` with this handler.
pub(crate) fn spec(kind: EventKind, id: &str, handling: Handler) -> HookSpec {
    HookSpec {
        event: Some(kind.into()),
        id: HookId::new(id),
        matcher: Matcher::everything(),
        agent: None,
        includes_unnamed: false,
        handling,
        phase: Phase::Main,
        priority: 0,
        order_within_layer: None,
        hears_stops: false,
        timeout: Duration::from_secs(20),
        policy: native_policy(kind.info(), None),
        source: Source::CODE,
        tools: None,
        definition: None,
    }
}

/// Returns the same hook with another failure policy.
pub(crate) fn on_error(mut spec: HookSpec, on_error: OnError) -> HookSpec {
    let info = spec.event.as_ref().unwrap().info();
    spec.policy = native_policy(info, Some(on_error));
    spec
}

/// A handler that yields to the runtime a given number of times, and then gives a fixed answer.
#[derive(Debug, Clone)]
pub(crate) struct Slow {
    pub(crate) turns: usize,
    pub(crate) answer: Result<AnyEffect, String>,
}

impl AsyncHandler for Slow {
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

/// Returns a call of the tool `shell`.
pub(crate) fn shell_call(cmd: &str) -> PreToolUse {
    PreToolUse::new("shell")
        .with_tool_use_id("call_1")
        .with_tool_input(
            json!({ "cmd": cmd, "cwd": "src" })
                .as_object()
                .unwrap()
                .clone(),
        )
}

/// Returns an effect that only contains a permission.
pub(crate) fn verdict(permission: Permission, reason: &str) -> AnyEffect {
    let mut effect = AnyEffect::default();
    effect.set_permission(permission, Some(reason.to_owned()));
    effect
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
