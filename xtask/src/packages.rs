//! Checks that every published crate is complete, and that the packages for Python and npm have the same
//! version.
//!
//! `cargo package` finds most of these mistakes too, but it has to compile each package, which takes as
//! long as a first build.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use toml::{Table, Value};

use crate::crates;

/// The licence files that each package carries.
const LICENCES: [&str; 2] = ["LICENSE-MIT", "LICENSE-APACHE"];
/// The largest number of keywords and of categories that the registry of crates accepts.
const MAX_KEYWORDS: usize = 5;
/// The manifests of the packages for Python, which have the version of the crates.
const PYTHON: [&str; 2] = ["pyproject.toml", "sdk/python/pyproject.toml"];
/// The manifest of the package for npm.
const NPM: &str = "sdk/javascript/tenterhook/package.json";

/// Returns a message for each problem of the packages in the repository at `root`.
pub(crate) fn problems(root: &Path) -> anyhow::Result<Vec<String>> {
    let workspace = manifest(&root.join("Cargo.toml"))?;
    let version = text(&workspace, &["workspace", "package", "version"])
        .context("the manifest of the workspace has no `workspace.package.version`")?;
    let mut problems = dependency_faults(&workspace, version);
    for dir in packages(root)? {
        let manifest = manifest(&dir.join("Cargo.toml"))?;
        let name = dir.strip_prefix(root).unwrap_or(&dir).display().to_string();
        let found = manifest_faults(&manifest)
            .into_iter()
            .chain(licence_faults(root, &dir))
            .chain(outside_faults(&dir)?);
        problems.extend(found.map(|problem| format!("{name}: {problem}")));
    }
    for file in PYTHON {
        let found = manifest(&root.join(file))?;
        let found = text(&found, &["project", "version"]);
        problems.extend(version_fault(file, found, version));
    }
    problems.extend(npm_faults(root, version)?);
    problems.extend(image_fault(root)?);
    Ok(problems)
}

/// Returns the folders of the crates that are published.
fn packages(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = vec![root.join("sdk")];
    for dir in crates::folders(root)? {
        if is_published(&manifest(&dir.join("Cargo.toml"))?) {
            found.push(dir);
        }
    }
    found.sort();
    Ok(found)
}

fn is_published(manifest: &Table) -> bool {
    let publish = manifest.get("package").and_then(|it| it.get("publish"));
    publish.and_then(Value::as_bool) != Some(false)
}

fn manifest(file: &Path) -> anyhow::Result<Table> {
    let text = fs::read_to_string(file)
        .with_context(|| format!("cannot read the manifest {}", file.display()))?;
    text.parse()
        .with_context(|| format!("cannot read {}", file.display()))
}

fn text<'a>(table: &'a Table, keys: &[&str]) -> Option<&'a str> {
    let (first, rest) = keys.split_first()?;
    let mut value = table.get(*first)?;
    for key in rest {
        value = value.get(key)?;
    }
    value.as_str()
}

fn version_fault(file: &str, found: Option<&str>, expected: &str) -> Option<String> {
    let found = found.unwrap_or("none");
    (found != expected)
        .then(|| format!("{file} has version {found}, expected {expected} as in the workspace"))
}

/// Checks that each crate requires exactly the versions of the other crates with which it was tested.
fn dependency_faults(workspace: &Table, version: &str) -> Vec<String> {
    let known = workspace
        .get("workspace")
        .and_then(|it| it.get("dependencies")?.as_table());
    let own = known.into_iter().flatten();
    let own = own.filter(|(_, value)| value.get("path").is_some());
    let expected = format!("={version}");
    own.filter_map(|(name, value)| {
        let found = value.get("version").and_then(Value::as_str);
        version_fault(
            &format!("the workspace's dependency {name}"),
            found,
            &expected,
        )
    })
    .collect()
}

fn manifest_faults(manifest: &Table) -> Vec<String> {
    let mut problems = Vec::new();
    let package = manifest.get("package");
    let key = |key: &str| package.and_then(|it| it.get(key));
    for needed in [
        "description",
        "license",
        "readme",
        "rust-version",
        "include",
    ] {
        if key(needed).is_none() {
            problems.push(format!("the manifest has no `{needed}`"));
        }
    }
    let count = |name| key(name).and_then(Value::as_array).map_or(0, Vec::len);
    for list in ["keywords", "categories"] {
        let count = count(list);
        if !(1..=MAX_KEYWORDS).contains(&count) {
            problems.push(format!(
                "the manifest has {count} `{list}`; expected 1 to {MAX_KEYWORDS}"
            ));
        }
    }
    let dev = manifest
        .get("dev-dependencies")
        .and_then(Value::as_table)
        .into_iter()
        .flatten();
    for (name, value) in dev.filter(|(name, _)| name.starts_with("tenterhook")) {
        if value.get("path").is_none() || value.get("version").is_some() {
            // Tests of lower crates use higher crates. With a version, neither could be published first.
            problems.push(format!(
                "the dev-dependency `{name}` needs a `path` and no `version`, so that it is not published"
            ));
        }
    }
    problems
}

fn licence_faults(root: &Path, dir: &Path) -> Vec<String> {
    let missing = |name: &&str| {
        let expected = fs::read(root.join(name)).ok();
        expected.is_none() || fs::read(dir.join(name)).ok() != expected
    };
    LICENCES
        .into_iter()
        .filter(missing)
        .map(|name| {
            format!("lacks `{name}`; link it: ln -s ../../{name} (../{name} for the folder `sdk`)")
        })
        .collect()
}

/// Returns a message for each file that the sources include but that is not in the package.
fn outside_faults(dir: &Path) -> anyhow::Result<Vec<String>> {
    let mut problems = Vec::new();
    let mut folders = vec![dir.join("src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "rs") && !path.ends_with("tests.rs") {
                let code = fs::read_to_string(&path)?;
                problems.extend(outside(dir, &path, &code));
            }
        }
    }
    Ok(problems)
}

/// Returns a message for each file outside of `dir` that the code of the file `path` includes. Tests, at
/// the end of a file, may include such files, because they are not compiled from a package.
fn outside(dir: &Path, path: &Path, code: &str) -> Vec<String> {
    let code = code.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let above = path.strip_prefix(dir).unwrap_or(path).components().count() - 1;
    let mut problems = Vec::new();
    for start in ["include_str!(\"", "include_bytes!(\"", "#[path = \""] {
        for rest in code.split(start).skip(1) {
            let named = rest.split('"').next().unwrap_or_default();
            if named.split('/').filter(|part| *part == "..").count() > above {
                let path = path.strip_prefix(dir).unwrap_or(path).display();
                problems.push(format!(
                    "`{path}` includes `{named}`, which is not in the package"
                ));
            }
        }
    }
    problems
}

/// Checks that the package for npm lists the packages with the program, in its own version.
fn npm_faults(root: &Path, version: &str) -> anyhow::Result<Vec<String>> {
    let text = fs::read_to_string(root.join(NPM)).with_context(|| format!("cannot read {NPM}"))?;
    let manifest: serde_json::Value =
        serde_json::from_str(&text).with_context(|| format!("cannot read {NPM}"))?;
    let found = manifest.get("version").and_then(serde_json::Value::as_str);
    let mut problems: Vec<String> = version_fault(NPM, found, version).into_iter().collect();
    let carriers = manifest
        .get("optionalDependencies")
        .and_then(serde_json::Value::as_object);
    for (name, found) in carriers.into_iter().flatten() {
        problems.extend(version_fault(
            &format!("{NPM}: {name}"),
            found.as_str(),
            version,
        ));
    }
    if carriers.is_none_or(serde_json::Map::is_empty) {
        problems.push(format!("{NPM} does not list a package with the program"));
    }
    Ok(problems)
}

/// Checks that the container image is built with the toolchain of the repository.
fn image_fault(root: &Path) -> anyhow::Result<Option<String>> {
    let toolchain = manifest(&root.join("rust-toolchain.toml"))?;
    let expected = text(&toolchain, &["toolchain", "channel"])
        .context("rust-toolchain.toml has no `toolchain.channel`")?;
    let image = fs::read_to_string(root.join("Dockerfile"))?;
    let found = image
        .lines()
        .find_map(|line| line.strip_prefix("ARG RUST="));
    let found = found.unwrap_or("none");
    Ok((found != expected).then(|| {
        format!("Dockerfile has `ARG RUST={found}`, expected {expected} as in rust-toolchain.toml")
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_without_metadata_and_a_dev_dependency_with_a_version_are_faults() {
        let manifest = "
            [package]
            description = 'a'
            license.workspace = true
            readme.workspace = true
            rust-version.workspace = true
            include.workspace = true
            keywords = ['a', 'b', 'c', 'd', 'e', 'f']
            [dev-dependencies]
            tenterhook-a = { path = '../a' }
            tenterhook-b = { workspace = true }
            tenterhook-c = { path = '../c', version = '1' }
            tokio.workspace = true
        ";
        let problems = manifest_faults(&manifest.parse().unwrap()).join("\n");
        assert_eq!(
            problems,
            "the manifest has 6 `keywords`; expected 1 to 5\n\
             the manifest has 0 `categories`; expected 1 to 5\n\
             the dev-dependency `tenterhook-b` needs a `path` and no `version`, so that it is not published\n\
             the dev-dependency `tenterhook-c` needs a `path` and no `version`, so that it is not published"
        );
    }

    #[test]
    fn a_file_of_another_folder_that_the_code_includes_is_a_fault_unless_a_test_does() {
        let code = "const A: &str = include_str!(\"../a.txt\");\nconst B: &[u8] = include_bytes!(\"../../../b\");\n\
                    #[cfg(test)]\nmod tests { const C: &str = include_str!(\"../../../c\"); }";
        let dir = Path::new("crates/a");
        assert_eq!(
            outside(dir, &dir.join("src/one/two.rs"), code),
            ["`src/one/two.rs` includes `../../../b`, which is not in the package"]
        );
    }

    #[test]
    fn a_package_of_another_version_is_a_fault() {
        let workspace: Table = "[workspace.dependencies]\na = { path = 'a', version = '=1.0.0' }\n\
                                b = { path = 'b' }\nc = '2'"
            .parse()
            .unwrap();
        assert_eq!(
            dependency_faults(&workspace, "1.0.0"),
            ["the workspace's dependency b has version none, expected =1.0.0 as in the workspace"]
        );
    }
}
