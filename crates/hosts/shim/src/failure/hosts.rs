//! The denials of all hosts. A test of `tenterhook-systems` writes this file.

use super::form::{GateFailure, HostFailures};

/// The failures of all hosts.
pub static HOST_FAILURES: &[HostFailures] = &[
    HostFailures {
        host: "claude-code",
        variables: &["CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SESSION_ATTENDED"],
        gates: &[
            GateFailure {
                event: "UserPromptSubmit",
                stdout: "{\"decision\":\"block\",\"reason\":\"{reason}\"}\n",
                stderr: "",
                status: 0,
            },
            GateFailure {
                event: "PreToolUse",
                stdout: "{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"deny\",\"permissionDecisionReason\":\"{reason}\"}}\n",
                stderr: "",
                status: 0,
            },
            GateFailure {
                event: "PermissionRequest",
                stdout: "{\"hookSpecificOutput\":{\"hookEventName\":\"PermissionRequest\",\"decision\":{\"behavior\":\"deny\",\"message\":\"{reason}\"}}}\n",
                stderr: "",
                status: 0,
            },
            GateFailure {
                event: "PreCompact",
                stdout: "{\"decision\":\"block\",\"reason\":\"{reason}\"}\n",
                stderr: "",
                status: 0,
            },
        ],
        others: &[
            "SessionStart",
            "PostToolUse",
            "PostToolUseFailure",
            "Stop",
            "SubagentStart",
            "SubagentStop",
            "Notification",
            "SessionEnd",
        ],
    },
    HostFailures {
        host: "cline",
        variables: &[],
        gates: &[GateFailure {
            event: "PreToolUse",
            stdout: "{\"cancel\":true,\"errorMessage\":\"{reason}\"}\n",
            stderr: "",
            status: 0,
        }],
        others: &[
            "TaskStart",
            "TaskResume",
            "UserPromptSubmit",
            "PostToolUse",
            "TaskComplete",
            "SessionShutdown",
        ],
    },
    HostFailures {
        host: "codex",
        variables: &[],
        gates: &[
            GateFailure {
                event: "UserPromptSubmit",
                stdout: "{\"decision\":\"block\",\"reason\":\"{reason}\"}\n",
                stderr: "",
                status: 0,
            },
            GateFailure {
                event: "PreToolUse",
                stdout: "{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"deny\",\"permissionDecisionReason\":\"{reason}\"}}\n",
                stderr: "",
                status: 0,
            },
            GateFailure {
                event: "PermissionRequest",
                stdout: "{\"hookSpecificOutput\":{\"hookEventName\":\"PermissionRequest\",\"decision\":{\"behavior\":\"deny\",\"message\":\"{reason}\"}}}\n",
                stderr: "",
                status: 0,
            },
            GateFailure {
                event: "PreCompact",
                stdout: "{\"continue\":false,\"stopReason\":\"{reason}\"}\n",
                stderr: "",
                status: 0,
            },
        ],
        others: &[
            "SessionStart",
            "PostToolUse",
            "Stop",
            "SubagentStart",
            "SubagentStop",
            "SessionEnd",
        ],
    },
    HostFailures {
        host: "copilot",
        variables: &[],
        gates: &[
            GateFailure {
                event: "userPromptSubmitted",
                stdout: "{\"decision\":\"block\",\"reason\":\"{reason}\"}\n",
                stderr: "",
                status: 0,
            },
            GateFailure {
                event: "preToolUse",
                stdout: "{\"permissionDecision\":\"deny\",\"permissionDecisionReason\":\"{reason}\"}\n",
                stderr: "",
                status: 0,
            },
        ],
        others: &[
            "sessionStart",
            "postToolUse",
            "postToolUseFailure",
            "agentStop",
            "preCompact",
            "notification",
            "sessionEnd",
        ],
    },
    HostFailures {
        host: "droid",
        variables: &[],
        gates: &[
            GateFailure {
                event: "UserPromptSubmit",
                stdout: "{\"decision\":\"block\",\"reason\":\"{reason}\"}\n",
                stderr: "",
                status: 0,
            },
            GateFailure {
                event: "PreToolUse",
                stdout: "{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"deny\",\"permissionDecisionReason\":\"{reason}\"}}\n",
                stderr: "",
                status: 0,
            },
        ],
        others: &[
            "SessionStart",
            "PostToolUse",
            "Stop",
            "SubagentStop",
            "PreCompact",
            "Notification",
            "SessionEnd",
        ],
    },
    HostFailures {
        host: "gemini",
        variables: &[],
        gates: &[
            GateFailure {
                event: "BeforeAgent",
                stdout: "{\"decision\":\"deny\",\"reason\":\"{reason}\"}\n",
                stderr: "",
                status: 0,
            },
            GateFailure {
                event: "BeforeTool",
                stdout: "{\"decision\":\"deny\",\"reason\":\"{reason}\"}\n",
                stderr: "",
                status: 0,
            },
        ],
        others: &[
            "SessionStart",
            "AfterTool",
            "AfterAgent",
            "Notification",
            "SessionEnd",
        ],
    },
    HostFailures {
        host: "goose",
        variables: &["PWD"],
        gates: &[GateFailure {
            event: "PreToolUse",
            stdout: "{\"decision\":\"block\",\"reason\":\"{reason}\"}\n",
            stderr: "",
            status: 0,
        }],
        others: &[
            "SessionStart",
            "UserPromptSubmit",
            "PostToolUse",
            "PostToolUseFailure",
            "Stop",
            "SessionEnd",
        ],
    },
    HostFailures {
        host: "kimi",
        variables: &[],
        gates: &[
            GateFailure {
                event: "UserPromptSubmit",
                stdout: "",
                stderr: "{reason}\n",
                status: 2,
            },
            GateFailure {
                event: "PreToolUse",
                stdout: "{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"deny\",\"permissionDecisionReason\":\"{reason}\"}}\n",
                stderr: "",
                status: 0,
            },
        ],
        others: &[
            "SessionStart",
            "PostToolUse",
            "PostToolUseFailure",
            "Stop",
            "SubagentStart",
            "SubagentStop",
            "PreCompact",
            "Notification",
            "SessionEnd",
        ],
    },
    HostFailures {
        host: "opencode",
        variables: &[],
        gates: &[
            GateFailure {
                event: "chat.message",
                stdout: "{\"deny\":\"{reason}\"}\n",
                stderr: "",
                status: 0,
            },
            GateFailure {
                event: "tool.execute.before",
                stdout: "{\"deny\":\"{reason}\"}\n",
                stderr: "",
                status: 0,
            },
        ],
        others: &["session.created", "tool.execute.after", "session.idle"],
    },
    HostFailures {
        host: "pi",
        variables: &[],
        gates: &[
            GateFailure {
                event: "input",
                stdout: "{\"deny\":\"{reason}\"}\n",
                stderr: "",
                status: 0,
            },
            GateFailure {
                event: "tool_call",
                stdout: "{\"deny\":\"{reason}\"}\n",
                stderr: "",
                status: 0,
            },
        ],
        others: &[
            "session_start",
            "tool_result",
            "agent_end",
            "session_shutdown",
        ],
    },
    HostFailures {
        host: "qwen",
        variables: &[],
        gates: &[
            GateFailure {
                event: "UserPromptSubmit",
                stdout: "{\"decision\":\"block\",\"reason\":\"{reason}\"}\n",
                stderr: "",
                status: 0,
            },
            GateFailure {
                event: "PreToolUse",
                stdout: "{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"deny\",\"permissionDecisionReason\":\"{reason}\"}}\n",
                stderr: "",
                status: 0,
            },
        ],
        others: &[
            "SessionStart",
            "PostToolUse",
            "PostToolUseFailure",
            "Stop",
            "SubagentStart",
            "SubagentStop",
            "PreCompact",
            "Notification",
            "SessionEnd",
        ],
    },
    HostFailures {
        host: "vibe",
        variables: &[],
        gates: &[GateFailure {
            event: "pre_tool",
            stdout: "{\"decision\":\"deny\",\"reason\":\"{reason}\"}\n",
            stderr: "",
            status: 0,
        }],
        others: &["post_tool", "post_agent"],
    },
];
