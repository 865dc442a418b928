//! Coding agents call the shim, and the daemon runs the hooks.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::thread;

use serde_json::json;

use crate::shim_stage::{HostStage, eventually_ended, finish, kill};
use crate::stage::eventually;

const NO_SUDO: &str = "hooks: [{event: tool_guard, name: no-sudo, command: \
                       \"grep -q sudo && { echo no sudo here >&2; exit 2; }; exit 0\"}]";

#[test]
fn a_hook_of_the_user_denies_a_call_of_a_host_and_has_no_opinion_about_others() {
    let stage = HostStage::new().hooks(NO_SUDO);
    let denied = stage.claude("s1", "sudo ls").claude_denial().unwrap();
    assert!(denied.contains("no sudo here"), "{denied}");
    assert!(stage.claude("s1", "ls").is_silent());
    let status = stage.status();
    assert_eq!((status.events, status.stopped, status.failed), (2, 1, 0));
    assert_eq!(status.projects.len(), 1);
    assert_eq!(
        (status.projects[0].sessions, status.projects[0].hooks),
        (1, 1)
    );
    drop(stage.tenterhook(&["daemon", "--stop"]));
    let journal = eventually(|| Some(stage.journal()).filter(|it| it.contains("no sudo here")));
    assert!(journal.contains("\"tool_guard\""));
}

/// The payload of each host before the same shell command.
fn payloads(stage: &HostStage) -> Vec<(&'static str, &'static str, serde_json::Value)> {
    let work = stage.path("work");
    vec![
        (
            "claude-code",
            "PreToolUse",
            stage.claude_call("s1", "sudo ls"),
        ),
        (
            "gemini",
            "BeforeTool",
            json!({
                "session_id": "s1", "cwd": work, "hook_event_name": "BeforeTool",
                "timestamp": "2026-11-22T00:27:05.580Z", "tool_name": "run_shell_command",
                "tool_input": {"command": "sudo ls"},
            }),
        ),
    ]
}

#[test]
fn a_python_guard_a_kodelet_executable_and_a_pi_extension_each_stop_the_call_in_every_host() {
    let python = "from tenterhook import deny, on\n\n@on('pre_tool_use', matcher='shell')\n\
                  def guard(event):\n    if 'sudo' in event.tool_input['cmd']:\n        \
                  return deny('the guard says no')\n";
    let kodelet = "#!/usr/bin/env python3\nimport json, sys\nif sys.argv[1] == 'hook':\n    \
                   print('before_tool_call')\n    sys.exit()\nevent = json.load(sys.stdin)\n\
                   if 'sudo' in event['tool_input']['command']:\n    \
                   print(json.dumps({'blocked': True, 'reason': 'the guard says no'}))\n";
    let pi = "export default function (pi) {\n  pi.on('tool_call', async (event) => {\n    \
              if (event.input.command.includes('sudo')) {\n      \
              return { block: true, reason: 'the guard says no' };\n    }\n  });\n}\n";
    for (path, text) in [
        ("config/hooks/guard.py", python),
        ("home/.kodelet/hooks/guard", kodelet),
        ("home/.pi/agent/extensions/guard.js", pi),
    ] {
        let stage = HostStage::new();
        let written = stage.write(path, text);
        if written.extension().is_some() {
            fs::set_permissions(&written, fs::Permissions::from_mode(0o644)).unwrap();
        }
        for (host, event, payload) in payloads(&stage) {
            let printed = stage.send(host, event, &payload);
            assert!(
                printed.stdout.contains("the guard says no") && printed.stdout.contains("deny"),
                "{path} in {host}: {printed:?}"
            );
            let text = payload.to_string().replace("sudo ls", "ls");
            let printed = finish(stage.start(host, event, text.as_bytes()));
            assert!(printed.is_silent(), "{path} in {host}: {printed:?}");
        }
    }
}

/// Reads its rules when a session starts, and drops them when it ends. It allows everything without rules.
const PREPARED: &str = r#"
import fs from "node:fs";
export default (pi) => {
  let rules;
  pi.on("session_start", () => {
    rules = ["rm"];
    fs.writeFileSync("DIR/worker", String(process.pid));
  });
  pi.on("session_shutdown", () => { rules = undefined; });
  pi.on("tool_call", ({ input }) => rules?.includes(input.command) ? { block: true, reason: "guarded" } : undefined);
};
"#;

#[test]
fn a_forged_end_of_a_session_takes_no_rules_from_a_guard_also_if_its_worker_is_killed() {
    let stage = HostStage::new();
    let guard = PREPARED.replace("DIR", stage.path("").to_str().unwrap());
    let guard = stage.write("home/.pi/agent/extensions/guard.js", &guard);
    fs::set_permissions(&guard, fs::Permissions::from_mode(0o644)).unwrap();
    let start = stage.claude_start("s1");
    let started = stage.send("claude-code", "SessionStart", &start);
    assert!(started.is_silent(), "{started:?}");
    let denial = || stage.claude("s1", "rm").claude_denial();
    assert!(denial().unwrap().contains("guarded"));
    let forge_end = || {
        let end = json!({
            "session_id": "s1", "cwd": stage.path("work"),
            "hook_event_name": "SessionEnd", "reason": "other",
        });
        stage.send("claude-code", "SessionEnd", &end)
    };
    forge_end();
    assert!(denial().unwrap().contains("guarded"));
    assert!(stage.claude("s1", "ls").is_silent());
    forge_end();
    let worker = fs::read_to_string(stage.path("worker")).unwrap();
    let worker = worker.parse().unwrap();
    kill("KILL", worker);
    eventually_ended(worker);
    // A call that meets the end of the worker is denied too, for another reason.
    eventually(|| denial().unwrap().contains("guarded").then_some(()));
    assert!(stage.claude("s1", "ls").is_silent());
}

#[test]
fn the_result_of_a_tool_passes_the_hooks() {
    let redact = "hooks: [{event: tool_response_transform, builtin: redact_secrets}]";
    let stage = HostStage::new().hooks(redact);
    let key = format!("ghp_{}", "1x9QzP3vW7kB5nR2mT8yL4cF6dH0sJgA1x9Q");
    let mut event = stage.claude_call("s1", "cat key");
    event["hook_event_name"] = json!("PostToolUse");
    event["tool_response"] = json!({
        "stdout": format!("the key is {key}"), "stderr": "", "interrupted": false, "isImage": false,
    });
    let printed = stage.send("claude-code", "PostToolUse", &event);
    assert!(printed.stdout.contains("updatedToolOutput"), "{printed:?}");
    assert!(!printed.stdout.contains(&key), "{printed:?}");
}

#[test]
fn a_session_keeps_its_hooks_until_the_user_reloads_them() {
    let stage = HostStage::new().hooks(NO_SUDO);
    let start = stage.claude_start("old");
    assert!(
        stage
            .send("claude-code", "SessionStart", &start)
            .is_silent()
    );
    fs::remove_file(stage.path("config/hooks.d/hooks.yaml")).unwrap();
    assert!(stage.claude("new", "sudo ls").is_silent());
    assert!(stage.claude("old", "sudo ls").claude_denial().is_some());
    let reloaded = stage.tenterhook(&["reload"]);
    assert_eq!(reloaded.status, 0, "{reloaded:?}");
    assert!(stage.claude("old", "sudo ls").is_silent());
}

#[test]
fn a_broken_source_denies_gates_and_lets_observers_pass_until_it_is_repaired() {
    let stage = HostStage::new().hooks("hooks: [{event: no_such_event, command: cat}]");
    let denial = stage.claude("s1", "ls").claude_denial().unwrap();
    assert!(
        denial.contains("hooks.yaml") && denial.contains("tenterhook disable"),
        "{denial}"
    );
    let start = stage.claude_start("s1");
    assert!(
        stage
            .send("claude-code", "SessionStart", &start)
            .is_silent()
    );
    let printed = stage.tenterhook(&["status"]).stdout;
    assert!(printed.contains("cannot be loaded, so every gate denies"));
    // The next event loads the hooks again, so there is nothing to repair any more.
    let stage = stage.hooks(NO_SUDO);
    let printed = stage.tenterhook(&["status"]).stdout;
    assert!(!printed.contains("every gate denies"), "{printed}");
    let reloaded = stage.tenterhook(&["reload"]);
    let line = "the next event loads the hooks again";
    assert!(
        reloaded.status == 0 && reloaded.stdout.contains(line),
        "{reloaded:?}"
    );
    assert!(stage.claude("s1", "ls").is_silent());
    assert!(stage.claude("s1", "sudo ls").claude_denial().is_some());
}

#[test]
fn a_thousand_events_of_ten_projects_are_all_judged() {
    let stage = HostStage::new()
        .hooks("hooks: [{event: tool_guard, builtin: deny_commands, args: [sudo]}]");
    for project in 0..10 {
        fs::create_dir_all(stage.path(&format!("work/{project}"))).unwrap();
    }
    let stage = &stage;
    thread::scope(|scope| {
        for worker in 0..20 {
            scope.spawn(move || {
                for number in 0..50 {
                    let project = (worker * 50 + number) % 10;
                    let is_bad = number % 2 == 0;
                    let cmd = if is_bad { "sudo ls" } else { "ls" };
                    let mut event = stage.claude_call(&format!("s{project}"), cmd);
                    event["cwd"] = json!(stage.path(&format!("work/{project}")));
                    let printed = stage.send("claude-code", "PreToolUse", &event);
                    if is_bad {
                        assert!(printed.claude_denial().is_some(), "{printed:?}");
                    } else {
                        assert!(printed.is_silent(), "{printed:?}");
                    }
                }
            });
        }
    });
    let status = stage.status();
    assert_eq!(
        (status.events, status.stopped, status.failed),
        (1_000, 500, 0)
    );
    assert_eq!(status.projects.len(), 10);
}

/// Runs the script of an agent. Not by its name: the system does not start a file that is open for writing, and a process
/// that another test is just starting has a copy of everything that is open.
#[cfg(target_os = "linux")]
fn run_agent(stage: &HostStage, agent: &std::path::Path) -> std::process::Output {
    let mut shell = stage.command("/bin/sh");
    shell.arg(agent).arg(stage.path("")).output().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn a_program_of_a_coding_agent_cannot_approve_disable_or_reload() {
    let stage = HostStage::new().hooks(NO_SUDO);
    let program = env!("CARGO_BIN_EXE_tenterhook");
    let event = stage.claude_call("s1", "ls").to_string();
    fs::write(stage.path("event.json"), event).unwrap();
    // A script of this name is a process of Claude Code, as the daemon sees it.
    let agent = stage.write(
        "claude",
        &format!(
            "#!/bin/sh\n\"$1/bin/tenterhook-shim\" claude-code PreToolUse < \"$1/event.json\"\n\
             for words in 'trust --all' 'disable hooks.yaml --yes' reload 'daemon --stop'; do\n  \
             {program} $words; echo status $?\ndone\n"
        ),
    );
    let output = run_agent(&stage, &agent);
    let said = String::from_utf8(output.stderr).unwrap();
    let statuses = String::from_utf8(output.stdout).unwrap();
    assert_eq!(statuses, "status 64\n".repeat(4), "{said}");
    assert_eq!(
        said.matches("a program that a coding agent runs cannot")
            .count(),
        4
    );
    // The user's own terminal is not below the agent.
    assert_eq!(stage.tenterhook(&["reload"]).status, 0);
}

#[cfg(target_os = "linux")]
#[test]
fn an_agent_that_hides_the_daemon_with_its_own_variables_cannot_approve_or_disable() {
    let stage = HostStage::new().hooks(NO_SUDO);
    let program = env!("CARGO_BIN_EXE_tenterhook");
    let event = stage.claude_call("s1", "ls").to_string();
    fs::write(stage.path("event.json"), event).unwrap();
    let agent = stage.write(
        "claude",
        &format!(
            "#!/bin/sh\n\"$1/bin/tenterhook-shim\" claude-code PreToolUse < \"$1/event.json\"\n\
             for change in \"XDG_RUNTIME_DIR=$1/home\" 'XDG_RUNTIME_DIR=' \"HOME=$1/work\"; do\n  \
             for words in 'trust --all' 'disable hooks.yaml --yes'; do\n    \
             env \"$change\" {program} $words; echo status $?\n  done\ndone\n"
        ),
    );
    let output = run_agent(&stage, &agent);
    let said = String::from_utf8(output.stderr).unwrap();
    let statuses = String::from_utf8(output.stdout).unwrap();
    assert_eq!(statuses, "status 64\n".repeat(6), "{said}");
    let refusals = said.matches("a program that a coding agent runs cannot");
    assert_eq!(refusals.count(), 6, "{said}");
}

#[test]
fn an_agent_that_pushes_its_session_out_with_invented_ones_keeps_the_hooks_of_its_folder() {
    let stage = HostStage::new().hooks(NO_SUDO);
    let elsewhere = stage.path("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let send = |session: &str| {
        let mut event = stage.claude_call(session, "ls");
        event["cwd"] = json!(elsewhere);
        assert!(stage.send("claude-code", "PreToolUse", &event).is_silent());
    };
    assert!(stage.claude("own", "ls").is_silent());
    for number in 0..256 {
        send(&format!("invented-{number}"));
    }
    let sessions_at_work = || {
        let work = stage.path("work").canonicalize().unwrap();
        let projects = stage.status().projects;
        let of_work = projects.into_iter().filter(|it| it.path == work);
        of_work.map(|it| it.sessions).sum::<usize>()
    };
    assert_eq!(sessions_at_work(), 0);
    send("own");
    assert_eq!(sessions_at_work(), 1);
}

const NEVER_ENDS: &str = "hooks: [{event: stop, command: \"echo '{\\\"decision\\\": \\\"block\\\", \\\"reason\\\": \\\"go on\\\"}'\"}]";

#[test]
fn a_stop_hook_that_never_agrees_keeps_the_agent_working_only_a_few_times() {
    let stage = HostStage::new().hooks(NEVER_ENDS);
    let event = json!({
        "session_id": "s1", "cwd": stage.path("work"), "hook_event_name": "Stop",
        "stop_hook_active": true,
    });
    let mut continued = 0;
    for _ in 0..12 {
        let printed = stage.send("claude-code", "Stop", &event);
        continued += usize::from(printed.stdout.contains("go on"));
    }
    assert_eq!(continued, 8);
}

#[test]
fn a_stop_hook_is_bounded_in_a_host_that_announces_the_message_of_the_hook_as_a_prompt() {
    let stage = HostStage::new().hooks(NEVER_ENDS);
    let event = |name: &str, fields: serde_json::Value| {
        let mut event = json!({
            "session_id": "s1", "cwd": stage.path("work"), "hook_event_name": name,
        });
        event
            .as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        stage.send("gemini", name, &event)
    };
    let rounds = |prompt: &str| {
        event("BeforeAgent", json!({"prompt": prompt}));
        let mut rounds = 0;
        let stop = json!({"prompt": prompt, "prompt_response": "done", "stop_hook_active": false});
        while rounds < 20 && event("AfterAgent", stop.clone()).stdout.contains("go on") {
            rounds += 1;
            event("BeforeAgent", json!({"prompt": "go on"}));
        }
        rounds
    };
    assert_eq!(rounds("first"), 8);
    // The user has spoken, so the hooks may continue again.
    assert_eq!(rounds("second"), 8);
}

#[test]
fn a_project_that_leads_the_shim_to_other_folders_by_variables_does_not_switch_hooks_off() {
    let stage = HostStage::new().hooks(NO_SUDO);
    let folders = format!(
        "HOME={}\nTENTERHOOK_CONFIG_DIR={}\n",
        stage.path("home").display(),
        stage.path("config").display()
    );
    stage.write("bin/tenterhook-shim.env", &folders);
    let empty = stage.path("work").display().to_string();
    let mut stage = stage;
    for name in [
        "HOME",
        "TENTERHOOK_CONFIG_DIR",
        "TENTERHOOK_DATA_DIR",
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
        "XDG_STATE_HOME",
    ] {
        stage = stage.variable(name, &empty);
    }
    assert!(stage.claude("s1", "ls").is_silent());
    assert!(stage.claude("s1", "sudo ls").claude_denial().is_some());
}

#[test]
fn a_call_that_two_entries_announce_is_judged_once_and_both_get_the_answer() {
    let stage = HostStage::new().hooks(
        "hooks: [{event: tool_guard, command: \"echo x >> $HOME/judged; grep -q sudo && exit 2; exit 0\"}, \
         {event: post_tool_use, command: \"echo x >> $HOME/seen\"}]",
    );
    let call = stage.claude_call("s1", "sudo ls");
    let text = call.to_string();
    let shims = [(); 2].map(|()| stage.start("claude-code", "PreToolUse", text.as_bytes()));
    for shim in shims {
        assert!(finish(shim).claude_denial().is_some());
    }
    let lines = |name: &str| {
        fs::read_to_string(stage.path(name))
            .unwrap_or_default()
            .lines()
            .count()
    };
    assert_eq!(lines("home/judged"), 1);
    let mut result = stage.claude_call("s1", "ls");
    // The hooks that watch also see the denied call.
    let seen = eventually(|| Some(lines("home/seen")).filter(|seen| *seen > 0));
    result["hook_event_name"] = json!("PostToolUse");
    result["tool_response"] =
        json!({"stdout": "", "stderr": "", "interrupted": false, "isImage": false});
    for _ in 0..2 {
        assert!(
            stage
                .send("claude-code", "PostToolUse", &result)
                .is_silent()
        );
    }
    assert_eq!(lines("home/seen"), seen + 1);
    // Another call is judged, also if it has the same id.
    let other = finish(stage.start(
        "claude-code",
        "PreToolUse",
        text.replace("sudo ls", "ls").as_bytes(),
    ));
    assert!(other.is_silent(), "{other:?}");
    assert_eq!(lines("home/judged"), 2);
}

#[test]
fn hooks_of_user_input_judge_a_prompt_before_those_of_user_prompt_submit() {
    let stage = HostStage::new().hooks(
        "hooks: [{event: user_input, command: \"cat > $HOME/first\"}, \
         {event: user_prompt_submit, command: \"test -e $HOME/first && echo the context\"}]",
    );
    let prompt = json!({
        "session_id": "s1", "cwd": stage.path("work"), "hook_event_name": "UserPromptSubmit",
        "prompt": "build it",
    });
    let printed = stage.send("claude-code", "UserPromptSubmit", &prompt);
    assert!(printed.stdout.contains("the context"), "{printed:?}");
    let first = fs::read_to_string(stage.path("home/first")).unwrap();
    assert!(first.contains("build it"), "{first}");
}

#[test]
fn a_prompt_that_a_hook_changed_or_handled_is_blocked_where_the_host_cannot_send_another() {
    let change = "from tenterhook import on, patch\n\n@on('user_input')\ndef change(event):\n    \
                  return patch(text='another prompt')\n";
    let handle = "from tenterhook import handled, on\n\n@on('user_input')\ndef handle(event):\n    \
                  return handled()\n";
    for (script, words) in [
        (change, "changed the prompt"),
        (handle, "handled the input"),
    ] {
        let stage = HostStage::new();
        let written = stage.write("config/hooks/input.py", script);
        fs::set_permissions(&written, fs::Permissions::from_mode(0o644)).unwrap();
        let work = stage.path("work");
        let prompt = json!({
            "session_id": "s1", "cwd": work, "hook_event_name": "UserPromptSubmit", "prompt": "build it",
        });
        let printed = stage.send("claude-code", "UserPromptSubmit", &prompt);
        assert!(
            printed.stdout.contains("\"block\"") && printed.stdout.contains(words),
            "{printed:?}"
        );
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_program_of_an_agent_whose_process_has_another_name_than_its_program_cannot_uninstall() {
    let program = env!("CARGO_BIN_EXE_tenterhook");
    for (host, event, process) in [
        ("kimi", "PreToolUse", "kimi-code"),
        ("vibe", "pre_tool", "vibe-rs"),
        ("vibe", "pre_tool", "vibe-app-server"),
    ] {
        let stage = HostStage::new().hooks(NO_SUDO);
        let payload = json!({
            "session_id": "s1", "cwd": stage.path("work"), "hook_event_name": event,
            "tool_name": "Bash", "tool_input": {"command": "ls"},
        });
        fs::write(stage.path("event.json"), payload.to_string()).unwrap();
        let agent = stage.write(
            process,
            &format!(
                "#!/bin/sh\n\"$1/bin/tenterhook-shim\" {host} {event} < \"$1/event.json\"\n\
                 {program} uninstall {host}; echo status $?\n"
            ),
        );
        let output = run_agent(&stage, &agent);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(
            said.contains("a coding agent runs cannot uninstall"),
            "{process}: {said}"
        );
        assert_eq!(
            String::from_utf8(output.stdout).unwrap(),
            "status 64\n",
            "{process}"
        );
    }
}

#[test]
fn every_call_in_the_session_of_a_subagent_says_so_if_only_its_start_names_the_caller() {
    let stage = HostStage::new()
        .hooks("hooks: [{event: pre_tool_use, command: \"cat > $HOME/seen.json\"}]");
    let event = |name: &str, session: &str, fields: serde_json::Value| {
        let mut event = json!({
            "session_id": session, "cwd": stage.path("work"), "hook_event_name": name,
        });
        event
            .as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        assert!(stage.send("droid", name, &event).is_silent());
    };
    let invoked_by = |session: &str| {
        let call = json!({"tool_name": "Execute", "tool_input": {"command": "ls"}});
        event("PreToolUse", session, call);
        let seen = fs::read_to_string(stage.path("home/seen.json")).unwrap();
        let seen: serde_json::Value = serde_json::from_str(&seen).unwrap();
        seen["invoked_by"].clone()
    };
    event("SessionStart", "main", json!({"source": "startup"}));
    event(
        "SessionStart",
        "sub",
        json!({"source": "startup", "calling_session_id": "main"}),
    );
    assert_eq!(invoked_by("sub"), "subagent");
    assert_eq!(invoked_by("main"), "main");
}

#[test]
fn a_hook_of_results_is_refused_in_a_host_that_keeps_its_own_results() {
    let stage = HostStage::new().hooks(
        "hooks: [{event: tool_response_transform, builtin: redact_secrets}, {event: tool_guard, builtin: safer_shell}]",
    );
    let call = json!({
        "event": "PreToolUse", "session_id": "s1", "working_dir": stage.path("work"),
        "tool_name": "shell", "tool_input": {"command": "ls"}, "tool_call_id": "c1",
    });
    assert!(stage.send("goose", "PreToolUse", &call).is_silent());
    stage.claude("s1", "ls");
    let projects = stage.status().projects;
    let of = |host: &str| projects.iter().find(|it| it.host == host).unwrap();
    assert_eq!((of("goose").hooks, of("claude-code").hooks), (1, 2));
    let warnings = of("goose").warnings.join("\n");
    assert!(
        warnings.contains("goose keeps the tool's own result"),
        "{warnings}"
    );
    assert!(
        warnings.contains("`decision: deny` of `pre_tool_use`"),
        "{warnings}"
    );
    assert!(of("claude-code").warnings.is_empty());
}
