//! Runs a host once, without a person, in a sandbox.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tenterhook_process::{CancellationToken, Capture, End, HeldPipe, Limits, SpawnError};
use tenterhook_systems::host::headless::{HeadlessRun, Placeholders, PluginPackage};

use crate::proof::canary::{self, RAN};
use crate::proof::installed_agent::InstalledAgent;
use crate::proof::model_server::{ModelScript, ModelServer, RecordedRequest};
use crate::proof::sandbox::Sandbox;

/// The longest run of an agent.
const TIME_LIMIT: Duration = Duration::from_mins(2);

/// How a run of an agent ended, and what its model was asked.
#[derive(Debug)]
pub struct HeadlessOutcome {
    /// How the program ended.
    pub end: End,
    /// What it printed, standard output first.
    pub output: String,
    /// The requests to the model.
    pub requests: Vec<RecordedRequest>,
    /// How many of them continued the conversation.
    pub turns: usize,
}

impl HeadlessOutcome {
    /// Returns whether the model was shown this text.
    pub fn was_shown(&self, text: &str) -> bool {
        self.requests.iter().any(|request| request.shows(text))
    }

    /// Returns whether the agent ran until the time limit.
    pub fn is_timed_out(&self) -> bool {
        matches!(self.end, End::TimedOut { .. })
    }
}

/// Why an agent could not be run.
#[derive(Debug, thiserror::Error)]
pub enum HeadlessError {
    /// The host cannot be run without a person.
    #[error("{0} cannot be run without a person")]
    NotHeadless(&'static str),
    /// The sandbox or the model server could not be set up.
    #[error("cannot set up the run")]
    Setup(#[from] io::Error),
    /// The program could not be started.
    #[error("cannot start the agent")]
    Start(#[from] SpawnError),
}

/// The file of the MCP server, below the home folder.
const SERVER: &str = "mcp-server";
/// An MCP server as a shell script, because every machine has a shell. Its tool writes the same file and returns the same
/// text as the command of a proof.
const SERVER_TEXT: &str = r#"#!/bin/sh
while IFS= read -r line; do
  id=$(printf '%s' "$line" |
    sed -n -e 's/.*"id" *: *\("[^"]*"\).*/\1/p' -e 's/.*"id" *: *\([0-9][0-9]*\).*/\1/p')
  [ -n "$id" ] || continue
  case $line in
  *'"initialize"'*)
    version=$(printf '%s' "$line" | sed -n 's/.*"protocolVersion" *: *"\([^"]*\)".*/\1/p')
    result='{"protocolVersion":"'$version'","capabilities":{"tools":{}},"serverInfo":{"name":"proof","version":"1"}}' ;;
  *'"tools/list"'*)
    result='{"tools":[{"name":"runner","description":"Runs a command.","inputSchema":{"type":"object","properties":{"command":{"type":"string"}}}}]}' ;;
  *'"tools/call"'*)
    : > RAN
    result='{"content":[{"type":"text","text":"ran-ok"}]}' ;;
  *'"ping"'*) result='{}' ;;
  *)
    printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown method"}}\n' "$id"
    continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;

/// An agent in a sandbox with a model server.
#[derive(Debug)]
pub struct PreparedAgent<'a> {
    agent: &'a InstalledAgent,
    run: &'static HeadlessRun,
    sandbox: &'a Sandbox,
    server: ModelServer,
    environment: Vec<(OsString, OsString)>,
    has_mcp: bool,
}

impl<'a> PreparedAgent<'a> {
    /// Starts the model server, and writes the files that the agent needs. Install Tenterhook after it.
    ///
    /// # Errors
    /// Fails if the host cannot be run without a person, or if the sandbox cannot be written.
    pub async fn prepare(
        agent: &'a InstalledAgent,
        sandbox: &'a Sandbox,
        script: ModelScript,
    ) -> Result<Self, HeadlessError> {
        let run = agent
            .host
            .headless
            .ok_or(HeadlessError::NotHeadless(agent.host.title))?;
        let has_mcp = script.calls_mcp();
        let server = ModelServer::start(script, run).await?;
        let bin: Vec<PathBuf> = agent.bin.iter().cloned().collect();
        let mut prepared = Self {
            agent,
            run,
            sandbox,
            server,
            environment: sandbox.environment(&bin),
            has_mcp,
        };
        if has_mcp {
            prepared.write_server()?;
        }
        for (name, value) in run.variables {
            let value = prepared.fill(value);
            prepared.environment.push(((*name).into(), value.into()));
        }
        for (path, text) in run.files {
            sandbox.write_home(path, &prepared.fill(text))?;
        }
        if let (Some(package), Some(packages)) = (&run.plugin_package, &agent.packages) {
            prepared.link_package(package, packages)?;
        }
        for arguments in run.preparations {
            prepared.start(arguments).await?;
        }
        Ok(prepared)
    }

    /// Runs the agent with the prompt. The run takes at most two minutes.
    ///
    /// # Errors
    /// Fails if the program cannot be started.
    pub async fn run(&self) -> Result<HeadlessOutcome, HeadlessError> {
        let finished = self.start(self.run.arguments).await?;
        let output = format!("{}{}", finished.stdout.text(), finished.stderr.text());
        Ok(HeadlessOutcome {
            end: finished.end,
            output,
            requests: self.server.requests(),
            turns: self.server.turns(),
        })
    }

    async fn start(
        &self,
        arguments: &[&str],
    ) -> Result<tenterhook_process::Finished, HeadlessError> {
        let arguments = arguments.iter().map(|argument| self.fill(argument).into());
        let program = OsString::from(&self.agent.program);
        let argv = [program].into_iter().chain(arguments).collect();
        let command = self.sandbox.command(argv, &self.environment);
        let kept = Capture {
            head: 8 * 1024,
            tail: 24 * 1024,
        };
        let limits = Limits {
            timeout: TIME_LIMIT,
            stdout: kept,
            stderr: kept,
            // Agents leave processes behind that hold the pipes.
            held_pipe: HeldPipe::Drain(Duration::from_millis(200)),
            ..Limits::default()
        };
        let cancel = CancellationToken::new();
        Ok(command.run(&[], &limits, &cancel).await?)
    }

    fn fill(&self, text: &str) -> String {
        let (home, work) = (self.sandbox.home(), self.sandbox.work());
        let mcp = self.run.mcp.filter(|_| self.has_mcp);
        let server = home.join(SERVER);
        let placeholders = Placeholders {
            mcp: mcp.map_or("", |mcp| mcp.entry),
            server: &server.to_string_lossy(),
            url: &self.server.url(),
            home: &home.to_string_lossy(),
            work: &work.to_string_lossy(),
            prompt: canary::PROMPT,
        };
        placeholders.fill(text)
    }

    fn write_server(&self) -> io::Result<()> {
        let ran = self.sandbox.work().join(RAN);
        let text = SERVER_TEXT.replace("RAN", &format!("'{}'", ran.display()));
        self.sandbox.write_home(SERVER, &text)?;
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(self.sandbox.home().join(SERVER), executable)
    }

    /// Puts a downloaded package where the host looks for it, so that the host does not download it in every run.
    fn link_package(&self, package: &PluginPackage, packages: &Path) -> io::Result<()> {
        let source = packages.join(package.name.replace('/', "+"));
        if !source.is_dir() {
            return Ok(());
        }
        for folder in package.folders {
            let folder = PathBuf::from(self.fill(folder));
            std::fs::create_dir_all(&folder)?;
            for name in ["package.json", "package-lock.json"] {
                std::fs::copy(source.join(name), folder.join(name))?;
            }
            let modules = folder.join("node_modules");
            std::os::unix::fs::symlink(source.join("node_modules"), modules)?;
        }
        Ok(())
    }
}
