//! Sends the event of one case through its hooks.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tenterhook_discovery::{Layers, LoadOptions, Sources, discover};
use tenterhook_engine::journal::{JournalRecord, RunRecord};
use tenterhook_engine::tool_call::{JudgedToolCall, judge};
use tenterhook_engine::{
    Decision, Dispatcher, Engine, HookId, HookSpec, JsonObject, MemoryJournal, Origin, Scope,
    ToolCall,
};
use tenterhook_hookfile::LoadError;
use tenterhook_systems::form::{FormError, ReadBack};
use tenterhook_systems::tools;
use tenterhook_trust::Trust;

use crate::decision::ExpectedDecision;
use crate::event::{CaseEvent, read_event};
use crate::result::{CaseResult, DecidedBy, LoadedHook};

/// The effect in the record of a hook that ended the agent's run.
const END_OF_RUN: &str = "stop_run";

/// The hooks of a case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TestedHooks {
    /// The hooks of these files.
    Files(Vec<PathBuf>),
    /// All hooks of the project, as they are in the work tree.
    Project,
}

/// One case, in the form in which the process that runs it receives it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseCall {
    /// The hooks.
    pub hooks: TestedHooks,
    /// The event.
    pub event: CaseEvent,
    /// The directory that the hooks run in, unless the payload names another one.
    pub cwd: PathBuf,
}

impl CaseCall {
    /// Returns where the hooks of the case come from. Naming a file approves it. For the project, all hooks are loaded
    /// as they are now, whether they are approved or not.
    pub fn sources(&self, options: LoadOptions) -> Sources {
        let layers = Layers {
            start: match &self.hooks {
                TestedHooks::Files(_) => None,
                TestedHooks::Project => Some(self.cwd.clone()),
            },
            ..Layers::default()
        };
        let options = LoadOptions {
            lenient: true,
            trust: Trust::Caller,
            directory: self.cwd.clone(),
            ..options
        };
        let sources = Sources::new(layers, options);
        match &self.hooks {
            TestedHooks::Files(files) => files
                .iter()
                .fold(sources, |sources, file| sources.with_file(file)),
            TestedHooks::Project => sources,
        }
    }

    /// Loads the hooks, and sends the event through them.
    ///
    /// # Errors
    /// Fails if a source of hooks cannot be loaded, or the event cannot be read.
    ///
    /// # Panics
    /// Panics outside a tokio runtime with I/O and time enabled.
    pub async fn run(&self, sources: Sources) -> Result<CaseResult, LoadError> {
        let found = discover(sources, Vec::new()).await?;
        if !found.broken.is_empty() {
            return Err(LoadError::from(found.broken));
        }
        // The workers of scripts end with what was discovered.
        let specs = found.specs.clone();
        let result = self.dispatch(specs).await;
        drop(found);
        result
    }

    async fn dispatch(&self, specs: Vec<HookSpec>) -> Result<CaseResult, LoadError> {
        let journal = Arc::new(MemoryJournal::new());
        let engine = Engine::builder()
            .tools(tools::native())
            .journal(Arc::clone(&journal) as _)
            .build();
        engine.scope(Scope::Global).replace(specs);
        let mut result = self.send(&engine, &journal).await?;
        if result.runs.is_empty() {
            result.unmatched = engine.hooks().into_iter().map(LoadedHook::from).collect();
        }
        Ok(result)
    }

    /// Sends the event of the case.
    async fn send(
        &self,
        engine: &Engine,
        journal: &MemoryJournal,
    ) -> Result<CaseResult, LoadError> {
        match &self.event {
            CaseEvent::ToolCall {
                tool,
                input,
                system,
            } => {
                let origin = Origin::new("test", self.cwd.clone());
                let hooks = engine.dispatcher(origin);
                let hooks = match system.as_deref().and_then(tools::of) {
                    Some(tools) => hooks.with_tools(tools),
                    None => hooks,
                };
                Ok(self.judge(&hooks, journal, tool, input).await)
            }
            CaseEvent::Event {
                event,
                from,
                system,
                payload,
            } => {
                let unreadable = |error: FormError| unreadable(&error);
                let mut read = read_event(event, from.as_deref(), payload).map_err(unreadable)?;
                if let Some(tools) = system.as_deref().and_then(tools::of) {
                    read.tools = Some(tools);
                }
                self.send_event(engine, journal, read).await
            }
        }
    }

    /// Sends one event.
    async fn send_event(
        &self,
        engine: &Engine,
        journal: &MemoryJournal,
        read: ReadBack,
    ) -> Result<CaseResult, LoadError> {
        let before = read.event.payload().map_err(|error| unreadable(&error))?;
        let mut origin = read.origin;
        if origin.cwd.as_os_str().is_empty() {
            origin.cwd.clone_from(&self.cwd);
        }
        let hooks = engine.dispatcher(origin);
        let hooks = match read.tools {
            Some(tools) => hooks.with_tools(tools),
            None => hooks,
        };
        let name = read.event.name().to_owned();
        let dispatched = hooks.dispatch_any(read.event).await;
        let after = dispatched.event.payload();
        let after = after.map_err(|error| unreadable(&error))?.clone();
        let runs = runs(journal.take());
        let outcome = &dispatched.outcome;
        // A hook that ends the run stops the operation too, whatever else the event allows.
        let decided = match (dispatched.decision(), &outcome.stop_run) {
            (Decision::Proceed | Decision::Ask { .. }, Some(reason)) => Decided {
                decision: ExpectedDecision::Stop,
                reason: Some(reason.clone()),
                by: outcome.run_stopped_by.clone(),
            },
            (decision, _) => Decided::of(&decision),
        };
        Ok(CaseResult {
            by: decided.by(&runs, &self.cwd),
            decision: decided.decision,
            reason: decided.reason.or_else(|| outcome.permission_reason.clone()),
            before,
            after,
            context: outcome.context.clone(),
            runs,
            sent: format!("the event `{name}`"),
            unmatched: Vec::new(),
        })
    }

    /// Sends a tool call through its gates.
    async fn judge(
        &self,
        hooks: &Dispatcher,
        journal: &MemoryJournal,
        tool: &str,
        input: &JsonObject,
    ) -> CaseResult {
        let call = ToolCall::new("call_1", tool, Value::Object(input.clone()));
        let judged = judge(hooks, &(), &call).await;
        let decided = Decided::of(&judged.decision());
        let after = match &judged {
            JudgedToolCall::Proceed(ready) => ready.call().input.clone(),
            JudgedToolCall::Ask(asked) => asked.call().input.clone(),
            JudgedToolCall::Stop(stopped) => stopped.call().input.clone(),
        };
        // The tool does not run, so the call ends here.
        drop(judged);
        let runs = runs(journal.take());
        let decided = decided.or_end_of_run(&runs);
        let payload = |input: JsonObject| {
            let mut payload = JsonObject::new();
            payload.insert("tool_name".to_owned(), tool.into());
            payload.insert("tool_input".to_owned(), input.into());
            payload
        };
        CaseResult {
            by: decided.by(&runs, &self.cwd),
            decision: decided.decision,
            reason: decided.reason,
            before: payload(input.clone()),
            after: payload(after),
            context: Vec::new(),
            runs,
            sent: format!("the call of `{tool}`"),
            unmatched: Vec::new(),
        }
    }
}

/// Returns the error for a payload that is not an event.
fn unreadable(error: &dyn std::error::Error) -> LoadError {
    LoadError::without_source(format!("cannot read the payload: {error}"))
}

/// A decision in the words of test files.
struct Decided {
    decision: ExpectedDecision,
    reason: Option<String>,
    by: Option<HookId>,
}

impl Decided {
    fn of(decision: &Decision) -> Self {
        Self {
            decision: match decision {
                Decision::Proceed => ExpectedDecision::Proceed,
                Decision::Ask { .. } => ExpectedDecision::Ask,
                Decision::Stop { .. } => ExpectedDecision::Stop,
            },
            reason: decision.reason().map(str::to_owned),
            by: decision.by().cloned(),
        }
    }

    /// Returns a stop instead if a hook ended the agent's run, because nothing more happens then.
    fn or_end_of_run(self, runs: &[RunRecord]) -> Self {
        let end = runs.iter().find(|run| run.effect == END_OF_RUN);
        match end.filter(|_| self.decision != ExpectedDecision::Stop) {
            Some(run) => Self {
                decision: ExpectedDecision::Stop,
                reason: run.reason.clone(),
                by: Some(run.hook.clone()),
            },
            None => self,
        }
    }

    /// Returns the hook that decided, with its event and its file. The path is relative to the
    /// project.
    fn by(&self, runs: &[RunRecord], project: &Path) -> Option<DecidedBy> {
        let hook = self.by.as_ref()?;
        let run = runs.iter().rev().find(|run| run.hook == *hook);
        let source = run.map(|run| Path::new(&run.source));
        let source = source.map(|source| source.strip_prefix(project).unwrap_or(source));
        Some(DecidedBy {
            hook: hook.to_string(),
            source: source.map_or_else(String::new, |source| source.display().to_string()),
            event: run.map(|run| run.event.clone()).unwrap_or_default(),
        })
    }
}

/// Returns the records of hook runs.
fn runs(records: Vec<JournalRecord>) -> Vec<RunRecord> {
    let runs = records.into_iter().filter_map(|record| {
        if let JournalRecord::Run(run) = record {
            return Some(run);
        }
        None
    });
    runs.collect()
}
