//! Reads the manifests of the workspace's crates.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use toml::Table;

/// A crate of the workspace.
#[derive(Debug)]
pub(crate) struct Crate {
    /// The name of its folder below `crates/`.
    pub(crate) name: String,
    pub(crate) dir: PathBuf,
    /// The folders of the workspace's crates that it depends on. Dependencies of tests are not included.
    pub(crate) dependencies: BTreeSet<String>,
}

impl Crate {
    /// Returns the existing root files of the library and the program.
    pub(crate) fn roots(&self) -> Vec<PathBuf> {
        let files = ["src/lib.rs", "src/main.rs"].map(|file| self.dir.join(file));
        files.into_iter().filter(|file| file.exists()).collect()
    }
}

/// Reads every crate below `crates/`, in the order of their names.
pub(crate) fn read(root: &Path) -> anyhow::Result<Vec<Crate>> {
    let workspace = manifest(&root.join("Cargo.toml"))?;
    let known = workspace
        .get("workspace")
        .and_then(|it| it.get("dependencies")?.as_table())
        .context("the manifest of the workspace has no `workspace.dependencies`")?;
    let mut crates = Vec::new();
    for entry in fs::read_dir(root.join("crates"))? {
        let dir = entry?.path();
        let file = dir.join("Cargo.toml");
        if !file.exists() {
            continue;
        }
        let manifest = manifest(&file)?;
        let mut dependencies = BTreeSet::new();
        for table in tables(&manifest) {
            dependencies.extend(table.keys().filter_map(|name| folder(known, name)));
        }
        let name = dir.file_name().context("a crate has no folder")?;
        crates.push(Crate {
            name: name.to_string_lossy().into_owned(),
            dir,
            dependencies,
        });
    }
    crates.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(crates)
}

fn manifest(file: &Path) -> anyhow::Result<Table> {
    let text = fs::read_to_string(file)?;
    text.parse()
        .with_context(|| format!("cannot read {}", file.display()))
}

/// Returns the tables of dependencies, including tables for single platforms.
fn tables(manifest: &Table) -> Vec<&Table> {
    let mut tables = Vec::new();
    tables.extend(manifest.get("dependencies").and_then(toml::Value::as_table));
    if let Some(targets) = manifest.get("target").and_then(toml::Value::as_table) {
        let platforms = targets
            .values()
            .filter_map(|target| target.get("dependencies"));
        tables.extend(platforms.filter_map(toml::Value::as_table));
    }
    tables
}

/// Returns the folder of a dependency, if it is a crate of the workspace.
fn folder(known: &Table, name: &str) -> Option<String> {
    let path = known.get(name)?.get("path")?.as_str()?;
    Some(path.strip_prefix("crates/")?.to_owned())
}
