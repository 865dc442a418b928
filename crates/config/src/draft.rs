//! A hook that was read and not yet made: what both kinds of file have in common from there on.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use tenterhook::{
    AnswerEnd, CommandHandler, Dialect, EventClass, EventInfo, EventName, Handler, Handling,
    HookSpec, Layer, Matcher, OnError, Phase, Policy, Source,
};
use tenterhook_dialects::docker_agent::DockerAgent;
use tenterhook_dialects::tools;
use tenterhook_handlers::builtin::{BUILTINS, BuiltinError, Setup, builtin, default_policy};
use tenterhook_handlers::model::{ModelHandler, ModelHook};
use tenterhook_process::{Command, Program, PythonScript, ResolveError, Shell, plain_words};
use tenterhook_protocol::HookId;

use crate::http::HttpAction;
use crate::load::LoadOptions;
use crate::model::Asked;
use crate::programs;
use crate::python;
use crate::report::Report;
use crate::source::Span;
use crate::suggest::one_of;

/// The timeout of a hook that does not say one.
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(1);

#[derive(Debug)]
pub(crate) struct Draft {
    /// Where the entry stands.
    pub(crate) span: Span,
    pub(crate) events: Vec<DraftEvent>,
    pub(crate) matcher: Matcher,
    pub(crate) agent: Option<String>,
    pub(crate) action: Action,
    /// Where what runs stands.
    pub(crate) action_span: Span,
    /// What is shown of a command, where that is not what runs.
    pub(crate) shown: Option<String>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) working_dir: Option<(String, Span)>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) strict_output: bool,
    /// The script that a fork server runs.
    pub(crate) python: Option<PythonScript>,
    /// The next instance is started ahead of time.
    pub(crate) prewarm: bool,
    pub(crate) answer: AnswerEnd,
    pub(crate) phase: Phase,
    pub(crate) priority: i32,
    /// Everything that tells this hook from another one of the same event, as text.
    pub(crate) definition: String,
    /// The contract that the hook speaks.
    pub(crate) dialect: Arc<dyn Dialect>,
}

#[derive(Debug)]
pub(crate) struct DraftEvent {
    pub(crate) name: EventName,
    /// Where the name stands.
    pub(crate) span: Span,
    pub(crate) id: String,
    pub(crate) on_error: Option<OnError>,
}

/// What a hook runs.
#[derive(Debug)]
pub(crate) enum Action {
    Line { shell: Shell, line: String },
    Argv(Vec<String>),
    Builtin { name: String, args: Vec<String> },
    Model(Asked),
    Http(HttpAction),
}

impl Action {
    /// Returns a command for people; `None` is no command.
    pub(crate) fn text(&self) -> Option<String> {
        match self {
            Self::Line { line, .. } => Some(line.trim().to_owned()),
            Self::Argv(argv) => Some(quoted(argv)),
            Self::Builtin { .. } | Self::Model(_) | Self::Http(_) => None,
        }
    }

    /// Returns what an agent file has as `command`.
    pub(crate) fn command(&self) -> Option<&str> {
        match self {
            Self::Line { line, .. } => Some(line),
            Self::Builtin { name, .. } => Some(name),
            Self::Argv(_) | Self::Model(_) | Self::Http(_) => None,
        }
    }
}

/// What the hooks of one file share.
#[derive(Debug)]
pub(crate) struct Context<'a> {
    pub(crate) layer: Layer,
    pub(crate) options: &'a LoadOptions,
}

impl Draft {
    /// Makes a hook of docker-agent's contract that says nothing but what it runs on one event.
    pub(crate) fn of_agent_file(event: DraftEvent, action: Action, definition: String) -> Self {
        Self {
            span: event.span,
            action_span: event.span,
            events: vec![event],
            matcher: Matcher::everything(),
            agent: None,
            action,
            shown: None,
            timeout: None,
            working_dir: None,
            env: Vec::new(),
            python: None,
            prewarm: false,
            answer: AnswerEnd::Exit,
            strict_output: false,
            phase: Phase::Main,
            priority: 0,
            definition,
            dialect: DockerAgent::agent_file(),
        }
    }

    /// Reads the script of a fork server off the action once more, because the action is another one now.
    pub(crate) fn reread_python(&mut self) {
        if self.python.is_some() {
            self.python = python::script(&self.action).and_then(Result::ok);
        }
    }

    /// Makes the hooks, one for each event. Nothing is made where the handler cannot be.
    pub(crate) fn build(self, report: &mut Report, context: &Context<'_>) -> Vec<HookSpec> {
        let Some(handler) = self.handler(report, context) else {
            return Vec::new();
        };
        self.warn_of_events(report);
        let line = report.source().line_of(self.span.start);
        let source = Source {
            layer: context.layer,
            path: Some(report.source().path().to_owned()),
            line: Some(line),
        };
        let specs = self.events.into_iter().map(|event| HookSpec {
            id: HookId::new(event.id),
            matcher: self.matcher.clone(),
            agent: self.agent.clone(),
            handling: Handling::Waiting(Arc::clone(&handler)),
            phase: self.phase,
            priority: self.priority,
            among: None,
            timeout: self.timeout.unwrap_or(DEFAULT_TIMEOUT),
            policy: policy(
                &self.action,
                &*self.dialect,
                event.name.info(),
                event.on_error,
            ),
            source: source.clone(),
            tools: tools::of_hooks(&*self.dialect),
            definition: Some(self.definition.clone()),
            event: Some(event.name),
        });
        specs.collect()
    }

    fn handler(&self, report: &mut Report, context: &Context<'_>) -> Option<Arc<dyn Handler>> {
        let (program, text) = match &self.action {
            Action::Builtin { name, args } => return self.builtin(report, context, name, args),
            Action::Model(asked) => return self.model(report, context, asked),
            Action::Http(http) => {
                return http.handler(
                    report,
                    &context.options.environment,
                    self.action_span,
                    Arc::clone(&self.dialect),
                    self.strict_output,
                );
            }
            Action::Line { shell, line } => {
                let program = Program::Shell {
                    shell: *shell,
                    line: line.clone(),
                };
                (program, line.trim().to_owned())
            }
            Action::Argv(argv) => (Program::exec(argv), quoted(argv)),
        };
        let command = self
            .variables(context)
            .into_iter()
            .fold(Command::new(program), |command, (key, value)| {
                command.env(key, value)
            });
        let working_dir = self.working_dir(report, context);
        check_executable(report, context, self, &command, working_dir.as_ref());
        let text = self.shown.clone().unwrap_or(text);
        let handler = CommandHandler::new(command, text, Arc::clone(&self.dialect))
            .working_dir(working_dir)
            .strict_output(self.strict_output)
            .prewarm(self.prewarm)
            .answer_end(self.answer);
        #[cfg(unix)]
        let handler = match self.python {
            Some(script) => handler.fork_server(script),
            None => handler,
        };
        Some(Arc::new(handler))
    }

    /// Returns the variables of the hook with what they name in them.
    fn variables(&self, context: &Context<'_>) -> Vec<(OsString, OsString)> {
        let environment = &context.options.environment;
        self.env
            .iter()
            .map(|(key, value)| (key.into(), environment.expand_value(value)))
            .collect()
    }

    fn working_dir(&self, report: &mut Report, context: &Context<'_>) -> Option<PathBuf> {
        let (text, span) = self.working_dir.as_ref()?;
        let dir = context.options.environment.expand_path(text);
        if dir.as_os_str().is_empty() {
            let message = format!("`working_dir: {text}` is empty once it is expanded");
            report.add(
                report
                    .warning(*span, message)
                    .hint("the hook runs in the working directory of the event"),
            );
            return None;
        }
        Some(dir)
    }

    fn builtin(
        &self,
        report: &mut Report,
        context: &Context<'_>,
        name: &str,
        args: &[String],
    ) -> Option<Arc<dyn Handler>> {
        let working_dir = self.working_dir(report, context);
        let events = self.event_names();
        let setup = Setup {
            arguments: args,
            env: &self.variables(context),
            working_dir: working_dir.as_deref(),
            services: &context.options.services,
            events: &events,
            dialect: &self.dialect,
        };
        let error = match builtin(name, &setup) {
            Ok(handler) => {
                self.warn_of_silence(report, name);
                return Some(handler);
            }
            Err(error) => error,
        };
        let names = || BUILTINS.iter().map(|builtin| builtin.name);
        let problem = report.problem(self.action_span, error.to_string());
        let takes = BUILTINS.iter().find(|builtin| builtin.name == name);
        report.add(match (error, takes) {
            (BuiltinError::Arguments { .. }, Some(builtin)) => {
                problem.hint(format!("arguments that it takes: {}", builtin.arguments))
            }
            _ => problem
                .allowed(one_of(names()))
                .suggestion(report.nearest(name, names())),
        });
        None
    }

    fn model(
        &self,
        report: &mut Report,
        context: &Context<'_>,
        asked: &Asked,
    ) -> Option<Arc<dyn Handler>> {
        let hook = ModelHook {
            model: &asked.model,
            prompt: &asked.prompt,
            shape: asked.shape,
            events: &self.event_names(),
            dialect: &self.dialect,
        };
        match ModelHandler::new(&hook, context.options.services.model.clone()) {
            Ok(handler) => {
                if let Some(problem) = handler.problem() {
                    report.add(
                        report
                            .warning(self.action_span, problem)
                            .hint("the hook fails whenever it is called"),
                    );
                }
                Some(Arc::new(handler))
            }
            Err(error) => {
                report.add(asked.problem(report, self.action_span, &error));
                None
            }
        }
    }

    fn event_names(&self) -> Vec<EventName> {
        self.events.iter().map(|event| event.name.clone()).collect()
    }

    /// Warns of a built-in on an event that it has nothing to say to.
    fn warn_of_silence(&self, report: &mut Report, name: &str) {
        let Some(builtin) = BUILTINS.iter().find(|builtin| builtin.name == name) else {
            return;
        };
        for event in &self.events {
            if !builtin.events.contains(&event.name.kind()) {
                let message = format!("builtin `{name}` has nothing to say to `{}`", event.name);
                let events = builtin.events.iter().map(|kind| kind.info().name);
                report.add(
                    report
                        .warning(self.action_span, message)
                        .allowed(one_of(events)),
                );
            }
        }
    }

    fn warn_of_events(&self, report: &mut Report) {
        for event in &self.events {
            if self.phase == Phase::Guard && event.name.info().class == EventClass::Observer {
                let message = format!(
                    "a hook of the guard phase has nothing to guard: `{}` stops nothing",
                    event.name
                );
                report.add(
                    report
                        .warning(event.span, message)
                        .hint("write `phase: observe`, or leave the phase out"),
                );
            }
        }
    }
}

/// Returns what a failure does: what the file says, else what the built-in needs, else what the dialect says.
fn policy(
    action: &Action,
    dialect: &dyn Dialect,
    event: &EventInfo,
    on_error: Option<OnError>,
) -> Policy {
    if let (Action::Builtin { name, .. }, None) = (action, on_error)
        && let Some(policy) = default_policy(name)
    {
        return policy;
    }
    dialect.policy(event, on_error)
}

/// Reports a command that cannot be started: its program, its shell or its interpreter is missing. A program inside of a shell
/// line is only warned of, since the line may never reach it.
fn check_executable(
    report: &mut Report,
    context: &Context<'_>,
    draft: &Draft,
    command: &Command,
    working_dir: Option<&PathBuf>,
) {
    let base = &context.options.directory;
    let dir = working_dir.map_or_else(|| base.clone(), |dir| base.join(dir));
    let hint = format!(
        "looked up with `{}` as the working directory of the event",
        base.display()
    );
    let span = draft.action_span;
    // A line of plain words is run without its shell, and is a shell line all the same.
    let is_plain_line =
        matches!(&draft.action, Action::Line { line, .. } if plain_words(line).is_some());
    match command.clone().working_dir(dir.clone()).resolve() {
        Ok(_) => {}
        // The directory may be made by the time that the event comes.
        Err(error @ ResolveError::NoWorkingDir { .. }) => {
            report.add(report.warning(span, error.to_string()).hint(hint));
            return;
        }
        Err(error) if is_plain_line => {
            report.add(report.warning(span, error.to_string()).hint(hint));
            return;
        }
        Err(error) => {
            report.add(report.problem(span, error.to_string()).hint(hint));
            return;
        }
    }
    if let Action::Line { shell, line } = &draft.action
        && matches!(shell, Shell::Sh | Shell::Bash)
        && !draft.env.iter().any(|(name, _)| name == "PATH")
    {
        for program in programs::missing(line, &dir) {
            let message = format!("program `{program}` was not found in `PATH`");
            let hint = format!(
                "install `{program}`: a shell goes on without a missing program, so a guard that needs it may let everything through"
            );
            report.add(report.warning(span, message).hint(hint));
        }
    }
}

/// Returns the words as a person would write them.
fn quoted(argv: &[String]) -> String {
    let words = argv.iter().map(|word| {
        let is_plain = |c: char| c.is_alphanumeric() || "_./:=@%+,-".contains(c);
        if !word.is_empty() && word.chars().all(is_plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Gives the hooks of a file names that no other hook of it has.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    counts: BTreeMap<String, usize>,
    lines: BTreeMap<String, usize>,
}

impl Ids {
    /// Counts a hook below `prefix` and returns its number among them: `pre_tool_use#2` is the second one.
    pub(crate) fn numbered(&mut self, prefix: &str) -> String {
        let count = self.counts.entry(prefix.to_owned()).or_default();
        *count += 1;
        format!("{prefix}#{count}")
    }

    /// Takes a name for the hook on this line; the error is the line that has it.
    pub(crate) fn take(&mut self, name: &str, line: usize) -> Result<(), usize> {
        if let Some(first) = self.lines.get(name) {
            return Err(*first);
        }
        self.lines.insert(name.to_owned(), line);
        Ok(())
    }
}

/// Writes a definition as text. Equal definitions are equal texts, whatever the order of their variables;
/// what is null or has nothing in it is not there.
#[derive(Debug)]
pub(crate) struct Definition {
    fields: Map<String, Value>,
}

impl Definition {
    /// Begins the definition of a hook of this kind of file.
    pub(crate) fn of(file: &str) -> Self {
        let fields = [("file".to_owned(), Value::from(file))]
            .into_iter()
            .collect();
        Self { fields }
    }

    pub(crate) fn field(mut self, key: &str, value: Option<impl Into<Value>>) -> Self {
        if let Some(value) = value {
            self.fields.insert(key.to_owned(), value.into());
        }
        self
    }

    pub(crate) fn list(self, key: &str, items: &[String]) -> Self {
        self.field(key, (!items.is_empty()).then(|| Value::from(items)))
    }

    pub(crate) fn variables(self, key: &str, variables: &[(String, String)]) -> Self {
        let sorted: BTreeMap<_, _> = variables.iter().cloned().collect();
        let variables: Map<String, Value> = sorted
            .into_iter()
            .map(|(name, value)| (name, Value::from(value)))
            .collect();
        self.field(
            key,
            (!variables.is_empty()).then_some(Value::Object(variables)),
        )
    }

    pub(crate) fn into_text(self) -> String {
        Value::Object(self.fields).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_shown_as_a_person_would_write_them() {
        let argv = ["python3", "a b.py", "it's", "", "--x=1"].map(str::to_owned);
        assert_eq!(quoted(&argv), r"python3 'a b.py' 'it'\''s' '' --x=1");
    }
}
