//! The exceptions of the user: tool calls that may run although a hook denied them.
//!
//! ```text
//! DATA/trust/denials/ID.json        the last calls that hooks denied, so that the user can see what an id means
//! DATA/trust/exceptions/ID.json     one exception of the user
//! ```
//!
//! Each file is replaced as a whole, and an exception that counts once is used up by the process that removes its
//! file. So no lock is needed.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tenterhook_engine::{DenialRuling, Exception, Exceptions, HookDenial, Layer, error_chain};
use tokio::task::spawn_blocking;

use crate::denied_call::{DenialId, DeniedCall};
use crate::error::TrustError;
use crate::private_file::{check_owner, read_whole, write_private};
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
            dir: data_dir.join("trust"),
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
            return Err(TrustError::Exception { path, problem });
        }
        write(&path, call)?;
        drop_oldest(&self.dir.join("denials"));
        Ok(())
    }

    /// Lets a denied call through, and removes exceptions that have expired. Replaces an earlier exception for the same
    /// call.
    ///
    /// # Errors
    /// Fails if the call is damaged, or if the file cannot be written.
    pub fn allow(
        &self,
        call: DeniedCall,
        term: ExceptionTerm,
    ) -> Result<UserException, TrustError> {
        let id = call.id().map_err(|problem| TrustError::Exception {
            path: self.dir.join("denials"),
            problem,
        })?;
        let now = whole_seconds(Timestamp::now());
        for path in files(&self.dir.join("exceptions"))? {
            if let Ok(Some(known)) = self.read::<UserException>(&path)
                && !known.is_in_force(now)
            {
                let _gone = fs::remove_file(&path);
            }
        }
        let exception = UserException {
            call,
            term,
            given_at: now,
        };
        write(&self.exception(&id), &exception)?;
        Ok(exception)
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
                    found.push((id, exception))
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
        let found = self.read_exception(&self.exception(id))?;
        let now = Timestamp::now();
        Ok(found
            .map(|(_, exception)| exception)
            .filter(|exception| exception.call.digest() == digest && exception.is_in_force(now)))
    }

    fn read_exception(&self, path: &Path) -> Result<Option<(DenialId, UserException)>, TrustError> {
        let Some(exception) = self.read::<UserException>(path)? else {
            return Ok(None);
        };
        let name = path.file_stem().and_then(|name| name.to_str());
        let id = name.and_then(|name| name.parse().ok());
        let id: DenialId = id.ok_or_else(|| TrustError::Exception {
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
        let value = serde_json::from_slice(&bytes).map_err(|error| TrustError::Exception {
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
    Err(TrustError::Exception {
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
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(TrustError::file(dir, error)),
    };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    // A file that is being written has another name.
    Ok(paths
        .filter(|path| path.extension().is_some_and(|it| it == "json"))
        .collect())
}

/// Removes the oldest files of a folder if there are too many. A file that cannot be removed does no harm.
fn drop_oldest(dir: &Path) {
    let Ok(entries) = fs::read_dir(dir) else {
        return;
    };
    let mut known: Vec<(SystemTime, PathBuf)> = entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            Some((entry.metadata().ok()?.modified().ok()?, entry.path()))
        })
        .collect();
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
