//! Turns the registrations of scripts and extensions into the states of their files.

use tenterhook_engine::Matcher;
use tenterhook_hookfile::{ProblemPosition, SourceProblem, nearest, one_of};
use tenterhook_runners::worker::{ExtensionRegistration, Registered, ScriptHook, Subscription};
use tenterhook_systems::hook_folder::{ExtensionPrograms, FolderKind, ScriptLanguage, SystemEvent};

use super::candidate::Candidate;
use super::event_names::script_event;
use super::found_file::{FileState, FoundHook};
use super::language::Language;
use super::probe_output::ProbeOutput;

/// Returns the state of a script from its registration.
pub(super) fn script_state(
    candidate: &mut Candidate,
    declared: &str,
) -> Result<FileState, SourceProblem> {
    let kind = candidate.found.kind;
    let mut registered: Registered = serde_json::from_str(declared)
        .map_err(|error| format!("its list of hooks is invalid: {error}"))?;
    let hooks = std::mem::take(&mut registered.hooks);
    if hooks.is_empty()
        && !kind
            .scripts
            .as_ref()
            .is_some_and(|it| it.may_register_nothing)
    {
        let form = match candidate.language {
            Some(Language::Script(ScriptLanguage::Python)) => "write `@on(EVENT)` above a function",
            _ => "write `on(EVENT, handler)`",
        };
        let hint =
            format!("{form}; if the file is a helper of other scripts, begin its name with `_`");
        return Err(SourceProblem::from("the file registers no hooks").hint(hint));
    }
    for hook in &hooks {
        let event = script_event(kind, &hook.event);
        let warning = event.ok().and_then(|event| event.warning);
        registered.warnings.extend(warning);
    }
    let hooks: Result<_, SourceProblem> = hooks
        .into_iter()
        .map(|hook| read_hook(kind, hook))
        .collect();
    let state = FileState::Script {
        hooks: hooks?,
        tools: registered.tools.iter().map(|it| it.name.clone()).collect(),
        commands: registered
            .commands
            .iter()
            .map(|it| it.name.clone())
            .collect(),
    };
    candidate.registered = registered;
    Ok(state)
}

fn read_hook(kind: &FolderKind, hook: ScriptHook) -> Result<FoundHook, SourceProblem> {
    let name = hook.name;
    let declared = script_event(kind, &hook.event).map_err(|problem| {
        let message = format!("hook `{}`: {}", name.escape_debug(), problem.message);
        SourceProblem { message, ..problem }
    })?;
    let event = declared.event;
    if let Some(matcher) = &hook.matcher {
        let problem = |problem: String| SourceProblem {
            position: ProblemPosition::Quoted(matcher.clone()),
            ..format!("hook `{}`: {problem}", name.escape_debug()).into()
        };
        if event.info().subject.is_none() {
            return Err(
                problem(format!("a hook on `{event}` cannot have a matcher"))
                    .hint("remove the matcher"),
            );
        }
        Matcher::parse(matcher).map_err(|error| problem(tenterhook_engine::error_chain(&error)))?;
    }
    Ok(FoundHook {
        name,
        event,
        declared: hook.event,
        matcher: hook.matcher,
        priority: hook.priority,
    })
}

/// Returns the state of an extension from its registration.
pub(super) fn extension_state(
    programs: &ExtensionPrograms,
    declared: &ProbeOutput,
) -> Result<FileState, SourceProblem> {
    let registration: ExtensionRegistration =
        serde_json::from_str(&declared.0).map_err(|error| error.to_string())?;
    let mut wanted = registration.subscriptions.iter();
    if let Some(unknown) = wanted.find(|it| (programs.events.find)(&it.event).is_none()) {
        let name = unknown.event.as_str();
        let names = || (programs.events.names)().into_iter();
        return Err(SourceProblem {
            suggestion: nearest(name, names()).map(str::to_owned),
            allowed: Some(one_of(names())),
            position: ProblemPosition::Quoted(name.to_owned()),
            ..format!(
                "the extension subscribes to the unknown event `{}`",
                name.escape_debug()
            )
            .into()
        });
    }
    let hooks = subscriptions(programs, &registration).map(|(declared, subscription)| FoundHook {
        name: subscription.event.clone(),
        event: declared.event,
        declared: subscription.event.clone(),
        matcher: None,
        priority: subscription.priority,
    });
    Ok(FileState::Script {
        hooks: hooks.collect(),
        tools: registration
            .tools
            .into_iter()
            .map(|tool| tool.name)
            .collect(),
        commands: registration
            .commands
            .into_iter()
            .map(|command| command.name)
            .collect(),
    })
}

/// Returns the subscriptions, each with its event.
pub(super) fn subscriptions<'a>(
    programs: &'a ExtensionPrograms,
    registration: &'a ExtensionRegistration,
) -> impl Iterator<Item = (SystemEvent, &'a Subscription)> {
    let subscriptions = registration.subscriptions.iter();
    subscriptions.filter_map(|subscription| {
        Some(((programs.events.find)(&subscription.event)?, subscription))
    })
}
