//! Finds the project files that a hook's command and variables name.
//!
//! A word names a file if it has a `/` or ends like a script (`.sh`, `.py` …), or if an interpreter runs it. The
//! approval covers the file, and the path of its copy replaces the word. If the file is a script or a program, the
//! approval covers everything in its folder too. Every other word that may make the hook read something of the
//! project gets a note for the person who approves.
//!
//! | in the command | covered | replaced by the copy |
//! |---|---|---|
//! | a file of the project | yes | yes |
//! | a file that does not exist yet and would run | no | yes, so it never runs |
//! | a file inside of a longer word, as in `sh -c './x.sh y'` | yes | no, and the gates deny once it has changed |
//! | the target of `>`, what `tee` writes, the text of `echo`, the pattern of `grep` | no | no |

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use tenterhook_hookfile::HookAction;
use tenterhook_process::Shell;
use tenterhook_shell::{LineWord, LineWordKind, words};

use crate::copy_map::{NamedPath, PathLocation};
use crate::coverage::{
    ApprovedFiles, CoverageBudget, CoverageError, CoverageSearch, ExtensionFolder,
};
use crate::covered_file::CoveredFile;
use crate::file_memory::FileMemory;
use crate::interpreter::check_interpreter;
use crate::item::ApprovalItem;
use crate::programs::{
    Interpreter, ProgramKind, is_before_command, is_search_path, kind_of, makes_load,
};
use crate::project::{ProjectRoots, shown, within};
use crate::project_variables::{mask, unmask};
use crate::search_path::in_search_path;
use crate::source_files::{candidates, is_path_like, is_source, names_file};

const UNKNOWN: &str =
    "is only known when the hook runs; what it names can change without a new approval";
const ANYTHING: &str =
    "may load files that the command does not name; they can change without a new approval";
const FOLDER: &str = "is a folder of the project; its files can change without a new approval";
const INSIDE: &str = "is inside of a longer word, so the hook reads the file of the project; once that file has changed, the hook denies";
const LATER: &str = "does not exist; a file that is created there later is not covered";
const NEVER: &str = "does not exist; a file that is created there later does not run";
const EMPTY: &str =
    "has an empty entry, which is the working folder; its files can change without a new approval";
const LOG: &str = "is a log, which this approval does not cover";
const OUTSIDE: &str = "is outside of the project, so this approval does not cover it";
const ELSEWHERE: &str = "leads to another folder, and no relative path after it is covered";
const LOOKED_AT: &str = "is looked at in the project, where it can change without a new approval";

/// The files that a hook names.
#[derive(Debug, Default)]
pub(crate) struct NamedFiles {
    pub(crate) words: Vec<NamedPath>,
    /// Notes about what can change without a new approval, one sentence each.
    pub(crate) unread: Vec<String>,
    /// The files that run, whatever their names are.
    run: BTreeSet<PathBuf>,
    /// The folders that are covered whole, each with the script that is in it, or else the folder itself.
    folders: BTreeMap<PathBuf, PathBuf>,
}

impl NamedFiles {
    /// Finds the files that an action and its variables name.
    pub(crate) fn of(
        action: &HookAction,
        env: &[(String, String)],
        roots: ProjectRoots<'_>,
    ) -> Self {
        let mut reader = CommandReader {
            files: Self::default(),
            roots,
            dir: Some(roots.dir.to_owned()),
            is_nested: false,
        };
        match action {
            HookAction::Line { shell, line } => {
                if *shell == Shell::Pwsh {
                    reader.note(line, ANYTHING);
                }
                reader.add_line(line);
            }
            HookAction::Argv(argv) => {
                let words = argv.iter().enumerate().map(|(index, text)| {
                    let place = PathLocation::Word(index, 0..text.len());
                    Word::known(text.clone(), text, LineWordKind::Plain, place)
                });
                reader.add_command(&words.collect::<Vec<_>>());
            }
            HookAction::Builtin { name, args } if action.is_speech() => {
                for text in args {
                    reader.add_inside(text);
                }
                let note = format!("the built-in `{name}` may run and read more than these files");
                reader.files.unread.push(note);
            }
            HookAction::Builtin { .. } | HookAction::Model(_) | HookAction::Http(_) => {}
        }
        reader.dir = Some(roots.dir.to_owned());
        for (index, (name, value)) in env.iter().enumerate() {
            let (raw, kind) = (format!("{name}={value}"), LineWordKind::Assignment);
            let place = PathLocation::Variable(index, 0..value.len());
            reader.add_assignment(&Word::known(raw, value, kind, place));
        }
        reader.files
    }

    /// Reads every named file once, and finds the folders of scripts. The error names the file.
    pub(crate) fn read(&mut self, roots: ProjectRoots<'_>) -> Result<Vec<CoveredFile>, String> {
        let mut files: Vec<CoveredFile> = Vec::new();
        for named in &self.words {
            if named.location == PathLocation::Nowhere {
                add(&mut files, &named.path, roots.project)?;
            }
        }
        for file in &files {
            let shown = file.path.display();
            let checked = check_interpreter(&file.bytes, roots.dir, roots.root, None);
            let note = checked.map_err(|problem| format!("`{shown}`: {problem}"))?;
            self.unread
                .extend(note.map(|note| format!("`{shown}`: {note}")));
            let path = roots.project.join(&file.path);
            let is_script = is_source(&path)
                || file.is_executable
                || file.bytes.starts_with(b"#!")
                || self.run.contains(&path);
            let is_replaced =
                |it: &NamedPath| it.path == path && it.location != PathLocation::Nowhere;
            let Some(folder) = path.parent().filter(|_| is_script) else {
                continue;
            };
            if roots.project.starts_with(folder) {
                self.unread.push(format!(
                    "`{shown}` is in the folder of the project itself, so it is covered alone; what it loads from there \
                     can change without a new approval"
                ));
            } else if self.words.iter().any(is_replaced) {
                let folder = folder.to_owned();
                self.folders.entry(folder).or_insert(path);
            }
        }
        Ok(files)
    }

    /// Finds all other files of the covered folders. Notes why a folder cannot be covered. With the `approved` files,
    /// the error says which file is not one of them.
    pub(crate) fn cover(
        &mut self,
        own: &[CoveredFile],
        roots: ProjectRoots<'_>,
        memory: &FileMemory,
        approved: Option<&ApprovedFiles>,
    ) -> Result<Vec<CoveredFile>, CoverageError> {
        let mut covered = BTreeMap::new();
        let budget = CoverageBudget::default();
        for (dir, entry) in &self.folders {
            let search = CoverageSearch {
                project: roots.project,
                folder: &ExtensionFolder::of_script(dir.clone()),
                entry,
                memory,
                imports: |_| Vec::new(),
                approved: approved.filter(|files| files.has_below(&shown(dir, roots.project))),
                budget: &budget,
            };
            match search.run() {
                Ok(files) => {
                    covered.extend(files.into_iter().map(|file| (file.path.clone(), file)));
                }
                Err(error @ CoverageError::Differs { .. }) => return Err(error),
                Err(error) => self.unread.push(format!(
                    "{error}, so `{}` is covered alone; what it loads from there can change without a new approval",
                    shown(entry, roots.project).display()
                )),
            }
        }
        covered.retain(|path, _| own.iter().all(|file| file.path != *path));
        Ok(covered.into_values().collect())
    }

    /// Adds a file. If it exists, each of its names counts, so that [`without_copy`] can tell whether all
    /// of them are replaced.
    fn push(&mut self, location: Option<PathLocation>, path: &Path) {
        // The file behind a loop is read by each of its commands.
        if self
            .words
            .iter()
            .any(|it| Some(&it.location) == location.as_ref())
        {
            return;
        }
        let counted = path.is_file().then_some(PathLocation::Nowhere);
        let path = path.to_owned();
        let words = counted.into_iter().chain(location);
        self.words.extend(words.map(|location| NamedPath {
            location,
            path: path.clone(),
        }));
    }
}

/// Returns an approved file that the hook would read from the project, because the command names it at a position
/// where the path cannot be replaced.
pub(crate) fn without_copy(item: &ApprovalItem) -> Option<&Path> {
    let lacks_copy = |file: &&CoveredFile| {
        let named = item.named.iter();
        let named = named.filter(|named| shown(&named.path, &item.project) == file.path);
        let is_counted = |named: &&NamedPath| named.location == PathLocation::Nowhere;
        let (others, placed): (Vec<_>, Vec<_>) = named.partition(is_counted);
        placed.len() < others.len()
    };
    let mut files = item.files.iter();
    files.find(lacks_copy).map(|file| file.path.as_path())
}

/// Reads a file and adds it, unless it was added before. The error names the file.
pub fn add(files: &mut Vec<CoveredFile>, path: &Path, project: &Path) -> Result<(), String> {
    let shown = shown(path, project);
    if files.iter().any(|known| known.path == shown) {
        return Ok(());
    }
    let file = CoveredFile::read(path, &shown)
        .map_err(|error| format!("`{}` cannot be read: {error}", shown.display()))?;
    files.push(file);
    Ok(())
}

/// Returns a word of a line with the command that a shell runs to find out what it means, as in `$(x)`.
fn with_command(line: &str, word: &LineWord) -> String {
    let behind = line.get(word.range.end..).unwrap_or_default();
    let end = behind
        .find(')')
        .filter(|_| word.raw.ends_with('$') && behind.starts_with('('));
    let command = end.and_then(|end| behind.get(..=end)).unwrap_or_default();
    format!("{}{command}", word.raw)
}

/// Returns whether a shell may run a command to find out what a word means. Such a command is not read.
fn has_command(raw: &str) -> bool {
    raw.contains("$(") || raw.contains('`')
}

/// Returns whether a path goes through system folders in which a name can refer to any file.
fn is_of_system(path: &str) -> bool {
    path.contains("/proc/") || path.contains("/dev/fd")
}

/// A word of a command. Its texts have [signs](mask) in place of the names of folders.
struct Word {
    /// The word as it is written. For an assignment, this is the whole word.
    raw: String,
    /// The word with the command after its `$`.
    shown: String,
    /// Its text, or the value of an assignment. `None` if it is only known when the hook runs.
    text: Option<String>,
    kind: LineWordKind,
    /// Where the text is.
    place: PathLocation,
}

/// A part of a word that may name a file.
struct Value<'a> {
    text: &'a str,
    /// Where the path of a copy can replace it.
    location: Option<PathLocation>,
    /// Whether it is a folder in which programs search.
    is_searched: bool,
}

impl Word {
    /// Describes a word that no shell reads.
    fn known(raw: String, text: &str, kind: LineWordKind, place: PathLocation) -> Self {
        Self {
            shown: raw.clone(),
            raw,
            text: Some(text.to_owned()),
            kind,
            place,
        }
    }

    /// Returns the name of the variable that the word sets.
    fn variable(&self) -> Option<&str> {
        let (name, _) = self.raw.split_once('=')?;
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        (!name.is_empty() && name.chars().all(is_of_name)).then_some(name)
    }

    /// Returns the values in the word: what comes after `=`, and the entries of a list.
    fn values(&self) -> Vec<Value<'_>> {
        let text = self.text.as_deref().unwrap_or_default();
        let begin = match text.split_once('=') {
            Some((name, _))
                if name.starts_with('-')
                    || (self.kind == LineWordKind::Plain && self.variable() == Some(name)) =>
            {
                name.len() + 1
            }
            _ => 0,
        };
        let value = text.get(begin..).unwrap_or_default();
        let is_searched = self.variable().is_some_and(is_search_path);
        // Programs ignore an empty variable, except `PATH`, where it means the working folder.
        if value.is_empty() && self.variable() != Some("PATH") {
            return Vec::new();
        }
        let is_list = is_searched || (self.variable().is_some() && !value.contains("://"));
        let mut at = begin;
        let parts = value.split(|c| is_list && c == ':').map(|part| {
            let range = at..at + part.len();
            at = range.end + 1;
            Value {
                text: part,
                location: self.location(range),
                is_searched,
            }
        });
        parts.collect()
    }

    /// Returns the position of a part of the text. In a line, parts of quoted words have no known position.
    fn location(&self, part: Range<usize>) -> Option<PathLocation> {
        let text = self.text.as_deref()?;
        match &self.place {
            place if part == (0..text.len()) => Some(place.clone()),
            PathLocation::Line(range) => (self.raw.ends_with(text) && range.len() == text.len())
                .then(|| PathLocation::Line(range.start + part.start..range.start + part.end)),
            PathLocation::Word(index, _) => Some(PathLocation::Word(*index, part)),
            PathLocation::Variable(index, _) => Some(PathLocation::Variable(*index, part)),
            PathLocation::Nowhere => None,
        }
    }
}

/// What the next word of a command is.
enum Expected {
    Program,
    /// A folder, after `cd`.
    Folder,
    /// An option or the script of an interpreter, with its name and its last option.
    Script(&'static Interpreter, String, String),
    Argument(ProgramKind),
}

impl Expected {
    /// Returns what comes after such a word.
    const fn then(&self) -> Self {
        match self {
            Self::Argument(kind) => Self::Argument(*kind),
            Self::Program | Self::Folder | Self::Script(..) => Self::Argument(ProgramKind::Runs),
        }
    }
}

/// Reads the words of commands, one after the other.
struct CommandReader<'a> {
    files: NamedFiles,
    roots: ProjectRoots<'a>,
    /// The folder of relative paths. `None` after a `cd` to an unknown folder.
    dir: Option<PathBuf>,
    /// Whether a part of the line may run in a shell of its own, which `cd` changes alone.
    is_nested: bool,
}

impl CommandReader<'_> {
    fn add_line(&mut self, line: &str) {
        let masked = mask(line);
        self.is_nested = masked.contains('(');
        let words: Vec<LineWord> = words(&masked, self.roots.dir);
        for command in words.chunk_by(|one, other| one.command == other.command) {
            let words = command.iter().map(|word| Word {
                raw: word.raw.clone(),
                shown: with_command(&masked, word),
                text: word.text.clone(),
                kind: word.kind,
                place: PathLocation::Line(word.range.clone()),
            });
            self.add_command(&words.collect::<Vec<_>>());
        }
    }

    fn add_command(&mut self, words: &[Word]) {
        let mut expected = Expected::Program;
        for word in words {
            expected = match word.kind {
                LineWordKind::Output => expected,
                LineWordKind::Plain => self.add_word(expected, word),
                LineWordKind::Input => {
                    self.add_input(word);
                    expected
                }
                LineWordKind::Assignment => {
                    self.add_assignment(word);
                    expected
                }
            };
        }
        if matches!(expected, Expected::Folder) {
            self.lose_folder("cd");
        }
        if let Expected::Script(_, name, _) = expected {
            self.note(
                &name,
                "names no script, so it runs what Tenterhook cannot read",
            );
        }
    }

    /// Adds a word, and returns what the next one is.
    fn add_word(&mut self, expected: Expected, word: &Word) -> Expected {
        // To a shell, `[` could also begin a pattern.
        let is_test = ["[", "[["].contains(&word.raw.as_str());
        let Some(text) = word.text.as_ref().or(is_test.then_some(&word.raw)) else {
            match expected {
                // `export` sets a variable.
                Expected::Argument(ProgramKind::Ignores) if word.variable().is_some() => {
                    self.add_assignment(word);
                }
                Expected::Argument(ProgramKind::Looks | ProgramKind::Ignores)
                    if !has_command(&word.raw) => {}
                Expected::Folder => self.lose_folder(&word.shown),
                Expected::Program | Expected::Script(..) | Expected::Argument(_) => {
                    self.note(&word.shown, UNKNOWN);
                }
            }
            return expected.then();
        };
        let shown = unmask(text, self.roots);
        match &expected {
            Expected::Argument(ProgramKind::Looks) => self.add_looked_at(&shown),
            Expected::Program | Expected::Argument(_) if word.variable().is_some() => {
                self.add_assignment(word);
                return expected;
            }
            Expected::Argument(ProgramKind::Ignores) => {}
            Expected::Argument(kind) => {
                for value in word.values() {
                    let is_found = self.add_value(&value);
                    if !is_found && *kind == ProgramKind::Runs {
                        self.add_inside(text);
                    }
                }
            }
            Expected::Folder => {
                let folder = self.path_of(&shown).filter(|it| it.is_dir());
                match folder.filter(|it| !self.is_nested || it == self.roots.dir) {
                    Some(folder) => self.dir = Some(folder),
                    None => self.lose_folder(&shown),
                }
            }
            Expected::Program => return self.add_program(word, shown),
            Expected::Script(interpreter, name, before) => {
                if interpreter.loads_nothing_by(before, text) {
                    return Expected::Script(interpreter, name.clone(), shown);
                }
                if let Some(path) = self.path_of(&shown) {
                    self.add_runnable(word, &path);
                } else {
                    self.note(&format!("{name} {shown}"), ANYTHING);
                    self.add_inside(text);
                }
            }
        }
        expected.then()
    }

    fn lose_folder(&mut self, shown: &str) {
        self.dir = None;
        self.note(shown, ELSEWHERE);
    }

    fn add_program(&mut self, word: &Word, shown: String) -> Expected {
        let path = if shown.contains('/') {
            self.path_of(&shown)
        } else {
            in_search_path(&shown, self.roots.dir)
                .filter(|found| found.starts_with(self.roots.root))
        };
        if let Some(path) = path {
            self.add_runnable(word, &path);
        } else if shown.starts_with('-') {
            // An option of `command`.
            return Expected::Program;
        } else if shown == "cd" {
            return Expected::Folder;
        } else if is_before_command(&shown) {
            return Expected::Program;
        } else if let Some(interpreter) = Interpreter::named(&shown) {
            return Expected::Script(interpreter, shown, String::new());
        } else if let Some(kind) = kind_of(&shown) {
            return Expected::Argument(kind);
        } else {
            self.note(&shown, ANYTHING);
        }
        Expected::Argument(ProgramKind::Runs)
    }

    /// Adds a file that runs. Its copy replaces it even if it does not exist, so that no later file runs.
    fn add_runnable(&mut self, word: &Word, path: &Path) {
        if path.is_dir() && !self.roots.project.starts_with(path) {
            // Python runs `__main__.py` of such a folder.
            self.files.folders.insert(path.to_owned(), path.to_owned());
        } else if !path.is_file() {
            self.note(&word.raw, NEVER);
        }
        self.files.run.insert(path.to_owned());
        self.files.push(Some(word.place.clone()), path);
    }

    /// Adds the file that `<` reads, whatever its name is.
    fn add_input(&mut self, word: &Word) {
        let Some(text) = &word.text else {
            return self.note(&word.shown, UNKNOWN);
        };
        if let Some(path) = self.path_of(&unmask(text, self.roots)) {
            if !path.is_file() {
                self.note(&word.raw, NEVER);
            }
            self.files.push(Some(word.place.clone()), &path);
        } else {
            for value in word.values() {
                self.add_value(&value);
            }
        }
    }

    /// Notes that a program looks at a file of the project, or searches for a text that looks like one.
    fn add_looked_at(&mut self, shown: &str) {
        let path = self.path_of(shown);
        if path.is_some_and(|path| path.exists() || is_path_like(shown)) {
            self.note(shown, LOOKED_AT);
        }
    }

    /// Adds the files and folders that the value of a variable names.
    fn add_assignment(&mut self, word: &Word) {
        let name = word.variable().unwrap_or_default();
        let is_loaded = makes_load(name);
        let Some(text) = &word.text else {
            if is_loaded || is_search_path(name) || has_command(&word.raw) {
                self.note(&word.shown, UNKNOWN);
            }
            return;
        };
        if text.contains(['$', '`']) {
            return self.note(&word.raw, UNKNOWN);
        }
        let named_before = self.files.words.len();
        for value in word.values() {
            if value.text.is_empty() && value.is_searched {
                self.note(&word.raw, EMPTY);
            } else if !self.add_value(&value) {
                self.add_inside(value.text);
            }
        }
        if is_loaded && self.files.words.len() == named_before {
            self.note(&word.raw, "makes programs load or run what it names, and that can change without a new approval");
        }
    }

    /// Adds the file that a value names, or notes what else it names. Returns whether it found something.
    fn add_value(&mut self, value: &Value<'_>) -> bool {
        let shown = unmask(value.text, self.roots);
        let has_entries = value.is_searched;
        let Some(path) = self.path_of(&shown) else {
            if is_of_system(&shown) {
                self.note(&shown, UNKNOWN);
            } else if shown.starts_with("..") {
                self.note(&shown, OUTSIDE);
            }
            return false;
        };
        if path.extension().is_some_and(|extension| extension == "log") {
            self.note(&shown, LOG);
        } else if path.is_dir() {
            let is_whole = self.roots.project.starts_with(&path);
            if !has_entries || is_whole || value.location.is_none() {
                self.note(&shown, FOLDER);
            } else {
                self.files.folders.insert(path.clone(), path.clone());
                self.files.push(value.location.clone(), &path);
            }
        } else if path.is_file() && !has_entries && !names_file(&shown) {
            let hint = format!(
                "is also a file of the project, which is not covered; if the hook reads it, write `./{shown}`"
            );
            self.note(&shown, &hint);
        } else if path.is_file() || has_entries {
            match value.location {
                None => self.note(&shown, INSIDE),
                Some(_) if path.is_file() => {}
                Some(_) => self.note(&shown, NEVER),
            }
            self.files.push(value.location.clone(), &path);
        } else {
            // A filter such as `jq .event.ts` is not a path.
            let is_name = is_source(&path) && !shown.starts_with('.');
            if is_path_like(&shown) && (shown.contains('/') || is_name) {
                self.note(&shown, LATER);
            }
            return false;
        }
        true
    }

    /// Adds the files that are named inside of a text. They cannot be replaced.
    fn add_inside(&mut self, text: &str) {
        let text = unmask(text, self.roots);
        for part in candidates(&text) {
            let path = self.path_of(part);
            if let Some(path) = path.filter(|path| path.is_file() && names_file(part)) {
                self.files.push(None, &path);
                self.note(part, INSIDE);
            } else if part != text && (part.starts_with("./") || part.starts_with("../")) {
                self.note(part, LATER);
            }
        }
    }

    /// Returns the path of the project that a text names.
    fn path_of(&self, shown: &str) -> Option<PathBuf> {
        let is_other = shown.starts_with('-') || shown.contains("://") || is_of_system(shown);
        let dir = match &self.dir {
            Some(dir) => dir,
            None if Path::new(shown).is_absolute() => self.roots.dir,
            None => return None,
        };
        let roots = ProjectRoots { dir, ..self.roots };
        (!is_other).then(|| within(shown, roots)).flatten()
    }

    /// Notes something about a text, once.
    fn note(&mut self, shown: &str, what: &str) {
        let note = format!("`{}` {what}", unmask(shown, self.roots));
        if !self.files.unread.contains(&note) {
            self.files.unread.push(note);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crate::copy_map::replace_with_copies;
    use crate::project::Project;

    use super::*;

    /// What was found in a line.
    struct Found {
        /// The files that the approval covers.
        named: Vec<String>,
        unread: Vec<String>,
        /// The line with copies.
        over: String,
        lacks_copy: bool,
    }

    /// Creates a project and reads a line of a hook in it.
    fn read(line: &str) -> Found {
        let home = tempfile::tempdir().unwrap();
        let project = fs::canonicalize(home.path()).unwrap();
        for file in [
            "h/check.sh",
            "h/a b.py",
            "h/module.py",
            "h/data/rules.json",
            "h/own.log",
            "h/__pycache__/module.pyc",
            "test",
            "rules.jq",
            "docs/context.md",
            "docs/other.md",
            ".tenterhook/guard.sh",
            ".tenterhook/hooks.yaml",
        ] {
            let path = project.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let roots = ProjectRoots {
            dir: &project,
            project: &project,
            root: &project,
        };
        let mut action = HookAction::Line {
            shell: Shell::Sh,
            line: line.replace("ROOT", &format!("'{}'", project.display())),
        };
        let mut files = NamedFiles::of(&action, &[], roots);
        let read = files.read(roots).unwrap();
        let item = ApprovalItem {
            files: read.clone(),
            named: files.words.clone(),
            ..ApprovalItem::new(&Project::of(&project), PathBuf::new(), String::new())
        };
        let covered = files.cover(&read, roots, &FileMemory::default(), None);
        let covered = covered.unwrap().into_iter().map(|file| file.path);
        let named = read.into_iter().map(|file| file.path).chain(covered);
        let named = named.map(|path| path.display().to_string()).collect();
        let copies = Path::new("/c");
        replace_with_copies(&files.words, &project, copies, &mut action, &mut []).unwrap();
        let HookAction::Line { line: over, .. } = &action else {
            panic!("a line stays a line");
        };
        let over = over.replace(&format!("'{}'", project.display()), "ROOT");
        Found {
            named,
            unread: files.unread,
            over,
            lacks_copy: without_copy(&item).is_some(),
        }
    }

    /// Asserts what an approval of a line covers, the line with copies, and that no note is shown.
    fn assert_covers(line: &str, named: &[&str], expected: &str) {
        let found = read(line);
        assert_eq!(found.named, named, "{line}");
        assert_eq!(found.over, expected, "{line}");
        assert_eq!(found.unread, Vec::<String>::new(), "{line}");
    }

    #[test]
    fn a_script_is_covered_with_its_folder_however_the_line_names_it() {
        let files = ["h/check.sh", "h/a b.py", "h/data/rules.json", "h/module.py"];
        for (line, expected) in [
            ("h/check.sh --x", "/c/h/check.sh --x"),
            ("sh -e h/check.sh", "sh -e /c/h/check.sh"),
            (
                "bash -euo pipefail ./h/check.sh",
                "bash -euo pipefail /c/h/check.sh",
            ),
            (". ./h/check.sh; echo done", ". /c/h/check.sh; echo done"),
            ("ROOT/h/check.sh", "/c/h/check.sh"),
            ("\"$PWD\"/h/check.sh", "/c/h/check.sh"),
            ("${PWD}/h/../h/check.sh", "/c/h/check.sh"),
            ("\"$(pwd)/h/check.sh\"", "/c/h/check.sh"),
            (
                "$(git rev-parse --show-toplevel)/h/check.sh",
                "/c/h/check.sh",
            ),
            ("\"$CLAUDE_PROJECT_DIR\"/h/check.sh", "/c/h/check.sh"),
            ("\"${CLAUDE_PROJECT_DIR}/h/check.sh\" x", "/c/h/check.sh x"),
            (
                "exec \"$GEMINI_PROJECT_DIR\"/h/check.sh",
                "exec /c/h/check.sh",
            ),
            (
                "cd \"$CLAUDE_PROJECT_DIR\" && h/check.sh",
                "cd \"$CLAUDE_PROJECT_DIR\" && /c/h/check.sh",
            ),
            ("cd h && ./check.sh", "cd h && /c/h/check.sh"),
            (
                "cat <<-E\nh/x\n\tE\nh/check.sh",
                "cat <<-E\nh/x\n\tE\n/c/h/check.sh",
            ),
            (
                "if h/check.sh; then exit 2; fi",
                "if /c/h/check.sh; then exit 2; fi",
            ),
            (
                "jq -r .cmd | sh h/check.sh 2>&1 >h/own.log",
                "jq -r .cmd | sh /c/h/check.sh 2>&1 >h/own.log",
            ),
        ] {
            assert_covers(line, &files, expected);
        }
        assert_covers(
            "python3 'h/a b.py'",
            &["h/a b.py", "h/check.sh", "h/data/rules.json", "h/module.py"],
            "python3 '/c/h/a b.py'",
        );
        assert_covers(
            "python3 h",
            &["h/a b.py", "h/check.sh", "h/data/rules.json", "h/module.py"],
            "python3 /c/h",
        );
        assert_covers(
            "sh .tenterhook/guard.sh",
            &[".tenterhook/guard.sh"],
            "sh /c/.tenterhook/guard.sh",
        );
    }

    #[test]
    fn other_files_are_covered_alone() {
        for (line, named, expected) in [
            (
                "cat docs/context.md",
                "docs/context.md",
                "cat /c/docs/context.md",
            ),
            (
                "jq --from-file=./rules.jq",
                "rules.jq",
                "jq --from-file=/c/rules.jq",
            ),
        ] {
            assert_covers(line, &[named], expected);
        }
        for line in [
            "",
            "echo test h/check.sh",
            "cat >> h/own.log",
            "tee -a h/own.log",
            "grep -q 'rm -rf' && exit 2 || exit 0",
            "/bin/cat # h/check.sh",
            "date +%Y/%m/%d",
            "jq -r .event.ts | cut -d/ -f2",
            "command -v jq || exit 0",
            "cat <<'EOF'; exit 0\nüse ./x.sh\n h/check.sh\nEOF\n",
            "X=$(cat); [ -n \"$X\" ] && echo \"$X\"",
        ] {
            assert_covers(line, &[], line);
        }
    }

    #[test]
    fn what_a_line_may_read_besides_its_files_is_noted() {
        for (line, noted) in [
            ("$HOOK/check.sh", "`$HOOK/check.sh`"),
            ("sh *.sh", "`*.sh`"),
            ("~/check.sh", "`~/check.sh`"),
            ("sh \"$X\"", "`\"$X\"`"),
            ("cat $(./x)", "`$(./x)`"),
            ("make", "`make`"),
            ("npx tsx h/check.sh", "`npx`"),
            ("env A=b sh h/check.sh", "`env`"),
            ("python3 -m check", "`python3 -m`"),
            ("python3 -mcheck", "`python3 -mcheck`"),
            ("perl -Mevil h/check.sh", "`perl -Mevil`"),
            ("sh -c 'h/check.sh x'", "`h/check.sh` is inside"),
            ("cat test | sh", "`sh` names no script"),
            ("cat test", "write `./test`"),
            ("cat docs", "`docs` is a folder"),
            ("sh h/check.sh docs", "`docs` is a folder"),
            ("sh h/check.sh ./new", "`./new` does not exist"),
            ("sh h/check.sh new.py", "`new.py` does not exist"),
            ("sh h/check.sh '@./test'", "`./test` is inside"),
            ("ls .", "`.` is a folder"),
            ("sh gone", "`gone` does not exist"),
            ("./gone.sh", "`./gone.sh` does not exist"),
            ("cd .. && sh h/check.sh", "`..` leads to another folder"),
            ("(cd h); ./check.sh", "`h` leads to another folder"),
            (
                "grep -q x docs/context.md",
                "`docs/context.md` is looked at",
            ),
            ("[ -f docs/pause ] && exit 0", "`docs/pause` is looked at"),
            ("sh /proc/self/cwd/test", "`sh /proc/self/cwd/test`"),
            ("PYTHONPATH=. python3 h/module.py", "`.` is a folder"),
            ("PYTHONPATH=$X python3 h/module.py", "`PYTHONPATH=$X`"),
            ("BASH_ENV=evil sh h/check.sh", "`BASH_ENV=evil`"),
            (
                "sh ./rules.jq",
                "`rules.jq` is in the folder of the project itself",
            ),
            ("sh <<EOF\nx\nEOF", "`sh` names no script"),
            ("echo \"$(h/check.sh)\"", "$(h/check.sh)"),
            ("[ \"`./x`\" = y ]", "`./x`"),
            ("X=\"$(./x)\"", "$(./x)"),
            ("h/check.sh >&2 h/own.log", "`h/own.log` is a log"),
        ] {
            let unread = read(line).unread;
            assert!(
                unread.iter().any(|note| note.contains(noted)),
                "{line}: {unread:?}"
            );
        }
    }

    #[test]
    fn nothing_takes_the_place_of_a_file_that_is_missing() {
        for (line, expected) in [
            ("sh gone", "sh /c/gone"),
            ("./gone.sh || true", "/c/gone.sh || true"),
            ("X=$((1<<2))\n./gone.sh", "X=$((1<<2))\n/c/gone.sh"),
            ("$CLAUDE_PROJECT_DIR/gone", "/c/gone"),
            ("h/check.sh --with gone.py", "/c/h/check.sh --with gone.py"),
            (
                "PYTHONPATH=gone python3 h/module.py",
                "PYTHONPATH=/c/gone python3 /c/h/module.py",
            ),
        ] {
            assert_eq!(read(line).over, expected, "{line}");
        }
    }

    #[test]
    fn a_line_without_copies_of_all_of_its_files_is_known() {
        for (line, lacks_copy) in [
            ("sh h/check.sh", false),
            ("sh h/check.sh && ./h/check.sh", false),
            ("sh -c h/check.sh", false),
            ("sh -c './h/check.sh x'", true),
            ("sh h/check.sh; sh -c './h/check.sh x'", true),
        ] {
            assert_eq!(read(line).lacks_copy, lacks_copy, "{line}");
        }
    }
}
