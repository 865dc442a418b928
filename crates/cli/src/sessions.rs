//! Stored sessions: `tenterhook sessions`, and which of them `tenterhook run` leads.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use tenterhook::event::SessionSource;
use tenterhook_agent::session::{About, Listed, Opened, SessionError, Torn};
use tenterhook_agent::{AgentBuilder, Session, Sessions};

use crate::args::{RunArgs, SessionsArgs, SessionsCommand};
use crate::check::count;
use crate::data_dir::data_dir;
use crate::error::CliError;
use crate::exit::Exit;
use crate::hooks::warn;
use crate::output::{self, style};
use crate::safe::{safe, safe_line};
use crate::table::{self, Cell, plain};
use crate::tree;

/// Where the session of a run comes from, and where it goes.
pub(crate) struct Stored {
    sessions: Option<Sessions>,
    opened: Option<Opened>,
}

/// Finds the session that a run leads.
pub(crate) fn of_run(args: &RunArgs) -> Result<Stored, CliError> {
    let Some(resume) = &args.session.resume else {
        let data = data_dir().filter(|_| !args.session.no_session);
        let cwd = absolute(&args.cwd)?;
        return Ok(Stored {
            sessions: data.map(|data| Sessions::of_project(&data, &cwd)),
            opened: None,
        });
    };
    let sessions = stored(&args.cwd)?;
    let newest = if resume.is_empty() {
        sessions.newest().map_err(|error| refusal(&error))?
    } else {
        None
    };
    let id = newest.map_or_else(|| sessions.find(resume), Ok);
    let opened = id.and_then(|id| sessions.open(&id));
    Ok(Stored {
        opened: Some(opened.map_err(|error| refusal(&error))?),
        sessions: Some(sessions),
    })
}

impl Stored {
    /// Returns the name of the model that the session was led with, where the user chose it.
    pub(crate) fn model(&self) -> Option<String> {
        self.opened.as_ref()?.session.model()
    }

    /// Gives the session to an agent; says why it starts.
    pub(crate) fn give(
        self,
        mut builder: AgentBuilder,
        is_json: bool,
    ) -> (SessionSource, AgentBuilder) {
        if let Some(sessions) = self.sessions {
            builder = builder.sessions(sessions);
        }
        let Some(opened) = self.opened else {
            return (SessionSource::Startup, builder);
        };
        warn_of(opened.torn.as_ref());
        if !is_json {
            output::note(format_args!(
                "Session {} goes on after {}.",
                opened.session.id(),
                count(opened.session.messages().len(), "message")
            ));
        }
        (SessionSource::Resume, builder.session(opened.session))
    }
}

/// Says what of a session was lost.
pub(crate) fn warn_of(torn: Option<&Torn>) {
    if let Some(torn) = torn {
        warn(format_args!(
            "line {} of the session's file was not written to its end; the {} of it are cut off",
            torn.line,
            count(torn.bytes, "byte")
        ));
    }
}

/// Returns a folder by its absolute path.
pub(crate) fn absolute(folder: &Path) -> Result<PathBuf, CliError> {
    std::path::absolute(folder).map_err(|error| {
        CliError::new(Exit::Failed, "cannot find the working directory").cause(&error)
    })
}

fn stored(cwd: &Path) -> Result<Sessions, CliError> {
    let data = data_dir().ok_or_else(|| {
        CliError::new(Exit::Failed, "there is no home folder to keep sessions in")
            .hint("name a folder with the variable `TENTERHOOK_DATA_DIR`")
    })?;
    Ok(Sessions::of_project(&data, &absolute(cwd)?))
}

/// Returns the status of a session that cannot be used.
pub(crate) fn exit_of(error: &SessionError) -> Exit {
    match error {
        SessionError::Unknown { .. } | SessionError::Ambiguous { .. } => Exit::Usage,
        SessionError::File { .. }
        | SessionError::InUse { .. }
        | SessionError::Header { .. }
        | SessionError::Line { .. }
        | SessionError::TooLarge { .. }
        | _ => Exit::Failed,
    }
}

fn refusal(error: &SessionError) -> CliError {
    let message = CliError::of(exit_of(error), error);
    match error {
        SessionError::Unknown { id, .. } if id.is_empty() => {
            CliError::new(Exit::Usage, "no session of this folder is stored")
                .hint("leave `--resume` out to begin one, or name another folder with `--cwd DIR`")
        }
        SessionError::Unknown { .. } | SessionError::Ambiguous { .. } => message
            .hint("`tenterhook sessions list` shows those that there are; a prompt stands before `--resume`"),
        SessionError::InUse { .. } => {
            message.hint("end the other process, or leave `--resume` out to begin a new session")
        }
        SessionError::Line { .. } => {
            message.hint("put a copy of the file back, or cut it off before that line")
        }
        SessionError::File { .. }
        | SessionError::Header { .. }
        | SessionError::TooLarge { .. }
        | _ => message,
    }
}

pub(crate) fn sessions(args: &SessionsArgs) -> Result<Exit, CliError> {
    let sessions = stored(&args.cwd)?;
    let done = match &args.command {
        SessionsCommand::List => list(&sessions, args.json),
        SessionsCommand::Show { id } => show(&sessions, id, args.json),
        SessionsCommand::Export { id } => export(&sessions, id, args.json),
    };
    done.map(|()| Exit::Done).map_err(|error| refusal(&error))
}

fn list(sessions: &Sessions, is_json: bool) -> Result<(), SessionError> {
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

fn listed_json(listed: &Listed) -> Value {
    let about = listed.about.as_ref().ok();
    json!({
        "id": listed.id,
        "path": listed.path.to_string_lossy(),
        "changed": listed.changed,
        "created": about.map(|about| about.created),
        "forked_from": about.and_then(|about| about.forked_from.as_ref()),
        "messages": about.map(|about| about.messages),
        "begins": about.and_then(|about| about.begins.as_ref()),
        "problem": listed.about.as_ref().err().map(ToString::to_string),
    })
}

fn row(listed: &Listed) -> Vec<Cell> {
    let (messages, text) = match &listed.about {
        Ok(About {
            messages, begins, ..
        }) => {
            let begins = begins.as_deref().unwrap_or_default();
            let text = plain(tree::beginning(begins));
            (count(*messages, "message"), text)
        }
        Err(problem) => (String::new(), (safe_line(&problem.to_string()), style::BAD)),
    };
    vec![
        (safe_line(listed.id.as_str()), style::NAME),
        (listed.changed.map(shown).unwrap_or_default(), style::QUIET),
        plain(messages),
        text,
    ]
}

fn shown(time: Timestamp) -> String {
    let time = time.to_zoned(TimeZone::system());
    time.strftime("%Y-%m-%d %H:%M:%S").to_string()
}

fn show(sessions: &Sessions, id: &str, is_json: bool) -> Result<(), SessionError> {
    let opened = sessions.read(&sessions.find(id)?)?;
    if is_json {
        output::json(&whole(&opened));
    } else {
        tree::lines(&opened.session).iter().for_each(output::line);
    }
    Ok(())
}

fn export(sessions: &Sessions, id: &str, is_json: bool) -> Result<(), SessionError> {
    let opened = sessions.read(&sessions.find(id)?)?;
    if is_json {
        output::json(&whole(&opened));
    } else {
        markdown(&opened.session).iter().for_each(output::line);
    }
    Ok(())
}

fn whole(opened: &Opened) -> Value {
    let session = &opened.session;
    json!({
        "id": session.id(),
        "cwd": opened.cwd.to_string_lossy(),
        "created": opened.created,
        "forked_from": session.forked_from(),
        "leaf": session.leaf(),
        "labels": session.labels(),
        "entries": session.tree(),
    })
}

/// Writes what was said on the branch.
fn markdown(session: &Session) -> Vec<String> {
    let mut lines = vec![format!("# Session {}", safe_line(session.id().as_str()))];
    for entry in session.entries() {
        let summary = || entry.data.as_ref()?.get("summary")?.as_str();
        let message = entry.message.as_ref();
        let text = message.map(|message| message.content.as_str());
        let text = text.or_else(summary).unwrap_or_default().trim();
        let calls = message.into_iter().flat_map(|message| &message.tool_calls);
        let calls: Vec<String> = calls
            .map(|call| format!("- calls `{}` {}", safe_line(&call.name), call.arguments))
            .collect();
        if text.is_empty() && calls.is_empty() {
            continue;
        }
        lines.extend([String::new(), format!("## {}", tree::kind_of(entry))]);
        if !text.is_empty() {
            lines.extend([String::new(), safe(text)]);
        }
        if !calls.is_empty() {
            lines.push(String::new());
            lines.extend(calls);
        }
    }
    lines
}
