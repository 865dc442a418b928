//! Children on Windows.

mod child;
mod programs;
mod resources;

pub(crate) use child::{Child, Waiting};
pub(crate) use programs::{SH, executable_names, is_executable};
pub(crate) use resources::{free_descriptors, refusal};
