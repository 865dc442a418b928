//! Variables and directories of hooks.

use serde_json::json;
use tenterhook_engine::Origin;

use super::{Stage, entries, send, sh, with};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hook_sees_its_variables_and_its_directory() {
    // D-82
    let line = r#"printf '%s in %s' "$HOOK_VALUE" "$(basename "$PWD")""#;
    let more = json!({"env": {"HOOK_VALUE": "v"}, "working_dir": "scripts"});
    let stage = Stage::new("turn_start", &[with(sh(line), &more)]);
    std::fs::create_dir(stage.dir.path().join("scripts")).unwrap();
    assert_eq!(stage.fire("turn_start").await.context(), "v in scripts");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_one_form_is_expanded_in_variables() {
    // D-83
    let folder = tempfile::tempdir().unwrap();
    let line = r#"printf '%s|%s|%s' "$A" "$B" "$PWD""#;
    let more = json!({
        "env": {"A": "v-${env.T}-$T-${T}-${env.NONE}", "B": "pa$$word"},
        "working_dir": "${env.D}",
    });
    let hooks = json!({"turn_start": entries("turn_start", &[with(sh(line), &more)])});
    let dir = std::fs::canonicalize(folder.path()).unwrap();
    let dir = dir.to_str().unwrap();
    let stage = Stage::with_variables(&hooks, &[("T", "tok"), ("D", dir)]);
    assert_eq!(
        stage.fire("turn_start").await.context(),
        format!("v-tok-$T-${{T}}-|pa$$word|{dir}")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_directory_a_hook_runs_where_the_event_is_from() {
    // D-84
    let stage = Stage::new("turn_start", &[sh("pwd -P")]);
    let dir = std::fs::canonicalize(stage.dir.path()).unwrap();
    assert_eq!(
        stage.fire("turn_start").await.context(),
        dir.to_str().unwrap()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_builtin_looks_at_its_directory_else_at_that_of_the_event() {
    // D-85
    let builtin = json!({"type": "builtin", "command": "add_environment_info"});
    let event = "session_start";
    for (more, below) in [
        (json!({}), ""),
        (json!({"working_dir": "scripts"}), "/scripts"),
    ] {
        let stage = Stage::new(event, &[with(builtin.clone(), &more)]);
        let elsewhere = tempfile::tempdir().unwrap();
        let dispatcher = stage
            .dispatcher()
            .child(Origin::new("", elsewhere.path().to_owned()));
        let said = send(&dispatcher, event, &json!({})).await;
        let expected = format!("Working directory: {}{below}\n", elsewhere.path().display());
        assert!(said.context().contains(&expected), "{}", said.context());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_builtin_has_its_variables_over_those_of_the_process() {
    // D-86: with another index nothing is staged.
    let git = json!({"type": "builtin", "command": "add_git_status"});
    let other = json!({"env": {"GIT_INDEX_FILE": ".git/other"}});
    let make = "git init --quiet --initial-branch=main . && touch new && git add new";
    for (hook, line) in [(with(git.clone(), &other), "?? new"), (git, "A  new")] {
        let stage = Stage::of(&json!({"session_start": [sh(make)], "turn_start": [hook]}));
        stage.fire("session_start").await.assert_goes_on();
        let said = stage.fire("turn_start").await;
        assert_eq!(said.any.failures, []);
        assert!(said.context().contains(line), "{}", said.context());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_command_with_other_variables_or_another_directory_is_another_hook() {
    // D-87
    let line = r#"printf '%s in %s' "$A" "$(basename "$PWD")""#;
    let hooks = [
        with(sh(line), &json!({"env": {"A": "1"}, "working_dir": "one"})),
        with(sh(line), &json!({"env": {"A": "2"}, "working_dir": "one"})),
        with(sh(line), &json!({"env": {"A": "2"}, "working_dir": "two"})),
    ];
    let stage = Stage::new("turn_start", &hooks);
    for dir in ["one", "two"] {
        std::fs::create_dir(stage.dir.path().join(dir)).unwrap();
    }
    assert_eq!(
        stage.fire("turn_start").await.any.context,
        ["1 in one", "2 in one", "2 in two"]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_strict_builtin_fails_on_an_event_that_has_no_use_for_what_it_says() {
    // 4.5 of the contract: built-ins, too, may only answer what the event honours, strict or not.
    for more in [json!({}), json!({"strict_output": true})] {
        let hook = with(json!({"type": "builtin", "command": "add_date"}), &more);
        let said = Stage::new("session_end", &[hook]).fire("session_end").await;
        assert_eq!(said.context(), "");
        assert_eq!(
            said.any.failures[0].cause,
            "`session_end` does not honour `context`"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_date_is_told_with_year_month_and_day() {
    let hook = json!({"type": "builtin", "command": "add_date"});
    let said = Stage::new("turn_start", &[hook]).fire("turn_start").await;
    let context = said.context();
    let date = context.strip_prefix("Today's date: ").unwrap();
    let form: String = date
        .chars()
        .map(|c| if c.is_ascii_digit() { '0' } else { c })
        .collect();
    assert_eq!(form, "0000-00-00");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prompt_files_are_given_in_their_order_and_missing_ones_left_out() {
    let of = |names: &[&str]| {
        let hook = json!({"type": "builtin", "command": "add_prompt_files", "args": names});
        Stage::new("turn_start", &[hook])
    };
    let stage = of(&["SECOND.md", "MISSING.md", "FIRST.md"]);
    for (name, text) in [("FIRST.md", "one"), ("SECOND.md", "two")] {
        std::fs::write(stage.dir.path().join(name), text).unwrap();
    }
    let instructions = |name: &str, text: &str| {
        let path = stage.dir.path().join(name);
        format!("Instructions from: {}\n{text}", path.display())
    };
    let parts = [
        instructions("SECOND.md", "two"),
        instructions("FIRST.md", "one"),
    ];
    let expected = parts.join("\n\n");
    assert_eq!(stage.fire("turn_start").await.context(), expected);
    assert_eq!(of(&[]).fire("turn_start").await.context(), "");
}
