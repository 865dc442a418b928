//! What an agent writes into a project before anyone approved it neither stops nor delays guards, and does not run
//! as a part of them.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::time::Instant;

#[cfg(target_os = "linux")]
use crate::opened::Opened;
use crate::stage::{Ran, Test};

/// An extension that blocks every call.
const GUARD: &str = "
import { word } from './word.js';
export default (pi) => {
  pi.on('tool_call', async () => ({ block: true, reason: word }));
};
";

/// Returns a project with an approved extension.
fn guarded() -> Ran {
    let ran = Test::new()
        .file(".pi/extensions/guard/index.js", GUARD)
        .file(
            ".pi/extensions/guard/word.js",
            "export const word = 'approved';\n",
        )
        .args(["trust", "--all"])
        .run();
    assert_eq!(ran.status, 0, "{}{}", ran.stdout, ran.stderr);
    // The first start may read again what was written just before.
    blocks(ran)
}

fn fire(before: Ran) -> Test {
    let args = ["fire", "pre_tool_use", "--no-journal", "--tool", "shell"];
    before.again(args).args(["--arg", "cmd=ls"])
}

/// Fires a tool call, and asserts that the approved extension blocks it.
fn blocks(before: Ran) -> Ran {
    let ran = fire(before).run();
    assert_eq!(ran.status, 2, "{}{}", ran.stdout, ran.stderr);
    assert!(
        ran.stdout.contains("approved"),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
    ran
}

fn write(ran: &Ran, path: &str, text: &str) {
    let path = ran.path("work").join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn show(before: Ran) -> Ran {
    let ran = before.again(["trust", "--show"]).run();
    // Files that no one can approve are problems.
    assert!(matches!(ran.status, 0 | 3), "{}{}", ran.stdout, ran.stderr);
    ran
}

#[test]
fn unapproved_code_that_would_overflow_the_stack_of_a_parser_stops_no_guard() {
    let ran = guarded();
    for (open, close) in [("(", ")"), ("[", "]"), ("{", "}"), ("!", ""), ("`${", "")] {
        let deep = format!("x = {}1{};\n", open.repeat(200_000), close.repeat(200_000));
        let name = open.len() + usize::from(open.as_bytes()[0]);
        write(&ran, &format!(".pi/extensions/deep{name}.ts"), &deep);
        write(&ran, &format!(".pi/extensions/folder{name}/deep.ts"), &deep);
        write(&ran, &format!(".pi/extensions/folder{name}/index.ts"), "");
        let json = format!("{{\"pi\": {}", "[".repeat(200_000));
        write(
            &ran,
            &format!(".pi/extensions/folder{name}/package.json"),
            &json,
        );
    }
    let shown = show(blocks(ran));
    assert!(shown.stdout.contains("10 untrusted"), "{}", shown.stdout);
}

#[test]
fn unapproved_code_with_literals_without_an_end_delays_no_guard() {
    let ran = guarded();
    for (name, part) in [("pattern", "/["), ("quote", "\\'"), ("quotes", "\\\"")] {
        let text = format!("x = '{}", part.repeat(1 << 20));
        write(&ran, &format!(".pi/extensions/{name}.js"), &text);
        write(&ran, &format!(".pi/extensions/{name}/index.js"), &text);
    }
    let shown = show(blocks(ran));
    assert!(shown.stdout.contains("6 untrusted"), "{}", shown.stdout);
}

#[cfg(target_os = "linux")]
#[test]
fn a_thousand_unapproved_extensions_are_not_read_at_a_start() {
    let ran = guarded();
    let began = Instant::now();
    let ran = blocks(ran);
    let alone = began.elapsed();
    for number in 0..1_000 {
        write(&ran, &format!(".pi/extensions/{number}.js"), "");
    }
    let opened = Opened::watch(&[&ran.path("work/.pi/extensions")]);
    let began = Instant::now();
    let ran = blocks(ran);
    println!("{alone:?} alone, {:?} next to 1000 others", began.elapsed());
    assert_eq!(opened.count(), 0);
    assert!(
        ran.stderr
            .contains("1000 hooks are not approved and did not run"),
        "{}",
        ran.stderr
    );
    let shown = show(ran);
    assert!(shown.stdout.contains("1000 untrusted"), "{}", shown.stdout);
}

#[cfg(target_os = "linux")]
#[test]
fn a_huge_unapproved_file_is_not_read_at_a_start() {
    // Reading one of these files would take hours.
    let huge = |path: &Path| {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::File::create(path).unwrap().set_len(1 << 42).unwrap();
    };
    let ran = guarded();
    let began = Instant::now();
    let mut ran = blocks(ran);
    let alone = began.elapsed();
    let extensions = ran.path("work/.pi/extensions");
    for number in 0..5 {
        let folder = format!(".pi/extensions/e{number}");
        write(&ran, &format!("{folder}/index.js"), "");
        huge(&extensions.join(format!("e{number}/data")));
        huge(&extensions.join(format!("e{number}/package.json")));
        huge(&extensions.join(format!("single{number}.js")));
    }
    huge(&ran.path("work/.kodelet/hooks/tool"));
    huge(&ran.path("work/.tenterhook/big.sh"));
    let tool = ran.path("work/.kodelet/hooks/tool");
    fs::set_permissions(tool, fs::Permissions::from_mode(0o755)).unwrap();
    let hooks = "hooks: [{name: own, event: pre_tool_use, command: [.tenterhook/big.sh]}]\n";
    write(&ran, ".tenterhook/hooks.yaml", hooks);
    let began = Instant::now();
    ran = blocks(ran);
    println!("{alone:?} alone, {:?} next to huge files", began.elapsed());
    let listed = ran.again(["list"]).run();
    assert_eq!(listed.status, 0, "{}{}", listed.stdout, listed.stderr);
    // A review refuses them without reading them.
    let shown = show(listed);
    assert!(
        shown.stderr.contains("an approval covers at most 256 MiB"),
        "{}",
        shown.stderr
    );
    // What is planted in an approved folder is not read either.
    huge(&extensions.join("guard/planted.js"));
    huge(&extensions.join("guard/data"));
    let ran = blocks(shown);
    assert!(ran.stderr.contains("its files changed"), "{}", ran.stderr);
    huge(&extensions.join("guard/word.js"));
    let ran = blocks(ran);
    huge(&extensions.join("guard/index.js"));
    let _unchanged = blocks(ran);
}

#[test]
fn a_file_that_is_planted_in_the_approved_copies_is_removed() {
    let head = "const word = await import('./plugin.js').then((it) => it.word, () => 'approved');";
    let ran = Test::new()
        .file(
            ".pi/extensions/guard/index.js",
            &GUARD.replace("import { word } from './word.js';", head),
        )
        .args(["trust", "--all"])
        .run();
    let ran = blocks(ran);
    let files = ran.path("home/.local/share/tenterhook/trust/files");
    let copy = ["", ""].iter().fold(files, |dir, _| {
        fs::read_dir(dir).unwrap().next().unwrap().unwrap().path()
    });
    let planted = copy.join(".pi/extensions/guard/plugin.js");
    fs::write(&planted, "export const word = 'planted';\n").unwrap();
    let ran = blocks(ran);
    assert!(!planted.exists());
    // The same goes for the copies of a hook whose files changed.
    fs::write(&planted, "export const word = 'planted';\n").unwrap();
    write(&ran, ".pi/extensions/guard/new.js", "");
    let _removed = blocks(ran);
    assert!(!planted.exists());
}

/// Writes programs into a folder that leave a mark if they run.
fn plant(dir: &Path, mark: &Path) {
    fs::create_dir_all(dir).unwrap();
    for name in ["node", "python3", "pi"] {
        let path = dir.join(name);
        let text = format!(
            "#!/bin/sh\ntouch '{}'\nexec /usr/bin/env -u PATH {name} \"$@\"\n",
            mark.display()
        );
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let package =
        r#"{"name": "@mariozechner/pi-coding-agent", "type": "module", "exports": "./evil.js"}"#;
    fs::write(dir.join("package.json"), package).unwrap();
    let code = format!(
        "import fs from 'node:fs'; fs.writeFileSync('{}', ''); export const VERSION = '0';",
        mark.display()
    );
    fs::write(dir.join("evil.js"), code).unwrap();
}

/// An extension that needs a package of pi.
const OF_PI: &str = "
import { VERSION } from '@mariozechner/pi-coding-agent';
export default (pi) => {
  pi.on('tool_call', async () => ({ block: true, reason: `approved ${VERSION}` }));
};
";

const OF_PYTHON: &str = "
from tenterhook import deny, on

@on('pre_tool_use')
def guard(event):
    return deny('approved')
";

/// A hook of kodelet that blocks, with an interpreter from the search path.
const EXECUTABLE: &str = "#!/usr/bin/env python3
import json, sys
print('before_tool_call' if sys.argv[1] == 'hook' else json.dumps({'blocked': True, 'reason': 'approved'}))
";

#[test]
fn no_program_and_no_package_of_the_project_runs_through_the_search_path() {
    let real = std::env::var("PATH").unwrap();
    for (kind, user, project) in [
        (
            "pi, of the user",
            Some(("home/.pi/agent/extensions/g.js", OF_PI)),
            None,
        ),
        ("pi", None, Some((".pi/extensions/g.js", OF_PI))),
        (
            "python, of the user",
            Some(("home/.kodelet/hooks/g", EXECUTABLE)),
            None,
        ),
        ("python", None, Some((".tenterhook/hooks/g.py", OF_PYTHON))),
        ("executable", None, Some((".kodelet/hooks/g", EXECUTABLE))),
    ] {
        for bin in ["work/.venv/bin", "link", "linked", "relative"] {
            let mut test = Test::new();
            fs::create_dir_all(test.work().join("sub")).unwrap();
            fs::create_dir(test.work().join(".git")).unwrap();
            let below = test.work().join("sub");
            let root = test.work().parent().unwrap().to_owned();
            for (path, text) in user
                .map(|(path, text)| (root.join(path), text))
                .into_iter()
                .chain(project.map(|(path, text)| (below.join(path), text)))
            {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(&path, text).unwrap();
                if text == EXECUTABLE {
                    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
                }
            }
            if project.is_some() {
                let ran = test.args(["trust", "--all"]).after("cd sub").run();
                assert_eq!(ran.status, 0, "{kind}: {}{}", ran.stdout, ran.stderr);
                test = fire(ran);
            } else {
                test = test.args(["fire", "pre_tool_use", "--no-journal", "--tool", "shell"]);
                test = test.args(["--arg", "cmd=ls"]);
            }
            let mark = root.join("ran");
            plant(&root.join("work/.venv/bin"), &mark);
            symlink(root.join("work/.venv/bin"), root.join("link")).unwrap();
            fs::create_dir(root.join("linked")).unwrap();
            for name in ["node", "python3", "pi"] {
                let program = root.join("work/.venv/bin").join(name);
                symlink(program, root.join("linked").join(name)).unwrap();
            }
            // A script finds its interpreter by the same search, but a link to it is the user's own program.
            if bin == "linked" && user.is_some_and(|(_, text)| text == EXECUTABLE) {
                continue;
            }
            let bin = match bin {
                "relative" => "../.venv/bin".to_owned(),
                bin => root.join(bin).display().to_string(),
            };
            let ran = test.after(&format!("cd sub; PATH={bin}:{real}")).run();
            assert_eq!(ran.status, 2, "{kind}, {bin}: {}{}", ran.stdout, ran.stderr);
            assert!(
                !mark.exists(),
                "{kind}, {bin}: {}{}",
                ran.stdout,
                ran.stderr
            );
        }
    }
}
