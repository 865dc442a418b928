//! Hooks that are commands and executables.
//!
//! With the feature `files`, hook files create these handlers for you. To register a command
//! without a file, pass a [`CommandHandler`] to a [`HookSpec`](crate::HookSpec). The handler needs
//! the dialect in which the command reads events and writes answers.
//!
//! ```
//! use std::sync::Arc;
//! use tenterhook::command::{Command, CommandHandler, Program, Shell};
//! use tenterhook::systems::native::Native;
//! use tenterhook::{Decision, Engine, EventKind, HookSpec, Origin, event::PreToolUse};
//! # fn main() {
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
//! # runtime.block_on(async {
//! let line = "echo not on a Friday >&2; exit 2";
//! let command = Command::new(Program::Shell { shell: Shell::Sh, line: line.to_owned() });
//! let handler = CommandHandler::new(command, line, Arc::new(Native));
//! let engine = Engine::new();
//! engine.register(HookSpec::new(EventKind::PreToolUse, "friday", Arc::new(handler)));
//!
//! let outcome = engine.dispatcher(Origin::default()).dispatch(PreToolUse::default()).await;
//! let Decision::Stop { reason, .. } = outcome.decision() else { panic!("the call would run") };
//! assert_eq!(reason, "not on a Friday");
//! # });
//! # }
//! ```

pub use tenterhook_process::{Command, Prewarmed, Program, Shell, end_guard};
pub use tenterhook_runners::CommandHandler;
