//! Python scripts that a fork server runs, beside the same scripts in processes of their own.

use std::path::Path;
use std::time::{Duration, Instant};

use tenterhook_process::{
    CancellationToken, Command, Finished, ForkServer, Limits, Program, PythonScript,
};

use crate::support::{patient, run};

const PATIENCE: Duration = Duration::from_secs(20);

/// One hook and its fork server.
struct Hook {
    command: Command,
    server: ForkServer,
}

impl Hook {
    fn new(dir: &Path, argv: &[&str]) -> Self {
        let program = Program::exec(argv);
        let server = ForkServer::new(PythonScript::of(&program).unwrap());
        let command = Command::new(program).working_dir(dir.to_owned());
        Self { command, server }
    }

    async fn warm(dir: &Path, argv: &[&str]) -> Self {
        let hook = Self::new(dir, argv);
        hook.server.warm(&hook.command, PATIENCE).await.unwrap();
        hook
    }

    async fn fork(&self, stdin: &[u8]) -> Finished {
        let before = self.server.counts().forked;
        let finished = self
            .server
            .run(&self.command, stdin, &patient(), &CancellationToken::new())
            .await
            .unwrap();
        let counts = self.server.counts();
        assert_eq!(counts.forked, before + 1, "{counts:?}");
        finished
    }
}

fn python() -> String {
    std::env::var("TENTERHOOK_INTERNAL__PYTHON").unwrap_or_else(|_| "python3".to_owned())
}

#[tokio::test]
async fn smoke() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("hook.py"), "import sys, json\nprint(sys.stdin.read().upper(), sys.argv, sys.path, __file__)\nsys.exit(7)\n").unwrap();
    let hook = Hook::warm(dir.path(), &[&python(), "hook.py", "a"]).await;
    let began = Instant::now();
    let finished = hook.fork(b"hello").await;
    println!("{:?} {finished:#?}", began.elapsed());
    let began = Instant::now();
    let finished = hook.fork(b"hello").await;
    println!("{:?} {finished:#?}", began.elapsed());
    println!(
        "{:#?}",
        run(&hook.command, b"hello", &Limits::default()).await
    );
}
