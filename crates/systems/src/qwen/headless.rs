//! How to run Qwen Code without a person.

use crate::host::headless::{HeadlessRun, ModelTool};

pub(super) static HEADLESS: HeadlessRun = HeadlessRun {
    arguments: &["--yolo", "--auth-type", "openai", "-p", "{prompt}"],
    variables: &[
        ("OPENAI_API_KEY", "unused"),
        ("OPENAI_BASE_URL", "{url}/v1"),
        ("OPENAI_MODEL", "proof"),
        ("QWEN_TELEMETRY_ENABLED", "false"),
    ],
    files: &[(
        ".qwen/settings.json",
        r#"{
  "general": { "enableAutoUpdate": false },
  "privacy": { "usageStatisticsEnabled": false }
}
"#,
    )],
    preparations: &[],
    plugin_package: None,
    shell: ModelTool {
        name: "run_shell_command",
        arguments: r#"{"command": "{command}", "is_background": false}"#,
    },
    write: ModelTool {
        name: "write_file",
        arguments: r#"{"file_path": "{path}", "content": "{content}"}"#,
    },
};
