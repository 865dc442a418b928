//! Measures the structure of the workspace, and writes the report.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use crate::crates::{self, Crate};
use crate::modules::{File, Modules};
use crate::references::References;
use crate::{cycles, functions, public_types, references};

/// The largest number of lines of a file, without tests.
const MAX_FILE: usize = 900;

/// The largest number of lines of the 99th percentile of functions.
const MAX_P99: usize = 50;

/// The largest number of crates.
const MAX_CRATES: usize = 30;

/// The largest number of groups of crates, with the crates that are in none.
const MAX_GROUPS: usize = 10;

/// The largest number of floors. A crate is one floor above the highest of those that it depends on.
const MAX_FLOORS: usize = 10;

/// The structure of the workspace.
#[derive(Debug, Default)]
pub(crate) struct Report {
    crates: Vec<Measured>,
    /// The lengths of all functions in lines, in ascending order, each with its name and place.
    functions: Vec<(usize, String)>,
    /// The files that define a public type, by the name of the type.
    types: BTreeMap<String, BTreeSet<String>>,
}

#[derive(Debug)]
struct Measured {
    name: String,
    group: Option<String>,
    /// The number of its floor, from 1.
    floor: usize,
    dependencies: BTreeSet<String>,
    lines: usize,
    /// The number of lines of each hook system. Nothing outside its folder knows more of it than its table, so each one
    /// is understood alone.
    systems: Vec<(String, usize)>,
    /// The largest file and its number of lines.
    largest: (String, usize),
    /// The files of each import cycle.
    cycles: Vec<Vec<String>>,
    /// A description of each import inside a cycle.
    ties: Vec<String>,
}

impl Report {
    /// Measures the crates below `root`.
    pub(crate) fn of(root: &Path) -> anyhow::Result<Self> {
        let mut report = Self::default();
        let mut crates = Vec::new();
        for found in crates::read(root)? {
            crates.push(report.measure(root, &found)?);
        }
        report.functions.sort_unstable();
        report.crates = by_level(crates);
        Ok(report)
    }

    /// Returns the names of the crates.
    pub(crate) fn crates(&self) -> impl Iterator<Item = &str> {
        self.crates.iter().map(|found| found.name.as_str())
    }

    /// Returns a message for every exceeded limit.
    pub(crate) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for found in &self.crates {
            for files in &found.cycles {
                problems.push(format!("import cycle: {}", files.join(", ")));
            }
            let (file, lines) = &found.largest;
            if *lines > MAX_FILE {
                problems.push(format!("{file}: {lines} lines, at most {MAX_FILE}"));
            }
        }
        for (name, files) in self.types.iter().filter(|(_, files)| files.len() > 1) {
            let files: Vec<&str> = files.iter().map(String::as_str).collect();
            problems.push(format!(
                "public type {name}: defined in {}",
                files.join(" and ")
            ));
        }
        for (what, number, most) in [
            ("crates", self.crates.len(), MAX_CRATES),
            ("groups of crates", self.groups(), MAX_GROUPS),
            ("floors", self.floors(), MAX_FLOORS),
        ] {
            if number > most {
                problems.push(format!("{number} {what}, at most {most}"));
            }
        }
        let p99 = self.share_of_functions(99);
        if p99 > MAX_P99 {
            let long = self.functions.iter().rev();
            let long = long.take_while(|(lines, _)| *lines > MAX_P99);
            let long: Vec<&str> = long.map(|(_, place)| place.as_str()).collect();
            problems.push(format!(
                "functions: p99 is {p99} lines, at most {MAX_P99}; give a part of one of these a name of its own:\n  {}",
                long.join("\n  ")
            ));
        }
        problems
    }

    /// Returns the number of groups. A crate that is in none counts as one.
    fn groups(&self) -> usize {
        let folders = self.crates.iter();
        let folders = folders.map(|found| found.group.as_ref().unwrap_or(&found.name));
        folders.collect::<BTreeSet<_>>().len()
    }

    fn floors(&self) -> usize {
        let floors = self.crates.iter().map(|found| found.floor);
        floors.max().unwrap_or(0)
    }

    /// Returns the report as Markdown. Line counts are rounded, so that small changes do not alter it.
    pub(crate) fn markdown(&self) -> String {
        let mut text = String::from(
            "| floor | crate | lines | largest file | depends on |\n|---|---|---|---|---|\n",
        );
        for found in &self.crates {
            let (file, lines) = &found.largest;
            let file = file.split_once("/src/").map_or(file.as_str(), |(_, it)| it);
            let needs = self.direct(found);
            let needs = if needs.is_empty() {
                "-".to_owned()
            } else {
                needs.join(", ")
            };
            let (floor, all) = (found.floor, found.lines);
            let name = match &found.group {
                Some(group) => format!("{group}/{}", found.name),
                None => found.name.clone(),
            };
            let row = format!(
                "| {floor} | {name} | {} | `{file}` {} | {needs} |\n",
                rounded(all),
                rounded(*lines)
            );
            text.push_str(&row);
        }
        let of = |share| self.share_of_functions(share);
        let cycles: usize = self.crates.iter().map(|found| found.cycles.len()).sum();
        let cycles = if cycles == 0 {
            "none".to_owned()
        } else {
            cycles.to_string()
        };
        let largest = self.crates.iter().max_by_key(|found| found.lines);
        let file = self.crates.iter().max_by_key(|found| found.largest.1);
        let _infallible = writeln!(
            text,
            "\n{} crates in {} folders, on {} floors. Largest crate: {}.\nLargest file: `{}`.\nLines of functions: median {}, p90 {}, p99 {}. Import cycles between files: {cycles}.",
            self.crates.len(),
            self.groups(),
            self.floors(),
            largest.map_or("-", |found| &found.name),
            file.map_or("-", |found| &found.largest.0),
            of(50),
            of(90),
            of(99),
        );
        text
    }

    /// Returns the report with details: the imports of every cycle, and the exceeded limits.
    pub(crate) fn details(&self) -> String {
        let mut text = self.markdown();
        for found in &self.crates {
            for tie in &found.ties {
                text.push_str(tie);
                text.push('\n');
            }
        }
        for problem in self.problems() {
            let _infallible = writeln!(text, "limit: {problem}");
        }
        text
    }

    /// Returns the dependencies of a crate, without those that another dependency already includes.
    fn direct<'a>(&'a self, found: &'a Measured) -> Vec<&'a str> {
        let by_name: BTreeMap<&str, &Measured> = self
            .crates
            .iter()
            .map(|it| (it.name.as_str(), it))
            .collect();
        let reaches = |from: &str, to: &str| {
            let mut open = vec![from];
            let mut seen = BTreeSet::new();
            while let Some(next) = open.pop() {
                if next == to && next != from {
                    return true;
                }
                if seen.insert(next)
                    && let Some(it) = by_name.get(next)
                {
                    open.extend(it.dependencies.iter().map(String::as_str));
                }
            }
            false
        };
        let all = || found.dependencies.iter().map(String::as_str);
        all()
            .filter(|name| !all().any(|other| other != *name && reaches(other, name)))
            .collect()
    }

    fn measure(&mut self, root: &Path, found: &Crate) -> anyhow::Result<Measured> {
        let mut measured = Measured {
            lines: 0,
            systems: Vec::new(),
            largest: (String::new(), 0),
            cycles: Vec::new(),
            ties: Vec::new(),
            name: found.name.clone(),
            group: found.group.clone(),
            floor: 0,
            dependencies: found.dependencies.clone(),
        };
        for file in found.roots() {
            let modules = Modules::read(&file)?;
            let name = |id: usize| {
                let path = modules.files.get(id).map(|file| file.path.as_path());
                let path = path.and_then(|path| path.strip_prefix(root).ok());
                path.map(|path| path.display().to_string())
                    .unwrap_or_default()
            };
            for (id, file) in modules.files.iter().enumerate() {
                measured.lines += file.lines;
                if file.lines > measured.largest.1 {
                    measured.largest = (name(id), file.lines);
                }
                let lengths = functions::lengths(&file.syntax).into_iter();
                self.functions
                    .extend(lengths.map(|(lines, function, first)| {
                        let file = name(id);
                        (
                            lines,
                            format!("{lines} lines: `{function}` at {file}:{first}"),
                        )
                    }));
                for public in public_types::names(&file.syntax) {
                    self.types.entry(public).or_default().insert(name(id));
                }
            }
            measured.systems.extend(systems(&modules));
            let references = references::find(&modules);
            for cycle in cycles::find(&references) {
                measured.ties.extend(ties(&cycle, &references, name));
                measured.cycles.push(cycle.into_iter().map(name).collect());
            }
        }
        Ok(measured)
    }

    fn share_of_functions(&self, percent: usize) -> usize {
        let index = self.functions.len() * percent / 100;
        let last = self.functions.len().saturating_sub(1);
        self.functions
            .get(index.min(last))
            .map_or(0, |(lines, _)| *lines)
    }
}

/// Returns a line for each import inside a cycle.
fn ties(cycle: &[usize], references: &References, name: impl Fn(usize) -> String) -> Vec<String> {
    let mut lines = vec![format!("cycle of {} files:", cycle.len())];
    for from in cycle {
        for (to, names) in references.get(from).into_iter().flatten() {
            if cycle.contains(to) {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                let names = names.join(", ");
                lines.push(format!("  {} -> {}: {names}", name(*from), name(*to)));
            }
        }
    }
    lines
}

/// Orders crates so that each comes after its dependencies.
fn by_level(mut crates: Vec<Measured>) -> Vec<Measured> {
    let mut ordered: Vec<Measured> = Vec::new();
    for floor in 1.. {
        if crates.is_empty() {
            break;
        }
        let (mut ready, rest): (Vec<_>, Vec<_>) = crates.into_iter().partition(|found| {
            let mut needs = found.dependencies.iter();
            needs.all(|name| ordered.iter().any(|done| done.name == *name))
        });
        if ready.is_empty() {
            // Cargo refuses cycles between crates. If the manifests contain one anyway, keep all crates.
            ordered.extend(rest);
            break;
        }
        for found in &mut ready {
            found.floor = floor;
        }
        ordered.extend(ready);
        crates = rest;
    }
    ordered
}

/// Returns the hook systems of a crate with their numbers of lines. The file of a system declares the static `SYSTEM`,
/// and the folder with the same name belongs to it.
fn systems(modules: &Modules) -> Vec<(String, usize)> {
    let declares = |file: &&File| {
        let mut items = file.syntax.items.iter();
        items.any(|item| matches!(item, syn::Item::Static(found) if found.ident == "SYSTEM"))
    };
    let of_system = |file: &File| {
        let folder = file.path.with_extension("");
        let belongs = |other: &&File| other.path == file.path || other.path.starts_with(&folder);
        let lines = modules
            .files
            .iter()
            .filter(belongs)
            .map(|it| it.lines)
            .sum();
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        (format!("hook system {name}"), lines)
    };
    modules
        .files
        .iter()
        .filter(declares)
        .map(of_system)
        .collect()
}

/// Rounds a number of lines: to hundreds if it is at least 1000, to tens if it is at least 100.
fn rounded(lines: usize) -> String {
    if lines >= 1_000 {
        let hundreds = (lines + 50) / 100;
        format!("{}.{}k", hundreds / 10, hundreds % 10)
    } else if lines >= 100 {
        ((lines + 5) / 10 * 10).to_string()
    } else {
        lines.to_string()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const MANIFEST: &str = "[package]\nname = \"it\"\n";

    /// Creates a workspace with these files.
    fn workspace(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (file, text) in files {
            let file = root.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        root
    }

    /// Returns the cycles of one crate with these files.
    fn cycles(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let mut all = vec![
            ("Cargo.toml", "[workspace]\ndependencies = {}\n"),
            ("crates/it/Cargo.toml", MANIFEST),
        ];
        all.extend(files);
        let root = workspace(&all);
        let report = Report::of(root.path()).unwrap();
        report.crates.into_iter().flat_map(|it| it.cycles).collect()
    }

    #[test]
    fn a_parent_that_uses_its_child_must_not_be_used_by_it() {
        let lib = "mod child; pub struct Parent; fn f() { child::run() }";
        let child = "use super::Parent; pub fn run() -> Parent { Parent }";
        let files = [
            ("crates/it/src/lib.rs", lib),
            ("crates/it/src/child.rs", child),
        ];
        assert_eq!(
            cycles(&files),
            [["crates/it/src/lib.rs", "crates/it/src/child.rs"]]
        );
    }

    #[test]
    fn a_re_export_is_an_address_and_not_a_use() {
        let files = [
            ("crates/it/src/lib.rs", "mod a; pub use a::A; pub struct B;"),
            ("crates/it/src/a.rs", "pub struct A(crate::B);"),
        ];
        assert_eq!(cycles(&files), Vec::<Vec<String>>::new());
    }

    #[test]
    fn a_use_through_a_re_export_counts_for_the_file_that_defines_the_name() {
        let files = [
            (
                "crates/it/src/lib.rs",
                "mod a; mod b; pub use a::A; pub use b::*;",
            ),
            ("crates/it/src/a.rs", "pub struct A { b: crate::B }"),
            (
                "crates/it/src/b.rs",
                "use crate as it; pub struct B; fn f() -> it::A { todo!() }",
            ),
        ];
        assert_eq!(
            cycles(&files),
            [["crates/it/src/a.rs", "crates/it/src/b.rs"]]
        );
    }

    #[test]
    fn a_name_inside_of_a_macro_call_is_a_use() {
        let files = [
            ("crates/it/src/lib.rs", "mod a; mod b;"),
            (
                "crates/it/src/a.rs",
                "pub const A: u8 = 1; fn f() { let _ = vec![crate::b::b()]; }",
            ),
            (
                "crates/it/src/b.rs",
                "use crate::a::A; pub fn b() { println!(\"{}\", A) }",
            ),
        ];
        assert_eq!(
            cycles(&files),
            [["crates/it/src/a.rs", "crates/it/src/b.rs"]]
        );
    }

    #[test]
    fn tests_are_neither_lines_nor_uses() {
        let lib = "mod a;\npub struct A;\n#[cfg(test)]\nmod tests {\n    use crate::a::B;\n}\n";
        let files = [
            ("Cargo.toml", "[workspace]\ndependencies = {}\n"),
            ("crates/it/Cargo.toml", MANIFEST),
            ("crates/it/src/lib.rs", lib),
            ("crates/it/src/a.rs", "pub struct B(crate::A);\n"),
        ];
        let report = Report::of(workspace(&files).path()).unwrap();
        let found = report.crates.first().unwrap();
        assert_eq!((found.lines, found.cycles.len()), (3, 0));
    }

    #[test]
    fn a_public_type_has_a_name_of_its_own() {
        let files = [
            ("Cargo.toml", "[workspace]\ndependencies = {}\n"),
            ("crates/a/Cargo.toml", MANIFEST),
            (
                "crates/a/src/lib.rs",
                "pub struct Same; pub(crate) struct Inner;",
            ),
            ("crates/b/Cargo.toml", MANIFEST),
            ("crates/b/src/lib.rs", "pub enum Same {} struct Inner;"),
        ];
        let report = Report::of(workspace(&files).path()).unwrap();
        assert_eq!(
            report.problems(),
            ["public type Same: defined in crates/a/src/lib.rs and crates/b/src/lib.rs"]
        );
    }

    #[test]
    fn a_dependency_that_another_one_has_is_not_listed() {
        let list =
            "[workspace.dependencies]\na = { path = \"crates/a\" }\nb = { path = \"crates/b\" }\n";
        let files = [
            ("Cargo.toml", list),
            ("crates/a/Cargo.toml", MANIFEST),
            ("crates/a/src/lib.rs", "fn a() {\n}\n"),
            (
                "crates/b/Cargo.toml",
                "[dependencies]\na.workspace = true\n",
            ),
            ("crates/b/src/lib.rs", ""),
            (
                "crates/c/Cargo.toml",
                "[dependencies]\na.workspace = true\nb.workspace = true\n",
            ),
            ("crates/c/src/main.rs", "fn main() {}\n"),
        ];
        let page = Report::of(workspace(&files).path()).unwrap().markdown();
        assert!(
            page.contains("| 1 | a | 2 | `lib.rs` 2 | - |\n| 2 | b |"),
            "{page}"
        );
        assert!(page.contains("| 3 | c | 1 | `main.rs` 1 | b |\n"), "{page}");
        assert!(
            page.ends_with("Import cycles between files: none.\n"),
            "{page}"
        );
    }
}
