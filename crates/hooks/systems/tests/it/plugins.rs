//! The plugins for agents that call hooks in their own process. They run in a real `node`, and a shell
//! script takes the place of the shim.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;
use tenterhook_engine::ToolNames as _;
use tenterhook_systems::hook_folder::FolderFiles;
use tenterhook_systems::host::installation::{OwnFile, PlaceForm};
use tenterhook_systems::host::{HostAgent, HostInput, HostedEvent};

/// An agent with a plugin, and its names for a tool call and a prompt.
const HOSTS: [(&str, &str, &str); 2] = [
    ("opencode", "tool.execute.before", "chat.message"),
    ("pi", "tool_call", "input"),
];

/// Returns the files that Tenterhook writes for an agent.
pub(crate) fn own_files(host: &HostAgent, shim: &Path) -> Vec<OwnFile> {
    let files = match host.installation.user.unwrap().form {
        PlaceForm::Own { files } => Some(files),
        PlaceForm::Json { .. } | PlaceForm::Toml { .. } => None,
    };
    files.unwrap()(shim.to_str().unwrap())
}

/// A folder with a plugin and a shim.
struct Plugin {
    dir: TempDir,
    host: &'static HostAgent,
}

impl Plugin {
    /// Writes the plugin of an agent, and a shim that records its input and runs the lines of `shim`. There
    /// is no shim if it has no lines.
    fn new(host: &str, shim: &str) -> Self {
        let plugin = Self {
            dir: tempfile::tempdir().unwrap(),
            host: HostAgent::by_name(host).unwrap(),
        };
        let shim_path = plugin.path("it's a shim");
        if !shim.is_empty() {
            let folder = plugin.dir.path().display();
            let script = format!("#!/bin/sh\ncat > '{folder}'/\"$2\".json\n{shim}\n");
            fs::write(&shim_path, script).unwrap();
            fs::set_permissions(&shim_path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let files = own_files(plugin.host, &shim_path);
        fs::write(plugin.path("plugin.mjs"), &files.first().unwrap().text).unwrap();
        plugin
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }

    /// Makes the plugin give up earlier.
    fn with_short_deadline(self) -> Self {
        let path = self.path("plugin.mjs");
        let text = fs::read_to_string(&path).unwrap();
        let short = text.replace("DEADLINE_MS = 60_000", "DEADLINE_MS = 300");
        assert_ne!(short, text);
        fs::write(path, short).unwrap();
        self
    }

    /// Sends every event to the plugin and returns what it did.
    fn drive(&self, variables: &[(&str, &str)]) -> Value {
        let driver = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/hosts/drive_plugin.mjs");
        let ran = Command::new("node")
            .arg(driver)
            .arg(self.host.name)
            .arg(self.path("plugin.mjs"))
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "{}: {stderr}", self.host.name);
        serde_json::from_slice(&ran.stdout).unwrap()
    }

    /// Returns what the shim received for an event.
    fn received(&self, event: &str) -> Value {
        let text = fs::read(self.path(&format!("{event}.json"))).unwrap();
        serde_json::from_slice(&text).unwrap()
    }
}

/// Returns a shim that prints an answer for one event.
fn answering(event: &str, answer: &Value) -> String {
    let answer = answer.to_string().replace('\'', r"'\''");
    format!("if [ \"$2\" = {event} ]; then printf '%s' '{answer}'; fi")
}

/// Returns the reason for which a handler stopped something: an error, or a `block`.
fn stopped(outcome: &Value) -> Option<&str> {
    let reason = match outcome.get("block") {
        Some(block) => {
            assert_eq!(*block, json!(true));
            outcome.get("reason")
        }
        None => outcome.get("error"),
    };
    reason.and_then(Value::as_str)
}

#[test]
fn without_an_opinion_nothing_changes() {
    for (host, ..) in HOSTS {
        let found = Plugin::new(host, "exit 0").drive(&[]);
        for event in ["start", "prompt", "call", "result", "stop"] {
            assert_eq!(found["seen"][event], Value::Null, "{host} {event}");
        }
        let args = json!({ "command": "echo hello", "timeout": 5 });
        assert_eq!(found["state"]["args"], args, "{host}");
    }
}

#[test]
fn a_denial_stops_the_call_with_its_reason() {
    for (host, call, _) in HOSTS {
        let shim = answering(call, &json!({ "deny": "it's not allowed here" }));
        let found = Plugin::new(host, &shim).drive(&[]);
        let reason = stopped(&found["seen"]["call"]);
        assert_eq!(reason, Some("it's not allowed here"), "{host}");
        assert_eq!(found["seen"]["prompt"], Value::Null, "{host}");
    }
}

#[test]
fn a_denial_stops_the_prompt() {
    for (host, _, prompt) in HOSTS {
        let shim = answering(prompt, &json!({ "deny": "not today" }));
        let found = Plugin::new(host, &shim).drive(&[("HAS_UI", "1")]);
        let stopped = match host {
            "opencode" => json!({ "error": "not today" }),
            _ => json!({ "action": "handled" }),
        };
        assert_eq!(found["seen"]["prompt"], stopped, "{host}");
        assert_eq!(found["seen"]["call"], Value::Null, "{host}");
        let notices = &found["seen"]["notices"];
        assert!(
            host == "opencode" || *notices == json!(["not today"]),
            "{notices}"
        );
    }
}

#[test]
fn changed_arguments_replace_the_old_ones_in_place() {
    for (host, call, _) in HOSTS {
        let shim = answering(call, &json!({ "input": { "command": "echo changed" } }));
        let found = Plugin::new(host, &shim).drive(&[]);
        assert_eq!(found["seen"]["call"], Value::Null, "{host}");
        let args = json!({ "command": "echo changed" });
        assert_eq!(found["state"]["args"], args, "{host}");
    }
}

#[test]
fn every_failure_of_the_shim_stops_calls_and_prompts_and_nothing_else() {
    let failures = [
        ("missing", ""),
        ("killed", "kill -9 $$"),
        ("another status", "echo '{}'; exit 3"),
        ("not JSON", "echo oops"),
        ("half an answer", "printf '{\"deny\": \"no'"),
        ("not an object", "echo '[]'"),
        ("an unknown key", "echo '{\"allow\": true}'"),
        ("a key of another type", "echo '{\"deny\": 1}'"),
        ("a key of a prototype", "echo '{\"toString\": 1}'"),
        (
            "a result without content",
            "echo '{\"result\": {\"text\": \"x\"}}'",
        ),
    ];
    for (host, ..) in HOSTS {
        for (failure, shim) in failures {
            let found = Plugin::new(host, shim).drive(&[]);
            let seen = &found["seen"];
            let reason = stopped(&seen["call"]).unwrap_or_default();
            assert!(
                reason.contains("cannot ask the hooks"),
                "{host}, {failure}: {seen}"
            );
            assert_ne!(seen["prompt"], Value::Null, "{host}, {failure}");
            for event in ["start", "result", "stop"] {
                assert_eq!(seen[event], Value::Null, "{host}, {failure}: {event}");
            }
        }
    }
}

#[test]
fn a_shim_that_hangs_is_ended_and_stops_the_call() {
    for (host, ..) in HOSTS {
        let plugin = Plugin::new(host, "exec sleep 600").with_short_deadline();
        let found = plugin.drive(&[]);
        let reason = stopped(&found["seen"]["call"]).unwrap_or_default();
        assert!(
            reason.contains("did not answer in time"),
            "{host}: {reason}"
        );
    }
}

#[test]
fn results_are_replaced_and_texts_are_added() {
    let answer = |event: &str, value: Value| answering(event, &value);
    let result = json!({ "text": "hidden", "content": [{ "type": "text", "text": "hidden" }],
                         "details": {}, "is_error": false });
    let shim = [
        answer("session.created", json!({ "context": ["at the start"] })),
        answer(
            "chat.message",
            json!({ "context": ["with the prompt"], "notices": ["look"] }),
        ),
        answer(
            "tool.execute.after",
            json!({ "result": result, "context": ["after"] }),
        ),
    ];
    let found = Plugin::new("opencode", &shim.join("\n")).drive(&[]);
    let state = &found["state"];
    assert_eq!(state["system"], json!(["base", "at the start"]));
    assert_eq!(state["prompt"], "do it\n\nwith the prompt");
    assert_eq!(state["output"]["output"], "hidden\n\nafter");
    assert_eq!(state["output"]["metadata"]["output"], "hidden");
    assert_eq!(found["seen"]["notices"], json!(["look"]));

    let shim = [
        answer("session_start", json!({ "context": ["at the start"] })),
        answer(
            "input",
            json!({ "context": ["with the prompt"], "prompt": "do that" }),
        ),
        answer(
            "tool_result",
            json!({ "result": result, "context": ["after"] }),
        ),
        answer("agent_end", json!({ "follow_up": ["run the tests"] })),
    ];
    let plugin = Plugin::new("pi", &shim.join("\n"));
    let found = plugin.drive(&[]);
    let seen = &found["seen"];
    assert_eq!(seen["prompt"]["text"], "do that");
    assert_eq!(
        seen["system"]["message"]["content"],
        "at the start\n\nwith the prompt"
    );
    let texts = json!([{ "type": "text", "text": "hidden" }, { "type": "text", "text": "after" }]);
    assert_eq!(seen["result"]["content"], texts);
    let follow_up = json!({ "text": "run the tests", "announced": null });
    assert_eq!(seen["followUps"], json!([follow_up, follow_up]));
    let second = plugin.received("agent_end");
    assert_eq!(second["stop_hook_active"], json!(true));
}

#[test]
fn a_question_in_pi_is_answered_by_the_person() {
    let shim = answering("tool_call", &json!({ "ask": "is this wanted?" }));
    let plugin = Plugin::new("pi", &shim);
    let with = |answer| plugin.drive(&[("HAS_UI", "1"), ("ANSWER", answer)]);
    let yes = with("yes");
    assert_eq!(yes["seen"]["call"], Value::Null);
    let question = yes["seen"]["question"].as_str().unwrap().to_owned();
    assert!(question.contains("echo hello"), "{question}");
    let reason = stopped(&with("no")["seen"]["call"]).map(str::to_owned);
    assert_eq!(
        reason.unwrap(),
        "the user did not allow it: is this wanted?"
    );
}

#[test]
fn a_shim_that_does_not_read_a_large_event_can_answer() {
    for (host, call, _) in HOSTS {
        let plugin = Plugin::new(host, "exit 0");
        let shim = plugin.path("it's a shim");
        let answer = answering(call, &json!({ "deny": "too large" }));
        fs::write(shim, format!("#!/bin/sh\n{answer}\n")).unwrap();
        let driver = plugin.path("plugin.mjs");
        let text = fs::read_to_string(&driver).unwrap();
        let large = text.replace("...fields }", "...fields, padding: \"x\".repeat(1 << 22) }");
        assert_ne!(large, text);
        fs::write(driver, large).unwrap();
        let found = plugin.drive(&[]);
        assert_eq!(stopped(&found["seen"]["call"]), Some("too large"), "{host}");
    }
}

/// As a hook, the extension would call the hooks again.
#[test]
fn pis_extension_is_not_a_hook_of_a_folder_of_extensions() {
    let plugin = Plugin::new("pi", "exit 0");
    let folder = plugin.path("extensions");
    fs::create_dir(&folder).unwrap();
    fs::copy(plugin.path("plugin.mjs"), folder.join("tenterhook.js")).unwrap();
    fs::write(folder.join("other.js"), "export default () => {}").unwrap();
    let FolderFiles::Packages(search) = &tenterhook_systems::pi::FOLDER.files else {
        panic!("pi's extensions are packages");
    };
    let found = (search.in_folder)(&folder, &|path| fs::read(path)).unwrap();
    let files: Vec<_> = found.into_iter().flat_map(|it| it.entries).collect();
    assert_eq!(files, [folder.join("other.js")]);
}

#[test]
fn the_events_of_the_plugins_can_be_read() {
    for (host, call, _) in HOSTS {
        let plugin = Plugin::new(host, "exit 0");
        plugin.drive(&[]);
        for event in plugin.host.events {
            let object = plugin.received(event.name);
            let input = HostInput {
                object: object.as_object().unwrap(),
                variables: &[],
            };
            let read = (plugin.host.read)(event, &input).unwrap();
            assert_eq!(read.origin.session_id.as_str(), "s1", "{host}");
            if let HostedEvent::ToolCall(tool) = read.event {
                assert_eq!(event.name, call);
                let input = tool.arguments.as_object().unwrap();
                let operations = plugin.host.tools.operations(&tool.name, input).unwrap();
                assert_eq!(operations.unwrap().first().unwrap().tool, "shell");
            }
        }
    }
}
