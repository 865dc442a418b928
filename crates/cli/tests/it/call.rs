//! The command line itself: help, version and usage errors.

use crate::stage::Test;

#[test]
fn help_names_every_command_and_the_exit_statuses() {
    let ran = Test::new().args(["--help"]).run();
    assert_eq!((ran.stderr.as_str(), ran.status), ("", 0));
    for part in [
        "Usage: tenterhook [OPTIONS] <COMMAND>",
        "\n  demo ",
        "\n  run ",
        "\n  fire ",
        "\n  list ",
        "\n  check ",
        "Exit status: 0 done, 1 failed, 2 stopped by a hook, 3 invalid hook file, script or",
    ] {
        assert!(ran.stdout.contains(part), "`{part}` in {}", ran.stdout);
    }
}

#[test]
fn every_command_has_help_of_its_own() {
    for command in ["demo", "run", "fire", "list", "check"] {
        let ran = Test::new().args([command, "--help"]).run();
        let usage = format!("Usage: tenterhook {command} ");
        assert!(ran.stdout.contains(&usage), "{}", ran.stdout);
        assert_eq!((ran.stderr.as_str(), ran.status), ("", 0));
    }
}

#[test]
fn version_is_that_of_the_package() {
    let ran = Test::new().args(["--version"]).run();
    let version = format!("tenterhook {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(ran.all(), (version.as_str(), "", 0));
}

#[test]
fn a_call_without_a_command_shows_the_help_and_fails() {
    let ran = Test::new().run();
    let (help, status) = ran.refusal();
    assert!(
        help.contains("Usage: tenterhook [OPTIONS] <COMMAND>"),
        "{help}"
    );
    assert_eq!(status, 64);
}

#[test]
fn a_wrong_call_says_what_is_wrong_and_exits_with_64() {
    let cases: [(&[&str], &str); 13] = [
        (&["bogus"], "unrecognized subcommand 'bogus'"),
        (
            &["chek", "a.yaml"],
            "tip: a similar subcommand exists: 'check'",
        ),
        (
            &["run", "hi", "--frob"],
            "unexpected argument '--frob' found",
        ),
        (
            &["run", "hi", "--model", "gpt"],
            "unknown model `gpt`: expected `scripted:FILE` or one of `openai`, `anthropic`, `gemini`, `ollama` followed by `:MODEL`",
        ),
        (
            &["run", "hi", "--allow", "shell("],
            "`shell(` is not a permission rule; expected `TOOL` or `TOOL(ARGUMENT=PATTERN)`",
        ),
        (
            &["run", "hi", "--max-iterations", "0"],
            "invalid value '0' for '--max-iterations <N>'",
        ),
        (
            &["fire", "stop", "--journal", "a", "--no-journal"],
            "'--journal <FILE>' cannot be used with '--no-journal'",
        ),
        (
            &["fire", "stop", "--inptu", "a"],
            "Usage: tenterhook fire [OPTIONS] <EVENT>",
        ),
        (
            &["run", "hi", "--frob"],
            "Usage: tenterhook run [OPTIONS] [PROMPT]",
        ),
        (
            &["run", "hi", "--compact-at", "0"],
            "invalid value '0' for '--compact-at <TOKENS>'",
        ),
        (
            &["run", "hi", "--base-url", "localhost:8080"],
            "expected a URL such as `https://host/v1`",
        ),
        (
            &["run", " ", "--model", "scripted:a.yaml"],
            "the prompt is empty",
        ),
        (
            &[
                "run",
                "hi",
                "--model",
                "scripted:a.yaml",
                "--base-url",
                "http://a",
            ],
            "`--base-url` does not apply to a scripted model",
        ),
    ];
    for (args, part) in cases {
        let ran = Test::new().args(args.iter().copied()).run();
        let (message, status) = ran.refusal();
        assert!(message.starts_with("error: "), "{message}");
        assert!(message.contains(part), "`{part}` in {message}");
        assert_eq!(status, 64, "{message}");
    }
}

#[test]
fn colour_is_for_terminals_unless_it_is_asked_for() {
    let has_colour = |args: &[&str], variable: Option<&str>| {
        let test = Test::new().args(args.iter().copied());
        let test = match variable {
            Some(name) => test.variable(name, "1"),
            None => test,
        };
        let ran = test
            .args(["fire", "stop", "--no-journal"])
            .hooks("hooks: [{event: stop, command: cat}]")
            .run();
        assert_eq!(ran.status, 0, "{}", ran.stderr);
        ran.stdout.contains('\u{1b}')
    };
    assert!(!has_colour(&[], None));
    assert!(!has_colour(&["--color", "never"], None));
    assert!(has_colour(&["--color", "always"], None));
    assert!(has_colour(&["--color=always"], Some("NO_COLOR")));
}

#[cfg(target_os = "linux")]
#[test]
fn an_output_that_cannot_be_written_is_an_error() {
    let calls: [&[&str]; 3] = [
        &["fire", "stop", "--no-journal"],
        &["--help"],
        &["demo", "--json"],
    ];
    for args in calls {
        let ran = Test::new().args(args.iter().copied()).run_into("/dev/full");
        assert_eq!(
            ran.refusal(),
            (
                "error: cannot write to standard output\n  caused by: No space left on device (os error 28)\n",
                1
            ),
            "{args:?}"
        );
    }
}
