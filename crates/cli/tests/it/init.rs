//! `tenterhook init`: the first guard of a project or of a user.

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

/// Files with secrets, and others that look like them.
const FILES: &[(&str, bool)] = &[
    (".env", true),
    ("shop/.env", true),
    ("./.ENV", true),
    (".env.local", true),
    ("keys/server.pem", true),
    ("server.key", true),
    ("link", true),
    ("dangling", true),
    (".env.example", false),
    (".environment", false),
    ("notes.txt", false),
    ("new/notes.txt", false),
    ("harmless", false),
    ("my \"odd\" \\ name", false),
];

/// The languages with the guard and a call that it denies.
const LANGUAGES: &[(&str, &str, &[&str])] = &[
    ("yaml", "hooks.yaml", &["shell", "cmd=rm -rf /"]),
    ("python", "hooks/guard.py", &["read_file", "path=.env"]),
    ("javascript", "hooks/guard.mjs", &["read_file", "path=.env"]),
    ("typescript", "hooks/guard.ts", &["read_file", "path=.env"]),
    ("shell", "hooks/guard.sh", &["read_file", "path=.env"]),
];

/// Asks the hooks that are in force about a call.
fn fire(ran: Ran, call: &[&str]) -> Ran {
    let arguments = ["fire", "tool_guard", "--no-journal", "--tool", call[0]];
    ran.again(arguments).args(["--arg", call[1]]).run()
}

#[test]
fn the_guard_of_every_language_passes_its_own_cases_and_runs_after_approval() {
    for (lang, hook, call) in LANGUAGES {
        let ran = init(&["--lang", lang]);
        assert_eq!((ran.status, ran.stderr.as_str()), (0, ""), "{lang}");
        let text = ran.file(&format!(".tenterhook/{hook}"));
        assert!(text.contains("Use it:     tenterhook trust\n"), "{text}");
        assert!(text.contains("deny_commands"), "{text}");
        let ran = ran.again(["test"]).run();
        assert_eq!(ran.status, 0, "{lang}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stdout.contains("\n  ok    denies "), "{}", ran.stdout);
        let ran = fire(ran, call);
        assert_eq!(ran.status, 0, "{lang}: {}", ran.stderr);
        // What the report of `init` says to do next.
        let ran = ran.again(["trust", "--all"]).run();
        assert_eq!(ran.status, 0, "{lang}: {}", ran.stderr);
        let ran = fire(ran, call);
        assert_eq!(ran.status, 2, "{lang}: {}", ran.stderr);
        assert!(ran.stdout.contains("not allowed here"), "{}", ran.stdout);
    }
}

#[test]
fn the_guard_of_the_user_is_in_force_at_once_and_its_cases_run_from_everywhere() {
    for (lang, hook, call) in LANGUAGES {
        let ran = init(&["--user", "--lang", lang]);
        assert_eq!((ran.status, ran.stderr.as_str()), (0, ""), "{lang}");
        assert!(!ran.path("work/.tenterhook").exists());
        let config = ran.path("config");
        let text = fs::read_to_string(config.join(hook)).unwrap();
        assert!(text.contains("Use it:     it is in force"), "{text}");
        let ran = fire(ran, call);
        assert_eq!(ran.status, 2, "{lang}: {}", ran.stderr);
        assert!(ran.stdout.contains("not allowed here"), "{}", ran.stdout);
        let ran = ran.again(["test"]).run();
        // Hooks of the user need no approval, so there is no note about it.
        assert_eq!((ran.status, ran.stderr.as_str()), (0, ""), "{lang}");
        assert!(ran.stdout.contains("[DIR]/config/hooks"), "{}", ran.stdout);
        let ran = ran.again(["init", "--user", "--lang", lang]).run();
        assert_eq!(ran.status, 1, "{lang}");
        assert!(ran.stderr.contains("exists already"), "{}", ran.stderr);
    }
}

#[test]
fn test_runs_the_cases_of_the_project_and_then_those_of_the_user() {
    let ran = init(&[]).again(["init", "--user"]).run();
    let ran = ran.again(["test", "--filter", "git push -f"]).run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let project = ran.stdout.find(".tenterhook/hooks.cases.yaml\n  ok ");
    let user = ran.stdout.find("config/hooks.cases.yaml\n  ok ");
    assert!(project.is_some() && project < user, "{}", ran.stdout);
    assert!(ran.stdout.ends_with("\n2 passed.\n"), "{}", ran.stdout);
    assert!(ran.stderr.starts_with("note: hooks run as they are"));
    // A guard of the user that stopped working is a failure.
    let hook = ran.path("config/hooks.yaml");
    let text = fs::read_to_string(&hook).unwrap();
    fs::write(hook, text.replace("git push", "git pull")).unwrap();
    let ran = ran.again(["test", "--filter", "git push -f"]).run();
    assert_eq!(ran.status, 1, "{}", ran.stdout);
    assert!(ran.stdout.contains("1 passed, 1 failed"), "{}", ran.stdout);
}

#[test]
fn the_guard_for_commands_finds_what_is_hidden_in_a_line() {
    let cases = LINES.iter().map(|(line, is_denied)| {
        let decision = if *is_denied { "stop" } else { "proceed" };
        let line = serde_json::to_string(line).unwrap();
        format!(
            "  - name: {line}\n    tool: shell\n    input: {{cmd: {line}}}\n    expect: {{decision: {decision}}}\n"
        )
    });
    let cases = format!("cases:\n{}", cases.collect::<String>());
    let ran = init(&[])
        .again(["test"])
        .file(".tenterhook/hooks.cases.yaml", &cases)
        .run();
    assert_eq!(ran.status, 0, "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn the_guard_for_files_of_every_language_finds_secrets_behind_links_and_in_other_folders() {
    let cases = FILES.iter().map(|(path, is_denied)| {
        let decision = if *is_denied { "stop" } else { "proceed" };
        let path = serde_json::to_string(path).unwrap();
        // The text of a file is not its path.
        format!(
            "  - name: {path}\n    tool: write_file\n    input: {{path: {path}, content: '\"path\":\".env\"'}}\n    expect: {{decision: {decision}}}\n"
        )
    });
    let cases = format!("cases:\n{}", cases.collect::<String>());
    for (lang, _, _) in LANGUAGES.iter().filter(|(lang, ..)| *lang != "yaml") {
        let test = Test::new().args(["init", "--lang", lang]).file(".env", "");
        let work = test.work();
        let link = |name: &str, target: &str| {
            std::os::unix::fs::symlink(target, work.join(name)).unwrap();
        };
        link("link", ".env");
        link("dangling", "shop/.env");
        link("harmless", "notes.txt");
        let test = test.file("notes.txt", "").file("shop/x", "").run();
        let ran = test
            .again(["test"])
            .file(".tenterhook/hooks/guard.cases.yaml", &cases)
            .run();
        assert_eq!(ran.status, 0, "{lang}: {}{}", ran.stdout, ran.stderr);
    }
}

#[test]
fn a_call_without_a_path_is_denied_by_the_guard_for_files() {
    let cases = "cases:\n  - {name: no path, tool: read_file, input: {}, expect: {failure: true, decision: stop}}\n";
    for (lang, _, _) in LANGUAGES.iter().filter(|(lang, ..)| *lang != "yaml") {
        let ran = init(&["--lang", lang])
            .again(["test"])
            .file(".tenterhook/hooks/guard.cases.yaml", cases)
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
  tenterhook fire tool_guard --tool shell --arg cmd='rm -rf /' --script .tenterhook/hooks.yaml  # ask the guard about one call
  tenterhook trust  # approve the guard, so that it runs
";
    assert_eq!(ran.all(), (expected, "", 0));
}

#[test]
fn init_for_the_user_says_that_the_guard_is_in_force() {
    let ran = init(&["--user"]);
    let expected = "\
Created `[DIR]/config/hooks.yaml` and its test cases `[DIR]/config/hooks.cases.yaml`.
It is in force from the next session on, in every agent that Tenterhook guards.
Next:
  tenterhook test  # run the test cases
  tenterhook fire tool_guard --tool shell --arg cmd='rm -rf /'  # ask the guard about one call
  tenterhook install claude-code  # guard an agent: `tenterhook status` lists yours
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
    let ran = init(&["--lang", "python"])
        .again(["init", "--lang", "ts"])
        .run();
    assert_eq!(ran.status, 1);
    assert!(
        ran.stderr.contains("guard.cases.yaml` exists already"),
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
        ran.stdout
            .contains("--script .tenterhook/hooks/guard.sh  #"),
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
        .args(["init", "--user"])
        .variable("TENTERHOOK_AGENT", "1")
        .run();
    assert_eq!(ran.status, 64);
    assert!(
        ran.stderr
            .contains("a program that Tenterhook runs cannot write hooks"),
        "{}",
        ran.stderr
    );
    assert!(!ran.path("config/hooks.yaml").exists());
}
