//! Script files of other systems on disk, their hooks in an engine, and the worker that serves them.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use serde_json::Value;
use tempfile::TempDir;
use tenterhook_engine::{
    Dialect, Dispatcher, Engine, EventKind, HookId, HookSpec, Matcher, Origin,
};
use tenterhook_runners::worker::{
    Host, Lease, NoHost, Refusal, Registered, Script, ScriptHook, Worker, WorkerError,
    WorkerHandler, node, python,
};
use tenterhook_systems::morphix::Morphix;
use tenterhook_systems::operator::Operator;
use tenterhook_systems::pi::Pi;

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
        self.worker
            .load(&Script {
                path,
                api,
                approved: None,
            })
            .await
    }

    /// Loads a script without registering its hooks, and keeps it loaded.
    pub(crate) async fn lease(
        &self,
        api: &'static str,
        name: &str,
        text: &str,
    ) -> (Lease, Registered) {
        let (_, registered) = self.load(api, name, text).await.unwrap();
        let script = Script {
            path: self.path(name),
            api,
            approved: None,
        };
        let hooks = registered.hooks.clone();
        (self.worker.expect(&script, hooks, None).await, registered)
    }

    /// Loads a script, registers its hooks, and keeps it loaded. After a restart, it hears the starts of sessions again.
    pub(crate) async fn add_leased(&self, api: &'static str, name: &str, text: &str) -> Lease {
        self.add_within(api, name, text, crate::AMPLE).await
    }

    /// Does the same with a time limit for each hook.
    pub(crate) async fn add_within(
        &self,
        api: &'static str,
        name: &str,
        text: &str,
        timeout: Duration,
    ) -> Lease {
        self.add_matching(api, (name, text), timeout, &[]).await
    }

    /// Does the same with the matchers of the first hooks.
    pub(crate) async fn add_matching(
        &self,
        api: &'static str,
        (name, text): (&str, &str),
        timeout: Duration,
        matchers: &[&str],
    ) -> Lease {
        let (lease, registered) = self.lease(api, name, text).await;
        for (place, hook) in registered.hooks.iter().enumerate() {
            let (kind, dialect) = contract(api, &hook.event);
            let handler = WorkerHandler::leased(
                self.worker.clone(),
                (lease.clone(), place),
                Arc::clone(&dialect),
                &*hook.name,
            );
            let id = HookId::new(format!("{name}:{}", hook.name));
            let matcher = matchers.get(place).copied().unwrap_or_default();
            self.engine.register(HookSpec {
                timeout,
                matcher: Matcher::parse(matcher).unwrap(),
                policy: dialect.policy(kind.info(), None),
                ..HookSpec::new(kind, id, Arc::new(handler))
            });
        }
        lease
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
                timeout: crate::AMPLE,
                priority: hook.priority,
                policy: dialect.policy(kind.info(), None),
                ..HookSpec::new(kind, id, Arc::new(handler))
            });
        }
        hooks
    }

    pub(crate) fn hooks(&self) -> Dispatcher {
        self.hooks_of("s1")
    }

    /// Returns the hooks as a session has them.
    pub(crate) fn hooks_of(&self, session: &str) -> Dispatcher {
        self.engine
            .dispatcher(Origin::new(session, self.dir.path().to_owned()))
    }

    /// Returns what is wrong with the hooks.
    pub(crate) fn problems(&self) -> Vec<String> {
        let hooks = self.engine.hooks();
        hooks.into_iter().filter_map(|hook| hook.problem).collect()
    }

    /// Returns what a handler has written to a file. Observers may still be running.
    pub(crate) async fn written(&self, name: &str) -> String {
        let began = Instant::now();
        loop {
            if let Ok(text) = fs::read_to_string(self.path(name)) {
                return text;
            }
            assert!(began.elapsed() < crate::AMPLE, "no {name}");
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

/// Makes the modules of the systems importable, as the plugin for pytest does.
pub(crate) const PROVIDED: &str =
    "from tenterhook.testing import provide_modules\nprovide_modules('/nowhere')\n";

/// Runs Python that uses the package of the SDK. It prints `passed` at its end.
pub(crate) fn run_without_host(text: &str) {
    let dir = tempfile::tempdir().unwrap();
    let sdk = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../sdk/python");
    let text = format!("import sys\nsys.path.insert(0, {sdk:?})\n{text}");
    let path = dir.path().join("test.py");
    fs::write(&path, text).unwrap();
    let output = Command::new("python3")
        .arg("-IB")
        .arg(path)
        .current_dir(dir.path())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    let printed = String::from_utf8_lossy(&output.stdout);
    assert_eq!(printed, "passed\n", "{errors}");
}

/// A program that keeps what scripts print.
#[derive(Debug, Default)]
pub(crate) struct Listener(Mutex<Vec<String>>);

impl Listener {
    /// Waits until this many lines have arrived, and returns them.
    pub(crate) async fn lines(&self, number: usize) -> Vec<String> {
        let began = Instant::now();
        loop {
            let heard = self.0.lock().unwrap().clone();
            if heard.len() >= number {
                return heard;
            }
            let waited = began.elapsed();
            assert!(waited < crate::AMPLE, "only {heard:?}");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

impl Host for Listener {
    like_no_host!(has_ui flags script_session main_session add);

    fn is_strict(&self) -> bool {
        false
    }

    fn on_output(&self, _worker: &str, line: &str) {
        self.0.lock().unwrap().push(line.to_owned());
    }

    fn answer<'a>(
        &'a self,
        method: &'a str,
        params: &'a Value,
    ) -> BoxFuture<'a, Result<Value, Refusal>> {
        NoHost.answer(method, params)
    }
}
