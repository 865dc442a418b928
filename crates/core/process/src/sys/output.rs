//! The outputs of a child, on every system.

/// One of the two outputs of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output {
    Stdout,
    Stderr,
}
