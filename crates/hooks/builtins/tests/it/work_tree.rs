//! A temporary git work tree, and helpers that run built-ins in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use tempfile::TempDir;
use tenterhook_builtins::builtin::{BuiltinConfig, builtin};
use tenterhook_engine::{
    AnyEvent, AsyncHandler, Call, Envelope, EventRef, ExchangeSlot, HandlerError, Origin, RunNotes,
};
use tenterhook_process::CancellationToken;
use tenterhook_runners::Services;

pub(crate) struct WorkTree {
    folder: TempDir,
}

impl WorkTree {
    /// Creates an empty folder that is not a work tree.
    pub(crate) fn bare() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("work")).unwrap();
        Self { folder }
    }

    /// Creates a work tree without a commit.
    pub(crate) fn new() -> Self {
        let tree = Self::bare();
        tree.git(&["init", "--quiet", "--initial-branch=main"]);
        tree
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Runs git as a user without settings would.
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        let output = Command::new("git")
            .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.org"])
            .args(arguments)
            .current_dir(self.path())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .unwrap();
        assert!(output.status.success(), "git {arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn commit(&self, message: &str) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "--quiet", "--allow-empty", "-m", message]);
    }

    /// Sends an event to a built-in and returns the context that it gives the model.
    pub(crate) async fn context(
        &self,
        name: &str,
        arguments: &[&str],
        dir: &Path,
    ) -> Result<Option<String>, HandlerError> {
        let event = tenterhook_engine::event::TurnStart::default();
        let answer = self
            .handler(name, arguments)
            .handle(&call(event, dir))
            .await?;
        Ok(answer.map(|effect| effect.context.join("\n")))
    }

    pub(crate) fn handler(&self, name: &str, arguments: &[&str]) -> Arc<dyn AsyncHandler> {
        let arguments: Vec<String> = arguments.iter().map(|&text| text.to_owned()).collect();
        let services = Services {
            data_dir: Some(self.data()),
            ..Services::default()
        };
        let setup = BuiltinConfig {
            arguments: &arguments,
            env: &[("GIT_CONFIG_GLOBAL".into(), "/dev/null".into())],
            working_dir: None,
            services: &services,
            events: &[],
            dialect: &crate::native(),
        };
        builtin(name, &setup).unwrap()
    }
}

/// Creates a call of an event in a directory.
pub(crate) fn call(event: impl AnyEvent + 'static, dir: &Path) -> Call {
    let origin = Origin::new("s1", dir.to_owned());
    Call {
        event: EventRef::new(
            Arc::new(event),
            Arc::new(Envelope::new(Arc::new(origin), 1)),
        ),
        timeout: std::time::Duration::from_mins(1),
        cancel: CancellationToken::new(),
        exchange: ExchangeSlot::default(),
        notes: RunNotes::default(),
    }
}
