//! `tenterhook init`: the first guard of a project.

use std::fs;
use std::process::Command;

use crate::stage::{Ran, Test};

fn init(args: &[&str]) -> Ran {
    Test::new().args(["init"]).args(args.iter().copied()).run()
}

/// Command lines that every guard must deny, and others that it must let through.
const LINES: &[(&str, bool)] = &[
    ("rm -rf /", true),
    ("rm -fr build", true),
    ("rm -r -f build", true),
    ("rm -R -f build", true),
    ("rm --recursive --force build", true),
    ("rm build -rf", true),
    ("/bin/rm -rf /", true),
    ("cd x && rm -rf .", true),
    ("ls; rm -rf .", true),
    ("ls\nrm -rf .", true),
    ("rm \\\n-rf .", true),
    ("cd x&&rm -rf .", true),
    ("r'm' -rf .", true),
    ("sudo rm -rf /", true),
    ("sh -c 'rm -rf /'", true),
    ("echo \"$(rm -rf /)\"", true),
    ("find . | xargs rm -rf", true),
    ("rm>log -rf build", true),
    ("rm>&log -rf build", true),
    ("rm 2>&1 -rf build", true),
    ("$'rm' -rf build", true),
    ("rm -r{f,} build", true),
    ("rm -{r,f} build", true),
    ("{rm,-rf,build}", true),
    ("rm --rec --fo build", true),
    ("eval rm -rf build", true),
    ("su -c 'rm -rf build'", true),
    ("env -S 'rm -rf build'", true),
    ("ssh host rm -rf build", true),
    ("ssh -p 22 host 'rm -rf build'", true),
    ("git push --force", true),
    ("git push>log -f", true),
    ("git push -4f", true),
    ("git push -f origin main", true),
    ("git push origin +main", true),
    ("cd x && git push -uf origin main", true),
    ("rm notes.txt", false),
    ("rm -r build", false),
    ("rm -f notes.txt", false),
    ("git push origin main", false),
    ("git push --force-with-lease", false),
    ("rm -r {a,b} 2>/dev/null", false),
    ("git show HEAD@{1} | head -n 5 > log", false),
    ("ls -rf", false),
];

#[test]
fn the_guard_of_every_language_passes_its_own_cases() {
    for (lang, hook) in [
        ("yaml", "hooks.yaml"),
        ("py", "hooks/guard.py"),
        ("ts", "hooks/guard.ts"),
        ("sh", "hooks/guard.sh"),
    ] {
        let ran = init(&["--lang", lang]);
        assert_eq!((ran.status, ran.stderr.as_str()), (0, ""), "{lang}");
        assert!(
            ran.file(&format!(".tenterhook/{hook}"))
                .contains("tenterhook test")
        );
        let ran = ran.again(["test"]).run();
        assert_eq!(ran.status, 0, "{lang}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stdout.ends_with("\n9 passed.\n"), "{}", ran.stdout);
        // What the report of `init` says to do next.
        let ran = ran.again(["trust", "--all"]).run();
        assert_eq!(ran.status, 0, "{lang}: {}", ran.stderr);
        let call = "cmd=rm -rf /";
        let fire = [
            "fire",
            "tool_guard",
            "--no-journal",
            "--tool",
            "shell",
            "--arg",
            call,
        ];
        let ran = ran.again(fire).run();
        assert_eq!(ran.status, 2, "{lang}: {}", ran.stderr);
        assert!(ran.stdout.contains("not allowed here"), "{}", ran.stdout);
    }
}

#[test]
fn the_guard_of_every_language_finds_what_is_hidden_in_a_line() {
    let cases = LINES.iter().map(|(line, is_denied)| {
        let decision = if *is_denied { "stop" } else { "proceed" };
        let line = serde_json::to_string(line).unwrap();
        format!(
            "  - name: {line}\n    tool: shell\n    input: {{cmd: {line}}}\n    expect: {{decision: {decision}}}\n"
        )
    });
    let cases = format!("cases:\n{}", cases.collect::<String>());
    for (lang, file) in [
        ("yaml", "hooks"),
        ("py", "hooks/guard"),
        ("ts", "hooks/guard"),
        ("sh", "hooks/guard"),
    ] {
        let ran = init(&["--lang", lang])
            .again(["test"])
            .file(&format!(".tenterhook/{file}.cases.yaml"), &cases)
            .run();
        assert_eq!(ran.status, 0, "{lang}: {}{}", ran.stdout, ran.stderr);
    }
}

#[test]
fn init_says_what_to_do_next() {
    let ran = init(&[]);
    let expected = "\
Created `.tenterhook/hooks.yaml` and its test cases `.tenterhook/hooks.cases.yaml`.
Next:
  tenterhook test  # run the test cases
  tenterhook fire tool_guard --script .tenterhook/hooks.yaml --tool shell --arg cmd='rm -rf /'  # ask the guard about one call
  tenterhook trust  # approve the guard, so that it runs
";
    assert_eq!(ran.all(), (expected, "", 0));
}

#[test]
fn nothing_is_overwritten() {
    let test = Test::new()
        .args(["init"])
        .file(".tenterhook/hooks.cases.yaml", "mine");
    let ran = test.run();
    assert_eq!(ran.status, 1);
    assert!(
        ran.stderr
            .contains("`[DIR]/work/.tenterhook/hooks.cases.yaml` exists already"),
        "{}",
        ran.stderr
    );
    assert_eq!(ran.file(".tenterhook/hooks.cases.yaml"), "mine");
    assert!(!ran.path("work/.tenterhook/hooks.yaml").exists());
    let ran = init(&["--lang", "py"])
        .again(["init", "--lang", "py"])
        .run();
    assert_eq!(ran.status, 1);
    assert!(
        ran.stderr.contains("guard.py` exists already"),
        "{}",
        ran.stderr
    );
}

#[test]
fn the_guard_goes_to_the_root_of_the_repository_or_where_the_call_says() {
    let test = Test::new().after("cd sub").args(["init"]).file("sub/x", "");
    fs::create_dir(test.work().join(".git")).unwrap();
    let ran = test.run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(ran.path("work/.tenterhook/hooks.yaml").is_file());
    let ran = ran
        .again(["init", "--dir", "new/project", "--lang", "sh"])
        .run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(
        ran.stdout.contains("Next, in `new/project`:"),
        "{}",
        ran.stdout
    );
    assert!(
        ran.stdout.contains("--script .tenterhook/hooks/guard.sh "),
        "{}",
        ran.stdout
    );
    assert!(
        ran.path("work/new/project/.tenterhook/hooks/guard.sh")
            .is_file()
    );
    let ran = ran.again(["test", "new/project"]).run();
    assert_eq!(ran.status, 0, "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn the_commands_to_do_next_work_in_a_folder_whose_name_needs_quotes() {
    let test = Test::new()
        .after("cd \"it's a shop/sub\"")
        .args(["init"])
        .file("it's a shop/sub/x", "");
    fs::create_dir(test.work().join("it's a shop/.git")).unwrap();
    let ran = test.run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let mut commands = ran.stdout.lines().filter(|line| line.starts_with("  "));
    let fire = commands.nth(1).unwrap();
    let program = format!("'{}' ", env!("CARGO_BIN_EXE_tenterhook"));
    let fire = fire.replacen("tenterhook ", &program, 1);
    let fire = fire.replace("[DIR]", ran.path("").to_str().unwrap());
    let fired = Command::new("sh")
        .args(["-c", &fire])
        .env("HOME", ran.path("home"))
        .env("XDG_STATE_HOME", ran.path("state"))
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&fired.stderr);
    assert_eq!(fired.status.code(), Some(2), "{fire}: {stderr}");
    assert!(stderr.contains("not allowed here"), "{stderr}");
}

#[test]
fn a_link_out_of_the_project_is_not_followed() {
    for (link, lang) in [(".tenterhook", "yaml"), (".tenterhook/hooks", "py")] {
        let test = Test::new()
            .args(["init", "--lang", lang])
            .file(".tenterhook/kept", "");
        let own = test.home().join("own");
        fs::create_dir_all(&own).unwrap();
        let link = test.work().join(link);
        if link.ends_with(".tenterhook") {
            fs::remove_dir_all(&link).unwrap();
        }
        std::os::unix::fs::symlink(&own, &link).unwrap();
        let ran = test.run();
        assert_eq!(ran.status, 1);
        assert!(
            ran.stderr
                .contains("is a link that leads out of the project"),
            "{}",
            ran.stderr
        );
        let written = fs::read_dir(ran.path("home/own")).unwrap();
        assert_eq!(written.count(), 0);
    }
}

#[test]
fn a_file_where_the_folder_belongs_is_reported() {
    let ran = Test::new()
        .args(["init", "--dir", "./."])
        .file(".tenterhook", "")
        .run();
    assert_eq!(ran.status, 1);
    assert!(
        ran.stderr.starts_with(
            "error: `[DIR]/work/.tenterhook` is not a folder\nhint: move it away, so that"
        ),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_missing_interpreter_is_reported() {
    let ran = Test::new()
        .args(["init", "--lang", "py"])
        .variable("PATH", "/nowhere")
        .run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(
        ran.stderr
            .starts_with("warning: `python3` was not found in `PATH`"),
        "{}",
        ran.stderr
    );
}

#[test]
fn an_agent_cannot_write_a_guard() {
    let ran = Test::new()
        .args(["init"])
        .variable("TENTERHOOK_AGENT", "1")
        .run();
    assert_eq!(ran.status, 64);
    assert!(
        ran.stderr
            .contains("a program that Tenterhook runs cannot write hooks"),
        "{}",
        ran.stderr
    );
    assert!(!ran.path("work/.tenterhook").exists());
}
