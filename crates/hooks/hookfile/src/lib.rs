//! Reads hook files: the hooks that a file declares, the position of every key, and all problems at once.
//!
//! This crate reads native hook files and docker-agent's files, each as YAML, TOML or JSON. It recognises
//! the kind of a file by its keys. The result is a list of [`HookDeclaration`]s, which are plain data,
//! and a [`Report`] of all problems with their positions. That is enough for an editor or a linter.
//!
//! Other crates search for hook files, decide which hooks may run, and create handlers from declarations.
//!
//! ```
//! use std::path::Path;
//! use tenterhook_hookfile::{Report, SourceText, read};
//!
//! let text = "hooks:\n  - name: no-sudo\n    event: pre_tool_use\n    command: ./guard.sh\n    timout: 5s\n";
//! let mut report = Report::new(SourceText::new(Path::new("hooks.yaml"), text));
//! let file = read(&mut report);
//! assert_eq!(file.declarations[0].name(), Some("no-sudo"));
//!
//! let problems = report.into_problems();
//! assert_eq!(problems[0].suggestion.as_deref(), Some("timeout"));
//! assert_eq!(problems[0].position.map(|position| position.line), Some(5));
//! ```

#![forbid(unsafe_code)]

mod agent_file;
mod broken;
mod declaration;
mod definition;
mod environment;
mod excerpt;
pub mod fields;
mod file_text;
mod hook_file;
mod hook_line;
mod hook_names;
mod http;
mod import_entry;
#[cfg(test)]
mod imported_keys;
pub mod link;
mod matcher;
mod model;
mod native;
mod native_keys;
mod problem;
#[cfg(test)]
mod reference_page;
mod report;
mod settings_file;
mod source;
mod source_problem;
mod suggest;
mod timeout;
pub mod tree;
mod unknown_tools;

pub use agent_file::{AgentDefinition, AgentFile, PermissionRules, Toolset, ToolsetKind};
pub use broken::{BrokenSource, LoadError};
pub use declaration::{DeclaredEvent, HookAction, HookDeclaration, quoted_for_shell};
pub use definition::Definition;
pub use environment::Environment;
pub use excerpt::shorten;
pub use hook_file::{
    EXTENSIONS, HookFile, has_extension, is_cases_file, is_hook_file, misnamed_as_cases, read,
    read_imported, read_text,
};
pub use hook_line::{HookLine, declare_lines};
pub use http::{HeaderDeclaration, HttpDeclaration};
pub use import_entry::ImportEntry;
pub use model::{DECISION_SCHEMAS, DeclaredReply, ModelDeclaration};
pub use problem::{Problem, Severity};
pub use report::Report;
pub use source::{Position, SourceText, Span};
pub use source_problem::{ProblemPosition, SourceProblem};
pub use suggest::{nearest, one_of};
pub use timeout::native as read_timeout;
