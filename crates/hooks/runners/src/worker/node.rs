//! The built-in worker for hooks written in JavaScript.

use std::path::Path;

use tenterhook_process::{Command, Program};
use tenterhook_protocol::JsonObject;
use tenterhook_sdk::javascript;

use super::scripts::Worker;

/// The modules that hooks and the worker always import.
const SOURCES: [(&str, &str); 7] = [
    ("index.mjs", javascript::INDEX),
    ("answer.mjs", javascript::ANSWER),
    ("extension.mjs", javascript::EXTENSION),
    ("ui.mjs", javascript::UI),
    ("render.mjs", javascript::RENDER),
    ("models.mjs", javascript::MODELS),
    ("loader.mjs", javascript::LOADER),
];
/// The worker.
const RUNTIME: &str = javascript::WORKER;

/// Makes the worker for scripts in JavaScript and TypeScript. It runs in `dir`, or in the directory
/// of this process if `dir` is empty. It needs Node.js 20.6 or newer in `PATH`.
pub fn node(dir: &Path) -> Worker {
    // JSON is valid JavaScript, so the sources can be written into the program as a literal.
    let sources: JsonObject = SOURCES
        .map(|(name, text)| (name.to_owned(), text.into()))
        .into_iter()
        .collect();
    let sources = serde_json::Value::from(sources);
    let program = format!("const SOURCES = {sources};\n{RUNTIME}");
    // The protocol uses descriptors 3 and 4, so that handlers and their children cannot read or
    // write its messages.
    let aside = "exec \"$0\" \"$@\" 3>&1 4<&0 0</dev/null 1>&2";
    let command = Command::new(Program::exec([
        "/bin/sh",
        "-c",
        aside,
        "node",
        "--no-warnings",
        "--input-type=module",
        "--eval",
        &program,
    ]))
    // `NODE_OPTIONS` could load code that the user has not approved.
    .without_env(&["NODE_OPTIONS"]);
    let command = if dir.as_os_str().is_empty() {
        command
    } else {
        command.working_dir(dir.to_owned())
    };
    Worker::new("node", command)
}
