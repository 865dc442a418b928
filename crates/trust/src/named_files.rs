//! Finds the project files that a hook's command and variables name.
//!
//! The approval covers every project file that a word names. If a file is read or run, its approved
//! copy replaces it wherever a path can be replaced:
//!
//! | in the command | replaced by a copy |
//! |---|---|
//! | the program, an interpreter's script, and every file that a plain command reads, even if it does not exist yet | yes |
//! | a folder from which a plain command loads code (`-Ilib`) | yes, with all of its files |
//! | an argument with a folder or an extension, of a script or of a command that is not plain | yes |
//! | any other word that names a project file, also in the arguments of a built-in that runs programs | no |
//! | the target of `>`, and files that `tee`, `rm` and similar programs write | no, and not covered |
//!
//! [`plain`] defines plain commands. [`NamedFiles::unread`] tells the person who approves what can
//! change without a new approval.
//!
//! If a script is in a folder such as `.tenterhook`, the approval also covers the other sources of its
//! folder, because the script may load them. Each hook system declares the names of its folders.

use std::fs;
use std::path::{Path, PathBuf};

use tenterhook_builtins::builtin::runs_programs_of_arguments;
use tenterhook_hookfile::HookAction;
use tenterhook_shell::plain_words;
use tenterhook_systems::SYSTEMS;

use crate::command_words::{CommandWord, Role, argument_words, line_words};
use crate::interpreter::check_interpreter;
use crate::item_file::ItemFile;
use crate::named_path::{NamedPath, PathLocation};
use crate::path_words::{attached, candidates, has_extension, looks_like_path, tokens};
use crate::plain::{self, Part, Use};
use crate::project_roots::{ProjectRoots, shown, within};
use crate::search_path::in_search_path;
use crate::source_files::{files_below, is_source, sources_below, too_many_files};
use crate::variables::{self, Depth, Entry};

/// The files that a hook names.
#[derive(Debug, Default)]
pub(crate) struct NamedFiles {
    pub(crate) words: Vec<NamedPath>,
    /// Notes about what can change without a new approval, one sentence each.
    pub(crate) unread: Vec<String>,
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
            HookAction::Line { line, .. } => {
                if let Some(words) = plain_words(line) {
                    files.add_words(&words, roots, || in_line(line, roots));
                } else {
                    files.unread.push(format!(
                        "`{}` is a shell command line, and may run and read more than these files",
                        line.trim()
                    ));
                    files.add_unread(&[line.as_str()], in_line(line, roots), roots);
                }
            }
            HookAction::Argv(argv) => files.add_words(argv, roots, || in_arguments(argv)),
            HookAction::Builtin { name, args } if runs_programs_of_arguments(name) => {
                let texts: Vec<&str> = args.iter().map(String::as_str).collect();
                files.count_all(&texts, &[], roots);
                files.unread.push(format!(
                    "the built-in `{name}` may run and read more than these files"
                ));
            }
            HookAction::Builtin { .. } | HookAction::Model(_) | HookAction::Http(_) => {}
        }
        for (index, (name, value)) in env.iter().enumerate() {
            files.add_variable(index, name, value, roots);
        }
        files
    }

    /// Adds the files that a list of words names. If they are not a plain command, `otherwise` returns
    /// the words with their roles.
    fn add_words(
        &mut self,
        words: &[String],
        roots: ProjectRoots<'_>,
        otherwise: impl FnOnce() -> Vec<(CommandWord, PathLocation)>,
    ) {
        let texts: Vec<&str> = words.iter().map(String::as_str).collect();
        match plain::read(words, roots) {
            Ok(parts) => {
                if let Some(program) = words.first()
                    && let Some(path) = program_of_project(program, roots)
                {
                    let place = PathLocation::Word(0, 0..program.len());
                    self.push(place, path);
                }
                let is_written = |part: &&Part| part.used == Use::Written;
                let written = parts.iter().filter(is_written);
                let written: Vec<&str> = written.map(|part| part.text(words)).collect();
                self.count_all(&texts, &written, roots);
                let has_folder = parts.iter().any(|part| part.used == Use::Folder);
                for part in &parts {
                    self.add_part(part, part.text(words), has_folder, roots);
                }
            }
            Err(problem) => {
                self.unread.push(format!(
                    "`{}` may run and read more than these files: {problem}",
                    words.join(" ")
                ));
                self.add_unread(&texts, otherwise(), roots);
            }
        }
    }

    /// Adds the files that can be recognized in a command that is not plain.
    fn add_unread(
        &mut self,
        texts: &[&str],
        words: Vec<(CommandWord, PathLocation)>,
        roots: ProjectRoots<'_>,
    ) {
        let is_written = |word: &&CommandWord| word.role == Role::Written;
        let written = words.iter().map(|(word, _)| word).filter(is_written);
        let written: Vec<&str> = written.filter_map(|word| word.text.as_deref()).collect();
        self.count_all(texts, &written, roots);
        for (word, place) in words {
            self.add(&word, roots, place);
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

    /// Adds the file that a part of a plain command names.
    fn add_part(&mut self, part: &Part, text: &str, has_folder: bool, roots: ProjectRoots<'_>) {
        let Some(path) = within(text, roots) else {
            return;
        };
        let place = PathLocation::Word(part.word, part.range.clone());
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
            Use::Argument => self.add_argument(place, text, path, roots),
        }
    }

    /// Adds an argument of a script. Only the script knows its meaning, so a word that could also be
    /// plain text is not replaced.
    fn add_argument(
        &mut self,
        place: PathLocation,
        text: &str,
        path: PathBuf,
        roots: ProjectRoots<'_>,
    ) {
        let is_of_project = |token: &&str| {
            within(token, roots).is_some_and(|path| path != roots.dir && path.exists())
        };
        if path.is_dir() {
            self.note_folder(text);
        } else if path.is_file() && (text.contains('/') || has_extension(text)) {
            self.push(place, path);
        } else if let Some(found) = candidates(text).find(is_of_project) {
            self.unread.push(format!(
                "`{found}` is in the project; the script may read it as it is then, not as you approved it"
            ));
        } else if looks_like_path(text) {
            self.unread.push(format!(
                "`{text}` does not exist; this approval will not cover a file of that name"
            ));
        }
    }

    fn note_folder(&mut self, text: &str) {
        self.unread.push(format!(
            "`{text}` is a folder of the project; its files can change without a new approval"
        ));
    }

    /// Adds the files of a folder from which code is loaded.
    fn add_folder(&mut self, place: PathLocation, text: &str, path: PathBuf, depth: Depth) {
        match files_below(&path, depth, |_| true) {
            Some(files) => {
                let named = files.into_iter().map(|path| NamedPath {
                    location: PathLocation::Nowhere,
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

    fn add_variable(&mut self, index: usize, name: &str, value: &str, roots: ProjectRoots<'_>) {
        let entries = variables::entries(name, value);
        if let Some(reason) = &entries.note {
            self.unread.push(format!("`{name}={value}`: {reason}"));
        }
        self.count_all(&[value], &[], roots);
        for (range, entry) in entries.entries {
            let text = value.get(range.clone()).unwrap_or_default();
            let place = PathLocation::Variable(index, range);
            let (depth, text) = match entry {
                Entry::Text => {
                    self.add_text(place, name, text, roots);
                    continue;
                }
                Entry::File => (None, text),
                Entry::Folder(depth) => (Some(depth), if text.is_empty() { "." } else { text }),
            };
            match (within(text, roots), depth) {
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

    /// Adds the file that a variable names, if only the program knows the meaning of its value.
    fn add_text(&mut self, place: PathLocation, name: &str, value: &str, roots: ProjectRoots<'_>) {
        let path = within(value, roots).filter(|path| path.is_file());
        if let Some(path) = path.filter(|_| value.contains('/')) {
            self.push(place, path);
            return;
        }
        let is_of_project = |token: &str| {
            within(token, roots).is_some_and(|path| path != roots.dir && path.exists())
        };
        if let Some(found) = std::iter::once(value)
            .chain(tokens(value))
            .find(|token| is_of_project(token))
        {
            self.unread.push(format!(
                "`{name}={value}`: `{found}` is in the project; the hook may read it as it is then, not as you approved it"
            ));
        }
    }

    /// Adds every part of the texts that names a project file, except files that are written. The
    /// approval covers these files, but no path is replaced.
    fn count_all(&mut self, texts: &[&str], written: &[&str], roots: ProjectRoots<'_>) {
        // One entry per occurrence, so that `without_copy` can tell whether all of them are replaced.
        let parts = texts.iter().flat_map(|text| {
            let others = tokens(text).filter(move |token| token != text);
            std::iter::once(*text).chain(others)
        });
        for token in parts.filter(|token| !written.contains(token)) {
            let found = std::iter::once(token)
                .chain(attached(token))
                .find_map(|token| within(token, roots).filter(|path| path.is_file()));
            if let Some(path) = found {
                self.push(PathLocation::Nowhere, path);
            }
        }
    }

    /// Adds the file that a word names, for a command that is not plain.
    fn add(&mut self, word: &CommandWord, roots: ProjectRoots<'_>, place: PathLocation) {
        let Some(text) = &word.text else { return };
        let has_folder = text.contains('/');
        let path = match word.role {
            Role::Command if !has_folder => program_of_project(text, roots),
            Role::Argument if !has_folder && !has_extension(text) => None,
            Role::Code | Role::Written => None,
            Role::Command | Role::Argument | Role::Script => within(text, roots),
        };
        let Some(path) = path else { return };
        if path.is_file() || matches!(word.role, Role::Command | Role::Script) {
            self.push(place, path);
        }
    }

    /// Reads every file once, and the sources next to scripts. The error names the file.
    pub(crate) fn read(&mut self, roots: ProjectRoots<'_>) -> Result<Vec<ItemFile>, String> {
        let mut files: Vec<ItemFile> = Vec::new();
        let mut folders: Vec<PathBuf> = Vec::new();
        for named in self.words.iter().filter(|named| named.exists) {
            let known = files.len();
            add(&mut files, &named.path, roots.project)?;
            if let Some(file) = files.get(known) {
                let shown = file.path.display();
                match check_interpreter(&file.bytes, roots.dir, roots.root, None) {
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
                        add(&mut files, &source, roots.project)?;
                    }
                }
                None => self
                    .unread
                    .push(too_many_files(&shown(&folder, roots.project))),
            }
        }
        Ok(files)
    }
}

impl NamedFiles {
    /// Restores the named files of an approved hook.
    pub(crate) const fn of_approval(words: Vec<NamedPath>) -> Self {
        Self {
            words,
            unread: Vec::new(),
        }
    }

    /// Returns the words that an approval stores.
    pub(crate) fn for_approval(&self) -> Vec<NamedPath> {
        self.words.clone()
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

/// Returns the words of a shell command line with their locations.
fn in_line(line: &str, roots: ProjectRoots<'_>) -> Vec<(CommandWord, PathLocation)> {
    let words = line_words(line, roots.dir).into_iter();
    words
        .map(|word| {
            let range = word.range.clone();
            (word, PathLocation::Line(range))
        })
        .collect()
}

/// Returns the words of a list of arguments with their locations.
fn in_arguments(argv: &[String]) -> Vec<(CommandWord, PathLocation)> {
    let words = argument_words(argv).into_iter().enumerate();
    words
        .map(|(index, word)| {
            let place = PathLocation::Word(index, word.range.clone());
            (word, place)
        })
        .collect()
}

/// Returns the program that the search path finds for a name, if it is in the project.
fn program_of_project(name: &str, roots: ProjectRoots<'_>) -> Option<PathBuf> {
    let found = (!name.contains('/')).then(|| in_search_path(name, roots.dir));
    found
        .flatten()
        .filter(|found| found.starts_with(roots.root))
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

fn is_for_hooks(dir: &Path) -> bool {
    let mut names = SYSTEMS.iter().flat_map(|system| system.source_folders);
    names.any(|name| dir.components().any(|part| part.as_os_str() == *name))
}

#[cfg(test)]
mod tests {
    use tenterhook_process::Shell;

    use crate::copy_map::CopyMap;

    use super::*;

    /// Creates a project and returns the files that a line names, the notes, and the line with copies.
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
        let named = read.iter().map(|file| file.path.display().to_string());
        let named = named.collect();
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

    #[expect(clippy::too_many_lines, reason = "the table is the test")]
    #[test]
    fn the_files_that_a_line_names_are_read_off_it() {
        /// A line, the files that it names, whether it is a plain command, and the line with copies.
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
            let (found, not_read, copy_map) = read(line);
            assert_eq!(found, *named, "{line}");
            assert_eq!(not_read.is_empty(), *is_plain, "{line}: {not_read:?}");
            assert_eq!(copy_map, *over, "{line}");
        }
    }
}
