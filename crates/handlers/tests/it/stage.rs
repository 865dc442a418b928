//! Script files of other systems on disk, their hooks in an engine, and the worker that serves them.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tenterhook::{Dialect, Dispatcher, Engine, EventKind, HookId, HookSpec, Origin};
use tenterhook_dialects::morphix::Morphix;
use tenterhook_dialects::operator::Operator;
use tenterhook_dialects::pi::Pi;
use tenterhook_handlers::worker::{
    Host, Registered, Script, ScriptHook, Worker, WorkerError, WorkerHandler, node, python,
};

/// A folder of scripts, one worker, and an engine with their hooks.
pub(crate) struct Stage {
    dir: TempDir,
    pub(crate) worker: Worker,
    engine: Engine,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self::with(Engine::new())
    }

    pub(crate) fn with(engine: Engine) -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self {
            worker: python(dir.path()),
            dir,
            engine,
        }
    }

    /// A stage for scripts in JavaScript and TypeScript.
    pub(crate) fn of_node() -> Self {
        let stage = Self::new();
        Self {
            worker: node(stage.dir.path()),
            ..stage
        }
    }

    pub(crate) fn hosted_by(self, host: Arc<dyn Host>) -> Self {
        Self {
            worker: self.worker.hosted_by(host),
            ..self
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes a script, with `DIR` standing for the folder.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let dir = self.dir.path().to_str().unwrap();
        fs::write(&path, text.replace("DIR", dir)).unwrap();
        path
    }

    /// Loads a script without registering its hooks.
    pub(crate) async fn load(
        &self,
        api: &'static str,
        name: &str,
        text: &str,
    ) -> Result<(usize, Registered), WorkerError> {
        let path = self.write(name, text);
        self.worker.load(&Script { path, api }).await
    }

    /// Loads a script and registers its hooks, in the order in which it has them.
    pub(crate) async fn add(&self, api: &'static str, name: &str, text: &str) -> Vec<ScriptHook> {
        let (number, registered) = self.load(api, name, text).await.unwrap();
        let hooks = registered.hooks;
        for (place, hook) in hooks.iter().enumerate() {
            let (kind, dialect) = contract(api, &hook.event);
            let handler = WorkerHandler::new(
                self.worker.clone(),
                (number, place),
                Arc::clone(&dialect),
                &*hook.name,
            );
            let id = HookId::new(format!("{name}:{}", hook.name));
            self.engine.register(HookSpec {
                priority: hook.priority,
                policy: dialect.policy(kind.info(), None),
                ..HookSpec::new(kind, id, Arc::new(handler))
            });
        }
        hooks
    }

    pub(crate) fn hooks(&self) -> Dispatcher {
        self.engine.dispatcher(Origin {
            session_id: "s1".into(),
            cwd: self.dir.path().to_owned(),
            ..Origin::default()
        })
    }

    /// Returns what a handler has written to a file; observers may still be at it.
    pub(crate) async fn written(&self, name: &str) -> String {
        let began = Instant::now();
        loop {
            if let Ok(text) = fs::read_to_string(self.path(name)) {
                return text;
            }
            assert!(began.elapsed() < Duration::from_secs(20), "no {name}");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

fn contract(api: &str, event: &str) -> (EventKind, Arc<dyn Dialect>) {
    match api {
        "operator" => {
            let event = Operator::event(event).unwrap();
            (event.kind, event.dialect())
        }
        "pi" => {
            let event = Pi::event(event).unwrap();
            (event.kind, event.dialect())
        }
        _ => {
            let event = Morphix::event(event).unwrap();
            (event.kind, Morphix::new())
        }
    }
}

/// Runs Python that tests a module of the SDK by itself; it prints `passed` at its end.
pub(crate) fn run_without_host(module: &str, text: &str) {
    let dir = tempfile::tempdir().unwrap();
    let sdk = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sdk/python");
    let text =
        format!("import sys\nsys.path.insert(0, {sdk:?})\nimport tenterhook.{module}\n{text}");
    let path = dir.path().join("test.py");
    fs::write(&path, text).unwrap();
    let output = Command::new("python3")
        .arg("-IB")
        .arg(path)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    let printed = String::from_utf8_lossy(&output.stdout);
    assert_eq!(printed, "passed\n", "{errors}");
}
