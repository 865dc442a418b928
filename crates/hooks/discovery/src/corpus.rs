//! Loads every hook file and extension below a folder, each by itself, and reports what it registers.
//!
//! Nothing is put in force. Each script has its own worker process, so that none can affect another.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt::{self, Display, Formatter};
use std::io;
use std::path::{Path, PathBuf};
use std::thread::available_parallelism;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use serde::Serialize;
use tenterhook_engine::{Layer, error_chain};
use tenterhook_files::{FolderWalk, WalkError, read_whole, readable_entries};
use tenterhook_hookfile::{LoadError, Severity, is_cases_file};
use tenterhook_systems::hook_folder::{FolderFiles, FolderKind, PackageSearch};
use tenterhook_systems::{SYSTEMS, kind_of_file, native};

use crate::folder::{FileState, FolderHooks, FolderSearch};
use crate::load::load_file;
use crate::options::LoadOptions;

/// The largest number of files and extensions of a corpus.
const MAX_ENTRIES: usize = 10_000;
/// The largest number of files and folders that are examined to find them.
const MAX_EXAMINED: usize = 200_000;
/// The folders that are not searched, because they contain no hooks.
const SKIPPED: [&str; 2] = [".git", "node_modules"];
/// The extensions of the names of scripts.
const SCRIPTS: [&str; 6] = ["ts", "mts", "js", "mjs", "cjs", "py"];
/// The extensions of the names of hook files.
const HOOK_FILES: [&str; 3] = ["yaml", "yml", "json"];

/// The keys at the top of hook files and agent files.
const HOOK_KEYS: [&str; 2] = ["hooks", "agents"];

/// The files and extensions below a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Corpus {
    /// The files and extensions, in the order of their paths.
    pub entries: Vec<CorpusEntry>,
    /// How many of them load.
    pub loads: usize,
    /// How many there are.
    pub total: usize,
}

/// What a file or extension of a corpus registers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CorpusEntry {
    /// The file, or the folder of the extension, relative to the corpus.
    pub path: PathBuf,
    /// Whether it loads.
    pub loads: bool,
    /// The events that its hooks receive, in alphabetical order, by their names in Tenterhook.
    pub events: BTreeSet<String>,
    /// The names of its tools.
    pub tools: BTreeSet<String>,
    /// The names of its commands.
    pub commands: BTreeSet<String>,
    /// Why it does not load.
    pub error: Option<String>,
}

impl Display for CorpusEntry {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        if let Some(error) = &self.error {
            return write!(formatter, "fails  {path}  {error}");
        }
        let lists = [
            ("events", &self.events),
            ("tools", &self.tools),
            ("commands", &self.commands),
        ];
        let lists = lists.into_iter().filter(|(_, names)| !names.is_empty());
        let lists = lists.map(|(what, names)| {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            format!("{what}: {}", names.join(", "))
        });
        let lists: Vec<String> = lists.collect();
        let found = if lists.is_empty() {
            "registers nothing".to_owned()
        } else {
            lists.join("; ")
        };
        write!(formatter, "loads  {path}  {found}")
    }
}

/// How to read one entry.
#[derive(Debug, Clone, Copy)]
enum Form {
    /// A file with hooks.
    HookFile,
    /// A script or an executable of any system.
    Script,
    /// A folder or file of an extension.
    Package(&'static FolderKind),
}

/// Loads every hook file and extension below a folder, each within `deadline`. As many load at once as
/// the machine has processors.
///
/// # Errors
/// Fails if the folder cannot be read or has too many files.
pub async fn load_corpus(
    folder: &Path,
    options: &LoadOptions,
    deadline: Duration,
) -> io::Result<Corpus> {
    let entries = entries_below(folder)?;
    let loads = entries.into_iter().map(|(path, form)| async move {
        let loaded = match form {
            Form::HookFile => of_hook_file(&path, options),
            Form::Script | Form::Package(_) => of_script(&path, form, deadline).await,
        };
        let shown = path.strip_prefix(folder).unwrap_or(&path).to_owned();
        match loaded {
            Ok(found) => CorpusEntry {
                path: shown,
                ..found
            },
            Err(error) => CorpusEntry {
                path: shown,
                error: Some(error),
                loads: false,
                ..empty()
            },
        }
    });
    let jobs = available_parallelism().map_or(1, usize::from);
    let entries: Vec<CorpusEntry> = stream::iter(loads).buffered(jobs).collect().await;
    Ok(Corpus {
        loads: entries.iter().filter(|entry| entry.loads).count(),
        total: entries.len(),
        entries,
    })
}

fn empty() -> CorpusEntry {
    CorpusEntry {
        path: PathBuf::new(),
        loads: true,
        events: BTreeSet::new(),
        tools: BTreeSet::new(),
        commands: BTreeSet::new(),
        error: None,
    }
}

fn of_hook_file(path: &Path, options: &LoadOptions) -> Result<CorpusEntry, String> {
    let loaded =
        load_file(path, Layer::Explicit, options).map_err(|error| first_problem(&error))?;
    let specs = loaded.specs.iter().chain(&loaded.wired);
    Ok(CorpusEntry {
        events: specs
            .filter_map(|spec| Some(spec.event.as_ref()?.to_string()))
            .collect(),
        ..empty()
    })
}

async fn of_script(path: &Path, form: Form, deadline: Duration) -> Result<CorpusEntry, String> {
    let search = FolderSearch::of_folders([]).deadline(deadline);
    let search = match form {
        Form::Package(kind) => search.packages(kind, [path.to_owned()]),
        Form::HookFile | Form::Script => search.file(path),
    };
    let found = search
        .discover()
        .await
        .map_err(|error| first_problem(&error))?;
    Ok(registered(&found))
}

fn first_problem(error: &LoadError) -> String {
    let mut errors = error.problems.iter();
    let first = errors.find(|problem| problem.severity == Severity::Error);
    first.map_or_else(|| error_chain(error), |problem| problem.message.clone())
}

fn registered(found: &FolderHooks) -> CorpusEntry {
    let mut entry = empty();
    for file in &found.files {
        entry
            .events
            .extend(file.state.events().iter().map(ToString::to_string));
        if let FileState::Script {
            tools, commands, ..
        } = &file.state
        {
            entry.tools.extend(tools.iter().cloned());
            entry.commands.extend(commands.iter().cloned());
        }
    }
    entry
}

/// Returns the hook files and extensions below a folder, in the order of their paths.
fn entries_below(folder: &Path) -> io::Result<Vec<(PathBuf, Form)>> {
    let too_many = |what: &str, most: usize| {
        let message = format!("the folder has more than {most} {what}; choose a folder below it");
        io::Error::other(message)
    };
    let mut entries = Vec::new();
    let mut walk = FolderWalk::below(folder, MAX_EXAMINED);
    while let Some(entry) = walk.next() {
        let entry = entry.map_err(|error| match error {
            WalkError::TooMany => too_many("files and folders", MAX_EXAMINED),
            WalkError::Unreadable { source, .. } => source,
        })?;
        let path = entry.path();
        // Links to folders are not followed, because they could form a cycle.
        let form = if !path.is_dir() {
            form_of(&path)
        } else if path.is_symlink() || SKIPPED.iter().any(|name| path.ends_with(name)) {
            continue;
        } else if let Some(program) = extension_program(&path) {
            entries.push((program, Form::Script));
            continue;
        } else {
            package_of(&path)
        };
        match form {
            Some(form) => entries.push((path, form)),
            None if path.is_dir() => walk.enter(path),
            None => {}
        }
        if entries.len() > MAX_ENTRIES {
            return Err(too_many("hook files and extensions", MAX_ENTRIES));
        }
    }
    entries.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(entries)
}

/// Returns the kinds of folders that contain packages of scripts.
fn package_kinds() -> impl Iterator<Item = (&'static FolderKind, &'static PackageSearch)> {
    let kinds = SYSTEMS.iter().flat_map(|system| system.folders).copied();
    kinds.filter_map(|kind| match &kind.files {
        FolderFiles::Packages(search) => Some((kind, search)),
        FolderFiles::All | FolderFiles::Containing(_) | FolderFiles::Extensions(_) => None,
    })
}

/// Returns the program of a folder that belongs to an extension. The folder's other files are its sources.
fn extension_program(folder: &Path) -> Option<PathBuf> {
    let mut programs: Vec<PathBuf> = readable_entries(folder)
        .map(|entry| entry.path())
        .filter(|path| path.is_file() && kind_of_file(path, b"").extension_programs().is_some())
        .collect();
    programs.sort();
    programs.into_iter().next()
}

/// Returns the form of a folder that is an extension as a whole.
fn package_of(folder: &Path) -> Option<Form> {
    let read = |path: &Path| read_whole(path).map(|(bytes, _)| bytes);
    let is_one = |search: &PackageSearch| {
        let found = (search.named)(folder, &read).unwrap_or_default();
        matches!(found.as_slice(), [only] if only.folder.is_some())
    };
    let mut kinds = package_kinds();
    kinds.find_map(|(kind, search)| is_one(search).then_some(Form::Package(kind)))
}

/// Returns the form of a file, or `None` if it is not a hook file or a script.
fn form_of(path: &Path) -> Option<Form> {
    let extension = path.extension().and_then(OsStr::to_str);
    let extension = extension.unwrap_or_default();
    let is_types = path.to_string_lossy().ends_with(".d.ts");
    let is_private = path.file_name()?.as_encoded_bytes().starts_with(b"_");
    if is_cases_file(path) || is_types || is_private {
        return None;
    }
    let text = read_whole(path).map_or_else(|_| Vec::new(), |(bytes, _)| bytes);
    let has = |wanted: &str| {
        text.windows(wanted.len())
            .any(|window| window == wanted.as_bytes())
    };
    if HOOK_FILES.contains(&extension) {
        let mut keys = HOOK_KEYS.iter();
        let is_hook_file = keys.any(|key| {
            has(&format!("\n{key}:"))
                || text.starts_with(format!("{key}:").as_bytes())
                || has(&format!("\"{key}\""))
        });
        return is_hook_file.then_some(Form::HookFile);
    }
    let kind = kind_of_file(path, &text);
    if is_program(&text) && is_for_programs(kind) {
        return Some(Form::Script);
    }
    if !SCRIPTS.contains(&extension) {
        return None;
    }
    // Other sources are modules that hooks import.
    if kind
        .scripts
        .as_ref()
        .is_some_and(|scripts| !scripts.marks.is_empty())
        || has("tenterhook")
    {
        return Some(Form::Script);
    }
    let mut kinds = package_kinds().map(|(kind, _)| kind);
    let package = kinds.find(|kind| kind.language(path).is_some() && has("export default"));
    package.map(Form::Package)
}

/// Reports whether a file is a script with an interpreter or a compiled program.
fn is_program(bytes: &[u8]) -> bool {
    bytes.starts_with(b"#!") || bytes.starts_with(b"\x7fELF")
}

/// Reports whether a hook system other than Tenterhook's own runs the executables of such a folder.
fn is_for_programs(kind: &FolderKind) -> bool {
    let is_foreign = kind.system != native::FOLDER.system;
    is_foreign && (kind.executables.is_some() || kind.extension_programs().is_some())
}
