//! How to run pi without a person.

use crate::host::headless::{HeadlessRun, ModelTool};

pub(super) static HEADLESS: HeadlessRun = HeadlessRun {
    arguments: &["-p", "--provider", "proof", "--model", "proof", "{prompt}"],
    variables: &[
        ("PI_OFFLINE", "1"),
        ("PI_SKIP_VERSION_CHECK", "1"),
        ("PI_TELEMETRY", "0"),
    ],
    files: &[(
        ".pi/agent/models.json",
        r#"{
  "providers": {
    "proof": {
      "baseUrl": "{url}/v1",
      "api": "openai-completions",
      "apiKey": "unused",
      "models": [
        {
          "id": "proof",
          "name": "proof",
          "reasoning": false,
          "input": ["text"],
          "contextWindow": 100000,
          "maxTokens": 4096,
          "cost": { "input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0 }
        }
      ]
    }
  }
}
"#,
    )],
    preparations: &[],
    plugin_package: None,
    shell: ModelTool {
        name: "bash",
        arguments: r#"{"command": "{command}"}"#,
    },
    write: ModelTool {
        name: "write",
        arguments: r#"{"path": "{path}", "content": "{content}"}"#,
    },
    mcp: None,
    subagent: None,
};
