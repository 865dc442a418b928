//! A model for one coding agent that requests one command. It runs until its standard input ends.
//!
//! `scripted-model HOST HOME WORK COMMAND` prints one line of JSON: the environment variables and the files of the home
//! folder `HOME` with which the host uses this model in the folder `WORK`. Then it reads texts, one a line, and prints for
//! each whether the model was shown it: `true` or `false`.

use std::error::Error;
use std::io::Write as _;

use serde_json::{Map, Value, json};
use tenterhook_install::proof::model_server::{
    ModelScript, ModelServer, ScriptedAction, ScriptedTurn,
};
use tenterhook_systems::HOSTS;
use tenterhook_systems::host::headless::Placeholders;
use tokio::io::{AsyncBufReadExt as _, BufReader};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, home, work, command] = arguments.as_slice() else {
        return Err("expected HOST HOME WORK COMMAND".into());
    };
    let host = HOSTS.iter().find(|host| host.name == *name);
    let run = host.and_then(|host| host.headless);
    let run = run.ok_or_else(|| format!("`{name}` cannot be run without a person"))?;
    let turn = ScriptedTurn {
        text: "I run it.".to_owned(),
        actions: vec![ScriptedAction::Shell {
            command: command.clone(),
        }],
    };
    let script = ModelScript {
        turns: vec![turn],
        final_text: "I could not run it.".to_owned(),
        ..ModelScript::default()
    };
    let server = ModelServer::start(script, run).await?;
    let url = server.url();
    let placeholders = Placeholders {
        url: &url,
        home,
        work,
        prompt: "",
        mcp: "",
        server: "",
    };
    let filled = |pairs: &[(&str, &str)]| -> Map<String, Value> {
        let filled = pairs
            .iter()
            .map(|(name, text)| ((*name).to_owned(), placeholders.fill(text).into()));
        filled.collect()
    };
    let setup = json!({ "variables": filled(run.variables), "files": filled(run.files) });
    writeln!(std::io::stdout(), "{setup}")?;
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(text) = lines.next_line().await? {
        writeln!(std::io::stdout(), "{}", server.was_shown(&text))?;
    }
    Ok(())
}
