//! The imports of pi's extensions: installed packages, and what replaces them. The extensions check
//! what they get themselves, so one that loads has passed.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tenterhook_runners::worker::{ApprovedCopy, Registered, Script};

use crate::stage::Stage;

const API: &str = "pi";

/// The names that pi's packages export, by package.
fn recorded_names() -> Vec<(String, Vec<String>)> {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../sdk/javascript/tenterhook/pi/names.json"
    );
    let recorded: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    let packages = recorded.get("packages").and_then(Value::as_object).unwrap();
    let names = |package: &Value| {
        let names = package.get("names").unwrap().clone();
        serde_json::from_value(names).unwrap()
    };
    packages
        .iter()
        .map(|(name, package)| (name.clone(), names(package)))
        .collect()
}

/// Loads an extension and returns what it registers.
async fn load(stage: &Stage, name: &str, text: &str) -> Result<Registered, String> {
    let path = stage.path(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    let script = Script {
        path,
        api: API,
        approved: None,
    };
    let loaded = stage.worker.load(&script).await;
    loaded
        .map(|(_, registered)| registered)
        .map_err(|error| error.to_string())
}

/// Loads an extension that has to load. Its working directory is the folder that it is in.
async fn passes(name: &str, text: &str) {
    load(&Stage::of_node(), name, text).await.unwrap();
}

#[tokio::test]
async fn every_recorded_name_can_be_imported_from_both_scopes() {
    let stage = Stage::of_node();
    for (package, names) in recorded_names() {
        let specifiers = if package.starts_with("typebox") {
            vec![package.clone(), format!("@sinclair/{package}")]
        } else {
            vec![
                format!("@mariozechner/{package}"),
                format!("@earendil-works/{package}"),
            ]
        };
        for specifier in specifiers {
            let imports: Vec<String> = names
                .iter()
                .enumerate()
                .map(|(place, name)| format!("{name} as n{place}"))
                .collect();
            let text = format!(
                "import {{ {} }} from '{specifier}';\nexport default function () {{}}\n",
                imports.join(", ")
            );
            load(&stage, "names.js", &text).await.unwrap();
        }
    }
}

#[tokio::test]
async fn an_unknown_name_or_package_stays_an_import_error() {
    let stage = Stage::of_node();
    for (import, expected) in [
        (
            "{ noSuchName } from '@mariozechner/pi-tui'",
            "does not provide an export named 'noSuchName'",
        ),
        (
            "x from '@mariozechner/pi-other'",
            "Cannot find package '@mariozechner/pi-other'",
        ),
        (
            "x from '@mariozechner/pi-tui/dist/other.js'",
            "Cannot find package '@mariozechner/pi-tui'",
        ),
        (
            "x from 'typebox-other'",
            "Cannot find package 'typebox-other'",
        ),
    ] {
        let text = format!("import {import};\nexport default function () {{}}\n");
        let error = load(&stage, "a.js", &text).await.unwrap_err();
        assert!(error.contains(expected), "{import}: {error}");
    }
}

#[tokio::test]
async fn what_is_not_available_fails_with_its_name_when_it_is_used() {
    passes("missing.ts", include_str!("pi_imports/missing.ts")).await;
}

#[tokio::test]
async fn the_tools_of_the_stand_in_work_on_real_files_and_processes() {
    passes("tools.ts", include_str!("pi_imports/tools.ts")).await;
}

#[tokio::test]
async fn texts_settings_and_messages_are_prepared_as_in_pi() {
    passes("texts.ts", include_str!("pi_imports/texts.ts")).await;
}

#[tokio::test]
async fn components_are_built_extended_and_rendered_to_lines() {
    passes("display.ts", include_str!("pi_imports/display.ts")).await;
}

#[tokio::test]
async fn schemas_and_streams_of_answers_are_built_without_a_package() {
    passes("schemas.ts", include_str!("pi_imports/schemas.ts")).await;
}

#[tokio::test]
async fn commonjs_modules_require_the_stand_ins() {
    let text = "import { createRequire } from 'node:module';\n\
        const { visibleWidth } = require('@mariozechner/pi-tui');\n\
        const { getAgentDir } = createRequire(import.meta.url)('@earendil-works/pi-coding-agent');\n\
        if (visibleWidth('\\u65e5') !== 2 || typeof getAgentDir() !== 'string') throw new Error('other values');\n\
        export default function () {}\n";
    passes("a.js", text).await;
}

/// Installs a package with one module.
fn install(stage: &Stage, folder: &str, name: &str, text: &str) {
    let package = format!("{folder}/node_modules/{name}");
    let manifest = format!(r#"{{"name": "{name}", "type": "module", "exports": "./index.js"}}"#);
    stage.write(&format!("{package}/package.json"), &manifest);
    stage.write(&format!("{package}/index.js"), text);
}

#[tokio::test]
async fn an_installed_package_wins_and_serves_both_scopes() {
    let stage = Stage::of_node();
    install(
        &stage,
        "a",
        "@mariozechner/pi-tui",
        "export const visibleWidth = () => 42;\n",
    );
    let text = |scope: &str| {
        format!(
            "import {{ visibleWidth }} from '{scope}/pi-tui';\n\
             if (visibleWidth('x') !== WANTED) throw new Error(`width ${{visibleWidth('x')}}`);\n\
             export default function () {{}}\n"
        )
    };
    for (place, wanted) in [("a/b", "42"), ("other", "1")] {
        for scope in ["@mariozechner", "@earendil-works"] {
            let text = text(scope).replace("WANTED", wanted);
            load(&stage, &format!("{place}/x.js"), &text).await.unwrap();
        }
    }
    // A name that the installed version lacks is an error, as in pi.
    let text =
        "import { fuzzyMatch } from '@mariozechner/pi-tui';\nexport default function () {}\n";
    let error = load(&stage, "a/y.js", text).await.unwrap_err();
    assert!(error.contains("fuzzyMatch"), "{error}");
}

#[tokio::test]
async fn an_installed_agent_keeps_its_values_but_not_the_functions_about_events() {
    let stage = Stage::of_node();
    install(
        &stage,
        ".",
        "@earendil-works/pi-coding-agent",
        "let theme;\nexport const VERSION = '99';\nexport function initTheme(name) { theme = name; }\n\
         export const styled = () => theme;\nexport const isToolCallEventType = () => 'theirs';\n",
    );
    let text = "import { isToolCallEventType, styled, VERSION } from '@mariozechner/pi-coding-agent';\n\
        import assert from 'node:assert/strict';\n\
        assert.equal(VERSION, '99');\nassert.equal(styled(), 'dark');\n\
        assert.equal(isToolCallEventType('bash', { toolName: 'bash' }), true);\n\
        export default function () {}\n";
    load(&stage, "x.js", text).await.unwrap();
}

#[tokio::test]
async fn a_script_from_an_approved_copy_loads_no_other_file_of_its_project() {
    let stage = Stage::of_node();
    install(&stage, "project", "dep", "export const value = 1;\n");
    install(&stage, "copies/ext", "kept", "export const value = 2;\n");
    stage.write("project/node_modules/old/index.js", "module.exports = 3;\n");
    let copied = |copies: &str, text: &str| {
        let path = stage.write(&format!("{copies}/ext/x.js"), text);
        Script {
            path,
            api: API,
            approved: Some(ApprovedCopy {
                project: stage.path("project"),
                copies: stage.path(copies),
            }),
        }
    };
    let end = "export default function () {}\n";
    let kept =
        format!("import {{ value }} from 'kept';\nif (value !== 2) throw new Error();\n{end}");
    stage.worker.load(&copied("copies", &kept)).await.unwrap();
    let dep = format!("import {{ value }} from 'dep';\n{end}");
    // The second copy is inside the project, so that Node.js finds the package by itself.
    for (copies, text) in [
        ("copies", dep.clone()),
        ("project/inside", dep),
        (
            "project/inside",
            format!("const old = require('old');\n{end}"),
        ),
    ] {
        let error = stage.worker.load(&copied(copies, &text)).await;
        let error = error.unwrap_err().to_string();
        assert!(
            error.contains("which the approval does not cover"),
            "{error}"
        );
        assert!(error.contains("node_modules/"), "{error}");
    }
}

#[tokio::test]
async fn a_link_in_node_modules_does_not_get_code_into_an_approved_script() {
    let stage = Stage::of_node();
    let ran = stage.path("ran");
    let planted = format!("import fs from 'node:fs';\nfs.writeFileSync({ran:?}, '');\n");
    install(&stage, "outside", "planted", &planted);
    install(&stage, "repository", "above", &planted);
    install(&stage, "repository/project", "shallow", "");
    let modules = stage.path("repository/project/node_modules");
    let outside = stage.path("outside/node_modules/planted");
    std::os::unix::fs::symlink(&outside, modules.join("linked")).unwrap();
    let main = fs::read_dir(modules.join("shallow")).unwrap();
    for file in main.map(|file| file.unwrap().path()) {
        if file
            .extension()
            .is_some_and(|extension| extension != "json")
        {
            fs::remove_file(&file).unwrap();
            std::os::unix::fs::symlink(outside.join(file.file_name().unwrap()), &file).unwrap();
        }
    }
    for name in ["linked", "shallow", "above", "planted"] {
        for api in [API, "tenterhook"] {
            let text = format!(
                "try {{ await import('{name}'); }} catch {{}}\nexport default function () {{}}\n"
            );
            let path = stage.write(&format!("copies/ext/{name}.mjs"), &text);
            let script = Script {
                path,
                api,
                approved: Some(ApprovedCopy {
                    project: stage.path("repository/project"),
                    copies: stage.path("copies"),
                }),
            };
            // Whether it loads does not matter: a script without hooks is an error of the second API.
            let _loaded = stage.worker.load(&script).await;
            assert!(!ran.exists(), "{name} {api}");
        }
    }
}

/// Asks for the module of an import in a working folder, with `bin` first in `PATH`. An installed package is found
/// only by the module that `globalInstallation` names.
fn resolved_with_path(directory: &Path, bin: &Path) -> String {
    let sources = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../sdk/javascript/tenterhook/pi"
    );
    let program = format!(
        "import fs from 'node:fs';\n\
         import {{ prepare, resolve }} from '{sources}/stand-in.mjs';\n\
         await prepare(async () => fs.readFileSync('{sources}/names.json', 'utf8'));\n\
         const find = async (name, parent) => (parent && name.startsWith('@mariozechner/') ? `${{parent}}#${{name}}` : undefined);\n\
         process.stdout.write(await resolve('@earendil-works/pi-tui', find));\n"
    );
    let path = std::env::var("PATH").unwrap();
    let ran = std::process::Command::new("node")
        .args(["--input-type=module", "--eval", &program])
        .current_dir(directory)
        .env("PATH", format!("relative:{}:{path}", bin.display()))
        .output()
        .unwrap();
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    String::from_utf8(ran.stdout).unwrap()
}

#[test]
fn a_global_installation_is_used_but_not_one_of_a_project() {
    use std::os::unix::fs::symlink;
    let stage = Stage::of_node();
    for folder in ["global", "project/venv", "project/node_modules/tool"] {
        let package = format!("{folder}/lib/@mariozechner/pi-coding-agent");
        stage.write(&format!("{folder}/bin/keep"), "");
        stage.write(
            &format!("{package}/package.json"),
            r#"{"name": "@mariozechner/pi-coding-agent"}"#,
        );
        let program = stage.write(&format!("{package}/dist/cli.js"), "");
        symlink(program, stage.path(folder).join("bin/pi")).unwrap();
    }
    stage.write("project/.git/HEAD", "");
    stage.write("project/sub/keep", "");
    stage.write("linked/bin/keep", "");
    let of_project = stage.path("project/venv/bin");
    symlink(&of_project, stage.path("link")).unwrap();
    symlink(of_project.join("pi"), stage.path("linked/bin/pi")).unwrap();
    for (bin, is_global) in [
        ("global/bin", true),
        ("project/venv/bin", false),
        ("project/node_modules/tool/bin", false),
        ("link", false),
        ("linked/bin", false),
    ] {
        let found = resolved_with_path(&stage.path("project/sub"), &stage.path(bin));
        if is_global {
            assert!(
                found.ends_with("/pi-coding-agent/index.js#@mariozechner/pi-tui"),
                "{bin}: {found}"
            );
        } else {
            assert_eq!(found, "tenterhook:pi/package/pi-tui", "{bin}");
        }
    }
}
