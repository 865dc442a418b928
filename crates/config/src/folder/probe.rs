//! Asks executables what they are for.

use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::future::join_all;
use tenterhook_process::{CancellationToken, Capture, Command, End, HeldPipe, Limits, Program};

use super::Answer;
use super::Speaks;
use super::cache::Cache;
use super::extension::Extensions;
use super::scan::Candidate;
use super::script::{Language, WORKER, Workers};
use crate::broken::Fault;
use crate::trust::{Approvals, TrustState, hex_digest, read_whole};

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
    /// How long each file may take.
    deadline: Duration,
}

impl<'a> Probes<'a> {
    pub(super) fn open(
        data_dir: Option<&Path>,
        directory: &Path,
        (workers, extensions): (&'a Workers, &'a Extensions),
        deadline: Duration,
    ) -> Self {
        Self {
            cache: Cache::open(data_dir),
            directory: directory.to_owned(),
            workers,
            extensions,
            deadline,
        }
    }

    /// Looks up what files were for before they were changed.
    pub(super) fn recall(&mut self, candidates: &mut [Candidate], approvals: &Approvals) {
        for candidate in candidates {
            let approved = match (&candidate.diverged, &candidate.item) {
                (Some(hook), _) if hook.denies.is_some() => Some(&hook.approved),
                (None, Some((item, TrustState::Changed))) => approvals.before(item),
                _ => None,
            };
            let before = approved.and_then(|approved| approved.files.first());
            let declared = before.and_then(|file| {
                let key = Cache::key(&candidate.found.path, &file.sha256);
                self.cache.recall(&key)
            });
            candidate.known_event = declared
                .and_then(|declared| candidate.found.speaks.event(&declared.0))
                .map(|(event, _)| event);
        }
    }

    /// Asks several at once; the answers come with their places.
    pub(super) async fn ask(&mut self, asked: Vec<(usize, &Candidate)>) -> Vec<(usize, Answer)> {
        let mut scripts = Vec::new();
        let mut answers = Vec::with_capacity(asked.len());
        let mut known = Vec::new();
        let mut programs = Vec::new();
        let mut extensions = Vec::new();
        for (index, candidate) in asked {
            if candidate.found.speaks == Speaks::KodeletExtension {
                // What it registers is asked of the process that is called later, never remembered.
                extensions.push((index, candidate));
            } else if let Some(language) = candidate.language {
                // What a script registers may depend on anything, so it is asked every time.
                scripts.push((index, language, candidate));
            } else if let Some(declared) = self.cache.find(&key(candidate), &candidate.interpreter)
            {
                known.push((index, candidate, declared));
            } else {
                programs.push((index, candidate));
            }
        }
        let (this, deadline) = (&*self, self.deadline);
        let extensions = extensions.into_iter().map(|(index, candidate)| async move {
            let asked = this.extensions.ask(candidate, deadline).await;
            (index, asked.map(Declared))
        });
        let known = known
            .into_iter()
            .map(|(index, candidate, declared)| async move {
                (index, this.served(candidate, Ok(declared)).await)
            });
        let programs = programs.into_iter().map(|(index, candidate)| async move {
            let answer = this.probe(candidate).await;
            let learned = answer.clone().ok().map(|declared| (candidate, declared));
            (index, this.served(candidate, answer).await, learned)
        });
        let (loaded, started, remembered, probed) = tokio::join!(
            this.workers.ask_all(scripts, deadline),
            join_all(extensions),
            join_all(known),
            join_all(programs),
        );
        answers.extend(
            loaded
                .into_iter()
                .map(|(index, it)| (index, it.map(Declared))),
        );
        answers.extend(started);
        answers.extend(remembered);
        for (index, answer, learned) in probed {
            if let Some((candidate, declared)) = learned {
                let read = read_whole(&candidate.run).ok();
                let bytes = read
                    .as_ref()
                    .map(|(bytes, _)| bytes.as_slice())
                    .filter(|bytes| hex_digest(bytes) == candidate.sha256);
                let from = (bytes, candidate.interpreter.as_str());
                self.cache.remember(key(candidate), &declared, from);
            }
            answers.push((index, answer));
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
        let scripts = vec![(0, Language::Program, candidate)];
        let mut asked = self.workers.ask_all(scripts, self.deadline).await;
        match asked.pop() {
            Some((_, asked)) => asked.map(Declared),
            None => answer,
        }
    }

    /// Runs an executable that says by itself what it is for.
    async fn probe(&self, candidate: &Candidate) -> Answer {
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
        probe(&command, self.deadline).await
    }

    /// Keeps what was learned for the next time.
    pub(super) fn keep(&mut self) {
        self.cache.write();
    }
}

fn key(candidate: &Candidate) -> String {
    Cache::key(&candidate.found.path, &candidate.sha256)
}

async fn probe(command: &Command, deadline: Duration) -> Answer {
    let limits = Limits {
        timeout: deadline,
        grace: Duration::from_millis(500),
        stdout: OUTPUT,
        stderr: OUTPUT,
        held_pipe: HeldPipe::Wait,
    };
    let finished = command
        .run(b"", &limits, &CancellationToken::new())
        .await
        .map_err(|error| tenterhook::error_chain(&error))?;
    let failed = |problem: String| {
        Fault::from(format!("run with the argument `hook`, {problem}"))
            .hint("the file must print the name of one event, and exit with status 0")
    };
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
            return Err(failed(format!("it ended with exit status {status}{said}")));
        }
        End::Signaled(signal) => return Err(failed(format!("it was killed by signal {signal}"))),
        End::TimedOut { .. } => {
            let seconds = deadline.as_secs_f64();
            return Err(failed(format!("it did not answer within {seconds} s")));
        }
        End::Cancelled { .. } => return Err("cancelled".into()),
    }
    let text = finished.stdout.text();
    let name = text.trim();
    if name.is_empty() {
        return Err(failed("it printed nothing".to_owned()));
    }
    if name.starts_with('{') {
        return Err(failed("it printed JSON".to_owned()));
    }
    if name.contains(char::is_whitespace) {
        return Err(failed("it printed more than one word".to_owned()));
    }
    Ok(Declared(name.to_owned()))
}
