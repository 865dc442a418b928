//! Models that pi's extensions provide and call, as a user sees them.

use serde_json::json;

use crate::service::{Service, stream};
use crate::stage::{Test, json_lines};

/// An extension with a provider at `URL`, and a handler that calls its model at the end of each run.
const EXTENSION: &str = r#"
import { complete } from "@mariozechner/pi-ai";
export default function (pi: any) {
  pi.registerProvider("corp", {
    baseUrl: "URL", api: "openai-completions", apiKey: "CORP_KEY",
    models: [{ id: "small", contextWindow: 5000, cost: { input: 1, output: 1, cacheRead: 0, cacheWrite: 0 } }],
  });
  pi.on("agent_end", async (event: any, ctx: any) => {
    const model = ctx.modelRegistry.find("corp", "small");
    const answer = await complete(model, { messages: [{ role: "user", content: "Name it.", timestamp: 1 }] }, {});
    pi.setSessionName(answer.content[0].text);
    console.log(`named ${answer.content[0].text}`);
  });
}
"#;

fn test(service: &Service) -> Test {
    let text = EXTENSION.replace("URL", &service.url);
    Test::new()
        .file("../home/.pi/agent/extensions/corp.ts", &text)
        .variable("CORP_KEY", "corp-canary")
}

fn answer(text: &str) -> String {
    stream(&[json!({"content": text})], "stop")
}

#[test]
fn a_model_of_an_extension_runs_and_calls_of_extensions_are_in_the_journal() {
    let service = Service::start([answer("hello"), answer("A greeting")]);
    let ran = test(&service)
        .args(["run", "hi", "--model", "corp/small", "--journal", "journal"])
        .run();
    assert_eq!(
        (ran.stdout.as_str(), ran.status),
        ("hello\n", 0),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("named A greeting"), "{}", ran.stderr);
    let keys: Vec<String> = service.seen().into_iter().map(|(_, key, _)| key).collect();
    assert_eq!(keys, ["Bearer corp-canary", "Bearer corp-canary"]);
    let journal = ran.file("journal");
    let calls: Vec<_> = json_lines(&journal)
        .into_iter()
        // Calls of the agent have a session.
        .filter(|record| record["record"] == "model_call" && record["session_id"].is_null())
        .collect();
    assert_eq!(calls.len(), 1, "{journal}");
    assert_eq!(calls[0]["model"], "corp/small");
    assert_eq!(calls[0]["usage"]["input_tokens"], 11);
    assert_eq!(calls[0]["cost"], 0.000_018);
    assert!(!journal.contains("corp-canary"), "{journal}");
}

#[test]
fn the_provider_of_an_extension_is_listed_and_a_change_of_the_users_own_is_announced() {
    let service = Service::start([answer("hello"), answer("A greeting")]);
    let ran = test(&service).args(["list"]).run();
    assert!(ran.stdout.contains("providers: corp"), "{}", ran.stdout);
    let file = format!(
        "providers: {{corp: {{service: openai, base_url: '{}'}}}}",
        service.url
    );
    let ran = test(&service)
        .file("../config/models.yaml", &file)
        .args(["run", "hi", "--model", "corp/small", "--no-journal"])
        .run();
    let expected = format!(
        "sends the model calls of the provider `corp` to `{}`",
        service.url
    );
    assert!(ran.stderr.contains(&expected), "{}", ran.stderr);
}

#[test]
fn a_provider_of_a_project_does_nothing_before_its_approval() {
    let service = Service::start([answer("hello"), answer("A greeting")]);
    let text = EXTENSION.replace("URL", &service.url);
    let run = ["run", "hi", "--model", "corp/small", "--no-journal"];
    let ran = Test::new()
        .file(".pi/extensions/corp.ts", &text)
        .args(run)
        .run();
    assert!(
        ran.stderr.contains("unknown model `corp/small`"),
        "{}",
        ran.stderr
    );
    assert!(service.seen().is_empty());
    let ran = ran.again(["trust", "--all"]).run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let ran = ran.again(run).variable("CORP_KEY", "corp-canary").run();
    assert_eq!(
        (ran.stdout.as_str(), ran.status),
        ("hello\n", 0),
        "{}",
        ran.stderr
    );
}
