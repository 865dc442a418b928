//! What the program prints if it is used in a wrong way.

use crate::stage::{Ran, Test};

/// Wrong usages, and a part of the message that helps.
const WRONG: [(&[&str], &str); 48] = [
    (&["fire"], "<EVENT>"),
    (&["fire", "pre_tool"], "did you mean `pre_tool_use`?"),
    (&["fire", "pre_tool_use"], "missing field `tool_name`"),
    (&["fire", "pre_tool_use", "--input", "no.json"], "`no.json`"),
    (&["fire", "pre_tool_use", "--input", "work"], "`work`"),
    (
        &["fire", "pre_tool_use", "--from", "kodelet"],
        "needs `--input`",
    ),
    (
        &["fire", "turn_start", "--tool", "shell"],
        "is not a tool event",
    ),
    (&["fire", "stop", "--hooks", "no.yaml"], "`no.yaml`"),
    (&["fire", "stop", "--hooks", "no.py"], "no.py"),
    (&["fire", "stop", "--hooks", "work"], "expected a file"),
    (&["fire", "stop", "--hooks", "bad.yaml"], "bad.yaml:1:9"),
    (&["fire", "stop", "--hooks", "text.txt"], "text.txt:1:1"),
    (&["fire", "stop", "--hooks", "broken.py"], "broken.py:1:1"),
    (&["fire", "stop", "--script", "no.py"], "no.py"),
    (&["fire", "stop", "--script", "work"], "expected a file"),
    (&["fire", "stop", "--script", "text.txt"], "an executable"),
    (&["fire", "stop", "-e", "no.ts"], "no.ts"),
    (&["list", "--hooks", "no.yaml"], "`no.yaml`"),
    (&["list", "--hooks", "bad.yaml"], "bad.yaml:1:9"),
    (&["check", "no.yaml"], "`no.yaml`"),
    (&["check", "bad.yaml"], "bad.yaml:1:9"),
    (&["check", "broken.py"], "broken.py:1:1"),
    (&["explain", "nosuch"], "unknown event `nosuch`"),
    (&["explain", "stop", "--script", "no.py"], "no.py"),
    (&["explain", "stop", "--script", "bad.yaml"], "bad.yaml:1:9"),
    (
        &["explain", "turn_start", "--tool", "shell"],
        "remove `--tool`",
    ),
    (&["explain", "stop", "--subject", "x"], "has no subject"),
    (&["run", "hi"], "no model given"),
    (&["run", "hi", "--model", "scripted:no.yaml"], "`no.yaml`"),
    (&["run", "hi", "--cwd", "/no/folder"], "`/no/folder`"),
    (&["events", "pre_tool"], "did you mean `pre_tool_use`?"),
    (&["events", "--schema"], "<NAME>"),
    (&["tools", "shel"], "did you mean `shell`?"),
    (&["sessions"], "Usage: tenterhook sessions"),
    (&["sessions", "show"], "<ID>"),
    (&["sessions", "show", "x"], "there is no session `x`"),
    (&["snapshot", "list"], "is not in a git work tree"),
    (&["snapshot", "restore"], "'reset'"),
    (&["worker"], "Usage: tenterhook worker"),
    (&["worker", "check", "guard"], "-- <COMMAND>..."),
    (&["completions", "tcsh"], "'zsh'"),
    (&["man"], "<DIR>"),
    (&["man", "text.txt"], "`text.txt`"),
    (&["daemon", "stop"], "unexpected argument 'stop'"),
    (&["disable", "nosuch"], "unknown source of hooks `nosuch`"),
    (&["trust", "nosuch"], "this project has no hook `nosuch`"),
    (&["inspect", "no.jsonl"], "`no.jsonl`"),
    (&["test", "nosuch"], "`nosuch` does not exist"),
];

fn run(args: &[&str]) -> Ran {
    Test::new()
        .args(args.iter().copied())
        .file("work/keep", "")
        .file("bad.yaml", "hooks: [{command: exit 2}]\n")
        .file("broken.py", "print(1\n")
        .file("text.txt", "hello\n")
        .run()
}

/// Returns the paths that a text names, without line numbers.
fn paths(text: &str) -> Vec<&str> {
    let is_path = |word: &&str| {
        let extensions = [".yaml", ".py", ".ts", ".json", ".jsonl", ".txt"];
        word.contains('/') || extensions.iter().any(|it| word.ends_with(it))
    };
    let around = |c: char| "`'\"(),;:.".contains(c);
    let words = text
        .split_whitespace()
        .map(|word| word.trim_matches(around));
    words
        .map(|word| word.split(':').next().unwrap())
        .filter(is_path)
        .collect()
}

#[test]
fn no_message_names_a_path_twice() {
    for (args, expected) in WRONG {
        let ran = run(args);
        assert_ne!(ran.status, 0, "{args:?}");
        assert!(ran.stderr.contains(expected), "{args:?}: {}", ran.stderr);
        // The lines of a file that a problem quotes are no part of the message.
        let lines = ran.stderr.lines().filter(|line| !line.contains(" | "));
        let mut named = paths(&lines.collect::<Vec<_>>().join("\n"))
            .iter()
            .map(|path| (*path).to_owned())
            .collect::<Vec<String>>();
        named.sort();
        let all = named.len();
        named.dedup();
        assert_eq!(named.len(), all, "{args:?}: {}", ran.stderr);
        assert!(!ran.stderr.contains("panicked"), "{args:?}: {}", ran.stderr);
    }
}

#[test]
fn a_path_is_recognised_with_its_line_and_quotes() {
    let text = "cannot read `a.yaml`\n --> /x/a.py:1:9\nfix '/x/a.py', or not";
    assert_eq!(paths(text), ["a.yaml", "/x/a.py", "/x/a.py"]);
}

#[test]
fn several_problems_of_a_file_name_it_once_each() {
    let ran = Test::new()
        .args(["list", "--hooks", "bad.yaml"])
        .file("bad.yaml", "hooks: [{evnt: stop, command: exit 2}]\n")
        .run();
    let (problems, summary) = ran.stderr.rsplit_once("\n\n").unwrap();
    assert_eq!(problems.matches("bad.yaml:1:").count(), 2, "{}", ran.stderr);
    assert_eq!(
        summary,
        "error: 2 problems in `bad.yaml`\nhint: fix the file, or remove it from the command line\n"
    );
}

#[test]
fn other_names_of_commands_work_and_print_the_real_name() {
    for (args, real, out) in [
        (&["validate", "good.yaml"][..], "check", ""),
        (
            &["approve", "--show"],
            "trust",
            "This project has no hooks. To write a first guard, run `tenterhook init`.",
        ),
        (&["paths"], "list", "No hooks."),
        (&["--color", "never", "version"], "--version", "tenterhook "),
        (&["help", "validate"], "check", "Usage: tenterhook check"),
        (&["logs", "--help"], "inspect", "Usage: tenterhook inspect"),
    ] {
        let ran = Test::new()
            .args(args.iter().copied())
            .file("good.yaml", "hooks: [{event: stop, command: exit 0}]\n")
            .run();
        assert_eq!(ran.status, 0, "{args:?}: {}", ran.stderr);
        assert!(ran.stdout.contains(out), "{args:?}: {}", ran.stdout);
        let note = format!("note: this command is `tenterhook {real}`\n");
        assert!(ran.stderr.starts_with(&note), "{args:?}: {}", ran.stderr);
    }
    let help = Test::new().args(["--help"]).run();
    for hidden in ["validate", "approve", "paths", "logs"] {
        let is_listed = help
            .stdout
            .lines()
            .any(|line| line.trim().starts_with(hidden));
        assert!(!is_listed, "{hidden}: {}", help.stdout);
    }
}

#[test]
fn an_unknown_command_suggests_the_right_one() {
    for (word, real) in [
        ("chek", "check"),
        ("aprove", "trust"),
        ("verfy", "check"),
        ("verify", "check"),
        ("lint", "check"),
        ("ls", "list"),
        ("permit", "trust"),
        ("revoke", "trust --revoke"),
        ("setup", "install"),
        ("undo", "snapshot"),
    ] {
        let ran = Test::new().args([word]).run();
        let tip = format!("tip: a similar subcommand exists: '{real}'\n");
        assert!(ran.stderr.contains(&tip), "{word}: {}", ran.stderr);
        assert_eq!(ran.status, 64);
    }
}

#[test]
fn fire_prints_the_verdict_once() {
    for (command, verdict, status) in [
        ("echo no >&2; exit 2", "tool_guard: stopped by `one`: no", 2),
        ("exit 0", "tool_guard: not stopped (1 hook ran)", 0),
    ] {
        let ran = Test::new()
            .args(["fire", "tool_guard", "--tool", "shell", "--arg", "cmd=ls"])
            .hooks(&format!(
                "hooks: [{{name: one, event: tool_guard, command: '{command}'}}]"
            ))
            .run();
        let both = format!("{}{}", ran.stdout, ran.stderr);
        assert_eq!(both.matches("tool_guard: ").count(), 1, "{both}");
        assert!(both.lines().any(|line| line == verdict), "{both}");
        assert_eq!(ran.status, status, "{both}");
    }
}

#[test]
fn the_settings_of_a_coding_agent_are_named_as_what_they_are() {
    let settings = r#"{"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "exit 2"}]}]}}"#;
    let ran = Test::new()
        .args(["explain", "pre_tool_use", "--hooks", "settings.json"])
        .file("settings.json", settings)
        .run();
    let note = "note: `settings.json` has hooks of claude-code\n";
    assert!(ran.stderr.contains(note), "{}", ran.stderr);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
}

#[test]
fn trust_shows_what_a_person_needs_to_judge() {
    let ran = Test::new()
        .args(["trust", "--show"])
        .file("guard.py", "print(1)\n")
        .file(
            ".tenterhook/hooks.yaml",
            "hooks:\n- {name: no-push, event: pre_tool_use, matcher: shell, command: python3 guard.py}\n\
             - {name: date, event: session_start, builtin: add_date}\n\
             - {name: tell, event: stop, http: 'https://hooks.example/stop'}\n",
        )
        .run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let guard = "\
no-push of .tenterhook/hooks.yaml  untrusted
  command: python3 guard.py
  event: pre_tool_use
  matcher: shell
  reach: it runs with your rights: it can read and change your files and use the network
";
    assert!(ran.stdout.contains(guard), "{}", ran.stdout);
    for shown in [
        "  guard.py  new, 9 bytes\n    print(1)\n",
        "  builtin: add_date\n  event: session_start\n",
        "  reach: it is part of Tenterhook and runs no code of this project\n",
        "  http: https://hooks.example/stop\n",
        "  reach: it sends each event that it matches to this address\n",
    ] {
        assert!(ran.stdout.contains(shown), "{shown}{}", ran.stdout);
    }
    for internal in ["sha256", "contract", "phase", "priority", "shell: sh"] {
        assert!(!ran.stdout.contains(internal), "{internal}: {}", ran.stdout);
    }
}
