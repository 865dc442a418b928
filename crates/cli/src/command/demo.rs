//! `tenterhook demo`: runs an embedded scripted session with real commands in a temporary folder.

mod conversation;

use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use tenterhook_agent::{AgentConfig, Permissions};
use tenterhook_discovery::{FolderSearch, HookFolder, LoadOptions, Loaded, load_text};
use tenterhook_engine::event::{SessionEndReason, SessionSource};
use tenterhook_engine::journal::{RunRecord, RunStatus};
use tenterhook_engine::{JournalSink, Layer, MemoryJournal};
use tenterhook_providers::Scripted;
use tenterhook_systems::native;

use clap::Parser;
use tenterhook_setup::error::CliError;
use tenterhook_setup::exit::Exit;
use tenterhook_setup::hooks;
use tenterhook_setup::journal::FanOutSink;
use tenterhook_terminal::interrupt::Interrupts;
use tenterhook_terminal::output::plural::count;
use tenterhook_terminal::output::table;
use tenterhook_terminal::output::{self, style, styled};
use tenterhook_terminal::timeline::{self, Timeline};
use tenterhook_terminal::{Terminal, Verbosity};

#[derive(Debug, Parser)]
#[command(override_usage = "tenterhook demo [OPTIONS]")]
pub(crate) struct DemoArgs {
    /// Use a hook in Python, a hook in TypeScript and a shell command. Needs `python3` and `node`.
    #[arg(long)]
    pub(crate) scripts: bool,

    /// Talk to a gateway over HTTP instead, with hooks that replace, reject and redact messages.
    #[arg(long, conflicts_with = "scripts")]
    pub(crate) gateway: bool,

    /// Print a single JSON object instead of a timeline.
    #[arg(long)]
    pub(crate) json: bool,
}

const HOOKS: &str = include_str!("demo/hooks.yaml");
const SESSION: &str = include_str!("demo/session.yaml");
/// With `--scripts`, this hook file and the scripts below replace [`HOOKS`].
const AUDIT: &str = include_str!("demo/audit.yaml");
const SCRIPTS: [(&str, &str); 2] = [
    ("guard.py", include_str!("demo/guard.py")),
    ("readable-ls.ts", include_str!("demo/readable-ls.ts")),
];
const PROMPT: &str = "Say hello, clean up, and show me what is here.";

pub(crate) async fn demo(args: DemoArgs, interrupts: &Interrupts) -> Result<Exit, CliError> {
    let folder = tempfile::tempdir().map_err(|error| {
        CliError::new(Exit::Failed, "cannot create a temporary folder")
            .cause(&error)
            .hint("set `TMPDIR` to a folder that you can write to")
    })?;
    if args.gateway {
        return conversation::run(folder.path(), args.json, interrupts).await;
    }
    prepare(folder.path())?;
    let runs = Arc::new(MemoryJournal::new());
    let loaded = load(folder.path(), args.scripts).await?;
    if !args.json {
        introduce(folder.path(), args.scripts);
    }
    session(folder.path(), &loaded, &runs, args.json, interrupts).await?;
    let survived = folder.path().join("precious/work.txt").is_file();
    let runs = timeline::runs(runs.take());
    if args.json {
        output::json(&json!({ "runs": runs, "precious_survived": survived }));
    } else if interrupts.is_interrupted() {
        output::note("The demo was interrupted.");
    } else {
        conclude(&runs, survived);
        suggest(args.scripts);
    }
    if interrupts.is_interrupted() {
        return Ok(Exit::Interrupted);
    }
    Ok(if survived { Exit::Done } else { Exit::Failed })
}

/// Writes a file into the folder that the hooks must protect.
fn prepare(folder: &Path) -> Result<(), CliError> {
    let precious = folder.join("precious");
    let written = std::fs::create_dir(&precious)
        .and_then(|()| std::fs::write(precious.join("work.txt"), "work\n"));
    written.map_err(|error| {
        CliError::new(Exit::Failed, "cannot write into the temporary folder").cause(&error)
    })
}

/// Loads the hooks of the demo.
async fn load(folder: &Path, has_scripts: bool) -> Result<Loaded, CliError> {
    let options = LoadOptions::of_process();
    let read = |name: &str, text| load_text(Path::new(name), text, Layer::Explicit, &options);
    if !has_scripts {
        return Ok(read("demo/hooks.yaml", HOOKS)?);
    }
    let mut loaded = read("demo/audit.yaml", AUDIT)?;
    let dir = folder.join(".tenterhook/hooks");
    std::fs::create_dir_all(&dir)
        .and_then(|()| {
            let mut scripts = SCRIPTS.iter();
            scripts.try_for_each(|(name, text)| std::fs::write(dir.join(name), text))
        })
        .map_err(|error| {
            CliError::new(Exit::Failed, "cannot write into the temporary folder").cause(&error)
        })?;
    let found = FolderSearch::of_folders([HookFolder {
        dir,
        prefix: String::new(),
        layer: Layer::Explicit,
        kind: &native::FOLDER,
        project: None,
        file: None,
    }])
    .directory(folder.to_owned())
    .discover()
    .await
    .map_err(|error| {
        let needs =
            "`--scripts` needs `python3` and `node`; leave the option out to use shell commands";
        CliError::from(error).hint(needs)
    })?;
    loaded.specs.extend(found.specs);
    Ok(loaded)
}

async fn session(
    folder: &Path,
    loaded: &Loaded,
    runs: &Arc<MemoryJournal>,
    quiet: bool,
    interrupts: &Interrupts,
) -> Result<(), CliError> {
    let script = Scripted::parse("demo/session.yaml", SESSION)
        .map_err(|error| CliError::of(Exit::Config, &error))?;
    let shown = if quiet {
        Verbosity::Silent
    } else {
        Verbosity::Full
    };
    let terminal = Arc::new(Terminal::new(shown, None, interrupts));
    let timeline = Timeline::new(Arc::clone(&terminal), &loaded.specs).decided_by(decided_by);
    let timeline: Arc<dyn JournalSink> = Arc::new(timeline);
    let sinks = vec![Arc::clone(runs) as Arc<dyn JournalSink>, timeline];
    let engine = hooks::engine(loaded, false, Some(Arc::new(FanOutSink { sinks })));
    let mut agent = AgentConfig {
        model: Some(Arc::new(script)),
        cwd: folder.into(),
        permissions: Permissions::new().yes(true),
        frontend: Arc::clone(&terminal) as _,
        ..AgentConfig::default()
    }
    .build(engine)
    .map_err(|error| CliError::of(Exit::Failed, &error))?;
    let cancel = interrupts.token();
    tokio::select! {
        biased;
        () = cancel.cancelled() => {}
        () = agent.start_session(SessionSource::Startup) => {
            agent.prompt(PROMPT, &cancel).await;
        }
    }
    terminal.end_open_line();
    agent.end_session(SessionEndReason::Quit).await;
    Ok(())
}

/// Returns the line of the hook that denied or changed a call, with its file.
fn decided_by(run: &RunRecord) -> Option<String> {
    let mark = match run.effect.as_str() {
        "deny" => run.reason.as_deref()?,
        "rewrite" => "ls -h",
        _ => return None,
    };
    let own = run
        .hook
        .as_str()
        .split_once(':')
        .map_or("hooks.yaml", |(file, _)| file);
    let mut files = SCRIPTS.into_iter().chain([("hooks.yaml", HOOKS)]);
    let (_, text) = files.find(|(file, _)| *file == own)?;
    let mut lines = text.lines().zip(1..);
    let (line, number) = lines.find(|(line, _)| line.contains(mark))?;
    Some(format!("{own}:{number}  {}", line.trim()))
}

fn introduce(folder: &Path, has_scripts: bool) {
    output::line(styled(
        style::STRONG,
        "A scripted model works in a temporary folder. The commands and hooks are real.",
    ));
    output::line(format_args!("folder  {}", folder.display()));
    let languages = if has_scripts {
        [" (Python)", " (TypeScript)", " (shell)"]
    } else {
        [""; 3]
    };
    let [guard, readable, audit] = languages;
    output::line(format_args!(
        "hooks   guard        before a tool runs: denies `rm -rf` and `sudo`{guard}"
    ));
    output::line(format_args!(
        "        readable-ls  before a tool runs: rewrites `ls` to `ls -h`{readable}"
    ));
    output::line(format_args!(
        "        audit        after a tool ran or was denied: logs the call{audit}"
    ));
    output::line(format_args!("prompt  {PROMPT}\n"));
    output::line(styled(
        style::QUIET,
        "Below each call: the hooks, what each decides, and the line that decides it.",
    ));
    output::line("");
}

fn conclude(runs: &[RunRecord], survived: bool) {
    let of = |effect: &str| runs.iter().filter(|run| run.effect == effect).count();
    let ran = runs
        .iter()
        .filter(|run| run.status != RunStatus::Skipped)
        .count();
    let audited = runs
        .iter()
        .filter(|run| run.event == "post_tool_use")
        .count();
    output::line("");
    output::line(format_args!(
        "{}: {}, {}, {}.\nThe folder `precious` {}.",
        styled(style::STRONG, count(ran, "hook run")),
        format_args!("{} denied", count(of("deny"), "call")),
        format_args!("{} rewritten", count(of("rewrite"), "call")),
        format_args!("{} audited", count(audited, "call")),
        if survived {
            styled(style::GOOD, "is still there")
        } else {
            styled(style::BAD, "is gone")
        },
    ));
}

/// Shows what to try after the demo.
fn suggest(has_scripts: bool) {
    let more = if has_scripts {
        ("demo --gateway", "hooks on the messages of a chat")
    } else {
        ("demo --scripts", "the same hooks in Python and TypeScript")
    };
    let next = [
        ("init", "write a guard for this folder, with its tests"),
        ("install", "guard the coding agents on this machine"),
        more,
    ];
    output::line(styled(style::STRONG, "\nTry next:"));
    let rows = next.map(|(command, about)| {
        vec![
            (format!("  tenterhook {command}"), style::NAME),
            table::plain(about),
        ]
    });
    for line in table::lines(&rows) {
        output::line(line);
    }
}
