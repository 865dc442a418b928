//! Lifecycle hooks for AI agents: one engine, every protocol.
//!
//! An agent describes its life as events ([`event`]); hooks answer with effects; the engine folds them
//! into an outcome that the agent acts on. Data flows one way:
//!
//! ```text
//! event ─► plan (match, order, dedupe; pure) ─► run each handler ─► fold (pure) ─► outcome
//!                                                   └─► journal
//! ```
//!
//! ```
//! use tenterhook::{Decision, Effect, Engine, Origin, event::PreToolUse};
//! # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
//! # runtime.block_on(async {
//! let engine = Engine::new();
//! engine.on(|event: &PreToolUse| match event.tool_input.get("cmd").and_then(|cmd| cmd.as_str()) {
//!     Some(cmd) if cmd.starts_with("sudo") => Effect::deny("sudo is not allowed"),
//!     _ => Effect::none(),
//! });
//!
//! let hooks = engine.dispatcher(Origin::default());
//! let outcome = hooks
//!     .dispatch(PreToolUse {
//!         tool_name: "shell".to_owned(),
//!         tool_input: [("cmd".to_owned(), "sudo reboot".into())].into_iter().collect(),
//!         ..PreToolUse::default()
//!     })
//!     .await;
//! match outcome.decision() {
//!     Decision::Proceed => panic!("the tool would run"),
//!     Decision::Ask { reason, .. } => panic!("a person would be asked: {reason}"),
//!     Decision::Stop { reason, .. } => assert_eq!(reason, "sudo is not allowed"),
//! }
//! # });
//! ```
//!
//! What this crate does not do: it reads no configuration (`tenterhook-config` does), knows no other
//! system's field names (`tenterhook-dialects` does), and never prints.

#![forbid(unsafe_code)]

mod dialect;
mod dispatch;
mod dispatcher;
mod engine;
mod event_ref;
mod fold;
mod function_hook;
mod handler;
mod hook;
mod lineage;
mod matcher;
mod operation;
mod plan;
mod policy;
mod registry;
mod sink;
mod tools;
mod versions;

pub use dialect::{Dialect, ReadError, Reply, WriteError};
pub use dispatcher::{Dispatched, Dispatcher};
pub use engine::{Engine, EngineBuilder, Registration, Scoped};
pub use event_ref::EventRef;
pub use fold::fold;
pub use function_hook::FunctionHook;
pub use handler::{
    Answer, AnswerEnd, Call, CommandHandler, Handler, HandlerError, IntoEffect, Late, SyncAnswer,
    SyncFunction, error_chain,
};
pub use hook::{Handling, HookSpec, Layer, Phase, Scope, Source};
pub use matcher::{Matcher, MatcherError};
pub use policy::{OnError, Policy, failure_effect, native_policy};
pub use registry::RegisteredHook;
pub use sink::{FileJournal, JournalError, JournalSink, MemoryJournal};
pub use tenterhook_process::cut;
pub use tenterhook_protocol::*;
pub use tools::{CanonicalCall, NATIVE_SYSTEM, OwnCall, ToolInputError, ToolNames};
