//! `tenterhook doctor`: the coding agents on this machine, and a proof that they follow hooks.

use std::path::PathBuf;

use crate::passphrase::Passphrase;
use clap::Parser;
use serde_json::{Value, json};
use tenterhook_install::proof::case::{ProofCase, ProofResult};
use tenterhook_install::proof::installed_agent::{AgentSearch, InstalledAgent};
use tenterhook_install::proof::prove::{HostProof, ProvenCase, prove};
use tenterhook_install::proof::row_check::RowResult;
use tenterhook_protocol::escape::{escape_line, escape_untrusted};
use tenterhook_setup::blocking::run_blocking;
use tenterhook_setup::error::CliError;
use tenterhook_setup::exit::Exit;
use tenterhook_setup::proven_versions::ProvenVersions;
use tenterhook_systems::HOSTS;
use tenterhook_systems::host::HostAgent;
use tenterhook_terminal::interrupt::Interrupts;
use tenterhook_terminal::output::plural::count;
use tenterhook_terminal::output::progress::ProgressLine;
use tenterhook_terminal::output::{self, style, styled};

use crate::command::install::shim_note;
use crate::command::status::GuardReport;

/// How many lines of an agent's output are shown with a failure.
const OUTPUT_LINES: usize = 6;

#[derive(Debug, Parser)]
pub(crate) struct DoctorArgs {
    /// The agents, for example `claude-code`. Without any, all agents on this machine.
    #[arg(value_name = "HOST")]
    hosts: Vec<String>,

    /// Run each agent several times without a person, and show that hooks can stop it. The agent works in an empty
    /// temporary home folder, and a scripted model on this machine answers it. Takes about a minute per agent.
    #[arg(long)]
    prove: bool,

    /// Also look for agents in `FOLDER/bin`, before `PATH`.
    #[arg(long, value_name = "FOLDER", env = "TENTERHOOK_HOSTS")]
    folder: Option<PathBuf>,

    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

pub(crate) async fn doctor(args: DoctorArgs, interrupts: &Interrupts) -> Result<Exit, CliError> {
    let has_passphrase = Passphrase::find()?.is_some();
    let agents = find_agents(&args).inspect_err(|_| {
        if !args.json {
            show_protection(has_passphrase);
        }
    })?;
    if !args.prove {
        let is_meant = |host: &HostAgent| {
            args.hosts.is_empty() || agents.iter().any(|agent| agent.host.name == host.name)
        };
        let report = GuardReport::collect(is_meant, interrupts).await?;
        list(&args, &agents, &report, has_passphrase);
        return Ok(report.exit());
    }
    let program = std::env::current_exe().map_err(|error| {
        CliError::new(Exit::Failed, "cannot find the program of Tenterhook").cause(&error)
    })?;
    let token = interrupts.token();
    let mut proofs = Vec::new();
    for agent in &agents {
        let title = agent.host.title;
        let progress = ProgressLine::start(format!("running {title}"));
        let on_case = |case: ProofCase| {
            progress.set_text(format!("running {title}: {}", case.title()));
        };
        let proven = prove(agent, &program, &on_case);
        let proof = token.run_until_cancelled(Box::pin(proven)).await;
        drop(progress);
        let proof = proof.ok_or_else(|| CliError::new(Exit::Interrupted, "interrupted"))?;
        if !args.json {
            show(&proof);
        }
        note_version(&proof, interrupts).await?;
        proofs.push(proof);
    }
    let is_proven = proofs.iter().all(HostProof::is_proven);
    if args.json {
        let hosts: Vec<Value> = proofs.iter().map(proof_json).collect();
        output::json(&json!({ "ok": is_proven, "hosts": hosts }));
    }
    Ok(if is_proven { Exit::Done } else { Exit::Failed })
}

/// Remembers that a version follows hooks, so that `status` does not report it as untested.
async fn note_version(proof: &HostProof, interrupts: &Interrupts) -> Result<(), CliError> {
    let (host, version) = (proof.host, proof.version.clone());
    let Some(version) = version.filter(|_| proof.is_proven()) else {
        return Ok(());
    };
    run_blocking(&interrupts.token(), move || {
        ProvenVersions::read().add(host, &version)
    })
    .await
}

/// Returns the agents that the command line names, or all on this machine.
fn find_agents(args: &DoctorArgs) -> Result<Vec<InstalledAgent>, CliError> {
    let search = AgentSearch::new(args.folder.clone());
    if args.hosts.is_empty() {
        let found = search.find_all();
        if found.is_empty() {
            let titles: Vec<&str> = HOSTS.iter().map(|host| host.title).collect();
            let message = "found no coding agent on this machine";
            let hint = format!("install one of {}", titles.join(", "));
            return Err(CliError::new(Exit::Failed, message).hint(hint));
        }
        return Ok(found);
    }
    let find = |name: &String| {
        let Some(host) = HostAgent::by_name(name) else {
            let names: Vec<&str> = HOSTS.iter().map(|host| host.name).collect();
            let message = format!("unknown agent `{}`", escape_line(name));
            let hint = format!("available: {}", names.join(", "));
            return Err(CliError::new(Exit::Usage, message).hint(hint));
        };
        search.find(host).ok_or_else(|| {
            let programs = host.programs.join("`, `");
            let message = format!("{} is not on this machine", host.title);
            CliError::new(Exit::Failed, message)
                .hint(format!("add the folder of `{programs}` to `PATH`"))
        })
    };
    args.hosts.iter().map(find).collect()
}

/// Shows what keeps agents from the commands that only the user may give.
fn show_protection(has_passphrase: bool) {
    output::line(if has_passphrase {
        "your commands: `trust`, `disable`, `uninstall` and others ask for your passphrase\n"
    } else {
        "your commands: `trust`, `disable`, `uninstall` and others refuse programs that an agent started, but not a \
         program that detaches itself and creates its own terminal; `tenterhook protect` sets a passphrase\n"
    });
}

fn list(args: &DoctorArgs, agents: &[InstalledAgent], report: &GuardReport, has_passphrase: bool) {
    if args.json {
        let hosts: Vec<Value> = agents
            .iter()
            .map(|agent| {
                json!({
                    "host": agent.host.name,
                    "title": agent.host.title,
                    "program": agent.program.display().to_string(),
                    "measured_version": agent.host.measured_version,
                })
            })
            .collect();
        output::json(&json!({
            "ok": report.problems.is_empty(),
            "problems": report.problems,
            "hosts": hosts,
            "has_passphrase": has_passphrase,
        }));
        return;
    }
    report.show_verdict();
    output::line("");
    if let Some(note) = report.used_machine().and_then(shim_note) {
        output::line(format!("{note}\n"));
    }
    show_protection(has_passphrase);
    for agent in agents {
        let path = agent.program.display().to_string();
        let name = agent.host.name;
        output::line(format_args!("{name:<12} {}", escape_line(&path)));
    }
    output::line(
        "\n`tenterhook status` shows where Tenterhook is installed. `tenterhook doctor --prove` shows that the agents \
         follow hooks.",
    );
}

fn show(proof: &HostProof) {
    let version = proof.version.as_deref().unwrap_or("of unknown version");
    let measured = if proof.version.as_deref() == Some(proof.measured_version) {
        String::new()
    } else {
        format!(" (measured with {})", proof.measured_version)
    };
    output::line(format_args!(
        "{} {}{measured}",
        proof.title,
        escape_line(version)
    ));
    proof.cases.iter().for_each(show_case);
    let rows = proof.checked_rows();
    let number = |result| rows.iter().filter(|row| row.result == result).count();
    let differing = number(RowResult::Differs);
    let verified = count(number(RowResult::Verified), "row");
    let unused = number(RowResult::NotUsed);
    output::line(format_args!(
        "  {verified} of the capability table verified, {differing} differ, {unused} not used\n"
    ));
}

fn show_case(proven: &ProvenCase) {
    let (word, look, detail) = match &proven.result {
        ProofResult::Holds => ("holds ", style::GOOD, None),
        ProofResult::HostCannot { why } => ("cannot", style::CARE, Some(why)),
        ProofResult::Fails { what } => ("FAILS ", style::BAD, Some(what)),
    };
    let detail = detail.map(|text| format!(": {}", escape_line(text)));
    output::line(format_args!(
        "  {}  {}{}",
        styled(look, word),
        proven.case.title(),
        detail.unwrap_or_default()
    ));
    let text = proven.output.as_deref().map(escape_untrusted);
    let lines: Vec<&str> = text.iter().flat_map(|text| text.lines()).collect();
    let first = lines.len().saturating_sub(OUTPUT_LINES);
    for line in lines.iter().skip(first) {
        output::line(format_args!("          | {line}"));
    }
}

fn proof_json(proof: &HostProof) -> Value {
    let mut value = serde_json::to_value(proof).unwrap_or_default();
    if let Value::Object(fields) = &mut value {
        fields.insert("ok".to_owned(), proof.is_proven().into());
        fields.insert("rows".to_owned(), json!(proof.checked_rows()));
    }
    value
}
