//! Tests of hook files through the public API.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]

mod agent_file;
mod agent_flag;
mod agent_key;
mod arbitrary;
mod contract;
mod corpus;
mod coverage;
mod extension;
mod folder;
mod http;
mod imported;
#[cfg(unix)]
mod imported_gemini;
#[cfg(unix)]
mod imported_meaning;
#[cfg(unix)]
mod imported_plugin;
mod mistakes;
mod model;
mod native;

mod problems;
#[cfg(unix)]
mod race;
mod reload;
mod system;
mod trigger;
mod trust;

use std::path::{Path, PathBuf};

use tenterhook_discovery::{DisabledSources, LoadOptions, Loaded, load_text};
use tenterhook_engine::Layer;
use tenterhook_hookfile::{Environment, LoadError};
use tenterhook_runners::Services;
use tenterhook_trust::Trust;

/// Options that do not depend on the machine: only these variables, and a directory that always exists.
fn options() -> LoadOptions {
    LoadOptions {
        services: Services::default(),
        lenient: false,
        directory: PathBuf::from("/"),
        environment: Environment::new([("HOME", "/home/ada"), ("T", "token")]),
        trust: Trust::Caller,
        deny_untrusted: false,
        disabled: DisabledSources::default(),
        host: None,
    }
}

fn load(path: &str, text: &str) -> Result<Loaded, LoadError> {
    load_text(Path::new(path), text, Layer::Project, &options())
}

/// Loads a text, and fails on any problem or warning.
fn loaded(path: &str, text: &str) -> Loaded {
    let loaded = load(path, text).unwrap_or_else(|error| panic!("{}", error.render(false)));
    let warnings: Vec<_> = loaded.warnings.iter().map(|w| w.render(false)).collect();
    assert_eq!(warnings, [""; 0], "{text}");
    loaded
}

#[test]
fn every_file_of_tests_is_part_of_this_binary() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let main = include_str!("main.rs");
    for entry in std::fs::read_dir(dir).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if let Some(module) = name.strip_suffix(".rs").filter(|name| *name != "main") {
            assert!(main.contains(&format!("\nmod {module};\n")), "{name}");
        }
    }
}
