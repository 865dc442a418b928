//! Runs lifecycle hooks for AI agents.
//!
//! An agent describes what it does as events ([`event`]), hooks answer with effects, and the engine
//! combines these into an outcome that the agent acts on. Data flows in one direction:
//!
//! ```text
//! event ─► plan (match, order, dedupe; pure) ─► run each handler ─► fold (pure) ─► outcome
//!                                                   └─► journal
//! ```
//!
//! ```
//! use tenterhook_engine::{Decision, Effect, Engine, Origin, event::PreToolUse};
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
//!     .dispatch(PreToolUse::new("shell").with_tool_input([("cmd", "sudo reboot")]))
//!     .await;
//! match outcome.decision() {
//!     Decision::Proceed => panic!("the tool would run"),
//!     Decision::Ask { reason, .. } => panic!("a person would be asked: {reason}"),
//!     Decision::Stop { reason, .. } => assert_eq!(reason, "sudo is not allowed"),
//! }
//! # });
//! ```
//!
//! A host that runs tools sends several events for each call. [`tool_call`] sends them all in the
//! right order and returns what to do.
//!
//! To show which hook is running, give the engine a [`HookObserver`]. The feature `tracing`, off by
//! default, adds spans: `tenterhook.event` for each event that has hooks, and `tenterhook.hook` for
//! each run of a hook. Each failure of a hook is a warning. These features add no cost to an event
//! without hooks.
//!
//! This crate reads no configuration (`tenterhook-hookfile` does), does not know the field names of
//! other hook systems (`tenterhook-systems` does), and never prints.

#![forbid(unsafe_code)]

mod as_shell;
mod dialect;
mod dialect_exchange;
mod dispatch;
mod dispatcher;
mod engine;
mod error;
mod event_ref;
mod exceptions;
mod fold;
mod foreign_call;
mod function_hook;
mod handler;
mod hook;
mod lineage;
mod matcher;
mod observer;
mod operation;
mod phase;
mod plan;
mod policy;
mod raw_exchange;
mod registration;
mod registry;
mod run_notes;
mod shared;
mod sink;
mod span;
mod task;
pub mod tool_call;
mod tools;
mod versions;
mod watch;

pub use dialect::{Dialect, Reply};
pub use dispatcher::{Dispatched, Dispatcher};
pub use engine::{Engine, EngineBuilder};
pub use error::{HandlerError, ReadError, WriteError};
pub use event_ref::EventRef;
pub use exceptions::{DenialRuling, Exception, Exceptions, HookDenial};
pub use fold::fold;
pub use function_hook::FunctionHook;
pub use futures_util::future::BoxFuture;
pub use handler::{Answer, AsyncHandler, Call, InlineAnswer, InlineFunction, IntoEffect};
pub use hook::{Handler, HookSpec, Layer, Scope, Source};
pub use matcher::{Matcher, MatcherError, PatternError};
pub use observer::{HookObserver, HookRun, HookVerdict, LeftOutHook, LeftOutReason};
pub use phase::Phase;
pub use policy::{OnError, Policy, failure_effect, native_policy};
pub use raw_exchange::{ExchangeSlot, RawExchange};
pub use registration::{Registration, Scoped};
pub use registry::RegisteredHook;
pub use run_notes::RunNotes;
pub use sink::{JournalSink, MemoryJournal};
pub use tenterhook_protocol::*;
pub use tokio_util::sync::CancellationToken;
pub use tools::{
    CanonicalCall, CommandReading, NATIVE_SYSTEM, OwnCall, ShellGuess, ToolInputError, ToolNames,
};
