//! The inspector: a web page that shows what hooks do, while they run or from journals.
//!
//! - [`LiveJournal`] keeps the newest records of an engine, and [`read_journals`] reads files.
//! - [`HookDetails`] keeps the payloads and raw answers of the newest dispatches, which a journal does not have.
//! - [`Inspector`] has what one page shows. [`Inspector::routes`] returns its routes for a server, in groups by what a
//!   client needs to use them. Checking clients is the server's job.
//! - [`export_html`] writes records and the page into one file, which needs no server.
//!
//! # Examples
//!
//! ```
//! use std::sync::Arc;
//!
//! use tenterhook_engine::event::PreToolUse;
//! use tenterhook_engine::{Engine, Origin};
//! use tenterhook_inspect::{InspectedSource, Inspector, LiveJournal};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let journal = Arc::new(LiveJournal::new());
//! let engine = Engine::builder().journal(journal.clone()).build();
//! engine.on(|_: &PreToolUse| ());
//! let _outcome = engine.dispatcher(Origin::default()).dispatch(PreToolUse::new("shell")).await;
//!
//! let inspector = Inspector::new(InspectedSource::Run, Arc::clone(journal.log()));
//! // One record for the hook, and one for the event.
//! assert_eq!(inspector.log().counts().kept, 2);
//! let routes = Arc::new(inspector).routes();
//! # }
//! ```

#![forbid(unsafe_code)]

mod export;
mod hook_details;
mod hook_list;
mod inspected_gateway;
mod inspector;
mod journal_files;
mod live_journal;
mod page;
mod record_log;
mod route_error;
mod routes;
mod shown_sessions;

pub use self::export::{export_html, export_jsonl};
pub use self::hook_details::HookDetails;
pub use self::hook_list::HookList;
pub use self::inspected_gateway::{InspectedGateway, InspectorDecision, InspectorUser};
pub use self::inspector::{InspectedSource, Inspector};
pub use self::journal_files::{JournalFileError, read_journals};
pub use self::live_journal::LiveJournal;
pub use self::record_log::{LogCounts, LogLimits, RecordGap, RecordLog, RecordSlice};
pub use self::routes::InspectRoutes;
pub use self::shown_sessions::ShownSessions;
