//! Reads the manifests of the workspace's crates.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use toml::Table;

/// A crate of the workspace.
#[derive(Debug)]
pub(crate) struct Crate {
    /// The name of its folder.
    pub(crate) name: String,
    pub(crate) dir: PathBuf,
    /// The name of the group of crates that it is in, if it is in one.
    pub(crate) group: Option<String>,
    /// The names of the workspace's crates that it depends on. Dependencies of tests are not included.
    pub(crate) dependencies: BTreeSet<String>,
}

impl Crate {
    /// Returns the existing root files of the library and the program.
    pub(crate) fn roots(&self) -> Vec<PathBuf> {
        let files = ["src/lib.rs", "src/main.rs"].map(|file| self.dir.join(file));
        files.into_iter().filter(|file| file.exists()).collect()
    }
}

/// Returns the folders of the crates below `crates/`: those directly in it, and those in its groups.
pub(crate) fn folders(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut groups = Vec::new();
    for entry in fs::read_dir(root.join("crates"))? {
        let folder = entry?.path();
        let is_crate = folder.join("Cargo.toml").exists();
        if is_crate { &mut found } else { &mut groups }.push(folder);
    }
    for group in groups {
        for entry in fs::read_dir(group)? {
            let folder = entry?.path();
            if folder.join("Cargo.toml").exists() {
                found.push(folder);
            }
        }
    }
    Ok(found)
}

/// Reads every crate below `crates/`, in the order of their names.
pub(crate) fn read(root: &Path) -> anyhow::Result<Vec<Crate>> {
    let workspace = manifest(&root.join("Cargo.toml"))?;
    let known = workspace
        .get("workspace")
        .and_then(|it| it.get("dependencies")?.as_table())
        .context("the manifest of the workspace has no `workspace.dependencies`")?;
    let mut crates = Vec::new();
    for dir in folders(root)? {
        let manifest = manifest(&dir.join("Cargo.toml"))?;
        let mut dependencies = BTreeSet::new();
        for table in tables(&manifest) {
            dependencies.extend(table.keys().filter_map(|name| crate_name(known, name)));
        }
        let text = |name: Option<&OsStr>| name.map(|name| name.to_string_lossy().into_owned());
        let group = text(dir.parent().and_then(Path::file_name));
        crates.push(Crate {
            name: text(dir.file_name()).context("a crate has no folder")?,
            group: group.filter(|group| group != "crates"),
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

/// Returns the name of a dependency's folder, if it is a crate of the workspace.
fn crate_name(known: &Table, name: &str) -> Option<String> {
    let path = known.get(name)?.get("path")?.as_str()?;
    path.starts_with("crates/")
        .then(|| path.rsplit('/').next())?
        .map(str::to_owned)
}
