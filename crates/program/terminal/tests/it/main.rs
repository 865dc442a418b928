//! The pages are what the program knows, and what they say about answers is true.

#![expect(
    clippy::unwrap_used,
    reason = "a test stops at the first thing that is not as it should be"
)]

mod answers;
mod pages;
mod types;
