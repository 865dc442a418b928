//! A whole folder of hook files and extensions.

use std::fs;
use std::path::Path;
use std::time::Duration;

use tenterhook_discovery::{LoadOptions, load_corpus};

const DEADLINE: Duration = Duration::from_secs(30);

fn write(root: &Path, name: &str, text: &str) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[tokio::test]
async fn a_corpus_reports_what_each_entry_registers_and_why_it_does_not_load() {
    let dir = tempfile::tempdir().unwrap();
    let extension = |body: &str| {
        format!(
            "import type {{ ExtensionAPI }} from '@mariozechner/pi-coding-agent';\nexport default (pi: ExtensionAPI) => {{ {body} }};\n"
        )
    };
    let guard =
        extension("pi.on('tool_call', () => {}); pi.registerCommand('look', { handler() {} });");
    let tool = extension("pi.registerTool({ name: 'count', execute() {} });");
    for (name, text) in [
        ("a/guard.ts", guard.as_str()),
        (
            "b/index.ts",
            "import './lib.js';\nexport { default } from './tool.ts';\n",
        ),
        ("b/lib.ts", "export const value: number = 1;\n"),
        ("b/tool.ts", &tool),
        (
            "broken.ts",
            "import x from 'no-such-package';\nexport default () => x;\n",
        ),
        ("helper.ts", "export const value = 1;\n"),
        ("_private.ts", "export default 1;\n"),
        ("types.d.ts", "export default function (): void;\n"),
        ("hooks.yaml", "hooks:\n  - {event: stop, command: cat}\n"),
        (
            "agent.yaml",
            "agents:\n  root: {model: openai/gpt-4o, redact_secrets: false, hooks: {stop: [{type: command, command: cat}]}}\n",
        ),
        (
            "x/.kodelet/hooks/logger",
            "#!/bin/sh\n[ \"$1\" = hook ] && echo before_tool_call\n",
        ),
        ("x/.kodelet/hooks/README.md", "Hooks.\n"),
        ("y/kodelet-extension-y", "#!/no/such/program\n"),
        ("y/src/index.ts", "export default 1;\n"),
        ("mistake.yaml", "hooks:\n  - {event: stopp, command: cat}\n"),
        ("other.yaml", "name: x\n"),
        ("node_modules/x/index.ts", "export default 1;\n"),
        (
            "native.py",
            "from tenterhook import on\n\n@on('session_start')\ndef begin(event):\n    pass\n",
        ),
    ] {
        write(dir.path(), name, text);
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let logger = dir.path().join("x/.kodelet/hooks/logger");
        fs::set_permissions(logger, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let options = LoadOptions::of_process();
    let found = load_corpus(dir.path(), &options, DEADLINE).await.unwrap();
    assert_eq!((found.loads, found.total), (6, 9));
    let found = found.entries;
    let described = found.iter().filter(|entry| entry.loads);
    let described: Vec<String> = described.map(ToString::to_string).collect();
    let expected = [
        "loads  a/guard.ts  events: pre_tool_use; commands: look",
        "loads  agent.yaml  events: session_end, stop, tool_response_transform",
        "loads  b  tools: count",
        "loads  hooks.yaml  events: stop",
        "loads  native.py  events: session_start",
        "loads  x/.kodelet/hooks/logger  events: pre_tool_use",
    ];
    assert_eq!(described, expected);
    let errors: Vec<&str> = found
        .iter()
        .filter_map(|entry| entry.error.as_deref())
        .collect();
    assert!(
        errors[0].contains("Cannot find package 'no-such-package'"),
        "{errors:?}"
    );
    assert!(errors[1].contains("unknown event `stopp`"), "{errors:?}");
    assert!(errors[2].contains("not executable"), "{errors:?}");
}

#[tokio::test]
async fn an_extension_that_does_not_finish_loading_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    write(
        dir.path(),
        "endless.ts",
        "await new Promise(() => setInterval(() => {}, 1000));\nexport default () => {};\n",
    );
    let options = LoadOptions::of_process();
    let limit = Duration::from_secs(3);
    let found = load_corpus(dir.path(), &options, limit).await.unwrap();
    let found = found.entries;
    let endless = found[0].error.as_deref().unwrap();
    assert!(endless.contains("within 3 s"), "{endless}");
    assert!(!found[0].loads);
    assert_eq!(found.len(), 1);
}
