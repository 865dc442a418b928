//! pi's contract without a worker: how events are written and answers are read.

use std::sync::Arc;

use serde_json::{Value, json};
use tenterhook_engine::{Reply, parse_event};
use tenterhook_systems::pi::{EVENTS, Pi};

use crate::sent_any;

/// Every event with a payload, and the fields that pi's handlers get.
const FIELDS: &str = r#"
["input", {"text": "hi", "images": [{"media_type": "image/png", "data": "A"}], "source": "rpc"}, {"text": "hi", "images": [{"type": "image", "data": "A", "mimeType": "image/png"}], "source": "rpc"}]
["before_agent_start", {"prompt": "p", "system_prompt": "s"}, {"prompt": "p", "systemPrompt": "s"}]
["agent_start", {}, {}]
["agent_end", {"messages": [{"role": "user", "content": "a"}, {"role": "user", "content": "b", "extra": {"kind": "extension", "custom_type": "note", "display": true, "details": [1]}}, {"role": "tool", "content": "c", "tool_call_id": "t", "extra": {"tool_name": "shell", "details": {"n": 1}}}, {"role": "user", "content": "Before: d", "extra": {"kind": "compaction_summary", "summary": "d", "tokens_before": 9}}, {"role": "user", "content": "e", "extra": {"kind": "branch_summary", "summary": "e", "from_entry": "4"}}, {"role": "user", "content": "f", "extra": {"kind": "user_bash", "command": "ls", "output": "f", "exit_code": 2, "cancelled": false, "truncated": false}}]}, {"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}], "timestamp": 0}, {"role": "custom", "customType": "note", "content": "b", "display": true, "details": [1], "timestamp": 0}, {"role": "toolResult", "toolCallId": "t", "toolName": "bash", "content": [{"type": "text", "text": "c"}], "details": {"n": 1}, "isError": false, "timestamp": 0}, {"role": "compactionSummary", "summary": "d", "introduction": "Before: ", "tokensBefore": 9, "timestamp": 0}, {"role": "branchSummary", "summary": "e", "introduction": "", "fromId": "4", "timestamp": 0}, {"role": "bashExecution", "command": "ls", "output": "f", "exitCode": 2, "cancelled": false, "truncated": false, "timestamp": 0}]}]
["turn_start", {"turn_index": 2, "started_at_ms": 7}, {"turnIndex": 2, "timestamp": 7}]
["context", {"messages": [{"role": "assistant", "content": "a", "extra": {"model": "anthropic/claude", "usage": {"input_tokens": 10, "output_tokens": 3, "cached_input_tokens": 4, "cached_write_tokens": 1}, "cost": 0.5}}]}, {"messages": [{"role": "assistant", "content": [{"type": "text", "text": "a"}], "api": "anthropic-messages", "provider": "anthropic", "model": "claude", "usage": {"input": 5, "output": 3, "cacheRead": 4, "cacheWrite": 1, "totalTokens": 13, "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0.5}}, "stopReason": "stop", "timestamp": 0}]}]
["turn_end", {"turn_index": 1, "message": {"role": "assistant", "content": "a"}, "tool_results": []}, {"turnIndex": 1, "message": {"role": "assistant", "content": [{"type": "text", "text": "a"}], "api": "openai-completions", "provider": "", "model": "", "usage": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0, "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0.0}}, "stopReason": "stop", "timestamp": 0}, "toolResults": []}]
["message_start", {"message": {"role": "user", "content": "a"}}, {"message": {"role": "user", "content": [{"type": "text", "text": "a"}], "timestamp": 0}}]
["message_update", {"message": {"role": "assistant", "content": "ab"}, "delta": "b"}, {"message": {"role": "assistant", "content": [{"type": "text", "text": "ab"}], "api": "openai-completions", "provider": "", "model": "", "usage": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0, "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0.0}}, "stopReason": "stop", "timestamp": 0}, "assistantMessageEvent": {"type": "text_delta", "contentIndex": 0, "delta": "b", "partial": {"role": "assistant", "content": [{"type": "text", "text": "ab"}], "api": "openai-completions", "provider": "", "model": "", "usage": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0, "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0.0}}, "stopReason": "stop", "timestamp": 0}}}]
["message_end", {"message": {"role": "user", "content": "a"}}, {"message": {"role": "user", "content": [{"type": "text", "text": "a"}], "timestamp": 0}}]
["tool_call", {"tool_use_id": "c", "tool_name": "shell", "tool_input": {"cmd": "ls"}}, {"toolCallId": "c", "toolName": "bash", "input": {"command": "ls"}}]
["tool_execution_start", {"tool_use_id": "c", "tool_name": "search", "tool_input": {"pattern": "x", "glob": "*.rs"}}, {"toolCallId": "c", "toolName": "grep", "args": {"pattern": "x", "glob": "*.rs"}}]
["tool_execution_update", {"tool_use_id": "c", "tool_name": "own", "extra": {"tool_input": {"n": 1}}, "partial_result": {"content": [{"type": "text", "text": "a"}]}}, {"toolCallId": "c", "toolName": "own", "args": {"n": 1}, "partialResult": {"content": [{"type": "text", "text": "a"}], "details": null}}]
["tool_execution_end", {"tool_use_id": "c", "tool_name": "read_file", "result": {"content": []}, "is_error": true}, {"toolCallId": "c", "toolName": "read", "result": {"content": [], "details": null}, "isError": true}]
["tool_result", {"tool_use_id": "c", "tool_name": "list_directory", "tool_input": {"path": "."}, "result": {"content": [{"type": "image", "image": {"media_type": "image/png", "data": "A"}}], "details": {"n": 1}}}, {"toolCallId": "c", "toolName": "ls", "input": {"path": "."}, "content": [{"type": "image", "data": "A", "mimeType": "image/png"}], "details": {"n": 1}, "isError": false}]
["session_start", {"source": "clear", "previous_session": "s0"}, {"reason": "new", "previousSessionFile": "s0"}]
["session_before_switch", {"reason": "resume", "target_session": "s2"}, {"reason": "resume", "targetSessionFile": "s2"}]
["session_switch", {"reason": "new", "previous_session": "s0"}, {"reason": "new", "previousSessionFile": "s0"}]
["session_before_fork", {"entry_id": "e1", "position": "at"}, {"entryId": "e1", "position": "at"}]
["session_fork", {"entry_id": "e1", "previous_session": "s0"}, {"previousSessionFile": "s0"}]
["session_before_compact", {"preparation": {"first_kept_entry_id": "e2", "tokens_before": 9}, "branch_entries": [{"id": "e1", "kind": "custom", "data": {"customType": "t", "data": 1}}, {"id": "e2", "kind": "message", "message": {"role": "user", "content": "b", "extra": {"kind": "extension", "custom_type": "note"}}}], "custom_instructions": "short", "reason": "manual"}, {"preparation": {"firstKeptEntryId": "e2", "messagesToSummarize": [], "turnPrefixMessages": [], "isSplitTurn": false, "tokensBefore": 9, "previousSummary": null}, "branchEntries": [{"type": "custom", "customType": "t", "data": 1, "id": "e1", "parentId": null}, {"type": "custom_message", "customType": "note", "content": "b", "display": false, "id": "e2", "parentId": null}], "customInstructions": "short", "reason": "manual"}]
["session_compact", {"compaction_entry": {"id": "e3", "parent_id": "e2", "kind": "compaction"}, "summary": "all", "from_hook": true, "reason": "overflow", "input_tokens": 5}, {"compactionEntry": {"type": "compaction", "id": "e3", "parentId": "e2", "summary": "all", "tokensBefore": 5}, "fromExtension": true, "reason": "overflow"}]
["session_before_tree", {"preparation": {"target_id": "e1", "user_wants_summary": true}}, {"preparation": {"targetId": "e1", "oldLeafId": null, "commonAncestorId": null, "entriesToSummarize": [], "userWantsSummary": true, "customInstructions": null, "replaceInstructions": false, "label": null}}]
["session_tree", {"new_leaf_id": "e1", "old_leaf_id": "e2", "summary_entry": {"id": "e4", "kind": "branch_summary", "data": "was here"}}, {"newLeafId": "e1", "oldLeafId": "e2", "summaryEntry": {"type": "branch_summary", "data": "was here", "id": "e4", "parentId": null}, "fromExtension": false}]
["session_shutdown", {"reason": "error"}, {"reason": "quit"}]
["model_select", {"model": "openai/gpt", "previous_model": "local", "source": "cycle"}, {"model": {"id": "gpt", "name": "gpt", "provider": "openai"}, "previousModel": {"id": "local", "name": "local", "provider": ""}, "source": "cycle"}]
["resources_discover", {"reason": "reload"}, {"cwd": "/w", "reason": "reload"}]
["user_bash", {"command": "ls", "exclude_from_context": true, "cwd": "/w"}, {"command": "ls", "excludeFromContext": true, "cwd": "/w"}]
["session_directory", {"default_directory": "/d"}, {"cwd": "/w"}]
["before_provider_request", {"payload": {"model": "m"}}, {"payload": {"model": "m"}}]
["after_provider_response", {"status": 200, "headers": {"a": "b"}}, {"status": 200, "headers": {"a": "b"}}]
["thinking_level_select", {"level": "high", "previous_level": "low"}, {"level": "high", "previousLevel": "low"}]
["agent_settled", {}, {}]
["session_compact_failed", {"error": "no"}, {"errorMessage": "no"}]
["session_info_changed", {"name": "n"}, {"name": "n"}]
"#;

#[test]
fn every_event_of_pi_has_the_fields_of_its_document() {
    let lines: Vec<(&str, Value, Value)> = FIELDS
        .trim()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let named: Vec<&str> = lines.iter().map(|(name, ..)| *name).collect();
    let known: Vec<&str> = EVENTS.iter().map(|event| event.name).collect();
    assert_eq!(named, known);
    for (name, payload, fields) in lines {
        let row = Pi::event(name).unwrap();
        let event = sent_any(Arc::from(parse_event(&row.kind.into(), payload).unwrap()));
        let written = event.encoded(&*row.dialect()).unwrap();
        let mut written: Value = serde_json::from_slice(&written).unwrap();
        let written = written.as_object_mut().unwrap();
        assert_eq!(written.remove("type").unwrap(), name);
        written.remove("turn");
        assert_eq!(Value::from(written.clone()), fields, "{name}");
    }
}

/// An event, an invalid answer to it, and the message of the failure.
fn unreadable_answers() -> Vec<(&'static str, Value, &'static str)> {
    vec![
        ("tool_call", json!({"result": 7}), "returned 7"),
        (
            "tool_call",
            json!({"result": {"blocked": true}}),
            "the key `blocked`",
        ),
        (
            "tool_call",
            json!({"result": null, "changed": {"input": 7}}),
            "was changed to 7",
        ),
        (
            "tool_call",
            json!({"returned": {}}),
            "unknown field `returned`",
        ),
        (
            "input",
            json!({"result": {"action": "stop"}}),
            "`action` is \"stop\"",
        ),
        ("input", json!({"result": {"action": 1}}), "`action` is 1"),
        (
            "input",
            json!({"result": {"action": "transform", "images": 7}}),
            "`images` is not a list",
        ),
        (
            "context",
            json!({"result": {"messages": 7}}),
            "`messages` is not a list",
        ),
        (
            "context",
            json!({"result": {"messages": [{"role": "x"}]}}),
            "the `role` `x`",
        ),
        (
            "message_end",
            json!({"result": {"message": {"role": "user", "content": 7}}}),
            "the `content` of a message is 7",
        ),
        (
            "tool_result",
            json!({"result": {"content": "text"}}),
            "`content` is not a list",
        ),
        (
            "tool_result",
            json!({"result": {"content": [{"kind": "x"}]}}),
            "has no `type`",
        ),
        (
            "tool_result",
            json!({"result": {"content": [{"type": "text", "text": 7}]}}),
            "has no `text`",
        ),
        (
            "context",
            json!({"result": {"messages": [{"role": "user", "content": [{"type": "text"}]}]}}),
            "has no `text`",
        ),
        (
            "user_bash",
            json!({"result": {"result": {}}}),
            "`result.output` is missing or not a string",
        ),
        (
            "session_before_compact",
            json!({"result": {"compaction": {}}}),
            "`summary` is missing or not a string",
        ),
    ]
}

#[test]
fn an_answer_that_does_not_fit_its_event_is_a_failure() {
    for (name, answer, problem) in unreadable_answers() {
        let row = Pi::event(name).unwrap();
        let stdout = answer.to_string();
        let reply = Reply::Returned {
            json: stdout.as_bytes(),
        };
        let read = row.dialect().read(row.kind.info(), &reply, false);
        let error = tenterhook_engine::error_chain(&read.unwrap_err());
        assert!(error.contains(problem), "{name} {answer}: {error}");
    }
}
