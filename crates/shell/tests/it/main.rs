//! Tests of rules against what a real shell runs.

mod real_shell;
