//! A person at a terminal.

use std::io::{Read, Write};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use tempfile::TempDir;

use crate::stage::{Test, without_denial_id};

/// How long something may take that has to happen.
const PATIENCE: Duration = Duration::from_mins(1);

const ROWS: u16 = 40;
const COLUMNS: u16 = 80;

type Input = Arc<Mutex<Box<dyn Write + Send>>>;

/// The terminal's automatic answers to queries.
struct Answers(Input);

impl vt100::Callbacks for Answers {
    fn unhandled_csi(
        &mut self,
        screen: &mut vt100::Screen,
        _: Option<u8>,
        _: Option<u8>,
        params: &[&[u16]],
        last: char,
    ) {
        if last == 'n' && params == [[6]] {
            let (row, column) = screen.cursor_position();
            let answer = format!("\u{1b}[{};{}R", row + 1, column + 1);
            self.0.lock().unwrap().write_all(answer.as_bytes()).unwrap();
        }
    }
}

/// The terminal's screen, and whether the program is still running.
struct Shown {
    parser: vt100::Parser<Answers>,
    is_over: bool,
}

/// The program in a terminal.
pub(crate) struct Sitting {
    input: Input,
    shown: Arc<(Mutex<Shown>, Condvar)>,
    child: Box<dyn Child + Send + Sync>,
    pub(crate) folder: TempDir,
    terminal: Box<dyn MasterPty + Send>,
    /// The terminal's settings before the program started.
    settings: String,
}

impl Sitting {
    pub(crate) fn start(test: Test) -> Self {
        Self::start_after(test, "")
    }

    /// Starts the program after keys have been pressed.
    pub(crate) fn start_after(test: Test, keys: &str) -> Self {
        let (command, folder) = test.into_command();
        let mut builder = CommandBuilder::new(command.get_program());
        builder.args(command.get_args());
        builder.env_clear();
        for (name, value) in command.get_envs() {
            builder.env(name, value.unwrap());
        }
        if builder.get_env("TERM").is_none() {
            builder.env("TERM", "xterm-256color");
        }
        builder.cwd(command.get_current_dir().unwrap());
        let pair = native_pty_system()
            .openpty(PtySize {
                rows: ROWS,
                cols: COLUMNS,
                ..PtySize::default()
            })
            .unwrap();
        let settings = settings(&*pair.master);
        let mut keyboard = pair.master.take_writer().unwrap();
        keyboard.write_all(keys.as_bytes()).unwrap();
        let child = pair.slave.spawn_command(builder).unwrap();
        drop(pair.slave);
        let input: Input = Arc::new(Mutex::new(keyboard));
        let answers = Answers(Arc::clone(&input));
        let parser = vt100::Parser::new_with_callbacks(ROWS, COLUMNS, 0, answers);
        let shown = Arc::new((
            Mutex::new(Shown {
                parser,
                is_over: false,
            }),
            Condvar::new(),
        ));
        let mut output = pair.master.try_clone_reader().unwrap();
        let (watched, changed) = (Arc::clone(&shown), Arc::clone(&shown));
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                watched.0.lock().unwrap().parser.process(&bytes[..count]);
                changed.1.notify_all();
            }
            watched.0.lock().unwrap().is_over = true;
            changed.1.notify_all();
        });
        Self {
            input,
            shown,
            child,
            folder,
            settings,
            terminal: pair.master,
        }
    }

    /// Presses keys.
    pub(crate) fn press(&self, keys: &str) {
        self.input
            .lock()
            .unwrap()
            .write_all(keys.as_bytes())
            .unwrap();
    }

    /// Changes the size of the terminal.
    pub(crate) fn resize(&self, rows: u16, cols: u16) {
        let mut shown = self.shown.0.lock().unwrap();
        shown.parser.screen_mut().set_size(rows, cols);
        let size = PtySize {
            rows,
            cols,
            ..PtySize::default()
        };
        self.terminal.resize(size).unwrap();
    }

    /// Sends the program a signal.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.process_id().unwrap().to_string();
        let killed = std::process::Command::new("kill")
            .args([&format!("-{name}"), &pid])
            .status();
        assert!(killed.unwrap().success());
    }

    /// Waits until the screen matches a condition, and returns the screen.
    pub(crate) fn until(&self, is_meant: impl Fn(&str) -> bool) -> String {
        let (shown, changed) = &*self.shown;
        let (shown, _) = changed
            .wait_timeout_while(shown.lock().unwrap(), PATIENCE, |shown| {
                !shown.is_over && !is_meant(&contents(shown))
            })
            .unwrap();
        let screen = contents(&shown);
        assert!(is_meant(&screen), "it never showed; it shows:\n{screen}");
        screen
    }

    /// Waits until the last line is a prompt with this text.
    pub(crate) fn until_prompt(&self, text: &str) -> String {
        let line = format!("> {text}").trim_end().to_owned();
        self.until(|screen| screen.lines().last() == Some(line.as_str()))
    }

    /// Waits until the last line is this question and keys count as its answer: either the terminal buffers a line
    /// until Enter, or the editor reads every key, including Ctrl-C.
    pub(crate) fn until_asked(&self, question: &str) -> String {
        let screen = self.until(|screen| screen.ends_with(question));
        crate::stage::eventually(|| {
            let settings = settings(&*self.terminal);
            let is_early = settings.contains("ISIG") && !settings.contains("ICANON");
            (!is_early).then_some(())
        });
        screen
    }

    /// Answers a question as soon as keys count as its answer.
    pub(crate) fn answer(&self, question: &str, keys: &str) {
        self.until_asked(question);
        self.press(keys);
    }

    /// Waits for the end. Returns the final screen and the exit status.
    pub(crate) fn end(mut self) -> (String, u32, TempDir) {
        let status = self.child.wait().unwrap();
        assert_eq!(
            settings(&*self.terminal),
            self.settings,
            "the terminal is not as it was"
        );
        let (shown, changed) = &*self.shown;
        let (shown, _) = changed
            .wait_timeout_while(shown.lock().unwrap(), PATIENCE, |shown| !shown.is_over)
            .unwrap();
        (contents(&shown), status.exit_code(), self.folder)
    }
}

fn settings(terminal: &(dyn MasterPty + Send)) -> String {
    format!("{:?}", terminal.get_termios())
}

fn contents(shown: &Shown) -> String {
    let lines = shown.parser.screen().contents();
    let lines: Vec<&str> = lines.lines().map(str::trim_end).collect();
    lines.join("\n").trim_end().to_owned()
}

pub(crate) fn run() -> Test {
    Test::new().args(["run", "--no-journal"])
}

const ENDED: &str = "hooks: [{event: session_end, command: touch ended}]";

#[test]
fn markdown_is_set_and_calls_show_who_judged_them() {
    let sitting = Sitting::start(
        run()
            .script(
                "\
turns:
  - text: \"# Plan\\n\\nI **clean** up with `rm`:\\n\\n- first\\n- second\\n\\n```sh\\nrm -rf x\\n```\"
    tool_calls: [{name: shell, arguments: {cmd: rm -rf x}}]
  - text: So I do not.
",
            )
            .hooks(
                "hooks: [{event: pre_tool_use, name: no-rm, command: echo not here >&2; exit 2}]",
            ),
    );
    sitting.until_prompt("");
    sitting.press("go\r");
    insta::assert_snapshot!(without_denial_id(&sitting.until(|screen| screen.ends_with("So I do not.\n>"))), @r"
    `/help` shows the commands; Ctrl-D ends the session.
    > go
    Plan
    
    I clean up with rm:
    
    • first
    • second
    
      rm -rf x
    ● shell rm -rf x
      denied by hook `no-rm` (pre_tool_use): not here
        If this was wrong, the user can run `tenterhook allow [ID] --once`.
    So I do not.
    >
    ");
    sitting.press("\u{4}");
    assert_eq!(sitting.end().1, 0);
}

/// Prints three lines and waits until the test has seen them.
const TALKS: &str = "\
turns:
  - tool_calls: [{name: shell, arguments: {cmd: \"printf 'one\\\\ntwo\\\\n\\\\033[2Jthree\\\\n'; until test -e go; do sleep 0.01; done\"}}]
  - text: Done.
";

#[test]
fn the_last_lines_of_a_running_tool_stand_above_the_sign_of_life_until_the_result_does() {
    let sitting = Sitting::start(run().args(["--yes"]).script(TALKS));
    sitting.until_prompt("");
    sitting.press("go\r");
    let screen = sitting.until(|screen| screen.contains("running shell ("));
    let lines: Vec<&str> = screen.lines().rev().take(3).collect();
    assert_eq!(lines[1..], ["    three", "    two"], "{screen}");
    std::fs::write(sitting.folder.path().join("work/go"), "").unwrap();
    let screen = sitting.until(|screen| screen.ends_with("Done.\n>"));
    let rest = screen.split_once("    one\n").unwrap().1;
    assert!(
        rest.starts_with("    two\n    \\u{1b}[2Jthree\n    took "),
        "{screen}"
    );
    assert!(!screen.contains("running"), "{screen}");
    sitting.press("\u{4}");
    assert_eq!(sitting.end().1, 0);
}

#[test]
fn what_a_hook_may_take_out_of_a_result_is_not_shown_before() {
    let sitting = Sitting::start(
        run()
            .args(["--yes"])
            .script(TALKS)
            .hooks("hooks: [{event: post_tool_use, command: \"true\"}]"),
    );
    sitting.until_prompt("");
    sitting.press("go\r");
    let screen = sitting.until(|screen| screen.contains("running shell ("));
    assert!(!screen.contains("    two"), "{screen}");
    std::fs::write(sitting.folder.path().join("work/go"), "").unwrap();
    sitting.until(|screen| screen.ends_with("Done.\n>"));
    sitting.press("\u{4}");
    assert_eq!(sitting.end().1, 0);
}

#[test]
fn the_tree_of_a_session_is_shown_and_its_entries_complete_a_line() {
    let sitting = Sitting::start(run().script("turns: [{text: first}, {text: second}]"));
    for (text, answer) in [("one", "first"), ("two", "second")] {
        sitting.until_prompt("");
        sitting.press(&format!("{text}\r"));
        // The prompt before the answer is still the last line for a moment.
        sitting.until(|screen| screen.contains(answer));
    }
    sitting.until_prompt("");
    sitting.press("/tree 3\t");
    sitting.until_prompt("/tree 3");
    sitting.press("\r");
    sitting.until(|screen| screen.contains("Your message there: two"));
    sitting.until_prompt("");
    sitting.press("/tree\r");
    insta::assert_snapshot!(sitting.until(|screen| screen.ends_with("second\n>")), @r"
    `/help` shows the commands; Ctrl-D ends the session.
    > one
    first
    > two
    second
    > /tree 3
    The conversation continues at entry 3.
    Your message there: two
    > /tree
    ● 1 user: one
    ● 2 assistant: first
    ○ 3 user: two
    ○ 4 assistant: second
    >
    ");
    sitting.press("\u{4}");
    assert_eq!(sitting.end().1, 0);
}

#[test]
fn a_question_shows_what_would_run_and_who_asks_and_takes_a_reason() {
    let sitting = Sitting::start(
        run()
            .script(
                "\
turns:
  - tool_calls: [{name: edit_file, arguments: {path: a.txt, old_text: one, new_text: two}}]
  - tool_calls: [{name: shell, arguments: {cmd: echo hi}}]
  - text: done
",
            )
            .file("a.txt", "one\n")
            .hooks(
                "hooks: [{event: tool_guard, name: careful, matcher: edit_file, \
                 command: 'echo ''{\"hook_specific_output\":{\"permission_decision\":\"ask\",\"permission_decision_reason\":\"look twice\"}}'''}]",
            ),
    );
    sitting.until_prompt("");
    sitting.press("go\r");
    insta::assert_snapshot!(sitting.until_asked("run it?"), @r"
    `/help` shows the commands; Ctrl-D ends the session.
    > go
    ● edit_file a.txt
        - one
        + two
      hook `careful` (tool_guard) asks: look twice
      [y]es, [a]lways `edit_file` in this session, [n]o, `n REASON`
      run it?
    ");
    sitting.press("n not this file\r");
    sitting.until(|screen| screen.contains("echo hi") && screen.ends_with("run it?"));
    sitting.answer("run it?", "maybe\r");
    sitting.until(|screen| screen.contains("answer y, a, n") && screen.ends_with("run it?"));
    sitting.answer("run it?", "y\r");
    insta::assert_snapshot!(sitting.until_prompt(""), @r"
    `/help` shows the commands; Ctrl-D ends the session.
    > go
    ● edit_file a.txt
        - one
        + two
      hook `careful` (tool_guard) asks: look twice
      [y]es, [a]lways `edit_file` in this session, [n]o, `n REASON`
      run it? n not this file
      denied by you
    ● shell echo hi
      [y]es, [a]lways `shell(cmd=echo hi)` in this session, [n]o, `n REASON`
      run it? maybe
      answer y, a, n or `n REASON`
      run it? y
        hi
    done
    >
    ");
    sitting.press("/quit\r");
    let (_, status, folder) = sitting.end();
    assert_eq!(status, 0);
    let kept = std::fs::read_to_string(folder.path().join("work/a.txt")).unwrap();
    assert_eq!(kept, "one\n");
}

#[test]
fn an_interrupt_ends_the_turn_and_the_session_goes_on() {
    let sitting = Sitting::start(
        run()
            .args(["--yes"])
            .script(
                "turns:\n  - tool_calls: [{name: shell, arguments: {cmd: \"echo $$ > pid; sleep 300\"}}]\n  - text: back\n",
            )
            .hooks(ENDED),
    );
    sitting.until_prompt("");
    sitting.press("go\r");
    let pid = sitting.folder.path().join("work/pid");
    crate::stage::eventually(|| pid.exists().then_some(()));
    sitting.press("\u{3}");
    sitting.until(|screen| {
        screen.contains("The run ended: it was interrupted") && screen.ends_with('>')
    });
    sitting.press("again\r");
    sitting.until(|screen| screen.contains("back\n"));
    sitting.until_prompt("");
    // The first Ctrl-C clears the text. Two more end the session.
    sitting.press("some text");
    sitting.until_prompt("some text");
    sitting.press("\u{3}");
    sitting.until_prompt("");
    sitting.press("\u{3}");
    sitting.until(|screen| {
        screen.contains("Press Ctrl-C again or Ctrl-D to end the session") && screen.ends_with('>')
    });
    sitting.press("\u{3}");
    let (_, status, folder) = sitting.end();
    assert_eq!(status, 130);
    assert!(folder.path().join("work/ended").exists());
}

#[test]
fn two_interrupts_within_a_run_end_the_session_in_good_order() {
    let sitting = Sitting::start(
        run()
            .args(["--yes"])
            .script(
                "turns:\n  - tool_calls: [{name: shell, arguments: {cmd: \"echo $$ > pid; sleep 300\"}}]\n  - text: back\n",
            )
            .hooks(
                "hooks:\n  - {event: turn_end, command: touch ending; until test -e go; do sleep 0.01; done}\n  \
                 - {event: session_end, command: touch ended}\n",
            ),
    );
    sitting.until_prompt("");
    sitting.press("go\r");
    let work = sitting.folder.path().join("work");
    crate::stage::eventually(|| work.join("pid").exists().then_some(()));
    sitting.press("\u{3}");
    crate::stage::eventually(|| work.join("ending").exists().then_some(()));
    sitting.press("\u{3}");
    sitting.until(|screen| screen.contains("The session ends after the current work"));
    std::fs::write(work.join("go"), "").unwrap();
    let (_, status, folder) = sitting.end();
    assert_eq!(status, 130);
    assert!(folder.path().join("work/ended").exists());
}

#[test]
fn an_interrupt_at_a_question_ends_the_turn() {
    let sitting = Sitting::start(run().script(
        "turns:\n  - tool_calls: [{name: shell, arguments: {cmd: touch made}}]\n  - text: never\n",
    ));
    sitting.until_prompt("");
    sitting.press("go\r");
    sitting.until(|screen| screen.ends_with("run it?"));
    sitting.press("\u{3}");
    sitting.until(|screen| {
        screen.contains("The run ended: it was interrupted") && screen.ends_with('>')
    });
    sitting.press("\u{4}");
    let (_, _, folder) = sitting.end();
    assert!(!folder.path().join("work/made").exists());
}

#[test]
fn lines_are_completed_remembered_and_may_be_several() {
    let sitting = Sitting::start(run().script("turns: [{text: first}, {text: second}]"));
    sitting.until_prompt("");
    sitting.press("/hel\t");
    sitting.until_prompt("/help");
    sitting.press("\r");
    sitting.until(|screen| screen.contains("resumes a stored session"));
    sitting.until_prompt("");
    sitting.press("one\u{1b}\rtwo\r");
    sitting.until(|screen| screen.contains("first\n"));
    sitting.until_prompt("");
    sitting.press("\u{1b}[200~pasted\rlines\u{1b}[201~");
    sitting.until(|screen| screen.ends_with("> pasted\n… lines"));
    sitting.press("\u{3}");
    sitting.until_prompt("");
    sitting.press("\u{1b}[A");
    insta::assert_snapshot!(sitting.until(|screen| screen.ends_with("> one\n… two")), @r"
    `/help` shows the commands; Ctrl-D ends the session.
    > /help
    /compact [INSTRUCTIONS]               summarises the conversation so far
    /new                                  starts a new session
    /resume ID                            resumes a stored session
    /fork ENTRY                           copies the session up to an entry and continues in the copy
    /tree                                 shows the entries, or goes to one of them
    /tree ENTRY [summary [INSTRUCTIONS]]
    /model                                shows the models, or switches to another one
    /model NAME
    /model next
    /thinking                             shows or sets how much the model thinks
    /thinking LEVEL
    /label ENTRY [TEXT]                   labels an entry, or removes its label
    /name NAME                            names the session
    /hooks                                shows the hooks that are in force
    /reload                               reloads hooks, templates and skills
    /help                                 shows this help
    /quit                                 ends the session
    > one
    … two
    first
    > pasted
    … lines
    > one
    … two
    ");
    sitting.press("\u{3}");
    sitting.until_prompt("");
    sitting.press("\u{4}");
    let (_, status, folder) = sitting.end();
    assert_eq!(status, 0);
    let history = folder.path().join("home/.local/share/tenterhook/history");
    assert_eq!(
        std::fs::read_to_string(history).unwrap(),
        "/help\none<\\n>two\n"
    );
}

#[test]
fn a_terminal_that_cannot_move_its_cursor_is_asked_for_plain_lines() {
    let sitting =
        Sitting::start(run().variable("TERM", "dumb").script(
            "turns: [{tool_calls: [{name: shell, arguments: {cmd: echo hi}}]}, {text: done}]",
        ));
    sitting.until_prompt("");
    sitting.press("go\r");
    sitting.answer("run it?", "y\r");
    sitting.until(|screen| screen.ends_with("    hi\ndone\n>"));
    sitting.press("\u{4}");
    assert_eq!(sitting.end().1, 0);
}

#[test]
fn an_interrupt_where_plain_lines_are_read_ends_the_session_when_it_comes_twice() {
    let sitting = Sitting::start(
        run()
            .variable("TERM", "dumb")
            .script("turns: [{text: hello}]"),
    );
    sitting.until_prompt("");
    sitting.press("half\u{3}");
    sitting.until(|screen| screen.ends_with("Press Ctrl-C again or Ctrl-D to end the session.\n>"));
    sitting.press("go\r");
    sitting.until(|screen| screen.ends_with("hello\n>"));
    sitting.press("\u{3}");
    sitting.until(|screen| screen.matches("Ctrl-C again").count() == 2 && screen.ends_with('>'));
    sitting.press("\u{3}");
    assert_eq!(sitting.end().1, 130);
}

#[test]
fn without_colour_text_stays_as_it_was_written() {
    let sitting = Sitting::start(
        run()
            .variable("NO_COLOR", "1")
            .script("turns: [{text: \"a **bold** word and \\e[2J\"}]"),
    );
    sitting.until_prompt("");
    sitting.press("go\r");
    sitting.until(|screen| screen.contains("a **bold** word and \\u{1b}[2J"));
    sitting.until_prompt("");
    sitting.press("\u{4}");
    assert_eq!(sitting.end().1, 0);
}

#[test]
fn what_is_printed_while_a_line_is_written_stands_above_it() {
    let script = "\
import fs from 'node:fs';
export default function (pi) {
  pi.registerCommand('later', {
    description: 'prints something when there is a file',
    handler: async () => {
      const timer = setInterval(() => {
        if (!fs.existsSync('go')) return;
        console.log('something');
        clearInterval(timer);
      }, 10);
    },
  });
}
";
    let sitting = Sitting::start(
        run()
            .args(["-e", "later.mjs"])
            .file("later.mjs", script)
            .script("turns: [{text: done}]"),
    );
    sitting.until_prompt("");
    sitting.press("/later\r");
    sitting.until(|screen| screen.ends_with("> /later\n>"));
    sitting.press("half a");
    sitting.until_prompt("half a");
    std::fs::write(sitting.folder.path().join("work/go"), "").unwrap();
    insta::assert_snapshot!(sitting.until(|screen| screen.contains("something") && screen.ends_with("> half a")), @r"
    `/help` shows the commands; Ctrl-D ends the session.
    > /later
      node: something
    > half a
    ");
    sitting.press(" line\r");
    sitting.until(|screen| screen.ends_with("> half a line\ndone\n>"));
    sitting.press("\u{4}");
    assert_eq!(sitting.end().1, 0);
}

#[test]
fn a_signal_ends_a_session_in_which_a_line_is_written() {
    let sitting = Sitting::start(run().script("turns: [{text: never}]").hooks(ENDED));
    sitting.until_prompt("");
    sitting.press("half");
    sitting.until_prompt("half");
    let killed = std::process::Command::new("kill")
        .args(["-TERM", &sitting.child.process_id().unwrap().to_string()])
        .status();
    assert!(killed.unwrap().success());
    let (_, status, folder) = sitting.end();
    assert_eq!(status, 130);
    assert!(folder.path().join("work/ended").exists());
}

/// Starts a session in a project whose approved hooks are bound to another repository.
fn displaced(folder: TempDir) -> Sitting {
    let test = Test::in_folder(folder).args(["run", "--no-journal"]);
    Sitting::start(test.script("turns: [{text: done}]"))
}

#[test]
fn run_asks_once_what_to_do_with_approvals_of_another_repository() {
    let test = Test::new().file(
        ".tenterhook/hooks.yaml",
        "hooks: [{name: guard, event: user_prompt_submit, command: 'true'}]\n",
    );
    crate::approved::commit(&test.work());
    let approved = test.args(["trust", "--all"]).run();
    assert_eq!(approved.status, 0, "{}", approved.stderr);
    std::fs::rename(approved.path("work/.git"), approved.path("work/x")).unwrap();
    let (command, mut folder) = approved.again([]).into_command();
    drop(command);
    // A user who chose to keep denying is not asked again.
    for answers in [&["\r"][..], &[]] {
        let sitting = displaced(folder);
        for answer in answers {
            sitting.answer("[r]evoke them? [K/a/r]", answer);
        }
        sitting.until_prompt("");
        sitting.press("go\r");
        sitting.until(|screen| {
            let after = screen.split_once("> go").map_or("", |(_, after)| after);
            after.contains("does not apply here") && after.ends_with("\n>")
        });
        sitting.press("\u{4}");
        let (screen, _, left) = sitting.end();
        assert!(!screen.contains("done"), "{screen}");
        folder = left;
    }
    let kept = std::fs::read_to_string(
        folder
            .path()
            .join("home/.local/share/tenterhook/trust/trust.json"),
    );
    assert!(kept.unwrap().contains("\"kept\""));
}

#[test]
fn approvals_of_another_repository_that_are_accepted_are_in_force_at_once() {
    let test = Test::new().file(
        ".tenterhook/hooks.yaml",
        "hooks: [{name: guard, event: user_prompt_submit, command: echo approved > ../ran}]\n",
    );
    crate::approved::commit(&test.work());
    let approved = test.args(["trust", "--all"]).run();
    assert_eq!(approved.status, 0, "{}", approved.stderr);
    std::fs::rename(approved.path("work/.git"), approved.path("work/x")).unwrap();
    let (command, folder) = approved.again([]).into_command();
    drop(command);
    let sitting = displaced(folder);
    sitting.answer("[r]evoke them? [K/a/r]", "a\r");
    sitting.until_prompt("");
    sitting.press("go\r");
    sitting.until(|screen| screen.ends_with("done\n>"));
    sitting.press("\u{4}");
    let (_, status, folder) = sitting.end();
    assert_eq!(status, 0);
    assert!(folder.path().join("ran").exists());
}

/// Starts the program at a terminal without SIGHUP, waits for the prompt, closes the terminal's other end, and waits
/// for the end of the program.
fn lose_the_terminal(test: Test) -> TempDir {
    let (command, folder) = test.into_command();
    let mut builder = CommandBuilder::new("/bin/sh");
    builder.args(["-c", "trap '' HUP; exec \"$@\"", "sh"]);
    builder.arg(command.get_program());
    builder.args(command.get_args());
    builder.env_clear();
    for (name, value) in command.get_envs() {
        builder.env(name, value.unwrap());
    }
    if builder.get_env("TERM").is_none() {
        builder.env("TERM", "xterm-256color");
    }
    builder.cwd(command.get_current_dir().unwrap());
    let pair = native_pty_system().openpty(PtySize::default()).unwrap();
    let mut child = pair.slave.spawn_command(builder).unwrap();
    drop(pair.slave);
    let mut output = pair.master.try_clone_reader().unwrap();
    let mut keyboard = pair.master.take_writer().unwrap();
    let mut shown = Vec::new();
    let mut bytes = [0; 4096];
    while !String::from_utf8_lossy(&shown).contains("> ") {
        let count = output.read(&mut bytes).unwrap();
        shown.extend(&bytes[..count]);
        if String::from_utf8_lossy(&bytes[..count]).contains("\u{1b}[6n") {
            keyboard.write_all(b"\x1b[1;1R").unwrap();
        }
    }
    drop((output, keyboard, pair.master));
    let mut killer = child.clone_killer();
    let (ended, has_ended) = std::sync::mpsc::channel();
    let waits = thread::spawn(move || {
        child.wait().unwrap();
        ended.send(()).unwrap();
    });
    if has_ended.recv_timeout(PATIENCE).is_err() {
        killer.kill().unwrap();
        waits.join().unwrap();
        panic!("it still runs without its terminal");
    }
    waits.join().unwrap();
    folder
}

#[test]
fn a_session_ends_when_its_terminal_is_gone() {
    for terminal in ["xterm-256color", "dumb"] {
        let test = run().variable("TERM", terminal).script("turns: []");
        let folder = lose_the_terminal(test.hooks(ENDED));
        assert!(folder.path().join("work/ended").exists(), "{terminal}");
    }
}
