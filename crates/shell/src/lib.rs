//! Parses command lines: the commands in a line, its words, and whether it needs a shell at all.
//!
//! All code that interprets command lines uses this crate, so that it agrees on their meaning:
//!
//! - [`readings`], [`launches`] and [`commands`] are for rules that allow or restrict commands.
//! - [`words`] has the position of each word, for approvals.
//! - [`plain_words`] finds lines that mean the same without a shell.
//! - [`programs`] is for warnings about programs that are not installed.
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
mod braces;
mod commands;
mod hidden;
mod launch;
mod lexer;
mod plain;
mod programs;
mod words;

use std::collections::HashMap;
use std::fmt;

use self::assignment::is_assignment;
pub use self::commands::commands;
use self::commands::found_commands;
use self::hidden::{Values, is_hidden};
pub use self::launch::is_shell;
use self::launch::{Launch, launched, program_name};
pub use self::plain::plain_words;
pub use self::programs::programs;
pub use self::words::{LineWord, LineWordKind, words};

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
    /// Programs that a shell finds out only when the line runs, as written: `$x`, `$(…)` or `/bin/su?o`.
    pub hidden: Vec<String>,
}

impl Readings {
    /// Returns why the line may run programs that no reading contains. A rule that restricts must then assume that the
    /// line runs anything.
    pub fn unread(&self) -> Option<UnreadLine<'_>> {
        if !self.is_complete {
            return Some(UnreadLine::Nested);
        }
        let program = self.hidden.first()?;
        Some(UnreadLine::HiddenProgram(program))
    }
}

/// Why a command line may run programs that cannot be read from it. [`Display`](fmt::Display) writes it for the author
/// of the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnreadLine<'a> {
    /// Its commands run too many other commands, or are nested too deeply.
    Nested,
    /// A shell finds out the name of this program only when the line runs.
    HiddenProgram(&'a str),
}

impl fmt::Display for UnreadLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nested => f.write_str(
                "the command runs other commands that are too many or too deeply nested to be checked",
            ),
            Self::HiddenProgram(program) => write!(
                f,
                "the program `{program}` is known only when the command runs; write its name instead"
            ),
        }
    }
}

/// Returns all readings of a command line that a restricting rule must check.
pub fn readings(line: &str) -> Readings {
    let mut reader = Reader::default();
    reader.line(line, 0, true);
    let mut texts = reader.texts;
    texts.sort_unstable();
    texts.dedup();
    Readings {
        texts,
        is_complete: reader.is_complete,
        hidden: reader.hidden,
    }
}

/// Returns the programs that the commands of a line run, without the commands' own programs. A
/// program that the line does not show is an empty string. Returns `None` if the line is nested too
/// deeply to be read.
pub fn launches(line: &str) -> Option<Vec<String>> {
    let mut reader = Reader::default();
    reader.line(line, 0, true);
    reader.is_complete.then_some(reader.programs)
}

/// Follows the commands of a line and the commands that they run.
struct Reader {
    texts: Vec<String>,
    /// The programs of commands that other commands run.
    programs: Vec<String>,
    /// Programs that a shell finds out only when the line runs.
    hidden: Vec<String>,
    /// The variables that the line sets.
    values: Values,
    /// The commands that were read, and whether as certain ones.
    seen: HashMap<Vec<String>, bool>,
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
            hidden: Vec::new(),
            values: Values::default(),
            seen: HashMap::new(),
            launched: 0,
            bytes: 0,
            room: MAX_LAUNCHED_BYTES,
            is_complete: true,
        }
    }
}

impl Reader {
    /// Reads a line. `is_certain` is whether a shell runs it.
    fn line(&mut self, line: &str, depth: u32, is_certain: bool) {
        if !self.is_affordable(line.len(), depth) {
            return;
        }
        self.texts.push(line.to_owned());
        let found = found_commands(line);
        if is_certain {
            self.is_complete &= !found
                .iter()
                .any(|command| command.is_certain && command.has_unread_braces);
        }
        if depth == 0 {
            self.values = Values::new(line, &found);
        }
        let mut commands = Vec::new();
        for command in found {
            self.command(&command.words, depth, is_certain && command.is_certain);
            commands.push(command.words);
        }
        self.fed(&commands, depth);
        // Text with a separator may be quoted, or only look quoted. So the parts of the line are read, too.
        for part in line.split(is_syntax) {
            self.texts.push(part.trim().to_owned());
            let commands = commands::commands(part);
            for words in &commands {
                self.command(words, depth, false);
            }
            self.fed(&commands, depth);
        }
    }

    /// Reads the text that `echo` and `printf` pass to a program that runs it.
    fn fed(&mut self, commands: &[Vec<String>], depth: u32) {
        if !commands.iter().any(|words| launch::is_fed(words)) {
            return;
        }
        for words in commands {
            if let Some((program, text)) = words.split_first()
                && ["echo", "printf"].contains(&program_name(program))
            {
                self.line(&text.join(" "), depth + 1, false);
            }
        }
    }

    /// Reads a command, with and without the keywords and variables before it.
    fn command(&mut self, words: &[String], depth: u32, is_certain: bool) {
        match self.seen.get_mut(words) {
            Some(was_certain) if *was_certain || !is_certain => return,
            Some(was_certain) => *was_certain = true,
            None => {
                self.seen.insert(words.to_vec(), is_certain);
            }
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
                self.line(line.strip_prefix('!').unwrap_or(line), depth + 1, false);
            }
            words = rest;
        }
        let Some((program, arguments)) = words.split_first() else {
            return;
        };
        // `for x do COMMAND` has no separator before `do`. The limits apply to it, because the command
        // may be such a loop again.
        if program == "for" && arguments.get(1).is_some_and(|word| word == "do") {
            let body = arguments.get(2..).unwrap_or_default();
            self.command(body, depth + 1, is_certain);
        }
        if depth > 0 {
            self.programs.push(program.clone());
        }
        if let Some(values) = self.values.of(program).map(<[String]>::to_vec) {
            for value in values {
                let value = value.split_whitespace().map(str::to_owned);
                let words: Vec<String> = value.chain(arguments.iter().cloned()).collect();
                self.command(&words, depth + 1, is_certain);
            }
        } else if is_certain && is_hidden(program) {
            let word = program.split_whitespace().next().unwrap_or_default();
            if !self.hidden.iter().any(|hidden| hidden == word) {
                self.hidden.push(word.to_owned());
            }
        }
        self.texts.push(words.join(" "));
        let name = program_name(program).to_owned();
        self.texts.push([&[name], arguments].concat().join(" "));
        let launches = launched(words, self.room);
        self.room = launches.room;
        self.is_complete &= launches.is_complete;
        for launch in launches.found {
            match launch {
                Launch::Words {
                    words,
                    is_certain: is_sure,
                } => self.command(&words, depth + 1, is_certain && is_sure),
                Launch::Line {
                    line,
                    is_certain: is_sure,
                } => self.line(&line, depth + 1, is_certain && is_sure),
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

/// Returns whether a character can make a command line do more than run one program with plain arguments.
pub fn is_syntax(character: char) -> bool {
    matches!(
        character,
        ';' | '&' | '|' | '<' | '>' | '`' | '$' | '(' | ')' | '{' | '}' | '\\' | '\n' | '\r'
    )
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
    fn a_program_that_only_the_running_line_knows_is_hidden() {
        for (line, expected) in [
            ("$x -rf y", &["$x"][..]),
            ("\"${x}\" y", &["${x}"]),
            ("$(echo rm) y", &["$(…)"]),
            ("`echo rm` y", &["$(…)"]),
            ("r\"$(echo m)\" y", &["r$(…)"]),
            ("/bin/r? y", &["/bin/r?"]),
            ("/bin/r[m] y", &["/bin/r[m]"]),
            ("$'\\x72m' y", &["$\\x72m"]),
            ("{a..c} y", &["{a..c}"]),
            ("if true; then $x y; fi", &["$x"]),
            ("A=1 $x y", &["$x"]),
            ("timeout 5 nice -n 1 $x y", &["$x"]),
            ("env -S '$x y'", &["$x"]),
            ("sh -c '$x y'", &["$x"]),
            ("eval \"$x\"", &["$x"]),
            ("find . -exec $x {} +", &["$x"]),
            ("echo y | xargs $x", &["$x"]),
            ("ssh -p 22 host $x y", &["$x"]),
            ("echo \"$($x y)\"", &["$x"]),
            ("sh <<END\n$x y\nEND", &["$x"]),
            ("cat <<END\n*.o\nEND\n$x y", &["$x"]),
            ("read x; $x y", &["$x"]),
            ("x=a; read x; $x y", &["$x"]),
        ] {
            assert_eq!(readings(line).hidden, expected, "{line}");
        }
    }

    #[test]
    fn text_that_no_shell_runs_hides_no_program() {
        for line in [
            "ls *.rs",
            "grep -E '(a|[a-z]*) b' *.c",
            "echo $x $(date) `date` {a..c}",
            "[ -f x ] && ls",
            "[[ -n $a && $b == *.c ]] && ls",
            "case $1 in -*) ls;; a|*.c) ls;; *) ls;; esac",
            "echo $((2 * i)) $(( (i+1)*2 ))",
            "i=$((i*2))",
            "files=(*.c $x) && ls",
            "cat > .gitignore <<'EOF'\n*.o\n$x don't\nEOF\nls",
            "git commit -m \"$(cat <<'EOF'\n* one (don't)\n$x\nEOF\n)\"",
            "ssh $host ls *.c",
            "ssh -i $key $host ls",
            "timeout $t ls",
            "bash -c 'ls \"$1\"' _ $x",
            "command -v $x",
            "$HOME/bin/tool x",
            "\"$(npm bin)/eslint\" x",
            "$(npm bin)/eslint x",
            "$SHELL -c ls",
            "for x in *.c; do ls $x; done",
            "bin=./target/tool; $bin x && \"${bin}\" y",
            "alias ll='ls *'",
        ] {
            assert_eq!(readings(line).hidden, [""; 0], "{line}");
        }
    }

    #[test]
    fn a_variable_that_the_line_sets_is_read() {
        for line in [
            "x=rm; $x v",
            "x='rm v'; $x",
            "x=/bin/rm && \"${x}\" v",
            "x=ls; x=rm; timeout 5 $x v",
        ] {
            let found = readings(line);
            assert!(
                found.texts.contains(&"rm v".to_owned()),
                "{line}: {found:?}"
            );
            assert_eq!(found.hidden, [""; 0], "{line}");
        }
    }

    #[test]
    fn braces_are_expanded() {
        for line in ["r{m,} v", "{rm,v}", "rm {v,}", "timeout 5 r{m,} v"] {
            let found = readings(line);
            let is_found = |text: &String| ["rm v", "rm r v"].contains(&text.as_str());
            assert!(found.texts.iter().any(is_found), "{line}: {found:?}");
            assert!(found.is_complete && found.hidden.is_empty(), "{line}");
        }
        let many = format!("{}rm v", "{a,b}".repeat(20));
        assert!(!readings(&many).is_complete);
        let quoted = format!("echo '{}'", "{a,b}".repeat(20));
        assert!(readings(&quoted).is_complete);
    }

    #[test]
    fn an_alias_of_git_is_read_as_its_command() {
        for line in [
            "git -c alias.x='!rm v' x",
            "git -c alias.x='push -f' x",
            "git -c Alias.X=push X -f",
            "git config --global alias.x 'push -f'",
        ] {
            let found = readings(line).texts;
            let is_found =
                |text: &String| text.starts_with("rm v") || text.starts_with("git push -f");
            assert!(found.iter().any(is_found), "{line}: {found:?}");
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
