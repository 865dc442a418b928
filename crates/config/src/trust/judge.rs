//! Whether a hook of a project's file may run, and from where it runs.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use tenterhook::{
    Answer, Call, EventClass, EventName, Handler, HandlerError, Handling, HookSpec, OnError, Policy,
};

use super::words::shown;
use super::{Approvals, Item, NamedFiles, Rebased, TrustState, words::Ground};
use crate::draft::{Action, Context, Draft};
use crate::project::Project;
use crate::report::Report;

/// Something that a repository brings, and whether it may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Brought {
    /// What it is. The bytes of its files are there only while it is not trusted.
    pub item: Item,
    /// Whether it may run.
    pub state: TrustState,
    /// The events that it is for; empty is an executable that was not asked, since that would run it.
    pub events: Vec<EventName>,
}

impl Brought {
    pub(crate) fn new(item: Item, state: TrustState, events: Vec<EventName>) -> Self {
        let mut item = item;
        if state == TrustState::Trusted {
            for file in &mut item.files {
                file.bytes = Arc::from(&b""[..]);
            }
        }
        Self {
            item,
            state,
            events,
        }
    }

    /// Says whether it could stop something if it ran.
    pub fn is_gate(&self) -> bool {
        let is_gate = |event: &EventName| event.info().class == EventClass::Gate;
        self.events.is_empty() || self.events.iter().any(is_gate)
    }

    /// Returns why it does not run, for people.
    pub(crate) fn reason(&self) -> String {
        let found = match self.state {
            TrustState::Changed => "was changed since it was approved",
            TrustState::Untrusted | TrustState::Trusted => "is not trusted in this project",
        };
        format!("the hook {found}; look at it with `tenterhook trust --show`")
    }
}

/// Judges a hook of a file. A trusted one is made to run the approved copies; `None` is a hook that cannot be judged,
/// which the report says.
pub(crate) fn judge(
    report: &mut Report,
    context: &Context<'_>,
    approvals: &Approvals,
    draft: &mut Draft,
) -> Option<Brought> {
    let project = Project::of_file(report.source().path());
    let working_dir = draft.working_dir.as_ref();
    let expanded = working_dir.map(|(dir, _)| context.options.environment.expand_path(dir));
    let dir = project.dir.join(expanded.unwrap_or_default());
    let ground = Ground {
        dir: &dir,
        project: &project.dir,
        root: &project.root,
    };
    let mut files = NamedFiles::of(&draft.action, &draft.env, ground);
    let read = match files.read(ground) {
        Ok(read) => read,
        Err(problem) => {
            let span = draft.action_span;
            report.add(report.problem(span, problem));
            return None;
        }
    };
    let source = std::fs::canonicalize(report.source().path());
    let source = source.unwrap_or_else(|_| report.source().path().to_owned());
    let item = Item {
        source: shown(&source, &project.dir),
        name: draft
            .events
            .first()
            .map(|event| event.id.clone())
            .unwrap_or_default(),
        definition: definition(draft),
        files: read,
        unread: std::mem::take(&mut files.unread),
        project: project.dir.clone(),
    };
    let state = approvals.state(&item);
    if state == TrustState::Trusted {
        let copies = match approvals.keep_copies(&item) {
            Ok(copies) => copies,
            Err(error) => {
                let problem = report.problem(draft.span, tenterhook::error_chain(&error));
                report
                    .add(problem.hint("the approved copies of its files must be there to run it"));
                return None;
            }
        };
        let rebased = Rebased {
            ground,
            copies: &copies,
        };
        draft.shown = draft.action.text();
        rebased.apply(&files, &mut draft.action, &mut draft.env);
        draft.reread_python();
    }
    let events = draft.events.iter().map(|event| event.name.clone());
    Some(Brought::new(item, state, events.collect()))
}

/// Returns the hooks that deny in the place of one that does not run.
pub(crate) fn denials(specs: Vec<HookSpec>, brought: &Brought) -> Vec<HookSpec> {
    let is_gate = |spec: &HookSpec| {
        let class = spec.event.as_ref().map(|event| event.info().class);
        class == Some(EventClass::Gate)
    };
    let denials = specs.into_iter().filter(is_gate).map(|spec| HookSpec {
        handling: Handling::Waiting(Arc::new(Withheld {
            reason: brought.reason(),
        })),
        policy: DENIES,
        ..spec
    });
    denials.collect()
}

/// The policy of what stands for an untrusted gate.
pub(crate) const DENIES: Policy = Policy::new(OnError::Block, "an untrusted gate denies");

/// Stands for a hook that does not run, and fails in its place.
#[derive(Debug)]
pub(crate) struct Withheld {
    pub(crate) reason: String,
}

impl Handler for Withheld {
    fn kind(&self) -> &'static str {
        "withheld"
    }

    fn describe(&self) -> String {
        "untrusted".to_owned()
    }

    fn handle<'a>(&'a self, _call: &'a Call) -> BoxFuture<'a, Answer> {
        Box::pin(async {
            Err(HandlerError::Other {
                problem: self.reason.clone(),
            })
        })
    }

    fn problem(&self) -> Option<String> {
        Some(self.reason.clone())
    }
}

/// Writes everything that a hook says, a line for each thing.
fn definition(draft: &Draft) -> String {
    let mut text = String::new();
    let mut line = |key: &str, value: &str| {
        let value = value.trim_end().replace('\n', "\n  ");
        // Writing to a text does not fail.
        let _ = writeln!(text, "{key}: {value}");
    };
    let events: Vec<&str> = draft
        .events
        .iter()
        .map(|event| event.name.as_str())
        .collect();
    line("event", &events.join(", "));
    line("matcher", &draft.matcher.to_string());
    if let Some(timeout) = draft.timeout {
        line("timeout", &format!("{} s", timeout.as_secs_f64()));
    }
    let fields: Map<String, Value> = serde_json::from_str(&draft.definition).unwrap_or_default();
    let known = ["event", "matcher", "timeout"];
    for (key, value) in fields
        .iter()
        .filter(|(key, _)| !known.contains(&key.as_str()))
    {
        let key = if key == "file" { "contract" } else { key };
        match value.as_str() {
            Some(value) => line(key, value),
            None => line(key, &value.to_string()),
        }
    }
    if let Action::Http(http) = &draft.action {
        for (name, value) in http.written_headers() {
            line(&format!("header {name}"), value);
        }
    }
    text
}

/// Returns a path as it is shown to people: below the project where it is there.
pub(crate) fn below(path: &Path, project: &Path) -> String {
    shown(path, project).display().to_string()
}
