//! Everything that changes what an imported hook does is carried over, or is an error or a warning that names it.

use serde_json::{Value, json};

use crate::imported::{CLAUDE, CODEX, Session, claude, command, shell};

fn settings(more: &Value, hook: &Value) -> String {
    let mut settings: Value = serde_json::from_str(&claude(hook, "Bash")).unwrap();
    let (settings_map, more) = (settings.as_object_mut().unwrap(), more.as_object().unwrap());
    settings_map.extend(more.clone());
    settings.to_string()
}

/// A guard that is strict only if a variable says so.
const LEVEL: &str = r#"[ "$SAFETY_LEVEL" = strict ] || exit 0; echo "$SAFETY_LEVEL" >&2; exit 2"#;

#[tokio::test]
async fn the_variables_of_a_file_reach_each_of_its_hooks() {
    for (more, is_denied) in [
        (json!({}), false),
        (json!({ "env": { "SAFETY_LEVEL": "strict" } }), true),
        (
            json!({ "env": { "SAFETY_LEVEL": "low", "N": 1, "B": true } }),
            false,
        ),
    ] {
        let session = Session::new(&[(CLAUDE, &settings(&more, &command(LEVEL)))]);
        let outcome = session.send(CLAUDE, shell("git push --force")).await;
        assert_eq!(!outcome.decision().is_proceed(), is_denied, "{more}");
    }
}

#[test]
fn a_change_of_the_variables_changes_what_an_approval_is_for() {
    let digest = |level: &str| {
        let more = json!({ "env": { "SAFETY_LEVEL": level } });
        let loaded = crate::load(CLAUDE, &settings(&more, &command("true"))).unwrap();
        loaded.specs[0].definition.clone()
    };
    assert_ne!(digest("strict"), digest("low"));
}

#[tokio::test]
async fn a_hook_recognises_its_agent() {
    let line = r#"[ "$CLAUDECODE" = 1 ] && echo "$CLAUDE_CODE_SESSION_ID" >&2; exit 2"#;
    let session = Session::new(&[(CLAUDE, &claude(&command(line), "Bash"))]);
    let outcome = session.send(CLAUDE, shell("ls")).await;
    assert_eq!(outcome.decision().reason(), Some("s1"));
}

#[tokio::test]
async fn a_condition_selects_commands_and_not_lines() {
    let hook = json!({ "type": "command", "command": "exit 2", "if": "Bash(git push *)" });
    let session = Session::new(&[(CLAUDE, &claude(&hook, "Bash"))]);
    for (line, is_denied) in [
        ("git push --force", true),
        ("GIT_DIR=/x git push", true),
        ("cd x && git push", true),
        ("sudo git push", true),
        ("echo $(git push)", true),
        ("git pull", false),
        ("ls", false),
    ] {
        let outcome = session.send(CLAUDE, shell(line)).await;
        assert_eq!(!outcome.decision().is_proceed(), is_denied, "{line}");
    }
}

#[test]
fn a_condition_that_switches_its_hook_off_is_an_error() {
    for (event, condition, expected) in [
        ("PreToolUse", "Bash(git *", "would never run the hook"),
        ("PreToolUse", "Bash|Edit", "would never run the hook"),
        ("PreToolUse", "Bash(git *)|Bash(rm *)", "more than one rule"),
        ("PreToolUse", "bash(git *)", "did you mean `Bash`?"),
        ("PreToolUse", "Edit({a,b}.ts)", "never matches"),
        ("UserPromptSubmit", "Bash(git *)", "never runs"),
    ] {
        let hook = json!({ "type": "command", "command": "exit 2", "if": condition });
        let text = json!({ "hooks": { event: [{ "hooks": [hook] }] } }).to_string();
        let error = crate::load(CLAUDE, &text).unwrap_err().render(false);
        assert!(error.contains(expected), "{condition}: {error}");
        assert!(error.contains(condition), "{condition}: {error}");
    }
    // A hook that cannot stop anything is left out, with a warning.
    let hook = json!({ "type": "command", "command": "true", "if": "Bash" });
    let text = json!({ "hooks": { "SessionEnd": [{ "hooks": [hook] }] } }).to_string();
    let loaded = crate::load(CLAUDE, &text).unwrap();
    assert!(loaded.specs.is_empty());
    assert!(loaded.warnings[0].message.contains("never runs"));
}

#[tokio::test]
async fn a_pattern_that_is_not_read_leaves_the_hook_on() {
    let hook =
        json!({ "type": "command", "command": "exit 2", "if": "WebFetch(domain:example.com)" });
    let session = Session::new(&[(CLAUDE, &claude(&hook, ""))]);
    let fetch = crate::imported::call("web_fetch", &json!({ "url": "https://example.org" }));
    assert!(!session.send(CLAUDE, fetch).await.decision().is_proceed());
    assert!(
        session
            .send(CLAUDE, shell("ls"))
            .await
            .decision()
            .is_proceed()
    );
    let warnings = session.load(CLAUDE).warnings;
    assert!(
        warnings[0]
            .message
            .contains("runs for every call of the tool"),
        "{warnings:?}"
    );
}

#[tokio::test]
async fn a_system_without_conditions_runs_the_hook_for_every_call() {
    let hook = json!({ "type": "command", "command": "echo no >&2; exit 2", "if": "Bash(git *)" });
    let text = json!({ "hooks": { "PreToolUse": [{ "hooks": [hook] }] } }).to_string();
    let session = Session::new(&[(CODEX, &text)]);
    assert!(
        !session
            .send(CODEX, shell("ls"))
            .await
            .decision()
            .is_proceed()
    );
    let warnings = session.load(CODEX).warnings;
    assert!(warnings[0].message.contains("`if`"), "{warnings:?}");
}

#[test]
fn a_matcher_in_the_form_of_a_permission_rule_is_an_error() {
    for (path, matcher, expected) in [
        (CLAUDE, "Bash(git *)", "the key `if` with `Bash(git *)`"),
        (CLAUDE, "Edit(src/**)", "the matcher `Edit`"),
        (
            CLAUDE,
            "mcp__github__push(main *)",
            "the matcher `mcp__github__push`",
        ),
        (CODEX, "Bash(git:*)", "the matcher `Bash`"),
    ] {
        let error = crate::load(path, &claude(&command("true"), matcher))
            .unwrap_err()
            .render(false);
        assert!(
            error.contains(&format!(
                "the matcher `{matcher}` has the form of a permission rule"
            )),
            "{error}"
        );
        assert!(error.contains(expected), "{error}");
    }
    let native = "hooks: [{event: pre_tool_use, matcher: 'shell(git *)', command: cat}]";
    let error = crate::load("hooks.yaml", native).unwrap_err().render(false);
    assert!(
        error.contains("`shell(git *)` has the form of a permission rule"),
        "{error}"
    );
    for matcher in [
        "Notebook(Edit|Read)",
        "mcp__memory__(read|write)",
        "(Bash|Edit)",
        "Bash(Output)?",
        "Edit|Write",
    ] {
        assert!(
            crate::load(CLAUDE, &claude(&command("true"), matcher)).is_ok(),
            "{matcher}"
        );
    }
    // The subject of other events is not a tool.
    let text = json!({ "hooks": { "SessionStart": [{ "matcher": "Read(x *)", "hooks": [command("true")] }] } });
    assert!(crate::load(CLAUDE, &text.to_string()).is_ok());
}

#[test]
fn headers_have_only_the_variables_that_the_hook_allows() {
    let hook = json!({
        "type": "http", "url": "http://127.0.0.1:1/", "allowedEnvVars": ["T", "OWN"],
        "headers": { "Authorization": "Bearer $T ${T}/${OTHER}-$OWN$$", "X": "${env.T}" },
    });
    let text = settings(&json!({ "env": { "OWN": "mine" } }), &hook);
    let mut report = tenterhook_hookfile::Report::new(tenterhook_hookfile::SourceText::new(
        CLAUDE.as_ref(),
        &text,
    ));
    let file = tenterhook_hookfile::read(&mut report);
    assert!(!report.has_errors());
    let tenterhook_hookfile::HookAction::Http(http) = &file.declarations[0].action else {
        panic!("an HTTP hook");
    };
    let values: Vec<_> = http
        .headers
        .iter()
        .map(|header| header.value.as_str())
        .collect();
    assert_eq!(values, ["Bearer ${env.T} ${env.T}/-mine$$", ""]);
}

#[test]
fn every_key_is_carried_over_or_reported() {
    for (more, hook, expected) in [
        (
            json!({ "modules": ["./a.ts"] }),
            json!({}),
            Err("`modules` cannot be used"),
        ),
        (
            json!({ "allowedHttpHookUrls": ["https://x/*"] }),
            json!({ "type": "http", "url": "https://y/" }),
            Err("the file restricts HTTP hooks"),
        ),
        (json!({ "allowedHttpHookUrls": [] }), json!({}), Ok("")),
        (
            json!({ "permissions": {}, "model": "x" }),
            json!({}),
            Ok(""),
        ),
        (
            json!({}),
            json!({ "env": { "A": "b" } }),
            Ok("the key `env`"),
        ),
        (json!({}), json!({ "cwd": "/tmp" }), Ok("the key `cwd`")),
        (
            json!({}),
            json!({ "onfailure": "block" }),
            Ok("the key `onfailure`"),
        ),
        (
            json!({}),
            json!({ "once": true }),
            Ok("`once` is not supported"),
        ),
        (
            json!({}),
            json!({ "asyncRewake": true }),
            Ok("`asyncRewake` is not supported"),
        ),
        (
            json!({}),
            json!({ "holdsTools": true }),
            Ok("the agent waits"),
        ),
        (
            json!({}),
            json!({ "statusMessage": "x", "timeout": 5 }),
            Ok(""),
        ),
        (
            json!({ "disableAllHooks": true }),
            json!({}),
            Ok("none of the hooks of this file run"),
        ),
    ] {
        let mut whole = command("true");
        let hook_map = whole.as_object_mut().unwrap();
        hook_map.extend(hook.as_object().unwrap().clone());
        match (crate::load(CLAUDE, &settings(&more, &whole)), expected) {
            (Ok(loaded), Ok("")) => assert_eq!(loaded.warnings.len(), 0, "{more} {hook}"),
            (Ok(loaded), Ok(expected)) => {
                let found = &loaded.warnings[0].message;
                assert!(found.contains(expected), "{more} {hook}: {found}");
            }
            (Err(error), Err(expected)) => {
                let error = error.render(false);
                assert!(error.contains(expected), "{more} {hook}: {error}");
            }
            (found, _) => panic!("{more} {hook}: {:?}", found.map(|loaded| loaded.warnings)),
        }
    }
}

#[test]
fn keys_without_effect_next_to_a_matcher_are_reported() {
    let text = json!({ "hooks": { "PreToolUse": [
        { "matcher": "Bash", "if": "Bash(git *)", "timeout": 1, "zzz": 2, "hooks": [command("true")] },
    ] } });
    let loaded = crate::load(CLAUDE, &text.to_string()).unwrap();
    let found: Vec<_> = loaded
        .warnings
        .iter()
        .map(|it| it.message.as_str())
        .collect();
    assert_eq!(
        found,
        [
            "`if` has no effect in an entry of `PreToolUse`; write it in each of its hooks",
            "`timeout` has no effect in an entry of `PreToolUse`; write it in each of its hooks",
            "the key `zzz` of an entry of `PreToolUse` is unknown and has no effect",
        ]
    );
}
