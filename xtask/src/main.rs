//! Maintenance tasks of this repository.
//!
//! `cargo run -p xtask -- structure` prints the structure of the workspace: the crates and their
//! dependencies, the largest files, the lengths of functions, and import cycles. With `--write` it updates
//! `ARCHITECTURE.md`. With `--check` it fails if the page is out of date or a limit is exceeded.
//!
//! `cargo run -p xtask -- api --write` and `--check` do the same for the lists of the public API, for the
//! crates that embedders build against.
//!
//! `cargo run -p xtask -- packages` fails if the manifest of a published crate is incomplete, or if the
//! packages for Python and npm have another version than the crates.
//!
//! `cargo run -p xtask -- language [PATH…]` fails if documentation, comments or messages contain phrases
//! that confuse newcomers. With paths, it checks only the files below them.
//!
//! `cargo run -p xtask -- links` fails if a page links to a file or heading that does not exist.
//! `book-links` is the preprocessor that `book.toml` names for the book.

#![forbid(unsafe_code)]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a task prints its result"
)]
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "only a few of the many kinds of Rust items define names"
)]

mod api;
mod crates;
mod cycles;
mod functions;
mod language;
mod links;
mod modules;
mod packages;
mod page;
mod public_types;
mod references;
mod report;

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, bail};

use self::report::Report;

const USAGE: &str = "usage: cargo run -p xtask -- structure [--write | --check]\n       cargo run -p xtask -- api --write | --check\n       cargo run -p xtask -- packages\n       cargo run -p xtask -- language [PATH…]\n       cargo run -p xtask -- links";

/// The page that contains the report, between the lines `BEGIN` and `END`.
const PAGE: &str = "ARCHITECTURE.md";
const BEGIN: &str =
    "<!-- structure: `cargo run -p xtask -- structure --write` writes this part -->";
const END: &str = "<!-- end of structure -->";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .context("xtask has no parent folder")?;
    match args[..] {
        ["structure"] => print!("{}", Report::of(root)?.details()),
        ["structure", "--write"] => write(root)?,
        ["structure", "--check"] => check(root)?,
        ["api", "--write"] => api::write(root)?,
        ["api", "--check"] => api::check(root)?,
        ["packages"] => check_packages(root)?,
        ["links"] => check_links(root)?,
        ["book-links", ref request @ ..] => rewrite_book_links(request)?,
        ["language", ref places @ ..] => check_language(root, places)?,
        _ => bail!(USAGE),
    }
    Ok(())
}

fn write(root: &Path) -> anyhow::Result<()> {
    let report = Report::of(root)?;
    let page = fs::read_to_string(root.join(PAGE))?;
    let (before, _, after) = parts(&page)?;
    let section = report.markdown();
    fs::write(
        root.join(PAGE),
        format!("{before}{BEGIN}\n{section}{END}{after}"),
    )?;
    Ok(())
}

fn check(root: &Path) -> anyhow::Result<()> {
    let report = Report::of(root)?;
    let page = fs::read_to_string(root.join(PAGE))?;
    let (_, section, _) = parts(&page)?;
    let mut problems = report.problems();
    problems.extend(page::problems(&page, root, report.crates()));
    if !problems.is_empty() {
        bail!(
            "the structure of the workspace has problems:\n{}",
            problems.join("\n")
        );
    }
    if section != report.markdown() {
        bail!("{PAGE} is out of date; run `cargo run -p xtask -- structure --write`");
    }
    println!("structure: no import cycles, and {PAGE} is up to date");
    Ok(())
}

fn check_packages(root: &Path) -> anyhow::Result<()> {
    let problems = packages::problems(root)?;
    if !problems.is_empty() {
        bail!(
            "these packages cannot be published:\n{}",
            problems.join("\n")
        );
    }
    println!("packages: metadata is complete, and all versions agree");
    Ok(())
}

fn check_language(root: &Path, places: &[&str]) -> anyhow::Result<()> {
    let problems = language::problems(root, places)?;
    if !problems.is_empty() {
        bail!(
            "found {} phrases to avoid; write who does what, in plain words:\n{}",
            problems.len(),
            problems.join("\n")
        );
    }
    println!("language: no phrases to avoid");
    Ok(())
}

fn check_links(root: &Path) -> anyhow::Result<()> {
    let problems = links::problems(root)?;
    if !problems.is_empty() {
        bail!("these links are broken:\n{}", problems.join("\n"));
    }
    println!("links: every link leads to a page and a heading");
    Ok(())
}

/// Answers mdBook, which first asks whether its renderer is supported and then sends the book.
fn rewrite_book_links(request: &[&str]) -> anyhow::Result<()> {
    if request.first() == Some(&"supports") {
        return Ok(());
    }
    let mut input = String::new();
    std::io::stdin().read_to_string(&mut input)?;
    println!("{}", links::rewrite_book(&input)?);
    Ok(())
}

/// Splits the page into the text before the report, the report, and the text after it.
fn parts(page: &str) -> anyhow::Result<(&str, &str, &str)> {
    let missing = || format!("{PAGE} lacks the line `{BEGIN}` or the line `{END}`");
    let (before, rest) = page.split_once(BEGIN).with_context(missing)?;
    let (section, after) = rest.split_once(END).with_context(missing)?;
    Ok((before, section.trim_start_matches('\n'), after))
}
