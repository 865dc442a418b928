//! What a user can type at a prompt in addition to messages for the model: templates, skills and commands.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::stage::{Ran, Test};

const TALK: &str = "turns: [{text: hello, repeat: true}]";

fn talk(stdin: &str) -> Test {
    Test::new()
        .args(["run", "--no-journal"])
        .script(TALK)
        .stdin(stdin)
}

fn write(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Logs these events.
fn logging(events: &[&str]) -> String {
    let hook = |event: &&str| format!("{{event: {event}, command: cat >> log; echo >> log}}");
    let hooks: Vec<String> = events.iter().map(hook).collect();
    format!("hooks: [{}]", hooks.join(", "))
}

/// Returns one key of every logged event.
fn logged(ran: &Ran, key: &str) -> Vec<Value> {
    let lines = ran.lines("log").into_iter();
    lines.map(|mut event| event[key].take()).collect()
}

#[test]
fn templates_and_skills_of_user_and_project_are_called_by_their_names() {
    let test = talk("/fix it\n/plan a b\n/skill:pdf x.pdf\n/greet\n")
        .hooks(&logging(&["user_prompt_submit"]));
    let (work, home) = (test.work(), test.home());
    let config = home.join("../config");
    write(&config, "prompts/fix.md", "Fix $1, says the user.");
    write(
        &work,
        ".tenterhook/prompts/fix.md",
        "Fix $1, says the project.",
    );
    write(&work, ".pi/prompts/plan.md", "Plan $2.");
    write(&home, ".pi/agent/prompts/greet.md", "Greet.");
    write(
        &work,
        ".tenterhook/skills/pdf/SKILL.md",
        "---\nname: pdf\ndescription: Reads PDF.\n---\nUse it.\n",
    );
    let ran = test.run();
    assert_eq!(
        (ran.stdout.as_str(), ran.status),
        ("hello\nhello\nhello\nhello\n", 0)
    );
    assert!(
        ran.stderr.contains("/work/.tenterhook/prompts/fix.md`: the name `fix` is taken by `[DIR]/config/prompts/fix.md`"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr
            .ends_with("The model can use these skills of the project: `pdf`\n"),
        "{}",
        ran.stderr
    );
    let prompts = logged(&ran, "prompt");
    assert_eq!(prompts[..2], ["Fix it, says the user.", "Plan b."]);
    let skill = prompts[2].as_str().unwrap();
    assert!(
        skill.contains("\nUse it.\n</skill>\n\nUser: x.pdf"),
        "{skill}"
    );
    assert_eq!(prompts[3], "Greet.");
}

#[test]
fn the_model_is_told_where_a_skill_is_from_wherever_the_agent_works() {
    let test = talk("/skill:pdf x.pdf\n")
        .args(["--cwd", "sub", "--config-dir", "conf"])
        .hooks(&logging(&["user_prompt_submit"]));
    let work = test.work();
    fs::create_dir(work.join("sub")).unwrap();
    write(
        &work,
        "conf/skills/pdf/SKILL.md",
        "---\nname: pdf\ndescription: Reads PDF.\n---\nUse it.\n",
    );
    let ran = test.run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let prompts = ran.lines("sub/log");
    let prompt = prompts[0]["prompt"].as_str().unwrap();
    let location = prompt.split('"').nth(3).unwrap();
    assert!(
        location.starts_with('/') && location.ends_with("/work/conf/skills/pdf/SKILL.md"),
        "{prompt}"
    );
}

#[test]
fn help_lists_what_can_be_called_and_an_unknown_word_is_refused_with_it() {
    let test = talk("/help\n/fxi\n");
    let work = test.work();
    write(
        &work,
        ".tenterhook/prompts/fix.md",
        "---\ndescription: mends\nargument-hint: FILE\n---\nFix $1.",
    );
    write(
        &work,
        ".tenterhook/skills/pdf/SKILL.md",
        "---\ndescription: Reads PDF.\n---\n",
    );
    write(&work, ".tenterhook/prompts/new.md", "never used");
    let ran = test.run();
    for line in [
        "/fix FILE",
        "mends (project)",
        "/skill:pdf",
        "Reads PDF. (project)",
        "/name NAME",
    ] {
        assert!(ran.stdout.contains(line), "{line}: {}", ran.stdout);
    }
    assert!(
        ran.stderr
            .contains(".tenterhook/prompts/new.md` is never used, because `/new` is a command"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr
            .contains("Unknown command `/fxi`. Available: `/fix`, "),
        "{}",
        ran.stderr
    );
    assert_eq!(ran.status, 64);
}

#[test]
fn a_line_behind_a_mark_is_a_command_of_the_user_where_that_is_meant() {
    let hooks = logging(&["user_bash", "user_prompt_submit"]);
    let lines = "!echo out; exit 3\n!!echo secret\nwhat was it?\n";
    let ran = talk(lines).args(["--shell-lines"]).hooks(&hooks).run();
    assert_eq!(
        ran.all(),
        (
            "out\nsecret\nhello\n",
            "The command ended with status 3\n",
            0
        )
    );
    assert_eq!(
        logged(&ran, "command")[..2],
        ["echo out; exit 3", "echo secret"]
    );
    assert_eq!(logged(&ran, "exclude_from_context")[1], true);
    // Text from a pipe may come from anyone.
    let ran = talk(lines).hooks(&hooks).run();
    assert_eq!(
        logged(&ran, "prompt"),
        ["!echo out; exit 3", "!!echo secret", "what was it?"]
    );
}

#[test]
fn a_session_is_named_and_its_entries_are_labelled() {
    let ran = talk("one\n/name the  parser\n/label 1 start here\n/tree\n/label 9 x\n/name\n").run();
    assert_eq!(
        ran.stdout,
        "hello\nThe session is named `the parser`.\n● 1 user: one [start here]\n● 2 assistant: hello\n"
    );
    assert_eq!(
        ran.stderr,
        "Nothing was changed: the session has no entry `9`; `/tree` shows the entries\nExpected `/name NAME`\n"
    );
    assert_eq!(ran.status, 64);
    let ran = ran.again(["sessions", "list"]).run();
    assert!(ran.stdout.ends_with("the parser\n"), "{}", ran.stdout);
    let ran = ran.again(["sessions", "list", "--json"]).run();
    assert_eq!(ran.json()["sessions"][0]["name"], "the parser");
}

#[test]
fn the_user_sees_the_hooks_and_loads_everything_anew() {
    let hooks = "hooks:\n  - {name: watch, event: session_start, command: cat >> log; echo >> log}\n  \
                 - {event: session_end, command: cat >> log; echo >> log}\n  \
                 - {event: resources_discover, command: cat >> log; echo >> log}\n";
    let test = talk("/hooks\n!printf more > .tenterhook/prompts/more.md\n/reload\n/more\n");
    write(&test.work(), ".tenterhook/prompts/one.md", "one");
    let ran = test.args(["--shell-lines"]).hooks(hooks).run();
    let expected = "In force now: 3 hooks, 2 templates and 0 skills.\nhello\n";
    assert!(
        ran.stdout.ends_with(expected),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
    assert!(ran.stdout.starts_with("session_start"), "{}", ran.stdout);
    let events: Vec<String> = ran
        .lines("log")
        .iter()
        .map(|event| {
            let why = event.get("source").or(event.get("reason")).unwrap();
            format!("{} {}", event["hook_event_name"], why).replace('"', "")
        })
        .collect();
    assert_eq!(
        events,
        [
            "session_start startup",
            "resources_discover startup",
            "session_end reload",
            "session_start reload",
            "resources_discover reload",
            "session_end quit",
        ]
    );
}

#[test]
fn the_user_steers_summaries() {
    let script = "turns: [{text: hi}, {text: ho}, {summary: short}, {summary: shorter}]";
    let ran = Test::new()
        .args(["run", "--no-journal"])
        .stdin("one\ntwo\n/tree 2 summary only names\n/compact keep the names\n")
        .script(script)
        .hooks(&logging(&["session_before_tree", "pre_compact"]))
        .run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let events = ran.lines("log");
    assert_eq!(
        events[0]["preparation"]["custom_instructions"],
        "only names"
    );
    assert_eq!(events[1]["custom_instructions"], "keep the names");
}

#[test]
fn sessions_are_stored_where_hooks_or_the_user_want_them() {
    let hooks = "hooks: [{event: session_directory_resolve, command: \"echo '{\\\"effect\\\":{\\\"rewrite\\\":{\\\"default_directory\\\":\\\"there\\\"}}}'\"}]";
    let ran = talk("one\n").hooks(hooks).run();
    assert_eq!(ran.all(), ("hello\n", "", 0));
    assert_eq!(
        fs::read_dir(ran.path("work").join("there"))
            .unwrap()
            .count(),
        1
    );
    let ran = ran
        .again(["run", "--no-journal", "--resume"])
        .stdin("two\n")
        .script(TALK)
        .hooks(hooks)
        .run();
    assert!(ran.stderr.contains(" with 2 messages."), "{}", ran.stderr);
    let ran = ran
        .again(["sessions", "list", "--session-dir", "there"])
        .run();
    assert!(ran.stdout.contains("4 messages"), "{}", ran.stdout);
    let ran = ran
        .again(["run", "--no-journal", "--session-dir", "here"])
        .stdin("two\n")
        .script(TALK)
        .hooks(hooks)
        .run();
    assert_eq!(
        fs::read_dir(ran.path("work").join("here")).unwrap().count(),
        1
    );
}
