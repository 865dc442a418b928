//! Asks files which hooks they have.

use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::future::join_all;
use tenterhook_files::{hex_digest, read_whole};
use tenterhook_hookfile::SourceProblem;
use tenterhook_process::{CancellationToken, Capture, Command, End, HeldPipe, Limits, Program};
use tenterhook_systems::native;
use tenterhook_trust::{Approvals, TrustState};

use super::candidate::Candidate;
use super::event_names::executable_event;
use super::language::Language;
use super::probe_cache::ProbeCache;
use super::probe_output::{ProbeOutput, ProbeResult, WORKER};
use super::processes::FolderProcesses;
use crate::runner_feature::RunnerFeature;

/// How much of the output is read. The name of an event is much shorter.
const OUTPUT: Capture = Capture {
    head: 4 << 10,
    tail: 0,
};

/// Asks files which hooks they have, and remembers the output of executables.
#[derive(Debug)]
pub(super) struct Probes<'a> {
    cache: ProbeCache,
    directory: PathBuf,
    processes: &'a FolderProcesses,
    /// How long each file may take.
    deadline: Duration,
}

/// Returns the feature that a file needs to run.
fn runner_of(candidate: &Candidate) -> RunnerFeature {
    let is_extension = candidate.found.kind.extension_programs().is_some();
    if is_extension || candidate.language.is_some() {
        RunnerFeature::Workers
    } else {
        RunnerFeature::Command
    }
}

impl<'a> Probes<'a> {
    pub(super) fn open(
        data_dir: Option<&Path>,
        directory: &Path,
        processes: &'a FolderProcesses,
        deadline: Duration,
    ) -> Self {
        Self {
            cache: ProbeCache::open(data_dir),
            directory: directory.to_owned(),
            processes,
            deadline,
        }
    }

    /// Looks up the events that changed files declared before the change.
    pub(super) fn recall(&mut self, candidates: &mut [Candidate], approvals: &Approvals) {
        for candidate in candidates {
            let approved = match (&candidate.diverged, &candidate.item) {
                (Some(hook), _) if hook.denies.is_some() => Some(&hook.approved),
                (None, Some((item, TrustState::Changed))) => approvals.before(item),
                _ => None,
            };
            let before = approved.and_then(|approved| approved.files.first());
            let declared = before.and_then(|file| {
                let key = ProbeCache::key(&candidate.found.path, &file.sha256);
                self.cache.recall(&key)
            });
            candidate.known_event = declared
                .and_then(|declared| executable_event(candidate.found.kind, &declared.0).ok())
                .map(|declared| declared.event);
        }
    }

    /// Asks several files in parallel. Returns each result with the index of its file.
    pub(super) async fn ask(
        &mut self,
        asked: Vec<(usize, &Candidate)>,
    ) -> Vec<(usize, ProbeResult)> {
        let mut scripts = Vec::new();
        let mut answers = Vec::with_capacity(asked.len());
        let mut known = Vec::new();
        let mut programs = Vec::new();
        let mut extensions = Vec::new();
        for (index, candidate) in asked {
            if let Some(problem) = runner_of(candidate).problem(&candidate.found.name) {
                answers.push((index, Err(problem.into())));
            } else if let Some(programs) = candidate.found.kind.extension_programs() {
                // The registration is tied to the running process, so it is never cached.
                extensions.push((index, programs, candidate));
            } else if let Some(language) = candidate.language {
                // The hooks of a script may depend on anything, so it is asked every time.
                scripts.push((index, language, candidate));
            } else if let Some(declared) = self.cache.find(&key(candidate), &candidate.interpreter)
            {
                known.push((index, candidate, declared));
            } else {
                programs.push((index, candidate));
            }
        }
        let (this, deadline) = (&*self, self.deadline);
        let extensions = extensions
            .into_iter()
            .map(|(index, programs, candidate)| async move {
                let asked = this
                    .processes
                    .ask_extension(programs, candidate, deadline)
                    .await;
                (index, asked.map(ProbeOutput))
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
            this.processes.load_scripts(scripts, deadline),
            join_all(extensions),
            join_all(known),
            join_all(programs),
        );
        answers.extend(
            loaded
                .into_iter()
                .map(|(index, it)| (index, it.map(ProbeOutput))),
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

    /// Asks an executable that declares itself a worker what it registers.
    async fn served(&self, candidate: &Candidate, answer: ProbeResult) -> ProbeResult {
        let executables = candidate.found.kind.executables.as_ref();
        let is_worker = executables.is_some_and(|it| it.may_be_workers)
            && answer.as_ref().is_ok_and(|declared| declared.0 == WORKER);
        if !is_worker {
            return answer;
        }
        let scripts = vec![(0, Language::Program, candidate)];
        let mut asked = self.processes.load_scripts(scripts, self.deadline).await;
        match asked.pop() {
            Some((_, asked)) => asked.map(ProbeOutput),
            None => answer,
        }
    }

    /// Asks an executable for the name of its event.
    async fn probe(&self, candidate: &Candidate) -> ProbeResult {
        let command = Command::new(Program::exec([candidate.run.as_os_str(), "hook".as_ref()]));
        let command = candidate.with_search_path(command);
        // A file outside of the project must not depend on the content of the project's folder.
        let dir = match candidate.project() {
            Some(_) => Some(self.directory.as_path()),
            None => candidate.run.parent(),
        };
        let command = match dir.filter(|dir| !dir.as_os_str().is_empty()) {
            Some(dir) => command.working_dir(dir.to_owned()),
            None => command,
        };
        probe(&command, self.deadline)
            .await
            .map_err(|problem| not_declared(candidate, &problem))
    }

    /// Writes the cache.
    pub(super) fn keep(&mut self) {
        self.cache.write();
    }
}

fn key(candidate: &Candidate) -> String {
    ProbeCache::key(&candidate.found.path, &candidate.sha256)
}

/// Returns the problem of an executable that does not declare its event.
fn not_declared(candidate: &Candidate, problem: &str) -> SourceProblem {
    let (kind, path) = (candidate.found.kind, &candidate.found.path);
    let message = format!(
        "the executable was called with `hook` to print the name of its event, but {problem}"
    );
    let hint = if kind.language(path).is_some() {
        format!(
            "a script that registers hooks must not be executable: run `chmod -x '{}'`; any other program prints the \
             name of one event and exits with status 0",
            path.display()
        )
    } else if native::FOLDER.language(path).is_some() {
        format!(
            "a script that registers hooks belongs in `.tenterhook/hooks` and must not be executable (`chmod -x`); an \
             executable hook for {} prints the name of one event and exits with status 0",
            kind.system
        )
    } else {
        "let it print the name of one event and exit with status 0; a file that is not a hook belongs in another \
         folder"
            .to_owned()
    };
    SourceProblem::from(message).hint(hint)
}

/// Runs an executable, and returns the name that it prints, or what went wrong.
async fn probe(command: &Command, deadline: Duration) -> Result<ProbeOutput, String> {
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
        .map_err(|error| format!("it cannot run: {}", tenterhook_engine::error_chain(&error)))?;
    match finished.end {
        End::Exited(0) => {}
        End::Exited(status) => {
            let stderr = finished.stderr.text();
            let last = stderr.trim().lines().last().unwrap_or_default();
            let last = if last.is_empty() {
                String::new()
            } else {
                format!(": {}", escape_line(last))
            };
            return Err(format!("it ended with exit status {status}{last}"));
        }
        End::Signaled(signal) => return Err(format!("it was killed by signal {signal}")),
        End::TimedOut { .. } => {
            let seconds = deadline.as_secs_f64();
            return Err(format!("it did not answer within {seconds} s"));
        }
        End::Cancelled { .. } => return Err("it was cancelled".into()),
    }
    let text = finished.stdout.text();
    let name = text.trim();
    if name.is_empty() {
        return Err("it printed nothing".to_owned());
    }
    if name.starts_with('{') {
        return Err("it printed JSON".to_owned());
    }
    if name.contains(char::is_whitespace) {
        return Err("it printed more than one word".to_owned());
    }
    Ok(ProbeOutput(name.to_owned()))
}

/// Escapes the characters of a line that a terminal may act on. Quotes stay as they are.
fn escape_line(line: &str) -> String {
    let mut escaped = String::with_capacity(line.len());
    for character in line.chars() {
        if matches!(character, '\'' | '"' | '\\') {
            escaped.push(character);
        } else {
            escaped.extend(character.escape_debug());
        }
    }
    escaped
}
