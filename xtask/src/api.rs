//! Lists the public API of the crates that embedders build against.
//!
//! The lists are kept in the repository, so that a review shows every change of the API.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail};
use public_api::Builder;

/// The crates whose API is listed, by their folders: the facade, and the crates that it re-exports whole.
const CRATES: [&str; 5] = [
    "tenterhook",
    "core/protocol",
    "core/engine",
    "hooks/discovery",
    "core/journal",
];

/// The name of the list in a crate's folder.
const LIST: &str = "api.txt";

const HEADER: &str = "\
# The public API of this crate. `cargo run -p xtask -- api --write` writes this file; a removed line is a breaking change.
";

/// Writes the lists.
pub(crate) fn write(root: &Path) -> anyhow::Result<()> {
    for name in CRATES {
        fs::write(list_path(root, name), list(root, name)?)?;
    }
    Ok(())
}

/// Fails if a list differs from the API of its crate.
pub(crate) fn check(root: &Path) -> anyhow::Result<()> {
    let mut differences = Vec::new();
    for name in CRATES {
        let path = list_path(root, name);
        let recorded =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let lines = differing_lines(&recorded, &list(root, name)?);
        differences.extend(
            lines
                .iter()
                .map(|line| format!("crates/{name}/{LIST}: {line}")),
        );
    }
    if !differences.is_empty() {
        bail!(
            "the public API changed:\n{}\n\
             If you intend this, run `cargo run -p xtask -- api --write`, and describe in CHANGELOG.md what breaks",
            differences.join("\n")
        );
    }
    println!(
        "api: {LIST} is up to date in the crates {}",
        CRATES.join(", ")
    );
    Ok(())
}

fn list_path(root: &Path, name: &str) -> std::path::PathBuf {
    root.join("crates").join(name).join(LIST)
}

/// Returns the current list of a crate, with all features enabled.
fn list(root: &Path, name: &str) -> anyhow::Result<String> {
    // `RUSTC_BOOTSTRAP` would invalidate the artifacts of plain builds, so use a separate folder.
    let target = root.join("target/api");
    let package = match name.rsplit_once('/') {
        Some((_, name)) => format!("tenterhook-{name}"),
        None => name.to_owned(),
    };
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .current_dir(root)
        .args(["rustdoc", "--quiet", "--locked", "--lib", "--all-features"])
        .args(["--package", &package])
        .args(["--", "-Z", "unstable-options", "--output-format", "json"])
        .args(["--cap-lints", "allow"])
        // The JSON format of rustdoc is unstable, but the pinned toolchain always writes the same version.
        .env("RUSTC_BOOTSTRAP", "1")
        .env("CARGO_TARGET_DIR", &target);
    let status = cargo.status().context("cannot run cargo")?;
    if !status.success() {
        bail!("rustdoc of {package} failed: {status}");
    }
    let json = target
        .join("doc")
        .join(format!("{}.json", package.replace('-', "_")));
    let api = Builder::from_rustdoc_json(json)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build()
        .with_context(|| {
            format!(
                "`public-api` cannot read the JSON that this toolchain's rustdoc wrote for {package}"
            )
        })?;
    Ok(format!("{HEADER}{api}"))
}

/// Returns the lines that are in only one of the lists, with the prefix `-` or `+`.
fn differing_lines(recorded: &str, current: &str) -> Vec<String> {
    let before: BTreeSet<&str> = recorded.lines().collect();
    let after: BTreeSet<&str> = current.lines().collect();
    let gone = before.difference(&after).map(|line| format!("- {line}"));
    let new = after.difference(&before).map(|line| format!("+ {line}"));
    gone.chain(new).collect()
}

#[cfg(test)]
mod tests {
    use super::differing_lines;

    #[test]
    fn removed_and_added_items_are_told_apart() {
        let lines = differing_lines("pub fn a()\npub fn b()\n", "pub fn b()\npub fn c()\n");
        assert_eq!(lines, ["- pub fn a()", "+ pub fn c()"]);
        assert!(differing_lines("pub fn a()\n", "pub fn a()\n").is_empty());
    }
}
