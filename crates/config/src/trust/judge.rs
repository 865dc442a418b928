//! Whether a hook of a project's hook file may run, and from where it runs.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use tenterhook::{
    Answer, Call, EventClass, EventKind, EventName, Handler, HandlerError, HookId, HookSpec,
    OnError, Policy, Source,
};

use super::search_path;
use super::words::{mentioned, shown};
use super::{Approvals, Approved, Item, NamedFiles, Rebased, TrustState, words::Ground};
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
    /// It was approved in another version than this one, and the approved version is in force.
    pub is_approved_in_force: bool,
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
            is_approved_in_force: false,
        }
    }

    /// Says whether nothing of it runs: neither this version nor one that was approved.
    pub fn is_withheld(&self) -> bool {
        self.state != TrustState::Trusted && !self.is_approved_in_force
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
            TrustState::Displaced => "was approved for another repository",
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
    let (project, source) = Project::of_file(report.source().path());
    let dir = project.dir.join(working_dir(context, draft));
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
    let mut item = Item {
        source,
        name: draft
            .events
            .first()
            .map(|event| event.id.clone())
            .unwrap_or_default(),
        definition: definition(draft),
        files: read,
        events: draft
            .events
            .iter()
            .map(|event| event.name.clone())
            .collect(),
        unread: std::mem::take(&mut files.unread),
        hook_text: Some(report.source().shared_text()),
        named: files.for_approval(),
        project: project.dir.clone(),
        root: project.root.clone(),
    };
    let state = approvals.state(&item);
    if state != TrustState::Trusted {
        item.unread.extend(mentioned(&item.files, ground));
    }
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
        leave_project_out(draft, &project.root);
        draft.reread_python();
    }
    let events = draft.events.iter().map(|event| event.name.clone());
    Some(Brought::new(item, state, events.collect()))
}

/// Makes a command find its programs outside of the project. What it names there runs from its approved copy; whatever else
/// stands in a folder of the search path by now was never approved.
fn leave_project_out(draft: &mut Draft, root: &Path) {
    let is_command = matches!(draft.action, Action::Line { .. } | Action::Argv(_));
    if !is_command || draft.env.iter().any(|(name, _)| name == "PATH") {
        return;
    }
    if let Some(search) = search_path::outside(&[root]) {
        let search = search.to_string_lossy().into_owned();
        draft.env.push(("PATH".to_owned(), search));
    }
}

fn working_dir(context: &Context<'_>, draft: &Draft) -> PathBuf {
    let dir = draft.working_dir.as_ref();
    let expanded = dir.map(|(dir, _)| context.options.environment.expand_path(dir));
    expanded.unwrap_or_default()
}

/// Makes a draft of an approved hook file run the approved copies, if it is what was approved. The error says why not.
pub(crate) fn restore(
    approvals: &Approvals,
    item: Item,
    approved: &Approved,
    draft: &mut Draft,
) -> Result<(), String> {
    let project = item.project.clone();
    let ground = Ground {
        dir: &project,
        project: &project,
        root: &item.root,
    };
    let files = NamedFiles::of_approval(item.named.clone());
    if let Some(path) = files.without_copy(&item.files, &project) {
        return Err(format!(
            "its command reads `{}` from the project, not from an approved copy",
            path.display()
        ));
    }
    let copies = approvals.copies_of(&project, approved);
    let shown = draft.action.text();
    let definition = definition(draft);
    let rebased = Rebased {
        ground,
        copies: &copies,
    };
    rebased.apply(&files, &mut draft.action, &mut draft.env);
    leave_project_out(draft, &item.root);
    draft.shown = shown;
    draft.reread_python();
    let restored = Item { definition, ..item };
    if restored.digest() != approved.digest {
        return Err(
            "its definition stands for something else than when it was approved".to_owned(),
        );
    }
    Ok(())
}

/// Returns the hooks that deny instead of untrusted ones, on every gate that they are for.
pub(crate) fn denials(specs: Vec<HookSpec>, brought: &Brought) -> Vec<HookSpec> {
    let Some(source) = specs.first().map(|spec| spec.source.clone()) else {
        return Vec::new();
    };
    let events = specs.into_iter().filter_map(|spec| spec.event).collect();
    deny(&brought.item.name, events, &source, &brought.reason())
}

/// Makes hooks that deny on those of the events that are gates. Nobody knows what an executable without events guarded.
pub(crate) fn deny(
    name: &str,
    mut events: Vec<EventName>,
    source: &Source,
    reason: &str,
) -> Vec<HookSpec> {
    if events.is_empty() {
        events = [EventKind::UserPromptSubmit, EventKind::PreToolUse]
            .map(EventName::Known)
            .to_vec();
    }
    events.sort();
    events.dedup();
    events.retain(|event| event.info().class == EventClass::Gate);
    let denials = events.into_iter().map(|event| {
        let handler = Withheld {
            reason: reason.to_owned(),
        };
        HookSpec {
            policy: DENIES,
            source: source.clone(),
            ..HookSpec::new(event, HookId::new(name), Arc::new(handler))
        }
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
        // Nothing is trimmed: a space that does not show makes it another command.
        for (place, part) in value.split('\n').enumerate() {
            // Writing to a text does not fail.
            let _ = match (place, part) {
                (0, _) => writeln!(text, "{key}: {part}"),
                (_, "") => writeln!(text),
                (_, _) => writeln!(text, "  {part}"),
            };
        }
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
    let fields: Map<String, Value> = match serde_json::from_str(&draft.definition) {
        Ok(fields) => fields,
        // Nothing of a definition may be missing from what is approved.
        Err(_) => Map::from_iter([("definition".to_owned(), draft.definition.clone().into())]),
    };
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
    if let Action::Model(asked) = &draft.action {
        // The name in the file may stand for another one.
        line("asks", &asked.model);
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
