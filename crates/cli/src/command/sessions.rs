//! Stored sessions: `tenterhook sessions`, and the choice of the session for `tenterhook run`.

pub(crate) mod args;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use tenterhook_agent::sessions::{SessionError, SessionListing, SessionOverview, StoredSession};
use tenterhook_agent::{AgentConfig, Session, SessionStore};
use tenterhook_engine::Engine;
use tenterhook_engine::event::SessionSource;

use crate::command::run::args::RunArgs;
use crate::command::sessions::args::{SessionsArgs, SessionsCommand};
use tenterhook_protocol::escape::{escape_line, escape_untrusted};
use tenterhook_setup::data_dir::data_dir;
use tenterhook_setup::error::CliError;
use tenterhook_setup::exit::Exit;
use tenterhook_setup::session_store::refusal;
use tenterhook_setup::session_store::warn_of;
use tenterhook_terminal::interrupt::Interrupts;
use tenterhook_terminal::output::plural::count;
use tenterhook_terminal::output::table::{self, Cell, plain};
use tenterhook_terminal::output::{self, style};
use tenterhook_terminal::session_tree;

/// Gives an agent the session of a run, and returns why the session starts.
pub(crate) async fn of_run(
    args: &RunArgs,
    mut config: AgentConfig,
    engine: &Engine,
    interrupts: &Interrupts,
    is_shown: bool,
) -> Result<(SessionSource, AgentConfig), CliError> {
    let resume = args.session.resume.as_deref();
    let is_unstored =
        args.session.no_session || (data_dir().is_none() && args.session.dir.dir.is_none());
    if resume.is_none() && is_unstored {
        return Ok((SessionSource::Startup, config));
    }
    config.sessions = Some(args.session.dir.stored(&args.agent.cwd)?);
    let config = resolved(args, config, engine, interrupts).await?;
    let (Some(resume), Some(sessions)) = (resume, &config.sessions) else {
        return Ok((SessionSource::Startup, config));
    };
    let opened = open(sessions, resume).map_err(|error| refusal(&error))?;
    warn_of(opened.unfinished_line.as_ref());
    if is_shown {
        output::note(format_args!(
            "Resumed session {} with {}.",
            opened.session.id(),
            count(opened.session.messages().len(), "message")
        ));
    }
    let config = AgentConfig {
        session: Some(opened.session),
        ..config
    };
    Ok((SessionSource::Resume, config))
}

/// Lets hooks choose where sessions are stored, unless the user does.
async fn resolved(
    args: &RunArgs,
    config: AgentConfig,
    engine: &Engine,
    interrupts: &Interrupts,
) -> Result<AgentConfig, CliError> {
    if args.session.dir.dir.is_some() {
        return Ok(config);
    }
    let resolving = config.resolve_sessions(engine);
    let token = interrupts.token();
    let resolved = token.run_until_cancelled(resolving).await;
    resolved.ok_or_else(|| CliError::new(Exit::Interrupted, "interrupted"))
}

/// Opens the session to resume. An empty `resume` means the newest session.
fn open(sessions: &SessionStore, resume: &str) -> Result<StoredSession, SessionError> {
    let newest = if resume.is_empty() {
        sessions.newest()?
    } else {
        None
    };
    let id = newest.map_or_else(|| sessions.find(resume), Ok)?;
    sessions.open(&id)
}

pub(crate) fn sessions(args: &SessionsArgs) -> Result<Exit, CliError> {
    let sessions = args.dir.stored(&args.cwd)?;
    let done = match &args.command {
        SessionsCommand::List => list(&sessions, args.json),
        SessionsCommand::Show { id } => show(&sessions, id, args.json),
        SessionsCommand::Export { id } => export(&sessions, id, args.json),
    };
    done.map(|()| Exit::Done).map_err(|error| refusal(&error))
}

fn list(sessions: &SessionStore, is_json: bool) -> Result<(), SessionError> {
    let listed = sessions.list()?;
    if is_json {
        let sessions: Vec<Value> = listed.iter().map(listed_json).collect();
        output::json(&json!({ "sessions": sessions }));
    } else if listed.is_empty() {
        output::line("No sessions.");
    } else {
        let rows: Vec<Vec<Cell>> = listed.iter().map(row).collect();
        table::lines(&rows).iter().for_each(output::line);
    }
    Ok(())
}

fn listed_json(listed: &SessionListing) -> Value {
    let overview = listed.overview.as_ref().ok();
    json!({
        "id": listed.id,
        "path": listed.path.to_string_lossy(),
        "changed": listed.changed,
        "created": overview.map(|overview| overview.created),
        "forked_from": overview.and_then(|overview| overview.forked_from.as_ref()),
        "name": overview.and_then(|overview| overview.name.as_ref()),
        "messages": overview.map(|overview| overview.messages),
        "begins": overview.and_then(|overview| overview.first_message.as_ref()),
        "problem": listed.overview.as_ref().err().map(ToString::to_string),
    })
}

fn row(listed: &SessionListing) -> Vec<Cell> {
    let (messages, text) = match &listed.overview {
        Ok(SessionOverview {
            messages,
            first_message,
            name,
            ..
        }) => {
            let text = match (name, first_message) {
                (Some(name), _) => (session_tree::beginning(name), style::STRONG),
                (None, text) => plain(session_tree::beginning(text.as_deref().unwrap_or_default())),
            };
            (count(*messages, "message"), text)
        }
        Err(problem) => (
            String::new(),
            (escape_line(&problem.to_string()), style::BAD),
        ),
    };
    vec![
        (escape_line(listed.id.as_str()), style::NAME),
        (listed.changed.map(shown).unwrap_or_default(), style::QUIET),
        plain(messages),
        text,
    ]
}

fn shown(time: Timestamp) -> String {
    let time = time.to_zoned(TimeZone::system());
    time.strftime("%Y-%m-%d %H:%M:%S").to_string()
}

fn show(sessions: &SessionStore, id: &str, is_json: bool) -> Result<(), SessionError> {
    let opened = sessions.read(&sessions.find(id)?)?;
    if is_json {
        output::json(&whole(&opened));
    } else {
        session_tree::lines(&opened.session)
            .iter()
            .for_each(output::line);
    }
    Ok(())
}

fn export(sessions: &SessionStore, id: &str, is_json: bool) -> Result<(), SessionError> {
    let opened = sessions.read(&sessions.find(id)?)?;
    if is_json {
        output::json(&whole(&opened));
    } else {
        markdown(&opened.session).iter().for_each(output::line);
    }
    Ok(())
}

fn whole(opened: &StoredSession) -> Value {
    let session = &opened.session;
    json!({
        "id": session.id(),
        "cwd": opened.cwd.to_string_lossy(),
        "created": opened.created,
        "forked_from": session.forked_from(),
        "name": session.name(),
        "leaf": session.leaf(),
        "labels": session.labels(),
        "entries": session.tree(),
    })
}

/// Returns the messages of the branch as Markdown lines.
fn markdown(session: &Session) -> Vec<String> {
    let mut lines = vec![format!("# Session {}", escape_line(session.id().as_str()))];
    let entries = session.entries().iter();
    for entry in entries.filter(|entry| !session_tree::is_hidden(entry)) {
        let summary = || entry.data.as_ref()?.get("summary")?.as_str();
        let message = entry.message.as_ref();
        let text = message.map(|message| message.content.as_str());
        let text = text.or_else(summary).unwrap_or_default().trim();
        let calls = message.into_iter().flat_map(|message| &message.tool_calls);
        let calls: Vec<String> = calls
            .map(|call| format!("- calls `{}` {}", escape_line(&call.name), call.arguments))
            .collect();
        if text.is_empty() && calls.is_empty() {
            continue;
        }
        lines.extend([
            String::new(),
            format!("## {}", session_tree::kind_of(entry)),
        ]);
        if !text.is_empty() {
            lines.extend([String::new(), escape_untrusted(text)]);
        }
        if !calls.is_empty() {
            lines.push(String::new());
            lines.extend(calls);
        }
    }
    lines
}
