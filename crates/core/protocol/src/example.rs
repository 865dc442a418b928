//! An example payload for every event of the catalogue.
//!
//! Examples are assembled field by field, with values from one table. A test checks that every field has
//! a value.

use serde_json::{Value, json};

use crate::JsonObject;
use crate::event_kind::EventKind;
use crate::event_name::EventName;
use crate::field_info::FieldInfo;

/// Values of fields, as JSON. A name with a dot, `EVENT.FIELD`, applies to one event and takes precedence
/// over the plain name.
const VALUES: &[(&str, &str)] = &[
    ("account", r#""7210934""#),
    ("agent_switch.kind", r#""transfer_task""#),
    ("attempt", "1"),
    ("audio_formats", r#"["audio/ogg", "audio/mpeg"]"#),
    ("before_compaction.branch_entries", "[]"),
    (
        "before_compaction.custom_instructions",
        r#""Keep the names of files.""#,
    ),
    ("blocked", "false"),
    ("budget", "100000"),
    ("busy", "false"),
    ("by", r#""rule""#),
    ("channel_connect.kind", r#""telegram""#),
    ("channel_id", r#""telegram""#),
    ("channel_ids", r#"["telegram", "web"]"#),
    ("chat_id", r#""42""#),
    ("child_session_id", r#""s2""#),
    ("command", r#""git status""#),
    (
        "compaction_entry",
        r#"{"id": "e9", "parent_id": "e8", "kind": "compaction"}"#,
    ),
    ("context_limit", "200000"),
    ("cost", "0.0021"),
    ("custom_instructions", r#""Keep the names of files.""#),
    ("cwd", r#""/srv/app""#),
    ("decision", r#""allow""#),
    (
        "default_directory",
        r#""/home/ada/.local/share/tenterhook/sessions""#,
    ),
    ("delta", r#""The tests""#),
    ("duration_ms", "120"),
    ("entry_id", r#""e7""#),
    ("error", r#""connection refused""#),
    ("exclude_from_context", "false"),
    ("from_agent", r#""root""#),
    (
        "from_agent_models",
        r#"[{"provider": "openai", "model": "gpt-4o"}]"#,
    ),
    ("from_hook", "false"),
    ("gateway_error.code", r#""conflict""#),
    ("headers", r#"{"content-type": "application/json"}"#),
    (
        "images",
        r#"[{"media_type": "image/png", "data": "iVBORw0KGgo="}]"#,
    ),
    ("in_reply_to", r#"["17"]"#),
    ("input_text", r#""Is the build green?""#),
    ("input_tokens", "120000"),
    ("is_direct", "true"),
    ("is_error", "false"),
    ("is_voice", "false"),
    ("iteration", "1"),
    ("label", r#""reviewer""#),
    ("last_user_message", r#""Run the tests.""#),
    ("level", r#""high""#),
    ("limit", "100"),
    ("max_retries", "3"),
    (
        "message",
        r#"{"role": "assistant", "content": "The tests pass."}"#,
    ),
    ("message_deliver.kind", r#""answer""#),
    ("message_id", r#""17""#),
    ("message_ids", r#"["17"]"#),
    ("message_receive.role", r#""member""#),
    (
        "messages",
        r#"[{"role": "user", "content": "Run the tests."}, {"role": "assistant", "content": "The tests pass."}]"#,
    ),
    ("model", r#""openai/gpt-4o""#),
    ("model_id", r#""openai/gpt-4o""#),
    ("name", r#""fix the parser""#),
    ("new_leaf_id", r#""e3""#),
    ("new_max_iterations", "200"),
    ("notification.kind", r#""max_iterations""#),
    ("notification.level", r#""warning""#),
    (
        "notification.message",
        r#""Maximum iterations reached (100)""#,
    ),
    ("old_leaf_id", r#""e7""#),
    ("output_tokens", "900"),
    ("parent_session_id", r#""s1""#),
    (
        "partial_result",
        r#"{"content": [{"type": "text", "text": "running 12 tests"}], "is_error": false, "terminate": false}"#,
    ),
    (
        "parts",
        r#"[{"kind": "text", "text": "Is the build green?"}]"#,
    ),
    (
        "payload",
        r#"{"model": "gpt-4o", "messages": [{"role": "user", "content": "Run the tests."}], "max_tokens": 1024}"#,
    ),
    (
        "permission_denied.reason",
        r#""rm needs a second pair of eyes""#,
    ),
    (
        "preparation",
        r#"{"messages_to_summarize": [{"role": "user", "content": "Run the tests."}], "first_kept_entry_id": "e7",
            "tokens_before": 120000, "previous_summary": "The parser was fixed."}"#,
    ),
    ("previous_level", r#""low""#),
    ("previous_max_iterations", "100"),
    ("previous_model", r#""openai/gpt-4o-mini""#),
    ("previous_session", r#""s0""#),
    ("prompt", r#""Run the tests.""#),
    ("queue_update.message", r#""Use the other branch.""#),
    ("queue_update.messages", r#"["Use the other branch."]"#),
    ("reply_to", r#""15""#),
    ("response", r#""The tests pass.""#),
    ("response_text", r#""Yes, all green.""#),
    (
        "result",
        r#"{"content": [{"type": "text", "text": "total 0"}], "is_error": false, "terminate": false}"#,
    ),
    ("retry_end.success", "false"),
    ("retryable", "true"),
    ("role", r#""developer""#),
    ("sender_name", r#""Ada""#),
    ("session_before_switch.reason", r#""resume""#),
    (
        "session_before_tree.preparation",
        r#"{"target_id": "e3", "old_leaf_id": "e7", "common_ancestor_id": "e3",
            "entries_to_summarize": [{"id": "e7", "parent_id": "e3", "kind": "message",
                "message": {"role": "user", "content": "Run the tests."}}],
            "user_wants_summary": true, "custom_instructions": "Keep the names of files.",
            "replace_instructions": false, "label": "experiment"}"#,
    ),
    ("session_end.reason", r#""resume""#),
    ("session_start.source", r#""resume""#),
    ("session_switch.reason", r#""resume""#),
    ("skip_conversation_restore", "false"),
    ("started_at_ms", "1767225600000"),
    ("status", "200"),
    ("stop_hook_active", "false"),
    ("stt_enabled", "true"),
    ("subagent_stop.result", r#""No problems found.""#),
    ("subagent_stop.status", r#""completed""#),
    ("success", "true"),
    ("suggestions", r#"["shell(cmd=ls *)"]"#),
    ("summary", r#""The parser was fixed and its tests pass.""#),
    (
        "summary_entry",
        r#"{"id": "e3", "parent_id": "e2", "kind": "branch_summary", "data": {"summary": "Tried the other branch."}}"#,
    ),
    ("system_prompt", r#""You are a careful engineer.""#),
    ("target_session", r#""s2""#),
    ("task", r#""Review the parser.""#),
    ("task_id", r#""t1""#),
    ("text", r#""Is the build green?""#),
    ("thread_id", r#""3""#),
    ("to_agent", r#""reviewer""#),
    ("tokens_before", "120000"),
    ("tool_approval_decision.source", r#""rule_allow""#),
    ("tool_category", r#""shell""#),
    ("tool_error.error", r#""The command exited with status 1.""#),
    ("tool_input", r#"{"cmd": "ls -la"}"#),
    ("tool_name", r#""shell""#),
    ("tool_response", r#""total 0""#),
    (
        "tool_results",
        r#"[{"content": [{"type": "text", "text": "total 0"}], "is_error": false, "terminate": false}]"#,
    ),
    ("tool_use_id", r#""call_1""#),
    ("tools", r#"["shell", "read_file"]"#),
    ("total_duration_ms", "120"),
    ("tts_enabled", "true"),
    ("turn_end.reason", r#""continue""#),
    ("turn_index", "0"),
    ("turn_number", "1"),
    (
        "usage",
        r#"{"input_tokens": 1200, "output_tokens": 80, "cached_input_tokens": 1000, "cached_write_tokens": 0}"#,
    ),
    ("used", "100250"),
    ("user_id", r#""ada""#),
    (
        "user_steering_submit.messages",
        r#"["Use the other branch."]"#,
    ),
    ("will_retry", "true"),
];

/// Example payloads of events that may have any keys.
const OPEN: &[(&str, &str)] = &[
    ("setup", r#"{"trigger": "init"}"#),
    (
        "instructions_loaded",
        r#"{"file_path": "/srv/app/AGENTS.md", "load_reason": "session_start"}"#,
    ),
    (
        "elicitation",
        r#"{"server_name": "tickets", "message": "Which project?"}"#,
    ),
    (
        "elicitation_result",
        r#"{"server_name": "tickets", "action": "accept", "content": {"project": "app"}}"#,
    ),
    (
        "teammate_idle",
        r#"{"teammate_name": "reviewer", "team_name": "app"}"#,
    ),
    (
        "task_created",
        r#"{"task_id": "t1", "task_subject": "Review the parser"}"#,
    ),
    (
        "task_completed",
        r#"{"task_id": "t1", "task_subject": "Review the parser"}"#,
    ),
    (
        "tool_batch_end",
        r#"{"tool_calls": [{"tool_name": "shell", "tool_input": {"cmd": "ls -la"}}]}"#,
    ),
    (
        "config_change",
        r#"{"source": "project", "file_path": "/srv/app/.tenterhook/hooks.yaml"}"#,
    ),
    (
        "cwd_change",
        r#"{"old_cwd": "/srv/app", "new_cwd": "/srv/app/crates"}"#,
    ),
    (
        "file_change",
        r#"{"file_path": "/srv/app/README.md", "change": "modified"}"#,
    ),
    ("directory_added", r#"{"directory": "/srv/lib"}"#),
    (
        "worktree_create",
        r#"{"worktree_path": "/srv/app-feature", "worktree_branch": "feature", "worktree_source_dir": "/srv/app"}"#,
    ),
    (
        "worktree_remove",
        r#"{"worktree_path": "/srv/app-feature"}"#,
    ),
    ("interrupt", r#"{"reason": "user"}"#),
    (
        "prompt_expansion",
        r#"{"command_name": "review", "prompt": "Review the last commit."}"#,
    ),
    ("message_display", r#"{"text": "The tests pass."}"#),
    (
        "pre_model_switch",
        r#"{"from_model": "openai/gpt-4o", "to_model": "openai/gpt-4o-mini"}"#,
    ),
    (
        "post_model_switch",
        r#"{"from_model": "openai/gpt-4o", "to_model": "openai/gpt-4o-mini"}"#,
    ),
];

/// Returns an example payload of an event, in which every field has a plausible value.
pub fn example(event: &EventName) -> JsonObject {
    let name = event.info().name;
    let open = OPEN.iter().find(|(of, _)| *of == name);
    if event.kind() == EventKind::Custom {
        return JsonObject::from_iter([("target".to_owned(), "production".into())]);
    }
    if let Some((_, payload)) = open {
        return parsed(payload).as_object().cloned().unwrap_or_default();
    }
    let value = |field: &FieldInfo| {
        let of_event = format!("{name}.{}", field.name);
        let row = |key: &str| VALUES.iter().find(|(of, _)| *of == key);
        // If the field allows only certain words, the catalogue lists them.
        let word = || field.words.first().map(|word| Value::from(*word));
        row(&of_event)
            .map(|(_, value)| parsed(value))
            .or_else(word)
            .or_else(|| row(field.name).map(|(_, value)| parsed(value)))
            .unwrap_or_default()
    };
    let fields = event.info().fields.unwrap_or_default();
    // `extra` holds fields that a host adds. They are not in the catalogue, so leave them out.
    fields
        .iter()
        .filter(|field| field.name != "extra")
        .map(|field| (field.name.to_owned(), value(field)))
        .collect()
}

/// Returns the origin of an example. It has no `cwd`, because hooks would run in this directory.
pub fn example_origin() -> JsonObject {
    let origin = json!({ "session_id": "s1", "agent": { "name": "root" } });
    origin.as_object().cloned().unwrap_or_default()
}

/// Parses a value of a table. A test checks that all of them are valid JSON.
fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event_name::{events, parse_event};

    #[test]
    fn every_value_of_the_tables_is_json() {
        for (name, text) in VALUES.iter().chain(OPEN) {
            assert!(serde_json::from_str::<Value>(text).is_ok(), "{name}");
        }
    }

    #[test]
    fn every_field_of_every_event_has_an_example() {
        for info in events() {
            let payload = example(&EventName::Known(info.kind));
            for (field, value) in &payload {
                assert!(!value.is_null(), "`{}.{field}` has no value", info.name);
            }
            let event = parse_event(&EventName::Known(info.kind), payload.into());
            assert!(event.is_ok(), "{}: {event:?}", info.name);
        }
    }

    #[test]
    fn every_open_event_has_an_example() {
        for info in events().filter(|info| info.has_open_payload()) {
            assert!(
                OPEN.iter().any(|(name, _)| *name == info.name),
                "{}",
                info.name
            );
        }
    }
}
