//! The passphrase of the user, which `tenterhook protect` sets. Commands that only the user may give ask for it.
//!
//! Its file has a hash by Argon2id and the number of wrong tries. The file belongs to the account: no environment
//! variable names its place, because a program of an agent decides about its own environment.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use argon2::Argon2;
use argon2::password_hash::{PasswordHash, PasswordHasher as _, PasswordVerifier as _, SaltString};
use serde::{Deserialize, Serialize};
use tenterhook_files::{FileLock, read_whole, write_private};
use tenterhook_setup::data_dir::passphrase_places;
use tenterhook_setup::error::CliError;
use tenterhook_setup::exit::Exit;
use tenterhook_setup::warning::warn;
use tenterhook_terminal::secret_line::{SecretLineError, ask_secret};
use tenterhook_trust::check_owner;

/// The version of its format.
const VERSION: u32 = 1;
/// The smallest number of characters of a passphrase.
const MIN_LENGTH: usize = 8;
/// The number of wrong tries that cost no time, because everyone mistypes.
const FREE_TRIES: u32 = 2;
/// The longest time between two tries.
const MAX_DELAY: Duration = Duration::from_mins(1);
/// How long another command may use the file.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// Whether the user entered the passphrase in this process.
static IS_ENTERED: AtomicBool = AtomicBool::new(false);

/// The passphrase that is set.
#[derive(Debug)]
pub(crate) struct Passphrase {
    path: PathBuf,
}

/// The content of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    version: u32,
    /// The hash, with its salt and parameters.
    hash: String,
    /// How many wrong passphrases were entered since the last correct one.
    wrong_tries: u32,
    /// When the last of them was entered, in seconds since 1970.
    last_wrong_try: u64,
}

impl Record {
    fn new(text: &str) -> Result<Self, CliError> {
        let mut salt = [0; 16];
        getrandom::fill(&mut salt)
            .map_err(|error| failed("cannot create a random number", &error))?;
        let salt = SaltString::encode_b64(&salt).map_err(cannot_hash)?;
        let hash = Argon2::default().hash_password(text.as_bytes(), &salt);
        Ok(Self {
            version: VERSION,
            hash: hash.map_err(cannot_hash)?.to_string(),
            wrong_tries: 0,
            last_wrong_try: 0,
        })
    }

    /// Returns how long no passphrase is accepted.
    fn delay(&self, now: u64) -> Duration {
        let Some(costly) = self.wrong_tries.checked_sub(FREE_TRIES + 1) else {
            return Duration::ZERO;
        };
        let delay = Duration::from_secs(2_u64.saturating_pow(costly + 1)).min(MAX_DELAY);
        // The clock may have been set back, which must not lock the user out.
        let passed = now.checked_sub(self.last_wrong_try).unwrap_or(u64::MAX);
        delay.saturating_sub(Duration::from_secs(passed))
    }
}

impl Passphrase {
    /// Returns the passphrase of this account, if it has one.
    ///
    /// # Errors
    /// Fails if it is not known whether there is one.
    pub(crate) fn find() -> Result<Option<Self>, CliError> {
        for path in passphrase_places() {
            match fs::symlink_metadata(&path) {
                Ok(_) => return Ok(Some(Self { path })),
                Err(error)
                    if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
                Err(error) => return Err(damaged(&path, &error)),
            }
        }
        Ok(None)
    }

    /// Asks the user for a new passphrase, twice, and sets it.
    ///
    /// # Errors
    /// Fails without a terminal, if the two differ, or if the file cannot be written.
    pub(crate) fn set() -> Result<(), CliError> {
        let path = match Self::find()? {
            Some(old) => old.path,
            None => passphrase_places().pop().ok_or_else(|| {
                CliError::new(
                    Exit::Failed,
                    "cannot find your home folder, which stores the passphrase",
                )
                .hint("set `HOME` to your home folder")
            })?,
        };
        let nothing = "nothing was changed";
        let text = enter("New passphrase: ", nothing)?;
        let length = text.chars().count();
        if length < MIN_LENGTH {
            let message = format!(
                "the passphrase has {length} characters, expected at least {MIN_LENGTH}; {nothing}"
            );
            return Err(CliError::new(Exit::Usage, message).hint("choose a longer one"));
        }
        if enter("The same passphrase again: ", nothing)? != text {
            let message = format!("the two passphrases differ; {nothing}");
            return Err(CliError::new(Exit::Usage, message).hint("run this command again"));
        }
        let passphrase = Self { path };
        passphrase.write(&Record::new(&text)?)
    }

    /// Removes the passphrase.
    ///
    /// # Errors
    /// Fails if the file cannot be removed.
    pub(crate) fn remove(self) -> Result<(), CliError> {
        fs::remove_file(&self.path).map_err(|error| failed("cannot remove the passphrase", &error))
    }

    /// Asks the user for the passphrase, unless it was entered before in this process. `action` names what it is
    /// needed for.
    ///
    /// # Errors
    /// Fails without a terminal, for a wrong passphrase, and for a while after several wrong ones.
    pub(crate) fn require(&self, action: &str) -> Result<(), CliError> {
        if IS_ENTERED.load(Ordering::Acquire) {
            return Ok(());
        }
        self.ask(action).map(drop)
    }

    /// Asks the user for the passphrase, and returns it.
    ///
    /// # Errors
    /// Fails like [`Passphrase::require`].
    pub(crate) fn ask(&self, action: &str) -> Result<String, CliError> {
        let question = format!("Passphrase to {action}: ");
        let text = enter(&question, "nothing was done")?;
        let wrong_tries = self.check(&text, seconds_now())?;
        IS_ENTERED.store(true, Ordering::Release);
        if wrong_tries > 0 {
            let tries = if wrong_tries == 1 { "try" } else { "tries" };
            warn(format_args!(
                "{wrong_tries} {tries} with a wrong passphrase since you last entered it"
            ));
        }
        Ok(text)
    }

    /// Returns a check of the passphrase that is set now. A program of an agent can replace the file, so one that is set
    /// later does not count.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub(crate) fn check_of_now(
        self,
    ) -> Result<impl Fn(&str) -> Result<(), CliError> + Send + Sync + 'static, CliError> {
        let hash = self.read()?.hash;
        Ok(move |text: &str| {
            if self.read()?.hash != hash {
                let message = "the passphrase was changed after this program had started";
                return Err(CliError::new(Exit::Usage, message).hint("restart the program"));
            }
            self.check(text, seconds_now()).map(drop)
        })
    }

    /// Checks a passphrase, and returns the number of wrong tries before it. `now` is in seconds since 1970.
    fn check(&self, text: &str, now: u64) -> Result<u32, CliError> {
        // Only one command at a time checks a passphrase, so that many at once cannot guess faster.
        let _lock = self.lock()?;
        let mut record = self.read()?;
        let delay = record.delay(now);
        if !delay.is_zero() {
            let message = format!("{} wrong passphrases were entered", record.wrong_tries);
            return Err(CliError::new(Exit::Usage, message)
                .hint(format!("try again in {} s", delay.as_secs().max(1))));
        }
        let hash =
            PasswordHash::new(&record.hash).map_err(|error| damaged(&self.path, &as_io(error)))?;
        let verified = Argon2::default().verify_password(text.as_bytes(), &hash);
        let before = record.wrong_tries;
        match verified {
            Ok(()) if before == 0 => return Ok(0),
            Ok(()) => record.wrong_tries = 0,
            Err(argon2::password_hash::Error::Password) => {
                record.wrong_tries = before.saturating_add(1);
                record.last_wrong_try = now;
            }
            Err(error) => return Err(damaged(&self.path, &as_io(error))),
        }
        let is_correct = record.wrong_tries == 0;
        self.write(&record)?;
        if is_correct {
            return Ok(before);
        }
        Err(
            CliError::new(Exit::Usage, "wrong passphrase; nothing was done")
                .hint("run this command again and enter the passphrase of `tenterhook protect`"),
        )
    }

    fn read(&self) -> Result<Record, CliError> {
        check_owner(&self.path).map_err(|error| damaged(&self.path, &error))?;
        let (bytes, _) = read_whole(&self.path).map_err(|error| damaged(&self.path, &error))?;
        let record: Record =
            serde_json::from_slice(&bytes).map_err(|error| damaged(&self.path, &error))?;
        if record.version != VERSION {
            let problem = format!("version {}, expected {VERSION}", record.version);
            return Err(damaged(&self.path, &io::Error::other(problem)));
        }
        Ok(record)
    }

    fn write(&self, record: &Record) -> Result<(), CliError> {
        let cannot = |error: io::Error| failed("cannot store the passphrase", &error);
        let bytes = serde_json::to_vec_pretty(record).map_err(|error| cannot(error.into()))?;
        write_private(&self.path, &bytes, 0o600).map_err(cannot)
    }

    /// Locks the folder of the file, because the file itself is replaced.
    fn lock(&self) -> Result<FileLock, CliError> {
        let cannot = |error: &dyn std::error::Error| failed("cannot lock the passphrase", error);
        let dir = self.path.parent().unwrap_or(Path::new("/"));
        let dir = File::open(dir).map_err(|error| cannot(&error))?;
        let lock = FileLock::wait(dir, MAX_WAIT).map_err(|error| cannot(&error))?;
        lock.ok_or_else(|| cannot(&TryLockError::WouldBlock))
    }
}

fn seconds_now() -> u64 {
    // A clock before 1970 counts as 1970.
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| now.as_secs())
}

/// Asks for a passphrase. `unchanged` names what was not done.
fn enter(question: &str, unchanged: &str) -> Result<String, CliError> {
    ask_secret(question).map_err(|error| {
        let message = format!("{error}; {unchanged}");
        match error {
            SecretLineError::NoTerminal => CliError::new(Exit::Usage, message)
                .hint("run this command in a terminal, where you can enter the passphrase"),
            SecretLineError::TooLong => CliError::new(Exit::Usage, message),
            SecretLineError::Interrupted | SecretLineError::Ended => {
                CliError::new(Exit::Interrupted, message)
            }
            SecretLineError::Read(source) => CliError::new(Exit::Failed, message).cause(&source),
        }
    })
}

/// Creates the error for a file that cannot be used.
fn damaged(path: &Path, error: &dyn std::error::Error) -> CliError {
    let message = "cannot read your passphrase, so nothing was done";
    CliError::new(Exit::Failed, message)
        .cause(error)
        .hint(format!(
            "repair `{}`, or delete it to be without a passphrase",
            path.display()
        ))
}

fn failed(message: &str, error: &dyn std::error::Error) -> CliError {
    CliError::new(Exit::Failed, message).cause(error)
}

fn cannot_hash(error: argon2::password_hash::Error) -> CliError {
    failed("cannot hash the passphrase", &as_io(error))
}

/// The errors of the hash implement the trait for errors only with features that need more crates.
fn as_io(error: argon2::password_hash::Error) -> io::Error {
    io::Error::other(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(dir: &Path, text: &str) -> Passphrase {
        let passphrase = Passphrase {
            path: dir.join("passphrase.json"),
        };
        passphrase.write(&Record::new(text).unwrap()).unwrap();
        passphrase
    }

    #[test]
    fn wrong_tries_are_counted_and_soon_cost_time_that_is_bounded() {
        let home = tempfile::tempdir().unwrap();
        let passphrase = stored(home.path(), "correct horse");
        let now = 1_000_000;
        for tries in 1..=3 {
            let error = passphrase.check("wrong", now).unwrap_err();
            assert!(error.message.starts_with("wrong passphrase"), "{error:?}");
            assert_eq!(passphrase.read().unwrap().wrong_tries, tries);
        }
        let error = passphrase.check("correct horse", now + 1).unwrap_err();
        assert_eq!(error.message, "3 wrong passphrases were entered");
        assert_eq!(error.hint.as_deref(), Some("try again in 1 s"));
        let mut record = passphrase.read().unwrap();
        // The clock was set back.
        assert_eq!(record.delay(now - 1), Duration::ZERO);
        record.wrong_tries = u32::MAX;
        assert_eq!(record.delay(now), MAX_DELAY);
        passphrase.write(&record).unwrap();
        let later = now + MAX_DELAY.as_secs();
        assert_eq!(passphrase.check("correct horse", later).unwrap(), u32::MAX);
        assert_eq!(passphrase.check("correct horse", later).unwrap(), 0);
    }

    #[test]
    fn only_the_hash_is_stored_and_only_the_user_can_read_it() {
        use std::os::unix::fs::PermissionsExt as _;
        let home = tempfile::tempdir().unwrap();
        let passphrase = stored(home.path(), "correct horse");
        let text = fs::read_to_string(&passphrase.path).unwrap();
        assert!(
            text.contains("$argon2id$") && !text.contains("horse"),
            "{text}"
        );
        let mode = fs::metadata(&passphrase.path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let other = tempfile::tempdir().unwrap();
        let other = stored(other.path(), "correct horse").read().unwrap();
        assert_ne!(passphrase.read().unwrap().hash, other.hash);
    }

    #[test]
    fn a_damaged_file_accepts_no_passphrase() {
        use std::os::unix::fs::PermissionsExt as _;
        let home = tempfile::tempdir().unwrap();
        let passphrase = stored(home.path(), "correct horse");
        let whole = fs::read_to_string(&passphrase.path).unwrap();
        for text in [
            "",
            "{}",
            &whole.replace("\"version\": 1", "\"version\": 2"),
            &whole.replace("$argon2id$", "$argon2$"),
            &whole.replace("$argon2id$", ""),
        ] {
            fs::write(&passphrase.path, text).unwrap();
            let error = passphrase.check("correct horse", 0).unwrap_err();
            assert!(
                error.message.starts_with("cannot read"),
                "{text}: {error:?}"
            );
        }
        fs::write(&passphrase.path, &whole).unwrap();
        let open = fs::Permissions::from_mode(0o666);
        fs::set_permissions(&passphrase.path, open).unwrap();
        let error = passphrase.check("correct horse", 0).unwrap_err();
        assert!(error.message.starts_with("cannot read"), "{error:?}");
    }
}
