//! Asks executables what they are for.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tenterhook_process::{
    CancellationToken, Capture, Command, End, HeldPipe, Limits, Program, SpawnError,
};
use tokio::task::JoinSet;

use super::Answer;
use super::Speaks;
use super::cache::Cache;
use super::extension::Extensions;
use super::scan::Candidate;
use super::script::{Language, WORKER, Workers};
use crate::trust::{Approvals, TrustState};

/// How long an executable may take to say what it is for.
const TIMEOUT: Duration = Duration::from_secs(5);

/// How much of what it prints is looked at. A name is shorter.
const OUTPUT: Capture = Capture {
    head: 4 << 10,
    tail: 0,
};

/// The name that an executable declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Declared(pub(super) String);

/// Asks executables, and remembers what they said.
#[derive(Debug)]
pub(super) struct Probes<'a> {
    cache: Cache,
    directory: PathBuf,
    workers: &'a Workers,
    extensions: &'a Extensions,
}

impl<'a> Probes<'a> {
    pub(super) fn open(
        data_dir: Option<&Path>,
        directory: &Path,
        (workers, extensions): (&'a Workers, &'a Extensions),
    ) -> Self {
        Self {
            cache: Cache::open(data_dir),
            directory: directory.to_owned(),
            workers,
            extensions,
        }
    }

    /// Looks up what files were for before they were changed.
    pub(super) fn recall(&mut self, candidates: &mut [Candidate], approvals: &Approvals) {
        for candidate in candidates {
            let Some((item, TrustState::Changed)) = &candidate.item else {
                continue;
            };
            let before = approvals
                .before(item)
                .and_then(|approved| approved.files.first());
            let declared = before.and_then(|file| {
                let key = Cache::key(&candidate.found.path, &file.sha256);
                self.cache.find(&key)
            });
            candidate.known_event = declared
                .and_then(|declared| candidate.found.speaks.event(&declared.0))
                .map(|(event, _)| event);
        }
    }

    /// Asks several at once; the answers come with their places.
    pub(super) async fn ask(&mut self, asked: Vec<(usize, &Candidate)>) -> Vec<(usize, Answer)> {
        let mut answers = Vec::with_capacity(asked.len());
        let mut running = JoinSet::new();
        let mut starting = JoinSet::new();
        let mut asked_by = HashMap::new();
        for (index, candidate) in asked {
            if candidate.found.speaks == Speaks::KodeletExtension {
                // What it registers is asked of the process that is called later, never remembered.
                let asked = self.extensions.ask(candidate);
                starting.spawn(async move { (index, asked.await.map(Declared)) });
                continue;
            }
            let key = Cache::key(&candidate.found.path, &candidate.sha256);
            if let Some(language) = candidate.language {
                // What a script registers may depend on anything, so it is asked every time.
                let answer = self.workers.ask(language, candidate).await;
                answers.push((index, answer.map(Declared)));
                continue;
            }
            if let Some(declared) = self.cache.find(&key) {
                answers.push((index, self.served(candidate, Ok(declared)).await));
                continue;
            }
            let command = Command::new(Program::exec([candidate.run.as_os_str(), "hook".as_ref()]));
            // What is not the project's does not depend on what stands in the project's folder.
            let dir = match candidate.project() {
                Some(_) => Some(self.directory.as_path()),
                None => candidate.run.parent(),
            };
            let command = match dir.filter(|dir| !dir.as_os_str().is_empty()) {
                Some(dir) => command.working_dir(dir.to_owned()),
                None => command,
            };
            asked_by.insert(index, candidate);
            running.spawn(async move { (index, key, probe(&command).await) });
        }
        while let Some(joined) = running.join_next().await {
            let Ok((index, key, mut answer)) = joined else {
                continue;
            };
            if let Ok(declared) = &answer {
                self.cache.remember(key, declared);
            }
            if let Some(candidate) = asked_by.get(&index) {
                answer = self.served(candidate, answer).await;
            }
            answers.push((index, answer));
        }
        while let Some(started) = starting.join_next().await {
            answers.extend(started);
        }
        answers
    }

    /// Asks an executable that says that it is a worker what it registers.
    async fn served(&self, candidate: &Candidate, answer: Answer) -> Answer {
        let is_worker = candidate.found.speaks == Speaks::Tenterhook
            && answer.as_ref().is_ok_and(|declared| declared.0 == WORKER);
        if !is_worker {
            return answer;
        }
        let asked = self.workers.ask(Language::Program, candidate).await;
        asked.map(Declared)
    }

    /// Keeps what was learned for the next time.
    pub(super) fn keep(&mut self) {
        self.cache.write();
    }
}

async fn probe(command: &Command) -> Answer {
    let limits = Limits {
        timeout: TIMEOUT,
        grace: Duration::from_millis(500),
        stdout: OUTPUT,
        stderr: OUTPUT,
        held_pipe: HeldPipe::Wait,
    };
    let finished = command
        .run(b"", &limits, &CancellationToken::new())
        .await
        .map_err(|error| not_started(&error))?;
    match finished.end {
        End::Exited(0) => {}
        End::Exited(status) => {
            let stderr = finished.stderr.text();
            let said = stderr.trim().lines().last().unwrap_or_default();
            let said = if said.is_empty() {
                String::new()
            } else {
                format!(": {}", said.escape_debug())
            };
            return Err(format!("exit status {status}{said}"));
        }
        End::Signaled(signal) => return Err(format!("killed by signal {signal}")),
        End::TimedOut { .. } => {
            return Err(format!("no answer within {} seconds", TIMEOUT.as_secs()));
        }
        End::Cancelled { .. } => return Err("cancelled".to_owned()),
    }
    let text = finished.stdout.text();
    let name = text.trim();
    if name.is_empty() {
        return Err("it prints nothing, expected the name of an event".to_owned());
    }
    if name.starts_with('{') {
        return Err("it prints JSON, expected the name of one event".to_owned());
    }
    if name.contains(char::is_whitespace) {
        return Err("it prints more than one word, expected the name of one event".to_owned());
    }
    Ok(Declared(name.to_owned()))
}

fn not_started(error: &SpawnError) -> String {
    tenterhook::error_chain(error)
}
