//! `tenterhook test`: the test cases of hooks.
//!
//! Every case runs in its own process: this program with a hidden option. So cases share no module state, each case
//! has its own environment variables, and a hook that hangs or crashes affects only its own case.

use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Parser;
use futures_util::StreamExt as _;
use tenterhook_cases::{CaseCall, CaseReply, CaseRunError, SelectedCases, SelectionError, run_all};

use crate::ancestry;
use crate::working_dir::current_dir;
use tenterhook_protocol::escape::escape_line;
use tenterhook_setup::blocking::run_blocking;
use tenterhook_setup::config_dir;
use tenterhook_setup::error::CliError;
use tenterhook_setup::exit::Exit;
use tenterhook_setup::extensions::PrintingHost;
use tenterhook_setup::hook_options::PlaceOptions;
use tenterhook_setup::hooks;
use tenterhook_setup::warning::warn;
use tenterhook_terminal::interrupt::Interrupts;
use tenterhook_terminal::output;
use tenterhook_terminal::test_report::{TestReport, TestSummary};

#[derive(Debug, Parser)]
#[command(override_usage = "tenterhook test [OPTIONS] [FILE]...")]
pub(crate) struct TestArgs {
    /// Test files, hooks whose test file is next to them, or folders with test files. The default is every test file of
    /// the project and of your configuration folder.
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Run only the cases whose name contains TEXT.
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,

    /// How many cases run at once. The default is the number of processors.
    #[arg(long, value_name = "N", value_parser = jobs)]
    jobs: Option<NonZeroUsize>,

    /// Print one JSON object.
    #[arg(long)]
    json: bool,

    /// Run the one case that is on standard input, and print the result as JSON.
    #[arg(long, hide = true, conflicts_with_all = ["files", "filter", "jobs", "json"])]
    serve_case: bool,
}

pub(crate) async fn test(args: TestArgs, interrupts: &Interrupts) -> Result<Exit, CliError> {
    if args.serve_case {
        return serve_case(interrupts).await;
    }
    let start = current_dir()?;
    let user = config_dir::user(None)?;
    let (user, filter) = (user.as_deref(), args.filter.as_deref());
    let selected = SelectedCases::select(&args.files, filter, &start, user).map_err(refusal)?;
    if args.files.is_empty() || selected.iter().any(SelectedCases::has_project_hooks) {
        // No approval is needed, so an agent could run hooks that the user did not approve.
        ancestry::require_user("test the hooks of a project")?;
        // The user's own hooks need no approval in any case.
        let is_own = |cases: &SelectedCases| {
            user.is_some_and(|folder| start.join(&cases.path).starts_with(folder))
        };
        if !selected.iter().all(is_own) {
            output::note(
                "note: hooks run as they are in the work tree, whether they are approved or not",
            );
        }
    }
    for warning in selected.iter().flat_map(SelectedCases::warnings) {
        warn(escape_line(&warning));
    }
    let program = std::env::current_exe()
        .map_err(|error| CliError::new(Exit::Failed, "cannot find this program").cause(&error))?;
    let words = [&*program, Path::new("test"), Path::new("--serve-case")];
    let token = interrupts.token();
    let mut finished = run_all(&selected, &words, args.jobs, &token);
    let mut report = TestReport::new(&selected, args.json);
    while let Some(next) = finished.next().await {
        let (file, case, ran) = next.map_err(|error| {
            let is_cancelled = matches!(error, CaseRunError::Cancelled);
            let exit = if is_cancelled {
                Exit::Interrupted
            } else {
                Exit::Failed
            };
            CliError::of(exit, &error)
        })?;
        report.add(file, case, &ran);
    }
    let summary = report.finish();
    Ok(match summary {
        TestSummary { failed: 0, .. } => Exit::Done,
        TestSummary { has_broken, .. } if has_broken => Exit::Config,
        TestSummary { .. } => Exit::Failed,
    })
}

/// Reads the value of `--jobs`.
fn jobs(text: &str) -> Result<NonZeroUsize, &'static str> {
    let expected =
        "expected a whole number from 1 on; without `--jobs`, one case runs on each processor";
    text.parse().map_err(|_| expected)
}

/// Explains why no cases run.
fn refusal(error: SelectionError) -> CliError {
    let hint = error.hint();
    let exit = if error.is_of_file() {
        Exit::Config
    } else {
        Exit::Usage
    };
    if let SelectionError::Invalid(problems) = error {
        return CliError::from(problems);
    }
    CliError {
        hint,
        ..CliError::of(exit, &error)
    }
}

/// Runs the case that is on standard input, and prints the result.
async fn serve_case(interrupts: &Interrupts) -> Result<Exit, CliError> {
    let read = || {
        serde_json::from_reader::<_, CaseCall>(io::stdin())
            .map_err(|error| CliError::new(Exit::Failed, "cannot read the case").cause(&error))
    };
    let call = run_blocking(&interrupts.token(), read).await?;
    let (services, _) = hooks::services(None)?;
    let mut sources = call.sources(hooks::load_options(true, services));
    let search = config_dir::select(sources.search, &PlaceOptions::default())?;
    sources.search = search.host(Arc::new(PrintingHost::default()));
    let token = interrupts.token();
    let ran = token.run_until_cancelled(Box::pin(call.run(sources))).await;
    let ran = ran.ok_or_else(|| CliError::new(Exit::Interrupted, "interrupted"))?;
    output::json(&match ran {
        Ok(result) => CaseReply::Result(Box::new(result)),
        Err(error) => CaseReply::Broken(error.render(false)),
    });
    Ok(Exit::Done)
}
