//! Hooks of plugins find their plugin and its options.

use serde_json::{Value, json};

use crate::imported::{Session, call, command, shell};

const PLUGIN: &str = "plugins/guard/hooks/hooks.json";
const SCRIPT: &str = "plugins/guard/guard.sh";

/// Denies every call, with the variables and arguments as the reason.
const PRINTS: &str = r#"echo "$CLAUDE_PLUGIN_ROOT|$CLAUDE_PLUGIN_DATA|$LEVEL|$1|$2" >&2; exit 2"#;

fn hooks(hook: &Value) -> String {
    let hooks = json!({ "hooks": { "PreToolUse": [{ "matcher": "Bash", "hooks": [hook] }] } });
    hooks.to_string()
}

/// Returns the reason with which the guard of a plugin denies a call, with `ROOT` for the folder of the plugin.
async fn denied_by(hook: &Value) -> String {
    let session = Session::new(&[(PLUGIN, &hooks(hook)), (SCRIPT, PRINTS)]);
    let outcome = session.send(PLUGIN, shell("ls")).await;
    let root = session.dir.path().join("plugins/guard");
    let decision = outcome.decision();
    let reason = decision.reason().unwrap_or_default();
    reason.replace(root.to_str().unwrap(), "ROOT")
}

const DATA: &str = "/home/ada/.claude/plugins/data/guard-inline";

#[tokio::test]
async fn the_guard_of_a_plugin_runs_from_its_folder() {
    for hook in [
        command("sh \"${CLAUDE_PLUGIN_ROOT}/guard.sh\" a"),
        command("sh \"$CLAUDE_PLUGIN_ROOT\"/guard.sh a"),
        command("sh -c 'sh ${CLAUDE_PLUGIN_ROOT}/guard.sh a'"),
        json!({ "type": "command", "command": "sh", "args": ["${CLAUDE_PLUGIN_ROOT}/guard.sh", "a"] }),
    ] {
        assert_eq!(denied_by(&hook).await, format!("ROOT|{DATA}||a|"), "{hook}");
    }
    let hook = json!({ "type": "command", "command": "sh", "args": [
        "${CLAUDE_PLUGIN_ROOT}/guard.sh", "${CLAUDE_PLUGIN_ROOT}/it's", "-${CLAUDE_PLUGIN_DATA}-",
    ] });
    assert_eq!(
        denied_by(&hook).await,
        format!("ROOT|{DATA}||ROOT/it's|-{DATA}-")
    );
}

#[tokio::test]
async fn a_plugin_in_a_folder_with_spaces_and_quotes_runs() {
    let folder = "plugins/it's \"mine\" $HOME/hooks/hooks.json";
    let script = "plugins/it's \"mine\" $HOME/guard.sh";
    for hook in [
        command("sh \"${CLAUDE_PLUGIN_ROOT}/guard.sh\""),
        json!({ "type": "command", "command": "sh", "args": ["${CLAUDE_PLUGIN_ROOT}/guard.sh"] }),
    ] {
        let session = Session::new(&[(folder, &hooks(&hook)), (script, "echo no >&2; exit 2")]);
        let outcome = session.send(folder, shell("ls")).await;
        assert_eq!(outcome.decision().reason(), Some("no"), "{hook}");
    }
}

#[tokio::test]
async fn a_manifest_with_hooks_is_a_file_of_its_plugin() {
    let manifest = "plugins/guard/.claude-plugin/plugin.json";
    let hook = command("sh \"${CLAUDE_PLUGIN_ROOT}/guard.sh\"");
    let session = Session::new(&[(manifest, &hooks(&hook)), (SCRIPT, "echo no >&2; exit 2")]);
    let outcome = session.send(manifest, shell("ls")).await;
    assert_eq!(outcome.decision().reason(), Some("no"));
}

#[tokio::test]
async fn the_data_of_an_installed_plugin_has_the_name_of_its_marketplace() {
    let file = ".claude/plugins/cache/market.place/guard/1.0/hooks/hooks.json";
    let hook = command("echo \"$CLAUDE_PLUGIN_DATA\" >&2; exit 2");
    let session = Session::new(&[(file, &hooks(&hook))]);
    let outcome = session.send(file, shell("ls")).await;
    let expected = "/home/ada/.claude/plugins/data/guard-market-place";
    assert_eq!(outcome.decision().reason(), Some(expected));
}

#[test]
fn the_folder_of_a_plugin_outside_of_a_plugin_is_an_error() {
    for (path, name) in [
        (".claude/settings.json", "CLAUDE_PLUGIN_ROOT"),
        (".claude/hooks/hooks.json", "CLAUDE_PLUGIN_DATA"),
        ("hooks.json", "CLAUDE_PLUGIN_ROOT"),
    ] {
        for hook in [
            command(&format!("node \"${{{name}}}/guard.js\"")),
            json!({ "type": "command", "command": "node", "args": [format!("${{{name}}}/guard.js")] }),
        ] {
            let error = crate::load(path, &hooks(&hook)).unwrap_err().render(false);
            let expected = format!("`${{{name}}}` has a value only in a plugin");
            assert!(error.contains(&expected), "{path}: {error}");
        }
    }
}

#[tokio::test]
async fn an_import_sets_variables_and_options_of_a_plugin() {
    let hook = json!({ "type": "command", "command": "sh", "args": [
        "${CLAUDE_PLUGIN_ROOT}/guard.sh", "${user_config.mode}", "$LEVEL",
    ] });
    let import = format!(
        "import:\n  - file: {PLUGIN}\n    env: {{ LEVEL: strict, CLAUDE_PLUGIN_OPTION_MODE: fast }}\n"
    );
    let files = [
        (PLUGIN, hooks(&hook)),
        (SCRIPT, PRINTS.to_owned()),
        ("hooks.yaml", import),
    ];
    let files: Vec<_> = files
        .iter()
        .map(|(path, text)| (*path, text.as_str()))
        .collect();
    let session = Session::new(&files);
    let outcome = session.send("hooks.yaml", shell("ls")).await;
    let decision = outcome.decision();
    let reason = decision.reason().unwrap_or_default();
    assert!(reason.ends_with("|strict|fast|$LEVEL"), "{reason}");
    // Without the option, the hook would run with an empty argument.
    let error = crate::load(PLUGIN, &hooks(&hook))
        .unwrap_err()
        .render(false);
    assert!(
        error.contains("the option `mode` of the plugin has no value"),
        "{error}"
    );
    assert!(error.contains("CLAUDE_PLUGIN_OPTION_MODE"), "{error}");
}

#[tokio::test]
async fn the_folder_of_a_codex_plugin_has_both_names() {
    let file = ".codex/plugins/cache/m/guard/1.0/hooks/hooks.json";
    let line = "test \"$PLUGIN_ROOT\" = \"$CLAUDE_PLUGIN_ROOT\" && echo \"${PLUGIN_ROOT##*/}\" >&2; exit 2";
    let session = Session::new(&[(file, &hooks(&command(line)))]);
    let outcome = session
        .send(file, call("shell", &json!({ "cmd": "ls" })))
        .await;
    assert_eq!(outcome.decision().reason(), Some("1.0"));
}
