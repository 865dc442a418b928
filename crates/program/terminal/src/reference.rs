//! The reference pages of events: when each one fires, what it carries and what hooks may answer. Also the pages of
//! tools: their arguments, and their names in every hook system; and the tables of hosts.
//!
//! `tenterhook events` and `tenterhook tools` print these pages, and the tests of this crate keep the files in
//! `docs/reference/events/` equal to them. Everything that the catalogue, the payload schemas and
//! the hook systems already know is read from there. Only three things are written here: the
//! sentences that say when an event fires, the sentences that explain an answer, and the groups.
//!
//! ```
//! use tenterhook_terminal::reference::{EventPage, find_event};
//!
//! let found = find_event("tool_call");
//! assert_eq!(found.len(), 1);
//! let page = EventPage::of(found[0].kind);
//! assert_eq!(page.name, "pre_tool_use");
//! assert!(page.is_fired_by_run);
//! assert!(page.answers.iter().any(|answer| answer.part == "permission"));
//! ```
//!
//! | module | responsibility |
//! |---|---|
//! | `answer` | one example answer for everything that hooks of an event may do |
//! | `field` | the fields of a payload, read from its schema |
//! | `firing` | when an event fires, and which command fires it |
//! | `group` | the groups of events, one page each |
//! | `host_tables` | what each host does with the effects of hooks |
//! | `layout` | text and JSON in lines |
//! | `markdown` | the pages in `docs/` |
//! | `names` | which event a name in a hook system means |
//! | `page` | everything about one event, as data |
//! | `terminal` | the same page as plain text |
//! | `tool` | everything about one tool, as data |
//! | `tool_text` | the page of a tool as plain text |

mod answer;
mod field;
mod firing;
mod group;
mod host_tables;
mod layout;
pub mod markdown;
mod names;
mod page;
mod terminal;
mod tool;
mod tool_text;

pub use self::answer::AnswerExample;
pub use self::field::{FieldRow, ObjectType, WordRow};
pub use self::firing::{is_fired_by_gateway, is_fired_by_run};
pub use self::group::{GROUPS, Group};
pub use self::host_tables::{host_details, host_overview, host_table};
pub use self::names::{EventNameMatch, NamesInSystem, find_event};
pub use self::page::EventPage;
pub use self::terminal::{TextLine, list_lines, page_lines};
pub use self::tool::{ToolArgument, ToolInSystem, ToolNameMatch, ToolPage, find_tool};
pub use self::tool_text::{tool_list_lines, tool_name_lines, tool_page_lines};
