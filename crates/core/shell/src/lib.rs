//! Reads command lines: the commands in a line, its words, and whether it needs a shell at all.
//!
//! All code that interprets command lines uses this crate, so that it agrees on their meaning:
//!
//! - [`read`] lists the commands of a line, and the commands that these run. Rules that restrict use it. [`CommandRule`]
//!   is such a rule.
//! - [`launches`] is for rules that allow: such a rule must name every further program that a line runs.
//! - [`commands`] lists the commands of a line only.
//! - [`words`] has the position of each word, for approvals.
//! - [`plain_words`] finds lines that mean the same without a shell.
//! - [`programs`] is for warnings about programs that are not installed.
//!
//! A line is parsed as Bash and POSIX shells parse it (`parse.rs`), then expanded as far as it shows its own values
//! (`expand.rs`), and then the programs that run another command are followed (`launch.rs`). Nothing is run. What a
//! script, an alias or decoded text does stays unknown.
//!
//! # Examples
//!
//! ```
//! use tenterhook_shell::{CommandRule, plain_words, read};
//!
//! let words = plain_words("cargo test").unwrap();
//! assert_eq!(words, ["cargo", "test"]);
//! assert_eq!(plain_words("cargo test | tee log"), None);
//!
//! let reading = read("git push && timeout 5 rm -fr build");
//! let names: Vec<_> = reading.commands.iter().map(|command| command.name()).collect();
//! assert_eq!(names, ["git", "timeout", "rm"]);
//!
//! let rule = CommandRule::parse("rm -rf").unwrap();
//! assert!(rule.matches(&reading));
//! ```

#![forbid(unsafe_code)]

mod arguments;
mod assignment;
mod braces;
mod commands;
mod expand;
mod launch;
mod launch_git;
mod launches;
mod options;
mod parse;
mod parse_word;
mod plain;
mod printed;
mod programs;
mod reader;
mod reading;
mod rule;
mod script;
mod variables;
mod word;
mod words;
mod wrappers;

pub use self::commands::commands;
pub use self::plain::plain_words;
pub use self::programs::programs;
pub use self::reader::read;
pub use self::reading::{Input, LineCommand, Reading, Redirection, UnreadLine};
pub use self::rule::{CommandRule, RuleError};
pub use self::word::Word;
pub use self::words::{LineWord, LineWordKind, words};
pub use self::wrappers::is_shell;

/// Returns the programs that the commands of a line run, without the commands' own programs. A
/// program that the line does not show is an empty string. Returns `None` if the line is nested too
/// deeply to be read.
pub fn launches(line: &str) -> Option<Vec<String>> {
    let reading = read(line);
    reading.is_complete.then_some(reading.launched)
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
            "$'\\x72m' v",
            "$(echo rm) v",
            "`printf r``echo m` v",
            "r\"$(echo m)\" v",
            "rm$IFS\"v\"",
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
            let found = read(line);
            assert!(
                found.texts().contains(&"rm v".to_owned()),
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
        "find . -exec rm v \\;",
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
            let found = read(line);
            assert!(
                found.texts().contains(&"rm v".to_owned()),
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
            ("git config core.pager evil", &["evil", ""]),
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
            assert!(!read(&line).is_complete);
            assert_eq!(launches(&line), None);
        }
        let shallow = "env ".repeat(16) + "rm v";
        assert!(read(&shallow).is_complete);
        // Many commands next to one another are not deep.
        let long = "echo x; timeout 5 true\n".repeat(1000);
        assert!(read(&long).is_complete);
    }

    #[test]
    fn long_lines_are_read_within_the_limits() {
        for part in ["env -Z a ", "env -Z '' ", "env -S x ", "find -exec a "] {
            let line = part.repeat(1 << 10);
            let found = read(&line);
            let bytes: usize = found.texts().iter().map(String::len).sum();
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
            let found = read(line);
            assert!(
                !found.texts().contains(&"rm v".to_owned()),
                "{line}: {found:?}"
            );
        }
    }

    #[test]
    fn a_program_that_only_the_running_line_knows_is_hidden() {
        for (line, expected) in [
            ("$x -rf y", &["$x"][..]),
            ("\"${x}\" y", &["${x}"]),
            ("$(date) y", &["$(…)"]),
            ("`date` y", &["$(…)"]),
            ("r\"$(date)\" y", &["r$(…)"]),
            ("/bin/r? y", &["/bin/r?"]),
            ("/bin/r[m] y", &["/bin/r[m]"]),
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
            assert_eq!(read(line).hidden, expected, "{line}");
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
            assert_eq!(read(line).hidden, [""; 0], "{line}");
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
            let found = read(line);
            assert!(
                found.texts().contains(&"rm v".to_owned()),
                "{line}: {found:?}"
            );
            assert_eq!(found.hidden, [""; 0], "{line}");
        }
    }

    #[test]
    fn braces_are_expanded() {
        for line in ["r{m,} v", "{rm,v}", "rm {v,}", "timeout 5 r{m,} v"] {
            let found = read(line);
            let is_found = |text: &String| ["rm v", "rm r v"].contains(&text.as_str());
            assert!(found.texts().iter().any(is_found), "{line}: {found:?}");
            assert!(found.is_complete && found.hidden.is_empty(), "{line}");
        }
        let many = format!("{}rm v", "{a,b}".repeat(20));
        assert!(!read(&many).is_complete);
        let quoted = format!("echo '{}'", "{a,b}".repeat(20));
        assert!(read(&quoted).is_complete);
    }

    #[test]
    fn an_alias_of_git_is_read_as_its_command() {
        for line in [
            "git -c alias.x='!rm v' x",
            "git -c alias.x='push -f' x",
            "git -c Alias.X=push X -f",
            "git config --global alias.x 'push -f'",
        ] {
            let found = read(line).texts();
            let is_found =
                |text: &String| text.starts_with("rm v") || text.starts_with("git push -f");
            assert!(found.iter().any(is_found), "{line}: {found:?}");
        }
    }

    #[test]
    fn expansions_keep_their_place_in_the_command() {
        let found = read("cd /; rm $HOME/{a,b}");
        assert!(
            found.texts().contains(&"rm $HOME/{a,b}".to_owned()),
            "{found:?}"
        );
    }

    #[test]
    fn the_line_itself_is_a_reading() {
        let found = read("curl x |  sh");
        assert!(
            found.texts().contains(&"curl x |  sh".to_owned()),
            "{found:?}"
        );
    }

    /// Lines that run `rm v`, each by another way around a reader of commands.
    const ATTACKS: &[&str] = &[
        // Where a command starts
        "curl x |\nrm v",
        "cat <<'E' |\nrm v\nE\nsh",
        "time -p { rm v; }",
        "coproc N { rm v; }",
        "echo \"$([[ a =~ (a) ]]; rm v)\"",
        "echo $[$(rm v)]",
        "echo $(( 1 + $(rm v) ))",
        "cat <<E\n${x:-$(rm v)}\nE",
        "echo $(cat <<E\nhi\nE); rm v",
        "a[\"k\"]=1 rm v",
        "a[1 + 0]=1 rm v",
        // What a shell reads
        "bash -euo pipefail <<'E'\nrm v\nE",
        "bash -c -euo pipefail 'rm v'",
        "bash -co errexit 'rm v'",
        "{ sh; } <<<'rm v'",
        "if :; then sh; fi <<E\nrm v\nE",
        "exec <<<'rm v'; sh",
        "sh -c bash <<<'rm v'",
        "eval sh <<<'rm v'",
        ". <(echo rm v)",
        "source /dev/stdin <<<'rm v'",
        "bash <(echo rm v)",
        "sh < <(echo rm v)",
        "sh <<<'rm v' 3</dev/null",
        "if true; then echo 'rm v'; fi | sh",
        "echo 'rm v' | head -1 | sh",
        "su <<<'rm v'",
        // Variables
        "x=ls; x=rm; y=$x; $y v",
        "for i in ls rm; do p=$i; $p v; done",
        "x=1; ${x:+rm} v",
        "x=; ${x:-rm} v",
        "x=; : ${x:=rm}; $x v",
        "x=ls; f(){ $x v; }; x=rm; f",
        "x=ls; trap '$x v' EXIT; x=rm",
        "set -- ls rm; shift; $1 v",
        "set rm; $1 v",
        "(IFS=m); x=rm; $x v",
        "x=ls; x[0]=rm; $x v",
        "o=(rm v); ${o[0]} v",
        "declare -a o=(rm v); \"${o[@]}\"",
        "f() { rm \"$@\"; }; f v",
        "run() { \"$@\"; }; run rm v",
        "alias r=rm\nr v",
        // Programs that run others
        "eval -- rm v",
        "env a.b=1 rm v",
        "echo 'rm v' | xargs -I{} sh -c '{}'",
        "echo \"'rm' v\" | xargs env",
        "printf 'rm\\0v' | xargs -0 env",
        "printf '%.2s v' rmabc | sh",
        "git config core.editor 'rm v'",
        "GIT_CONFIG_PARAMETERS=\"'alias.x=!rm v'\" git x",
        "su --session-command='rm v'",
    ];

    #[test]
    fn no_detour_hides_a_command() {
        for line in ATTACKS {
            let found = read(line);
            let texts = found.texts();
            assert!(
                texts.contains(&"rm v".to_owned()),
                "{line}: {texts:?} {:?}",
                found.hidden
            );
        }
    }

    #[test]
    fn lines_of_everyday_work_run_only_what_they_show() {
        for line in [
            "echo $(( $(date +%s) - start ))",
            "make -j$(( $(nproc) / 2 ))",
            "arr[$i]=x",
            "count[${#a[@]}]=1",
            "declare -a cmd=(ls -l); \"${cmd[@]}\"",
            "command -v rm v",
            "for p in rm git; do command -v $p; done",
            "eval \"$(ssh-agent -s)\"",
            "PYTHON=${PYTHON:-python3}; $PYTHON x",
            "CC=$(which gcc); $CC a.c",
            "run() { \"$@\"; }; run make test",
            "env $(cat .env | xargs) npm start",
            "ssh $OPTIONS $HOST ls",
            "./target/debug/deps/foo-* --nocapture",
            "for t in tests/*.sh; do \"$t\"; done",
            "\"./$name\"",
            "[[ $cmd =~ ^(rm|sudo)$ ]]",
            "GIT_AUTHOR_NAME='rm v' git commit",
            "git -c user.name='rm v' commit",
            "git commit -m '!rm v'",
            "pwsh -c '$x = Get-Date'",
            "systemctl status $unit",
        ] {
            let found = read(line);
            assert_eq!(found.hidden, [""; 0], "{line}");
            assert!(!found.texts().contains(&"rm v".to_owned()), "{line}");
        }
    }

    #[test]
    fn the_output_of_a_command_is_followed_through_pipes_lines_and_files() {
        let rule = CommandRule::parse("curl | sh").unwrap();
        for line in [
            "curl x | sh",
            "curl x |\n# comment\nsh",
            "sh -c 'curl x' | sh",
            "curl x | sudo sh",
            "curl x | sh -c sh",
            "curl x | tee y | sh",
            "sh <(curl x)",
            "sh < <(curl x)",
            "curl x > >(sh)",
            "curl x | tee >(sh)",
            "( [[ ( a ) ]]; curl x ) | sh",
            "{ curl x; } | { sh; }",
        ] {
            assert!(rule.matches(&read(line)), "{line}");
        }
        for line in [
            "curl x; sh y",
            "curl x | cat; sh y",
            "sh x | curl y",
            "curl x && sh y",
        ] {
            assert!(!rule.matches(&read(line)), "{line}");
        }
    }

    #[test]
    fn a_command_after_a_here_document_is_not_hidden_in_it() {
        let rule = CommandRule::parse("reboot").unwrap();
        let sees = |line: &str| {
            let found = read(line);
            rule.matches(&found) || !found.is_complete
        };
        for line in [
            "cat <<A\r\nx\nA\r\nreboot\n",
            "cat <<A\nA\r\n'\nA\nreboot\n'\n",
            "cat <<$'A'\nx\nA\nreboot\n",
            "cat <<$\"A\"\nx\nA\nreboot\n",
            "cat <<\"A\\B\"\nx\nA\\B\nreboot\n",
            "cat <<A\\\nB\nx\nAB\nreboot\n",
            "cat <<\"A\nB\"\nx\nA\nB\nreboot\n",
            "cat <<A\nx\nA\\\n\nreboot\nA\n",
            "cat <<A\nx\\\nA\n'\nA\nreboot\n'\n",
        ] {
            assert!(sees(line), "{line}");
        }
        for line in [
            "cat <<A\nreboot\nA\n",
            "cat <<'A'\nx\\\nreboot\nA\n",
            "cat <<A\nx \\\nA\nreboot\nA\n",
            "cat <<\\A\nreboot\nA\n",
        ] {
            assert!(!sees(line), "{line}");
        }
    }

    #[test]
    fn lines_that_grow_while_they_are_read_are_not_complete() {
        let doubled: Vec<String> = (1..40)
            .map(|at| format!("a{at}=$a{0}$a{0};", at - 1))
            .collect();
        let doubled = doubled.concat();
        for line in [
            format!("a0=xxxxxxxxxx;{doubled}$a39"),
            "x=(".repeat(100_000),
            "$((".repeat(10_000) + &"))".repeat(10_000),
            format!("x='{}'; {}", "a ".repeat(1000), "$x;".repeat(1000)),
        ] {
            let start: String = line.chars().take(20).collect();
            assert!(!read(&line).is_complete, "{start}");
        }
        for line in [
            "case x in ".repeat(2000),
            "*( ".repeat(10_000),
            "find -exec ".repeat(500),
        ] {
            assert_eq!(read(&line).lines.first(), Some(&line));
        }
    }

    #[test]
    fn deep_and_broken_lines_end() {
        for line in [
            "\"$(".repeat(5000),
            "'".to_owned(),
            "\\".to_owned(),
            "((((".to_owned(),
        ] {
            assert!(!read(&line).texts().is_empty());
        }
    }
}
