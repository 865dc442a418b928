//! How to run Factory droid without a person.

use crate::host::headless::{HeadlessRun, ModelTool};

pub(super) static HEADLESS: HeadlessRun = HeadlessRun {
    arguments: &[
        "exec",
        "--skip-permissions-unsafe",
        "-m",
        "custom:Proof-0",
        "{prompt}",
    ],
    variables: &[
        ("FACTORY_API_KEY", "fk-unused"),
        ("FACTORY_AIRGAP_ENABLED", "true"),
        ("FACTORY_DISABLE_AUTO_UPDATE", "1"),
    ],
    files: &[(
        ".factory/settings.json",
        r#"{
  "customModels": [
    {
      "model": "proof",
      "displayName": "Proof",
      "baseUrl": "{url}/v1",
      "apiKey": "unused",
      "provider": "generic-chat-completion-api",
      "maxOutputTokens": 4096
    }
  ]
}
"#,
    )],
    preparations: &[],
    plugin_package: None,
    shell: ModelTool {
        name: "Execute",
        arguments: r#"{"command": "{command}"}"#,
    },
    write: ModelTool {
        name: "Create",
        arguments: r#"{"file_path": "{path}", "content": "{content}"}"#,
    },
};
