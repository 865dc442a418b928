//! Decides which project hooks may run: only those that the user approved, exactly as approved.
//!
//! | state | meaning | what runs |
//! |---|---|---|
//! | trusted | approved as it is now | the approved copy of its files |
//! | untrusted | never approved in this project | nothing |
//! | changed | approved, but different now | the approved version, from its copies |
//! | displaced | approved for another repository | nothing; its gates deny |
//!
//! An approval covers one [`ApprovalItem`]: a hook's definition, the bytes of every project file that it
//! names, and the folders of scripts among them. It is valid for one project folder, one repository and one user. Tenterhook compares
//! the bytes that it read, and a trusted hook runs a private copy of them, never the project's file. So
//! neither a race nor an agent that edits its own guards can change what runs.
//!
//! An extension or a folder can have thousands of files. A [`CoverageSearch`] finds them, and a [`FileMemory`]
//! recognises those that did not change since they were last read.
//!
//! A [`DivergedHook`] is an approved hook that the project changed or no longer has. Its declaration is
//! read from the approved copies. If that fails, its gates deny.
//!
//! A hook that runs may still deny a call wrongly. The user lets that call through with a [`UserException`], which
//! [`ProjectExceptions`] applies.
//!
//! [`ApprovedDeclaration`] is the proof that a hook may run. Only this crate creates one, from a
//! declaration that `tenterhook-hookfile` read. `tenterhook-discovery` finds the hooks and turns them
//! into handlers.

#![forbid(unsafe_code)]

mod book;
mod copy_map;
mod coverage;
mod covered_file;
mod denial;
mod denied_call;
mod diverged;
mod error;
mod exceptions;
mod file_memory;
mod file_owner;
mod interpreter;
mod item;
mod item_changes;
mod judge;
mod mentions;
mod named_files;
mod parallel;
mod programs;
mod project;
mod project_hook;
mod project_variables;
mod record;
mod repository;
mod search_path;
mod source_files;
mod store;
mod trust;

pub use copy_map::inside_copies;
pub use coverage::{
    ApprovedFiles, CoverageBudget, CoverageError, CoverageSearch, ExtensionFolder, FindImports,
};
pub use covered_file::CoveredFile;
pub use denial::{denials, deny};
pub use denied_call::{DenialId, DenialIdError, DeniedCall};
pub use diverged::{
    DivergedHook, Divergence, displaced_hooks, displaced_reason, unrunnable_reason,
};
pub use error::TrustError;
pub use exceptions::{ExceptionStore, ExceptionTerm, ProjectExceptions, UserException};
pub use file_memory::FileMemory;
pub use file_owner::check_owner;
pub use interpreter::{check_interpreter, interpreter_version, missing_interpreter};
pub use item::{ApprovalItem, HookOrder};
pub use item_changes::{FileChange, ItemChanges, ListedFile, PackageChange};
pub use judge::{JudgedHook, judge, restore};
pub use mentions::mentioned;
pub use named_files::add;
pub use project::{
    Project, ProjectRoots, TENTERHOOK, below, is_hook_folder, repository_root, resolved,
};
pub use project_hook::{ProjectHook, TrustState};
pub use record::{ApprovalRecord, RepositoryIdentity};
pub use search_path::{find_program, in_search_path, search_path_in, search_path_outside};
pub use source_files::{sources_below, too_many_files};
pub use store::Approvals;
pub use trust::{ApprovedDeclaration, Trust};
