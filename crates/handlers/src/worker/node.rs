//! The shipped worker for hooks written in JavaScript.

use std::path::Path;

use tenterhook_process::{Command, Program};
use tenterhook_protocol::JsonObject;

use super::{MEMORY, Worker};

/// The modules that hooks import, and that the worker does.
const SOURCES: [(&str, &str); 6] = [
    (
        "index.mjs",
        include_str!("../../../../sdk/javascript/tenterhook/index.mjs"),
    ),
    (
        "answer.mjs",
        include_str!("../../../../sdk/javascript/tenterhook/answer.mjs"),
    ),
    (
        "pi.mjs",
        include_str!("../../../../sdk/javascript/tenterhook/pi.mjs"),
    ),
    (
        "typebox.mjs",
        include_str!("../../../../sdk/javascript/tenterhook/typebox.mjs"),
    ),
    (
        "extension.mjs",
        include_str!("../../../../sdk/javascript/tenterhook/extension.mjs"),
    ),
    (
        "loader.mjs",
        include_str!("../../../../sdk/javascript/tenterhook/loader.mjs"),
    ),
];
/// The worker.
const RUNTIME: &str = include_str!("../../../../sdk/javascript/tenterhook/worker.mjs");

/// Makes the worker for scripts in JavaScript and TypeScript, which runs in `dir`. Node.js 20.6 or newer has to be in the search path.
pub fn node(dir: &Path) -> Worker {
    // A text of JSON is one of JavaScript too.
    let sources: JsonObject = SOURCES
        .map(|(name, text)| (name.to_owned(), text.into()))
        .into_iter()
        .collect();
    let sources = serde_json::Value::from(sources);
    let program = format!("const SOURCES = {sources};\n{RUNTIME}");
    let memory = format!("--max-old-space-size={}", MEMORY >> 20);
    // What handlers and their children read and print is kept apart from what the host says and hears.
    let aside = "exec \"$0\" \"$@\" 3>&1 4<&0 0</dev/null 1>&2";
    let command = Command::new(Program::exec([
        "/bin/sh",
        "-c",
        aside,
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
