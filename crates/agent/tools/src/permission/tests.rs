//! Tests of permission rules on calls.

use serde_json::json;

use std::path::Path;

use futures_util::future::{BoxFuture, ready};
use serde_json::Value;
use tenterhook_protocol::{JsonObject, ToolResult};

use super::*;
use crate::failure::{InvalidInput, ToolFailure};
use crate::read_file::ReadFile;
use crate::search::Search;
use crate::shell::ShellTool;
use crate::tool::{Tool, ToolContext};
use crate::transfer_task::TransferTask;
use crate::write_file::WriteFile;

fn rule(text: &str) -> Rule {
    text.parse().unwrap()
}

fn judge(permissions: &Permissions, tool: &dyn Tool, input: impl Into<Value>) -> Ruling {
    let input = input.into();
    permissions.judge(tool, input.as_object().unwrap(), Path::new("/work"))
}

#[test]
fn rules_are_a_tool_or_a_tool_with_an_argument() {
    for text in [
        "shell",
        "mcp_*",
        "shell(cmd=git *)",
        "shell(cmd=a=(b))",
        "write_file(path=src/*)",
    ] {
        assert_eq!(rule(text).to_string(), text);
    }
    for text in [
        "",
        "shell(",
        "shell()",
        "shell(cmd)",
        "shell(cmd=)",
        "(cmd=ls)",
        "rm -rf",
        "shell(=ls)",
    ] {
        let expected = format!(
            "`{text}` is not a permission rule; expected `TOOL` or `TOOL(ARGUMENT=PATTERN)`"
        );
        assert_eq!(text.parse::<Rule>().unwrap_err().to_string(), expected);
    }
}

#[test]
fn deny_beats_ask_beats_allow_in_any_order() {
    let all = Permissions::new()
        .allow(rule("shell"))
        .ask(rule("shell(cmd=git *)"))
        .deny(rule("shell(cmd=git push*)"));
    assert_eq!(
        judge(&all, &ShellTool::default(), json!({"cmd": "ls"})),
        Ruling::Allow
    );
    assert_eq!(
        judge(&all, &ShellTool::default(), json!({"cmd": "git log"})),
        Ruling::Ask("shell(cmd=git *)".into())
    );
    assert_eq!(
        judge(&all, &ShellTool::default(), json!({"cmd": "git push"})),
        Ruling::Deny("shell(cmd=git push*)".into())
    );
}

#[test]
fn without_a_rule_only_harmless_tools_run() {
    let none = Permissions::new();
    assert_eq!(
        judge(&none, &ReadFile, json!({"path": "a"})),
        Ruling::Harmless
    );
    assert_eq!(
        judge(&none, &TransferTask::new([]), json!({})),
        Ruling::Harmless
    );
    assert_eq!(
        judge(&none, &ShellTool::default(), json!({"cmd": "ls"})),
        Ruling::Unruled
    );
}

#[test]
fn a_command_that_does_more_never_matches_an_allowing_pattern() {
    let git = Permissions::new().allow(rule("shell(cmd=git *)"));
    assert_eq!(
        judge(&git, &ShellTool::default(), json!({"cmd": "git status -s"})),
        Ruling::Allow
    );
    for cmd in [
        "git status; rm -rf /",
        "git status && rm a",
        "git status & rm a",
        "git log | sh",
        "git log $(rm a)",
        "git log `rm a`",
        "git log\nrm a",
        "git log > /etc/passwd",
        "git log < a",
        "git log ${IFS}a",
        "git log \\\nrm",
    ] {
        assert_eq!(
            judge(&git, &ShellTool::default(), json!({"cmd": cmd})),
            Ruling::Unruled,
            "{cmd}"
        );
    }
    let whole = Permissions::new().allow(rule("shell"));
    assert_eq!(
        judge(&whole, &ShellTool::default(), json!({"cmd": "a; b"})),
        Ruling::Allow
    );
}

#[test]
fn a_wildcard_never_stands_for_a_command_that_another_one_runs() {
    for (allowed, cmd) in [
        ("git *", "git difftool -x ./evil"),
        ("git *", "git difftool --extcmd=./evil"),
        ("git diff*", "git difftool -x ./evil"),
        ("git diff *", "git diff --output=x"),
        ("git *", "git -c core.pager=evil log"),
        ("git *", "git -C evil status"),
        ("git *", "git config core.pager evil"),
        ("git *", "git fetch --upload-pack=./evil ."),
        ("git *", "git rebase -x ./evil main"),
        ("git *", "git archive -o x HEAD"),
        ("git *", "git archive --output=x HEAD"),
        ("git *", "git format-patch -o x main"),
        ("git *", "git format-patch -ox main"),
        ("git *", "git format-patch --output-directory x main"),
        ("git *", "git fast-export --export-marks=x main"),
        ("git *", "git read-tree --index-output=x main"),
        ("git *", "git bundle create x main"),
        ("timeout *", "timeout 5 ./evil"),
        ("timeout 5 *", "timeout 5 ./evil"),
        ("timeout 5 make *", "timeout 5 env ./evil"),
        ("env make *", "env sh -c ./evil"),
        ("sh *", "sh -c ./evil"),
        ("find *", "find . -exec ./evil +"),
        ("xargs *", "xargs ./evil"),
    ] {
        let rules = Permissions::new().allow(rule(&format!("shell(cmd={allowed})")));
        let ruling = judge(&rules, &ShellTool::default(), json!({"cmd": cmd}));
        assert_eq!(ruling, Ruling::Unruled, "{allowed}: {cmd}");
    }
    for (allowed, cmd) in [
        ("git *", "git push -u origin main"),
        ("git *", "git log --oneline -5"),
        ("git diff*", "git diff --stat"),
        ("timeout 5 make *", "timeout 5 make check"),
        ("git difftool -x meld", "git difftool -x meld"),
        ("sh -c 'make *", "sh -c 'make check'"),
        ("find *", "find . -name x"),
    ] {
        let rules = Permissions::new().allow(rule(&format!("shell(cmd={allowed})")));
        let ruling = judge(&rules, &ShellTool::default(), json!({"cmd": cmd}));
        assert_eq!(ruling, Ruling::Allow, "{allowed}: {cmd}");
    }
}

#[test]
fn a_denying_pattern_finds_its_command_behind_any_wrapper() {
    let no_sudo = Permissions::new()
        .allow(rule("shell"))
        .deny(rule("shell(cmd=sudo *)"));
    for cmd in [
        "timeout 5 sudo x",
        "nice -n 5 sudo x",
        "setsid sudo x",
        "sh -c 'sudo x'",
        "bash -lc 'sudo x'",
        "echo x | xargs sudo x",
        "busybox sh -c 'sudo x'",
        "git difftool -x 'sudo x'",
        "find . -exec timeout 5 sh -c 'sudo x' +",
    ] {
        let ruling = judge(&no_sudo, &ShellTool::default(), json!({"cmd": cmd}));
        assert_eq!(ruling, Ruling::Deny("shell(cmd=sudo *)".into()), "{cmd}");
    }
    let ruling = judge(
        &no_sudo,
        &ShellTool::default(),
        json!({"cmd": "timeout 5 echo sudo x"}),
    );
    assert_eq!(ruling, Ruling::Allow);
}

#[test]
fn a_denying_pattern_finds_its_command_among_others() {
    let no_rm = Permissions::new()
        .allow(rule("shell"))
        .deny(rule("shell(cmd=rm *)"));
    for cmd in [
        "rm a",
        "cd / && rm a",
        "true;rm a",
        "echo $(rm a)",
        "echo `rm a`",
        "(rm a)",
        "ls | rm a",
    ] {
        assert_eq!(
            judge(&no_rm, &ShellTool::default(), json!({"cmd": cmd})),
            Ruling::Deny("shell(cmd=rm *)".into()),
            "{cmd}"
        );
    }
    assert_eq!(
        judge(&no_rm, &ShellTool::default(), json!({"cmd": "echo rm a"})),
        Ruling::Allow
    );
}

#[test]
fn a_path_with_dots_is_allowed_by_no_pattern_and_denied_by_where_it_leads() {
    let rules = Permissions::new()
        .allow(rule("write_file(path=src/*)"))
        .deny(rule("write_file(path=secret/*)"));
    assert_eq!(
        judge(&rules, &WriteFile, json!({"path": "src/a"})),
        Ruling::Allow
    );
    assert_eq!(
        judge(&rules, &WriteFile, json!({"path": "src/../../etc/passwd"})),
        Ruling::Unruled
    );
    for path in [
        "secret/a",
        "./secret/a",
        "src/../secret/a",
        "/work/secret/a",
    ] {
        let expected = Ruling::Deny("write_file(path=secret/*)".into());
        assert_eq!(
            judge(&rules, &WriteFile, json!({"path": path})),
            expected,
            "{path}"
        );
    }
}

#[test]
fn a_grant_covers_the_same_command_or_the_same_tool_but_no_deny_rule() {
    let permissions = Permissions::new()
        .ask(rule("shell"))
        .deny(rule("write_file(path=secret*)"));
    let ls = json!({"cmd": "ls"});
    permissions.grant(
        &ShellTool::default(),
        ls.as_object().unwrap(),
        Reach::SameInput,
    );
    assert_eq!(
        judge(&permissions, &ShellTool::default(), ls),
        Ruling::Granted
    );
    assert_eq!(
        judge(&permissions, &ShellTool::default(), json!({"cmd": "ls /"})),
        Ruling::Ask("shell".into())
    );
    permissions.grant(
        &WriteFile,
        json!({"path": "a"}).as_object().unwrap(),
        Reach::WholeTool,
    );
    assert_eq!(
        judge(&permissions, &WriteFile, json!({"path": "b"})),
        Ruling::Granted
    );
    let expected = Ruling::Deny("write_file(path=secret*)".into());
    assert_eq!(
        judge(&permissions, &WriteFile, json!({"path": "secret"})),
        expected
    );
}

#[test]
fn a_grant_for_a_whole_tool_leaves_what_a_rule_asks_about() {
    let permissions = Permissions::new().ask(rule("write_file(path=secret*)"));
    let input = |path: &str| json!({"path": path, "content": ""});
    let asked = Ruling::Ask("write_file(path=secret*)".into());
    permissions.grant(
        &WriteFile,
        input("a").as_object().unwrap(),
        Ruling::Unruled.reach(&WriteFile),
    );
    assert_eq!(judge(&permissions, &WriteFile, input("b")), Ruling::Granted);
    assert_eq!(judge(&permissions, &WriteFile, input("secret")), asked);
    permissions.grant(
        &WriteFile,
        input("secret").as_object().unwrap(),
        asked.reach(&WriteFile),
    );
    assert_eq!(
        judge(&permissions, &WriteFile, input("secret")),
        Ruling::Granted
    );
    assert_eq!(judge(&permissions, &WriteFile, input("secret2")), asked);
}

#[test]
fn a_suggestion_says_what_a_yes_for_the_session_covers() {
    let input = json!({"path": "a", "content": ""});
    let input = input.as_object().unwrap();
    assert_eq!(
        suggestion(&WriteFile, input, Ruling::Unruled.reach(&WriteFile)),
        "write_file"
    );
    assert_eq!(
        suggestion(
            &WriteFile,
            input,
            Ruling::Ask(String::new()).reach(&WriteFile)
        ),
        "write_file(path=a)"
    );
}

#[test]
fn a_command_in_other_clothes_is_denied_and_asked_about_all_the_same() {
    let denied = Permissions::new()
        .allow(rule("shell"))
        .deny(rule("shell(cmd=rm *)"));
    let asked = Permissions::new()
        .allow(rule("shell"))
        .ask(rule("shell(cmd=rm *)"));
    for cmd in [
        "! rm v1",
        "if true; then rm v2; fi",
        "for x in a; do rm v3; done",
        "X=1 rm v5",
        "rm\tv4",
        "'rm' v7",
        "echo \"$(rm v)\"",
        "/bin/rm v",
    ] {
        let input = || json!({"cmd": cmd});
        assert_eq!(
            judge(&denied, &ShellTool::default(), input()),
            Ruling::Deny("shell(cmd=rm *)".into()),
            "{cmd}"
        );
        assert_eq!(
            judge(&asked, &ShellTool::default(), input()),
            Ruling::Ask("shell(cmd=rm *)".into()),
            "{cmd}"
        );
    }
}

#[test]
fn a_directory_that_is_left_out_is_the_sessions() {
    let rules = Permissions::new()
        .deny(rule("search(path=.)"))
        .deny(rule("shell(cwd=.)"));
    assert_eq!(
        judge(&rules, &Search, json!({"pattern": "x"})),
        Ruling::Deny("search(path=.)".into())
    );
    assert_eq!(
        judge(&rules, &Search, json!({"pattern": "x", "path": "a"})),
        Ruling::Harmless
    );
    assert_eq!(
        judge(&rules, &ShellTool::default(), json!({"cmd": "ls"})),
        Ruling::Deny("shell(cwd=.)".into())
    );
    assert_eq!(
        judge(
            &rules,
            &ShellTool::default(),
            json!({"cmd": "ls", "cwd": "/work/a/.."})
        ),
        Ruling::Deny("shell(cwd=.)".into())
    );
}

#[test]
fn the_directory_of_a_command_is_a_path() {
    let rules = Permissions::new()
        .allow(rule("shell(cwd=src/*)"))
        .deny(rule("shell(cwd=secret*)"));
    assert_eq!(
        judge(
            &rules,
            &ShellTool::default(),
            json!({"cmd": "ls", "cwd": "src/(a)"})
        ),
        Ruling::Allow
    );
    assert_eq!(
        judge(
            &rules,
            &ShellTool::default(),
            json!({"cmd": "ls", "cwd": "src/../../a"})
        ),
        Ruling::Unruled
    );
    assert_eq!(
        judge(
            &rules,
            &ShellTool::default(),
            json!({"cmd": "ls", "cwd": "src/../secret"})
        ),
        Ruling::Deny("shell(cwd=secret*)".into())
    );
}

#[cfg(unix)]
#[test]
fn a_hard_link_to_a_file_elsewhere_is_covered_by_no_allow_rule_for_a_path() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    std::fs::create_dir_all(root.join("work/src")).unwrap();
    std::fs::write(root.join("secret"), "").unwrap();
    std::fs::write(root.join("work/src/own"), "").unwrap();
    std::fs::hard_link(root.join("secret"), root.join("work/src/hard")).unwrap();
    std::os::unix::fs::symlink("hard", root.join("work/src/soft")).unwrap();
    let judge = |rules: &Permissions, path: &str| {
        let input = json!({"path": path, "content": ""});
        rules.judge(&WriteFile, input.as_object().unwrap(), &root.join("work"))
    };
    let of_path = Permissions::new().allow(rule("write_file(path=src/*)"));
    assert_eq!(judge(&of_path, "src/own"), Ruling::Allow);
    assert_eq!(judge(&of_path, "src/new"), Ruling::Allow);
    assert_eq!(judge(&of_path, "src/hard"), Ruling::Unruled);
    assert_eq!(judge(&of_path, "src/soft"), Ruling::Unruled);
    let whole = Permissions::new().allow(rule("write_file"));
    assert_eq!(judge(&whole, "src/hard"), Ruling::Allow);
}

#[cfg(unix)]
#[test]
fn a_link_is_judged_by_where_it_leads() {
    use std::os::unix::fs::symlink;

    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    for folder in ["work/src", "work/secret", "out"] {
        std::fs::create_dir_all(root.join(folder)).unwrap();
    }
    symlink(root.join("out"), root.join("work/src/l")).unwrap();
    symlink("../../out/new", root.join("work/src/dangling")).unwrap();
    symlink("secret", root.join("work/alias")).unwrap();
    symlink("work", root.join("here")).unwrap();
    let rules = Permissions::new()
        .allow(rule("write_file(path=src/*)"))
        .deny(rule("write_file(path=secret*)"));
    let denied = Ruling::Deny("write_file(path=secret*)".into());
    for cwd in ["work", "here"] {
        let judge = |path: &str| {
            let input = json!({"path": path, "content": ""});
            rules.judge(&WriteFile, input.as_object().unwrap(), &root.join(cwd))
        };
        assert_eq!(judge("src/a"), Ruling::Allow, "{cwd}");
        assert_eq!(judge("src/new/a"), Ruling::Allow, "{cwd}");
        assert_eq!(judge("src/l"), Ruling::Unruled, "{cwd}");
        assert_eq!(judge("src/l/a"), Ruling::Unruled, "{cwd}");
        assert_eq!(judge("src/dangling"), Ruling::Unruled, "{cwd}");
        assert_eq!(judge("alias/a"), denied, "{cwd}");
        let absolute = root.join("work/alias/a");
        assert_eq!(judge(absolute.to_str().unwrap()), denied, "{cwd}");
    }
    let by_link = Permissions::new().deny(rule("write_file(path=alias/*)"));
    let input = json!({"path": "secret/a", "content": ""});
    assert_eq!(
        by_link.judge(&WriteFile, input.as_object().unwrap(), &root.join("work")),
        Ruling::Deny("write_file(path=alias/*)".into())
    );
}

/// Returns the rows of the table of rules for command lines in the reference: the kind of rule, the rule, the commands,
/// and the result.
fn documented_rows() -> Vec<(String, Rule, Vec<String>, String)> {
    let page = include_str!("../../../../../docs/reference/command-line.md");
    let (_, section) = page.split_once("\n## Permissions of `run`\n").unwrap();
    let (section, _) = section.split_once("\n### ").unwrap();
    let cells = |row: &str| -> Vec<String> {
        let row = row.replace("\\|", "\u{0}");
        let cells = row.trim_matches('|').split('|');
        cells
            .map(|cell| cell.trim().replace('\u{0}', "|"))
            .collect()
    };
    let rows = section.lines().filter(|line| line.starts_with("| `--"));
    rows.map(|row| {
        let cells = cells(row);
        let [option, commands, result] = &cells[..] else {
            panic!("{row}");
        };
        let option = option.trim_matches('`').trim_start_matches("--");
        let (kind, text) = option.split_once(' ').unwrap();
        let quoted = commands.split('`').skip(1).step_by(2);
        let commands: Vec<String> = quoted.map(str::to_owned).collect();
        let result = result.split(':').next().unwrap().to_owned();
        (
            kind.to_owned(),
            rule(text.trim_matches('\'')),
            commands,
            result,
        )
    })
    .collect()
}

#[test]
fn the_rules_for_command_lines_do_what_the_reference_says() {
    let mut checked = Vec::new();
    for (kind, rule, commands, result) in documented_rows() {
        for cmd in commands {
            let rules = Permissions::new();
            let rules = match kind.as_str() {
                "allow" => rules.allow(rule.clone()),
                "ask" => rules.ask(rule.clone()),
                _ => rules.deny(rule.clone()),
            };
            let word = match judge(&rules, &ShellTool::default(), json!({ "cmd": cmd })) {
                Ruling::Deny(_) | Ruling::DenyUnread { .. } => "denied",
                Ruling::Ask(_) => "asked",
                Ruling::Allow => "allowed",
                Ruling::Granted | Ruling::Harmless | Ruling::Unruled => match kind.as_str() {
                    "allow" => "not allowed",
                    _ => "not denied",
                },
            };
            assert_eq!(word, result, "{rule}: {cmd}");
            checked.push(result.clone());
        }
    }
    for result in ["denied", "asked", "allowed", "not allowed", "not denied"] {
        assert!(checked.iter().any(|checked| checked == result), "{result}");
    }
}

#[test]
fn a_line_that_does_not_show_what_it_runs_is_restricted_with_the_reason() {
    let denied = Permissions::new()
        .allow(rule("shell"))
        .deny(rule("shell(cmd=rm *)"));
    let deep = format!("{}ls", "env ".repeat(100));
    for (cmd, reason) in [
        (
            "$(date) x",
            "the program `$(…)` is known only when the command runs; write its name instead",
        ),
        (
            "cd x && /bin/r? x",
            "the program `/bin/r?` is known only when the command runs; write its name instead",
        ),
        (
            deep.as_str(),
            "the command runs other commands that are too many or too deeply nested to be checked",
        ),
    ] {
        let expected = Ruling::DenyUnread {
            rule: "shell(cmd=rm *)".to_owned(),
            reason: reason.to_owned(),
        };
        assert_eq!(
            judge(&denied, &ShellTool::default(), json!({ "cmd": cmd })),
            expected
        );
    }
    // Rules without a command line do not read it.
    let of_folder = Permissions::new()
        .allow(rule("shell"))
        .deny(rule("shell(cwd=secret*)"));
    let ruling = judge(&of_folder, &ShellTool::default(), json!({"cmd": "$x y"}));
    assert_eq!(ruling, Ruling::Allow);
}

/// A tool of an extension with this schema.
#[derive(Debug)]
struct Deploy(Value);

impl Tool for Deploy {
    fn name(&self) -> &'static str {
        "deploy_command"
    }

    fn description(&self) -> String {
        "Deploys.".to_owned()
    }

    fn schema(&self) -> Value {
        self.0.clone()
    }

    fn category(&self) -> &'static str {
        "extension"
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn check(&self, _: &JsonObject) -> Result<(), InvalidInput> {
        Ok(())
    }

    fn run<'a>(
        &'a self,
        _: JsonObject,
        _: ToolContext<'a>,
    ) -> BoxFuture<'a, Result<ToolResult, ToolFailure>> {
        Box::pin(ready(Ok(ToolResult::text("deployed"))))
    }
}

#[test]
fn rules_that_restrict_the_shell_restrict_other_tools_that_run_commands() {
    let rules = Permissions::new()
        .ask(rule("shell(cmd=git *)"))
        .deny(rule("shell(cmd=rm *)"))
        .allow(rule("shell"));
    let any = Deploy(json!({ "properties": { "command": { "type": "string" } } }));
    for (input, expected) in [
        (
            json!({ "command": "rm -rf x" }),
            Ruling::Deny("shell(cmd=rm *)".into()),
        ),
        (
            json!({ "args": ["sh", "-c", "rm -rf x"] }),
            Ruling::Deny("shell(cmd=rm *)".into()),
        ),
        (
            json!({ "command": "git push" }),
            Ruling::Ask("shell(cmd=git *)".into()),
        ),
        // Only a rule for the tool itself allows it.
        (json!({ "command": "ls" }), Ruling::Harmless),
    ] {
        assert_eq!(judge(&rules, &any, input.clone()), expected, "{input}");
    }
    let rules = Permissions::new().deny(rule("shell"));
    let words = json!({ "properties": { "command": { "enum": ["start", "stop"] } } });
    assert_eq!(
        judge(&rules, &any, json!({ "command": "start" })),
        Ruling::Deny("shell".into())
    );
    assert_eq!(
        judge(&rules, &Deploy(words), json!({ "command": "start" })),
        Ruling::Harmless
    );
}
