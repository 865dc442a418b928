//! The exceptions of the user: tool calls that may run although a hook denied them.
//!
//! ```text
//! DATA/denials/ID.json        the last calls that hooks denied, so that the user can see what an id means
//! DATA/exceptions/ID.json     one exception of the user
//! ```
//!
//! Each file is replaced as a whole, and an exception that counts once is used up by the process that removes its
//! file. So no lock is needed.

use std::cmp::Reverse;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tenterhook_engine::journal::{ExceptionDetails, ExceptionScope};
use tenterhook_engine::{DenialRuling, Exception, Exceptions, HookDenial, Layer, error_chain};
use tenterhook_files::{entries, read_whole, write_private};
use tokio::task::spawn_blocking;

use crate::denied_call::{DenialId, DeniedCall};
use crate::error::TrustError;
use crate::file_owner::check_owner;
use crate::project::{repository_root, resolved};

/// The maximum number of denials that are remembered.
const MAX_DENIALS: usize = 200;
/// How long an exception for one call waits for that call.
const ONCE_LASTS: Duration = Duration::from_hours(24);

/// How long an exception is in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExceptionTerm {
    /// For the next such call, within a day.
    Once,
    /// For every such call until a time.
    Until(Timestamp),
    /// For every such call in the project until the user revokes it.
    Project,
}

/// An exception that the user made for one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserException {
    /// The call.
    pub call: DeniedCall,
    /// How long the exception is in force.
    pub term: ExceptionTerm,
    /// When the user made it.
    pub given_at: Timestamp,
}

impl UserException {
    /// Describes an exception that the user makes now. It is in force when [`ExceptionStore::allow`] has stored it.
    pub fn new(call: DeniedCall, term: ExceptionTerm) -> Self {
        Self {
            call,
            term,
            given_at: whole_seconds(Timestamp::now()),
        }
    }

    /// Returns when the exception ends. `None` means that the user ends it.
    pub fn expires_at(&self) -> Option<Timestamp> {
        match self.term {
            // A time that cannot be represented has passed.
            ExceptionTerm::Once => Some(
                self.given_at
                    .checked_add(ONCE_LASTS)
                    .unwrap_or(self.given_at),
            ),
            ExceptionTerm::Until(time) => Some(time),
            ExceptionTerm::Project => None,
        }
    }

    /// Returns whether the exception is in force at a time.
    pub fn is_in_force(&self, now: Timestamp) -> bool {
        self.expires_at().is_none_or(|end| now < end)
    }

    /// Describes the exception for the journal.
    pub fn details(&self) -> ExceptionDetails {
        let call = &self.call;
        ExceptionDetails {
            hook: call.hook.clone(),
            source: call.source.clone(),
            event: call.event.clone(),
            tool: call.tool.clone(),
            input: call.input.clone(),
            project: call.project.display().to_string(),
            scope: match self.term {
                ExceptionTerm::Once => ExceptionScope::Once,
                ExceptionTerm::Until(_) => ExceptionScope::Until,
                ExceptionTerm::Project => ExceptionScope::Project,
            },
            expires_at: self.expires_at(),
        }
    }

    /// Describes for the journal with which command the exception was made, and when.
    fn origin(&self, id: &DenialId) -> String {
        let option = match self.term {
            ExceptionTerm::Once => "--once".to_owned(),
            ExceptionTerm::Until(end) => format!("--until {}", whole_seconds(end)),
            ExceptionTerm::Project => "--project".to_owned(),
        };
        format!("`tenterhook allow {id} {option}` of {}", self.given_at)
    }
}

/// The files with the exceptions of the user, and with the denials that they are for.
#[derive(Debug, Clone)]
pub struct ExceptionStore {
    dir: PathBuf,
}

impl ExceptionStore {
    /// Opens the store in the folder for data. The folder need not exist.
    pub fn open(data_dir: &Path) -> Self {
        Self {
            dir: data_dir.to_owned(),
        }
    }

    /// Returns the denied call with this id, if it is one of the last.
    ///
    /// # Errors
    /// Fails if other users can write the file, or if it is damaged or cannot be read.
    pub fn denied(&self, id: &DenialId) -> Result<Option<DeniedCall>, TrustError> {
        let path = self.denial(id);
        let call = self.read::<DeniedCall>(&path)?;
        call.map(|call| check_id(&path, id, &call).map(|()| call))
            .transpose()
    }

    /// Remembers a denied call, and forgets the oldest if there are too many.
    ///
    /// # Errors
    /// Fails if the file cannot be written, or if another call has the same id.
    fn remember(&self, id: &DenialId, call: &DeniedCall) -> Result<(), TrustError> {
        let path = self.denial(id);
        // The user may already have seen the other call under this id.
        if let Ok(Some(known)) = self.denied(id)
            && known.digest() != call.digest()
        {
            let problem = "another denied call has the same id".to_owned();
            return Err(TrustError::Invalid { path, problem });
        }
        write(&path, call)?;
        drop_oldest(&self.dir.join("denials"));
        Ok(())
    }

    /// Returns the denied calls that are remembered, each with its id, the newest first. Leaves out what cannot be read.
    pub fn last_denied(&self) -> Vec<(DenialId, DeniedCall)> {
        let paths = files(&self.dir.join("denials")).unwrap_or_default();
        let calls = paths.iter().filter_map(|path| {
            let call = self.read::<DeniedCall>(path).ok().flatten()?;
            Some((call.id().ok()?, call))
        });
        let mut calls: Vec<(DenialId, DeniedCall)> = calls.collect();
        calls.sort_by_key(|(_, call)| Reverse(call.denied_at));
        calls
    }

    /// Puts an exception in force, and removes those that have expired. Replaces an earlier exception for the same call.
    ///
    /// # Errors
    /// Fails if the call is damaged, or if the file cannot be written.
    pub fn allow(&self, exception: &UserException) -> Result<(), TrustError> {
        let id = exception.call.id().map_err(|problem| TrustError::Invalid {
            path: self.dir.join("denials"),
            problem,
        })?;
        let now = Timestamp::now();
        for path in files(&self.dir.join("exceptions"))? {
            if let Ok(Some(known)) = self.read::<UserException>(&path)
                && !known.is_in_force(now)
            {
                let _gone = fs::remove_file(&path);
            }
        }
        write(&self.exception(&id), exception)
    }

    /// Returns the exception with this id, also if it has expired.
    ///
    /// # Errors
    /// Fails if other users can write the file, or if it is damaged or cannot be read.
    pub fn exception_of(&self, id: &DenialId) -> Result<Option<UserException>, TrustError> {
        let found = self.read_exception(&self.exception(id))?;
        Ok(found.map(|(_, exception)| exception))
    }

    /// Ends an exception, also a damaged one. Returns whether there was one.
    ///
    /// # Errors
    /// Fails if the file cannot be removed.
    pub fn revoke(&self, id: &DenialId) -> Result<bool, TrustError> {
        let path = self.exception(id);
        match fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(TrustError::file(&path, error)),
        }
    }

    /// Returns the exceptions in force, each with its id, and the problems of those that cannot be read and are
    /// therefore not in force.
    pub fn in_force(&self) -> (Vec<(DenialId, UserException)>, Vec<TrustError>) {
        let paths = match files(&self.dir.join("exceptions")) {
            Ok(paths) => paths,
            Err(error) => return (Vec::new(), vec![error]),
        };
        let now = Timestamp::now();
        let (mut found, mut problems) = (Vec::new(), Vec::new());
        for path in paths {
            match self.read_exception(&path) {
                Ok(Some((id, exception))) if exception.is_in_force(now) => {
                    found.push((id, exception));
                }
                Ok(_) => {}
                Err(error) => problems.push(error),
            }
        }
        found.sort_by(|(one, _), (other, _)| one.cmp(other));
        (found, problems)
    }

    /// Returns the exception for the denial with this id and digest, if it is in force. The id alone is too short to
    /// be sure.
    fn find(&self, id: &DenialId, digest: &str) -> Result<Option<UserException>, TrustError> {
        let now = Timestamp::now();
        Ok(self
            .exception_of(id)?
            .filter(|exception| exception.call.digest() == digest && exception.is_in_force(now)))
    }

    fn read_exception(&self, path: &Path) -> Result<Option<(DenialId, UserException)>, TrustError> {
        let Some(exception) = self.read::<UserException>(path)? else {
            return Ok(None);
        };
        let name = path.file_stem().and_then(|name| name.to_str());
        let id = name.and_then(|name| name.parse().ok());
        let id: DenialId = id.ok_or_else(|| TrustError::Invalid {
            path: path.to_owned(),
            problem: "its name is not the id of a denial".to_owned(),
        })?;
        check_id(path, &id, &exception.call)?;
        Ok(Some((id, exception)))
    }

    /// Reads a file that only the user can write. `None` if it is missing.
    fn read<T: DeserializeOwned>(&self, path: &Path) -> Result<Option<T>, TrustError> {
        match fs::symlink_metadata(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(TrustError::file(path, error)),
            Ok(_) => {}
        }
        let folder = path.parent().unwrap_or(&self.dir);
        [&self.dir, folder, path]
            .into_iter()
            .try_for_each(check_owner)?;
        let bytes = match read_whole(path) {
            Ok((bytes, _)) => bytes,
            // Another process has used up or revoked the exception in the meantime.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(TrustError::file(path, error)),
        };
        let value = serde_json::from_slice(&bytes).map_err(|error| TrustError::Invalid {
            path: path.to_owned(),
            problem: error.to_string(),
        })?;
        Ok(Some(value))
    }

    fn denial(&self, id: &DenialId) -> PathBuf {
        self.dir.join("denials").join(format!("{id}.json"))
    }

    fn exception(&self, id: &DenialId) -> PathBuf {
        self.dir.join("exceptions").join(format!("{id}.json"))
    }
}

/// Returns a time without the part of a second, which no one reads.
fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

fn check_id(path: &Path, id: &DenialId, call: &DeniedCall) -> Result<(), TrustError> {
    let problem = match call.id() {
        Ok(own) if own == *id => return Ok(()),
        Ok(own) => format!("it is about the denial {own}"),
        Err(problem) => problem,
    };
    Err(TrustError::Invalid {
        path: path.to_owned(),
        problem,
    })
}

fn write(path: &Path, value: &impl Serialize) -> Result<(), TrustError> {
    let failed = |error| TrustError::file(path, error);
    let bytes = serde_json::to_vec_pretty(value).map_err(|error| failed(error.into()))?;
    write_private(path, &bytes, 0o600).map_err(failed)
}

/// Returns the stored files in a folder, which need not exist.
fn files(dir: &Path) -> Result<Vec<PathBuf>, TrustError> {
    let entries = entries(dir).map_err(|error| TrustError::file(dir, error))?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    // A file that is being written has another name.
    Ok(paths
        .filter(|path| path.extension().is_some_and(|it| it == "json"))
        .collect())
}

/// Removes the oldest files of a folder if there are too many. A file that cannot be removed does no harm.
fn drop_oldest(dir: &Path) {
    let paths = files(dir).into_iter().flatten();
    let known = paths.filter_map(|path| Some((fs::metadata(&path).ok()?.modified().ok()?, path)));
    let mut known: Vec<(SystemTime, PathBuf)> = known.collect();
    known.sort();
    let extra = known.len().saturating_sub(MAX_DENIALS);
    for (_, path) in known.into_iter().take(extra) {
        let _gone = fs::remove_file(path);
    }
}

/// The exceptions of the user in one project, for the engine.
#[derive(Debug, Clone)]
pub struct ProjectExceptions {
    store: ExceptionStore,
    project: PathBuf,
    uses_up: bool,
}

impl ProjectExceptions {
    /// Returns the exceptions that apply to agents that work in the folder `start`.
    pub fn of(store: ExceptionStore, start: &Path) -> Self {
        let start = resolved(start);
        let project = repository_root(&start).unwrap_or(&start).to_owned();
        Self {
            store,
            project,
            uses_up: true,
        }
    }

    /// Applies exceptions that count once without using them up, because no tool runs.
    #[must_use]
    pub fn as_trial(mut self) -> Self {
        self.uses_up = false;
        self
    }

    fn rule_now(&self, denial: HookDenial) -> DenialRuling {
        // The administrator decides about hooks that are managed for all users.
        if denial.source.layer == Layer::System {
            return DenialRuling::default();
        }
        let call = DeniedCall::new(denial, &self.project);
        let Ok(id) = call.id() else {
            return DenialRuling::default();
        };
        let remedy = format!("run `tenterhook allow {id} --once`");
        match self.store.find(&id, call.digest()) {
            Ok(Some(exception)) => DenialRuling {
                exception: Some(Exception {
                    key: call.digest().to_owned(),
                    origin: exception.origin(&id),
                }),
                remedy: Some(remedy),
                problem: None,
            },
            // The denial stands.
            found => DenialRuling {
                exception: None,
                // An id that is not remembered means nothing to `allow`.
                remedy: self.store.remember(&id, &call).is_ok().then_some(remedy),
                problem: found.err().map(|error| {
                    let error = error_chain(&error);
                    format!("the exception for this call is not in force: {error}")
                }),
            },
        }
    }

    fn use_up_now(&self, digest: &str) -> bool {
        let Some(id) = DenialId::of_digest(digest) else {
            return false;
        };
        match self.store.find(&id, digest) {
            Ok(Some(exception)) if exception.term == ExceptionTerm::Once && self.uses_up => {
                // Of several processes, only one can remove the file.
                fs::remove_file(self.store.exception(&id)).is_ok()
            }
            Ok(Some(_)) => true,
            Ok(None) | Err(_) => false,
        }
    }
}

impl Exceptions for ProjectExceptions {
    fn rule(&self, denial: HookDenial) -> BoxFuture<'_, DenialRuling> {
        let own = self.clone();
        Box::pin(async move {
            let ruled = spawn_blocking(move || own.rule_now(denial)).await;
            // Without a ruling, the denial stands.
            ruled.unwrap_or_default()
        })
    }

    fn use_up<'a>(&'a self, exception: &'a Exception) -> BoxFuture<'a, bool> {
        let (own, digest) = (self.clone(), exception.key.clone());
        Box::pin(async move {
            let used_up = spawn_blocking(move || own.use_up_now(&digest)).await;
            used_up.unwrap_or(false)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use serde_json::{Map, Value, json};
    use tenterhook_engine::event::PreToolUse;
    use tenterhook_engine::{Decision, Effect, Engine, Origin, Source};

    use super::*;
    use crate::denied_call::MAX_SHOWN;

    /// A data folder and a project.
    struct Place {
        folder: tempfile::TempDir,
    }

    impl Place {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            // The folder for data is created with the first denial, for the user alone.
            for name in ["one/.git", "one/src", "two"] {
                fs::create_dir_all(folder.path().join(name)).unwrap();
            }
            Self { folder }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.folder.path().join(name)
        }

        fn store(&self) -> ExceptionStore {
            ExceptionStore::open(&self.path("data"))
        }

        fn of(&self, project: &str) -> Arc<ProjectExceptions> {
            Arc::new(ProjectExceptions::of(self.store(), &self.path(project)))
        }

        /// Returns the id in a reason, as a person copies it.
        fn allow(&self, reason: &str, term: ExceptionTerm) -> DenialId {
            let id = id_in(reason);
            let call = self.store().denied(&id).unwrap().unwrap();
            let exception = UserException::new(call, term);
            self.store().allow(&exception).unwrap();
            id
        }

        fn stored(&self, id: &DenialId) -> PathBuf {
            self.store().exception(id)
        }
    }

    fn id_in(reason: &str) -> DenialId {
        let (_, after) = reason.split_once("tenterhook allow ").unwrap();
        after.split(' ').next().unwrap().parse().unwrap()
    }

    /// Sends a call through a hook that denies it. Returns the reason, or `None` if the call may run.
    async fn call_of(exceptions: &Arc<ProjectExceptions>, hook: &str, cmd: &str) -> Option<String> {
        let engine = Engine::builder()
            .exceptions(Arc::clone(exceptions) as _)
            .build();
        let denies = |_: &PreToolUse| Effect::deny("no");
        engine.hook(hook).on(denies);
        let call = PreToolUse::new("shell").with_tool_input([("cmd", cmd)]);
        let decision = engine
            .dispatcher(Origin::default())
            .dispatch(call)
            .await
            .decision();
        match decision {
            Decision::Stop { reason, .. } => Some(reason),
            Decision::Proceed | Decision::Ask { .. } => None,
        }
    }

    async fn call(exceptions: &Arc<ProjectExceptions>, cmd: &str) -> Option<String> {
        call_of(exceptions, "guard", cmd).await
    }

    #[tokio::test]
    async fn an_exception_is_for_one_hook_one_call_and_one_project() {
        let place = Place::new();
        let one = place.of("one");
        let reason = call(&one, "rm x").await.unwrap();
        let id = place.allow(&reason, ExceptionTerm::Project);
        assert_eq!(call(&one, "rm x").await, None);
        // The project is the whole repository.
        assert_eq!(call(&place.of("one/src"), "rm x").await, None);
        assert!(call(&one, "rm y").await.is_some());
        assert!(call(&one, "rm x ").await.is_some());
        assert!(call_of(&one, "other", "rm x").await.is_some());
        assert!(call(&place.of("two"), "rm x").await.is_some());
        assert_eq!(call(&one, "rm x").await, None);
        assert!(place.store().revoke(&id).unwrap());
        assert_eq!(call(&one, "rm x").await, Some(reason));
        assert!(!place.store().revoke(&id).unwrap());
    }

    #[tokio::test]
    async fn an_exception_that_counts_once_is_used_up_by_one_of_many_calls_at_once() {
        let place = Place::new();
        let one = place.of("one");
        let reason = call(&one, "rm x").await.unwrap();
        for _ in 0..5 {
            let id = place.allow(&reason, ExceptionTerm::Once);
            // A dry run does not use it up.
            let trial = Arc::new(ProjectExceptions::clone(&one).as_trial());
            assert_eq!(call(&trial, "rm x").await, None);
            let calls: Vec<_> = (0..8).map(|_| place.of("one")).collect();
            let calls = calls.iter().map(|exceptions| call(exceptions, "rm x"));
            let answers = futures_util::future::join_all(calls).await;
            let passed = answers.iter().filter(|answer| answer.is_none()).count();
            assert_eq!(passed, 1, "{answers:?}");
            assert!(!place.stored(&id).exists());
        }
    }

    #[tokio::test]
    async fn an_exception_expires() {
        let place = Place::new();
        let one = place.of("one");
        let reason = call(&one, "rm x").await.unwrap();
        let now = Timestamp::now();
        let soon = now + Duration::from_hours(1);
        let id = place.allow(&reason, ExceptionTerm::Until(soon));
        assert_eq!(call(&one, "rm x").await, None);
        assert_eq!(call(&one, "rm x").await, None);
        assert_eq!(place.store().in_force().0.len(), 1);
        place.allow(&reason, ExceptionTerm::Until(now));
        assert!(call(&one, "rm x").await.is_some());
        assert!(place.store().in_force().0.is_empty());
        // An exception for one call waits for a day.
        place.allow(&reason, ExceptionTerm::Once);
        let (_, exception) = place.store().in_force().0.remove(0);
        assert!(exception.is_in_force(exception.given_at + Duration::from_hours(23)));
        assert!(!exception.is_in_force(exception.given_at + Duration::from_hours(25)));
        // The next exception removes what has expired.
        place.allow(&reason, ExceptionTerm::Until(now));
        let other = call(&one, "rm y").await.unwrap();
        place.allow(&other, ExceptionTerm::Once);
        assert!(!place.stored(&id).exists());
    }

    #[tokio::test]
    async fn a_damaged_exception_is_none_and_its_problem_is_reported() {
        let place = Place::new();
        let one = place.of("one");
        let reason = call(&one, "rm x").await.unwrap();
        let id = place.allow(&reason, ExceptionTerm::Project);
        let path = place.stored(&id);
        let whole = fs::read_to_string(&path).unwrap();
        let other_digest = whole.replacen("\"digest\": \"", "\"digest\": \"0", 1);
        for text in [
            "",
            "{}",
            whole.trim_end().strip_suffix('}').unwrap(),
            &whole.replace("\"version\": 1", "\"version\": 2"),
            &whole.replace("\"term\": \"project\"", "\"term\": \"always\""),
            &other_digest,
        ] {
            assert_ne!(text, whole);
            fs::write(&path, text).unwrap();
            let still = call(&one, "rm x").await;
            assert_eq!(still.as_ref(), Some(&reason), "{text}");
            let (found, problems) = place.store().in_force();
            assert_eq!((found.len(), problems.len()), (0, 1), "{text}");
            let named = path.display().to_string();
            assert!(
                problems[0].to_string().contains(&named),
                "{text}: {}",
                problems[0]
            );
        }
        // Allowing the call again repairs it.
        place.allow(&reason, ExceptionTerm::Project);
        assert_eq!(call(&one, "rm x").await, None);
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn an_exception_that_others_could_write_is_none() {
        use std::os::unix::fs::PermissionsExt as _;
        let place = Place::new();
        let one = place.of("one");
        let reason = call(&one, "rm x").await.unwrap();
        let id = place.allow(&reason, ExceptionTerm::Project);
        let path = place.stored(&id);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(path.parent().unwrap()), 0o700);
        for open in [path.as_path(), path.parent().unwrap(), &place.path("data")] {
            let before = mode(open);
            fs::set_permissions(open, fs::Permissions::from_mode(before | 0o022)).unwrap();
            assert!(call(&one, "rm x").await.is_some(), "{}", open.display());
            fs::set_permissions(open, fs::Permissions::from_mode(before)).unwrap();
            assert_eq!(call(&one, "rm x").await, None, "{}", open.display());
        }
        // A link leads to a file that someone else may write.
        let elsewhere = place.path("elsewhere.json");
        fs::rename(&path, &elsewhere).unwrap();
        fs::set_permissions(&elsewhere, fs::Permissions::from_mode(0o666)).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
        let linked = call(&one, "rm x").await;
        assert!(linked.is_some(), "{linked:?}");
    }

    #[tokio::test]
    async fn the_last_denials_are_remembered_without_secrets() {
        let place = Place::new();
        let one = place.of("one");
        let token = ["gh", "p_", "q7Zk2WvR9xT4bN6mJ1cH8dL5sP3fG0yAuEoI"].concat();
        let long = "x".repeat(3 * MAX_SHOWN);
        let reason = call(&one, &format!("curl {token} {long}")).await.unwrap();
        let id = id_in(&reason);
        let call_ = place.store().denied(&id).unwrap().unwrap();
        assert!(
            call_.input.contains("curl") && !call_.input.contains(&token),
            "{}",
            call_.input
        );
        assert!(call_.input.len() < 2 * MAX_SHOWN + 200);
        for number in 0..=MAX_DENIALS {
            call(&one, &format!("rm {number}")).await.unwrap();
        }
        let kept = files(&place.path("data/denials")).unwrap();
        assert_eq!(kept.len(), MAX_DENIALS);
        assert_eq!(place.store().denied(&id).unwrap(), None);
    }

    #[tokio::test]
    async fn another_call_under_a_known_id_has_no_way_out() {
        let place = Place::new();
        let one = place.of("one");
        let reason = call(&one, "rm x").await.unwrap();
        let path = place.store().denial(&id_in(&reason));
        // The last digit of the digest is not part of the id.
        let text = fs::read_to_string(&path).unwrap();
        let end = text.find("\",\n  \"project\"").unwrap();
        let (before, after) = text.split_at(end);
        let mut before = before.to_owned();
        let digit = if before.pop() == Some('0') { '1' } else { '0' };
        let other = format!("{before}{digit}{after}");
        fs::write(&path, &other).unwrap();
        assert_eq!(call(&one, "rm x").await.unwrap(), "no");
        assert_eq!(fs::read_to_string(&path).unwrap(), other);
        // An exception for the other call lifts nothing.
        place.allow(&reason, ExceptionTerm::Project);
        assert_eq!(call(&one, "rm x").await.unwrap(), "no");
    }

    #[tokio::test]
    async fn without_a_place_to_remember_it_a_denial_has_no_id() {
        let place = Place::new();
        fs::write(place.path("data"), "a file").unwrap();
        assert_eq!(call(&place.of("one"), "rm x").await.unwrap(), "no");
    }

    #[test]
    fn an_id_is_read_as_people_write_it() {
        let id: DenialId = "7k3mzq2p".parse().unwrap();
        assert_eq!(id.as_str(), "7K3MZQ2P");
        assert_eq!("OIL00000".parse::<DenialId>().unwrap().as_str(), "01100000");
        for text in [
            "",
            "7K3MZQ2",
            "7K3MZQ2PX",
            "7K3MZQ2U",
            "../../x.",
            "7K3MZQ2\u{e9}",
        ] {
            assert!(text.parse::<DenialId>().is_err(), "{text}");
        }
    }

    fn digest_of(denial: &HookDenial, project: &str) -> String {
        DeniedCall::new(denial.clone(), Path::new(project))
            .digest()
            .to_owned()
    }

    #[test]
    fn two_denials_have_the_same_digest_only_if_all_of_them_is_the_same() {
        let one = || of_input(&json!({ "a": "b", "n": 1 }));
        let same = |change: fn(&mut HookDenial)| {
            let mut other = one();
            change(&mut other);
            digest_of(&other, "/p") == digest_of(&one(), "/p")
        };
        let others: [fn(&mut HookDenial); 11] = [
            |denial| denial.hook = "guar".into(),
            |denial| denial.source.layer = Layer::User,
            |denial| denial.source.path = Some("hooks.yaml".into()),
            |denial| denial.system = "codex",
            |denial| denial.event = "post_tool_use".to_owned(),
            |denial| denial.tool = "shell ".to_owned(),
            |denial| denial.input = Map::new(),
            |denial| denial.input["n"] = json!("1"),
            |denial| denial.input["n"] = json!(1.0),
            |denial| denial.input["a"] = json!(["b"]),
            // The end of one part is not the start of the next.
            |denial| (denial.event, denial.tool) = ("pre_tool_useshell".into(), String::new()),
        ];
        for (number, change) in others.into_iter().enumerate() {
            assert!(!same(change), "{number}");
        }
        assert_ne!(digest_of(&one(), "/q"), digest_of(&one(), "/p"));
        // A hook may move within its file, and give another reason.
        assert!(same(|denial| denial.source.line = Some(2)));
        assert!(same(|denial| denial.reason = Some("x".to_owned())));
    }

    proptest! {
        #[test]
        fn one_changed_byte_of_the_arguments_is_another_call(
            text in "[ -~]{1,40}",
            at in any::<prop::sample::Index>(),
            byte in b' '..b'~',
        ) {
            let digest = |text: &str| digest_of(&of_input(&json!({ "cmd": text, "cwd": "src" })), "");
            let mut bytes = text.clone().into_bytes();
            let place = at.index(bytes.len());
            bytes[place] = byte;
            let changed = String::from_utf8(bytes).unwrap();
            let is_same = digest(&text) == digest(&changed);
            prop_assert_eq!(is_same, text == changed);
        }
    }

    fn of_input(input: &Value) -> HookDenial {
        HookDenial {
            hook: "guard".into(),
            source: Source::CODE,
            system: "native",
            event: "pre_tool_use".to_owned(),
            tool: "shell".to_owned(),
            input: input.as_object().unwrap().clone(),
            reason: None,
        }
    }

    #[test]
    fn the_order_of_keys_does_not_matter() {
        let parse = |text| of_input(&serde_json::from_str(text).unwrap());
        let one = parse(r#"{"a": {"b": 1, "c": 2}, "d": 3}"#);
        let other = parse(r#"{"d": 3, "a": {"c": 2, "b": 1}}"#);
        assert_eq!(digest_of(&one, ""), digest_of(&other, ""));
    }

    #[tokio::test]
    async fn a_hook_that_is_managed_for_all_users_has_no_way_out() {
        let place = Place::new();
        let one = place.of("one");
        let mut denial = of_input(&json!({}));
        assert!(one.rule(denial.clone()).await.remedy.is_some());
        denial.source.layer = Layer::System;
        assert_eq!(one.rule(denial).await, DenialRuling::default());
    }
}
