//! The tables of the tools of hosts, in both directions.

use serde_json::Value;
use tenterhook_engine::ToolNames as _;
use tenterhook_protocol::JsonObject;
use tenterhook_systems::host::HostAgent;

/// A host, one of its calls, the canonical tool, and the canonical arguments. Each translates both ways.
const CALLS: &str = r#"[
["gemini", "run_shell_command", {"command": "ls", "dir_path": "/w"}, "shell", {"cmd": "ls", "cwd": "/w"}],
["gemini", "read_file", {"file_path": "a", "start_line": 3, "end_line": 5}, "read_file", {"path": "a", "offset": 3, "limit": 3}],
["gemini", "write_file", {"file_path": "a", "content": "x"}, "write_file", {"path": "a", "content": "x"}],
["gemini", "replace", {"file_path": "a", "old_string": "x", "new_string": "y"}, "edit_file", {"path": "a", "old_text": "x", "new_text": "y"}],
["gemini", "list_directory", {"dir_path": "a"}, "list_directory", {"path": "a"}],
["gemini", "grep_search", {"pattern": "x.", "dir_path": "a", "include_pattern": "*.rs"}, "search", {"pattern": "x.", "path": "a", "glob": "*.rs"}],
["gemini", "glob", {"pattern": "*.rs"}, "find_files", {"pattern": "*.rs"}],
["gemini", "google_web_search", {"query": "q"}, "web_search", {"query": "q"}],
["gemini", "invoke_agent", {"prompt": "do", "agent_name": "a"}, "task", {"prompt": "do", "agent": "a"}],
["goose", "shell", {"command": "ls", "timeout_secs": 5}, "shell", {"cmd": "ls", "timeout": 5}],
["goose", "write", {"path": "a", "content": "x"}, "write_file", {"path": "a", "content": "x"}],
["goose", "edit", {"path": "a", "before": "x", "after": "y"}, "edit_file", {"path": "a", "old_text": "x", "new_text": "y"}],
["goose", "tree", {"path": "a"}, "list_directory", {"path": "a"}],
["goose", "delegate", {"instructions": "do", "source": "a"}, "task", {"prompt": "do", "agent": "a"}],
["cline", "run_commands", {"commands": ["ls"]}, "shell", {"cmd": "ls"}],
["cline", "read_files", {"files": [{"path": "a", "start_line": 3, "end_line": 5}]}, "read_file", {"path": "a", "offset": 3, "limit": 3}],
["cline", "editor", {"path": "a", "new_text": "x"}, "write_file", {"path": "a", "content": "x"}],
["cline", "editor", {"path": "a", "old_text": "x", "new_text": "y"}, "edit_file", {"path": "a", "old_text": "x", "new_text": "y"}],
["cline", "search_codebase", {"queries": ["x."]}, "search", {"pattern": "x."}],
["cline", "fetch_web_content", {"requests": [{"url": "https://a.example"}]}, "web_fetch", {"url": "https://a.example"}],
["cline", "spawn_agent", {"task": "do"}, "task", {"prompt": "do"}],
["vibe", "file_system.bash", {"command": "ls", "timeout": 5}, "shell", {"cmd": "ls", "timeout": 5}],
["vibe", "file_system.read_file", {"file_path": "a", "offset": 2}, "read_file", {"path": "a", "offset": 3}],
["vibe", "file_system.write_file", {"file_path": "a", "content": "x"}, "write_file", {"path": "a", "content": "x"}],
["vibe", "file_system.search_replace", {"file_path": "a", "old_string": "x", "new_string": "y"}, "edit_file", {"path": "a", "old_text": "x", "new_text": "y"}],
["opencode", "bash", {"command": "ls", "workdir": "/w", "timeout": 5000}, "shell", {"cmd": "ls", "cwd": "/w", "timeout": 5}],
["opencode", "read", {"filePath": "a", "offset": 3}, "read_file", {"path": "a", "offset": 3}],
["opencode", "write", {"filePath": "a", "content": "x"}, "write_file", {"path": "a", "content": "x"}],
["opencode", "edit", {"filePath": "a", "oldString": "x", "newString": "y"}, "edit_file", {"path": "a", "old_text": "x", "new_text": "y"}],
["opencode", "grep", {"pattern": "x.", "include": "*.rs"}, "search", {"pattern": "x.", "glob": "*.rs"}],
["opencode", "task", {"prompt": "do", "subagent_type": "a"}, "task", {"prompt": "do", "agent": "a"}],
["opencode", "apply_patch", {"patchText": "*** Begin Patch\n*** Delete File: a\n*** End Patch"}, "delete_file", {"path": "a"}]
]"#;

/// A host, a call with several operations, and the canonical tool and arguments of each.
const SEVERAL: &str = r#"[
["cline", "run_commands", {"commands": ["ls", "rm a"]}, [["shell", {"cmd": "ls"}], ["shell", {"cmd": "rm a"}]]],
["cline", "read_files", {"files": [{"path": "a"}, {"path": "b", "end_line": 2}]}, [["read_file", {"path": "a"}], ["read_file", {"path": "b", "limit": 2}]]],
["cline", "fetch_web_content", {"requests": [{"url": "u", "prompt": "p"}, {"url": "v"}]}, [["web_fetch", {"url": "u", "prompt": "p"}], ["web_fetch", {"url": "v"}]]],
["cline", "apply_patch", {"input": "*** Begin Patch\n*** Add File: a\n+1\n*** Delete File: b\n*** End Patch"}, [["write_file", {"path": "a", "content": "1\n"}], ["delete_file", {"path": "b"}]]]
]"#;

/// A host, a call that hooks cannot judge, and a part of the error.
const REFUSED: &str = r#"[
["cline", "run_commands", {"command": "ls", "cmd": "rm a"}, "`commands` is missing"],
["cline", "read_files", {"files": ["a"]}, "`files` holds a string, expected objects"],
["cline", "read_files", {"files": [{"path": "a"}], "path": "b"}, "`path` is given twice"],
["cline", "read_files", {"files": []}, "`files` is empty"],
["gemini", "run_shell_command", {"command": "ls", "cmd": "rm a"}, "`cmd` is given twice"]
]"#;

fn object(value: &Value) -> &JsonObject {
    value.as_object().unwrap()
}

#[test]
fn a_call_of_a_host_is_a_canonical_call_and_back() {
    let calls: Vec<(String, String, Value, String, Value)> = serde_json::from_str(CALLS).unwrap();
    for (host, name, own, tool, canonical) in &calls {
        let tools = HostAgent::by_name(host).unwrap().tools;
        let operations = tools.operations(name, object(own)).unwrap().unwrap();
        let [operation] = operations.as_slice() else {
            unreachable!("{host} {name}: {operations:?}");
        };
        assert_eq!(
            (&operation.tool, &operation.input),
            (tool, object(canonical))
        );
        if operation.tool == "delete_file" {
            continue;
        }
        let view = tools.view(tool, object(canonical)).unwrap().unwrap();
        assert_eq!((&view.name, &view.input), (name, object(own)), "{host}");
        let back = tools.canonical_input(tool, object(own)).unwrap();
        assert_eq!(back, *object(canonical), "{host} {name}");
    }
}

#[test]
fn a_call_with_a_list_has_an_operation_for_each_item() {
    type Operations = Vec<(String, Value)>;
    let calls: Vec<(String, String, Value, Operations)> = serde_json::from_str(SEVERAL).unwrap();
    for (host, name, own, expected) in calls {
        let tools = HostAgent::by_name(&host).unwrap().tools;
        let operations = tools.operations(&name, object(&own)).unwrap().unwrap();
        let found = operations.into_iter().map(|it| (it.tool, it.input.into()));
        assert_eq!(found.collect::<Operations>(), expected, "{host} {name}");
    }
}

#[test]
fn a_call_that_could_be_misjudged_is_refused() {
    let calls: Vec<(String, String, Value, String)> = serde_json::from_str(REFUSED).unwrap();
    for (host, name, own, problem) in calls {
        let tools = HostAgent::by_name(&host).unwrap().tools;
        let error = tools
            .operations(&name, object(&own))
            .unwrap_err()
            .to_string();
        assert!(error.contains(&problem), "{host} {name}: {error}");
    }
}
