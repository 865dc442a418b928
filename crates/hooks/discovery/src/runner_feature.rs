//! The features that compile in the runners of hooks.
//!
//! A hook that needs a missing feature cannot be loaded, so it is never silently left out.

use tenterhook_hookfile::HookAction;

/// A feature of this crate, and of `tenterhook`, that one kind of hook needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunnerFeature {
    Command,
    Http,
    Model,
    Workers,
}

impl RunnerFeature {
    /// Returns the feature that an action needs. Built-ins check this themselves.
    pub(crate) fn of_action(action: &HookAction) -> Option<Self> {
        match action {
            HookAction::Builtin { .. } => None,
            HookAction::Model(_) => Some(Self::Model),
            HookAction::Http(_) => Some(Self::Http),
            HookAction::Line { .. } | HookAction::Argv(_) => Some(Self::Command),
        }
    }

    fn is_compiled_in(self) -> bool {
        match self {
            Self::Command => cfg!(feature = "command"),
            Self::Http => cfg!(feature = "http"),
            Self::Model => cfg!(feature = "model"),
            Self::Workers => cfg!(feature = "workers"),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Http => "http",
            Self::Model => "model",
            Self::Workers => "workers",
        }
    }

    /// Returns why a hook cannot run, if the feature was not compiled in.
    pub(crate) fn problem(self, hook: &str) -> Option<String> {
        let does = match self {
            Self::Command => "runs a command",
            Self::Http => "posts to a URL",
            Self::Model => "asks a model",
            Self::Workers => "is a script",
        };
        let feature = self.name();
        (!self.is_compiled_in()).then(|| {
            format!(
                "hook `{hook}` {does}; this program was built without the feature `{feature}` of `tenterhook`"
            )
        })
    }
}
