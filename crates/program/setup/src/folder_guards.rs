//! The hooks that a session of an agent would have in a folder, and what keeps others from being in force.

use std::path::Path;

use serde::Serialize;
use tenterhook_agent::CancellationToken;
use tenterhook_discovery::unmatched_hooks;
use tenterhook_engine::{EventClass, HookSpec, RegisteredHook};
use tenterhook_hookfile::BrokenSource;
use tenterhook_protocol::escape::escape_line;
use tenterhook_systems::host::{EventRole, HostAgent};
use tenterhook_tools::Toolbox;
use tenterhook_trust::{DivergedHook, Trust};

use crate::approval;
use crate::error::CliError;
use crate::guard_problem::{GuardProblem, GuardProblemKind};
use crate::hook_options::HookOptions;
use crate::hooks::{self, Hooks};

/// The events at which hooks judge a call before it runs, whatever the agent calls its own event.
const CALL_GATES: &[&str] = &[
    "tool_input_transform",
    "tool_guard",
    "pre_tool_use",
    "permission_request",
];
/// The events at which hooks judge an input of the user.
const PROMPT_GATES: &[&str] = &["user_input", "user_prompt_submit"];

/// The hooks that a session of an agent would have in a folder.
#[derive(Debug, Serialize)]
pub struct FolderGuards {
    /// The agent.
    pub host: &'static str,
    /// The number of hooks in force.
    pub hooks: usize,
    /// The number of hooks that can stop something in this agent.
    pub guards: usize,
    /// What is not in force.
    #[serde(skip)]
    pub problems: Vec<GuardProblem>,
}

impl FolderGuards {
    /// Loads the hooks of a folder as a new session of the agent would.
    ///
    /// # Errors
    /// Fails if the approvals or folders cannot be read, or if `token` is cancelled.
    pub async fn load(
        host: &'static HostAgent,
        start: &Path,
        token: &CancellationToken,
    ) -> Result<Self, CliError> {
        let options = HookOptions {
            host: Some(host.name),
            ..HookOptions::default()
        };
        let services = hooks::services(None)?.0;
        let loading = hooks::load_quietly(&options, start, services, Trust::Approved, token);
        let hooks = Box::pin(loading).await?;
        Ok(Self::of(host, &hooks))
    }

    fn of(host: &'static HostAgent, hooks: &Hooks) -> Self {
        let registered = hooks::engine(&hooks.loaded, false, None).hooks();
        let in_force = registered.iter().filter(|hook| hook.kind != "withheld");
        let guards = in_force.clone().filter(|hook| is_guard(host, hook)).count();
        let in_force = in_force.count();
        let mut problems = broken(hooks);
        problems.extend(not_approved(hooks));
        problems.extend(outdated(&hooks.loaded.diverged));
        problems.extend(disabled(hooks));
        problems.extend(misspelt(&hooks.loaded.specs));
        if guards == 0 {
            problems.push(no_guard(host, in_force, &problems));
        }
        Self {
            host: host.name,
            hooks: in_force,
            guards,
            problems,
        }
    }
}

/// Returns whether a hook can stop something that the agent announces.
fn is_guard(host: &HostAgent, hook: &RegisteredHook) -> bool {
    let has_gate = |role: EventRole| host.events.iter().any(|event| event.role == role);
    let Some(event) = &hook.event else {
        return has_gate(EventRole::ToolGate) || has_gate(EventRole::PromptGate);
    };
    let (name, info) = (event.as_str(), event.info());
    let announced = host.events.iter().filter(|event| event.role.is_gate());
    info.class == EventClass::Gate
        && (announced.map(|it| it.kind).any(|kind| kind == info.kind)
            || (CALL_GATES.contains(&name) && has_gate(EventRole::ToolGate))
            || (PROMPT_GATES.contains(&name) && has_gate(EventRole::PromptGate)))
}

/// Says that nothing is guarded. If there is a reason, its next step is the next step here, too.
fn no_guard(host: &HostAgent, hooks: usize, problems: &[GuardProblem]) -> GuardProblem {
    let what = match hooks {
        0 => "no hook is in force in this folder".to_owned(),
        1 => format!(
            "the only hook in force in this folder cannot stop anything in {}",
            host.title
        ),
        hooks => format!(
            "none of the {hooks} hooks in force in this folder can stop anything in {}",
            host.title
        ),
    };
    let reason = problems.iter().min_by_key(|it| it.problem);
    let step = reason.map_or("tenterhook init --user", |reason| &reason.next_step);
    GuardProblem::new(GuardProblemKind::NoGuard, what, step)
}

fn broken(hooks: &Hooks) -> Vec<GuardProblem> {
    let broken = hooks.broken.iter().map(|source| {
        let path = path_of(source);
        GuardProblem::new(
            GuardProblemKind::BrokenHooks,
            format!(
                "`{path}` cannot be loaded, so every gate denies: {}",
                why(source)
            ),
            format!("repair the file, or run `tenterhook disable '{path}'`"),
        )
    });
    let denying = hooks.loaded.diverged.iter().filter_map(|hook| {
        let reason = escape_line(hook.denies.as_ref()?);
        let step = if hook.is_displaced() {
            "tenterhook trust --accept"
        } else {
            "tenterhook trust"
        };
        let text = format!("{reason}; its gates deny");
        Some(GuardProblem::new(GuardProblemKind::BrokenHooks, text, step))
    });
    broken.chain(denying).collect()
}

fn not_approved(hooks: &Hooks) -> Vec<GuardProblem> {
    let kind = GuardProblemKind::NotApproved;
    let unusable = hooks.untrusted.iter().map(|source| {
        let (path, why) = (path_of(source), why(source));
        let text =
            format!("the current version of `{path}` is not approved and cannot be loaded: {why}");
        let step = "repair the file (`tenterhook check` shows where), then run `tenterhook trust`";
        GuardProblem::new(kind, text, step)
    });
    let unapproved = approval::unapproved(&hooks.loaded.project_hooks);
    let unapproved = approval::count_unapproved(&unapproved).map(|count| {
        let subject = if unapproved.len() == 1 {
            "it is"
        } else {
            "they are"
        };
        let names = approval::names_of(&unapproved);
        let text = format!("{count}, so {subject} not in force: {names}");
        GuardProblem::new(kind, text, "tenterhook trust")
    });
    unusable.chain(unapproved).collect()
}

fn outdated(diverged: &[DivergedHook]) -> Vec<GuardProblem> {
    let in_force = diverged.iter().filter(|hook| hook.denies.is_none());
    let problems = in_force.map(|hook| {
        let (name, what) = (hook.shown_name(), approval::what_happened(hook));
        let text =
            format!("the approved version of `{name}` is in force, not the current one: {what}");
        GuardProblem::new(GuardProblemKind::Outdated, text, "tenterhook trust")
    });
    problems.collect()
}

fn disabled(hooks: &Hooks) -> Vec<GuardProblem> {
    let paths = hooks.disabled_paths().into_iter();
    let problems = paths.map(|path| {
        let path = escape_line(&path.display().to_string());
        GuardProblem::new(
            GuardProblemKind::Disabled,
            format!("`{path}` is disabled"),
            format!("tenterhook enable '{path}'"),
        )
    });
    problems.collect()
}

/// Returns one line for each hook that never runs, because the name of its tool is misspelt. A name that resembles no
/// known one may belong to a tool of an agent.
pub fn misspelt_tools(specs: &[HookSpec]) -> impl Iterator<Item = String> {
    let standard = Toolbox::standard();
    let own: Vec<&str> = standard.names().collect();
    let unmatched = unmatched_hooks(specs, &own).into_iter();
    let misspelt = unmatched.filter(|hook| hook.meant.is_some());
    misspelt.map(|hook| escape_line(&format!("a hook never runs: {hook}")))
}

fn misspelt(specs: &[HookSpec]) -> impl Iterator<Item = GuardProblem> {
    misspelt_tools(specs).map(|text| {
        let step = "correct the name of the tool; `tenterhook tools` lists them";
        GuardProblem::new(GuardProblemKind::NeverRuns, text, step)
    })
}

fn path_of(source: &BrokenSource) -> String {
    escape_line(&source.path.display().to_string())
}

fn why(source: &BrokenSource) -> String {
    let problem = source.first_error().map(|problem| problem.message.as_str());
    escape_line(problem.unwrap_or("it is broken"))
}

/// Creates the problem of hooks that cannot be loaded at all.
pub fn unloadable(error: &CliError) -> GuardProblem {
    let text = escape_line(&error.in_one_line());
    let text = format!("the hooks cannot be loaded, so every gate denies: {text}");
    let step = error.hint.clone();
    let step = step.unwrap_or_else(|| "tenterhook check".to_owned());
    GuardProblem::new(GuardProblemKind::BrokenHooks, text, step)
}
