//! The conformance page lists every case once, says how it behaves here, and names tests that exist.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The kinds of cases: the prefix of their names, and their number.
const CASES: [(&str, u32); 11] = [
    ("D-", 119),
    ("K-P", 13),
    ("K-R", 18),
    ("K-M", 15),
    ("K-D", 18),
    ("K-T", 9),
    ("K-H", 22),
    ("E", 20),
    ("O", 36),
    ("M", 21),
    ("P", 37),
];

/// The verdicts that a row may have, with their names in the printed summary.
const VERDICTS: [(&str, &str); 4] = [
    ("same", "same"),
    ("differs: ", "differs"),
    ("does not apply: ", "does not apply"),
    ("see [built-ins](builtins.md)", "on another page"),
];

/// A row of a table of the page.
struct Row {
    /// The name of the case. Rows of other tables have none.
    case: Option<String>,
    verdict: &'static str,
    /// The crate and the function of each test.
    tests: Vec<(String, String)>,
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn rows() -> Vec<Row> {
    let page = fs::read_to_string(repository().join("docs/reference/conformance.md")).unwrap();
    let is_row = |line: &&str| line.starts_with('|') && !line.starts_with("|--");
    let tables = page.lines().filter(is_row);
    tables.filter_map(row).collect()
}

fn row(line: &str) -> Option<Row> {
    let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
    let (here, tests, case) = match cells.as_slice() {
        [case, _, here, tests] => (here, tests, Some((*case).to_owned())),
        [_, here, tests] => (here, tests, None),
        _ => panic!("a row of three or four cells: {line}"),
    };
    if *here == "here" {
        return None;
    }
    let (_, verdict) = VERDICTS
        .into_iter()
        .find(|(start, _)| here.starts_with(start))
        .unwrap_or_else(|| panic!("what happens here: {line}"));
    let tests: Vec<(String, String)> = tests
        .split('`')
        .filter_map(|test| test.split_once("::"))
        .map(|(package, name)| (package.to_owned(), name.to_owned()))
        .collect();
    assert!(
        !tests.is_empty() || !["same", "differs"].contains(&verdict),
        "a test shows it: {line}"
    );
    Some(Row {
        case,
        verdict,
        tests,
    })
}

/// Returns the test functions in a folder and its subfolders.
fn tests_of(folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(tests_of(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.extend(tests_in(&fs::read_to_string(path).unwrap()));
        }
    }
    found
}

fn tests_in(source: &str) -> Vec<String> {
    let mut is_test = false;
    let mut found = Vec::new();
    for line in source.lines().map(str::trim) {
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            is_test = true;
        }
        let line = line.strip_prefix("async ").unwrap_or(line);
        if let Some(rest) = line.strip_prefix("fn ") {
            let name = rest.split('(').next().unwrap_or_default();
            found.extend(is_test.then(|| name.to_owned()));
            is_test = false;
        }
    }
    found
}

#[test]
fn every_case_is_there_once() {
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for case in rows().into_iter().filter_map(|row| row.case) {
        *counts.entry(case).or_default() += 1;
    }
    let names = CASES
        .into_iter()
        .flat_map(|(start, count)| (1..=count).map(move |number| (format!("{start}{number}"), 1)));
    assert_eq!(counts, names.collect());
}

#[test]
fn every_test_that_a_row_names_exists() {
    let crates = repository().join("crates");
    let folder_of = |package: &str| {
        let groups = fs::read_dir(&crates).unwrap();
        let groups = groups.map(|group| group.unwrap().path());
        let mut folders = [crates.clone()].into_iter().chain(groups);
        let folder = folders.find(|it| it.join(package).join("Cargo.toml").exists());
        folder.map(|it| it.join(package))
    };
    let mut known: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut missing = BTreeSet::new();
    for (package, name) in rows().into_iter().flat_map(|row| row.tests) {
        let tests = known.entry(package.clone()).or_insert_with(|| {
            let folder = folder_of(&package).unwrap_or_else(|| panic!("no crate `{package}`"));
            let mut tests = tests_of(&folder.join("src"));
            tests.extend(tests_of(&folder.join("tests")));
            tests
        });
        if !tests.contains(&name) {
            missing.insert(format!("{package}::{name}"));
        }
    }
    assert!(missing.is_empty(), "no such test: {missing:#?}");
}

#[test]
fn the_counts_are_printed() {
    let rows = rows();
    let of = |verdict: &str, is_case: bool| {
        rows.iter()
            .filter(|row| row.verdict == verdict && row.case.is_some() == is_case)
            .count()
    };
    let tests: BTreeSet<_> = rows.iter().flat_map(|row| &row.tests).collect();
    let cases: Vec<usize> = VERDICTS
        .iter()
        .map(|(_, verdict)| of(verdict, true))
        .collect();
    for ((_, verdict), cases) in VERDICTS.iter().zip(&cases) {
        println!(
            "{cases:>4} cases, {:>3} other rows: {verdict}",
            of(verdict, false)
        );
    }
    println!("{:>4} tests named", tests.len());
    let all: u32 = CASES.iter().map(|(_, count)| count).sum();
    assert_eq!(cases.iter().sum::<usize>(), all as usize);
}
