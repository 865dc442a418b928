//! The shipped worker for hooks written in JavaScript.

use std::path::Path;

use tenterhook_process::{Command, Program};

use super::{MEMORY, Worker};

/// The module that hooks import.
const API: &str = include_str!("../../../../sdk/javascript/tenterhook/index.mjs");
/// The worker.
const RUNTIME: &str = include_str!("../../../../sdk/javascript/tenterhook/worker.mjs");

/// Makes the worker for scripts in JavaScript, which runs in `dir`. Node.js 20.6 or newer has to be in the search path.
pub fn node(dir: &Path) -> Worker {
    // A text of JSON is one of JavaScript too.
    let api = serde_json::Value::from(API).to_string();
    let program = format!("const API = {api};\n{RUNTIME}");
    let memory = format!("--max-old-space-size={}", MEMORY >> 20);
    let command = Command::new(Program::exec([
        "node",
        &memory,
        "--no-warnings",
        "--input-type=module",
        "--eval",
        &program,
    ]))
    // Options in a variable could load code that nobody approved.
    .without_env(&["NODE_OPTIONS"]);
    let command = if dir.as_os_str().is_empty() {
        command
    } else {
        command.working_dir(dir.to_owned())
    };
    Worker::new("node", command)
}
