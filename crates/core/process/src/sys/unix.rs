//! Children on Unix: process groups, pipes on the reactor, and the guard that outlives this process.

mod child;
mod guard;
mod kernel;
mod pipes;
mod poll_timer;
mod programs;
mod reactor;
mod reaper;
mod resources;

pub(crate) use child::{Child, Waiting};
pub(crate) use guard::{end as end_guard, include_session};
pub(crate) use programs::{SH, executable_names, is_executable};
pub(crate) use resources::{free_descriptors, refusal};
