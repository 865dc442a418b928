//! What the README promises: its first guard, the examples, and a test for every guarantee.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::stage::Test;

/// Attacks on the guard, each with whether it must be denied.
const LINES: &[(&str, bool)] = &[
    ("sudo reboot", true),
    (" sudo reboot", true),
    ("cd x && sudo reboot", true),
    ("/usr/bin/sudo reboot", true),
    ("git push -f", true),
    ("git push --force", true),
    ("git push origin main --force", true),
    ("git push origin +main", true),
    ("git difftool -x 'sudo reboot'", true),
    ("git difftool -y --extcmd='git push -f' main", true),
    ("git -c core.pager='sudo less' log", true),
    ("timeout 5 sudo reboot", true),
    ("nice -n 5 setsid sudo reboot", true),
    ("env A=1 sudo reboot", true),
    ("sh -c 'sudo reboot'", true),
    ("bash -lc 'cd x; git push --force'", true),
    ("echo reboot | xargs sudo", true),
    ("busybox sh -c 'sudo reboot'", true),
    (
        "timeout 5 sh -c \"nohup busybox sh -c 'sudo reboot'\"",
        true,
    ),
    ("git push origin main", false),
    ("timeout 5 git push origin main", false),
    ("ls", false),
];

/// Every page that users read.
fn pages() -> Vec<(String, String)> {
    fn collect(path: &Path, pages: &mut Vec<(String, String)>) {
        if path.is_dir() {
            for entry in fs::read_dir(path).unwrap() {
                collect(&entry.unwrap().path(), pages);
            }
        } else if path.extension().is_some_and(|it| it == "md") {
            pages.push((
                path.display().to_string(),
                fs::read_to_string(path).unwrap(),
            ));
        }
    }
    let mut pages = Vec::new();
    for place in ["README.md", "CONTRIBUTING.md", "docs"] {
        collect(&root().join(place), &mut pages);
    }
    pages.sort();
    pages
}

/// The first line and the text of each fenced block of a page.
fn blocks(page: &str) -> Vec<(&str, String)> {
    let mut blocks: Vec<(&str, String)> = Vec::new();
    let mut is_inside = false;
    for line in page.lines() {
        match line.strip_prefix("```") {
            Some(_) if is_inside => is_inside = false,
            Some(language) => {
                is_inside = true;
                blocks.push((language, String::new()));
            }
            None if is_inside => {
                let (_, text) = blocks.last_mut().unwrap();
                text.push_str(line);
                text.push('\n');
            }
            None => {}
        }
    }
    blocks
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn assert_guards(event: &str, hooks: &str) {
    for (line, is_denied) in LINES {
        let call = json!({ "tool_name": "shell", "tool_input": { "cmd": line } });
        let ran = Test::new()
            .args(["fire", event, "--no-journal"])
            .event(&call.to_string())
            .hooks(hooks)
            .run();
        let expected = if *is_denied { 2 } else { 0 };
        assert_eq!(ran.status, expected, "{line}: {}", ran.stderr);
    }
}

#[test]
fn the_first_guard_of_the_readme_cannot_be_slipped_past() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let guard = readme.split("```yaml file=hooks.yaml\n").nth(1).unwrap();
    assert_guards("tool_guard", guard.split("```").next().unwrap());
}

/// `.ci/pages` runs the files that have a name.
#[test]
fn every_hook_file_of_the_documentation_is_valid() {
    let mut checked = 0;
    for (name, page) in pages() {
        for (language, text) in blocks(&page) {
            if language != "yaml"
                || !text.starts_with("hooks:")
                || text.contains('…')
                || text.contains("\ncases:")
            {
                continue;
            }
            let ran = Test::new()
                .args(["check", "hooks.yaml"])
                .file("hooks.yaml", &text)
                .run();
            // The programs of an example are not on this machine.
            let mut errors = ran
                .stderr
                .lines()
                .filter(|line| line.starts_with("error: "));
            let is_about_programs = errors
                .all(|line| line.starts_with("error: program `") || line.contains(" problem in "));
            let is_valid = ran.status == 0 || is_about_programs;
            assert!(is_valid, "{name}:\n{text}\n{}", ran.stderr);
            checked += 1;
        }
    }
    assert!(checked > 15, "{checked}");
}

#[test]
fn the_guard_of_the_example_agent_cannot_be_slipped_past() {
    let text = fs::read_to_string(root().join("examples/agent.yaml")).unwrap();
    assert_guards("pre_tool_use", &text);
}

#[test]
fn the_rules_of_the_example_agent_allow_no_command_that_another_one_runs() {
    let text = fs::read_to_string(root().join("examples/agent.yaml")).unwrap();
    for (line, runs) in [
        ("git diff --stat", true),
        ("git status", true),
        ("git difftool -y -x ./evil", false),
        ("git diff --output=evil", false),
        ("git -c core.pager=./evil diff", false),
    ] {
        let script = format!(
            "turns:\n  - tool_calls: [{{name: shell, arguments: {{cmd: {line}}}}}]\n  - text: done\n"
        );
        let ran = Test::new()
            .args(["run", "go", "--no-journal"])
            .hooks(&text)
            .script(&script)
            .run();
        let is_denied = ran.stdout.contains("denied") || ran.stderr.contains("denied");
        assert_eq!(is_denied, !runs, "{line}: {}{}", ran.stdout, ran.stderr);
    }
}

#[test]
fn the_guard_of_the_example_hooks_cannot_be_slipped_past() {
    let text = fs::read_to_string(root().join("examples/hooks.yaml")).unwrap();
    assert_guards("tool_guard", &text);
}

#[test]
fn every_guarantee_of_the_readme_names_tests_that_exist() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let section = readme.split("## What it guarantees").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let guarantees: Vec<&str> = section.split("\n- **").skip(1).collect();
    assert!(guarantees.len() > 5, "{section}");
    for guarantee in guarantees {
        assert_names_tests(guarantee);
    }
}

#[test]
fn every_guarantee_of_the_page_names_tests_that_exist() {
    let page = fs::read_to_string(root().join("docs/explanation/guarantees.md")).unwrap();
    let lists: Vec<&str> = page.split("\nTests:\n\n").skip(1).collect();
    assert!(lists.len() > 10, "{}", lists.len());
    for list in lists {
        let list = list.split("\n\n").next().unwrap();
        assert_names_tests(&list.replace("](../../", "]("));
    }
}

#[test]
fn every_attack_of_the_threat_model_names_tests_that_exist() {
    let page = fs::read_to_string(root().join("docs/explanation/threat-model.md")).unwrap();
    let section = page.split("## What holds").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with('|'));
    let attacks: Vec<&str> = rows
        .filter(|row| !row.starts_with("| attack |") && !row.starts_with("|---"))
        .collect();
    assert!(attacks.len() > 40, "{}", attacks.len());
    for attack in attacks {
        assert_names_tests(&attack.replace("](../../", "]("));
    }
}

/// Checks that a passage links to at least one test, and that every test it links to exists.
fn assert_names_tests(passage: &str) {
    let links: Vec<(&str, &str)> = passage
        .split("[`")
        .skip(1)
        .map(|link| {
            let (name, rest) = link.split_once("`](").unwrap();
            (name, rest.split(')').next().unwrap())
        })
        .collect();
    assert!(!links.is_empty(), "no test: {passage}");
    for (name, path) in links {
        let file = root().join(path);
        let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{path}: {error}"));
        // A compile-fail test is a file of its own.
        let is_there =
            text.contains(&format!("fn {name}(")) || path.ends_with(&format!("/{name}.rs"));
        assert!(is_there, "no test `{name}` in {path}");
    }
}
