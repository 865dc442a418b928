//! Whether what a worker would load again is still the version in force.

use std::fmt;
use std::sync::Arc;

/// Reads what stands for the files of a script. The error describes a file that cannot be read.
type Read = dyn Fn() -> Result<String, String> + Send + Sync;

/// The version of a script, or of a program, that is in force. Before it is loaded again its files are compared with it.
#[derive(Clone)]
pub struct ScriptVersion {
    name: String,
    in_force: String,
    read: Arc<Read>,
}

impl ScriptVersion {
    /// Makes the version `in_force` of what people know by a name. `read` returns what stands for the files as they are
    /// when it is called.
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

    /// Fails if the files are not those in force any more.
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
                "`{name}`, or a file next to it, has changed since it was loaded; type `/reload` to put the new version in force"
            )),
            Ok(Err(problem)) => Err(format!(
                "`{name}` cannot be loaded again: {problem}; type `/reload` once it is repaired"
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
