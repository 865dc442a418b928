//! Tests the agent from outside, with scripted and served models, real tools, and hooks in the engine.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]

mod approval;
mod background;
#[cfg(target_os = "linux")]
mod cancelling;
mod choice;
#[cfg(unix)]
mod command;
mod compaction;
mod contract;
mod ending;
mod exchange;
#[cfg(unix)]
mod extension;
mod gate;
mod input;
mod journey;
mod judge;
#[cfg(unix)]
mod late_tool;
#[cfg(unix)]
mod message;
mod progress;
mod queue;
mod recipe;
mod remote;
#[cfg(unix)]
mod replacement;
mod restriction;
mod result;
mod retry;
#[cfg(unix)]
mod script_model;
mod stage;
mod stored;
mod subagent;
mod test_tool;
#[cfg(unix)]
mod withholding;

use std::fs;
use std::path::Path;

#[test]
fn no_test_file_is_forgotten() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let main = fs::read_to_string(folder.join("main.rs")).unwrap();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        assert!(
            name == "main" || main.contains(&format!("mod {name};")),
            "`{name}` has no `mod` line"
        );
    }
}
