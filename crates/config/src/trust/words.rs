//! Which files of the project a command names, as far as that can be read off it.
//!
//! Every word that is a file of the project counts towards the approval. What runs from a copy is what stands where a path can be put
//! in its place:
//!
//! | in the command | runs from a copy |
//! |---|---|
//! | the program, and the script behind an interpreter; also where there is no such file, so that none can take its place | yes |
//! | an argument with a folder or an extension, the value of `--option=path`, `NAME=path`, or of a variable of the hook | yes |
//! | any other word that is a file of the project | no |
//! | the target of `>`, what `tee`, `rm` and the like write | no, and it does not count |
//!
//! Only a plain command is read to its end: one program by plain words, which is a file of the project, an interpreter with its script, or a
//! program that is known to run nothing else. Of any other whoever approves is told.
//!
//! Beside a script below `.tenterhook` or `.kodelet`, the other sources of its folder count too, since it may load them.

use std::ffi::OsStr;
use std::fs;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use tenterhook_process::plain_words;

use super::interpreter::{check_interpreter, in_search_path};
use super::item::ItemFile;
use super::store::inside_copies;
use crate::draft::Action;

/// Programs whose first argument is a file that they run.
const INTERPRETERS: [&str; 18] = [
    "sh", "bash", "dash", "zsh", "ksh", "python", "python3", "node", "deno", "bun", "ruby", "perl",
    "lua", "php", "pwsh", "source", ".", "tsx",
];
/// Options of interpreters that change nothing of what they run.
const HARMLESS_OPTIONS: [&str; 8] = ["-u", "-I", "-B", "-s", "-E", "-O", "-e", "-x"];
/// Programs whose arguments are what they write.
const WRITERS: [&str; 6] = ["tee", "touch", "rm", "mkdir", "rmdir", "truncate"];
/// Programs that run nothing but themselves.
const HARMLESS: [&str; 20] = [
    "cat", "cut", "date", "echo", "exit", "false", "grep", "head", "jq", "mkdir", "printf", "rm",
    "sort", "tail", "tee", "test", "touch", "tr", "true", "wc",
];
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
    /// What no file can be read off.
    pub(crate) unread: Vec<String>,
}

/// A word that names a file. An approval keeps it, so that the approved copies can be put in the place of these files when
/// the files are gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Named {
    place: Place,
    /// The whole path.
    pub(crate) path: PathBuf,
    /// The file is there.
    exists: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Place {
    Line(Range<usize>),
    Argument(usize, Range<usize>),
    Variable(usize),
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
        // From the end, so that places before stay where they are.
        for named in files.words.iter().rev() {
            let path = self.path(named).to_string_lossy().into_owned();
            match (&named.place, &mut *action) {
                (Place::Line(range), Action::Line { line, .. }) => {
                    line.replace_range(range.clone(), &quoted(&path));
                }
                (Place::Argument(index, range), Action::Argv(argv)) => {
                    if let Some(word) = argv.get_mut(*index) {
                        word.replace_range(range.clone(), &path);
                    }
                }
                (Place::Variable(index), _) => {
                    if let Some((_, value)) = env.get_mut(*index) {
                        value.clone_from(&path);
                    }
                }
                (Place::Line(_) | Place::Argument(..) | Place::Nowhere, _) => {}
            }
        }
    }
}

impl NamedFiles {
    /// Reads the files off an action and its variables.
    pub(crate) fn of(action: &Action, env: &[(String, String)], ground: Ground<'_>) -> Self {
        let mut files = Self::default();
        match action {
            Action::Line { line, .. } => {
                let words = words(line, ground.dir);
                files.count_all(line, &words, ground);
                for word in &words {
                    files.add(word, ground, Place::Line);
                }
                let plain = plain_words(line);
                if !plain.is_some_and(|words| is_plain(&words, ground)) {
                    files.unread.push(line.trim().to_owned());
                }
            }
            Action::Argv(argv) => {
                let words = argument_words(argv);
                files.count_all(&argv.join("\n"), &words, ground);
                for (index, word) in words.iter().enumerate() {
                    files.add(word, ground, |range| Place::Argument(index, range));
                }
                if !is_plain(argv, ground) {
                    files.unread.push(argv.join(" "));
                }
            }
            Action::Builtin { .. } | Action::Model(_) | Action::Http(_) => {}
        }
        for (index, (name, value)) in env.iter().enumerate() {
            files.add_variable(index, name, value, ground);
        }
        files
    }

    fn add_variable(&mut self, index: usize, name: &str, value: &str, ground: Ground<'_>) {
        let path = within(value, ground).filter(|path| path.is_file());
        if let Some(path) = path.filter(|_| value.contains('/')) {
            self.words.push(Named {
                place: Place::Variable(index),
                path,
                exists: true,
            });
            return;
        }
        self.count_all(value, &[], ground);
        let names_project = tokens(value).any(|token| {
            within(token, ground).is_some_and(|path| path != ground.dir && path.exists())
        });
        if value.contains('$') || names_project {
            self.unread.push(format!("{name}={value}"));
        }
    }

    /// Counts every part of a text that is a file of the project, however it stands there, but what is written.
    fn count_all(&mut self, text: &str, words: &[Word], ground: Ground<'_>) {
        let written = |token: &str| {
            words
                .iter()
                .any(|word| word.role == Role::Written && word.text.as_deref() == Some(token))
        };
        for token in tokens(text).filter(|token| !written(token)) {
            let Some(path) = within(token, ground).filter(|path| path.is_file()) else {
                continue;
            };
            self.words.push(Named {
                place: Place::Nowhere,
                path,
                exists: true,
            });
        }
    }

    fn add(&mut self, word: &Word, ground: Ground<'_>, place: impl Fn(Range<usize>) -> Place) {
        let Some(text) = &word.text else { return };
        let has_folder = text.contains('/');
        let path = match word.role {
            Role::Command if !has_folder => {
                in_search_path(text, ground.dir).filter(|found| found.starts_with(ground.root))
            }
            Role::Argument if !has_folder && !has_extension(text) => None,
            Role::Code | Role::Written => None,
            Role::Command | Role::Argument | Role::Script => within(text, ground),
        };
        let Some(path) = path else { return };
        let exists = path.is_file();
        if exists || matches!(word.role, Role::Command | Role::Script) {
            self.words.push(Named {
                place: place(word.range.clone()),
                path,
                exists,
            });
        }
    }

    /// Reads every file, each once, and the sources beside scripts. The error names the file.
    pub(crate) fn read(&mut self, ground: Ground<'_>) -> Result<Vec<ItemFile>, String> {
        let mut files: Vec<ItemFile> = Vec::new();
        let mut folders: Vec<PathBuf> = Vec::new();
        for named in self.words.iter().filter(|named| named.exists) {
            add(&mut files, &named.path, ground.project)?;
            if let Some(file) = files.last() {
                check_interpreter(&file.bytes, ground.dir, ground.root)
                    .map_err(|problem| format!("`{}`: {problem}", file.path.display()))?;
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
                    .push(format!("the files of {}", folder.display())),
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
            let named = named.filter(|named| shown(&named.path, project) == file.path);
            let (others, placed): (Vec<_>, Vec<_>) =
                named.partition(|named| matches!(named.place, Place::Nowhere));
            placed.len() < others.len()
        };
        let mut approved = approved.iter();
        approved.find(lacks_copy).map(|file| file.path.as_path())
    }
}

/// Says whether a command is one program by plain words that runs nothing but what is named.
fn is_plain(words: &[String], ground: Ground<'_>) -> bool {
    let Some((program, arguments)) = words.split_first() else {
        return false;
    };
    if words
        .iter()
        .any(|word| word.contains("/proc/") || word.contains("/dev/fd"))
    {
        return false;
    }
    let name = Path::new(program).file_name().and_then(OsStr::to_str);
    let name = name.unwrap_or(program);
    let is_of_project = |word: &str| within(word, ground).is_some_and(|path| path.is_file());
    if program.contains('/') && is_of_project(program) {
        return true;
    }
    if INTERPRETERS.contains(&name) {
        let is_option = |word: &&String| HARMLESS_OPTIONS.contains(&word.as_str());
        // What `-e` means depends on the interpreter.
        let is_shell = name.ends_with("sh") && name != "pwsh";
        let script = arguments.iter().find(|word| {
            !(is_option(word) && (is_shell || !["-e", "-x"].contains(&word.as_str())))
        });
        return script.is_some_and(|script| !script.starts_with('-') && is_of_project(script));
    }
    HARMLESS.contains(&name)
}

fn is_shell(name: &str) -> bool {
    name.ends_with("sh") && name != "pwsh"
}

/// Returns the parts of a text that could be paths, however they stand there.
fn tokens(text: &str) -> impl Iterator<Item = &str> {
    let is_of_path = |c: char| c.is_alphanumeric() || "_./@%+-~".contains(c);
    text.split(move |c| !is_of_path(c))
        .filter(|token| !token.is_empty())
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
            if metadata.is_dir() && !is_link {
                folders.push(path);
            } else if metadata.is_file() && is_source(&path) && is_wanted(&path) {
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
fn within(text: &str, ground: Ground<'_>) -> Option<PathBuf> {
    if text.is_empty() {
        return None;
    }
    let joined = ground.dir.join(text);
    let goes_up = joined.components().any(|part| part == Component::ParentDir);
    // What `..` means behind a link is not what the text says.
    let whole = goes_up.then(|| fs::canonicalize(&joined)).transpose();
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
fn words(line: &str, dir: &Path) -> Vec<Word> {
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
        ] {
            let path = project.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
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
            ("./check.sh", &["check.sh"], true, "'/c/check.sh'"),
            ("./check.sh --x", &["check.sh"], true, "'/c/check.sh' --x"),
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
                "python3 '/c/sub/run.py'",
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
            ("jq -f rules.jq", &["rules.jq"], true, "jq -f '/c/rules.jq'"),
            (
                "jq --from-file=rules.jq",
                &["rules.jq"],
                true,
                "jq --from-file='/c/rules.jq'",
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
            ("sh test", &["test"], true, "sh '/c/test'"),
            ("sh -e test", &["test"], true, "sh -e '/c/test'"),
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
                false,
                "bash -o '/c/pipefail' test",
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
            let found = words(line, Path::new("/p"));
            assert!(
                found.iter().all(|word| word.range.end <= line.len()),
                "{line}"
            );
        }
    }
}
