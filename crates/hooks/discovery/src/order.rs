//! The order in which the hooks of a session run.

use tenterhook_engine::HookSpec;

/// The hooks of a session, grouped by origin. The groups run in the order of the fields.
///
/// Hook files come first, by layer: machine, user, project, then named files. Hooks that a person wrote
/// always run before hooks that keys of agents declare.
#[derive(Debug, Default)]
pub(crate) struct HooksByOrigin {
    /// Hooks of hook files and folders.
    pub(crate) sources: Vec<HookSpec>,
    /// Hooks that deny because an approval does not apply to the current folder or repository.
    pub(crate) denials: Vec<HookSpec>,
    /// Hooks of the command line.
    pub(crate) lines: Vec<HookSpec>,
    /// Hooks that keys of agents declare.
    pub(crate) wired: Vec<HookSpec>,
    /// Hooks of the host that run after all others.
    pub(crate) last: Vec<HookSpec>,
}

impl HooksByOrigin {
    /// Returns all hooks in the order in which they run.
    pub(crate) fn in_order(self) -> Vec<HookSpec> {
        let Self {
            sources,
            denials,
            lines,
            wired,
            last,
        } = self;
        let parts = [sources, denials, lines, wired, last];
        parts.into_iter().flatten().collect()
    }
}
