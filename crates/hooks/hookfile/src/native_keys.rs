//! The keys of native hook files.
//!
//! The reader accepts these keys. A test checks that the tables in `docs/reference/hook-files.md` have
//! the same rows.

/// A key of a native hook file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NativeKey {
    /// Its name.
    pub(crate) name: &'static str,
    /// Its value, as Markdown.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "only the test of the reference page reads it")
    )]
    value: &'static str,
    /// Its default, as Markdown.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "only the test of the reference page reads it")
    )]
    default: &'static str,
    /// The actions that it can be combined with; an empty list means all.
    pub(crate) with: &'static [&'static str],
}

const EMPTY: NativeKey = NativeKey {
    name: "",
    value: "",
    default: "",
    with: &[],
};

/// The keys at the top level of a file.
pub(crate) const FILE_KEYS: &[NativeKey] = &[
    NativeKey {
        name: "version",
        value: "`1`",
        default: "`1`",
        ..EMPTY
    },
    NativeKey {
        name: "defaults",
        value: "values for hooks that do not have their own",
        default: "none",
        ..EMPTY
    },
    NativeKey {
        name: "import",
        value: "a [file of another system](#imported-files), a mapping with `file` and `env`, or a list of them",
        default: "none",
        ..EMPTY
    },
    NativeKey {
        name: "unknown_tools",
        value: "`see`, `ask` or `deny`, for [tools that no table has](tools.md#tools-that-no-table-has); or one for each agent",
        default: "`see`",
        ..EMPTY
    },
    NativeKey {
        name: "hooks",
        value: "a list of hooks",
        default: "none",
        ..EMPTY
    },
];

/// The keys of a hook that `defaults` may also have.
pub(crate) const DEFAULT_KEYS: &[&str] = &["timeout", "on_error", "shell", "working_dir", "env"];

/// The keys of a hook.
pub(crate) const HOOK_KEYS: &[NativeKey] = &[
    NativeKey {
        name: "name",
        value: "unique in the file; without `#`",
        default: "`<event>#<n>`",
        ..EMPTY
    },
    NativeKey {
        name: "event",
        value: "an [event](events.md), `x-<vendor>.<name>`, or a list of events",
        default: "required",
        ..EMPTY
    },
    NativeKey {
        name: "matcher",
        value: "the [subjects](#matchers) that the hook applies to, such as names of tools",
        default: "everything",
        ..EMPTY
    },
    NativeKey {
        name: "command",
        value: "a command line for a shell",
        default: "exactly one of these five",
        ..EMPTY
    },
    NativeKey {
        name: "argv",
        value: "a list: the program and its arguments, without a shell",
        default: "exactly one of these five",
        ..EMPTY
    },
    NativeKey {
        name: "builtin",
        value: "the name of a [built-in](builtins.md)",
        default: "exactly one of these five",
        ..EMPTY
    },
    NativeKey {
        name: "http",
        value: "an `http` or `https` URL without a user name, for an [HTTP hook](hooks.md#http-hooks)",
        default: "exactly one of these five",
        ..EMPTY
    },
    NativeKey {
        name: "model",
        value: "the [model to ask](hooks.md#model-hooks), as in [`--model`](command-line.md#models)",
        default: "exactly one of these five",
        ..EMPTY
    },
    NativeKey {
        name: "args",
        value: "the arguments of the built-in",
        default: "none",
        with: &["builtin"],
    },
    NativeKey {
        name: "prompt",
        value: "a [template](builtins.md#templates)",
        default: "required",
        with: &["model"],
    },
    NativeKey {
        name: "schema",
        value: "`decision`: the model answers with a decision",
        default: "none",
        with: &["model"],
    },
    NativeKey {
        name: "headers",
        value: "HTTP headers of the request",
        default: "none",
        with: &["http"],
    },
    NativeKey {
        name: "allow_private",
        value: "whether to allow [addresses that are not public](hooks.md#private-addresses)",
        default: "false",
        with: &["http"],
    },
    NativeKey {
        name: "prewarm",
        value: "whether to start the next process [ahead of time](hooks.md#commands-that-are-started-ahead-of-time)",
        default: "false",
        with: &["command", "argv"],
    },
    NativeKey {
        name: "shell",
        value: "`sh`, `bash` or `pwsh`",
        default: "`sh`",
        with: &["command"],
    },
    NativeKey {
        name: "timeout",
        value: "seconds, or a number with a unit: `500ms`, `2s`, `1m`; more than 0, at most 600 s",
        default: "60",
        ..EMPTY
    },
    NativeKey {
        name: "working_dir",
        value: "a directory, relative to the event's directory",
        default: "the event's directory",
        with: &["command", "argv", "builtin"],
    },
    NativeKey {
        name: "env",
        value: "environment variables of the hook's process",
        default: "none",
        with: &["command", "argv", "builtin"],
    },
    NativeKey {
        name: "on_error",
        value: "`block`, `warn` or `ignore`: [what a failure does](hooks.md#when-a-hook-fails)",
        default: "depends on the event",
        ..EMPTY
    },
    NativeKey {
        name: "phase",
        value: "`transform`, `main`, `guard` or `observe`",
        default: "`main`; `transform` for the built-ins `stt` and `tts`",
        ..EMPTY
    },
    NativeKey {
        name: "priority",
        value: "a whole number from -1000 to 1000; hooks with a higher number run first",
        default: "0",
        ..EMPTY
    },
    NativeKey {
        name: "strict_output",
        value: "whether to fail on answers that a lenient reader would accept",
        default: "false",
        with: &["command", "argv", "http"],
    },
    NativeKey {
        name: "agent",
        value: "run only on events of this agent",
        default: "every agent",
        ..EMPTY
    },
];

/// Returns the names of the keys.
pub(crate) fn names(keys: &[NativeKey]) -> Vec<&'static str> {
    keys.iter().map(|key| key.name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(keys: &[NativeKey]) -> String {
        let rows = keys.iter().map(|key| {
            let with: Vec<String> = key.with.iter().map(|name| format!("`{name}`")).collect();
            let with = match with.as_slice() {
                [] => String::new(),
                [only] => format!("; with {only}"),
                [first @ .., last] => format!("; with {} or {last}", first.join(", ")),
            };
            let NativeKey {
                name,
                value,
                default,
                ..
            } = key;
            format!("| `{name}` | {value}{with} | {default} |\n")
        });
        let rows: String = rows.collect();
        format!("| key | value | default |\n|---|---|---|\n{rows}")
    }

    fn reference() -> String {
        let defaults: Vec<String> = DEFAULT_KEYS.iter().map(|key| format!("`{key}`")).collect();
        format!(
            "The keys of a file:\n\n{}\nThe keys of a hook:\n\n{}\nThe keys of `defaults`: {}.\n",
            table(FILE_KEYS),
            table(HOOK_KEYS),
            defaults.join(", "),
        )
    }

    #[test]
    fn the_page_of_hook_files_lists_every_key() {
        crate::reference_page::compare("the keys of native files", &reference());
    }

    #[test]
    fn defaults_hold_keys_of_hooks_and_companions_name_them() {
        let known = names(HOOK_KEYS);
        let with = HOOK_KEYS.iter().flat_map(|key| key.with);
        for name in DEFAULT_KEYS.iter().chain(with) {
            assert!(known.contains(name), "`{name}` is not a key of a hook");
        }
    }
}
