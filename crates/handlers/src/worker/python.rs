//! The shipped worker for hooks written in Python.

use std::path::Path;

use serde_json::Value;
use tenterhook_process::{Command, Program};

use super::Worker;

/// The module that hooks import.
const API: &str = include_str!("../../../../sdk/python/tenterhook/__init__.py");
/// The APIs of other systems, each with the name that a script asks for it by.
const APIS: [(&str, &str); 2] = [
    (
        "operator",
        include_str!("../../../../sdk/python/tenterhook/_operator.py"),
    ),
    (
        "morphix",
        include_str!("../../../../sdk/python/tenterhook/_morphix.py"),
    ),
];
/// The worker.
const RUNTIME: &str = include_str!("../../../../sdk/python/tenterhook/_worker.py");

/// Makes the worker for scripts in Python, which runs in `dir`. Python 3.9 or newer has to be in the search path; it is started isolated from
/// the variables and the directory of the host, so that nothing but the scripts and installed packages is loaded.
pub fn python(dir: &Path) -> Worker {
    // Texts and objects of JSON are Python too.
    let api = Value::from(API);
    let apis = Value::from_iter(APIS);
    let program = format!("API = {api}\nAPIS = {apis}\n{RUNTIME}");
    let command = Command::new(Program::exec(["python3", "-I", "-B", "-c", &program]));
    let command = if dir.as_os_str().is_empty() {
        command
    } else {
        command.working_dir(dir.to_owned())
    };
    Worker::new("python", command)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;
    use tenterhook_protocol::EventKind;

    use super::API;

    /// What scripts see of every event beside its payload.
    const SHARED: [&str; 12] = [
        "agent",
        "agent_name",
        "cwd",
        "event",
        "event_id",
        "hook_event_name",
        "invoked_by",
        "recipe",
        "sequence",
        "session_id",
        "timestamp",
        "workspace",
    ];

    /// What docker-agent calls fields of the catalogue, which scripts see under both names.
    const SPELLINGS: [&str; 12] = [
        "agent_switch_kind",
        "approval_decision",
        "approval_source",
        "compaction_reason",
        "notification_level",
        "notification_message",
        "steering_messages",
        "stop_response",
        "tool_error",
        "worktree_branch",
        "worktree_path",
        "worktree_source_dir",
    ];

    #[test]
    fn the_fields_that_hooks_in_python_may_name_are_those_of_the_catalogue() {
        let (_, list) = API.split_once("_FIELDS = frozenset(\n    \"\"\"").unwrap();
        let (list, _) = list.split_once("\"\"\"").unwrap();
        let listed: BTreeSet<String> = list.split_whitespace().map(str::to_owned).collect();
        let shared = SHARED.iter().chain(&SPELLINGS);
        let mut expected: BTreeSet<String> = shared.map(|&name| name.to_owned()).collect();
        for kind in EventKind::ALL {
            let schema = Value::from(kind.payload_schema());
            if let Some(properties) = schema.pointer("/properties").and_then(Value::as_object) {
                expected.extend(properties.keys().cloned());
            }
        }
        let expected: Vec<String> = expected.into_iter().collect();
        assert_eq!(listed.into_iter().collect::<Vec<_>>(), expected);
    }
}
