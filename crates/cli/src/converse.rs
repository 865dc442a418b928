//! The conversation of `tenterhook run`: prompts in, runs and a report out.

mod command;
mod lead;
mod model;
mod own;
mod passage;
mod program;
mod rpc;

use std::io::IsTerminal as _;
use std::sync::Arc;

use serde::Serialize;
use tenterhook::event::{InputSource, SessionEndReason, SessionSource};
use tenterhook::{Engine, SessionId, Usage};
use tenterhook_agent::extension::{CommandEnd, ForeignCommand, ScriptHost};
use tenterhook_agent::{Agent, Frontend as _, Leaving, Prompt, RunEnd, RunReport, UserCommand};
use tenterhook_config::{ChangeKind, Reloaded, Reloader};

use self::command::{Own, Row, TABLE};
pub(crate) use self::program::Program;
use crate::args::Format;
use crate::check::count;
use crate::editor::{Entered, Word};
use crate::error::CliError;
use crate::exit::Exit;
use crate::hooks::warn;
use crate::interrupt::Interrupts;
use crate::output::{self, style, styled};
use crate::safe::{inset, safe, safe_line};
use crate::table::{self, Cell};
use crate::terminal::Terminal;
use crate::tree;

/// The most prompts of scripts that follow one line. Scripts that keep an agent going for ever are stopped.
const MOST_IN_A_ROW: usize = 8;

/// The most entries of a session that a line is completed to.
const MOST_ENTRIES: usize = 100;

/// Who talks.
pub(crate) struct Conversation<'a> {
    pub(crate) agent: Agent,
    /// Why its first session starts.
    pub(crate) source: SessionSource,
    /// The commands that extensions bring.
    pub(crate) commands: Vec<ForeignCommand>,
    /// What scripts see of the agent, and want it to do.
    pub(crate) scripts: Arc<ScriptHost>,
    /// Keeps the hooks as their files are.
    pub(crate) reloader: Option<Reloader>,
    /// Where the hooks are registered.
    pub(crate) engine: Engine,
    pub(crate) terminal: &'a Terminal,
    pub(crate) interrupts: &'a Interrupts,
    /// The user wants the session to end.
    pub(crate) is_over: bool,
    /// What is printed.
    pub(crate) format: Format,
    /// Whoever follows on stdout instead of a person.
    pub(crate) program: Program,
    /// A line that begins with `!` is a command of the user.
    pub(crate) has_shell: bool,
}

/// What came of the prompts of a session.
#[derive(Default)]
struct Record {
    runs: Vec<Run>,
    /// The worst status so far.
    exit: Option<Exit>,
    /// Why the last command that came to nothing did.
    problem: Option<String>,
    broken: Option<std::io::Error>,
}

/// What came of one prompt.
#[derive(Serialize)]
struct Run {
    prompt: String,
    end: &'static str,
    reason: Option<String>,
    response: String,
    turns: u32,
    usage: Usage,
    cost: Option<f64>,
}

/// A session as a program reads it: its last run, and all of them.
#[derive(Serialize)]
struct Report<'a> {
    session_id: &'a SessionId,
    end: Option<&'a str>,
    reason: Option<&'a str>,
    response: Option<&'a str>,
    turns: Option<u32>,
    usage: Option<&'a Usage>,
    cost: Option<f64>,
    runs: &'a [Run],
}

impl Record {
    fn note(&mut self, exit: Exit) {
        self.exit = self.exit.max(Some(exit));
    }

    fn report<'a>(&'a self, session_id: &'a SessionId) -> Report<'a> {
        let last = self.runs.last();
        Report {
            session_id,
            end: last.map(|run| run.end),
            reason: last.and_then(|run| run.reason.as_deref()),
            response: last.map(|run| run.response.as_str()),
            turns: last.map(|run| run.turns),
            usage: last.map(|run| &run.usage),
            cost: last.and_then(|run| run.cost),
            runs: &self.runs,
        }
    }
}

impl Conversation<'_> {
    /// Leads the conversation and closes the session, however it ends. Without a prompt they come from stdin.
    pub(crate) async fn lead(mut self, prompt: Option<&str>) -> Result<Exit, CliError> {
        let mut record = Record::default();
        self.warn_of_hidden();
        if self.terminal.is_interactive() && prompt.is_none() {
            self.interrupts.outlive();
        }
        let cancel = self.interrupts.token();
        let is_started = tokio::select! {
            biased;
            () = cancel.cancelled() => false,
            () = self.agent.start_session(self.source) => true,
        };
        self.tell_resources();
        match (prompt, self.program.take_caller()) {
            _ if !is_started => record.note(Exit::Interrupted),
            (Some(prompt), _) => self.take(prompt, &mut record).await,
            (None, Some(caller)) => Box::pin(self.serve(caller, &mut record)).await,
            (None, None) => self.ask_all(&mut record).await,
        }
        let session = self.agent.session().id().clone();
        self.terminal.settle();
        self.agent.end_session(SessionEndReason::Quit).await;
        self.terminal.settle();
        let report = record.report(&session);
        match self.format {
            Format::Json => output::json(&report),
            Format::Jsonl => self.program.report(&report).await,
            Format::Text | Format::Answer | Format::Rpc => {}
        }
        self.program.finish().await;
        match record.broken.or_else(|| self.terminal.take_broken()) {
            Some(error) => {
                Err(CliError::new(Exit::Failed, "cannot read standard input").cause(&error))
            }
            None => Ok(record.exit.unwrap_or(Exit::Done)),
        }
    }

    /// Takes every line of stdin as a prompt or a command.
    async fn ask_all(&mut self, record: &mut Record) {
        if self.terminal.is_interactive() {
            let text = "`/help` shows the commands; Ctrl-D ends the session.";
            self.terminal.line(&styled(style::QUIET, text));
        }
        loop {
            let Some(line) = self.next_line(record).await else {
                return;
            };
            match line.as_str() {
                "" => {}
                line => {
                    // The session ends for the hooks that there are before others are loaded.
                    if command_name(line) != Some("reload") {
                        self.reload().await;
                    }
                    self.take(line, record).await;
                }
            }
            if self.is_over || self.scripts.is_over() {
                return;
            }
            if self.interrupts.is_interrupted() {
                if !self.terminal.is_interactive() {
                    return;
                }
                self.interrupts.go_on();
            }
        }
    }

    /// Takes a line that is a prompt or a command, and what scripts want the agent to do then.
    async fn take(&mut self, line: &str, record: &mut Record) {
        if let Some(command) = UserCommand::read(line).filter(|_| self.has_shell) {
            self.run_for_user(command, record).await;
            return self.go_on(record).await;
        }
        let Some(name) = command_name(line) else {
            self.ask(line, record).await;
            return self.go_on(record).await;
        };
        if let Some(row) = command::find(name) {
            self.carry_out(row, line, record).await;
        } else {
            let has = |command: &&ForeignCommand| command.names.iter().any(|own| own == name);
            match self.commands.iter().find(has).cloned() {
                Some(command) => self.run(&command, line, record).await,
                None if self.agent.resources().has(name) => self.ask(line, record).await,
                None => self.refuse(name, record),
            }
        }
        if !self.is_over {
            self.go_on(record).await;
        }
    }

    /// Carries out a command of the conversation's own.
    async fn carry_out(&mut self, row: &Row, line: &str, record: &mut Record) {
        let words: Vec<&str> = line.split_whitespace().skip(1).collect();
        match (row.own, words.as_slice()) {
            (Own::Compact, instructions) => {
                self.compact(text_of(instructions), record).await;
            }
            (Own::New, []) => self.begin_anew(record).await,
            (Own::Resume, [id]) => self.resume(id, record).await,
            (Own::Fork, [entry]) => self.fork(&(*entry).into(), record).await,
            (Own::Tree, []) => self.terminal.lines(tree::lines(self.agent.session())),
            (Own::Tree, [entry]) => {
                self.go_to(&(*entry).into(), Leaving::default(), record)
                    .await;
            }
            (Own::Tree, [entry, "summary", instructions @ ..]) => {
                let leaving = Leaving {
                    instructions: text_of(instructions),
                    ..Leaving::summarised()
                };
                self.go_to(&(*entry).into(), leaving, record).await;
            }
            (Own::Label, [entry, label @ ..]) => {
                self.label(&(*entry).into(), text_of(label).as_deref(), record)
                    .await;
            }
            (Own::Name, [_, ..]) => self.name(&words.join(" ")).await,
            (Own::Hooks, []) => self.show_hooks(),
            (Own::Reload, []) => self.reload_all().await,
            (Own::Model, []) => self.show_models(),
            (Own::Model, [name]) => self.choose_model(name, record).await,
            (Own::Thinking, []) => self.show_thinking(),
            (Own::Thinking, [level]) => self.choose_thinking(level, record).await,
            (Own::Help, []) => self.help(),
            (Own::Quit, []) => self.is_over = true,
            _ => self.correct(row, record),
        }
    }

    /// Says how a command is written.
    fn correct(&self, row: &Row, record: &mut Record) {
        let ways: Vec<String> = row.ways().map(|way| format!("`{way}`")).collect();
        let hint = match row.own {
            Own::Fork | Own::Tree | Own::Label => "; `/tree` shows the entries",
            Own::Resume => "; `tenterhook sessions list` shows the sessions",
            Own::Model => "; `/model` shows the models",
            Own::Thinking => "; `/thinking` shows the levels",
            Own::Compact
            | Own::New
            | Own::Name
            | Own::Hooks
            | Own::Reload
            | Own::Help
            | Own::Quit => "",
        };
        let text = format!("Expected {}{hint}", ways.join(" or "));
        self.fail(record, Exit::Usage, text);
    }

    /// Shows every command.
    fn help(&self) {
        let own = TABLE.iter().flat_map(|row| {
            let ways = row.ways().enumerate();
            ways.map(|(nth, way)| (way, if nth == 0 { row.does } else { "" }.to_owned()))
        });
        let brought = self.commands.iter().map(|command| {
            (
                safe_line(&command.to_string()),
                safe_line(&command.description),
            )
        });
        let rows: Vec<Vec<Cell>> = own
            .chain(brought)
            .chain(self.resource_rows())
            .map(|(way, does)| vec![(way, style::NAME), table::plain(does)])
            .collect();
        self.terminal.lines(table::lines(&rows));
    }

    /// Works on the prompts of scripts.
    async fn go_on(&mut self, record: &mut Record) {
        for _ in 0..MOST_IN_A_ROW {
            if self.scripts.is_over() || self.interrupts.is_interrupted() {
                return;
            }
            self.grant_all(record).await;
            let Some(prompt) = self.scripts.take_prompt() else {
                return;
            };
            self.terminal.line(&format!("> {}", inset(&prompt, 2)));
            let prompt = Prompt {
                source: InputSource::Extension,
                ..Prompt::from(prompt)
            };
            self.ask(prompt, record).await;
        }
        let forgotten = self.scripts.forget_prompts();
        if forgotten > 0 {
            let prompts = count(forgotten, "prompt");
            warn(format_args!(
                "scripts kept the agent going {MOST_IN_A_ROW} times in a row; it stops now, and {prompts} of theirs are dropped"
            ));
        }
    }

    /// Runs a command of an extension.
    async fn run(&mut self, command: &ForeignCommand, line: &str, record: &mut Record) {
        let cancel = self.interrupts.token();
        let end = self.run_granting(command, line, &cancel, record).await;
        self.terminal.settle();
        match end {
            Ok(CommandEnd::Prompt(prompt)) => self.ask(prompt, record).await,
            Ok(CommandEnd::Passed) => self.ask(line, record).await,
            Ok(CommandEnd::Respond(text)) => {
                self.terminal
                    .lines(text.lines().map(|line| safe(line).clone()));
            }
            Ok(_) => {}
            Err(_) if cancel.is_cancelled() => record.note(Exit::Interrupted),
            Err(failure) => {
                record.note(Exit::Failed);
                let text = inset(&failure.to_string(), 4);
                output::note(&text);
                record.problem = Some(text);
            }
        }
    }

    /// Says that there is no such command.
    fn refuse(&self, name: &str, record: &mut Record) {
        let brought = self.commands.iter().map(ToString::to_string);
        let own = TABLE.iter().map(|row| format!("/{}", row.name));
        let names: Vec<String> = brought
            .chain(self.resource_names())
            .chain(own)
            .map(|name| format!("`{}`", safe(&name)))
            .collect();
        let text = format!(
            "There is no command `/{}`; there are {}.",
            safe(name),
            names.join(", ")
        );
        self.fail(record, Exit::Usage, text);
    }

    /// Says why a command came to nothing, and notes it. Who sits at the terminal has seen it.
    fn fail(&self, record: &mut Record, exit: Exit, text: String) {
        output::note(&text);
        record.problem = Some(text);
        if !self.terminal.is_interactive() {
            record.note(exit);
        }
    }

    /// Says which commands of extensions cannot be reached.
    fn warn_of_hidden(&self) {
        let names = self.commands.iter().flat_map(|command| &command.names);
        for name in names.filter(|name| command::find(name).is_some()) {
            warn(format_args!(
                "an extension's command `/{}` is never run: `tenterhook run` has one of that name",
                safe_line(name)
            ));
        }
    }

    async fn next_line(&self, record: &mut Record) -> Option<String> {
        self.offer_words();
        let mut was_pressed = false;
        loop {
            let cancel = self.interrupts.token();
            let entered = tokio::select! {
                biased;
                () = cancel.cancelled() => {
                    if self.terminal.has_editor() || !self.interrupts.go_on_at_prompt() {
                        record.note(Exit::Interrupted);
                        return None;
                    }
                    // The terminal has thrown away what was written.
                    Ok(Entered::Interrupted)
                }
                entered = self.terminal.prompt() => entered,
            };
            match entered {
                Ok(Entered::Line(line)) => return Some(line.trim().to_owned()),
                Ok(Entered::Cleared) => was_pressed = false,
                Ok(Entered::Interrupted) if was_pressed => {
                    record.note(Exit::Interrupted);
                    return None;
                }
                Ok(Entered::Interrupted) => {
                    was_pressed = true;
                    self.terminal
                        .line("Ctrl-C again ends the session; so does Ctrl-D.");
                }
                Ok(Entered::End) => return None,
                Err(error) => {
                    record.broken = Some(error);
                    return None;
                }
            }
        }
    }

    /// Lets lines be completed to what there is now.
    fn offer_words(&self) {
        self.terminal.complete(|words| {
            self.agent.cwd().clone_into(&mut words.cwd);
            words.commands = self.command_words();
            let entries = self.agent.session().tree().into_iter().rev();
            words.entries = entries
                .take(MOST_ENTRIES)
                .map(|entry| Word {
                    text: entry.id.to_string(),
                    about: format!("{}: {}", tree::kind_of(entry), tree::text_of(entry)),
                    form: String::new(),
                })
                .collect();
        });
    }

    /// Returns every command, with what may stand behind its name.
    fn command_words(&self) -> Vec<Word> {
        let own = TABLE.iter().map(|row| Word {
            text: row.name.to_owned(),
            about: row.does.to_owned(),
            form: row.forms.last().copied().unwrap_or_default().to_owned(),
        });
        let brought = self.commands.iter().flat_map(|command| {
            command.names.iter().map(|name| Word {
                text: safe_line(name),
                about: safe_line(&command.description),
                form: String::new(),
            })
        });
        let resources = self.resource_rows().into_iter().map(|(way, about)| {
            let (name, form) = way.split_once(' ').unwrap_or((&way, ""));
            Word {
                text: name.trim_start_matches('/').to_owned(),
                about,
                form: form.to_owned(),
            }
        });
        own.chain(brought).chain(resources).collect()
    }

    /// Takes the hooks as their files are now, and says what has changed.
    async fn reload(&mut self) {
        let Some(reloader) = self.reloader.as_mut() else {
            return;
        };
        let cancel = self.interrupts.token();
        if let Some(news) = cancel.run_until_cancelled(reloader.follow()).await {
            self.tell(news);
        }
    }

    fn tell(&self, news: Reloaded) {
        for problem in &news.problems {
            warn(safe_line(problem));
        }
        for change in news.changes {
            let line = safe_line(&change.to_string());
            let is_wanted = matches!(
                change.kind,
                ChangeKind::Reloaded { .. } | ChangeKind::Removed
            );
            if !is_wanted {
                warn(line);
            } else if self.format == Format::Text {
                output::note(line);
            }
        }
    }

    /// Works on a prompt. An interrupt cancels it, and everything that it started.
    async fn ask(&mut self, prompt: impl Into<Prompt>, record: &mut Record) {
        let prompt = prompt.into();
        let text = prompt.text.clone();
        self.terminal.take_error();
        self.terminal.wait_for("waiting for the model");
        let cancel = self.interrupts.token();
        let report = self.agent.prompt(prompt, &cancel).await;
        self.terminal.settle();
        let ending = Ending::of(&report.end);
        record.note(ending.exit);
        let was_told = self.terminal.take_error() && ending.is_told;
        if let Some(reason) = &ending.reason
            && matches!(self.format, Format::Text | Format::Answer)
            && !was_told
        {
            output::note(format_args!("The run ended: {}", inset(reason, 4)));
        }
        if self.format == Format::Answer && !report.response.is_empty() {
            let is_shown = std::io::stdout().is_terminal();
            let answer = report.response.trim_end_matches('\n');
            output::line(if is_shown {
                safe(answer)
            } else {
                answer.to_owned()
            });
        }
        record.runs.push(run(&text, ending, report));
    }

    async fn compact(&mut self, instructions: Option<String>, record: &mut Record) {
        let before = self.agent.context_tokens();
        self.terminal.wait_for("waiting for the summary");
        let cancel = self.interrupts.token();
        let compacted = self.agent.compact(instructions, &cancel).await;
        self.terminal.settle();
        match compacted {
            _ if cancel.is_cancelled() => {
                record.note(Exit::Interrupted);
                output::note("Not compacted: it was interrupted");
            }
            Ok(_) => self
                .terminal
                .line(&format!("Compacted a conversation of {before} tokens.")),
            Err(error) => {
                let text = format!("Not compacted: {}", inset(&error.to_string(), 4));
                output::note(&text);
                record.problem = Some(text);
            }
        }
    }
}

/// Loads the hooks of the files as they are now, because somebody asked for it.
async fn load_anew(reloader: &mut Option<Reloader>, interrupts: &Interrupts) -> Option<Reloaded> {
    let cancel = interrupts.token();
    let reloading = reloader.as_mut()?.reload();
    cancel.run_until_cancelled(reloading).await
}

/// Returns the words of a line as a text, if there are any.
fn text_of(words: &[&str]) -> Option<String> {
    (!words.is_empty()).then(|| words.join(" "))
}

/// Returns the name of the command that a line is meant as. A path is none.
fn command_name(line: &str) -> Option<&str> {
    let word = line.split_whitespace().next().unwrap_or_default();
    let name = word.strip_prefix('/')?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || ['-', '_', ':'].contains(&c);
    (name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(is_name))
        .then_some(name)
}

fn run(prompt: &str, ending: Ending, report: RunReport) -> Run {
    Run {
        prompt: prompt.to_owned(),
        end: ending.word,
        reason: ending.reason,
        response: report.response,
        turns: report.turns,
        usage: report.usage,
        cost: report.cost,
    }
}

/// What a person, a program and a shell are told of how a run ended.
struct Ending {
    word: &'static str,
    /// Why the run ended before the model was done.
    reason: Option<String>,
    /// The agent says so itself, as an error.
    is_told: bool,
    exit: Exit,
}

impl Ending {
    fn of(end: &RunEnd) -> Self {
        let ending = |word, reason, exit| Self {
            word,
            reason,
            is_told: matches!(
                end,
                RunEnd::HookBlocked { .. } | RunEnd::LoopDetected { .. } | RunEnd::Error { .. }
            ),
            exit,
        };
        match end {
            RunEnd::Completed => ending("completed", None, Exit::Done),
            RunEnd::Handled => ending("handled", None, Exit::Done),
            RunEnd::Canceled => ending(
                "canceled",
                Some("it was interrupted".to_owned()),
                Exit::Interrupted,
            ),
            RunEnd::HookBlocked { event, reason } => ending(
                "hook_blocked",
                Some(format!("a {event} hook stopped it: {reason}")),
                Exit::Stopped,
            ),
            RunEnd::LoopDetected { tool } => {
                let reason =
                    format!("the model called `{tool}` with the same arguments again and again");
                ending("loop_detected", Some(reason), Exit::Run)
            }
            RunEnd::MaxIterations { limit } => ending(
                "max_iterations",
                Some(format!("the cap of {limit} model calls was reached")),
                Exit::Run,
            ),
            RunEnd::Error { message } => ending("error", Some(message.clone()), Exit::Run),
            other => ending("unknown", Some(format!("{other:?}")), Exit::Run),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_after_a_slash_is_a_command_and_a_path_is_none() {
        for (line, expected) in [
            ("/compct", Some("compct")),
            ("/help me", Some("help")),
            ("/my_plan:a-2", Some("my_plan:a-2")),
            ("/etc/hosts is what?", None),
            ("/", None),
            ("/ is a slash", None),
            ("what is /tmp", None),
        ] {
            assert_eq!(command_name(line), expected, "{line}");
        }
    }
}
