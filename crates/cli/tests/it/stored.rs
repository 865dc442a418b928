//! Stored sessions: `tenterhook run --resume`, the commands of a conversation, and `tenterhook sessions`.

use std::fmt::Write as _;
use std::fs;
use std::io::BufRead as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::stage::{Ran, Test};

const TALK: &str = "turns: [{text: hello, repeat: true}]";

/// The environment variable that sets how often the program is killed.
const KILLS: &str = "TENTERHOOK_TEST_KILLS";

/// Runs the agent on the lines of stdin.
fn talk(stdin: &str) -> Test {
    Test::new()
        .args(["run", "--no-journal"])
        .script(TALK)
        .stdin(stdin)
}

/// Runs the agent again in the same folder.
fn again(ran: Ran, args: &[&str], stdin: &str) -> Test {
    let args = ["run", "--no-journal"].iter().chain(args).copied();
    ran.again(args).script(TALK).stdin(stdin)
}

/// Returns the session files, oldest first.
fn files(home: &Path) -> Vec<PathBuf> {
    let folder = home.join(".local/share/tenterhook/sessions");
    let projects = fs::read_dir(folder).into_iter().flatten();
    let files = projects.flat_map(|project| fs::read_dir(project.unwrap().path()).unwrap());
    let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "jsonl"));
    files.sort();
    files
}

/// Returns the session ids, oldest first.
fn ids(ran: &Ran) -> Vec<String> {
    let files = files(&ran.path("home"));
    let ids = files
        .iter()
        .map(|path| path.file_stem().unwrap().to_str().unwrap());
    ids.map(str::to_owned).collect()
}

#[test]
fn a_session_is_stored_and_gone_on_with() {
    let ran = talk("one\n").run();
    assert_eq!(ran.all(), ("hello\n", "", 0));
    let ran = again(ran, &["--resume"], "two\n/tree\n").run();
    let id = ids(&ran).remove(0);
    let tree = "● 1 user: one\n● 2 assistant: hello\n● 3 user: two\n● 4 assistant: hello\n";
    assert_eq!(ran.stdout, format!("hello\n{tree}"));
    assert!(
        ran.stderr.ends_with(" with 2 messages.\n"),
        "{}",
        ran.stderr
    );
    let ran = again(ran, &["--resume", id.split_at(30).0, "--json"], "three\n").run();
    assert_eq!(ran.json()["session_id"], id.as_str());
    assert_eq!(ids(&ran).len(), 1);
}

#[test]
fn nothing_is_stored_without_an_answer_or_where_the_user_does_not_want_it() {
    let ran = talk("/tree\n").run();
    assert_eq!(ran.all(), ("The session has no entries.\n", "", 0));
    assert!(ids(&ran).is_empty());
    let ran = again(ran, &["--no-session"], "one\n").run();
    assert_eq!(ran.all(), ("hello\n", "", 0));
    assert!(ids(&ran).is_empty());
}

#[test]
fn sessions_are_listed_shown_and_exported() {
    let ran = talk("one\n/new\ntwo  words\n/fork 2\n").run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let ids = ids(&ran);
    assert_eq!(ids.len(), 3);
    let ran = ran.again(["sessions", "list"]).run();
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines[0].ends_with("  2 messages  two words"), "{lines:?}");
    assert!(lines[2].ends_with("  2 messages  one"), "{lines:?}");
    let ran = ran.again(["sessions", "list", "--json"]).run();
    let listed = &ran.json()["sessions"];
    assert_eq!(listed[0]["forked_from"], ids[1].as_str());
    assert_eq!(listed[2]["id"], ids[0].as_str());
    let ran = ran.again(["sessions", "show", &ids[0]]).run();
    assert_eq!(ran.all(), ("● 1 user: one\n● 2 assistant: hello\n", "", 0));
    let ran = ran.again(["sessions", "export", &ids[0], "--json"]).run();
    assert_eq!(ran.json()["entries"][1]["message"]["content"], "hello");
    let ran = ran.again(["sessions", "export", &ids[0]]).run();
    let text = format!(
        "# Session {}\n\n## user\n\none\n\n## assistant\n\nhello\n",
        ids[0]
    );
    assert!(
        text.ends_with(ran.stdout.split_once('\n').unwrap().1),
        "{}",
        ran.stdout
    );
    let ran = ran.again(["sessions", "list", "--cwd", "/"]).run();
    assert_eq!(ran.all(), ("No sessions.\n", "", 0));
}

#[test]
fn a_conversation_goes_from_session_to_session_and_in_them() {
    let ran = talk("one\ntwo\n/tree 3\nother\n/tree\n/fork 1\n/new\n").run();
    let (said, rest) = ran.stdout.split_once("● 1").unwrap();
    assert_eq!(
        said,
        "hello\nhello\nThe conversation continues at entry 3.\nYour message there: two\nhello\n"
    );
    let tree = " user: one\n● 2 assistant: hello\n○ 3 user: two\n○ 4 assistant: hello\n  \
                ";
    assert!(rest.starts_with(tree.trim_end_matches(' ')), "{rest}");
    assert!(
        rest.contains("\n●   6 user: other\n●   7 assistant: hello\n"),
        "{rest}"
    );
    assert!(
        rest.contains(" is a copy up to entry 1.\nYour message there: one\n"),
        "{rest}"
    );
    assert!(rest.ends_with(" is new.\n"), "{rest}");
    let id = ids(&ran).remove(0);
    let ran = again(ran, &[], &format!("/resume {id}\nthree\n")).run();
    assert_eq!((ran.status, ids(&ran).len()), (0, 1));
    let ran = ran.again(["sessions", "show", &id]).run();
    assert!(
        ran.stdout
            .ends_with("8 user: three\n●   9 assistant: hello\n"),
        "{}",
        ran.stdout
    );
}

#[test]
fn a_branch_that_is_left_is_summarised_where_the_user_wants_it() {
    let script = "turns: [{text: hello}, {summary: They said hello.}, {text: bye}]";
    let ran = Test::new()
        .args(["run", "--no-journal"])
        .script(script)
        .stdin("one\n/tree 1 summary\ntwo\n/tree\n")
        .run();
    let tree = "○ 1 user: one\n○ 2 assistant: hello\n●   4 branch_summary: They said hello.\n●   5 user: two\n\
                ●   6 assistant: bye\n";
    assert!(ran.stdout.ends_with(tree), "{}", ran.stdout);
    assert_eq!((ran.stderr.as_str(), ran.status), ("", 0));
}

#[test]
fn a_command_that_a_hook_blocks_leaves_the_files_as_they_were() {
    let ran = talk("one\n").run();
    let files = files(&ran.path("home"));
    let before = fs::read(&files[0]).unwrap();
    let hooks = "hooks:\n  - {event: [session_before_switch, session_before_fork, session_before_tree], \
                 command: \"echo stay >&2; exit 2\"}\n";
    let ran = again(ran, &["--resume"], "/new\n/fork 2\n/tree 1\n")
        .hooks(hooks)
        .run();
    let refusals = ran
        .stderr
        .matches("Nothing was changed: a session_before_")
        .count();
    assert_eq!((refusals, ran.status), (3, 2), "{}", ran.stderr);
    assert_eq!(self::files(&ran.path("home")), files);
    assert_eq!(fs::read(&files[0]).unwrap(), before);
}

/// A user's session commands, and the events whose hooks can block them.
const PASSAGES: [(&str, &str); 5] = [
    ("/new", "session_before_switch"),
    ("/resume OTHER", "session_before_switch"),
    ("/fork 1", "session_before_fork"),
    ("/tree 1", "session_before_tree"),
    ("/compact", "before_compaction"),
];

const PI_VETO: &str = "export default function (pi: any) {
  for (const name of ['session_before_switch', 'session_before_fork', 'session_before_tree', 'session_before_compact']) {
    pi.on(name, () => ({ cancel: true }));
  }
}
";

const OPERATOR_VETO: &str = "
from operator_use.program.hooks.types import (SessionBeforeCompactResult, SessionBeforeForkResult, SessionBeforeSwitchResult,
                                              SessionBeforeTreeResult)

hooks = [
    ('session_before_switch', lambda event: SessionBeforeSwitchResult(cancel=True)),
    ('session_before_fork', lambda event: SessionBeforeForkResult(cancel=True)),
    ('session_before_tree', lambda event: SessionBeforeTreeResult(cancel=True)),
    ('session_before_compact', lambda event: SessionBeforeCompactResult(cancel=True)),
]
";

const NATIVE_VETO: &str = "hooks:
  - event: [session_before_switch, session_before_fork, session_before_tree, before_compaction]
    command: exit 2
";

/// docker-agent documents two events that can stop a change of a session. Both are about compaction.
fn docker_veto(event: &str) -> String {
    format!(
        "agents: {{root: {{model: \"scripted:script.yaml\", hooks: {{{event}: [{{type: command, command: exit 2}}]}}}}}}"
    )
}

// P20, O26: a change that a hook cancels leaves no trace.
#[test]
fn what_a_hook_of_any_system_cancels_leaves_the_files_as_they_were_byte_by_byte() {
    let all = &PASSAGES[..];
    let compact = &PASSAGES[4..];
    let pre = [("/compact", "pre_compact")];
    let docker = [docker_veto("before_compaction"), docker_veto("pre_compact")];
    for (system, path, text, passages) in [
        ("native", "work/veto.yaml", NATIVE_VETO, all),
        ("pi", "home/.pi/agent/extensions/veto.ts", PI_VETO, all),
        (
            "operator",
            "home/.operator/profiles/default/hooks/veto.py",
            OPERATOR_VETO,
            all,
        ),
        ("docker-agent", "work/veto.yaml", &docker[0], compact),
        ("docker-agent", "work/veto.yaml", &docker[1], &pre),
    ] {
        let ran = talk("one\ntwo\n/new\nthree\n").run();
        let home = ran.path("home");
        let contents = || -> Vec<(PathBuf, Vec<u8>)> {
            let files = files(&home).into_iter();
            files
                .map(|path| (path.clone(), fs::read(path).unwrap()))
                .collect()
        };
        let before = contents();
        assert_eq!(before.len(), 2);
        let file = ran.path(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
        let other = ids(&ran).remove(0);
        let lines: Vec<String> = passages
            .iter()
            .map(|(line, _)| line.replace("OTHER", &other) + "\n")
            .collect();
        let hooks: &[&str] = if path.starts_with("work") {
            &["--resume", "--hooks", "veto.yaml"]
        } else {
            &["--resume"]
        };
        let ran = again(ran, hooks, &lines.concat()).run();
        for (line, event) in passages {
            assert!(
                ran.stderr.contains(event),
                "{system} {line}: {}",
                ran.stderr
            );
        }
        let refused = ran.stderr.matches("Nothing was changed: ").count()
            + ran.stderr.matches("Not compacted: ").count();
        assert_eq!(refused, passages.len(), "{system}: {}", ran.stderr);
        assert!(contents() == before, "{system}: {}", ran.stderr);
    }
}

#[test]
fn what_is_not_there_is_refused_with_a_way_out() {
    let ran = talk("").args(["--resume"]).run();
    assert_eq!(
        ran.refusal(),
        (
            "error: this folder has no stored session\nhint: start one without `--resume`, or name another folder with \
             `--cwd DIR`\n",
            64
        )
    );
    let ran = talk("one\n/resume x\n/fork 9\n/new now\n").run();
    assert_eq!(ran.status, 64);
    for text in [
        "Nothing was changed: there is no session `x` in `",
        "; `tenterhook sessions list` shows the sessions\n",
        "Nothing was changed: the session has no entry `9`; `/tree` shows the entries\n",
        "Expected `/new`\n",
    ] {
        assert!(ran.stderr.contains(text), "{}", ran.stderr);
    }
    let ran = again(ran, &["--resume", "x"], "").run();
    assert!(
        ran.stderr
            .contains("hint: `tenterhook sessions list` shows"),
        "{}",
        ran.stderr
    );
    assert_eq!(ran.status, 64);
}

#[test]
fn a_session_that_another_process_leads_is_not_gone_on_with() {
    let ran = talk("one\n").run();
    let id = ids(&ran).remove(0);
    let (mut leader, stdin) = again(ran, &["--resume"], "").start_with_open_stdin();
    let mut stdin = stdin;
    std::io::Write::write_all(&mut stdin, b"two\n").unwrap();
    let mut answer = String::new();
    leader.stdout().read_line(&mut answer).unwrap();
    assert_eq!(answer, "hello\n");
    let second = leader.beside([
        "run",
        "--no-journal",
        "--resume",
        &id,
        "three",
        "--model",
        "scripted:script.yaml",
    ]);
    let text = String::from_utf8(second.stderr).unwrap();
    assert!(
        text.contains(" is in use by another process\nhint: end the other process"),
        "{text}"
    );
    assert_eq!(second.status.code(), Some(1));
    drop(stdin);
    assert_eq!(leader.finish().status, 0);
}

#[test]
fn what_was_not_written_to_its_end_is_said_and_a_damaged_line_is_named() {
    let ran = talk("one\n").run();
    let file = files(&ran.path("home")).remove(0);
    let whole = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{whole}{{\"id\"")).unwrap();
    let ran = again(ran, &["--resume"], "two\n").run();
    let said = "warning: line 4 of the session's file is incomplete; its 5 bytes are cut off\n";
    assert!(ran.stderr.starts_with(said), "{}", ran.stderr);
    assert_eq!((ran.stdout.as_str(), ran.status), ("hello\n", 0));
    fs::write(&file, format!("{whole}nonsense\n")).unwrap();
    let ran = again(ran, &["--resume"], "two\n").run();
    assert!(
        ran.stderr
            .contains(".jsonl` is damaged in line 4, which is not a valid entry: "),
        "{}",
        ran.stderr
    );
    assert_eq!(ran.status, 1);
    let ran = ran.again(["sessions", "list"]).run();
    assert!(
        ran.stdout.contains("is damaged in line 4"),
        "{}",
        ran.stdout
    );
    assert_eq!(ran.status, 0);
}

#[test]
fn a_prompt_whose_run_is_killed_is_not_lost() {
    let hooks = "hooks: [{event: before_llm_call, command: \"echo $$ > asked; exec sleep 600\", timeout: 600}]";
    let running = talk("remember this\n").hooks(hooks).start();
    let hook = running.line_of("asked");
    running.signal("KILL");
    let ran = running.finish();
    std::process::Command::new("kill")
        .args(["-KILL", &hook])
        .status()
        .unwrap();
    let ran = ran.again(["sessions", "list"]).run();
    assert!(
        ran.stdout.contains("1 message  remember this"),
        "{}",
        ran.stdout
    );
    let ran = again(ran, &["--resume"], "go on\n/tree\n").run();
    assert_eq!(
        ran.stdout,
        "hello\n● 1 user: remember this\n● 2 user: go on\n● 3 assistant: hello\n"
    );
}

/// A simple generator of evenly distributed numbers.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// A session that uses a tool before every other answer.
fn long_script() -> String {
    let mut script = "turns:\n".to_owned();
    for number in 0..40 {
        let call = "tool_calls: [{name: list_directory, arguments: {path: .}}]";
        writeln!(script, "  - {{{call}}}\n  - {{text: answer {number}}}").unwrap();
    }
    script.push_str("  - {text: hello, repeat: true}\n");
    script
}

#[test]
fn a_killed_session_is_gone_on_with_and_has_everything_that_was_saved() {
    let kills = std::env::var(KILLS).map_or(30, |kills| kills.parse().unwrap());
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let hooks = "hooks:\n  - {event: save_point, command: cp \
                 \"$HOME\"/.local/share/tenterhook/sessions/*/*.jsonl saved.new && mv saved.new saved.jsonl}\n";
    let prompts = "go on\n".repeat(40);
    let mut test = Test::new();
    for kill in 0..=kills {
        let home = test.home();
        let resume = (!files(&home).is_empty()).then_some("--resume");
        let args = ["run", "--no-journal"].into_iter().chain(resume);
        let is_last = kill == kills;
        let stdin = if is_last { "the end\n" } else { &prompts };
        test = test
            .args(args)
            .script(&long_script())
            .hooks(hooks)
            .stdin(stdin);
        let mut running = test.start();
        if !is_last {
            // The time of the kill is random: some lines later, and a moment after that.
            let mut lines = running.stdout().lines();
            for _ in 0..dice.below(8) {
                lines.next();
            }
            let strike = Instant::now() + Duration::from_micros(dice.below(20_000));
            while Instant::now() < strike {
                std::hint::spin_loop();
            }
            running.signal("KILL");
        }
        let ran = running.finish();
        if let Ok(saved) = fs::read(ran.path("work").join("saved.jsonl")) {
            let file = files(&home).remove(0);
            assert!(fs::read(file).unwrap().starts_with(&saved), "kill {kill}");
        }
        if is_last {
            assert_eq!(ran.status, 0, "{}", ran.stderr);
            let file = files(&home).remove(0);
            let entries = fs::read_to_string(file).unwrap().lines().count();
            assert!(
                entries > kills,
                "the kills leave no time to work: {entries} entries"
            );
            assert_eq!(ids(&ran).len(), 1);
        }
        test = ran.again([]);
    }
}
