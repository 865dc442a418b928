//! What scripts add to an agent after they were loaded: tools and footers.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use tenterhook_runners::worker::{Refusal, Rendered, ScriptAddition, ScriptServer};
use tenterhook_tools::{Tool as _, Toolbox};
use tokio_util::sync::CancellationToken;

use super::{ForeignTool, Spelling, add_script_tool};

/// The maximum number of tools that scripts may add.
const MAX_TOOLS: usize = 256;

/// The maximum number of scripts with a footer. Further ones are not shown.
const MAX_FOOTERS: usize = 32;

/// What scripts have added since they were loaded. All sessions of an agent share it, until the scripts are loaded
/// again.
#[derive(Clone, Default)]
pub struct ScriptAdditions(Arc<Mutex<Added>>);

#[derive(Default)]
struct Added {
    /// The agent's tools with the added ones. `None` if there are no added tools.
    toolbox: Option<Toolbox>,
    tools: usize,
    footers: Vec<Arc<dyn ScriptServer>>,
}

impl fmt::Debug for ScriptAdditions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptAdditions").finish_non_exhaustive()
    }
}

impl ScriptAdditions {
    /// Returns the agent's tools with the added ones, if there are any.
    pub(crate) fn toolbox(&self) -> Option<Toolbox> {
        self.0.lock().toolbox.clone()
    }

    /// Removes everything that was added.
    pub(crate) fn clear(&self) {
        *self.0.lock() = Added::default();
    }

    /// Adds something that a script registers. `own` are the agent's tools. Returns the agent's name of the tool that
    /// was added.
    pub(crate) fn add(
        &self,
        own: &Toolbox,
        script: Arc<dyn ScriptServer>,
        addition: ScriptAddition,
        spelling: &Spelling,
    ) -> Result<Option<String>, Refusal> {
        let mut added = self.0.lock();
        let tool = match addition {
            ScriptAddition::Tool(tool) => tool,
            ScriptAddition::Footer => {
                // The newest footer is shown.
                added.footers.truncate(MAX_FOOTERS - 1);
                added.footers.insert(0, script);
                return Ok(None);
            }
        };
        if added.tools == MAX_TOOLS {
            return Err(Refusal::Failed(format!(
                "too many tools were registered after the start; the limit is {MAX_TOOLS}"
            )));
        }
        let tool = ForeignTool::of_script(script, tool);
        let tool = tool.map_err(|problem| Refusal::Failed(problem.to_string()))?;
        let name = (spelling.own_tool)(tool.name()).to_owned();
        let before = added.toolbox.as_ref().unwrap_or(own).clone();
        let toolbox = add_script_tool(before, tool, spelling);
        added.toolbox = Some(toolbox);
        added.tools += 1;
        Ok(Some(name))
    }

    /// Returns the lines of the newest footer. `None` if there is no footer, or it cannot be rendered now.
    pub(crate) async fn footer(&self, cancel: &CancellationToken) -> Option<Vec<String>> {
        let newest = self.0.lock().footers.first().cloned()?;
        let rendered = newest.render(Rendered::Footer, cancel).await;
        Some(rendered.ok()?.unwrap_or_default())
    }
}
