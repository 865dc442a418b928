//! What pi offers its extensions: every member exists, and does here what pi does.

use std::fmt::Write as _;

use serde_json::{Value, json};
use tenterhook_systems::pi::members::{INTERFACES, PiMemberState};

use crate::service::{Service, stream};
use crate::stage::Test;
use crate::terminal::run;

/// Returns an extension that looks for the members of some interfaces, and shows those that do not exist.
fn looking_for(is_wanted: impl Fn(&str) -> bool) -> String {
    let mut looks = String::new();
    for interface in INTERFACES.iter().filter(|one| is_wanted(one.name)) {
        for (name, _) in interface.members {
            let of = interface.written;
            writeln!(looks, "look({of:?}, {of}, {name:?});").unwrap();
        }
    }
    looks
}

#[test]
fn every_member_of_pi_exists() {
    let everywhere = looking_for(|name| name != "ExtensionCommandContext");
    let in_commands = looking_for(|name| name == "ExtensionCommandContext");
    let extension = format!(
        "export default function (pi) {{
           const missing = [];
           const look = (of, value, name) => {{ if (!(name in value)) missing.push(`${{of}}.${{name}}`); }};
           pi.on('session_start', (_event, ctx) => {{ {everywhere} }});
           pi.registerCommand('look', {{ handler: async (_args, ctx) => {{
             {in_commands}
             console.log(`missing: ${{missing.join(' ') || 'nothing'}}`);
           }} }});
         }}"
    );
    let ran = run()
        .file("extension.mjs", &extension)
        .args(["-e", "extension.mjs"])
        .script("turns: []")
        .stdin("/look\n")
        .run();
    assert!(ran.stderr.contains("missing: nothing"), "{}", ran.stderr);
}

/// An extension that reads the session in the ways that only newer versions of pi have.
const READS: &str = r#"
import assert from "node:assert/strict";
import { uuidv7 } from "@earendil-works/pi-ai";
export default function (pi) {
  pi.on("agent_end", (_event, ctx) => {
    const { sessionManager: session } = ctx;
    const entries = session.getEntries();
    const [first] = entries.filter(({ type }) => type === "message");
    assert.deepEqual(session.getChildren(first.id).map(({ id }) => id), [entries[entries.indexOf(first) + 1].id]);
    assert.equal(session.isPersisted(), true);
    const { messages, model, thinkingLevel } = session.buildSessionContext();
    assert.deepEqual(messages.map(({ role }) => role), ["user", "assistant"]);
    assert.equal(model.modelId, ctx.model.id);
    assert.equal(thinkingLevel, ctx.thinkingLevel);
    const projection = session.buildSessionProjection();
    assert.deepEqual(projection.entries.map(({ sourceEntry }) => sourceEntry.id), session.buildContextEntries().map(({ id }) => id));
    assert.deepEqual(ctx.scopedModels, []);
    const [older, newer] = [uuidv7(1), uuidv7()];
    assert.match(newer, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    assert.ok(older < newer);
    console.log("read everything");
  });
}
"#;

#[test]
fn the_session_is_read_as_in_newer_versions_of_pi() {
    let ran = run()
        .file("extension.mjs", READS)
        .args(["-e", "extension.mjs", "hi"])
        .script("turns: [{text: hello}]")
        .run();
    assert!(ran.stderr.contains("read everything"), "{}", ran.stderr);
}

/// An extension that calls the model through the registry, and looks at one whose key is missing.
const CALLS: &str = r#"
import assert from "node:assert/strict";
export default function (pi) {
  pi.on("agent_end", async (_event, ctx) => {
    const { modelRegistry: registry, model } = ctx;
    assert.equal(model.baseUrl, "URL");
    const context = { messages: [{ role: "user", content: "Name it.", timestamp: 1 }] };
    const { content: [{ text }] } = await registry.complete(model, context);
    const kinds = [];
    for await (const { type } of registry.streamSimple(model, context)) kinds.push(type);
    assert.deepEqual(kinds, ["start", "text_start", "text_delta", "text_end", "done"]);
    assert.equal(registry.hasConfiguredAuth(model), true);
    assert.equal(registry.getProvider("openai").baseUrl, "https://api.openai.com/v1");
    const keyless = registry.find("anthropic", "claude-sonnet-4-5");
    assert.equal(keyless.provider, "anthropic");
    assert.equal(registry.hasConfiguredAuth(keyless), false);
    assert.equal((await registry.getApiKeyAndHeaders(keyless)).ok, false);
    assert.throws(() => registry.registerProvider("x", {}), /use `pi.registerProvider`/);
    console.log(`called: ${text}`);
  });
}
"#;

#[test]
fn models_are_called_through_the_registry_and_keyless_ones_can_be_looked_at() {
    let answer = |text: &str| stream(&[json!({"content": text})], "stop");
    let service = Service::start([answer("hello"), answer("a greeting"), answer("again")]);
    let ran = Test::new()
        .file("extension.mjs", &CALLS.replace("URL", &service.url))
        .args(["run", "hi", "--no-journal", "--model", "openai/small"])
        .args(["--base-url", &service.url, "-e", "extension.mjs"])
        .variable("OPENAI_API_KEY", "canary")
        .run();
    assert!(
        ran.stderr.contains("called: a greeting"),
        "{}\n{}",
        ran.stdout,
        ran.stderr
    );
}

#[test]
fn check_names_the_members_that_have_no_effect() {
    let extension = "export default function (pi) {
        pi.registerEntryRenderer('x', () => undefined);
        pi.on('session_start', (_event, ctx) => ctx.ui.setWorkingVisible(false));
    }";
    let test = Test::new().file("extension.mjs", extension);
    let ran = test.args(["check", "--json", "-e", "extension.mjs"]).run();
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    let warnings = report["warnings"].as_array().unwrap();
    let refused = |name: &str| {
        let members = INTERFACES.iter().flat_map(|one| {
            let of = one.written;
            one.members.iter().map(move |member| (of, member))
        });
        let mut found = members.filter(|(_, (member, _))| *member == name);
        let (of, (_, state)) = found.next().unwrap();
        let PiMemberState::Refused(reason) = state else {
            panic!("`{name}` is not refused");
        };
        format!("`{of}.{name}` is not supported here: {reason}")
    };
    assert_eq!(warnings.len(), 2, "{report:#}");
    for name in ["registerEntryRenderer", "setWorkingVisible"] {
        let expected = refused(name);
        let is_named = |warning: &Value| warning.as_str().unwrap().ends_with(&expected);
        assert!(warnings.iter().any(is_named), "{expected}: {report:#}");
    }
}
