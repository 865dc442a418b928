//! Parses command lines: the commands in a line, its words, and whether it needs a shell at all.
//!
//! All code that interprets command lines uses this crate, so that it agrees on their meaning:
//!
//! - [`readings`], [`launches`] and [`commands`] are for rules that allow or restrict commands.
//! - [`words`] has the position of each word, for approvals.
//! - [`plain_words`] finds lines that mean the same without a shell.
//!
//! Rules that restrict use [`readings`]. In case of doubt, it finds too many commands instead of
//! too few. It knows quotes, separators, substitutions, redirections, the words that may come
//! before a command, and the programs that run another command (`launch.rs`). Rules that allow use
//! [`launches`]: a rule must name every further program that a line runs. The effect of variables,
//! encoded text, scripts and aliases stays unknown.
//!
//! # Examples
//!
//! ```
//! use tenterhook_shell::{plain_words, readings};
//!
//! let words = plain_words("cargo test").unwrap();
//! assert_eq!(words, ["cargo", "test"]);
//! assert_eq!(plain_words("cargo test | tee log"), None);
//!
//! let found = readings("timeout 5 rm -r build");
//! assert!(found.texts.contains(&"rm -r build".to_owned()));
//! assert!(found.is_complete);
//! ```

#![forbid(unsafe_code)]

mod assignment;
mod launch;
mod lexer;
mod plain;
mod words;

use std::collections::HashSet;

use self::assignment::is_assignment;
pub use self::launch::is_shell;
use self::launch::{Launch, launched, program_name};
use self::lexer::{Lexer, Piece, QuotedPiece};
pub use self::plain::plain_words;
pub use self::words::{LineWord, LineWordKind, words};

/// How many nested substitutions inside quotes are followed. Commands in deeper ones are still
/// found by splitting the line at all syntax characters.
const MAX_SUBSTITUTIONS: u32 = 16;

/// How long a chain of commands that run another command may be, as in `timeout 5 env sh -c …`.
const MAX_DEPTH: u32 = 16;

/// How many commands that other commands run are read, and how many bytes they may have in total.
const MAX_LAUNCHED: usize = 4096;
const MAX_LAUNCHED_BYTES: usize = 1 << 20;

/// Keywords of the shell that may come before a command.
const GRAMMAR: [&str; 10] = [
    "!", "{", "then", "do", "else", "elif", "if", "while", "until", "function",
];

/// All possible readings of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Readings {
    /// The line and each command in it, as written and in plain words.
    pub texts: Vec<String>,
    /// Whether all commands that other commands run were read. If not, a rule that restricts must
    /// assume that the line can run anything.
    pub is_complete: bool,
}

/// Returns all readings of a command line that a restricting rule must check.
pub fn readings(line: &str) -> Readings {
    let mut reader = Reader::default();
    reader.line(line, 0);
    let mut texts = reader.texts;
    texts.sort_unstable();
    texts.dedup();
    Readings {
        texts,
        is_complete: reader.is_complete,
    }
}

/// Returns the programs that the commands of a line run, without the commands' own programs. A
/// program that the line does not show is an empty string. Returns `None` if the line is nested too
/// deeply to be read.
pub fn launches(line: &str) -> Option<Vec<String>> {
    let mut reader = Reader::default();
    reader.line(line, 0);
    reader.is_complete.then_some(reader.programs)
}

/// Follows the commands of a line and the commands that they run.
struct Reader {
    texts: Vec<String>,
    /// The programs of commands that other commands run.
    programs: Vec<String>,
    seen: HashSet<Vec<String>>,
    launched: usize,
    bytes: usize,
    /// How many bytes of commands that other commands run may still be copied. Commands that were read
    /// before count, too, because copying them takes time.
    room: usize,
    is_complete: bool,
}

impl Default for Reader {
    fn default() -> Self {
        Self {
            texts: Vec::new(),
            programs: Vec::new(),
            seen: HashSet::new(),
            launched: 0,
            bytes: 0,
            room: MAX_LAUNCHED_BYTES,
            is_complete: true,
        }
    }
}

impl Reader {
    fn line(&mut self, line: &str, depth: u32) {
        if !self.is_affordable(line.len(), depth) {
            return;
        }
        self.texts.push(line.to_owned());
        // Brace expansion makes words of the command: `{sudo,reboot}` runs `sudo reboot`.
        let without_braces = line.replace(['{', ',', '}'], " ");
        let expanded = line.contains('{').then_some(without_braces.as_str());
        // Text with a separator may be quoted, or only look quoted. So the whole line and its parts
        // are both read.
        for part in line.split(is_syntax).chain([line]).chain(expanded) {
            self.texts.push(part.trim().to_owned());
            let commands = commands(part);
            for words in &commands {
                self.command(words, depth);
            }
            if commands.iter().any(|words| launch::is_fed(words)) {
                self.fed(&commands, depth);
            }
        }
    }

    /// Reads the text that `echo` and `printf` pass to a program that runs it.
    fn fed(&mut self, commands: &[Vec<String>], depth: u32) {
        for words in commands {
            if let Some((program, text)) = words.split_first()
                && ["echo", "printf"].contains(&program_name(program))
            {
                self.line(&text.join(" "), depth + 1);
            }
        }
    }

    /// Reads a command, with and without the keywords and variables before it.
    fn command(&mut self, words: &[String], depth: u32) {
        if !self.seen.insert(words.to_vec()) {
            return;
        }
        if !self.is_affordable(launch::size(words), depth) {
            return;
        }
        self.texts.push(words.join(" "));
        let mut words = words;
        while let Some((first, rest)) = words.split_first() {
            let is_variable = is_assignment(first);
            if !is_variable && !GRAMMAR.contains(&first.as_str()) {
                break;
            }
            let variable = first.split_once('=').filter(|_| is_variable);
            let command = variable.and_then(|(name, value)| launch::variable_command(name, value));
            if let Some(line) = command {
                // A value of git's configuration may be an alias, whose command starts with `!`.
                self.line(line.strip_prefix('!').unwrap_or(line), depth + 1);
            }
            words = rest;
        }
        let Some((program, arguments)) = words.split_first() else {
            return;
        };
        // `for x do COMMAND` has no separator before `do`. The limits apply to it, because the command
        // may be such a loop again.
        if program == "for" && arguments.get(1).is_some_and(|word| word == "do") {
            self.command(arguments.get(2..).unwrap_or_default(), depth + 1);
        }
        if depth > 0 {
            self.programs.push(program.clone());
        }
        self.texts.push(words.join(" "));
        let name = program_name(program).to_owned();
        self.texts.push([&[name], arguments].concat().join(" "));
        let launches = launched(words, self.room);
        self.room = launches.room;
        self.is_complete &= launches.is_complete;
        for launch in launches.found {
            match launch {
                Launch::Words(words) => self.command(&words, depth + 1),
                Launch::Line(line) => self.line(&line, depth + 1),
                Launch::Unseen => self.programs.push(String::new()),
            }
        }
    }

    /// Returns whether a command that another one runs is within the limits.
    fn is_affordable(&mut self, bytes: usize, depth: u32) -> bool {
        if depth == 0 {
            return true;
        }
        self.launched += 1;
        self.bytes += bytes;
        let is_affordable =
            depth <= MAX_DEPTH && self.launched <= MAX_LAUNCHED && self.bytes <= MAX_LAUNCHED_BYTES;
        self.is_complete &= is_affordable;
        is_affordable
    }
}

/// Returns the commands of a line, each as its words. Commands in substitutions inside quotes are included.
pub fn commands(line: &str) -> Vec<Vec<String>> {
    let mut commands = Vec::new();
    read(&mut Lexer::new(line), None, 0, &mut commands);
    commands
}

/// Returns whether a character can make a command line do more than run one program with plain arguments.
pub fn is_syntax(character: char) -> bool {
    matches!(
        character,
        ';' | '&' | '|' | '<' | '>' | '`' | '$' | '(' | ')' | '{' | '}' | '\\' | '\n' | '\r'
    )
}

/// A command that is being read.
#[derive(Default)]
struct CommandInProgress {
    words: Vec<String>,
    word: String,
    /// Whether a word has started. It may be empty, as in `''`.
    is_word: bool,
    /// Whether the current word is the target of a redirection, which is not part of the command.
    is_target: bool,
}

impl CommandInProgress {
    fn push(&mut self, character: char) {
        self.word.push(character);
        self.is_word = true;
    }

    fn end_word(&mut self) {
        let word = std::mem::take(&mut self.word);
        if !std::mem::take(&mut self.is_word) {
            return;
        }
        if !std::mem::take(&mut self.is_target) {
            self.words.push(word);
        }
    }

    /// Starts a redirection. The number or `{variable}` before it is not a word of the command.
    fn redirect(&mut self) {
        let is_number = self.word.chars().all(|c| c.is_ascii_digit());
        if is_number || (self.word.starts_with('{') && self.word.ends_with('}')) {
            self.word.clear();
            self.is_word = false;
        }
        self.end_word();
        self.is_target = true;
    }

    fn end_command(&mut self, commands: &mut Vec<Vec<String>>) {
        self.end_word();
        let command = std::mem::take(self);
        if !command.words.is_empty() {
            commands.push(command.words);
        }
    }
}

/// Reads commands until `end` or the end of the text.
fn read(lexer: &mut Lexer<'_>, end: Option<char>, depth: u32, commands: &mut Vec<Vec<String>>) {
    let mut command = CommandInProgress::default();
    let mut open = 0_u32;
    while let Some(piece) = lexer.next() {
        match piece {
            Piece::Syntax(')') if end == Some(')') && open == 0 => break,
            Piece::Syntax('`') if end == Some('`') => break,
            Piece::Syntax(syntax) => {
                open = match syntax {
                    '(' => open.saturating_add(1),
                    ')' => open.saturating_sub(1),
                    _ => open,
                };
                command.end_command(commands);
            }
            Piece::Redirection(_) => {
                command.redirect();
                // In `2>&1` and `>|`, these characters belong to the redirection and do not start a
                // command.
                lexer.skip_all(&['&', '|', '>']);
            }
            Piece::Escaped(Some(escaped)) => command.push(escaped),
            Piece::Escaped(None) => {}
            Piece::SingleQuoted(quoted) => {
                command.is_word = true;
                command.word.push_str(quoted);
            }
            Piece::DoubleQuote => read_quoted(lexer, depth, &mut command, commands),
            // A dollar sign before a quote only changes how the quoted text is read.
            Piece::Dollar if matches!(lexer.peek(), Some('\'' | '"')) => {}
            Piece::Dollar => command.push('$'),
            Piece::Space(_) => command.end_word(),
            Piece::Char(other) => command.push(other),
        }
    }
    command.end_command(commands);
}

/// Reads up to the closing double quote. Substitutions in the text are added as separate commands.
fn read_quoted(
    lexer: &mut Lexer<'_>,
    depth: u32,
    command: &mut CommandInProgress,
    commands: &mut Vec<Vec<String>>,
) {
    command.is_word = true;
    while let Some(piece) = lexer.next_quoted() {
        match piece {
            QuotedPiece::End => return,
            QuotedPiece::Escaped(escaped) => command.word.extend(escaped),
            QuotedPiece::Backslash(other) => command.word.extend(['\\', other]),
            QuotedPiece::Backtick if depth < MAX_SUBSTITUTIONS => {
                read(lexer, Some('`'), depth + 1, commands);
            }
            QuotedPiece::Dollar if depth < MAX_SUBSTITUTIONS && lexer.peek() == Some('(') => {
                lexer.skip(1);
                read(lexer, Some(')'), depth + 1, commands);
            }
            QuotedPiece::Backtick => command.word.push('`'),
            QuotedPiece::Dollar => command.word.push('$'),
            QuotedPiece::Char(other) => command.word.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_found_in_plain_words() {
        for line in [
            "rm v",
            "  rm   v ",
            "rm\tv",
            "! rm v",
            "X=1 rm v",
            "X='a; b' Y+=2 rm v",
            "true; X='a;b' rm v",
            "'rm' v",
            "\"rm\" v",
            "r''m v",
            "$'rm' v",
            "\\rm v",
            "r\\m v",
            "rm \\\nv",
            "/bin/rm v",
            "if true; then rm v; fi",
            "if ! rm v; then true; fi",
            "if false; then a; elif rm v; then b; else c; fi",
            "if false; then a; else rm v; fi",
            "for x in 1 2; do rm v; done",
            "while rm v; do true; done",
            "until rm v; do true; done",
            "case x in x) rm v;; esac",
            "f() { rm v; }; f",
            "{ rm v; }",
            "(rm v)",
            "true&&rm v",
            "true|rm v",
            "true & rm v",
            "true\nrm v",
            "echo $(rm v)",
            "echo `rm v`",
            "echo \"$(rm v)\"",
            "echo \"a `rm v` b\"",
            "echo \"$(X='a;b' rm v)\"",
            "echo \"$(echo \"$(Y=';' rm v)\")\"",
            "cat <(rm v)",
            "{fd}>log rm v",
            "x[0]=1 rm v",
            "for x do rm v; done",
            "time -p rm v",
            "command rm v",
            "exec rm v",
            "eval 'true; rm v'",
            "env X=1 rm v",
            "sudo -n rm v",
            ">log rm v",
            "2> log rm v",
            "rm>log v",
            "rm 2>/dev/null v",
            "rm v 2>&1",
            "sh <<END\nrm v\nEND",
            "{rm,v}",
            "rm {v,}",
        ] {
            let found = readings(line);
            assert!(
                found.texts.contains(&"rm v".to_owned()),
                "{line}: {found:?}"
            );
        }
    }

    /// Lines that run `rm v` from another command.
    const LAUNCHES: &[&str] = &[
        "timeout 5 rm v",
        "timeout -k 1 --signal=KILL 5 rm v",
        "timeout --foreground 5 rm v",
        "nice rm v",
        "nice -n 5 rm v",
        "nice -5 rm v",
        "ionice -c 2 -n 0 rm v",
        "setsid rm v",
        "setsid -w rm v",
        "stdbuf -oL rm v",
        "stdbuf -o L rm v",
        "nohup rm v",
        "time -f %e rm v",
        "command -p rm v",
        "builtin rm v",
        "exec -a x rm v",
        "doas -u me rm v",
        "sudo -u me X=1 rm v",
        "env -i X=1 rm v",
        "env -u X -C / rm v",
        "env -S 'rm v'",
        "env '-Srm v'",
        "env --split-string='rm v'",
        "env -iS 'rm v'",
        "env --unknown x rm v",
        "xargs rm v",
        "xargs -0 -n 1 -I {} rm v",
        "echo x | xargs rm v",
        "echo rm v | xargs env",
        "echo 'rm v' | sh",
        "printf 'rm v' | sh -s",
        "busybox rm v",
        "toybox rm v",
        "busybox sh -c 'rm v'",
        "sh -c 'rm v'",
        "bash -lc 'rm v'",
        "bash -l -c 'rm v'",
        "bash -o pipefail -c 'rm v'",
        "bash -c -e 'rm v'",
        "/bin/sh -ec 'true; rm v'",
        "sh -c '\"$@\"' x rm v",
        "sh -c '$0 $1' rm v",
        "fish --command='rm v'",
        "zsh -c 'sh -c \"rm v\"'",
        "watch -n 1 rm v",
        "watch 'rm v'",
        "flock /tmp/x rm v",
        "flock /tmp/x -c 'rm v'",
        "taskset -c 0 rm v",
        "chrt -r 1 rm v",
        "chroot / rm v",
        "strace -f -e trace=file rm v",
        "systemd-run --user rm v",
        "su -c 'rm v'",
        "script -qc 'rm v'",
        "ssh host rm v",
        "ssh host 'rm v'",
        "alias x='rm v'",
        "trap 'rm v' EXIT",
        "eval rm v",
        "/lib64/ld-linux-x86-64.so.2 rm v",
        "find . -exec rm v +",
        "find . -name x -execdir rm v \\;",
        "find . -ok sh -c 'rm v' \\;",
        "fd -x rm v",
        "git difftool -x 'rm v'",
        "git difftool -yx 'rm v'",
        "git difftool --extcmd='rm v'",
        "git difftool --extc 'rm v'",
        "git -C . difftool -y -x 'rm v'",
        "git -c alias.x='!rm v' x",
        "git -c core.pager='rm v' log",
        "git config alias.x '!rm v'",
        "git fetch --upload-pack='rm v' .",
        "git push --receive-pack 'rm v' .",
        "git ls-remote --upload-pack='rm v' .",
        "git clone -u 'rm v' x",
        "git clone 'ext::rm v'",
        "git rebase -x 'rm v' main",
        "git bisect run rm v",
        "git submodule foreach 'rm v'",
        "git submodule foreach --recursive rm v",
        "git filter-branch --tree-filter 'rm v'",
        "git grep -O'rm v' x",
        "GIT_SSH_COMMAND='rm v' git fetch",
        "PAGER='rm v' man x",
        "tar -xf x --to-command='rm v'",
        "tar -cf x --checkpoint-action=exec='rm v' y",
        "rsync -e 'rm v' a b",
        "ssh -o ProxyCommand='rm v' host",
        "sort --compress-program 'rm v' x",
        "env - rm v",
        "env - X=1 rm v",
        "env -S 'env\\_rm\\_v'",
        "env GIT_SSH_COMMAND='rm v' git fetch",
        "export GIT_SSH_COMMAND='rm v'",
        "declare -x PAGER='rm v'",
        "tar cIf 'rm v' a b",
        "tar -cIf 'rm v' a b",
        "ssh -o 'ProxyCommand rm v' host",
        "sftp -o ProxyCommand='rm v' host",
        "split --filter='rm v' x",
        "prlimit --nofile=5 rm v",
        "setarch -R rm v",
        "bwrap --unshare-all rm v",
        "$SHELL -c 'rm v'",
        "\"${SHELL}\" -c 'rm v'",
        "yash -c 'rm v'",
        "GIT_CONFIG_VALUE_0='!rm v' git x",
    ];

    #[test]
    fn commands_that_others_run_are_found() {
        for line in LAUNCHES {
            let found = readings(line);
            assert!(
                found.texts.contains(&"rm v".to_owned()),
                "{line}: {found:?}"
            );
            assert!(found.is_complete, "{line}");
        }
    }

    #[test]
    fn what_a_line_runs_besides_its_own_program_is_named() {
        for (line, expected) in [
            ("git status -s", &[][..]),
            ("git push -u origin main", &[]),
            ("git log --oneline -5", &[]),
            ("ls -la", &[]),
            ("make -j 4", &[]),
            ("timeout 5 make x", &["make"]),
            ("timeout 5 env make x", &["env", "make"]),
            ("git difftool -x ./evil", &["", "./evil"]),
            ("git difftool", &[""]),
            ("git diff --output=x", &[""]),
            ("git -c core.pager=evil log", &["evil", ""]),
            ("git -C x log", &[""]),
            ("git config core.pager evil", &[""]),
            ("sh -c 'make x'", &["make"]),
        ] {
            let expected: Vec<String> = expected.iter().map(ToString::to_string).collect();
            assert_eq!(launches(line), Some(expected), "{line}");
        }
    }

    #[test]
    fn a_line_too_deep_to_be_read_is_not_complete() {
        for line in [
            "env ".repeat(17) + "rm v",
            "timeout 5 ".repeat(1000) + "rm v",
        ] {
            assert!(!readings(&line).is_complete);
            assert_eq!(launches(&line), None);
        }
        let shallow = "env ".repeat(16) + "rm v";
        assert!(readings(&shallow).is_complete);
        // Many commands next to one another are not deep.
        let long = "echo x; timeout 5 true\n".repeat(1000);
        assert!(readings(&long).is_complete);
    }

    #[test]
    fn long_lines_are_read_within_the_limits() {
        for part in [
            "for x do ",
            "sh -c $ $ ",
            "env -Z a ",
            "env -Z '' ",
            "env -S x ",
            "find -exec a ",
        ] {
            let line = part.repeat(1 << 10);
            let found = readings(&line);
            let bytes: usize = found.texts.iter().map(String::len).sum();
            assert!(bytes < 4 << 20, "{part}: {bytes} bytes");
            assert!(!found.is_complete, "{part}");
        }
    }

    #[test]
    fn what_is_no_command_is_not_made_one() {
        for line in [
            "echo rm v",
            "echo 'rm v'",
            "git commit -m 'rm v'",
            "X=1 echo rm v",
            "arm v",
            "timeout 5 echo rm v",
            "nice -n 5 echo rm v",
            "sh -c 'echo rm v'",
            "git log --grep 'rm v'",
            "git push -u origin 'rm v'",
            "find . -name 'rm v'",
        ] {
            let found = readings(line);
            assert!(
                !found.texts.contains(&"rm v".to_owned()),
                "{line}: {found:?}"
            );
        }
    }

    #[test]
    fn expansions_keep_their_place_in_the_command() {
        let found = readings("cd /; rm $HOME/{a,b}");
        assert!(
            found.texts.contains(&"rm $HOME/{a,b}".to_owned()),
            "{found:?}"
        );
    }

    #[test]
    fn the_line_itself_is_a_reading() {
        let found = readings("curl x |  sh");
        assert!(
            found.texts.contains(&"curl x |  sh".to_owned()),
            "{found:?}"
        );
    }

    #[test]
    fn deep_and_broken_lines_end() {
        for line in [
            "\"$(".repeat(5000),
            "'".to_owned(),
            "\\".to_owned(),
            "((((".to_owned(),
        ] {
            assert!(!readings(&line).texts.is_empty());
        }
    }
}
