//! Finds the project files that a hook's command and variables name.
//!
//! A word names a file if it has a `/` or ends like a script (`.sh`, `.py` …), if it is the script of an
//! interpreter, or if it is the value of such an option (`--rules=x/y`). The approval covers that file, and the
//! path of its copy replaces the word. If the file is a script or a program, the approval covers everything in its
//! folder too. [`NamedFiles::unread`] tells the person who approves about every other word that may make the hook
//! read something of the project.
//!
//! | in the command | covered | replaced by the copy |
//! |---|---|---|
//! | a file of the project | yes | yes |
//! | such a file that does not exist yet, if it would run | no | yes, so it never runs |
//! | a file inside of a longer word, as in `sh -c './x.sh'` | yes | no, and the gates deny once it has changed |
//! | the target of `>`, files that `tee` and similar programs write, text of `echo`, patterns of `grep` | no | no |

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use tenterhook_builtins::builtin::runs_programs_of_arguments;
use tenterhook_hookfile::HookAction;
use tenterhook_process::Shell;
use tenterhook_shell::{LineWord, LineWordKind, words};

use crate::coverage::{
    ApprovedFiles, CoverageBudget, CoverageError, CoverageSearch, ExtensionFolder,
};
use crate::covered_file::CoveredFile;
use crate::file_memory::FileMemory;
use crate::interpreter::check_interpreter;
use crate::item_file::ItemFile;
use crate::named_path::{NamedPath, PathLocation};
use crate::path_words::{candidates, is_path_like, names_file};
use crate::programs::{Interpreter, ProgramKind, is_before_command, kind_of};
use crate::project_roots::{ProjectRoots, shown, within};
use crate::project_variables::{mask, unmask};
use crate::search_path::in_search_path;
use crate::source_files::is_source;
use crate::variables::{is_search_path, makes_load};

/// The files that a hook names.
#[derive(Debug, Default)]
pub(crate) struct NamedFiles {
    pub(crate) words: Vec<NamedPath>,
    /// Notes about what can change without a new approval, one sentence each.
    pub(crate) unread: Vec<String>,
    /// The files that run, whatever their names are.
    run: BTreeSet<PathBuf>,
    /// The folders that are covered whole, each with the script or the variable's value that names it.
    folders: BTreeMap<PathBuf, PathBuf>,
}

impl NamedFiles {
    /// Finds the files that an action and its variables name.
    pub(crate) fn of(
        action: &HookAction,
        env: &[(String, String)],
        roots: ProjectRoots<'_>,
    ) -> Self {
        let mut files = Self::default();
        match action {
            HookAction::Line { shell, line } => {
                if *shell == Shell::Pwsh {
                    files.note("Tenterhook does not read PowerShell; the line may read other files than these");
                }
                files.add_line(line, roots);
            }
            HookAction::Argv(argv) => {
                let words = argv.iter().enumerate().map(|(index, text)| Word {
                    text: Some(text.clone()),
                    raw: text.clone(),
                    kind: LineWordKind::Plain,
                    place: PathLocation::Word(index, 0..text.len()),
                });
                let words: Vec<Word> = words.collect();
                CommandReader::new(&mut files, roots).add_command(&words);
            }
            HookAction::Builtin { name, args } if runs_programs_of_arguments(name) => {
                for argument in args {
                    CommandReader::new(&mut files, roots).add_inside(argument);
                }
                files.note(&format!(
                    "the built-in `{name}` may run and read more than these files"
                ));
            }
            HookAction::Builtin { .. } | HookAction::Model(_) | HookAction::Http(_) => {}
        }
        for (index, (name, value)) in env.iter().enumerate() {
            let place = |range| Some(PathLocation::Variable(index, range));
            CommandReader::new(&mut files, roots).add_variable(name, value, &place);
        }
        files
    }

    fn add_line(&mut self, line: &str, roots: ProjectRoots<'_>) {
        let masked = mask(line);
        let words: Vec<LineWord> = words(&masked, roots.dir);
        let mut reader = CommandReader::new(self, roots);
        // A word after `<<` is not a file.
        reader.has_here_document = line.contains("<<");
        reader.has_subshell = masked.contains('(');
        for command in words.chunk_by(|one, other| one.command == other.command) {
            let command: Vec<Word> = command.iter().map(Word::of_line).collect();
            reader.add_command(&command);
        }
    }

    fn note(&mut self, text: &str) {
        if !self.unread.iter().any(|known| known == text) {
            self.unread.push(text.to_owned());
        }
    }

    fn push(&mut self, location: PathLocation, path: PathBuf) {
        let exists = path.is_file();
        self.words.push(NamedPath {
            location,
            path,
            exists,
            is_in_folder: false,
        });
    }

    /// Reads every named file once, and finds the folders of scripts. The error names the file.
    pub(crate) fn read(&mut self, roots: ProjectRoots<'_>) -> Result<Vec<ItemFile>, String> {
        let mut files: Vec<ItemFile> = Vec::new();
        for named in self.words.iter().filter(|named| named.exists) {
            let before = files.len();
            add(&mut files, &named.path, roots.project)?;
            let own = shown(&named.path, roots.project);
            let Some(file) = files.iter().find(|file| file.path == own) else {
                continue;
            };
            if files.len() > before {
                let checked = check_interpreter(&file.bytes, roots.dir, roots.root, None);
                let checked =
                    checked.map_err(|problem| format!("`{}`: {problem}", own.display()))?;
                let note = checked.map(|note| format!("`{}`: {note}", own.display()));
                self.unread.extend(note);
            }
            let is_script = is_source(&own)
                || self.run.contains(&named.path)
                || file.is_executable
                || file.bytes.starts_with(b"#!");
            let folder = named.path.parent().filter(|_| is_script);
            if let Some(folder) = folder.filter(|_| named.location != PathLocation::Nowhere) {
                self.folders
                    .entry(folder.to_owned())
                    .or_insert_with(|| named.path.clone());
            }
        }
        for (_, script) in self
            .folders
            .extract_if(.., |dir, _| is_whole_project(dir, roots))
        {
            self.unread.push(format!(
                "`{}` is in the folder of the project itself, which is too much to copy; other files that it loads \
                 from there can change without a new approval",
                shown(&script, roots.project).display()
            ));
        }
        Ok(files)
    }

    /// Finds all other files of the covered folders. Notes why a folder cannot be covered. With the `approved` files,
    /// the error says which file is not one of them.
    pub(crate) fn cover(
        &mut self,
        own: &[ItemFile],
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
                    "{error}; other files that `{}` loads from there can change without a new approval",
                    shown(entry, roots.project).display()
                )),
            }
        }
        for file in own {
            covered.remove(&file.path);
        }
        Ok(covered.into_values().collect())
    }

    /// Restores the named files of an approved hook.
    pub(crate) fn of_approval(words: Vec<NamedPath>) -> Self {
        Self {
            words,
            ..Self::default()
        }
    }

    /// Returns an approved file that the hook would read from the project, because the command names it
    /// at a position where the path cannot be replaced.
    pub(crate) fn without_copy<'a>(
        &self,
        approved: &'a [ItemFile],
        project: &Path,
    ) -> Option<&'a Path> {
        let lacks_copy = |file: &&ItemFile| {
            let named = self.words.iter();
            // The path of the folder is replaced, and its files with it.
            let named = named
                .filter(|named| !named.is_in_folder && shown(&named.path, project) == file.path);
            let (others, placed): (Vec<_>, Vec<_>) =
                named.partition(|named| matches!(named.location, PathLocation::Nowhere));
            placed.len() < others.len()
        };
        let mut approved = approved.iter();
        approved.find(lacks_copy).map(|file| file.path.as_path())
    }
}

/// Reads a file and adds it, unless it was added before. The error names the file.
pub fn add(files: &mut Vec<ItemFile>, path: &Path, project: &Path) -> Result<(), String> {
    let shown = shown(path, project);
    if files.iter().any(|known| known.path == shown) {
        return Ok(());
    }
    let file = ItemFile::read(path, &shown)
        .map_err(|error| format!("`{}` cannot be read: {error}", shown.display()))?;
    files.push(file);
    Ok(())
}

fn is_whole_project(dir: &Path, roots: ProjectRoots<'_>) -> bool {
    roots.project.starts_with(dir)
}

/// A word of a command.
struct Word {
    /// Its text, with [signs](mask) in place of the names of folders. `None` if it is only known when the hook runs.
    text: Option<String>,
    /// The text as it is written. For an assignment, this is the whole word.
    raw: String,
    kind: LineWordKind,
    /// Where the text is.
    place: PathLocation,
}

impl Word {
    fn of_line(word: &LineWord) -> Self {
        Self {
            text: word.text.clone(),
            raw: word.raw.clone(),
            kind: word.kind,
            place: PathLocation::Line(word.range.clone()),
        }
    }

    /// Returns the position of a part of the text. In a line, parts of quoted words have no known position.
    fn location(&self, part: Range<usize>) -> Option<PathLocation> {
        let text = self.text.as_deref()?;
        Some(match &self.place {
            place if part == (0..text.len()) => place.clone(),
            PathLocation::Line(range) if self.raw.ends_with(text) && range.len() == text.len() => {
                PathLocation::Line(range.start + part.start..range.start + part.end)
            }
            PathLocation::Word(index, _) => PathLocation::Word(*index, part),
            _ => return None,
        })
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

/// Reads the words of a command, one after the other.
struct CommandReader<'a> {
    files: &'a mut NamedFiles,
    roots: ProjectRoots<'a>,
    /// The folder of relative paths, if `cd` changed it. `Some(None)` if it is unknown.
    moved: Option<Option<PathBuf>>,
    has_here_document: bool,
    has_subshell: bool,
}

impl<'a> CommandReader<'a> {
    const fn new(files: &'a mut NamedFiles, roots: ProjectRoots<'a>) -> Self {
        Self {
            files,
            roots,
            moved: None,
            has_here_document: false,
            has_subshell: false,
        }
    }

    fn add_command(&mut self, words: &[Word]) {
        let mut expected = Expected::Program;
        for word in words {
            match word.kind {
                LineWordKind::Output => {}
                LineWordKind::Assignment => {
                    let name = word.raw.split('=').next().unwrap_or_default();
                    self.add_assignment(name, word, 0);
                }
                LineWordKind::Plain => expected = self.add_word(expected, word),
            }
        }
        if let Expected::Script(_, name, _) = expected {
            self.note(&format!(
                "`{name}` names no script, so it runs what Tenterhook cannot read"
            ));
        }
    }

    /// Adds a word, and returns what the next one is.
    fn add_word(&mut self, expected: Expected, word: &Word) -> Expected {
        let is_of_system = |text: &str| text.contains("/proc/") || text.contains("/dev/fd");
        if word.text.as_deref().is_some_and(is_of_system) {
            self.note(&format!("`{}` can refer to any file", word.raw));
            return Expected::Argument(ProgramKind::Runs);
        }
        if let Some((name, _)) = word.text.as_deref().and_then(assignment)
            && !matches!(
                expected,
                Expected::Argument(ProgramKind::Looks | ProgramKind::Reads)
            )
        {
            self.add_assignment(name, word, name.len() + 1);
            return expected;
        }
        match expected {
            Expected::Program => self.add_program(word),
            Expected::Folder => {
                self.add_folder(word);
                Expected::Argument(ProgramKind::Text)
            }
            Expected::Script(interpreter, name, before) => {
                self.add_script(interpreter, name, &before, word)
            }
            Expected::Argument(kind) => {
                self.add_argument(word, kind);
                Expected::Argument(kind)
            }
        }
    }

    fn add_program(&mut self, word: &Word) -> Expected {
        let runs = Expected::Argument(ProgramKind::Runs);
        // To a shell, `[` could also begin a pattern.
        let bracket = Some(&word.raw).filter(|raw| raw.chars().all(|c| c == '['));
        let Some(text) = word.text.as_ref().or(bracket) else {
            self.note_unknown(word);
            return runs;
        };
        let shown = unmask(text, self.roots);
        if shown == "cd" || shown == "pushd" {
            return Expected::Folder;
        }
        if is_before_command(&shown) {
            return Expected::Program;
        }
        let path = if shown.contains('/') {
            self.path_of(text)
        } else {
            program_of_project(&shown, self.roots)
        };
        if let Some(path) = path {
            self.add_runnable(word, path);
            return runs;
        }
        if self.note_moved(text) {
            return runs;
        }
        if let Some(interpreter) = Interpreter::named(&shown) {
            return Expected::Script(interpreter, shown, String::new());
        }
        if let Some(kind) = kind_of(&shown) {
            return Expected::Argument(kind);
        }
        self.note(&format!(
            "`{shown}` may read files of the project that the command does not name; they can change without a new \
             approval"
        ));
        runs
    }

    /// Adds an option or the script of an interpreter.
    fn add_script(
        &mut self,
        interpreter: &'static Interpreter,
        name: String,
        before: &str,
        word: &Word,
    ) -> Expected {
        let runs = Expected::Argument(ProgramKind::Runs);
        let Some(text) = &word.text else {
            self.note_unknown(word);
            return runs;
        };
        if interpreter.loads_nothing_by(before, text) {
            return Expected::Script(interpreter, name, text.clone());
        }
        let shown = unmask(text, self.roots);
        let is_option = shown.starts_with('-');
        match self.path_of(text).filter(|_| !is_option) {
            Some(path) if path.is_file() || !self.has_here_document => {
                self.add_runnable(word, path);
            }
            _ if !is_option && self.note_moved(text) => {}
            _ => {
                self.note(&format!(
                    "`{name} {shown}` may load files of the project that the command does not name; they can change \
                     without a new approval"
                ));
                self.add_argument(word, ProgramKind::Runs);
            }
        }
        runs
    }

    /// Adds a file that runs. Its copy replaces it even if it does not exist, so that no later file runs.
    fn add_runnable(&mut self, word: &Word, path: PathBuf) {
        if !path.is_file() {
            self.note(&format!(
                "`{}` does not exist; a file that is created there later does not run",
                unmask(&word.raw, self.roots)
            ));
        } else {
            self.files.push(PathLocation::Nowhere, path.clone());
        }
        self.files.run.insert(path.clone());
        self.files.push(word.place.clone(), path);
    }

    /// Changes the folder of relative paths.
    fn add_folder(&mut self, word: &Word) {
        let folder = word.text.as_deref().and_then(|text| self.path_of(text));
        let is_known = folder.as_ref().is_some_and(|it| it.is_dir()) && !self.has_subshell;
        if folder.as_deref() != Some(self.roots.dir) {
            self.moved = Some(folder.filter(|_| is_known));
        }
    }

    fn add_argument(&mut self, word: &Word, kind: ProgramKind) {
        let Some(text) = &word.text else {
            if matches!(kind, ProgramKind::Runs | ProgramKind::Reads) {
                self.note_unknown(word);
            }
            return;
        };
        let begin = match text.split_once('=') {
            Some((option, _)) if option.starts_with('-') => option.len() + 1,
            _ => 0,
        };
        let value = text.get(begin..).unwrap_or_default();
        match kind {
            ProgramKind::Text | ProgramKind::Writes => {}
            ProgramKind::Looks => {
                let path = self.path_of(value);
                let path = path.filter(|path| path.exists() || is_path_like(value));
                if path.is_some() && !value.starts_with('-') {
                    self.note(&format!(
                        "the command looks at `{}` of the project, which can change without a new approval",
                        unmask(value, self.roots)
                    ));
                }
            }
            ProgramKind::Reads | ProgramKind::Runs => {
                let place =
                    |range: Range<usize>| word.location(begin + range.start..begin + range.end);
                let is_named = self.add_value(value, false, &place);
                if !is_named && kind == ProgramKind::Runs {
                    self.add_inside(text);
                }
            }
        }
    }

    fn add_assignment(&mut self, name: &str, word: &Word, begin: usize) {
        let Some(text) = &word.text else {
            if makes_load(name) || is_search_path(name) {
                self.note_unknown(word);
            }
            return;
        };
        let place = |range: Range<usize>| word.location(begin + range.start..begin + range.end);
        self.add_variable(name, text.get(begin..).unwrap_or_default(), &place);
    }

    /// Adds the files and folders that the value of a variable names.
    fn add_variable(
        &mut self,
        name: &str,
        value: &str,
        place: &dyn Fn(Range<usize>) -> Option<PathLocation>,
    ) {
        let is_list = is_search_path(name);
        let is_split = is_list || (value.contains(':') && !value.contains("://"));
        let named_before = self.files.words.len();
        let mut begin = 0;
        for part in value.split(|c| is_split && c == ':') {
            let range = begin..begin + part.len();
            begin = range.end + 1;
            if part.contains(['$', '`']) {
                self.note(&format!(
                    "`{name}={value}` is only known when the hook runs; what it names can change without a new approval"
                ));
            } else if part.is_empty() && is_list && (name == "PATH" || !value.is_empty()) {
                self.note(&format!(
                    "`{name}={value}` names the working folder, whose files can change without a new approval"
                ));
            } else {
                let place =
                    |inner: Range<usize>| place(range.start + inner.start..range.start + inner.end);
                if !part.is_empty() && !self.add_value(part, is_list, &place) {
                    self.add_inside(part);
                }
            }
        }
        if makes_load(name) && self.files.words.len() == named_before {
            self.note(&format!(
                "`{name}={}`: programs load or run what it names, and that can change without a new approval",
                unmask(value, self.roots)
            ));
        }
    }

    /// Adds the file that a value names, or notes what else it names. Programs load files from the folder if it is
    /// one `of_list`. Returns false if the value names nothing of the project.
    fn add_value(
        &mut self,
        value: &str,
        of_list: bool,
        place: &dyn Fn(Range<usize>) -> Option<PathLocation>,
    ) -> bool {
        let shown = unmask(value, self.roots);
        if self.note_moved(value) {
            return true;
        }
        let Some(path) = self.path_of(value) else {
            if shown.starts_with("..") {
                self.note(&format!(
                    "`{shown}` is outside of the project, so this approval does not cover it"
                ));
            }
            return false;
        };
        if path.is_dir() && of_list && !is_whole_project(&path, self.roots) {
            match place(0..value.len()) {
                Some(place) => {
                    self.files.folders.insert(path.clone(), path.clone());
                    self.files.push(place, path);
                }
                None => self.note_folder(&shown),
            }
        } else if path.is_dir() {
            self.note_folder(&shown);
        } else if path.is_file() && (of_list || names_file(&shown)) {
            self.files.push(PathLocation::Nowhere, path.clone());
            match place(0..value.len()) {
                Some(place) => self.files.push(place, path),
                None => self.note_inside(&shown),
            }
        } else if path.is_file() {
            self.note(&format!(
                "`{shown}` is also a file of the project, which is not covered; if the hook reads it, write `./{shown}`"
            ));
        } else if of_list || (is_path_like(&shown) && is_source(Path::new(&shown))) {
            if let Some(place) = place(0..value.len()) {
                self.files.push(place, path);
            }
            self.note(&format!(
                "`{shown}` does not exist; a file that is created there later is not used"
            ));
        } else {
            if is_path_like(&shown) {
                self.note(&format!(
                    "`{shown}` does not exist; a file that is created there later is not covered"
                ));
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
                self.files.push(PathLocation::Nowhere, path);
                self.note_inside(part);
            } else if part != text && (part.starts_with("./") || part.starts_with("../")) {
                self.note(&format!(
                    "`{part}` can change without a new approval, because it is inside of a longer word"
                ));
            }
        }
    }

    /// Returns the path of the project that a text names.
    fn path_of(&self, text: &str) -> Option<PathBuf> {
        let shown = unmask(text, self.roots);
        if shown.contains("://") || shown.starts_with('-') {
            return None;
        }
        let roots = match &self.moved {
            Some(Some(dir)) => ProjectRoots { dir, ..self.roots },
            Some(None) if Path::new(&shown).is_relative() => return None,
            Some(None) | None => self.roots,
        };
        within(&shown, roots)
    }

    /// Notes that the file of a relative path is not known, because of an earlier `cd`.
    fn note_moved(&mut self, text: &str) -> bool {
        let shown = unmask(text, self.roots);
        let is_lost = matches!(self.moved, Some(None))
            && Path::new(&shown).is_relative()
            && names_file(&shown)
            && is_path_like(&shown);
        if is_lost {
            self.note(&format!(
                "`{shown}` comes after `cd`, so it is not covered; write a path that begins with the folder of the project"
            ));
        }
        is_lost
    }

    fn note_folder(&mut self, shown: &str) {
        self.note(&format!(
            "`{shown}` is a folder of the project; its files can change without a new approval"
        ));
    }

    fn note_inside(&mut self, shown: &str) {
        self.note(&format!(
            "`{shown}` is inside of a longer word, so the hook reads the file of the project; once that file has \
             changed, the hook denies"
        ));
    }

    fn note_unknown(&mut self, word: &Word) {
        self.note(&format!(
            "`{}` is only known when the hook runs; what it names can change without a new approval",
            unmask(&word.raw, self.roots)
        ));
    }

    fn note(&mut self, text: &str) {
        self.files.note(text);
    }
}

/// Returns the name and the value of `NAME=value`.
fn assignment(text: &str) -> Option<(&str, &str)> {
    let (name, value) = text.split_once('=')?;
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_name = !name.is_empty() && name.chars().all(is_of_name);
    is_name.then_some((name, value))
}

/// Returns the program that the search path finds for a name, if it is in the project.
fn program_of_project(name: &str, roots: ProjectRoots<'_>) -> Option<PathBuf> {
    in_search_path(name, roots.dir).filter(|found| found.starts_with(roots.root))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crate::copy_map::CopyMap;

    use super::*;

    /// Creates a project and returns the files that a line names, the notes, and the line with copies.
    fn read(line: &str) -> (Vec<String>, Vec<String>, String) {
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
            line: line.replace("ROOT", project.to_str().unwrap()),
        };
        let mut files = NamedFiles::of(&action, &[], roots);
        let read = files.read(roots).unwrap();
        let covered = files.cover(&read, roots, &FileMemory::default(), None);
        let covered = covered.unwrap().into_iter().map(|file| file.path);
        let named = read.into_iter().map(|file| file.path).chain(covered);
        let named = named.map(|path| path.display().to_string()).collect();
        let copy_map = CopyMap {
            roots,
            copies: Path::new("/c"),
        };
        copy_map.apply(&files, &mut action, &mut []);
        let HookAction::Line { line: over, .. } = &action else {
            panic!("a line stays a line");
        };
        let over = over.replace(project.to_str().unwrap(), "ROOT");
        (named, files.unread, over)
    }

    /// Asserts what an approval of a line covers, the line with copies, and that no note is shown.
    fn assert_covers(line: &str, named: &[&str], expected: &str) {
        let (found, unread, over) = read(line);
        assert_eq!(found, named, "{line}");
        assert_eq!(over, expected, "{line}");
        assert_eq!(unread, Vec::<String>::new(), "{line}");
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
            ("cat $(./x)", "`$`"),
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
            ("sh h/check.sh '@./test'", "`./test` is inside"),
            ("ls .", "`.` is a folder"),
            ("sh gone", "`gone` does not exist"),
            ("./gone.sh", "`./gone.sh` does not exist"),
            ("cd .. && sh h/check.sh", "`h/check.sh` comes after `cd`"),
            ("(cd h); ./check.sh", "`./check.sh` comes after `cd`"),
            ("grep -q x docs/context.md", "looks at `docs/context.md`"),
            ("[ -f docs/pause ] && exit 0", "looks at `docs/pause`"),
            ("sh /proc/self/cwd/test", "can refer to any file"),
            ("PYTHONPATH=. python3 h/module.py", "`.` is a folder"),
            ("PYTHONPATH=$X python3 h/module.py", "`PYTHONPATH=$X`"),
            ("BASH_ENV=evil sh h/check.sh", "`BASH_ENV=evil`"),
            (
                "sh ./rules.jq",
                "`rules.jq` is in the folder of the project itself",
            ),
            ("sh <<EOF\nx\nEOF", "`sh EOF`"),
        ] {
            let (_, unread, _) = read(line);
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
            ("$CLAUDE_PROJECT_DIR/gone", "/c/gone"),
            (
                "h/check.sh --with gone.py",
                "/c/h/check.sh --with /c/gone.py",
            ),
            (
                "PYTHONPATH=gone python3 h/module.py",
                "PYTHONPATH=/c/gone python3 /c/h/module.py",
            ),
        ] {
            assert_eq!(read(line).2, expected, "{line}");
        }
    }

    #[test]
    fn a_line_without_copies_of_all_of_its_files_is_known() {
        let home = tempfile::tempdir().unwrap();
        let project = fs::canonicalize(home.path()).unwrap();
        fs::write(project.join("a.sh"), "").unwrap();
        let roots = ProjectRoots {
            dir: &project,
            project: &project,
            root: &project,
        };
        for (line, lacks_copy) in [
            ("sh a.sh", false),
            ("sh a.sh && ./a.sh", false),
            ("sh -c ./a.sh", false),
            ("sh -c './a.sh x'", true),
            ("sh a.sh; sh -c './a.sh x'", true),
        ] {
            let action = HookAction::Line {
                shell: Shell::Sh,
                line: line.to_owned(),
            };
            let mut files = NamedFiles::of(&action, &[], roots);
            let own = files.read(roots).unwrap();
            let found = files.without_copy(&own, &project);
            assert_eq!(found.is_some(), lacks_copy, "{line}");
        }
    }
}
