//! Checks that every file of this folder is part of the test binary.

use std::fs;
use std::path::Path;

#[test]
fn every_file_is_a_module() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let main = fs::read_to_string(dir.join("main.rs")).unwrap();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let module = path.file_stem().unwrap().to_str().unwrap();
        let is_listed = main.lines().any(|line| line == format!("mod {module};"));
        assert!(module == "main" || is_listed, "{module}");
    }
}
