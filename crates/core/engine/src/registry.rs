//! The hooks of an engine, as immutable snapshots. A change replaces the whole snapshot, and a
//! dispatch keeps the one that it started with.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use parking_lot::RwLock;
use serde::Serialize;
use tenterhook_protocol::{AnyEvent, EventClass, EventInfo, EventKind, EventName, HookId, Origin};

use crate::as_shell::as_shell;
use crate::foreign_call::ForeignCall;
use crate::hook::{HookSpec, NO_TIMEOUT, Scope, Source};
use crate::lineage::Lineage;
use crate::matcher::MatcherIndex;
use crate::observer::LeftOutReason;
use crate::phase::Phase;
use crate::plan::{Hook, Plan, sort};
use crate::policy::Policy;
use crate::tools::{NATIVE_SYSTEM, ToolNames};

/// The number of subjects of one event for which a registry caches plans. Hosts have few tools, and
/// names that a model makes up must not make the table grow.
const REMEMBERED_SUBJECTS: usize = 512;

/// The canonical name of the shell tool.
const SHELL: &str = "shell";

/// One immutable set of hooks.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    hooks: Vec<Arc<Hook>>,
    slots: Vec<Slot>,
}

/// The hooks of one event.
#[derive(Debug, Default)]
struct Slot {
    hooks: Vec<Arc<Hook>>,
    /// The matchers of the hooks. Created by the first event that has a subject, or by
    /// [`Registry::prepare`].
    index: OnceLock<SlotIndex>,
    /// The plan for every subject, if no hook matches by subject.
    plan: Option<Arc<Plan>>,
    plans: RwLock<HashMap<String, Arc<Plan>>>,
}

/// Finds the hooks for a subject.
#[derive(Debug)]
struct SlotIndex {
    matchers: MatcherIndex,
    /// The hook systems of the hooks. Each is listed once, with one of its hooks.
    systems: Vec<(&'static str, Arc<Hook>)>,
}

impl SlotIndex {
    fn new(hooks: &[Arc<Hook>]) -> Self {
        let mut systems: Vec<(&'static str, Arc<Hook>)> = Vec::new();
        for hook in hooks {
            let system = hook.spec.system();
            if !systems.iter().any(|(known, _)| *known == system) {
                systems.push((system, Arc::clone(hook)));
            }
        }
        Self {
            matchers: MatcherIndex::new(hooks.iter().map(|hook| &hook.spec.matcher)),
            systems,
        }
    }
}

impl Slot {
    fn new(kind: EventKind, all: &[Arc<Hook>]) -> Self {
        let mut hooks: Vec<Arc<Hook>> = all
            .iter()
            .filter(|hook| {
                hook.spec
                    .event
                    .as_ref()
                    .is_none_or(|event| event.kind() == kind)
            })
            .cloned()
            .collect();
        sort(&mut hooks);
        let has_subjects = hooks.iter().any(|hook| !hook.spec.matcher.is_everything());
        let plan = (kind != EventKind::Custom && !has_subjects)
            .then(|| Arc::new(Plan::build(hooks.iter(), kind.info().name)));
        Self {
            hooks,
            index: OnceLock::new(),
            plan,
            plans: RwLock::default(),
        }
    }

    fn plan(&self, event: &dyn AnyEvent, foreign: Option<&ForeignCall>) -> PlanRef<'_> {
        if let (Some(plan), None) = (&self.plan, foreign) {
            return PlanRef::Kept(plan);
        }
        let key = plan_key(event, foreign);
        let known = self.plans.read().get(&*key).cloned();
        PlanRef::Found(known.unwrap_or_else(|| self.remember(key.into_owned(), event, foreign)))
    }

    fn index(&self) -> &SlotIndex {
        self.index.get_or_init(|| SlotIndex::new(&self.hooks))
    }

    /// Returns the positions of the hooks that match, in order. Each matcher is tested with the
    /// names that the tool has in the matcher's hook system.
    fn select(&self, event: &dyn AnyEvent, foreign: Option<&ForeignCall>) -> Vec<usize> {
        match event.tool_call() {
            Some((tool, _)) => self.select_named(|hook| names(tool, hook, foreign)),
            None => self.index().matchers.select(event.subject()),
        }
    }

    /// Returns the positions of the hooks that match one of a tool's names, in order. `names` returns
    /// those in the system of a hook.
    fn select_named<'a>(&self, names: impl Fn(&HookSpec) -> Vec<&'a str>) -> Vec<usize> {
        let index = self.index();
        let mut selected = Vec::new();
        for (system, hook) in &index.systems {
            let is_of_system = |at: &usize| {
                let hook = self.hooks.get(*at);
                hook.is_some_and(|hook| hook.spec.system() == *system)
            };
            for name in names(&hook.spec) {
                let found = index.matchers.select(Some(name)).into_iter();
                selected.extend(found.filter(is_of_system));
            }
        }
        selected.sort_unstable();
        selected.dedup();
        selected
    }

    fn remember(
        &self,
        key: String,
        event: &dyn AnyEvent,
        foreign: Option<&ForeignCall>,
    ) -> Arc<Plan> {
        let selected = self.select(event, foreign);
        let hooks = selected.into_iter().filter_map(|at| self.hooks.get(at));
        self.keep(key, Plan::build(hooks, event.name()))
    }

    /// Returns the plan of a call that also is one to the shell. Each hook receives the call by the
    /// name that it matches. A hook of a gate that matches both names receives it twice.
    fn plan_as_shell(
        &self,
        event: &dyn AnyEvent,
        tool: &str,
        tools: &Arc<dyn ToolNames>,
        is_known: bool,
    ) -> Arc<Plan> {
        let key = format!("{}\0{tool}\0{}\0{is_known}", event.name(), tools.system());
        if let Some(plan) = self.plans.read().get(&key).cloned() {
            return plan;
        }
        let own = self.select_named(|hook| match is_known && hook.system() != tools.system() {
            // To hooks of other systems, the tool is the shell and nothing else.
            true => Vec::new(),
            false if is_known => vec![tool],
            false => hook.tool_names(tool),
        });
        let shell = self.select_named(|hook| hook.tool_names(SHELL));
        let all = self.hooks.iter().enumerate();
        let all = all.filter(|(at, _)| own.contains(at) || shell.contains(at));
        let plan = Plan::build(all.map(|(_, hook)| hook), event.name()).replace(|hook| {
            let has = |selected: &[usize]| {
                let mut selected = selected.iter().filter_map(|at| self.hooks.get(*at));
                selected.any(|other| Arc::ptr_eq(other, &hook))
            };
            let judges =
                event.info().class == EventClass::Gate && hook.spec.phase != Phase::Observe;
            let is_own = has(&own);
            let is_shell = has(&shell) && (judges || !is_own);
            let shell = is_shell.then(|| Arc::new(as_shell(&hook, tools)));
            is_own.then_some(hook).into_iter().chain(shell)
        });
        self.keep(key, plan)
    }

    fn keep(&self, key: String, plan: Plan) -> Arc<Plan> {
        let plan = Arc::new(plan);
        let mut plans = self.plans.write();
        if plans.len() >= REMEMBERED_SUBJECTS {
            plans.clear();
        }
        plans.insert(key, Arc::clone(&plan));
        plan
    }
}

/// Returns the names by which matchers of a hook's system find a tool.
fn names<'a>(tool: &'a str, spec: &HookSpec, foreign: Option<&'a ForeignCall>) -> Vec<&'a str> {
    let is_native = spec.system() == NATIVE_SYSTEM;
    match foreign {
        // A hook of the system that made the call judges the whole call, and only once.
        Some(call) if !is_native && call.system() == spec.system() => {
            call.is_first().then(|| call.name()).into_iter().collect()
        }
        Some(call) if is_native => {
            let mut names = spec.tool_names(tool);
            names.push(call.name());
            names
        }
        _ => spec.tool_names(tool),
    }
}

/// Returns the key of a plan within a slot: the subject, and for user-defined events, which share a
/// slot, also the name. Calls of other systems have different keys, because some matchers use the
/// system's own names.
fn plan_key<'a>(event: &'a dyn AnyEvent, foreign: Option<&ForeignCall>) -> Cow<'a, str> {
    match (event.subject(), foreign) {
        (Some(subject), Some(call)) => Cow::Owned(format!("{subject}\0{}", call.key())),
        (Some(subject), None) if event.info().kind == EventKind::Custom => {
            Cow::Owned(format!("{} {subject}", event.name()))
        }
        (Some(subject), None) => Cow::Borrowed(subject),
        (None, _) => Cow::Borrowed(event.name()),
    }
}

/// A plan of a registry. If an event has only one plan, looking it up does not change a reference
/// count.
pub(crate) enum PlanRef<'a> {
    Kept(&'a Arc<Plan>),
    Found(Arc<Plan>),
}

impl std::ops::Deref for PlanRef<'_> {
    type Target = Arc<Plan>;

    fn deref(&self) -> &Arc<Plan> {
        match self {
            Self::Kept(plan) => plan,
            Self::Found(plan) => plan,
        }
    }
}

/// One bit for each kind of event, set if the kind has hooks.
pub(crate) type InterestBits = [u64; 2];

// The interest table is two words wide.
const _: () = assert!(EventKind::COUNT <= 128, "the interest table has 128 bits");

/// Returns the word and the bit of a kind of event.
pub(crate) const fn interest_bit(kind: EventKind) -> (usize, u64) {
    (kind.index() / 64, 1 << (kind.index() % 64))
}

impl Registry {
    pub(crate) fn new(hooks: Vec<Arc<Hook>>) -> Self {
        let slots = EventKind::ALL
            .iter()
            .map(|kind| Slot::new(*kind, &hooks))
            .collect();
        Self { hooks, slots }
    }

    /// Compiles the matchers now instead of at the first event. This is for whole sets of hooks: a
    /// host that registers hooks one by one should not pay for it each time.
    pub(crate) fn prepare(&self) {
        for slot in self.slots.iter().filter(|slot| slot.plan.is_none()) {
            slot.index();
        }
    }

    pub(crate) fn hooks(&self) -> &[Arc<Hook>] {
        &self.hooks
    }

    /// Returns the plan of `event`, or `None` if it has no hooks.
    pub(crate) fn plan(&self, event: &dyn AnyEvent) -> Option<PlanRef<'_>> {
        self.plan_of_operation(event, None)
    }

    /// Returns the plan of an event that is one operation of a call by another hook system.
    pub(crate) fn plan_of_operation(
        &self,
        event: &dyn AnyEvent,
        foreign: Option<&ForeignCall>,
    ) -> Option<PlanRef<'_>> {
        let slot = self.slots.get(event.info().kind.index())?;
        if slot.hooks.is_empty() {
            return None;
        }
        Some(slot.plan(event, foreign)).filter(|plan| !plan.steps.is_empty())
    }

    /// Returns the plan of an event whose call is a call to `tool` and also one to the shell.
    /// `is_known` tells whether the table of the system that makes the call has the tool.
    pub(crate) fn plan_as_shell(
        &self,
        event: &dyn AnyEvent,
        tool: &str,
        tools: &Arc<dyn ToolNames>,
        is_known: bool,
    ) -> Option<Arc<Plan>> {
        let slot = self.slots.get(event.info().kind.index())?;
        Some(slot.plan_as_shell(event, tool, tools, is_known)).filter(|plan| !plan.steps.is_empty())
    }

    /// Returns the hooks of `event` that do not take part in a dispatch with this plan, and why.
    pub(crate) fn left_out(
        &self,
        event: &dyn AnyEvent,
        plan: &Plan,
        lineage: &Lineage,
    ) -> Vec<(Arc<Hook>, LeftOutReason)> {
        let slot = self.slots.get(event.info().kind.index());
        let hooks = slot.map_or(&[][..], |slot| &slot.hooks);
        let reason = |hook: &Arc<Hook>| {
            if !hook.is_within(event.info(), lineage) {
                Some(LeftOutReason::Scope)
            } else if plan.steps.iter().any(|step| step.position == hook.position) {
                None
            } else if hook.spec.definition.is_some() && hook.matches(event) {
                Some(LeftOutReason::Duplicate)
            } else {
                Some(LeftOutReason::Matcher)
            }
        };
        hooks
            .iter()
            .filter(|hook| hook.is_for(event.name()))
            .filter_map(|hook| Some((Arc::clone(hook), reason(hook)?)))
            .collect()
    }

    /// Returns the number of hooks of `event`, whatever they match.
    pub(crate) fn handler_count(&self, event: &EventName) -> usize {
        self.slots.get(event.kind().index()).map_or(0, |slot| {
            slot.hooks
                .iter()
                .filter(|hook| hook.is_for(event.as_str()))
                .count()
        })
    }

    /// Returns whether a hook of `kind` does more than watch.
    pub(crate) fn may_change(&self, kind: EventKind) -> bool {
        let slot = self.slots.get(kind.index());
        slot.is_some_and(|slot| {
            let mut phases = slot.hooks.iter().map(|hook| hook.spec.phase);
            phases.any(|phase| phase != Phase::Observe)
        })
    }

    pub(crate) fn interest(&self) -> InterestBits {
        let mut bits = [0; 2];
        for (kind, slot) in EventKind::ALL.iter().zip(&self.slots) {
            let (word, bit) = interest_bit(*kind);
            if let (false, Some(word)) = (slot.hooks.is_empty(), bits.get_mut(word)) {
                *word |= bit;
            }
        }
        bits
    }

    /// Returns a description of every hook, event by event, in the order in which they run.
    pub(crate) fn describe(&self) -> Vec<RegisteredHook> {
        let mut hooks = self.hooks.clone();
        sort(&mut hooks);
        let place = |hook: &Arc<Hook>| hook.spec.event.as_ref().map(EventName::kind);
        hooks.sort_by_key(|hook| (place(hook).is_none(), place(hook)));
        hooks.iter().map(|hook| RegisteredHook::new(hook)).collect()
    }
}

/// The description of a registered hook, for people and tools.
#[derive(Debug, Clone, Serialize)]
pub struct RegisteredHook {
    /// The event, or `None` for every event.
    pub event: Option<EventName>,
    /// The hook.
    pub id: HookId,
    /// The matcher as written, or `*` if it matches everything.
    pub matcher: String,
    /// The agent that the hook is for, if it is for only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Whether a hook for one agent is also for agents without a name.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub includes_unnamed: bool,
    /// The kind of its handler.
    pub kind: &'static str,
    /// What the handler runs.
    pub handler: String,
    /// When the hook runs within a dispatch.
    pub phase: Phase,
    /// Its priority.
    pub priority: i32,
    /// The time limit of one run in seconds, or `None` if there is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<f64>,
    /// What a failure does, and why.
    pub policy: Policy,
    /// Where the hook is defined.
    pub source: Source,
    /// The known problem that keeps it from working, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl RegisteredHook {
    fn new(hook: &Hook) -> Self {
        let HookSpec {
            event,
            id,
            matcher,
            agent,
            includes_unnamed,
            handling,
            phase,
            priority,
            timeout,
            policy,
            source,
            ..
        } = &hook.spec;
        Self {
            event: event.clone(),
            id: id.clone(),
            matcher: matcher.to_string(),
            agent: agent.clone(),
            includes_unnamed: *includes_unnamed,
            kind: handling.kind(),
            handler: handling.describe(),
            phase: *phase,
            priority: *priority,
            timeout_seconds: (*timeout != NO_TIMEOUT).then_some(timeout.as_secs_f64()),
            policy: *policy,
            source: source.clone(),
            problem: handling.problem(),
        }
    }
}

/// Returns the hooks without those for which `gone` returns true.
pub(crate) fn without(hooks: &[Arc<Hook>], gone: impl Fn(&Hook) -> bool) -> Vec<Arc<Hook>> {
    hooks.iter().filter(|hook| !gone(hook)).cloned().collect()
}

impl Hook {
    /// Returns whether the hook is for an event of this kind and lineage.
    pub(crate) fn is_within(&self, info: &EventInfo, lineage: &Lineage) -> bool {
        lineage
            .reach(info)
            .any(|origin| self.scope.applies(origin) && self.spec.is_for_agent(&origin.agent.name))
    }
}

impl Hook {
    /// Returns whether the matcher matches the event, under one of the names that its tool has in the hook's system.
    fn matches(&self, event: &dyn AnyEvent) -> bool {
        let matcher = &self.spec.matcher;
        match event.tool_call() {
            Some((tool, _)) => names(tool, &self.spec, None)
                .into_iter()
                .any(|name| matcher.matches(Some(name))),
            None => matcher.matches(event.subject()),
        }
    }
}

impl Scope {
    fn applies(&self, origin: &Origin) -> bool {
        match self {
            Self::Global | Self::File(_) => true,
            Self::Workspace(workspace) => origin.workspace.as_ref() == Some(workspace),
            Self::Session(session) => origin.session_id == *session,
        }
    }
}
