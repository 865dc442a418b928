//! Proves a host: runs it once for each scenario, and judges what happened.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use tenterhook_files::readable_entries;
use tenterhook_process::{CancellationToken, Limits};
use tenterhook_systems::host::{EventRole, HostAgent};
use tokio::time::{Instant, sleep, timeout};

use crate::proof::approved_project;
use crate::proof::canary;
use crate::proof::case::{
    HookOwner, Observation, ProofCase, ProofResult, SCENARIOS, Sabotage, Scenario, marks,
};
use crate::proof::installed_agent::InstalledAgent;
use crate::proof::sandbox::Sandbox;
use crate::proof::trial::{Trial, TrialError, TrialPlan};

/// How long one host may take.
const HOST_LIMIT: Duration = Duration::from_mins(20);
/// How long to wait for the files of hooks that the host does not wait for.
const LATE_HOOKS: Duration = Duration::from_secs(2);

/// The results for one host.
#[derive(Debug, Serialize)]
pub struct HostProof {
    /// The host's name.
    pub host: &'static str,
    /// The host's name in sentences.
    pub title: &'static str,
    /// The program.
    pub program: PathBuf,
    /// The version that the program reports.
    pub version: Option<String>,
    /// The version that the capability table was measured on.
    pub measured_version: &'static str,
    /// The results, in the order of the runs.
    pub cases: Vec<ProvenCase>,
}

/// The result of one case.
#[derive(Debug, Serialize)]
pub struct ProvenCase {
    /// What was tried.
    pub case: ProofCase,
    /// What happened.
    #[serde(flatten)]
    pub result: ProofResult,
    /// The end of what the agent printed, if the case fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
}

impl HostProof {
    /// Returns whether no case fails.
    pub fn is_proven(&self) -> bool {
        let fails = |proven: &ProvenCase| matches!(proven.result, ProofResult::Fails { .. });
        !self.cases.iter().any(fails)
    }
}

/// Runs an agent in all scenarios. If the first one fails, the others are left out.
///
/// `tenterhook` is the program `tenterhook`; the shim is next to it. `on_case` is called with the name of each case before it is tried.
pub async fn prove(
    agent: &InstalledAgent,
    tenterhook: &Path,
    on_case: &(dyn Fn(ProofCase) + Sync),
) -> HostProof {
    let mut proof = HostProof {
        host: agent.host.name,
        title: agent.host.title,
        program: agent.program.clone(),
        version: version(agent).await,
        measured_version: agent.host.measured_version,
        cases: Vec::new(),
    };
    let ends = Instant::now() + HOST_LIMIT;
    for scenario in SCENARIOS {
        scenario.cases.iter().for_each(|case| on_case(*case));
        let left = ends.saturating_duration_since(Instant::now());
        let tried = timeout(left, Box::pin(try_scenario(agent, tenterhook, scenario))).await;
        match tried {
            Ok(Ok(cases)) => proof.cases.extend(cases),
            Ok(Err(error)) => proof.cases.extend(failed(scenario, &error.to_string())),
            Err(_) => proof
                .cases
                .extend(failed(scenario, "the time for this host is over")),
        }
        let works = |proven: &ProvenCase| proven.case != ProofCase::Events || proof_holds(proven);
        if !proof.cases.iter().all(works) {
            break;
        }
    }
    proof
}

fn proof_holds(proven: &ProvenCase) -> bool {
    proven.result == ProofResult::Holds
}

fn failed(scenario: &Scenario, what: &str) -> Vec<ProvenCase> {
    let proven = |case: &ProofCase| ProvenCase {
        case: *case,
        result: ProofResult::fails(what),
        output: None,
    };
    scenario.cases.iter().map(proven).collect()
}

async fn try_scenario(
    agent: &InstalledAgent,
    tenterhook: &Path,
    scenario: &Scenario,
) -> Result<Vec<ProvenCase>, TrialError> {
    let write_hooks = |sandbox: &Sandbox| {
        let hooks = canary::hook_file(scenario.hooks, &sandbox.log());
        match scenario.owner {
            HookOwner::User => fs::write(sandbox.config().join("hooks.json"), hooks),
            HookOwner::Project => approved_project::write(sandbox, &hooks),
        }
    };
    let plan = TrialPlan {
        agent,
        tenterhook,
        script: scenario.script,
        write_hooks: &write_hooks,
        change: &|sandbox| sabotage(scenario.sabotage, agent.host, &sandbox.shim()),
    };
    let trial = plan.run().await?;
    if scenario.cases.contains(&ProofCase::Events) {
        wait_for_traces(&trial.sandbox.log()).await;
    }
    trial.sandbox.end_processes();
    let seen = observe(&trial);
    let proven = |case: &ProofCase| {
        let result = case.judge(agent.host, &seen);
        let fails = matches!(result, ProofResult::Fails { .. });
        ProvenCase {
            case: *case,
            result,
            output: fails.then(|| trial.outcome.output.clone()),
        }
    };
    Ok(scenario.cases.iter().map(proven).collect())
}

/// Breaks the shim.
fn sabotage(kind: Sabotage, host: &HostAgent, shim: &Path) -> io::Result<()> {
    match kind {
        Sabotage::None => Ok(()),
        Sabotage::DeleteShim => fs::remove_file(shim),
        Sabotage::KillShim => {
            let gates = host.events.iter();
            let gates = gates.filter(|event| event.role == EventRole::ToolGate);
            let gates: Vec<&str> = gates.map(|event| event.name).collect();
            // All other events pass, so that the agent comes to the tool call.
            let script = format!(
                "#!/bin/sh\ncase \"$2\" in {}) kill -9 $$ ;; esac\ncat > /dev/null\n",
                gates.join(" | ")
            );
            fs::remove_file(shim)?;
            replace(shim, &script)
        }
        Sabotage::CloseOutput => {
            // The shim looks for the program next to itself.
            fs::rename(shim, shim.with_extension("real"))?;
            replace(shim, "#!/bin/sh\nexec \"$0.real\" \"$@\" >&-\n")
        }
    }
}

fn replace(shim: &Path, script: &str) -> io::Result<()> {
    fs::write(shim, script)?;
    fs::set_permissions(shim, fs::Permissions::from_mode(0o755))
}

/// Waits until the hooks of [`canary::WATCH`] have left their files, or for [`LATE_HOOKS`].
async fn wait_for_traces(log: &Path) {
    let ends = Instant::now() + LATE_HOOKS;
    while traces(log).len() < canary::WATCH.len() && Instant::now() < ends {
        sleep(Duration::from_millis(50)).await;
    }
}

fn traces(log: &Path) -> Vec<String> {
    let entries = readable_entries(log);
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.collect()
}

fn observe(trial: &Trial) -> Observation {
    let Trial { sandbox, outcome } = trial;
    let shown = marks().into_iter().filter(|mark| outcome.was_shown(mark));
    Observation {
        traces: [traces(&sandbox.log()), traces(&sandbox.work())].concat(),
        turns: outcome.turns,
        shown: shown.collect(),
        is_timed_out: outcome.is_timed_out(),
        is_reason_printed: outcome.output.contains(canary::REASON),
        uninstall: fs::read_to_string(sandbox.work().join(canary::UNINSTALLED)).unwrap_or_default(),
        is_agent_known: is_agent_known(sandbox),
    }
}

/// Returns whether the daemon has listed a process that was above the agent's shell.
fn is_agent_known(sandbox: &Sandbox) -> bool {
    let read = |name: &str| fs::read_to_string(sandbox.work().join(name)).unwrap_or_default();
    let processes = read(canary::PROCESSES);
    let parents: BTreeMap<&str, &str> = processes.lines().filter_map(parent_of).collect();
    let shell = read(canary::SHELL_ID);
    let above = std::iter::successors(Some(shell.trim()), |id| parents.get(*id).copied());
    let above: Vec<&str> = above.take(MAX_ANCESTORS).collect();
    let lists = fs::read_dir(sandbox.daemon()).into_iter().flatten();
    let lists = lists.flatten().map(|entry| entry.path());
    let mut lists = lists.filter(|path| path.extension().is_some_and(|end| end == "hosts"));
    lists.any(|path| {
        let known = fs::read_to_string(path).unwrap_or_default();
        let mut ids = known.lines().filter_map(|line| line.split(' ').next());
        ids.any(|id| above.contains(&id))
    })
}

/// How many processes above a shell are looked at.
const MAX_ANCESTORS: usize = 100;

/// Reads a process and its parent from a line of `/proc/PID/stat`.
fn parent_of(line: &str) -> Option<(&str, &str)> {
    let (before, after) = line.rsplit_once(')')?;
    let id = before.split(' ').next()?;
    Some((id, after.split_whitespace().nth(1)?))
}

/// Asks the program for its version. The answer is the first word that begins with a digit.
async fn version(agent: &InstalledAgent) -> Option<String> {
    let sandbox = Sandbox::create().ok()?;
    let bin: Vec<PathBuf> = agent.bin.iter().cloned().collect();
    let argv = vec![agent.program.clone().into(), "--version".into()];
    let command = sandbox.command(argv, &sandbox.environment(&bin));
    let limits = Limits {
        timeout: Duration::from_secs(20),
        ..Limits::default()
    };
    let finished = command
        .run(&[], &limits, &CancellationToken::new())
        .await
        .ok()?;
    let text = finished.stdout.text().into_owned();
    let words = text.split(|char: char| char.is_whitespace() || char == 'v');
    let version = words.map(|word| word.trim_matches(|char: char| !char.is_ascii_alphanumeric()));
    version
        .filter(|word| word.starts_with(|char: char| char.is_ascii_digit()) && word.contains('.'))
        .map(str::to_owned)
        .next()
}
