//! The tools that each real agent on this machine offers to its model.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;
use tenterhook_install::proof::headless::PreparedAgent;
use tenterhook_install::proof::installed_agent::InstalledAgent;
use tenterhook_install::proof::model_server::ModelScript;
use tenterhook_install::proof::sandbox::Sandbox;
use tenterhook_systems::host::HostAgent;

use crate::proof::real_agents::agents;

/// Returns the tools that hooks of a host see under another name than its model, as they were recorded.
fn hook_names(host: &HostAgent) -> BTreeMap<String, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../hooks/systems/src");
    let path = folder.join(host.name.replace('-', "_")).join("tools.json");
    let recorded: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    match recorded.get("hook_names") {
        Some(names) => serde_json::from_value(names.clone()).unwrap(),
        None => BTreeMap::new(),
    }
}

/// Returns the script of a model that requests nothing.
fn silent() -> ModelScript {
    ModelScript {
        turns: Vec::new(),
        subagent_turns: Vec::new(),
        prompt: String::new(),
        final_text: "done".to_owned(),
    }
}

async fn offered(agent: &InstalledAgent) -> BTreeSet<String> {
    let sandbox = Sandbox::create().unwrap();
    let prepared = PreparedAgent::prepare(agent, &sandbox, silent())
        .await
        .unwrap();
    let outcome = prepared.run().await.unwrap();
    let requests = outcome.requests.iter();
    let names = requests.flat_map(|request| request.offered_tools());
    names.map(str::to_owned).collect()
}

/// If this fails after an agent was updated: add the tool to the agent's `tools.rs` and `tools.json`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "runs real agents"]
async fn every_tool_that_an_agent_offers_is_in_its_table() {
    let mut missing = Vec::new();
    for agent in agents() {
        let host = agent.host;
        let names = hook_names(host);
        let offered = offered(&agent).await;
        println!("{}: {} tools", host.title, offered.len());
        assert!(!offered.is_empty(), "{}", host.title);
        for tool in &offered {
            let seen = names.get(tool).unwrap_or(tool);
            if !host.tools.has(seen) {
                missing.push(format!("{}: `{tool}`", host.title));
            }
        }
    }
    assert!(missing.is_empty(), "in no table: {}", missing.join(", "));
}
