//! One guard of each kind stops the same command in every real agent on this machine.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use tenterhook_install::proof::case::ProofCase;
use tenterhook_install::proof::sandbox::Sandbox;
use tenterhook_install::proof::trial::TrialPlan;
use tenterhook_install::proof::trial_script::TrialScript;
use tenterhook_systems::host::capability::Support;

use crate::proof::real_agents::{agents, tenterhook};

/// A guard, and where its system looks for it.
struct SharedGuard {
    name: &'static str,
    /// The path below the home folder.
    path: &'static str,
    text: &'static str,
    /// Whether a hook file names the guard. The others are found in the folders of their systems.
    is_in_hook_file: bool,
    /// The host that runs the file itself, so that Tenterhook does not.
    own_host: Option<&'static str>,
}

const GUARDS: [SharedGuard; 3] = [
    SharedGuard {
        name: "python guard",
        path: ".config/tenterhook/guard.py",
        text: r#"
import json, sys

event = json.load(sys.stdin)
if "ran.txt" in event["tool_input"]["cmd"]:
    print(json.dumps({"decision": "deny", "reason": "stopped by the python guard"}))
"#,
        is_in_hook_file: true,
        own_host: None,
    },
    SharedGuard {
        name: "kodelet guard",
        path: ".kodelet/hooks/guard",
        text: r#"#!/usr/bin/env python3
import json, sys

if sys.argv[1] == "hook":
    print("before_tool_call")
    sys.exit()
event = json.load(sys.stdin)
if event["tool_name"] == "bash" and "ran.txt" in event["tool_input"]["command"]:
    print(json.dumps({"blocked": True, "reason": "stopped by the kodelet guard"}))
"#,
        is_in_hook_file: false,
        own_host: None,
    },
    SharedGuard {
        name: "pi guard",
        path: ".pi/agent/extensions/guard.ts",
        text: r#"
import type { ExtensionAPI } from "@mariozechner/pi-coding-agent";

export default function (pi: ExtensionAPI) {
  pi.on("tool_call", async (event) => {
    if (event.toolName === "bash" && event.input.command.includes("ran.txt")) {
      return { block: true, reason: "stopped by the pi guard" };
    }
  });
}
"#,
        is_in_hook_file: false,
        own_host: Some("pi"),
    },
];

/// The hook file of the guard in Python.
const HOOK_FILE: &str =
    "hooks:\n  - {event: pre_tool_use, matcher: shell, argv: [python3, GUARD]}\n";

fn write_guard(guard: &SharedGuard, sandbox: &Sandbox) -> io::Result<()> {
    let path = sandbox.home().join(guard.path);
    fs::create_dir_all(path.parent().unwrap_or(Path::new("/")))?;
    fs::write(&path, guard.text)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    if guard.is_in_hook_file {
        let file = HOOK_FILE.replace("GUARD", &path.display().to_string());
        fs::write(sandbox.config().join("hooks.yaml"), file)?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "runs real agents"]
async fn each_guard_stops_the_same_command_in_every_agent() {
    let program = tenterhook();
    let agents = agents();
    let mut failures = Vec::new();
    for guard in &GUARDS {
        let mut stopped = Vec::new();
        for agent in &agents {
            let host = agent.host;
            if guard.own_host == Some(host.name) {
                continue;
            }
            let plan = TrialPlan {
                agent,
                tenterhook: &program,
                script: TrialScript::Command(1),
                write_hooks: &|sandbox| write_guard(guard, sandbox),
                change: &|_| Ok(()),
            };
            let trial = plan.run().await.unwrap();
            let shows_reason = ProofCase::DenyReason
                .rows(host)
                .iter()
                .any(|row| row.support == Support::Honoured);
            let is_shown = trial.outcome.was_shown(guard.name);
            if trial.has_run() || trial.outcome.turns == 0 || (shows_reason && !is_shown) {
                failures.push(format!(
                    "{}: {}\n{}",
                    guard.name, host.title, trial.outcome.output
                ));
            } else {
                stopped.push(host.title);
            }
        }
        println!(
            "{}: stops the command in {}",
            guard.name,
            stopped.join(", ")
        );
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
