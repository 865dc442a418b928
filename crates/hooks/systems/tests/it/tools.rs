//! The tables of tools, in both directions.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Value, json};
use tenterhook_protocol::JsonObject;
use tenterhook_systems::tools::{self, CANONICAL_TOOLS, canonical, known_tool_names, of, rows};

fn object(value: &Value) -> JsonObject {
    value.as_object().unwrap().clone()
}

/// A canonical call, a system, and the call as hooks of the system see it. Each pair translates in both
/// directions.
const VIEWS: &str = r#"[
["shell", {"cmd": "ls", "timeout": 5}, "claude-code", "Bash", {"command": "ls", "timeout": 5000}],
["read_file", {"path": "/a", "offset": 3, "limit": 2}, "claude-code", "Read", {"file_path": "/a", "offset": 3, "limit": 2}],
["write_file", {"path": "/a", "content": "x"}, "claude-code", "Write", {"file_path": "/a", "content": "x"}],
["edit_file", {"path": "/a", "old_text": "x", "new_text": "y"}, "claude-code", "Edit", {"file_path": "/a", "old_string": "x", "new_string": "y"}],
["list_directory", {"path": "a"}, "claude-code", "LS", {"path": "a"}],
["search", {"pattern": "x.", "path": "a", "glob": "*.rs"}, "claude-code", "Grep", {"pattern": "x.", "path": "a", "glob": "*.rs"}],
["find_files", {"pattern": "*.rs"}, "claude-code", "Glob", {"pattern": "*.rs"}],
["web_fetch", {"url": "https://a.example"}, "claude-code", "WebFetch", {"url": "https://a.example"}],
["web_search", {"query": "q"}, "claude-code", "WebSearch", {"query": "q"}],
["task", {"prompt": "do", "agent": "a"}, "claude-code", "Agent", {"prompt": "do", "subagent_type": "a"}],
["shell", {"cmd": "ls"}, "codex", "Bash", {"command": "ls"}],
["delete_file", {"path": "a"}, "codex", "apply_patch", {"command": "*** Begin Patch\n*** Delete File: a\n*** End Patch"}],
["write_file", {"path": "a", "content": "x\ny\n"}, "codex", "apply_patch", {"command": "*** Begin Patch\n*** Add File: a\n+x\n+y\n*** End Patch"}],
["edit_file", {"path": "a", "old_text": "x", "new_text": "y\nz"}, "codex", "apply_patch", {"command": "*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n+z\n*** End Patch"}],
["task", {"prompt": "do"}, "codex", "spawn_agent", {"message": "do"}],
["shell", {"cmd": "ls"}, "copilot", "bash", {"command": "ls"}],
["read_file", {"path": "a"}, "copilot", "view", {"path": "a"}],
["write_file", {"path": "a", "content": "x"}, "copilot", "create", {"path": "a", "file_text": "x"}],
["edit_file", {"path": "a", "old_text": "x", "new_text": "y"}, "copilot", "edit", {"path": "a", "old_str": "x", "new_str": "y"}],
["delete_file", {"path": "a"}, "copilot", "apply_patch", {"input": "*** Begin Patch\n*** Delete File: a\n*** End Patch"}],
["search", {"pattern": "x.", "path": "a", "glob": "*.rs"}, "copilot", "grep", {"pattern": "x.", "paths": "a", "glob": "*.rs"}],
["find_files", {"pattern": "*.rs", "path": "a"}, "copilot", "glob", {"pattern": "*.rs", "paths": "a"}],
["task", {"prompt": "do", "agent": "a"}, "copilot", "task", {"prompt": "do", "agent_type": "a"}],
["shell", {"cmd": "ls", "cwd": "/w", "timeout": 5}, "kodelet", "bash", {"command": "ls", "cwd": "/w", "timeout": 5}],
["shell", {"cmd": "ls", "cwd": "/w", "timeout": 5}, "operator", "terminal", {"cmd": "ls", "cwd": "/w", "timeout": 5}],
["shell", {"cmd": "ls", "cwd": "/w"}, "morphix", "bash_manager", {"command": "ls", "cwd": "/w"}],
["shell", {"cmd": "ls", "timeout": 5}, "pi", "bash", {"command": "ls", "timeout": 5}],
["shell", {"cmd": "ls", "cwd": "/w"}, "docker-agent", "shell", {"cmd": "ls", "cwd": "/w"}],
["read_file", {"path": "a", "offset": 3, "limit": 2}, "kodelet", "file_read", {"file_path": "a", "offset": 3, "line_limit": 2}],
["read_file", {"path": "a", "offset": 3, "limit": 2}, "operator", "read", {"path": "a", "offset": 2, "limit": 2}],
["read_file", {"path": "a"}, "morphix", "file_manager", {"action": "read", "path": "a"}],
["read_file", {"path": "a", "offset": 3}, "pi", "read", {"path": "a", "offset": 3}],
["read_file", {"path": "a", "offset": 3}, "docker-agent", "read_file", {"path": "a", "line": 3}],
["write_file", {"path": "a", "content": "x"}, "kodelet", "file_write", {"file_path": "a", "text": "x"}],
["write_file", {"path": "a", "content": "x"}, "operator", "write", {"path": "a", "content": "x"}],
["write_file", {"path": "a", "content": "x"}, "morphix", "file_manager", {"action": "write", "path": "a", "content": "x"}],
["write_file", {"path": "a", "content": "x"}, "pi", "write", {"path": "a", "content": "x"}],
["write_file", {"path": "a", "content": "x"}, "docker-agent", "write_file", {"path": "a", "content": "x"}],
["edit_file", {"path": "a", "old_text": "x", "new_text": "y", "replace_all": true}, "kodelet", "file_edit", {"file_path": "a", "old_text": "x", "new_text": "y", "replace_all": true}],
["edit_file", {"path": "a", "old_text": "x", "new_text": "y"}, "operator", "edit_file", {"path": "a", "edits": [{"old_content": "x", "new_content": "y"}]}],
["edit_file", {"path": "a", "old_text": "x", "new_text": "y\nz"}, "morphix", "diff_editor", {"action": "apply", "file_path": "a", "diff_content": "@@ -1,1 +1,2 @@\n-x\n+y\n+z\n"}],
["edit_file", {"path": "a", "old_text": "x", "new_text": "y"}, "pi", "edit", {"path": "a", "edits": [{"oldText": "x", "newText": "y"}]}],
["edit_file", {"path": "a", "old_text": "x", "new_text": "y"}, "docker-agent", "edit_file", {"path": "a", "edits": [{"oldText": "x", "newText": "y"}]}],
["delete_file", {"path": "a"}, "kodelet", "apply_patch", {"input": "*** Begin Patch\n*** Delete File: a\n*** End Patch"}],
["delete_file", {"path": "a"}, "morphix", "file_manager", {"action": "delete", "path": "a"}],
["list_directory", {"path": "a"}, "operator", "ls", {"path": "a"}],
["list_directory", {"path": "a"}, "pi", "ls", {"path": "a"}],
["list_directory", {"path": "a"}, "docker-agent", "list_directory", {"path": "a"}],
["search", {"pattern": "x.", "path": "a", "glob": "*.rs"}, "kodelet", "grep_tool", {"pattern": "x.", "path": "a", "include": "*.rs"}],
["search", {"pattern": "x.", "path": "a", "glob": "*.rs"}, "operator", "grep", {"pattern": "x.", "path": "a", "glob": "*.rs"}],
["search", {"pattern": "x.", "glob": "*.rs"}, "morphix", "code_search", {"pattern": "x.", "include": "*.rs"}],
["search", {"pattern": "x.", "glob": "*.rs"}, "pi", "grep", {"pattern": "x.", "glob": "*.rs"}],
["search", {"pattern": "x.", "path": "a"}, "docker-agent", "search_files_content", {"query": "x.", "is_regex": true, "path": "a"}],
["find_files", {"pattern": "*.rs", "path": "a"}, "kodelet", "glob_tool", {"pattern": "*.rs", "path": "a"}],
["find_files", {"pattern": "*.rs"}, "operator", "glob", {"pattern": "*.rs"}],
["find_files", {"pattern": "*.rs"}, "pi", "find", {"pattern": "*.rs"}],
["web_fetch", {"url": "https://a.example"}, "kodelet", "web_fetch", {"url": "https://a.example"}],
["web_fetch", {"url": "https://a.example"}, "operator", "web_fetch", {"url": "https://a.example"}],
["web_fetch", {"url": "https://a.example"}, "morphix", "web_fetch", {"url": "https://a.example"}],
["web_fetch", {"url": "https://a.example"}, "docker-agent", "fetch", {"urls": ["https://a.example"]}],
["web_search", {"query": "q"}, "operator", "web_search", {"query": "q"}],
["web_search", {"query": "q"}, "morphix", "web_search", {"query": "q"}],
["task", {"prompt": "do", "agent": "a"}, "kodelet", "subagent", {"question": "do", "workflow": "a"}],
["task", {"prompt": "do", "agent": "a"}, "operator", "subagent", {"action": "create", "task": "do", "profile": "a"}],
["task", {"prompt": "do", "agent": "a"}, "docker-agent", "transfer_task", {"task": "do", "agent": "a"}],
["shell", {"cmd": "ls", "cwd": "/w"}, "gemini", "run_shell_command", {"command": "ls", "dir_path": "/w"}],
["read_file", {"path": "a", "offset": 3, "limit": 3}, "gemini", "read_file", {"file_path": "a", "start_line": 3, "end_line": 5}],
["write_file", {"path": "a", "content": "x"}, "gemini", "write_file", {"file_path": "a", "content": "x"}],
["edit_file", {"path": "a", "old_text": "x", "new_text": "y"}, "gemini", "replace", {"file_path": "a", "old_string": "x", "new_string": "y"}],
["list_directory", {"path": "a"}, "gemini", "list_directory", {"dir_path": "a"}],
["search", {"pattern": "x.", "glob": "*.rs"}, "gemini", "grep_search", {"pattern": "x.", "include_pattern": "*.rs"}],
["find_files", {"pattern": "*.rs"}, "gemini", "glob", {"pattern": "*.rs"}],
["web_search", {"query": "q"}, "gemini", "google_web_search", {"query": "q"}],
["task", {"prompt": "do", "agent": "a"}, "gemini", "invoke_agent", {"prompt": "do", "agent_name": "a"}],
["task", {"prompt": "do", "agent": "a"}, "native", "transfer_task", {"task": "do", "agent": "a"}]
]"#;

/// A system, its call, and the canonical operations.
const OPERATIONS: &str = r#"[
["docker-agent", "shell", {"command": "ls", "cmd": " "}, [["shell", {"cmd": "ls"}]]],
["docker-agent", "run_background_job", {"cmd": "ls"}, [["shell", {"cmd": "ls"}]]],
["docker-agent", "read_multiple_files", {"paths": ["a", "b"], "json": true}, [["read_file", {"path": "a", "json": true}], ["read_file", {"path": "b", "json": true}]]],
["docker-agent", "fetch", {"urls": ["u", "v"], "timeout": 3}, [["web_fetch", {"url": "u", "timeout": 3}], ["web_fetch", {"url": "v", "timeout": 3}]]],
["docker-agent", "edit_file", {"path": "a", "edits": [{"oldText": "1", "newText": "2"}, {"oldText": "3", "newText": "4"}]}, [["edit_file", {"path": "a", "old_text": "1", "new_text": "2"}], ["edit_file", {"path": "a", "old_text": "3", "new_text": "4"}]]],
["docker-agent", "edit_file", {"path": "a", "edits": "[{\"oldText\": \"1\", \"newText\": \"2\"}]"}, [["edit_file", {"path": "a", "old_text": "1", "new_text": "2"}]]],
["docker-agent", "search_files_content", {"query": "a.b", "path": "."}, [["search", {"pattern": "a\\.b", "path": "."}]]],
["docker-agent", "directory_tree", {"path": "a"}, [["list_directory", {"path": "a"}]]],
["docker-agent", "create_directory", {"paths": ["a"]}, [["create_directory", {"paths": ["a"]}]]],
["docker-agent", "run_background_agent", {"agent": "a", "task": "do"}, [["task", {"prompt": "do", "agent": "a"}]]],
["pi", "edit", {"path": "a", "oldText": "1", "newText": "2"}, [["edit_file", {"path": "a", "old_text": "1", "new_text": "2"}]]],
["pi", "powershell", {"command": "ls"}, [["shell", {"cmd": "ls"}]]],
["operator", "read_file", {"path": "a", "start_line": 3, "end_line": 5}, [["read_file", {"path": "a", "offset": 3, "limit": 3}]]],
["operator", "read_file", {"path": "a", "end_line": 5}, [["read_file", {"path": "a", "limit": 5}]]],
["operator", "patch_file", {"path": "a", "patch": "@@ -1 +1 @@\n-1\n+2\n@@ -9 +9 @@\n-3\n+4\n"}, [["edit_file", {"path": "a", "old_text": "1", "new_text": "2"}], ["edit_file", {"path": "a", "old_text": "3", "new_text": "4"}]]],
["operator", "subagent", {"action": "status"}, [["subagent", {"action": "status"}]]],
["operator", "mcp_x", {"command": "ls"}, [["mcp_x", {"command": "ls"}]]],
["morphix", "file_manager", {"path": "a", "content": "x"}, [["write_file", {"path": "a", "content": "x"}]]],
["morphix", "file_manager", {"path": "a", "content": " "}, [["write_file", {"path": "a", "content": " "}]]],
["morphix", "file_manager", {"path": "a", "content": "\n"}, [["write_file", {"path": "a", "content": "\n"}]]],
["morphix", "file_manager", {"path": "a", "content": ""}, [["read_file", {"path": "a", "content": ""}]]],
["morphix", "file_manager", {"file_path": "a"}, [["read_file", {"path": "a"}]]],
["morphix", "file_manager", {"action": "append", "path": "a", "content": "x"}, [["edit_file", {"path": "a", "new_text": "x"}]]],
["morphix", "file_manager", {"action": "remove", "path": "a"}, [["delete_file", {"path": "a"}]]],
["morphix", "diff_editor", {"path": "a", "content": "@@ -1 +1 @@\n-1\n+2"}, [["edit_file", {"path": "a", "old_text": "1", "new_text": "2"}]]],
["claude-code", "MultiEdit", {"file_path": "/a", "edits": [{"old_string": "1", "new_string": "2"}, {"old_string": "3", "new_string": "4"}]}, [["edit_file", {"path": "/a", "old_text": "1", "new_text": "2"}], ["edit_file", {"path": "/a", "old_text": "3", "new_text": "4"}]]],
["claude-code", "NotebookEdit", {"notebook_path": "/a.ipynb", "new_source": "x"}, [["edit_file", {"path": "/a.ipynb", "new_text": "x"}]]],
["copilot", "rg", {"pattern": "x", "paths": ["a", "b"]}, [["search", {"pattern": "x", "path": "a"}], ["search", {"pattern": "x", "path": "b"}]]],
["copilot", "str_replace_editor", {"command": "view", "path": "a"}, [["read_file", {"path": "a"}]]],
["copilot", "str_replace_editor", {"command": "create", "path": "a", "file_text": "x"}, [["write_file", {"path": "a", "content": "x"}]]],
["copilot", "str_replace_editor", {"command": "str_replace", "path": "a", "old_str": "x", "new_str": "y"}, [["edit_file", {"path": "a", "old_text": "x", "new_text": "y"}]]],
["copilot", "str_replace_editor", {"command": "insert", "path": "a", "insert_line": 1, "new_str": "y"}, [["edit_file", {"path": "a", "insert_line": 1, "new_text": "y"}]]],
["gemini", "read_many_files", {"include": ["a", "b/*.rs"]}, [["read_file", {"path": "a"}], ["read_file", {"path": "b/*.rs"}]]],
["kodelet", "apply_patch", {"input": "*** Begin Patch\n*** Add File: a\n+1\n*** Update File: b\n@@\n-2\n+3\n*** Delete File: c\n*** End Patch"}, [["write_file", {"path": "a", "content": "1\n"}], ["edit_file", {"path": "b", "old_text": "2", "new_text": "3"}], ["delete_file", {"path": "c"}]]]
]"#;

/// A tool and its arguments.
type Operation = (String, Value);

/// A system, its call, and a part of the error.
const REFUSED: &str = r#"[
["kodelet", "bash", {"command": "ls", "cmd": "rm"}, "`cmd` is given twice"],
["kodelet", "apply_patch", {"input": "rm -rf /"}, "line 1 of the patch is `rm -rf /`"],
["kodelet", "apply_patch", {"input": "*** Begin Patch\n*** End Patch"}, "contains no operation"],
["kodelet", "apply_patch", {"patch": "x"}, "`input` is missing"],
["docker-agent", "shell", {"cmd": "ls", "command": "rm"}, "`cmd` and `command` are the same argument"],
["docker-agent", "read_multiple_files", {"paths": []}, "`paths` is empty"],
["docker-agent", "read_multiple_files", {"paths": [1]}, "`paths` holds a number"],
["docker-agent", "fetch", {"urls": "u"}, "not JSON"],
["docker-agent", "edit_file", {"path": "a", "edits": [1]}, "`edits` holds a number"],
["docker-agent", "edit_file", {"path": "a", "edits": [{"oldText": "1", "newText": "2", "path": "b"}]}, "`path` is given twice"],
["pi", "edit", {"path": "a", "edits": [{"oldText": "1", "newText": "2"}], "oldText": "3"}, "cannot be given together"],
["operator", "patch_file", {"path": "a", "patch": "nothing"}, "line 1 of the diff"],
["operator", "read", {"path": "a", "offset": "x"}, "expected a line number"],
["operator", "read_file", {"path": "a", "start_line": 5, "end_line": 2}, "before line 5"]
]"#;

#[test]
fn every_row_is_read_in_both_directions() {
    let table: Vec<(String, Value, String, String, Value)> = serde_json::from_str(VIEWS).unwrap();
    for (tool, input, system, name, own) in &table {
        let tools = of(system).unwrap();
        let view = tools.view(tool, &object(input)).unwrap().unwrap();
        assert_eq!(
            (&view.name, &Value::Object(view.input)),
            (name, own),
            "{system}"
        );
        let calls = canonical(system, name, &object(own)).unwrap();
        let [call] = calls.as_slice() else {
            panic!("{system} {name}: {calls:?}");
        };
        assert_eq!(
            (&call.tool, &json!(call.input)),
            (tool, input),
            "{system} {name}"
        );
        let back = tools.canonical_input(tool, &object(own)).unwrap();
        assert_eq!(json!(back), *input, "{system} {name}");
    }
    // The list above has a view of every tool of every system.
    for system in tools::systems() {
        let viewed: BTreeSet<&str> = rows(system).iter().map(|row| row.tool).collect();
        for tool in viewed {
            let is_tested = table.iter().any(|row| row.0 == tool && row.2 == system);
            assert!(
                is_tested,
                "`VIEWS` lacks a call to `{tool}` of {system}; add a row"
            );
        }
    }
}

#[test]
fn a_call_is_split_into_its_operations() {
    let table: Vec<(String, String, Value, Vec<Operation>)> =
        serde_json::from_str(OPERATIONS).unwrap();
    for (system, name, input, expected) in table {
        let calls = canonical(&system, &name, &object(&input)).unwrap();
        let calls: Vec<(String, Value)> = calls
            .into_iter()
            .map(|call| (call.tool, call.input.into()))
            .collect();
        assert_eq!(calls, expected, "{system} {name}");
    }
}

#[test]
fn ambiguous_arguments_and_broken_patches_are_errors() {
    let table: Vec<(String, String, Value, String)> = serde_json::from_str(REFUSED).unwrap();
    for (system, name, input, problem) in table {
        let error = canonical(&system, &name, &object(&input)).unwrap_err();
        let error = error.to_string();
        assert!(error.contains(&problem), "{system} {name}: {error}");
        assert!(error.contains(&format!("{system}'s `{name}`")), "{error}");
    }
    let error = canonical("kodlet", "bash", &JsonObject::new()).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("unknown hook system `kodlet`; available: `native`, ")
    );
}

#[test]
fn a_rewrite_that_a_translation_cannot_express_is_an_error() {
    for (system, tool, own, problem) in [
        (
            "pi",
            "edit_file",
            json!({"edits": [{"oldText": "1", "newText": "2"}, {"oldText": "3", "newText": "4"}]}),
            "2 operations",
        ),
        (
            "docker-agent",
            "web_fetch",
            json!({"urls": ["u", "v"]}),
            "2 operations",
        ),
        (
            "morphix",
            "read_file",
            json!({"action": "write", "path": "a"}),
            "a hook cannot change the tool",
        ),
        (
            "morphix",
            "edit_file",
            json!({"diff_content": "x"}),
            "line 1 of the diff",
        ),
        (
            "kodelet",
            "delete_file",
            json!({"input": "*** Begin Patch\n*** Add File: a\n*** End Patch"}),
            "it became a call to",
        ),
        (
            "kodelet",
            "shell",
            json!({"command": "a", "cmd": "b"}),
            "given twice",
        ),
    ] {
        let tools = of(system).unwrap();
        let error = tools.canonical_input(tool, &object(&own)).unwrap_err();
        assert!(error.to_string().contains(problem), "{error}");
    }
}

#[test]
fn a_hook_may_change_some_of_the_arguments() {
    for (system, tool, own, expected) in [
        (
            "kodelet",
            "shell",
            json!({"command": "ls"}),
            json!({"cmd": "ls"}),
        ),
        (
            "pi",
            "edit_file",
            json!({"path": "b"}),
            json!({"path": "b"}),
        ),
        (
            "morphix",
            "edit_file",
            json!({"file_path": "b"}),
            json!({"path": "b"}),
        ),
        (
            "operator",
            "read_file",
            json!({"offset": 0}),
            json!({"offset": 1}),
        ),
        (
            "kodelet",
            "x_deploy",
            json!({"command": "ls"}),
            json!({"command": "ls"}),
        ),
    ] {
        let back = of(system).unwrap().canonical_input(tool, &object(&own));
        assert_eq!(json!(back.unwrap()), expected, "{system} {tool}");
    }
}

#[test]
fn every_name_of_a_tool_is_known() {
    let names = known_tool_names();
    for name in [
        "shell",
        "bash",
        "terminal",
        "bash_manager",
        "search",
        "grep",
        "apply_patch",
        "task",
    ] {
        assert!(names.contains(name), "{name}");
    }
    let native = tools::native();
    let names = native.names("shell");
    assert_eq!(names.first(), Some(&"shell"));
    for name in ["bash", "terminal", "bash_manager", "powershell"] {
        assert!(names.contains(&name), "{name}");
    }
    assert!(native.names("edit_file").contains(&"apply_patch"));
    assert!(native.names("x_deploy").is_empty());
    for row in tools::systems().flat_map(rows) {
        assert!(!row.reference.is_empty(), "{}", row.name);
        assert!(
            CANONICAL_TOOLS.iter().any(|tool| tool.name == row.tool),
            "{}",
            row.name
        );
    }
}

/// Returns arguments of a canonical tool that every system can express.
fn inputs() -> impl Strategy<Value = (&'static str, JsonObject)> {
    let values = (
        proptest::sample::select(CANONICAL_TOOLS),
        "[a-z0-9 .\\n-]{1,12}",
        "[a-z]{1,5}",
        1..90_u64,
        any::<bool>(),
    );
    values.prop_map(|(tool, text, word, number, is_optional)| {
        let mut input = JsonObject::new();
        for argument in tool.arguments {
            let name = argument.trim_end_matches('?');
            if name != *argument && !is_optional {
                continue;
            }
            let value = match name {
                "offset" | "limit" | "timeout" => json!(number),
                "replace_all" => json!(true),
                "path" => json!(word),
                _ => json!(text),
            };
            input.insert(name.to_owned(), value);
        }
        (tool.name, input)
    })
}

proptest! {
    #[test]
    fn canonical_arguments_survive_every_system((tool, input) in inputs()) {
        for system in tools::systems() {
            let tools = of(system).unwrap();
            let mut input = input.clone();
            if let ("codex", Some(Value::String(content))) = (system, input.get_mut("content")) {
                // A patch has no files whose last line is without a line break.
                content.truncate(content.trim_end_matches('\n').len());
                content.push('\n');
            }
            if let Some(view) = tools.view(tool, &input).unwrap() {
                prop_assert_eq!(&tools.canonical_input(tool, &view.input).unwrap(), &input, "{}", system);
                let calls = canonical(system, &view.name, &view.input).unwrap();
                prop_assert_eq!(calls.len(), 1);
                prop_assert_eq!(&calls[0].input, &input, "{}", system);
                // Translating the system's call to a canonical call and back gives the same call.
                let again = tools.view(tool, &calls[0].input).unwrap().unwrap();
                prop_assert_eq!(again, view);
            }
        }
    }

    #[test]
    fn a_call_of_a_known_tool_is_never_nothing(
        text in "(\\*\\*\\* (Begin|End) Patch|\\*\\*\\* (Add|Update|Delete) File: a|@@ -1 \\+1 @@|[-+ ]a|é|\n){0,12}",
    ) {
        for system in tools::systems() {
            for row in rows(system) {
                for key in ["input", "patch", "diff_content", "edits", "paths", "urls", "cmd", "path"] {
                    let input = object(&json!({ key: text }));
                    if let Ok(calls) = canonical(system, row.name, &input) {
                        prop_assert!(!calls.is_empty());
                    }
                }
            }
        }
    }
}
