//! Which files of the project a hook names, as far as that can be read off its command and its variables.
//!
//! Every word that names a file of the project counts towards the approval. A file that is read or run is
//! replaced by its approved copy wherever a path can be put in its place:
//!
//! | in the command | replaced by a copy |
//! |---|---|
//! | the program, the script of an interpreter, and every file that a plain command reads; also one that does not exist yet | yes |
//! | a folder from which a plain command loads code (`-Ilib`) | yes, with all of its files |
//! | an argument of a script, or of a command that is not plain, that has a folder or an extension | yes |
//! | any other word that names a file of the project | no |
//! | the target of `>`, and what `tee`, `rm` and the like write | no, and it does not count |
//!
//! What a plain command is says [`plain`]. Whatever can change without a new approval is noted in
//! [`NamedFiles::unread`], for the person who approves.
//!
//! Next to a script below `.tenterhook` or `.kodelet`, the other sources of its folder count too, since it
//! may load them.

use std::ffi::OsStr;
use std::fs;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use tenterhook_process::plain_words;

use super::interpreter::{check_interpreter, in_search_path};
use super::item::ItemFile;
use super::plain::{self, Part, Use};
use super::store::inside_copies;
use super::variables::{self, Depth, Entry};
use crate::draft::Action;

/// Programs whose first argument is a file that they run.
const INTERPRETERS: [&str; 18] = [
    "sh", "bash", "dash", "zsh", "ksh", "python", "python3", "node", "deno", "bun", "ruby", "perl",
    "lua", "php", "pwsh", "source", ".", "tsx",
];
/// Programs whose arguments are what they write.
const WRITERS: [&str; 6] = ["tee", "touch", "rm", "mkdir", "rmdir", "truncate"];
/// Options of interpreters that run something else than a file that is named.
const CODE: [&str; 8] = [
    "-c",
    "-m",
    "-e",
    "-p",
    "-r",
    "--eval",
    "--print",
    "--require",
];
/// What sources are called at their end.
const SOURCES: [&str; 13] = [
    "py", "js", "mjs", "cjs", "ts", "mts", "cts", "sh", "bash", "rb", "pl", "lua", "php",
];
/// The most files beside a script that are approved with it, and the most bytes.
const MOST_BESIDE: (usize, u64) = (256, 8 << 20);
/// The largest script in which names of other files are looked for, in bytes.
const MAX_SCANNED: usize = 256 << 10;
/// The largest number of notes about such names.
const MAX_MENTIONED: usize = 16;
/// The most files and folders that are looked at to find them.
const MOST_LOOKED_AT: usize = 16_384;

/// Where the files of a project are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ground<'a> {
    /// The folder that relative paths start from.
    pub(crate) dir: &'a Path,
    /// The folder of the project, by which its files are named.
    pub(crate) project: &'a Path,
    /// The outermost folder that is still the project's: the root of the repository.
    pub(crate) root: &'a Path,
}

/// The files that a hook names.
#[derive(Debug, Default)]
pub(crate) struct NamedFiles {
    words: Vec<Named>,
    /// What can change without a new approval, a sentence each.
    pub(crate) unread: Vec<String>,
}

/// A word that names a file. An approval keeps it, so that the hook can use the approved copy when the file is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Named {
    place: Place,
    /// The whole path.
    pub(crate) path: PathBuf,
    /// The file is there.
    exists: bool,
    /// It counts because its folder does.
    is_in_folder: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Place {
    /// A part of a line for a shell.
    Line(Range<usize>),
    /// A part of a word, of a list of arguments or of a line of plain words.
    Word(usize, Range<usize>),
    /// A part of the value of a variable.
    Variable(usize, Range<usize>),
    /// It counts, and is not replaced.
    Nowhere,
}

/// Puts the paths of copies in the place of those of the project.
#[derive(Debug)]
pub(crate) struct Rebased<'a> {
    pub(crate) ground: Ground<'a>,
    pub(crate) copies: &'a Path,
}

impl Rebased<'_> {
    /// Returns the copy of a file. Of one that is not there, there is none, and nothing can take its place.
    fn path(&self, named: &Named) -> PathBuf {
        self.copies
            .join(inside_copies(&shown(&named.path, self.ground.project)))
    }

    /// Changes an action and its variables.
    pub(crate) fn apply(
        &self,
        files: &NamedFiles,
        action: &mut Action,
        env: &mut [(String, String)],
    ) {
        let mut words = None;
        if let Action::Line { line, .. } = &*action {
            words = plain_words(line);
        }
        let mut is_rewritten = false;
        // From the end, so that places before stay where they are.
        for named in files.words.iter().rev() {
            let path = self.path(named).to_string_lossy().into_owned();
            match (&named.place, &mut *action) {
                (Place::Line(range), Action::Line { line, .. }) => {
                    line.replace_range(range.clone(), &quoted(&path));
                }
                (Place::Word(index, range), Action::Argv(argv)) => {
                    replace(argv.get_mut(*index), range, &path);
                }
                (Place::Word(index, range), Action::Line { .. }) => {
                    let words = words.as_mut().and_then(|words| words.get_mut(*index));
                    replace(words, range, &path);
                    is_rewritten = true;
                }
                (Place::Variable(index, range), _) => {
                    let value = env.get_mut(*index).map(|(_, value)| value);
                    replace(value, range, &path);
                }
                (Place::Line(_) | Place::Word(..) | Place::Nowhere, _) => {}
            }
        }
        if let (Action::Line { line, .. }, Some(words), true) = (action, words, is_rewritten) {
            let words: Vec<String> = words.iter().map(|word| quoted_if_needed(word)).collect();
            *line = words.join(" ");
        }
    }
}

fn replace(text: Option<&mut String>, range: &Range<usize>, path: &str) {
    if let Some(text) = text {
        text.replace_range(range.clone(), path);
    }
}

impl NamedFiles {
    /// Reads the files off an action and its variables.
    pub(crate) fn of(action: &Action, env: &[(String, String)], ground: Ground<'_>) -> Self {
        let mut files = Self::default();
        match action {
            Action::Line { line, .. } => {
                if let Some(words) = plain_words(line) {
                    files.add_words(&words, ground, || in_line(line, ground));
                } else {
                    files.unread.push(format!(
                        "`{}` is a line for a shell, and may run and read more than these files",
                        line.trim()
                    ));
                    files.add_unread(&[line.as_str()], in_line(line, ground), ground);
                }
            }
            Action::Argv(argv) => files.add_words(argv, ground, || in_arguments(argv)),
            Action::Builtin { .. } | Action::Model(_) | Action::Http(_) => {}
        }
        for (index, (name, value)) in env.iter().enumerate() {
            files.add_variable(index, name, value, ground);
        }
        files
    }

    /// Adds what a command of plain words names. `otherwise` reads one that is not plain.
    fn add_words(
        &mut self,
        words: &[String],
        ground: Ground<'_>,
        otherwise: impl FnOnce() -> Vec<(Word, Place)>,
    ) {
        let texts: Vec<&str> = words.iter().map(String::as_str).collect();
        match plain::read(words, ground) {
            Ok(parts) => {
                if let Some(program) = words.first()
                    && let Some(path) = program_of_project(program, ground)
                {
                    let place = Place::Word(0, 0..program.len());
                    self.push(place, path);
                }
                let is_written = |part: &&Part| part.used == Use::Written;
                let written = parts.iter().filter(is_written);
                let written: Vec<&str> = written.map(|part| part.text(words)).collect();
                self.count_all(&texts, &written, ground);
                let has_folder = parts.iter().any(|part| part.used == Use::Folder);
                for part in &parts {
                    self.add_part(part, part.text(words), has_folder, ground);
                }
            }
            Err(problem) => {
                self.unread.push(format!(
                    "`{}` may run and read more than these files: {problem}",
                    words.join(" ")
                ));
                self.add_unread(&texts, otherwise(), ground);
            }
        }
    }

    /// Adds what can be read off a command that is not plain.
    fn add_unread(&mut self, texts: &[&str], words: Vec<(Word, Place)>, ground: Ground<'_>) {
        let is_written = |word: &&Word| word.role == Role::Written;
        let written = words.iter().map(|(word, _)| word).filter(is_written);
        let written: Vec<&str> = written.filter_map(|word| word.text.as_deref()).collect();
        self.count_all(texts, &written, ground);
        for (word, place) in words {
            self.add(&word, ground, place);
        }
    }

    fn push(&mut self, place: Place, path: PathBuf) {
        let exists = path.is_file();
        self.words.push(Named {
            place,
            path,
            exists,
            is_in_folder: false,
        });
    }

    /// Adds a part of a plain command.
    fn add_part(&mut self, part: &Part, text: &str, has_folder: bool, ground: Ground<'_>) {
        let Some(path) = within(text, ground) else {
            return;
        };
        let place = Place::Word(part.word, part.range.clone());
        match part.used {
            Use::Text | Use::OneOf(_) | Use::JqCode | Use::Written => {}
            Use::Input | Use::Script | Use::JqFile if path.is_dir() => self.note_folder(text),
            Use::Input | Use::Script => self.push(place, path),
            Use::JqFile => {
                let code = fs::read(&path).unwrap_or_default();
                if plain::imports(&String::from_utf8_lossy(&code), has_folder) {
                    let note = format!("`{text}` may load other files than these");
                    self.unread.push(note);
                }
                self.push(place, path);
            }
            Use::Folder => self.add_folder(place, text, path, Depth::Whole),
            Use::Argument => self.add_argument(place, text, path, ground),
        }
    }

    /// Adds an argument of a script. Only the script knows what it means, so a word that may be text as well
    /// as a file is not replaced.
    fn add_argument(&mut self, place: Place, text: &str, path: PathBuf, ground: Ground<'_>) {
        let is_of_project = |token: &&str| {
            within(token, ground).is_some_and(|path| path != ground.dir && path.exists())
        };
        if path.is_dir() {
            self.note_folder(text);
        } else if path.is_file() && (text.contains('/') || has_extension(text)) {
            self.push(place, path);
        } else if let Some(found) = candidates(text).find(is_of_project) {
            self.unread.push(format!(
                "`{found}` is of the project, and the script may read it as it is then"
            ));
        } else if looks_like_path(text) {
            self.unread.push(format!(
                "`{text}` does not exist; a file of that name is not covered by this approval"
            ));
        }
    }

    fn note_folder(&mut self, text: &str) {
        self.unread.push(format!(
            "`{text}` is a folder of the project: what is in it can change without a new approval"
        ));
    }

    /// Adds the files of a folder from which code is loaded.
    fn add_folder(&mut self, place: Place, text: &str, path: PathBuf, depth: Depth) {
        match files_below(&path, depth, |_| true) {
            Some(files) => {
                let named = files.into_iter().map(|path| Named {
                    place: Place::Nowhere,
                    path,
                    exists: true,
                    is_in_folder: true,
                });
                self.words.extend(named);
                self.push(place, path);
            }
            None => self.note_folder(text),
        }
    }

    fn add_variable(&mut self, index: usize, name: &str, value: &str, ground: Ground<'_>) {
        let entries = variables::entries(name, value);
        if let Some(reason) = &entries.note {
            self.unread.push(format!("`{name}={value}`: {reason}"));
        }
        self.count_all(&[value], &[], ground);
        for (range, entry) in entries.entries {
            let text = value.get(range.clone()).unwrap_or_default();
            let place = Place::Variable(index, range);
            let (depth, text) = match entry {
                Entry::Text => {
                    self.add_text(place, name, text, ground);
                    continue;
                }
                Entry::File => (None, text),
                Entry::Folder(depth) => (Some(depth), if text.is_empty() { "." } else { text }),
            };
            match (within(text, ground), depth) {
                (Some(path), Some(depth)) if path.is_dir() => {
                    self.add_folder(place, text, path, depth);
                }
                (Some(path), _) => self.push(place, path),
                (None, _) if Path::new(text).is_absolute() => {}
                (None, _) => self.unread.push(format!(
                    "`{name}={value}`: `{text}` is outside the project, so this approval does not cover it"
                )),
            }
        }
    }

    /// Adds the value of a variable whose meaning only the program knows.
    fn add_text(&mut self, place: Place, name: &str, value: &str, ground: Ground<'_>) {
        let path = within(value, ground).filter(|path| path.is_file());
        if let Some(path) = path.filter(|_| value.contains('/')) {
            self.push(place, path);
            return;
        }
        let is_of_project = |token: &str| {
            within(token, ground).is_some_and(|path| path != ground.dir && path.exists())
        };
        if let Some(found) = std::iter::once(value)
            .chain(tokens(value))
            .find(|token| is_of_project(token))
        {
            self.unread.push(format!(
                "`{name}={value}`: `{found}` is of the project, and the hook may read it as it is then"
            ));
        }
    }

    /// Counts every part of a text that is a file of the project, however it stands there, but what is written.
    fn count_all(&mut self, texts: &[&str], written: &[&str], ground: Ground<'_>) {
        // Each place counts once, so that it can be told whether a copy takes every place of a file.
        let parts = texts.iter().flat_map(|text| {
            let others = tokens(text).filter(move |token| token != text);
            std::iter::once(*text).chain(others)
        });
        for token in parts.filter(|token| !written.contains(token)) {
            let found = std::iter::once(token)
                .chain(attached(token))
                .find_map(|token| within(token, ground).filter(|path| path.is_file()));
            if let Some(path) = found {
                self.push(Place::Nowhere, path);
            }
        }
    }

    /// Adds a word of a command that is not plain.
    fn add(&mut self, word: &Word, ground: Ground<'_>, place: Place) {
        let Some(text) = &word.text else { return };
        let has_folder = text.contains('/');
        let path = match word.role {
            Role::Command if !has_folder => program_of_project(text, ground),
            Role::Argument if !has_folder && !has_extension(text) => None,
            Role::Code | Role::Written => None,
            Role::Command | Role::Argument | Role::Script => within(text, ground),
        };
        let Some(path) = path else { return };
        if path.is_file() || matches!(word.role, Role::Command | Role::Script) {
            self.push(place, path);
        }
    }

    /// Reads every file, each once, and the sources beside scripts. The error names the file.
    pub(crate) fn read(&mut self, ground: Ground<'_>) -> Result<Vec<ItemFile>, String> {
        let mut files: Vec<ItemFile> = Vec::new();
        let mut folders: Vec<PathBuf> = Vec::new();
        for named in self.words.iter().filter(|named| named.exists) {
            let known = files.len();
            add(&mut files, &named.path, ground.project)?;
            if let Some(file) = files.get(known) {
                let shown = file.path.display();
                match check_interpreter(&file.bytes, ground.dir, ground.root) {
                    Ok(None) => {}
                    Err(problem) if !named.is_in_folder => {
                        return Err(format!("`{shown}`: {problem}"));
                    }
                    Ok(Some(note)) | Err(note) => self.unread.push(format!("`{shown}`: {note}")),
                }
            }
            let is_source = is_source(&named.path);
            let folder = named
                .path
                .parent()
                .filter(|dir| is_source && is_for_hooks(dir));
            folders.extend(folder.map(Path::to_owned));
        }
        folders.sort();
        folders.dedup();
        for folder in folders {
            match sources_below(&folder, |_| true) {
                Some(sources) => {
                    for source in sources {
                        add(&mut files, &source, ground.project)?;
                    }
                }
                None => self
                    .unread
                    .push(too_many_beside(&shown(&folder, ground.project))),
            }
        }
        Ok(files)
    }
}

impl NamedFiles {
    /// Makes those that were kept of an approved hook.
    pub(crate) const fn of_approval(words: Vec<Named>) -> Self {
        Self {
            words,
            unread: Vec::new(),
        }
    }

    /// Returns what an approval keeps of them.
    pub(crate) fn for_approval(&self) -> Vec<Named> {
        self.words.clone()
    }

    /// Returns an approved file that the hook would read from the project: one that stands somewhere in its command where no
    /// other path can be put.
    pub(crate) fn without_copy<'a>(
        &self,
        approved: &'a [ItemFile],
        project: &Path,
    ) -> Option<&'a Path> {
        let lacks_copy = |file: &&ItemFile| {
            let named = self.words.iter();
            // The files of a folder are replaced with it.
            let named = named
                .filter(|named| !named.is_in_folder && shown(&named.path, project) == file.path);
            let (others, placed): (Vec<_>, Vec<_>) =
                named.partition(|named| matches!(named.place, Place::Nowhere));
            placed.len() < others.len()
        };
        let mut approved = approved.iter();
        approved.find(lacks_copy).map(|file| file.path.as_path())
    }
}

/// Returns the words of a line for a shell, and where each stands.
fn in_line(line: &str, ground: Ground<'_>) -> Vec<(Word, Place)> {
    let words = line_words(line, ground.dir).into_iter();
    words
        .map(|word| {
            let range = word.range.clone();
            (word, Place::Line(range))
        })
        .collect()
}

/// Returns the words of a list of arguments, and where each stands.
fn in_arguments(argv: &[String]) -> Vec<(Word, Place)> {
    let words = argument_words(argv).into_iter().enumerate();
    words
        .map(|(index, word)| {
            let place = Place::Word(index, word.range.clone());
            (word, place)
        })
        .collect()
}

/// Returns the program that the search path finds for a name, if it is the project's.
fn program_of_project(name: &str, ground: Ground<'_>) -> Option<PathBuf> {
    let found = (!name.contains('/')).then(|| in_search_path(name, ground.dir));
    found
        .flatten()
        .filter(|found| found.starts_with(ground.root))
}

/// Says of a script that only a part of the files next to it could be read.
pub(crate) fn too_many_beside(shown: &Path) -> String {
    format!(
        "`{}` has too many files to approve them all: what a script loads from there can change without a new approval",
        shown.display()
    )
}

/// Returns every part of a text that may be a path.
fn candidates(text: &str) -> impl Iterator<Item = &str> {
    std::iter::once(text)
        .chain(tokens(text))
        .flat_map(|token| std::iter::once(token).chain(attached(token)))
}

/// Says whether a word that names no file could only be a path.
fn looks_like_path(text: &str) -> bool {
    let extension = Path::new(text).extension().and_then(OsStr::to_str);
    let has_name_end = extension.is_some_and(|end| end.chars().all(|c| c.is_ascii_alphabetic()));
    !text.contains("://") && (text.contains('/') || (has_name_end && !text.starts_with('-')))
}

/// Returns what may be a path behind the letter of an option, as in `-fevil.mk`, or behind `@`.
fn attached(token: &str) -> impl Iterator<Item = &str> {
    let behind_letter = token.strip_prefix('-').and_then(|rest| {
        let mut letters = rest.chars();
        letters.next().map(|_| letters.as_str())
    });
    let behind_sign = token.strip_prefix(['@', '+', '%']);
    behind_letter
        .into_iter()
        .chain(behind_sign)
        .filter(|rest| !rest.is_empty())
}

/// Returns the parts of a text that could be paths, however they stand there.
fn tokens(text: &str) -> impl Iterator<Item = &str> {
    let is_of_path = |c: char| c.is_alphanumeric() || "_./@%+-~".contains(c);
    text.split(move |c| !is_of_path(c))
        .filter(|token| !token.is_empty())
}

/// Returns notes about files of the project that scripts mention and that do not count: a script may read them by
/// a path of its own, below its working directory.
pub(crate) fn mentioned(files: &[ItemFile], ground: Ground<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    for file in files {
        let is_script = is_source(&file.path) || file.bytes.starts_with(b"#!");
        let text = std::str::from_utf8(&file.bytes).ok();
        let text = text.filter(|text| is_script && text.len() <= MAX_SCANNED);
        let mut found: Vec<&str> = tokens(text.unwrap_or_default()).collect();
        found.sort_unstable();
        found.dedup();
        let is_new = |token: &&str| {
            within(token, ground).is_some_and(|path| {
                let path = shown(&path, ground.project);
                ground.project.join(&path).is_file()
                    && !files.iter().any(|known| known.path == path)
            })
        };
        notes.extend(found.into_iter().filter(is_new).map(|token| {
            format!(
                "`{}` mentions `{token}`, which can change without a new approval",
                file.path.display()
            )
        }));
    }
    let more = notes.len().saturating_sub(MAX_MENTIONED);
    notes.truncate(MAX_MENTIONED);
    if more > 0 {
        notes.push(format!(
            "the scripts mention {more} more files of the project"
        ));
    }
    notes
}

/// Adds a file unless it is there.
pub(crate) fn add(files: &mut Vec<ItemFile>, path: &Path, project: &Path) -> Result<(), String> {
    let shown = shown(path, project);
    if files.iter().any(|known| known.path == shown) {
        return Ok(());
    }
    let file = ItemFile::read(path, &shown)
        .map_err(|error| format!("`{}` cannot be read: {error}", shown.display()))?;
    files.push(file);
    Ok(())
}

/// Returns the sources of a folder and of those below it. `None` is too many.
pub(crate) fn sources_below(
    folder: &Path,
    is_wanted: impl Fn(&Path) -> bool,
) -> Option<Vec<PathBuf>> {
    files_below(folder, Depth::Whole, |path| {
        is_source(path) && is_wanted(path)
    })
}

/// Returns the files of a folder. `None` is too many.
fn files_below(
    folder: &Path,
    depth: Depth,
    is_wanted: impl Fn(&Path) -> bool,
) -> Option<Vec<PathBuf>> {
    let (most, most_bytes) = MOST_BESIDE;
    let (mut found, mut bytes, mut looked_at) = (Vec::new(), 0, 0);
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            looked_at += 1;
            // Links to folders are not followed: they could lead round in a circle.
            let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
            let Ok(metadata) = fs::metadata(&path) else {
                continue;
            };
            if metadata.is_dir() {
                // Nothing is loaded from what git keeps.
                if !is_link && depth == Depth::Whole && !path.ends_with(".git") {
                    folders.push(path);
                }
            } else if metadata.is_file() && is_wanted(&path) {
                bytes += metadata.len();
                found.push(path);
            }
            if found.len() > most || bytes > most_bytes || looked_at > MOST_LOOKED_AT {
                return None;
            }
        }
    }
    found.sort();
    Some(found)
}

fn is_source(path: &Path) -> bool {
    let extension = path.extension().and_then(OsStr::to_str);
    extension.is_some_and(|extension| SOURCES.contains(&extension))
        || path.file_name().is_some_and(|name| name == "package.json")
}

fn is_for_hooks(dir: &Path) -> bool {
    dir.components().any(|part| {
        matches!(part, Component::Normal(name) if name == ".tenterhook" || name == ".kodelet")
    })
}

fn has_extension(text: &str) -> bool {
    let extension = Path::new(text).extension();
    extension.is_some_and(|extension| !extension.is_empty())
}

/// Returns how a file is named: below the project, or as it is where it is elsewhere.
pub(crate) fn shown(path: &Path, project: &Path) -> PathBuf {
    path.strip_prefix(project).unwrap_or(path).to_owned()
}

/// Returns the whole path of a word, without `.` and `..`, if it is the project's.
pub(super) fn within(text: &str, ground: Ground<'_>) -> Option<PathBuf> {
    if text.is_empty() {
        return None;
    }
    let joined = ground.dir.join(text);
    let goes_up = joined.components().any(|part| part == Component::ParentDir);
    // What `..` means behind a link is not what the text says, and a path elsewhere may lead back by a link.
    let is_elsewhere = !joined.starts_with(ground.root);
    let whole = (goes_up || is_elsewhere)
        .then(|| fs::canonicalize(&joined))
        .transpose();
    let mut path = PathBuf::new();
    for part in whole.ok().flatten().unwrap_or(joined).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                path.pop();
            }
            Component::Normal(_) | Component::RootDir | Component::Prefix(_) => path.push(part),
        }
    }
    path.starts_with(ground.root).then_some(path)
}

fn is_shell(name: &str) -> bool {
    name.ends_with("sh") && name != "pwsh"
}

/// What a word is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// What runs.
    Command,
    /// What the interpreter before it runs.
    Script,
    /// An option that makes the interpreter run something else.
    Code,
    Argument,
    /// What is written to.
    Written,
}

/// A word of a command, or the part of it that may be a path.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Word {
    range: Range<usize>,
    raw: String,
    /// What it stands for, where that can be read off.
    text: Option<String>,
    role: Role,
}

/// Follows which word of a command is what.
#[derive(Debug, Default)]
struct Roles {
    command: Option<String>,
    has_script: bool,
}

impl Roles {
    fn next(&mut self, text: Option<&str>) -> Role {
        let Some(command) = &self.command else {
            self.command = Some(text.unwrap_or_default().to_owned());
            return Role::Command;
        };
        let name = Path::new(command).file_name().and_then(OsStr::to_str);
        let name = name.unwrap_or(command);
        if WRITERS.contains(&name) {
            return Role::Written;
        }
        if !INTERPRETERS.contains(&name) || self.has_script {
            return Role::Argument;
        }
        let is_code = |text: &str| CODE.contains(&text) && (text == "-c" || !is_shell(name));
        if text.is_some_and(is_code) {
            self.has_script = true;
            return Role::Code;
        }
        if text.is_some_and(|text| text.starts_with('-')) {
            return Role::Argument;
        }
        self.has_script = true;
        Role::Script
    }
}

/// Returns the words of a list of arguments.
fn argument_words(argv: &[String]) -> Vec<Word> {
    let mut roles = Roles::default();
    let words = argv.iter().map(|argument| {
        let word = Word {
            range: 0..argument.len(),
            raw: argument.clone(),
            text: Some(argument.clone()),
            role: roles.next(Some(argument)),
        };
        value_of(word)
    });
    words.collect()
}

/// Returns the value of `--option=value` as a word of its own.
fn value_of(word: Word) -> Word {
    let Some(text) = word.text.as_deref() else {
        return word;
    };
    match text.split_once('=') {
        Some((option, value)) if option.starts_with('-') && word.role != Role::Command => Word {
            range: word.range.start + option.len() + 1..word.range.end,
            // Only where the text is as it is written is it known where in it the value begins.
            text: (word.raw == text).then(|| value.to_owned()),
            ..word
        },
        _ => word,
    }
}

/// Reads a line for a shell, once from left to right.
struct Reader<'a> {
    line: &'a str,
    dir: &'a Path,
    at: usize,
    words: Vec<Word>,
    roles: Roles,
    is_written: bool,
}

/// Returns the words of a line for a shell.
fn line_words(line: &str, dir: &Path) -> Vec<Word> {
    let mut reader = Reader {
        line,
        dir,
        at: 0,
        words: Vec::new(),
        roles: Roles::default(),
        is_written: false,
    };
    while reader.step() {}
    reader.words
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        self.line.get(self.at..).unwrap_or_default()
    }

    fn take(&mut self) -> Option<char> {
        let next = self.rest().chars().next()?;
        self.at += next.len_utf8();
        Some(next)
    }

    /// Reads what stands next: space, an operator, or a word.
    fn step(&mut self) -> bool {
        let Some(next) = self.rest().chars().next() else {
            return false;
        };
        match next {
            ' ' | '\t' | '\r' | '<' => self.at += 1,
            '&' if self.rest().starts_with("&>") => {
                self.at += 1;
            }
            '\n' | ';' | '|' | '&' | '(' | ')' | '`' => {
                self.at += 1;
                self.roles = Roles::default();
                self.is_written = false;
            }
            '>' => {
                self.at += 1;
                self.at +=
                    self.rest().len() - self.rest().trim_start_matches(['>', '|', '&']).len();
                self.is_written = true;
            }
            '#' => {
                let end = self.rest().find('\n').unwrap_or(self.rest().len());
                self.at += end;
            }
            _ => self.word(),
        }
        true
    }

    fn word(&mut self) {
        let start = self.at;
        let mut text = Some(String::new());
        while let Some(next) = self.rest().chars().next() {
            if " \t\r\n;|&()<>`".contains(next) {
                break;
            }
            self.at += next.len_utf8();
            self.piece(next, &mut text);
        }
        let raw = self.line.get(start..self.at).unwrap_or_default().to_owned();
        let is_number = !raw.is_empty() && raw.chars().all(|digit| digit.is_ascii_digit());
        if is_number && self.rest().starts_with(['<', '>']) {
            return;
        }
        let range = start..self.at;
        if std::mem::take(&mut self.is_written) {
            let role = Role::Written;
            self.words.push(Word {
                range,
                raw,
                text,
                role,
            });
            return;
        }
        if ["{", "}", "!"].contains(&raw.as_str()) || raw == "\\\n" {
            return;
        }
        if self.roles.command.is_none()
            && let Some(value) = assigned(&raw)
        {
            // An assignment stands before the command; its value may be a path.
            let text = text.and_then(|text| Some(text.split_once('=')?.1.to_owned()));
            let range = range.start + raw.len() - value..range.end;
            if text.as_deref() != Some("") {
                self.words.push(Word {
                    range,
                    raw,
                    text,
                    role: Role::Argument,
                });
            }
            return;
        }
        let role = self.roles.next(text.as_deref());
        self.words.push(value_of(Word {
            range,
            raw,
            text,
            role,
        }));
    }

    /// Reads one character of a word, or what is quoted behind it.
    fn piece(&mut self, next: char, text: &mut Option<String>) {
        let add = |text: &mut Option<String>, more: &str| {
            if let Some(text) = text {
                text.push_str(more);
            }
        };
        match next {
            '\'' => {
                let end = self.rest().find('\'').unwrap_or(self.rest().len());
                let quoted = self.rest().get(..end).unwrap_or_default().to_owned();
                self.at = (self.at + end + 1).min(self.line.len());
                add(text, &quoted);
            }
            '"' => {
                while let Some(inner) = self.take() {
                    match inner {
                        '"' => break,
                        '\\' => {
                            let escaped = self.take().unwrap_or('\\');
                            if !"$`\"\\\n".contains(escaped) {
                                add(text, "\\");
                            }
                            if escaped != '\n' {
                                add(text, escaped.encode_utf8(&mut [0; 4]));
                            }
                        }
                        '$' => self.variable(text),
                        '`' => *text = None,
                        _ => add(text, inner.encode_utf8(&mut [0; 4])),
                    }
                }
            }
            '\\' => {
                let escaped = self.take().filter(|escaped| *escaped != '\n');
                let escaped = escaped.map(String::from).unwrap_or_default();
                add(text, &escaped);
            }
            '$' => self.variable(text),
            '*' | '?' | '[' | '{' | '}' => *text = None,
            '~' if text.as_deref() == Some("") => *text = None,
            _ => add(text, next.encode_utf8(&mut [0; 4])),
        }
    }

    /// Reads a variable behind its `$`. Only the working directory is known.
    fn variable(&mut self, text: &mut Option<String>) {
        for name in ["{PWD}", "PWD"] {
            let Some(rest) = self.rest().strip_prefix(name) else {
                continue;
            };
            let goes_on = rest.starts_with(|next: char| next.is_alphanumeric() || next == '_');
            if name == "PWD" && goes_on {
                continue;
            }
            self.at += name.len();
            if let Some(text) = text {
                text.push_str(&self.dir.to_string_lossy());
            }
            return;
        }
        *text = None;
    }
}

/// Returns how many bytes behind `NAME=` the value of an assignment has.
fn assigned(word: &str) -> Option<usize> {
    let (name, value) = word.split_once('=')?;
    let mut letters = name.chars();
    let first = letters.next()?;
    let is_name = (first.is_ascii_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    is_name.then_some(value.len())
}

/// Quotes a word for a shell unless it stands for itself.
fn quoted_if_needed(word: &str) -> String {
    let is_itself = plain_words(&format!("x {word}"))
        .is_some_and(|words| matches!(words.as_slice(), [_, only] if only == word));
    if is_itself {
        word.to_owned()
    } else {
        quoted(word)
    }
}

/// Quotes a text for a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use tenterhook_process::Shell;

    use super::*;

    /// Makes a project with these files and returns what a line names in it, what it cannot tell, and the line over copies.
    fn read(line: &str) -> (Vec<String>, Vec<String>, String) {
        let home = tempfile::tempdir().unwrap();
        let project = fs::canonicalize(home.path()).unwrap();
        for file in [
            "check.sh",
            "a b.py",
            "sub/run.py",
            "test",
            "rules.jq",
            "audit.log",
            "import.jq",
        ] {
            let path = project.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let is_import = file == "import.jq";
            let text = if is_import {
                "import \"./evil\" as e; ."
            } else {
                ""
            };
            fs::write(path, text).unwrap();
        }
        let ground = Ground {
            dir: &project,
            project: &project,
            root: &project,
        };
        let mut action = Action::Line {
            shell: Shell::Sh,
            line: line.replace("ROOT", project.to_str().unwrap()),
        };
        let mut files = NamedFiles::of(&action, &[], ground);
        let read = files.read(ground).unwrap();
        let named = read.iter().map(|file| file.path.display().to_string());
        let named = named.collect();
        let rebased = Rebased {
            ground,
            copies: Path::new("/c"),
        };
        rebased.apply(&files, &mut action, &mut []);
        let over = action
            .command()
            .unwrap()
            .replace(project.to_str().unwrap(), "ROOT");
        (named, files.unread, over)
    }

    #[expect(clippy::too_many_lines, reason = "the table is the test")]
    #[test]
    fn the_files_that_a_line_names_are_read_off_it() {
        /// A line, the files that it names, whether it is a plain command, and the line over copies.
        const CASES: &[(&str, &[&str], bool, &str)] = &[
            ("./check.sh", &["check.sh"], true, "/c/check.sh"),
            ("./check.sh --x", &["check.sh"], true, "/c/check.sh --x"),
            (
                "./check.sh --x && echo done",
                &["check.sh"],
                false,
                "'/c/check.sh' --x && echo done",
            ),
            (
                "python3 sub/run.py",
                &["sub/run.py"],
                true,
                "python3 /c/sub/run.py",
            ),
            (
                "python3 -I 'a b.py' x",
                &["a b.py"],
                true,
                "python3 -I '/c/a b.py' x",
            ),
            (
                "python3 \"a b.py\"",
                &["a b.py"],
                true,
                "python3 '/c/a b.py'",
            ),
            (
                "python3 a\\ b.py",
                &["a b.py"],
                false,
                "python3 '/c/a b.py'",
            ),
            (
                "cat | jq -f rules.jq",
                &["rules.jq"],
                false,
                "cat | jq -f '/c/rules.jq'",
            ),
            ("jq -f rules.jq", &["rules.jq"], true, "jq -f /c/rules.jq"),
            (
                "jq --from-file=rules.jq",
                &["rules.jq"],
                true,
                "jq --from-file=/c/rules.jq",
            ),
            (
                "ENV=./check.sh sh -c x",
                &["check.sh"],
                false,
                "ENV='/c/check.sh' sh -c x",
            ),
            ("python3 -m check", &[], false, "python3 -m check"),
            ("sh < check.sh", &["check.sh"], false, "sh < '/c/check.sh'"),
            (
                ". ./check.sh; ROOT/sub/run.py",
                &["check.sh", "sub/run.py"],
                false,
                ". '/c/check.sh'; '/c/sub/run.py'",
            ),
            ("sh test", &["test"], true, "sh /c/test"),
            ("sh -e test", &["test"], true, "sh -e /c/test"),
            ("sh gone", &[], false, "sh '/c/gone'"),
            ("echo test", &["test"], false, "echo test"),
            ("cat >> audit.log", &[], false, "cat >> audit.log"),
            ("cat 2>&1 >audit.log", &[], false, "cat 2>&1 >audit.log"),
            ("tee -a audit.log", &[], true, "tee -a audit.log"),
            ("\"$PWD\"/check.sh", &["check.sh"], false, "'/c/check.sh'"),
            (
                "${PWD}/sub/../check.sh",
                &["check.sh"],
                false,
                "'/c/check.sh'",
            ),
            ("$HOME/check.sh", &[], false, "$HOME/check.sh"),
            ("sh *.sh", &[], false, "sh *.sh"),
            ("cd sub && ./run.py", &[], false, "cd sub && '/c/run.py'"),
            ("./missing.sh", &[], false, "'/c/missing.sh'"),
            ("make check.sh", &["check.sh"], false, "make '/c/check.sh'"),
            (
                "/bin/cat # ./check.sh",
                &["check.sh"],
                false,
                "/bin/cat # ./check.sh",
            ),
            (
                "echo 'no ./check.sh here'",
                &["check.sh"],
                false,
                "echo 'no ./check.sh here'",
            ),
            (
                "if sh test; then x; fi",
                &["test"],
                false,
                "if sh test; then x; fi",
            ),
            ("env sh test", &["test"], false, "env sh test"),
            ("! sh test", &["test"], false, "! sh '/c/test'"),
            (
                "bash -o pipefail test",
                &["test"],
                true,
                "bash -o pipefail /c/test",
            ),
            (
                "timeout 5 sh -c './check.sh x'",
                &["check.sh"],
                false,
                "timeout 5 sh -c './check.sh x'",
            ),
            ("cat test | sh", &["test"], false, "cat test | sh"),
            (
                "cp check.sh /tmp/x && sh /tmp/x",
                &["check.sh"],
                false,
                "cp '/c/check.sh' /tmp/x && sh /tmp/x",
            ),
            (
                ": {#; sh check.sh",
                &["check.sh"],
                false,
                ": {#; sh '/c/check.sh'",
            ),
            (
                "echo > >(./check.sh)",
                &["check.sh"],
                false,
                "echo > >('/c/check.sh')",
            ),
            (
                "sh &>/dev/null test",
                &["test"],
                false,
                "sh &>/dev/null '/c/test'",
            ),
            (
                "sh /proc/self/cwd/test",
                &[],
                false,
                "sh /proc/self/cwd/test",
            ),
            ("awk -f test", &["test"], false, "awk -f test"),
            ("", &[], false, ""),
            ("cat test", &["test"], true, "cat /c/test"),
            ("cat sub/../test", &["test"], true, "cat /c/test"),
            ("cat new", &[], true, "cat /c/new"),
            ("cat sub", &[], false, "cat sub"),
            ("cat -- test -", &["test"], true, "cat -- /c/test -"),
            ("jq -f test", &["test"], true, "jq -f /c/test"),
            (
                "jq import.jq -f test",
                &["import.jq", "test"],
                false,
                "jq /c/import.jq -f /c/test",
            ),
            ("jq -rf test", &["test"], true, "jq -rf /c/test"),
            (
                "jq -Lsub -f test",
                &["test", "sub/run.py"],
                true,
                "jq -L/c/sub -f /c/test",
            ),
            ("jq -L sub .", &["sub/run.py"], true, "jq -L /c/sub ."),
            (
                "jq 'import \"evil\" as e; .'",
                &[],
                false,
                "jq 'import \"evil\" as e; .'",
            ),
            (
                "perl -Isub check.sh",
                &["check.sh", "sub/run.py"],
                true,
                "perl -I/c/sub /c/check.sh",
            ),
            (
                "perl -I sub -w check.sh",
                &["check.sh", "sub/run.py"],
                true,
                "perl -I /c/sub -w /c/check.sh",
            ),
            ("make -ftest", &["test"], false, "make -ftest"),
            (
                "node --require=./check.sh test",
                &["check.sh", "test"],
                false,
                "node --require='/c/check.sh' '/c/test'",
            ),
            ("grep -ftest", &["test"], true, "grep -f/c/test"),
            ("grep -q test test", &["test"], true, "grep -q test /c/test"),
            (
                "./check.sh test",
                &["check.sh", "test"],
                false,
                "/c/check.sh test",
            ),
            (
                "./check.sh sub/run.py",
                &["check.sh", "sub/run.py"],
                true,
                "/c/check.sh /c/sub/run.py",
            ),
            ("./check.sh sub", &["check.sh"], false, "/c/check.sh sub"),
            (
                "./check.sh -Isub",
                &["check.sh"],
                false,
                "/c/check.sh -Isub",
            ),
            (
                "./check.sh ./new",
                &["check.sh"],
                false,
                "/c/check.sh ./new",
            ),
            (
                "./check.sh https://example.com/x",
                &["check.sh"],
                true,
                "/c/check.sh https://example.com/x",
            ),
        ];
        for (line, named, is_plain, over) in CASES {
            let (found, not_read, rebased) = read(line);
            assert_eq!(found, *named, "{line}");
            assert_eq!(not_read.is_empty(), *is_plain, "{line}: {not_read:?}");
            assert_eq!(rebased, *over, "{line}");
        }
    }

    #[test]
    fn any_line_is_read_to_its_end() {
        for line in [
            "'",
            "\"",
            "\"$",
            "a\\",
            "$",
            "${",
            ">",
            "2>",
            "`",
            "((",
            "=",
            "a=",
            "ü'é",
            "echo\u{a0}x",
            "\u{c}",
            "\u{2028}",
        ] {
            let found = line_words(line, Path::new("/p"));
            assert!(
                found.iter().all(|word| word.range.end <= line.len()),
                "{line}"
            );
        }
    }
}
