//! Stored conversations: a tree of entries for each session, and the files that contain sessions.
//!
//! [`Session`] is one conversation. It works in memory and does not depend on an agent. [`SessionStore`] is the folder
//! with the sessions of one project; it lists, opens and creates them. [`SessionView`] is a handle with which other
//! code reads a session and adds to it while its agent uses it.
//!
//! The agent decides which model is used, when a session is compacted and when it is saved.
//!
//! # Examples
//!
//! ```
//! use tenterhook_protocol::Message;
//! use tenterhook_agent::sessions::Session;
//!
//! let mut session = Session::new("demo".into());
//! let question = session.push(Message::user("one"));
//! session.push(Message::assistant("two"));
//!
//! // The conversation continues after the question. The first answer stays in the tree.
//! session.go_to(Some(&question))?;
//! session.push(Message::assistant("another answer"));
//! assert_eq!(session.messages().len(), 2);
//! assert_eq!(session.tree().len(), 3);
//! # Ok::<(), tenterhook_agent::sessions::UnknownEntry>(())
//! ```

mod entry;
pub mod entry_kind;
mod file;
mod message_cache;
mod read;
mod selection;
mod session;
mod storage;
mod store;
mod tail;
mod tokens;
mod view;

pub use crate::sessions::entry::UnknownEntry;
pub use crate::sessions::file::SessionError;
pub use crate::sessions::read::UnfinishedLine;
pub use crate::sessions::selection::{
    RecordedModel, RecordedSelection, model_change, thinking_level_change,
};
pub use crate::sessions::session::Session;
pub use crate::sessions::store::{SessionListing, SessionOverview, SessionStore, StoredSession};
pub use crate::sessions::tail::{SessionTail, UnsyncedTail};
pub use crate::sessions::tokens::{estimate_tokens, json_len};
pub use crate::sessions::view::SessionView;
