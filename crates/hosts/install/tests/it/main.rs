//! Installing into configuration files in a temporary home folder.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]
#![cfg(unix)]

mod approval;
mod fault;
mod foreign_edit;
mod link;
mod own_file;
mod programs;
mod proof;
mod round_trip;
mod stage;
mod status;
