//! Which files of the project a command names, as far as that can be read off it.
//!
//! | in the command | counts as a file that it runs |
//! |---|---|
//! | a path to a file of the project | yes |
//! | a file name without a folder | if it has an extension, or is what an interpreter runs |
//! | the value of `--option=path`, `NAME=path`, or of a variable of the hook | as above |
//! | the target of `>`, what `tee`, `rm` and the like write | no |
//! | `$PWD/path` | yes |
//! | other variables, substitutions, patterns, `cd`, `make` and the like | cannot be read; whoever approves is told |
//!
//! Beside a script below `.tenterhook` or `.kodelet`, the other sources of its folder count too, since it may load them.

use std::ffi::OsStr;
use std::fs;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use super::interpreter::{check_interpreter, in_search_path};
use super::item::ItemFile;
use super::store::inside_copies;
use crate::draft::Action;

/// Programs whose first argument is a file that they run.
const INTERPRETERS: [&str; 18] = [
    "sh", "bash", "dash", "zsh", "ksh", "python", "python3", "node", "deno", "bun", "ruby", "perl",
    "lua", "php", "pwsh", "source", ".", "tsx",
];
/// Programs whose arguments are what they write.
const WRITERS: [&str; 11] = [
    "tee", "touch", "rm", "mkdir", "rmdir", "mv", "cp", "ln", "truncate", "chmod", "install",
];
/// Programs that run what a project says elsewhere.
const RUNNERS: [&str; 20] = [
    "make",
    "gmake",
    "just",
    "task",
    "npm",
    "npx",
    "pnpm",
    "yarn",
    "cargo",
    "go",
    "gradle",
    "mvn",
    "rake",
    "bundle",
    "pytest",
    "tox",
    "pre-commit",
    "cd",
    "pushd",
    "eval",
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

#[derive(Debug)]
struct Named {
    place: Place,
    /// The whole path.
    path: PathBuf,
    /// The file is there.
    exists: bool,
}

#[derive(Debug)]
enum Place {
    Line(Range<usize>),
    Argument(usize, Range<usize>),
    Variable(usize),
}

/// Puts the paths of copies in the place of those of the project.
#[derive(Debug)]
pub(crate) struct Rebased<'a> {
    pub(crate) ground: Ground<'a>,
    pub(crate) copies: &'a Path,
}

impl Rebased<'_> {
    fn path(&self, named: &Named) -> PathBuf {
        if named.exists {
            self.copies
                .join(inside_copies(&shown(&named.path, self.ground.project)))
        } else {
            // It stays missing: in another folder the same word could name another file.
            named.path.clone()
        }
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
                (Place::Line(_) | Place::Argument(..), _) => {}
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
                for word in words(line, ground.dir) {
                    files.add(&word, ground, Place::Line);
                }
            }
            Action::Argv(argv) => {
                for (index, word) in plain_words(argv).into_iter().enumerate() {
                    files.add(&word, ground, |range| Place::Argument(index, range));
                }
            }
            Action::Builtin { .. } | Action::Model(_) | Action::Http(_) => {}
        }
        for (index, (name, value)) in env.iter().enumerate() {
            if value.contains('$') {
                files.unread.push(format!("{name}={value}"));
            } else if let Some(path) = within(value, ground)
                && value.contains('/')
                && path.is_file()
            {
                files.words.push(Named {
                    place: Place::Variable(index),
                    path,
                    exists: true,
                });
            } else if value
                .split(':')
                .any(|part| within(part, ground).is_some_and(|dir| dir.is_dir()))
            {
                files.unread.push(format!("{name}={value}"));
            }
        }
        files
    }

    fn add(&mut self, word: &Word, ground: Ground<'_>, place: impl Fn(Range<usize>) -> Place) {
        if word.role == Role::Written {
            return;
        }
        let Some(text) = &word.text else {
            self.unread.push(word.raw.clone());
            return;
        };
        let is_runner = word.role == Role::Command && RUNNERS.contains(&text.as_str());
        if is_runner || word.role == Role::Code {
            self.unread.push(word.raw.clone());
        }
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
        if exists || word.role == Role::Command {
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
    let mut path = PathBuf::new();
    for part in ground.dir.join(text).components() {
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
        if text.is_some_and(|text| CODE.contains(&text)) {
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
fn plain_words(argv: &[String]) -> Vec<Word> {
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
            '\n' | ';' | '|' | '&' | '(' | ')' | '`' | '{' | '}' => {
                self.at += 1;
                self.roles = Roles::default();
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
            if next.is_whitespace() || ";|&()<>`".contains(next) {
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
        if std::mem::take(&mut self.is_written) {
            return;
        }
        let range = start..self.at;
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
                            add(text, escaped.encode_utf8(&mut [0; 4]));
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
        let cases: &[(&str, &[&str], &[&str], &str)] = &[
            ("./check.sh", &["check.sh"], &[], "'/c/check.sh'"),
            (
                "./check.sh --x && echo done",
                &["check.sh"],
                &[],
                "'/c/check.sh' --x && echo done",
            ),
            (
                "python3 sub/run.py",
                &["sub/run.py"],
                &[],
                "python3 '/c/sub/run.py'",
            ),
            (
                "python3 -I 'a b.py' x",
                &["a b.py"],
                &[],
                "python3 -I '/c/a b.py' x",
            ),
            (
                "python3 \"a b.py\"",
                &["a b.py"],
                &[],
                "python3 '/c/a b.py'",
            ),
            ("python3 a\\ b.py", &["a b.py"], &[], "python3 '/c/a b.py'"),
            (
                "cat | jq -f rules.jq",
                &["rules.jq"],
                &[],
                "cat | jq -f '/c/rules.jq'",
            ),
            (
                "jq --from-file=rules.jq",
                &["rules.jq"],
                &[],
                "jq --from-file='/c/rules.jq'",
            ),
            (
                "ENV=./check.sh sh -c x",
                &["check.sh"],
                &["-c"],
                "ENV='/c/check.sh' sh -c x",
            ),
            ("python3 -m check", &[], &["-m"], "python3 -m check"),
            ("sh < check.sh", &["check.sh"], &[], "sh < '/c/check.sh'"),
            (
                ". ./check.sh; ROOT/sub/run.py",
                &["check.sh", "sub/run.py"],
                &[],
                ". '/c/check.sh'; '/c/sub/run.py'",
            ),
            ("sh test", &["test"], &[], "sh '/c/test'"),
            ("echo test", &[], &[], "echo test"),
            ("cat >> audit.log", &[], &[], "cat >> audit.log"),
            ("cat 2>&1 >audit.log", &[], &[], "cat 2>&1 >audit.log"),
            ("tee -a audit.log", &[], &[], "tee -a audit.log"),
            ("\"$PWD\"/check.sh", &["check.sh"], &[], "'/c/check.sh'"),
            (
                "${PWD}/sub/../check.sh",
                &["check.sh"],
                &[],
                "'/c/check.sh'",
            ),
            ("$HOME/check.sh", &[], &["$HOME/check.sh"], "$HOME/check.sh"),
            ("sh *.sh", &[], &["*.sh"], "sh *.sh"),
            (
                "cd sub && ./run.py",
                &[],
                &["cd"],
                "cd sub && 'ROOT/run.py'",
            ),
            ("./missing.sh", &[], &[], "'ROOT/missing.sh'"),
            ("make check", &[], &["make"], "make check"),
            ("/bin/cat # ./check.sh", &[], &[], "/bin/cat # ./check.sh"),
            (
                "echo 'no ./check.sh here'",
                &[],
                &[],
                "echo 'no ./check.sh here'",
            ),
            ("", &[], &[], ""),
        ];
        for (line, named, unread, over) in cases {
            let (found, not_read, rebased) = read(line);
            assert_eq!(found, *named, "{line}");
            assert_eq!(not_read, *unread, "{line}");
            assert_eq!(rebased, *over, "{line}");
        }
    }

    #[test]
    fn any_line_is_read_to_its_end() {
        for line in [
            "'", "\"", "\"$", "a\\", "$", "${", ">", "2>", "`", "((", "=", "a=", "ü'é",
        ] {
            let found = words(line, Path::new("/p"));
            assert!(
                found.iter().all(|word| word.range.end <= line.len()),
                "{line}"
            );
        }
    }
}
