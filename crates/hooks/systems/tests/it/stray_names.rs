//! Names that belong to one hook system appear in that system's folder and nowhere else.
//!
//! The test reads the source of every other crate, without comments and test modules. Comments may use a
//! system as an example, and tests may try one.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use tenterhook_engine::NATIVE_SYSTEM;
use tenterhook_systems::SYSTEMS;

/// Names of systems, and words of their formats. Case does not matter. The names in the table `SYSTEMS`
/// are added in quotes.
const NAMES: [&str; 17] = [
    "kodelet",
    "docker-agent",
    "docker_agent",
    "DockerAgent",
    "morphix",
    "hooks_registry",
    "operator::",
    "\"operator\"",
    ".operator/",
    "before_tool_call",
    "after_tool_call",
    "conv_id",
    "followUpMessages",
    "hookSpecificOutput",
    "ExtensionAPI",
    "assistantMessageEvent",
    "customInstructions",
];

const AGENT_FILES: &str = "agent files are docker-agent's own, and a shell line is a hook of one; \
                           the reader of hook files is not divided by systems yet";
const RECIPES: &str = "recipes are kodelet's; the reader uses that of hook files";
const TRIGGER: &str = "the calls of kodelet's document, for programs that embed the engine";
const SHIM: &str = "the shim denies without the daemon, so it repeats the denials of all hosts";
const SERVICE: &str = "the provider of models has the same name as its agent";
const WORKER_MODULES: &str = "the Python worker has a module for each API, compiled in";

/// Exceptions: the start of the path, the name, and why the name is not in the folder of its system yet.
const ALLOWED: &[(&str, &str, &str)] = &[
    (
        "crates/hosts/shim/src/failure/hosts.rs",
        "hookSpecificOutput",
        SHIM,
    ),
    ("crates/hosts/shim/src/failure/hosts.rs", "\"pi\"", SHIM),
    (
        "crates/hosts/shim/src/failure/hosts.rs",
        "\"claude-code\"",
        SHIM,
    ),
    ("crates/hosts/shim/src/failure/hosts.rs", "\"codex\"", SHIM),
    (
        "crates/hosts/shim/src/failure/hosts.rs",
        "\"copilot\"",
        SHIM,
    ),
    ("crates/hosts/shim/src/failure/hosts.rs", "\"gemini\"", SHIM),
    (
        "crates/hooks/hookfile/src/agent_file",
        "docker-agent",
        AGENT_FILES,
    ),
    (
        "crates/hooks/hookfile/src/agent_file",
        "docker_agent",
        AGENT_FILES,
    ),
    (
        "crates/hooks/hookfile/src/agent_file",
        "DockerAgent",
        AGENT_FILES,
    ),
    (
        "crates/hooks/hookfile/src/declaration.rs",
        "docker_agent",
        AGENT_FILES,
    ),
    (
        "crates/hooks/hookfile/src/declaration.rs",
        "DockerAgent",
        AGENT_FILES,
    ),
    (
        "crates/hooks/hookfile/src/hook_file.rs",
        "docker-agent",
        AGENT_FILES,
    ),
    (
        "crates/hooks/hookfile/src/hook_file.rs",
        "docker_agent",
        AGENT_FILES,
    ),
    (
        "crates/hooks/hookfile/src/hook_line.rs",
        "docker-agent",
        AGENT_FILES,
    ),
    (
        "crates/hooks/hookfile/src/native.rs",
        "docker-agent",
        AGENT_FILES,
    ),
    (
        "crates/hooks/hookfile/src/native.rs",
        "docker_agent",
        AGENT_FILES,
    ),
    (
        "crates/hooks/hookfile/src/native.rs",
        "DockerAgent",
        AGENT_FILES,
    ),
    (
        "crates/hooks/discovery/src/load.rs",
        "docker-agent",
        AGENT_FILES,
    ),
    ("crates/hooks/discovery/src/recipe.rs", "kodelet", RECIPES),
    (
        "crates/hooks/discovery/src/trigger.rs",
        "before_tool_call",
        TRIGGER,
    ),
    (
        "crates/hooks/discovery/src/trigger.rs",
        "after_tool_call",
        TRIGGER,
    ),
    (
        "crates/agent/providers/src/service.rs",
        "\"gemini\"",
        SERVICE,
    ),
    (
        "crates/hooks/runners/src/worker/python.rs",
        "morphix",
        WORKER_MODULES,
    ),
    (
        "crates/hooks/runners/src/worker/python.rs",
        "\"operator\"",
        WORKER_MODULES,
    ),
];

/// Returns the names to look for, in lower case. They include the name of every system in the table.
fn names() -> Vec<String> {
    let mut names: Vec<String> = NAMES.iter().map(|name| name.to_lowercase()).collect();
    for system in SYSTEMS.iter().filter(|it| it.name != NATIVE_SYSTEM) {
        let quoted = format!("\"{}\"", system.name);
        if !names.iter().any(|name| quoted.contains(name)) {
            names.push(quoted);
        }
    }
    names
}

/// Returns the source files of every crate but this one, with their paths from the root of the repository.
fn sources() -> Vec<(String, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let root = root.canonicalize().unwrap();
    let crates = root.join("crates");
    let mut found = Vec::new();
    for folder in folders(&crates) {
        if folder.join("Cargo.toml").exists() {
            add_sources(&folder.join("src"), &mut found);
            continue;
        }
        for folder in folders(&folder) {
            if !folder.ends_with("systems") {
                add_sources(&folder.join("src"), &mut found);
            }
        }
    }
    let below = |path: &Path| {
        let path = path.strip_prefix(&root).unwrap();
        path.to_str().unwrap().replace('\\', "/")
    };
    found.into_iter().map(|path| (below(&path), path)).collect()
}

fn folders(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

fn add_sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            add_sources(&path, found);
        } else if path.extension().is_some_and(|it| it == "rs") && !path.ends_with("tests.rs") {
            found.push(path);
        }
    }
}

/// Returns the code of a file in lower case, without lines of comments and without its test module, which
/// is at the end.
fn code(text: &str) -> String {
    let mut lines = text.lines();
    let mut code = String::new();
    while let Some(line) = lines.next() {
        let item = lines.clone().find(|next| !next.starts_with("#["));
        if line == "#[cfg(test)]" && item.is_some_and(|item| item.starts_with("mod ")) {
            break;
        }
        if !line.trim_start().starts_with("//") {
            code.push_str(&line.to_lowercase());
            code.push('\n');
        }
    }
    code
}

#[test]
fn a_system_is_named_in_its_folder_only() {
    let mut used = BTreeSet::new();
    let mut stray = Vec::new();
    let sources = sources();
    let names = names();
    assert!(sources.len() > 100, "{} source files", sources.len());
    for (path, file) in sources {
        let code = code(&fs::read_to_string(file).unwrap());
        for name in &names {
            let Some(at) = code.find(name) else {
                continue;
            };
            let allowed = ALLOWED.iter().position(|(start, known, _)| {
                path.starts_with(start) && known.to_lowercase() == *name
            });
            if let Some(entry) = allowed {
                used.insert(entry);
            } else {
                let rest = code.get(at..).unwrap_or_default();
                let line = rest.lines().next().unwrap_or_default();
                stray.push(format!("{path}: `{name}` in `{line}`"));
            }
        }
    }
    assert!(
        stray.is_empty(),
        "move these into the folder of the system, and make them available through the table `SYSTEMS`:\n{}",
        stray.join("\n")
    );
    let stale: Vec<_> = ALLOWED
        .iter()
        .enumerate()
        .filter(|(entry, _)| !used.contains(entry))
        .map(|(_, (path, name, _))| format!("{path}: `{name}`"))
        .collect();
    assert!(
        stale.is_empty(),
        "these exceptions are no longer needed; remove them from the list:\n{}",
        stale.join("\n")
    );
}

#[test]
fn comments_and_test_modules_are_not_code() {
    let text = "//! Kodelet.\nfn a() {}\n    // kodelet\n#[cfg(test)]\nfn b() { \"Morphix\" }\n#[cfg(test)]\n#[cfg(unix)]\nmod tests {\n    kodelet\n}\n";
    assert_eq!(
        code(text),
        "fn a() {}\n#[cfg(test)]\nfn b() { \"morphix\" }\n"
    );
}
