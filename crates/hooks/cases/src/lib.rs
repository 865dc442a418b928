//! Test cases for hooks: an event, and what hooks must make of it.
//!
//! A file `NAME.cases.yaml` next to a hook holds its cases. This crate reads such files ([`CasesFile`]), finds them in a
//! project ([`find_cases_files`]), sends the event of one case through its hooks ([`CaseCall::run`]), and compares the
//! result with what was expected ([`CaseExpectation::compare`]). It also writes a first guard with its cases
//! ([`StarterGuard`]).
//!
//! [`SelectedCases::select`] selects cases, and [`run_all`] runs each of them in its own process. The command line
//! provides the program for these processes and prints all output.
//!
//! ```
//! use std::path::Path;
//! use tenterhook_cases::CasesFile;
//!
//! let text = "cases:\n  - name: no sudo\n    tool: shell\n    input: {cmd: sudo reboot}\n    expect: {decision: stop}\n";
//! let file = CasesFile::parse(Path::new("guard.cases.yaml"), text).map_err(|problems| problems[0].to_string())?;
//! assert_eq!(file.cases[0].name, "no sudo");
//!
//! let problems = CasesFile::parse(Path::new("guard.cases.yaml"), "cases: [{nmae: x}]").unwrap_err();
//! assert!(problems.iter().any(|problem| problem.suggestion.as_deref() == Some("name")));
//! # Ok::<(), String>(())
//! ```

#![forbid(unsafe_code)]

mod call;
mod cases_file;
mod decision;
mod event;
mod expectation;
mod find;
mod named_call;
mod process;
mod reading;
mod result;
mod selection;
mod starter;
mod text_pattern;

pub use call::{CaseCall, TestedHooks};
pub use cases_file::{CasesFile, HookCase, HooksUnderTest};
pub use decision::ExpectedDecision;
pub use event::CaseEvent;
pub use expectation::{CaseExpectation, CaseMismatch, ExpectedRewrites};
pub use find::{CasesFileError, find_cases_files, hooks_of};
pub use named_call::{NamedCall, NamedCallError, listed, named_call, named_tool};
pub use process::{CaseEnd, CaseReply, CaseRun, CaseRunError, run_all};
pub use result::{CaseFailure, CaseResult, DecidedBy, LoadedHook};
pub use selection::{SelectedCases, SelectionError};
pub use starter::{
    StarterError, StarterGuard, StarterLanguage, StarterPlace, UnknownStarterLanguage,
};
pub use text_pattern::TextPattern;
