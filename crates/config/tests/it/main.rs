//! Hook files through the public door.

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
mod extension;
mod folder;
mod http;
mod mistakes;
mod model;
mod native;
mod plain;
mod problems;
mod reload;
mod system;
mod trigger;
mod trust;

use std::path::{Path, PathBuf};

use tenterhook::Layer;
use tenterhook_config::{
    DisabledSources, Environment, LoadError, LoadOptions, Loaded, Trust, load_text,
};
use tenterhook_handlers::Services;

/// Options that do not depend on the machine: no variables but these, and a directory that is everywhere.
fn options() -> LoadOptions {
    LoadOptions {
        services: Services::default(),
        lenient: false,
        directory: PathBuf::from("/"),
        environment: Environment::new([("HOME", "/home/ada"), ("T", "token")]),
        trust: Trust::Caller,
        deny_untrusted: false,
        disabled: DisabledSources::default(),
    }
}

fn load(path: &str, text: &str) -> Result<Loaded, LoadError> {
    load_text(Path::new(path), text, Layer::Project, &options())
}

/// Loads what has to be loadable without a warning.
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
