//! pi's tools and ours: a guard that looks for `bash` has to see the shell.

use serde_json::Value;
use tenterhook_protocol::JsonObject;

/// A tool that both have.
struct Tool {
    own: &'static str,
    theirs: &'static str,
    /// Arguments that are called otherwise, ours first.
    keys: &'static [(&'static str, &'static str)],
}

const TOOLS: &[Tool] = &[
    Tool {
        own: "shell",
        theirs: "bash",
        keys: &[("cmd", "command")],
    },
    Tool {
        own: "read_file",
        theirs: "read",
        keys: &[],
    },
    Tool {
        own: "write_file",
        theirs: "write",
        keys: &[],
    },
    Tool {
        own: "edit_file",
        theirs: "edit",
        keys: &[("old_text", "oldText"), ("new_text", "newText")],
    },
    Tool {
        own: "list_directory",
        theirs: "ls",
        keys: &[],
    },
    Tool {
        own: "search",
        theirs: "grep",
        keys: &[("name", "glob")],
    },
];

fn known(own: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.own == own)
}

/// Returns what pi calls a tool of ours; any other keeps its name.
pub fn name(own: &str) -> &str {
    known(own).map_or(own, |tool| tool.theirs)
}

/// Returns what a tool of pi is called here; any other keeps its name.
pub fn own_name(theirs: &str) -> &str {
    let tool = TOOLS.iter().find(|tool| tool.theirs == theirs);
    tool.map_or(theirs, |tool| tool.own)
}

/// Returns the arguments of a tool of ours as pi's tool has them.
pub(super) fn input(own: &str, input: &Value) -> Value {
    let keys = known(own).map_or(&[][..], |tool| tool.keys);
    let Value::Object(input) = input else {
        return input.clone();
    };
    let theirs = |key: &String| {
        let renamed = keys.iter().find(|(own, _)| own == key);
        renamed.map_or_else(|| key.clone(), |(_, theirs)| (*theirs).to_owned())
    };
    input
        .iter()
        .map(|(key, value)| (theirs(key), value.clone()))
        .collect()
}

/// Returns arguments as our tool has them.
pub(super) fn own_input(own: &str, input: JsonObject) -> JsonObject {
    let keys = known(own).map_or(&[][..], |tool| tool.keys);
    let renamed = |key: String| {
        let known = keys.iter().find(|(_, theirs)| *theirs == key);
        known.map_or(key, |(own, _)| (*own).to_owned())
    };
    input
        .into_iter()
        .map(|(key, value)| (renamed(key), value))
        .collect()
}
