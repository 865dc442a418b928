//! Regular expressions in matchers, if the feature `regex` is enabled.

#[cfg(not(feature = "regex"))]
mod absent;
#[cfg(feature = "regex")]
mod compiled;
mod error;

#[cfg(not(feature = "regex"))]
pub(super) use absent::{Pattern, PatternSet};
#[cfg(feature = "regex")]
pub(super) use compiled::{Pattern, PatternSet};
pub use error::PatternError;
