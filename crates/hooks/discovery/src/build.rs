//! Builds hooks from declarations.
//!
//! Only an [`ApprovedDeclaration`] can become a hook. Any other declaration can be checked, so that its
//! mistakes are found before someone approves it.

#[cfg(feature = "command")]
mod command;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "model")]
mod model;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tenterhook_builtins::builtin::{
    BUILTINS, BuiltinConfig, BuiltinError, builtin, default_policy,
};
use tenterhook_engine::{
    AsyncHandler, Dialect, EventClass, EventInfo, Handler, HookId, HookSpec, Layer, OnError, Phase,
    Policy, Source,
};
use tenterhook_hookfile::{HookAction, HookDeclaration, Report, one_of};
#[cfg(feature = "command")]
use tenterhook_process::{Command, Program};
#[cfg(feature = "command")]
use tenterhook_runners::CommandHandler;
use tenterhook_systems::tools;
use tenterhook_trust::ApprovedDeclaration;

use crate::options::LoadOptions;
use crate::runner_feature::RunnerFeature;

/// The timeout of a hook that does not set one.
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(1);

/// Builds the hooks of a declaration, one for each event. Returns none if the handler cannot be built;
/// the report then has the reason.
pub(crate) fn build(
    report: &mut Report,
    options: &LoadOptions,
    approved: &ApprovedDeclaration,
) -> Vec<HookSpec> {
    let declaration = approved.declaration();
    let maker = HandlerMaker {
        declaration,
        #[cfg(feature = "command")]
        original_command: approved.original_command(),
        options,
    };
    let Some(handler) = maker.handler(report) else {
        return Vec::new();
    };
    warn_of_events(report, declaration);
    let source = source_of(report, declaration, approved.layer());
    let specs = declaration.events.iter().map(|event| HookSpec {
        id: HookId::new(event.id.as_str()),
        matcher: declaration.matcher.clone(),
        agent: declaration.agent.clone(),
        includes_unnamed: declaration.includes_unnamed,
        handling: Handler::Async(Arc::clone(&handler)),
        phase: declaration.phase,
        priority: declaration.priority,
        order_within_layer: None,
        hears_stops: declaration.dialect.hears_stops() && !is_judge(&declaration.action),
        timeout: declaration.timeout.unwrap_or(DEFAULT_TIMEOUT),
        policy: policy(
            &declaration.action,
            &*declaration.dialect,
            event.name.info(),
            event.on_error,
        ),
        source: source.clone(),
        tools: tools::of_hooks(&*declaration.dialect),
        definition: Some(declaration.definition.to_text()),
        event: Some(event.name.clone()),
    });
    specs.collect()
}

/// Returns whether an action only judges. After the decision, asking a model would have no effect.
fn is_judge(action: &HookAction) -> bool {
    matches!(action, HookAction::Model(_))
}

/// Reports mistakes of a declaration that may not run. Returns whether its hooks could be built.
pub(crate) fn check(
    report: &mut Report,
    options: &LoadOptions,
    declaration: &HookDeclaration,
) -> bool {
    let maker = HandlerMaker {
        declaration,
        #[cfg(feature = "command")]
        original_command: None,
        options,
    };
    let is_whole = maker.handler(report).is_some();
    if is_whole {
        warn_of_events(report, declaration);
    }
    is_whole
}

/// Returns where a hook comes from.
pub(crate) fn source_of(report: &Report, declaration: &HookDeclaration, layer: Layer) -> Source {
    Source {
        layer,
        path: Some(report.source().path().to_owned()),
        line: Some(report.source().line_of(declaration.span.start)),
    }
}

/// Builds the handler of one declaration.
struct HandlerMaker<'a> {
    declaration: &'a HookDeclaration,
    /// The command to show, if it differs from the one that runs.
    #[cfg(feature = "command")]
    original_command: Option<&'a str>,
    options: &'a LoadOptions,
}

impl HandlerMaker<'_> {
    fn handler(&self, report: &mut Report) -> Option<Arc<dyn AsyncHandler>> {
        let declaration = self.declaration;
        if let Some(problem) = RunnerFeature::of_action(&declaration.action)
            .and_then(|feature| feature.problem(declaration.name().unwrap_or_default()))
        {
            report.add(report.problem(declaration.action_span, problem));
            return None;
        }
        match &declaration.action {
            HookAction::Builtin { name, args } => self.builtin(report, name, args),
            #[cfg(feature = "model")]
            HookAction::Model(model) => model::handler(report, self.options, declaration, model),
            #[cfg(not(feature = "model"))]
            HookAction::Model(_) => None,
            #[cfg(feature = "http")]
            HookAction::Http(http) => {
                http::handler(report, &self.options.environment, declaration, http)
            }
            #[cfg(not(feature = "http"))]
            HookAction::Http(_) => None,
            #[cfg(feature = "command")]
            HookAction::Line { .. } | HookAction::Argv(_) => {
                self.command(report, declaration.action.program()?)
            }
            #[cfg(not(feature = "command"))]
            HookAction::Line { .. } | HookAction::Argv(_) => None,
        }
    }

    #[cfg(feature = "command")]
    fn command(&self, report: &mut Report, program: Program) -> Option<Arc<dyn AsyncHandler>> {
        let declaration = self.declaration;
        let command = self
            .variables()
            .into_iter()
            .fold(Command::new(program), |command, (key, value)| {
                command.env(key, value)
            });
        let working_dir = self.working_dir(report);
        command::check_executable(
            report,
            self.options,
            declaration,
            &command,
            working_dir.as_ref(),
        );
        let text = self.original_command.map(str::to_owned);
        let text = text.or_else(|| declaration.action.text())?;
        let handler = CommandHandler::new(command, text, Arc::clone(&declaration.dialect))
            .working_dir(working_dir)
            .strict_output(declaration.strict_output)
            .prewarm(declaration.prewarm);
        Some(Arc::new(handler))
    }

    /// Returns the variables of the hook, expanded.
    fn variables(&self) -> Vec<(OsString, OsString)> {
        let environment = &self.options.environment;
        let env = self.declaration.env.iter();
        env.map(|(key, value)| (key.into(), environment.expand_value(value)))
            .collect()
    }

    fn working_dir(&self, report: &mut Report) -> Option<PathBuf> {
        let (text, span) = self.declaration.working_dir.as_ref()?;
        let dir = self.options.environment.expand_path(text);
        if dir.as_os_str().is_empty() {
            let message = format!("`working_dir: {text}` expands to an empty path");
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
        name: &str,
        args: &[String],
    ) -> Option<Arc<dyn AsyncHandler>> {
        let working_dir = self.working_dir(report);
        let events = self.declaration.event_names();
        let setup = BuiltinConfig {
            arguments: args,
            env: &self.variables(),
            working_dir: working_dir.as_deref(),
            services: &self.options.services,
            events: &events,
            dialect: &self.declaration.dialect,
        };
        let error = match builtin(name, &setup) {
            Ok(handler) => {
                self.warn_of_unused_events(report, name);
                return Some(handler);
            }
            Err(error) => error,
        };
        let names = || BUILTINS.iter().map(|builtin| builtin.name);
        let problem = report.problem(self.declaration.action_span, error.to_string());
        let takes = BUILTINS.iter().find(|builtin| builtin.name == name);
        report.add(match (error, takes) {
            (BuiltinError::Arguments { .. }, Some(builtin)) => {
                problem.hint(format!("expected arguments: {}", builtin.arguments))
            }
            _ => problem
                .allowed(one_of(names()))
                .suggestion(report.nearest(name, names())),
        });
        None
    }

    /// Warns about events on which a built-in does nothing.
    fn warn_of_unused_events(&self, report: &mut Report, name: &str) {
        let Some(builtin) = BUILTINS.iter().find(|builtin| builtin.name == name) else {
            return;
        };
        for event in &self.declaration.events {
            if !builtin.events.contains(&event.name.kind()) {
                let message = format!("built-in `{name}` does nothing on `{}`", event.name);
                let events = builtin.events.iter().map(|kind| kind.info().name);
                report.add(
                    report
                        .warning(self.declaration.action_span, message)
                        .allowed(one_of(events)),
                );
            }
        }
    }
}

fn warn_of_events(report: &mut Report, declaration: &HookDeclaration) {
    for event in &declaration.events {
        if declaration.phase == Phase::Guard && event.name.info().class == EventClass::Observer {
            let message = format!(
                "`phase: guard` is for events that hooks can stop, unlike `{}`",
                event.name
            );
            report.add(
                report
                    .warning(event.span, message)
                    .hint("write `phase: observe`, or remove `phase`"),
            );
        }
    }
}

/// Returns the policy for failures: from the file, or else from the built-in, or else from the dialect.
fn policy(
    action: &HookAction,
    dialect: &dyn Dialect,
    event: &EventInfo,
    on_error: Option<OnError>,
) -> Policy {
    if let (HookAction::Builtin { name, .. }, None) = (action, on_error)
        && let Some(policy) = default_policy(name)
    {
        return policy;
    }
    dialect.policy(event, on_error)
}
