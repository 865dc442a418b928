//! Checks that a script is still the version in force before a worker loads it again.

use std::fmt;
use std::sync::Arc;

/// Computes the version of a script from its files. The error describes a file that cannot be read.
type Read = dyn Fn() -> Result<String, String> + Send + Sync;

/// The version of a script or program that is in force. Before the script is loaded again, its
/// files are compared with this version.
#[derive(Clone)]
pub struct ScriptVersion {
    name: String,
    in_force: String,
    read: Arc<Read>,
}

impl ScriptVersion {
    /// Makes the version `in_force` of a script that messages call `name`. `read` returns the
    /// version of the files at the time of the call.
    pub fn new(
        name: impl Into<String>,
        in_force: impl Into<String>,
        read: impl Fn() -> Result<String, String> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            in_force: in_force.into(),
            read: Arc::new(read),
        }
    }

    /// Returns whether both are the same version.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.in_force == other.in_force
    }

    /// Fails if the files have changed.
    pub(super) async fn check(version: Option<&Self>) -> Result<(), String> {
        let Some(Self {
            name,
            in_force,
            read,
        }) = version
        else {
            return Ok(());
        };
        let read = Arc::clone(read);
        let now = tokio::task::spawn_blocking(move || read()).await;
        match now {
            Ok(Ok(now)) if now == *in_force => Ok(()),
            Ok(Ok(_)) => Err(format!(
                "`{name}` or a file next to it has changed since it was loaded; type `/reload` to use the new version"
            )),
            Ok(Err(problem)) => Err(format!(
                "`{name}` cannot be loaded again: {problem}; repair it, then type `/reload`"
            )),
            Err(_) => Err(format!(
                "`{name}` cannot be compared with the version in force"
            )),
        }
    }
}

impl fmt::Debug for ScriptVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptVersion")
            .field("name", &self.name)
            .field("in_force", &self.in_force)
            .finish_non_exhaustive()
    }
}
