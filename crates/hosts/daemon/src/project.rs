//! The hooks that are in force in one folder, ready to run.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use tenterhook_discovery::{
    Change, ChangeKind, DiscoveredHooks, FoundExtension, FoundScript, Loaded, Reloaded, Reloader,
    discover,
};
use tenterhook_engine::{Decision, Engine, JournalSink, Layer, Scope, SessionId, Source, StopKind};
use tenterhook_hookfile::BrokenSource;
use tenterhook_runners::worker::NoHost;
use tenterhook_setup::data_dir::data_dir;
use tenterhook_setup::error::CliError;
use tenterhook_setup::hook_options::HookOptions;
use tenterhook_setup::{approval, exceptions, extensions, hooks};
use tenterhook_systems::host::denial::DecidingHook;
use tenterhook_trust::Trust;
use tokio::sync::Mutex;

use crate::fingerprint::SourceFingerprint;
use crate::outdated_hooks::OutdatedHooks;

/// How often to look for new files.
const FOLLOW_AFTER: Duration = Duration::from_secs(1);
/// The file with disabled sources in the data folder.
const DISABLED: &str = "disabled.json";

/// The hooks that are in force in one folder.
#[derive(Debug)]
pub(crate) struct HostedProject {
    pub(crate) engine: Engine,
    /// How many hooks there are.
    pub(crate) hooks: usize,
    /// The sources that should be in force but cannot be loaded.
    pub(crate) broken: Vec<BrokenSource>,
    /// What the user should know, one line each.
    pub(crate) warnings: Vec<String>,
    places: Vec<PathBuf>,
    fingerprint: SourceFingerprint,
    following: Mutex<Following>,
    /// The files of which an earlier version is in force.
    outdated: parking_lot::Mutex<Vec<OutdatedHooks>>,
    loaded: Instant,
    /// When an event last looked for new files, in milliseconds after `loaded`.
    followed_at: AtomicU64,
    /// Their processes run as long as these exist.
    scripts: Vec<FoundScript>,
    extensions: Vec<FoundExtension>,
}

/// What is needed to follow changes of the files.
#[derive(Debug)]
struct Following {
    reloader: Reloader,
    /// The state of the files when they were last followed.
    fingerprint: SourceFingerprint,
}

impl HostedProject {
    /// Loads the hooks that are in force in a folder. The host's own hooks are left out.
    pub(crate) async fn load(
        host: &'static str,
        start: PathBuf,
        journal: Arc<dyn JournalSink>,
    ) -> Result<Self, CliError> {
        let options = HookOptions {
            host: Some(host),
            ..HookOptions::default()
        };
        let approvals = approval::load_approvals(&start).await?;
        let trust = approvals.map_or_else(Trust::none, Trust::Approved);
        let (services, _models) = hooks::services(None)?;
        let (output, services) = extensions::recorded(Arc::new(NoHost), services);
        output.record_in(Some(Arc::clone(&journal)));
        let sources = hooks::sources(&options, &start, services, trust)?;
        let mut places = sources.places();
        places.extend(data_dir().map(|dir| dir.join(DISABLED)));
        // Before loading, so that a change in the meantime is noticed.
        let fingerprint = look(places.clone()).await;
        let found = Box::pin(discover(sources, Vec::new())).await?;
        let warnings = warnings(&found);
        let loaded = Loaded {
            specs: found.specs,
            ..Loaded::default()
        };
        let builder = exceptions::builder(&start);
        let engine = hooks::engine_of(builder, &loaded, false, Some(journal));
        let reloader = found
            .followed
            .follow(engine.scope(Scope::Global), Vec::new());
        let following = Following {
            reloader,
            fingerprint,
        };
        Ok(Self {
            engine,
            hooks: loaded.specs.len(),
            broken: found.broken,
            warnings,
            places,
            fingerprint,
            following: Mutex::new(following),
            outdated: parking_lot::Mutex::default(),
            loaded: Instant::now(),
            followed_at: AtomicU64::new(0),
            scripts: found.scripts,
            extensions: found.extensions,
        })
    }

    /// Returns whether loading the hooks again would find the same files.
    pub(crate) async fn is_current(&self) -> bool {
        look(self.places.clone()).await.is_same(self.fingerprint)
    }

    /// Returns the sources that should be in force but cannot be loaded, unless files have changed. The next event of a
    /// session then loads its hooks again.
    pub(crate) async fn broken_still(&self) -> &[BrokenSource] {
        if self.broken.is_empty() || self.is_current().await {
            &self.broken
        } else {
            &[]
        }
    }

    /// Replaces the hooks by the current versions of their files, because the user requested it.
    pub(crate) async fn reload(&self) -> Reloaded {
        let mut following = self.following.lock().await;
        let done = Box::pin(following.reloader.reload()).await;
        self.note_outdated(&following.reloader);
        done
    }

    /// Returns the files of which an earlier version is in force, as they were when they were last followed.
    pub(crate) fn outdated(&self) -> Vec<OutdatedHooks> {
        self.outdated.lock().clone()
    }

    fn note_outdated(&self, reloader: &Reloader) {
        let outdated = reloader.pending().into_iter().map(outdated).collect();
        *self.outdated.lock() = outdated;
    }

    /// Returns more about the hook that decided about an event, for the text of a denial.
    pub(crate) fn deciding_hook(&self, decision: &Decision) -> Option<DecidingHook> {
        let (by, failed) = match decision {
            Decision::Stop { by, kind, .. } => (by.as_ref()?, *kind == StopKind::Failed),
            Decision::Ask { by, .. } => (by.as_ref()?, false),
            Decision::Proceed => return None,
        };
        let hook = self.engine.hooks().into_iter().find(|it| it.id == *by)?;
        Some(DecidingHook {
            next_step: next_step(&hook.source, failed),
            source: hook.source.path.is_some().then(|| hook.source.to_string()),
        })
    }

    /// Lets scripts forget a session that is over.
    pub(crate) fn end_session(&self, session: &SessionId) {
        for found in &self.extensions {
            found.extension.end_session(session.as_str());
        }
        for found in &self.scripts {
            found.lease.end_session(session.as_str());
        }
    }

    /// Returns whether it is time to look for new files. At most one of several events gets `true`.
    pub(crate) fn must_follow(&self) -> bool {
        let now = u64::try_from(self.loaded.elapsed().as_millis()).unwrap_or(u64::MAX);
        let last = self.followed_at.load(Ordering::Relaxed);
        Duration::from_millis(now.saturating_sub(last)) >= FOLLOW_AFTER
            && self
                .followed_at
                .compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }

    /// Adds the hooks of new files. Nothing else changes, unless the user requests a reload.
    pub(crate) async fn follow(&self) {
        let now = look(self.places.clone()).await;
        let mut following = self.following.lock().await;
        if !now.is_same(following.fingerprint) {
            following.fingerprint = now;
            // Changes that took effect only add hooks, so only the others are reported.
            drop(Box::pin(following.reloader.follow()).await);
            self.note_outdated(&following.reloader);
        }
    }

    /// Returns why gates must deny: a source that should be in force cannot be loaded.
    pub(crate) fn refusal(&self) -> Option<String> {
        let source = self.broken.first()?;
        let path = source.path.display();
        let problem = source
            .first_error()
            .map_or("it is broken", |problem| problem.message.as_str());
        let more = match self.broken.len() {
            1 => String::new(),
            count => format!(" ({} more cannot be loaded)", count - 1),
        };
        Some(format!(
            "the hooks of `{path}` cannot be loaded: {problem}{more}; fix it, or run `tenterhook disable '{path}'`"
        ))
    }
}

/// Returns what the person can do about a decision of a hook.
fn next_step(source: &Source, failed: bool) -> Option<String> {
    let path = source.path.as_ref()?.display();
    let step = match (failed, source.layer) {
        (_, Layer::System) => "Your administrator manages this hook".to_owned(),
        (true, _) => format!(
            "The hook failed, so nothing is let through. Only the user can end that: repair the hook, or run \
             `tenterhook disable '{path}'`"
        ),
        (false, Layer::Project) => {
            "Only the user can change this: edit the file, then run `tenterhook trust`".to_owned()
        }
        (false, _) => {
            "Only the user can change this: edit the file, then run `tenterhook reload`".to_owned()
        }
    };
    Some(step)
}

/// Describes a file of which an earlier version is in force.
fn outdated(change: Change) -> OutdatedHooks {
    let next_step = if matches!(change.kind, ChangeKind::Waits { .. }) {
        "tenterhook trust"
    } else {
        "tenterhook reload"
    };
    OutdatedHooks {
        change: change.to_string(),
        path: change.path,
        next_step: next_step.to_owned(),
    }
}

async fn look(places: Vec<PathBuf>) -> SourceFingerprint {
    tokio::task::spawn_blocking(move || SourceFingerprint::of(&places))
        .map(|looked| looked.unwrap_or_else(|_| SourceFingerprint::unknown()))
        .await
}

/// Returns what the user should know about the hooks that were found.
fn warnings(found: &DiscoveredHooks) -> Vec<String> {
    let untrusted = found.untrusted.iter().map(|source| {
        let path = source.path.display();
        format!("the current version of `{path}` is not approved and cannot be loaded")
    });
    let diverged = found.diverged.iter().map(|hook| {
        let path = hook.source();
        let happened = approval::what_happened(hook);
        match &hook.denies {
            Some(reason) => format!("{reason}; its gates deny"),
            None => format!(
                "`{}`: {happened}; the approved version is in force",
                path.display()
            ),
        }
    });
    let problems = found.warnings.iter().map(|problem| match &problem.hint {
        Some(hint) => format!("{}; {hint}", problem.message),
        None => problem.message.clone(),
    });
    let notes = found.notes.iter().cloned();
    problems
        .chain(notes)
        .chain(untrusted)
        .chain(diverged)
        .collect()
}

/// Returns a folder without links, so that all names of a folder share its hooks. A folder that does not
/// exist keeps its name.
pub(crate) fn resolved(folder: &Path) -> PathBuf {
    folder.canonicalize().unwrap_or_else(|_| folder.to_owned())
}
