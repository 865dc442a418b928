//! Creates checkpoints of the files that an agent changes.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::LazyLock;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tenterhook_engine::{Call, HandlerError};
use tenterhook_protocol::event::{PostToolUse, PreToolUse};
use tenterhook_protocol::{AnyEffect, EventKind};

use super::row::{Builtin, EventRunner, directory, takes_none};
use crate::snapshot::{Kind, Note, Shadow, SnapshotError, State};

pub(super) const BUILTIN: Builtin = Builtin {
    name: "snapshot",
    events: &[
        EventKind::SessionStart,
        EventKind::TurnStart,
        EventKind::TurnEnd,
        EventKind::PreToolUse,
        EventKind::PostToolUse,
        EventKind::SessionEnd,
    ],
    arguments: "none",
    make: |setup| {
        takes_none(setup.arguments)?;
        let dir = setup.services.data_dir.clone();
        Ok(Box::new(Snapshot {
            data_dir: dir.ok_or("this program has no data folder")?,
        }))
    },
};

/// The files before each turn or call that has not ended. Different hooks see its start and its end.
static BEGUN: LazyLock<Mutex<HashMap<Begun, State>>> = LazyLock::new(Mutex::default);

/// A turn or a tool call that has started: its work tree, its session, and the call's id, which is empty for a turn.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Begun {
    work_tree: PathBuf,
    session: String,
    call: String,
}

/// The maximum number of turns and calls that may be in progress at once. Any others get no
/// checkpoint.
const MAX_BEGUN: usize = 1_024;

struct Snapshot {
    data_dir: PathBuf,
}

impl Snapshot {
    async fn look(&self, call: &Call) -> Result<(), SnapshotError> {
        let Some(dir) = directory(&call.event) else {
            return Ok(());
        };
        let opened = Shadow::open(&self.data_dir, dir, call.timeout, call.cancel.clone()).await;
        let shadow = match opened {
            // There is nothing to compare with outside a work tree, and a home folder is too much to keep.
            Err(SnapshotError::NoWorkTree { .. }) => return Ok(()),
            opened => opened?,
        };
        let session = call.event.envelope().origin.session_id.to_string();
        let tool = |id: &str| Begun {
            work_tree: shadow.work_tree().to_owned(),
            session: session.clone(),
            call: id.to_owned(),
        };
        let turn = tool("");
        if let Some(event) = call.event.downcast::<PreToolUse>() {
            return self.begin(&shadow, tool(event.tool_use_id.as_str())).await;
        }
        if let Some(event) = call.event.downcast::<PostToolUse>() {
            let note = Note {
                kind: Kind::Tool,
                label: Some(event.tool_name.clone()),
                session: Some(session.clone()),
                ..Note::default()
            };
            return self
                .end(&shadow, &tool(event.tool_use_id.as_str()), note)
                .await;
        }
        let kind = call.event.info().kind;
        if kind == EventKind::TurnStart {
            self.begin(&shadow, turn).await
        } else if kind == EventKind::TurnEnd {
            let note = Note {
                session: Some(session.clone()),
                ..Note::default()
            };
            self.end(&shadow, &turn, note).await
        } else if kind == EventKind::SessionEnd {
            forget(&session);
            shadow.tidy().await
        } else {
            Ok(())
        }
    }

    async fn begin(&self, shadow: &Shadow, key: Begun) -> Result<(), SnapshotError> {
        let state = shadow.take().await?;
        let mut begun = BEGUN.lock();
        if begun.len() < MAX_BEGUN {
            begun.insert(key, state);
        }
        Ok(())
    }

    async fn end(&self, shadow: &Shadow, key: &Begun, note: Note) -> Result<(), SnapshotError> {
        let before = {
            let mut begun = BEGUN.lock();
            begun.remove(key)
        };
        if let Some(before) = before {
            let after = shadow.take().await?;
            shadow.keep(&before, &after, note).await?;
        }
        Ok(())
    }
}

fn forget(session: &str) {
    let mut begun = BEGUN.lock();
    begun.retain(|began, _| began.session != session);
}

impl EventRunner for Snapshot {
    fn run<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<AnyEffect, HandlerError>> {
        Box::pin(async move {
            let looked = self.look(call).await;
            looked.map_err(|error| HandlerError::Other {
                problem: error.to_string(),
            })?;
            Ok(AnyEffect::default())
        })
    }
}
