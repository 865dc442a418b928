//! Extensions whose worker ends while one agent works.

use crate::stage::{Ran, Test};

/// Prepares its rules when the session starts. It allows everything without rules.
const GUARD: &str = r#"
import fs from "node:fs";
export default (pi) => {
  let rules;
  pi.on("session_start", () => {
    fs.appendFileSync("heard", "heard\n");
    if (fs.existsSync("broken")) throw new Error("no rules");
    rules = ["work"];
  });
  pi.on("tool_call", ({ toolName }) => rules?.includes(toolName) ? { block: true, reason: "guarded" } : undefined);
};
"#;

const TOOLS: &str = r#"
import fs from "node:fs";
export default (pi) => {
  const tool = (name, execute) => pi.registerTool({ name, description: name, parameters: { type: "object", properties: {} }, execute });
  tool("crash", async () => { process.exit(3); });
  tool("spoil", async () => { fs.writeFileSync("broken", ""); return "spoilt"; });
  tool("work", async () => { fs.writeFileSync("worked", ""); return "worked"; });
};
"#;

/// Lets the model call tools, one after another.
fn run(tools: &[&str]) -> Ran {
    let turn = |tool: &&str| format!("  - tool_calls: [{{name: {tool}}}]\n");
    let turns: String = tools.iter().map(turn).collect();
    Test::new()
        .args("run --journal journal.jsonl -e guard.js -e tools.js --allow work".split(' '))
        .args("--allow crash --allow spoil hi".split(' '))
        .file("guard.js", GUARD)
        .file("tools.js", TOOLS)
        .script(&format!("turns:\n{turns}  - text: Done.\n"))
        .run()
}

/// Returns why the hooks of the last call failed, and the note of the run that succeeded.
fn last_runs(ran: &Ran) -> String {
    let records = ran.lines("journal.jsonl");
    let mut calls = records.iter().filter(|it| it["event"] == "pre_tool_use");
    calls.next_back().unwrap().to_string()
}

#[test]
fn a_guard_has_its_rules_again_after_a_tool_ended_its_worker() {
    let ran = run(&["crash", "work"]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(!ran.path("work/worked").exists());
    assert_eq!(ran.file("heard"), "heard\nheard\n");
    let journal = ran.file("journal.jsonl");
    assert!(journal.contains("guarded"), "{journal}");
    assert!(journal.contains("`session_start` again"), "{journal}");
}

#[test]
fn a_guard_that_cannot_prepare_again_denies() {
    let ran = run(&["spoil", "crash", "work", "work"]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(!ran.path("work/worked").exists());
    assert_eq!(ran.file("heard"), "heard\nheard\n");
    let last = last_runs(&ran);
    assert!(last.contains("`guard.js` lacks what it prepared"), "{last}");
    assert!(last.contains("no rules"), "{last}");
    assert!(ran.stderr.contains("no rules"), "{}", ran.stderr);
}
