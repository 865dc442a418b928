//! The built-in worker for hooks written in Python.

use std::path::Path;

use serde_json::Value;
use tenterhook_process::{Command, Program};
use tenterhook_sdk::python;

use super::scripts::Worker;

/// The module that hooks import.
const API: &str = python::INIT;
/// The module that the APIs of other systems use.
const STAND_INS: &str = python::STAND_INS;
/// The APIs of other systems, each with the name by which a script selects it.
const APIS: [(&str, &str); 2] = [("operator", python::OPERATOR), ("morphix", python::MORPHIX)];
/// The worker.
const RUNTIME: &str = python::WORKER;

/// Makes the worker for scripts in Python. It runs in `dir`, or in the directory of this process if
/// `dir` is empty. It needs Python 3.9 or newer in `PATH`. Python ignores the `PYTHON*` variables
/// and does not import from the current directory, so that it loads only the scripts and installed
/// packages.
pub fn python(dir: &Path) -> Worker {
    // JSON strings and objects are valid Python literals.
    let api = Value::from(API);
    let stand_ins = Value::from(STAND_INS);
    let apis = Value::from_iter(APIS);
    let program = format!("API = {api}\nSTAND_INS = {stand_ins}\nAPIS = {apis}\n{RUNTIME}");
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

    use tenterhook_protocol::EventKind;

    use super::API;

    /// The fields of every event that scripts see in addition to its payload.
    const SHARED: [&str; 13] = [
        "agent",
        "agent_name",
        "cwd",
        "event",
        "event_id",
        "hook_event_name",
        "invoked_by",
        "origin_extra",
        "recipe",
        "sequence",
        "session_id",
        "timestamp",
        "workspace",
    ];

    /// docker-agent's names for fields of the catalogue. Scripts see these fields under both names.
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

    /// The field that only user-defined events have.
    const CUSTOM: [&str; 1] = ["class"];

    #[test]
    fn the_fields_that_hooks_in_python_may_name_are_those_of_the_catalogue() {
        let (_, list) = API.split_once("_FIELDS = frozenset(\n    \"\"\"").unwrap();
        let (list, _) = list.split_once("\"\"\"").unwrap();
        let listed: BTreeSet<String> = list.split_whitespace().map(str::to_owned).collect();
        let shared = SHARED.iter().chain(&SPELLINGS).chain(&CUSTOM);
        let mut expected: BTreeSet<String> = shared.map(|&name| name.to_owned()).collect();
        for kind in EventKind::ALL {
            let fields = kind.info().fields.unwrap_or_default().iter();
            expected.extend(fields.map(|field| field.name.to_owned()));
        }
        let expected: Vec<String> = expected.into_iter().collect();
        assert_eq!(listed.into_iter().collect::<Vec<_>>(), expected);
    }
}
