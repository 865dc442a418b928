//! The tools of real agents and servers: which ones the tables have, and which ones are read as a shell.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};
use tenterhook_engine::ToolNames as _;
use tenterhook_protocol::JsonObject;
use tenterhook_systems::HOSTS;
use tenterhook_systems::host::verdict::HostVerdict;
use tenterhook_systems::host::{HostInput, HostedEvent};
use tenterhook_systems::tool_names::FoundCommand;

/// The arguments of a tool: the type of each, or its values.
type Arguments = BTreeMap<String, Value>;

/// The tools that an agent offered to a model.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AgentTools {
    agent: String,
    version: String,
    recorded: String,
    /// The names of tools that hooks see under another name.
    #[serde(default)]
    hook_names: BTreeMap<String, String>,
    tools: BTreeMap<String, Arguments>,
}

impl AgentTools {
    fn of(host: &str) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let path = folder.join(host.replace('-', "_")).join("tools.json");
        assert!(
            path.exists(),
            "{} is missing: list the tools that {host} offers to models there",
            path.display()
        );
        let text = fs::read_to_string(&path).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    /// Returns the tools by the names that hooks see.
    fn seen(&self) -> impl Iterator<Item = (&str, &Arguments)> {
        self.tools.iter().map(|(name, arguments)| {
            let seen = self.hook_names.get(name).unwrap_or(name);
            (seen.as_str(), arguments)
        })
    }
}

/// The tools of an MCP server.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the fields say where the tools come from")]
struct ServerTools {
    package: String,
    registry: String,
    version: String,
    recorded: String,
    tools: BTreeMap<String, Arguments>,
}

fn servers() -> Vec<ServerTools> {
    serde_json::from_str(include_str!("mcp_servers.json")).unwrap()
}

/// The tools of servers that run a command line, and the argument with it.
const SHELLS: &[(&str, &str, &str)] = &[
    (
        "@wonderwhy-er/desktop-commander",
        "start_process",
        "command",
    ),
    ("mcp-server-commands", "run_command", "command"),
    ("mcp-server-docker", "run_command", "command"),
    ("mcp-server-kubernetes", "exec_in_pod", "command"),
    ("mcp-server-kubernetes", "kubectl_create", "command"),
    ("mcp-shell-server", "shell_execute", "command"),
    ("mcp-ssh-manager", "ssh_command_alias", "command"),
    ("mcp-ssh-manager", "ssh_execute", "command"),
    ("mcp-ssh-manager", "ssh_execute_group", "command"),
    ("mcp-ssh-manager", "ssh_execute_sudo", "command"),
    ("mcp-ssh-manager", "ssh_session_send", "command"),
];

fn is_shell(package: &str, tool: &str) -> bool {
    let mut shells = SHELLS.iter();
    shells.any(|(known, name, _)| (*known, *name) == (package, tool))
}

/// Harmless values of arguments that are texts.
const TEXTS: &[&str] = &[
    "main",
    "src/main.rs",
    "/tmp/notes.txt",
    "fix the login page",
    "https://a.example/a?b=c",
    "SELECT * FROM users",
    "rm -rf / is dangerous",
    "#submit",
    "1_5",
    "",
];
/// Harmless programs for a browser.
const SCRIPTS: &[&str] = &[
    "document.title",
    "() => document.title",
    "(element) => element.click()",
    "return window.location.href",
    "// the title\ndocument.title",
    "await fetch('/api/items')",
    "const rows = [...document.querySelectorAll('tr')];\nrows.length",
    "/a+/.test(document.body.innerText)",
];
/// Harmless words of kubectl.
const WORDS: &[&str] = &["get", "rollout", "top", "patch", "describe", "logs"];

/// Returns harmless values of an argument.
fn harmless(name: &str, kind: &Value) -> Vec<Value> {
    let texts: &[&str] = match name {
        "script" | "function" | "code" => SCRIPTS,
        "command" | "args" => WORDS,
        _ => TEXTS,
    };
    match kind {
        Value::Array(values) => values.clone(),
        Value::String(kind) => match kind.as_str() {
            "string" | "any" => texts.iter().map(|text| json!(text)).collect(),
            "strings" => vec![json!(texts), json!(texts.get(1..2)), json!([])],
            "array" => vec![json!([]), json!([1, 2])],
            "boolean" => vec![json!(true)],
            "object" => vec![json!({}), json!({ "command": "view" })],
            _ => vec![json!(1), json!(100)],
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            assert!(kind.is_null(), "`{name}`: {kind}");
            Vec::new()
        }
    }
}

/// Returns calls that together have every harmless value of every argument.
fn harmless_calls(arguments: &Arguments) -> Vec<JsonObject> {
    let values: Vec<(&String, Vec<Value>)> = arguments
        .iter()
        .map(|(name, kind)| (name, harmless(name, kind)))
        .collect();
    let most = values
        .iter()
        .map(|(_, values)| values.len())
        .max()
        .unwrap_or(1);
    let call = |number: usize| {
        let value = |(name, values): &(&String, Vec<Value>)| {
            let value = values.get(number % values.len().max(1))?;
            Some(((*name).clone(), value.clone()))
        };
        values.iter().filter_map(value).collect()
    };
    (0..most).map(call).collect()
}

#[test]
fn no_harmless_call_to_a_real_tool_is_taken_for_a_shell() {
    let mut tools = 0;
    let mut calls = 0;
    for server in servers() {
        for (name, arguments) in &server.tools {
            if is_shell(&server.package, name) {
                continue;
            }
            tools += 1;
            for input in harmless_calls(arguments) {
                calls += 1;
                for name in [name.clone(), format!("mcp__server__{name}")] {
                    let found = FoundCommand::find(&name, &input);
                    assert_eq!(found, None, "{} {name} {input:?}", server.package);
                }
            }
        }
    }
    for host in HOSTS {
        for (name, arguments) in AgentTools::of(host.name).seen() {
            let mut rows = host.tools.rows.iter();
            if rows.any(|row| row.name == name && row.tool == "shell") {
                continue;
            }
            tools += 1;
            for input in harmless_calls(arguments) {
                calls += 1;
                let found = host.tools.command_of(name, &input);
                assert_eq!(found, None, "{} {name} {input:?}", host.name);
            }
        }
    }
    println!("{calls} harmless calls to {tools} tools");
    assert!(
        tools >= 600 && calls >= 2000,
        "{calls} calls to {tools} tools"
    );
}

#[test]
fn the_shells_among_the_real_tools_are_found() {
    let servers = servers();
    for (package, tool, argument) in SHELLS {
        let server = servers
            .iter()
            .find(|server| server.package == *package)
            .unwrap();
        let kind = &server.tools[*tool][*argument];
        for words in [
            &["git", "status", "--short"][..],
            &["reboot"],
            &["./build.sh"],
            &["rm", "-rf", "/tmp/a"],
        ] {
            let line = words.join(" ");
            let value = if kind == "strings" {
                json!(words)
            } else {
                json!(line)
            };
            let input = JsonObject::from_iter([((*argument).to_owned(), value)]);
            let found = FoundCommand::find(tool, &input);
            assert_eq!(
                found.map(|found| found.line),
                Some(line),
                "{package} {tool}"
            );
        }
    }
    // Any other tool with an argument of this kind is a tool that runs something else.
    let others: BTreeSet<(&str, &str)> = servers
        .iter()
        .flat_map(|server| {
            server
                .tools
                .iter()
                .map(|(name, arguments)| (&server.package, name, arguments))
        })
        .filter(|(package, name, _)| !is_shell(package, name))
        .filter(|(.., arguments)| {
            arguments.keys().any(|key| {
                ["command", "cmd", "shell", "script", "args", "argv"].contains(&key.as_str())
            })
        })
        .map(|(package, name, _)| (package.as_str(), name.as_str()))
        .collect();
    assert_eq!(
        others,
        BTreeSet::from([
            (
                "@executeautomation/playwright-mcp-server",
                "playwright_evaluate"
            ),
            (
                "@modelcontextprotocol/server-puppeteer",
                "puppeteer_evaluate"
            ),
            ("chrome-devtools-mcp", "evaluate_script"),
            ("mcp-server-kubernetes", "kubectl_generic"),
        ])
    );
}

/// If this fails after an agent was updated: add the tool to the agent's `tools.rs`, as a row or as one of its others.
#[test]
fn every_tool_that_an_agent_offers_is_in_its_table() {
    for host in HOSTS {
        let recorded = AgentTools::of(host.name);
        assert_eq!(
            (recorded.agent.as_str(), recorded.version.as_str()),
            (host.title, host.measured_version)
        );
        assert_eq!(recorded.recorded.len(), "2026-11-28".len(), "{}", host.name);
        assert!(!recorded.tools.is_empty(), "{}", host.name);
        for (name, _) in recorded.seen() {
            assert!(
                host.tools.has(name),
                "{}: `{name}` is in no table",
                host.name
            );
        }
    }
}

#[test]
fn a_shell_of_an_agent_under_another_name_is_read_as_its_shell() {
    for (host, tool, input, line) in [
        (
            "claude-code",
            "Monitor",
            json!({ "command": "ls" }),
            Some("ls"),
        ),
        (
            "claude-code",
            "PowerShell",
            json!({ "command": "ls" }),
            Some("ls"),
        ),
        (
            "claude-code",
            "Monitor",
            json!({ "ws": { "url": "wss://a.example" } }),
            None,
        ),
        ("claude-code", "Bash", json!({ "command": "ls" }), None),
        (
            "copilot",
            "write_bash",
            json!({ "shellId": "1", "input": "ls" }),
            Some("ls"),
        ),
        (
            "copilot",
            "write_powershell",
            json!({ "shellId": "1", "input": "ls" }),
            Some("ls"),
        ),
        (
            "copilot",
            "str_replace_editor",
            json!({ "command": "view", "path": "a" }),
            None,
        ),
        ("qwen", "monitor", json!({ "command": "ls" }), Some("ls")),
        (
            "vibe",
            "process.start",
            json!({ "command": "ls", "cwd": "/" }),
            Some("ls"),
        ),
        (
            "vibe",
            "process.write",
            json!({ "processId": "p", "text": "ls" }),
            Some("ls"),
        ),
        (
            "vibe",
            "process.write",
            json!({ "processId": "p", "control": ["enter"] }),
            None,
        ),
    ] {
        let host = HOSTS.iter().find(|known| known.name == host).unwrap();
        let input = input.as_object().unwrap();
        let reading = host.tools.command_of(tool, input);
        let cmd = reading
            .as_ref()
            .and_then(|reading| reading.call.input.get("cmd")?.as_str());
        assert_eq!(cmd, line, "{tool}");
        if let Some(reading) = &reading {
            assert_eq!(reading.guess, None, "{tool}");
            let back = host
                .tools
                .command_input(tool, input, &reading.call.input)
                .unwrap();
            assert_eq!(&back, input, "{tool}");
        }
    }
}

#[test]
fn a_patch_of_copilot_is_judged_and_changed_although_its_arguments_are_a_text() {
    let patch = "*** Begin Patch\n*** Add File: a.txt\n+x\n*** End Patch";
    let host = HOSTS.iter().find(|host| host.name == "copilot").unwrap();
    let event = host.event("preToolUse").unwrap();
    let object = json!({
        "sessionId": "s1",
        "timestamp": 1,
        "cwd": "/w",
        "toolName": "apply_patch",
        "toolArgs": patch,
    });
    let input = HostInput {
        object: object.as_object().unwrap(),
        variables: &[],
    };
    let read = (host.read)(event, &input).unwrap();
    let HostedEvent::ToolCall(call) = read.event else {
        panic!("not a tool call");
    };
    let arguments = call.arguments.as_object().unwrap();
    let operations = host
        .tools
        .operations(&call.name, arguments)
        .unwrap()
        .unwrap();
    let [operation] = operations.as_slice() else {
        panic!("{operations:?}");
    };
    assert_eq!(operation.tool, "write_file");
    assert_eq!(
        Value::Object(operation.input.clone()),
        json!({ "path": "a.txt", "content": "x\n" })
    );
    let changed = patch.replace("+x", "+y");
    let verdict = HostVerdict {
        input: Some(JsonObject::from_iter([(
            "input".to_owned(),
            json!(changed),
        )])),
        ..HostVerdict::default()
    };
    let answer = (host.write)(event, &input, &verdict).unwrap();
    let printed: Value = serde_json::from_str(&answer.stdout).unwrap();
    assert_eq!(printed["modifiedArgs"], changed);
}
