//! The order of the hooks of one file, which an approval also covers.

/// The position of a hook among the approved hooks of its file. They run in that order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HookOrder {
    /// All of them are in the approved order.
    #[default]
    AsApproved,
    /// This hook has moved relative to the approved order.
    Moved,
    /// Other hooks of its file have moved.
    NextToMoved,
}
