//! Approved extensions of a project run from a copy that has everything they need, and nothing else.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

#[cfg(target_os = "linux")]
use crate::opened::Opened;
use crate::stage::{Ran, Test};

/// An extension that blocks every call. The reason is what `word` returns.
const GUARD: &str = "
export default (pi) => {
  pi.on('tool_call', async () => ({ block: true, reason: await word() }));
};
";

/// The package `rules`, whose word comes from the package `words`.
const RULES: [(&str, &str); 4] = [
    (
        "rules/package.json",
        r#"{"name": "rules", "type": "module", "exports": "./index.js", "dependencies": {"words": "1"}}"#,
    ),
    ("rules/index.js", "export { word } from 'words';\n"),
    (
        "words/package.json",
        r#"{"name": "words", "type": "module", "exports": "./index.js"}"#,
    ),
    ("words/index.js", "export const word = () => 'approved';\n"),
];

fn extension(head: &str) -> String {
    format!("{head}{GUARD}")
}

fn packages(mut test: Test, modules: &str) -> Test {
    for (path, text) in RULES {
        test = test.file(&format!("{modules}/{path}"), text);
    }
    test
}

fn approve(test: Test) -> Ran {
    let ran = test.args(["trust", "--all"]).run();
    assert_eq!(ran.status, 0, "{}{}", ran.stdout, ran.stderr);
    ran
}

/// Fires a tool call, and asserts that the extension blocks it with this reason.
fn blocks(before: Ran, reason: &str) -> Ran {
    let args = ["fire", "pre_tool_use", "--no-journal", "--tool", "shell"];
    let ran = before.again(args).args(["--arg", "cmd=ls"]).run();
    assert_eq!(ran.status, 2, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains(reason), "{}{}", ran.stdout, ran.stderr);
    ran
}

/// Returns the folders with the approved copies.
fn copies(ran: &Ran) -> Vec<std::path::PathBuf> {
    let projects = fs::read_dir(ran.path("home/.local/share/tenterhook/trust/files")).unwrap();
    let folders = projects.flat_map(|project| fs::read_dir(project.unwrap().path()).unwrap());
    folders.map(|folder| folder.unwrap().path()).collect()
}

#[test]
fn an_extension_finds_every_file_of_its_folder_and_offers_its_skills() {
    let test = Test::new()
        .file(
            ".pi/extensions/kit/index.ts",
            "import { readFileSync } from 'node:fs';
import { join } from 'node:path';
const read = (name: string) => readFileSync(join(__dirname, name), 'utf8').trim();
export default (pi: any) => {
  pi.on('resources_discover', async () => ({ skillPaths: [join(__dirname, 'skills', 'tidy', 'SKILL.md')] }));
  pi.on('tool_call', async () => ({
    block: true,
    reason: [JSON.parse(read('data.json')).word, read('rules.yaml'), read('skills/tidy/notes')].join(' '),
  }));
};
",
        )
        .file(".pi/extensions/kit/data.json", r#"{"word": "one"}"#)
        .file(".pi/extensions/kit/rules.yaml", "two\n")
        .file(".pi/extensions/kit/skills/tidy/notes", "three\n")
        .file(
            ".pi/extensions/kit/skills/tidy/SKILL.md",
            "---\nname: tidy\ndescription: Tidies up.\n---\nTidy.\n",
        )
        .file("script.yaml", "turns: [{text: done}]\n");
    let ran = blocks(approve(test), "one two three");
    let args = [
        "run",
        "go",
        "--yes",
        "--no-journal",
        "--model",
        "scripted:script.yaml",
    ];
    let ran = ran.again(args).run();
    assert_eq!(
        (ran.status, ran.stderr.contains("warning")),
        (0, false),
        "{}",
        ran.stderr
    );
}

#[test]
fn packages_of_the_project_are_copied_with_the_extension_that_imports_them() {
    for modules in [
        "node_modules",
        ".pi/node_modules",
        ".pi/extensions/node_modules",
    ] {
        let test = packages(Test::new(), modules)
            .file(
                ".pi/extensions/guard/index.js",
                &extension("import { word } from 'rules';"),
            )
            .file(&format!("{modules}/other/index.js"), "");
        let ran = blocks(approve(test), "approved");
        for copy in copies(&ran) {
            assert!(
                copy.join(modules).join("words/index.js").is_file(),
                "{modules}"
            );
            assert!(
                !copy.join(modules).join("other").exists(),
                "{modules}: nothing imports it"
            );
        }
        // What the agent does to the packages of the project changes nothing.
        fs::write(
            ran.path("work").join(modules).join("words/index.js"),
            "export const word = () => 'replaced';\n",
        )
        .unwrap();
        let ran = blocks(ran, "approved");
        assert!(ran.stderr.contains("its files changed"), "{}", ran.stderr);
        fs::remove_dir_all(ran.path("work").join(modules)).unwrap();
        let _unchanged = blocks(ran, "approved");
    }
}

#[test]
fn a_single_file_finds_its_helpers_and_its_packages() {
    let test = packages(Test::new(), ".pi/extensions/node_modules")
        .file(
            ".pi/extensions/guard.ts",
            &extension("import { helped as word } from './helper.js';"),
        )
        .file(
            ".pi/extensions/helper.ts",
            "import { word } from 'rules';
import { suffix } from './lib/suffix';
export const helped = () => word() + suffix;
export default () => {};
",
        )
        .file(
            ".pi/extensions/lib/suffix.ts",
            "export const suffix: string = ' with help';\n",
        );
    let _approved = blocks(approve(test), "approved with help");
}

#[test]
fn what_is_planted_after_the_approval_does_not_run() {
    let head = "import { word as own } from 'rules';
const word = () => import('./plugin.js').then((plugin) => plugin.word, () => own());";
    let test = packages(Test::new(), "node_modules")
        .file(".pi/extensions/guard/index.js", &extension(head));
    let ran = blocks(approve(test), "approved");
    let planted = [
        (
            ".pi/extensions/guard/plugin.js",
            "export const word = 'planted';\n",
        ),
        (
            ".pi/extensions/guard/node_modules/rules/index.js",
            "exports.word = () => 'planted';\n",
        ),
        (
            ".pi/node_modules/rules/index.js",
            "exports.word = () => 'planted';\n",
        ),
        (
            "node_modules/words/index.js",
            "export const word = () => 'planted';\n",
        ),
    ];
    let mut ran = ran;
    for (path, text) in planted {
        let path = ran.path("work").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        ran = blocks(ran, "approved");
        assert!(ran.stderr.contains("its files changed"), "{}", ran.stderr);
    }
    let link = ran.path("work/.pi/extensions/guard/link");
    symlink("/etc", &link).unwrap();
    ran = blocks(ran, "approved");
    assert!(
        ran.stderr.contains("its approved version is in force"),
        "{}",
        ran.stderr
    );
    fs::remove_file(&link).unwrap();
    // A new approval covers what is there now.
    let ran = ran.again(["trust", "--all"]).run();
    let _approved = blocks(ran, "planted");
}

/// An extension of kodelet in JavaScript. Its wrapper starts it as kodelet's SDK does.
const KODELET: &str = "
import { readFileSync } from 'node:fs';
const reason = readFileSync(new URL('../prompt.md', import.meta.url), 'utf8').trim();
let text = '';
process.stdin.setEncoding('latin1').on('data', (data) => {
  text += data;
  for (;;) {
    const head = /^content-length: (\\d+)\\r?\\n\\r?\\n/i.exec(text);
    if (!head || text.length < head[0].length + Number(head[1])) return;
    const body = text.slice(head[0].length, head[0].length + Number(head[1]));
    text = text.slice(head[0].length + Number(head[1]));
    const message = JSON.parse(body);
    if (message.id === undefined) continue;
    const isStart = message.method === 'extension.initialize';
    const result = isStart ? { subscriptions: [{ event: 'tool.call' }] } : { block: { reason } };
    const answer = JSON.stringify({ jsonrpc: '2.0', id: message.id, result });
    process.stdout.write(`Content-Length: ${Buffer.byteLength(answer)}\\r\\n\\r\\n${answer}`);
  }
});
";

fn kodelet() -> Test {
    let dir = ".kodelet/extensions/guard";
    let test = Test::new()
        .executable(
            &format!("{dir}/kodelet-extension-guard"),
            "#!/bin/sh\ncd \"$(dirname \"$0\")\" || exit 1\nexec ./node_modules/.bin/start src/index.mjs\n",
        )
        .executable(&format!("{dir}/node_modules/starter/cli.sh"), "#!/bin/sh\nexec node \"$1\"\n")
        .file(&format!("{dir}/src/index.mjs"), KODELET)
        .file(&format!("{dir}/prompt.md"), "the prompt says no\n");
    let bin = test.work().join(dir).join("node_modules/.bin");
    fs::create_dir(&bin).unwrap();
    symlink("../starter/cli.sh", bin.join("start")).unwrap();
    test
}

#[test]
fn an_extension_of_kodelet_starts_through_a_link_to_a_program_of_its_packages() {
    let ran = blocks(approve(kodelet()), "the prompt says no");
    let copy = copies(&ran)
        .remove(0)
        .join(".kodelet/extensions/guard/node_modules/.bin/start");
    assert_eq!(
        fs::read_link(&copy).unwrap(),
        Path::new("../starter/cli.sh")
    );
    fs::remove_dir_all(ran.path("work/.kodelet")).unwrap();
    let _unchanged = blocks(ran, "the prompt says no");
}

#[test]
fn a_link_with_a_whole_path_leads_to_the_copy_too() {
    let test = kodelet();
    let modules = test.work().join(".kodelet/extensions/guard/node_modules");
    let link = modules.join(".bin/start");
    fs::remove_file(&link).unwrap();
    symlink(modules.join("starter/cli.sh"), &link).unwrap();
    let ran = blocks(approve(test), "the prompt says no");
    let copy = copies(&ran)
        .remove(0)
        .join(".kodelet/extensions/guard/node_modules/.bin/start");
    assert_eq!(
        fs::read_link(&copy).unwrap(),
        Path::new("../starter/cli.sh")
    );
}

#[test]
fn a_link_out_of_an_extension_is_refused() {
    let test = Test::new()
        .file(
            ".pi/extensions/guard/index.js",
            &extension("const word = () => 'no';"),
        )
        .file("elsewhere/secret", "");
    symlink(
        "../../../elsewhere",
        test.work().join(".pi/extensions/guard/data"),
    )
    .unwrap();
    let ran = test.args(["trust", "--all"]).run();
    assert_eq!(ran.status, 3, "{}{}", ran.stdout, ran.stderr);
    for part in [
        "`.pi/extensions/guard/data` is a link to ",
        "elsewhere`, which is not part of the extension",
        "replace the link with the file or folder itself, or remove it",
        "error: 1 source of this project cannot be approved",
    ] {
        assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
    }
    assert!(
        !ran.path("home/.local/share/tenterhook/trust/files")
            .exists(),
        "nothing is approved"
    );
}

#[test]
fn an_extension_with_too_many_files_is_refused_when_it_is_approved() {
    let test = Test::new().file(
        ".pi/extensions/guard/index.js",
        &extension("const word = () => 'no';"),
    );
    let data = test.work().join(".pi/extensions/guard/data");
    fs::create_dir(&data).unwrap();
    for number in 0..10_050 {
        fs::write(data.join(number.to_string()), "").unwrap();
    }
    let ran = test.args(["trust", "--all"]).run();
    assert_eq!(ran.status, 3, "{}{}", ran.stdout, ran.stderr);
    for part in [
        "`.pi/extensions/guard` and the packages that it imports have 10051 files; an approval covers at most 10000",
        "remove packages and files that the extension does not need, or bundle it into one file",
    ] {
        assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_start_with_an_approved_extension_reads_none_of_its_packages_again() {
    let modules = ".pi/extensions/guard/node_modules";
    let test = packages(Test::new(), modules).file(
        ".pi/extensions/guard/index.js",
        &extension("import { word } from 'rules';"),
    );
    let data = test.work().join(modules).join("rules/data");
    fs::create_dir(&data).unwrap();
    for number in 0..1_500 {
        fs::write(
            data.join(format!("{number}.js")),
            format!("export default {number};\n"),
        )
        .unwrap();
    }
    // The start after the approval may read again what was written just before.
    let ran = blocks(blocks(approve(test), "approved"), "approved");
    let copy = copies(&ran).remove(0).join(modules).join("rules/data");
    let opened = Opened::watch(&[&data, &copy]);
    let mut ran = blocks(ran, "approved");
    assert_eq!(opened.count(), 0, "unchanged files are not opened");

    // A file with the size of the approved one is read, and no other.
    for (text, read) in [("'changed'", 0), ("8", 1)] {
        fs::write(data.join("7.js"), format!("export default {text};\n")).unwrap();
        let opened = Opened::watch(&[&data, &copy]);
        ran = blocks(ran, "approved");
        assert!(ran.stderr.contains("its files changed"), "{}", ran.stderr);
        assert_eq!(opened.count(), read, "{text}");
    }

    // A damaged copy is found, although its size and its time of change are as before.
    let damaged = copy.join("8.js");
    let time = fs::metadata(&damaged).unwrap().modified().unwrap();
    let other = fs::read_to_string(&damaged).unwrap().replace('8', "9");
    fs::remove_file(&damaged).unwrap();
    fs::write(&damaged, other).unwrap();
    fs::File::open(&damaged)
        .unwrap()
        .set_modified(time)
        .unwrap();
    let ran = blocks(ran, "the approved copy of");
    assert!(ran.stderr.contains("8.js` is damaged"), "{}", ran.stderr);
    // It is written again once the project has the approved files.
    fs::write(data.join("7.js"), "export default 7;\n").unwrap();
    let ran = blocks(ran, "approved");
    assert!(!ran.stderr.contains("warning"), "{}", ran.stderr);
    assert_eq!(fs::read_to_string(&damaged).unwrap(), "export default 8;\n");
}

#[test]
fn a_package_of_the_home_folder_does_not_get_code_into_an_approved_extension() {
    // The copy is below the home folder, so Node.js looks there for packages.
    let head = "import { Type } from '@sinclair/typebox';
const word = () => (Type.Object({}).type === 'object' ? 'approved' : 'planted');
";
    let ran = approve(Test::new().file(".pi/extensions/guard.ts", &extension(head)));
    let modules = ran.path("home/node_modules");
    for name in ["@sinclair/typebox", "rules"] {
        let folder = modules.join(name);
        fs::create_dir_all(&folder).unwrap();
        let package = format!(r#"{{"name": "{name}", "type": "module", "exports": "./index.js"}}"#);
        fs::write(folder.join("package.json"), package).unwrap();
        let text = "export const Type = { Object: () => ({ type: 'planted' }) };\nexport const word = () => 'planted';\n";
        fs::write(folder.join("index.js"), text).unwrap();
    }
    drop(blocks(ran, "approved"));
}

#[test]
fn an_extension_whose_package_is_only_in_the_home_folder_is_refused() {
    let head = "
let word = () => 'approved';
try {
  ({ word } = await import('rules'));
} catch {}
try {
  ({ word } = require('rules'));
} catch {}
";
    let ran = approve(Test::new().file(".pi/extensions/guard.ts", &extension(head)));
    for folder in ["home/node_modules/rules", "home/.node_modules/rules"] {
        let folder = ran.path(folder);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("index.js"), "exports.word = () => 'planted';\n").unwrap();
    }
    drop(blocks(ran, "approved"));
}
