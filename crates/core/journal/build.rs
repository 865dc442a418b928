//! Turns the rules for secrets, which are data files, into Rust tables.
//!
//! A program that writes one journal record needs the rules. Reading them at run time took most of the time of a
//! short `tenterhook fire` call.

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

use serde::Deserialize;

/// The rules of gitleaks, unchanged.
const DATA: &str = "src/rules/gitleaks.toml";

/// Additional rules, for secrets that the gitleaks rules do not find.
const OWN_DATA: &str = "src/rules/own.toml";

#[derive(Deserialize)]
struct File {
    allowlist: AllowanceData,
    rules: Vec<RuleData>,
}

#[derive(Deserialize)]
struct OwnFile {
    rules: Vec<RuleData>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RuleData {
    id: String,
    #[serde(default)]
    regex: String,
    path: Option<String>,
    entropy: Option<f64>,
    secret_group: Option<usize>,
    #[serde(default)]
    keywords: Vec<String>,
    #[serde(default)]
    allowlists: Vec<AllowanceData>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AllowanceData {
    #[serde(default)]
    paths: Vec<String>,
    #[serde(default)]
    regexes: Vec<String>,
    #[serde(default)]
    regex_target: Target,
    #[serde(default)]
    stopwords: Vec<String>,
}

/// The text that the expressions of an allowance are matched against.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Target {
    #[default]
    Secret,
    Match,
    Line,
}

fn main() -> Result<(), Box<dyn Error>> {
    for path in [DATA, OWN_DATA] {
        println!("cargo::rerun-if-changed={path}");
    }
    let file: File = toml::from_str(&fs::read_to_string(DATA)?)?;
    let own: OwnFile = toml::from_str(&fs::read_to_string(OWN_DATA)?)?;
    let rules = file.rules.iter().chain(&own.rules);
    // Rules for files with certain names do not apply to text without a name.
    let rules: Vec<&RuleData> = rules.filter(|rule| rule.path.is_none()).collect();
    let mut text = format!(
        "/// Every rule.\npub(super) static RULES: [Rule; {}] = [\n",
        rules.len()
    );
    for rule in rules {
        write_rule(&mut text, rule)?;
    }
    text.push_str(
        "];\n\n/// What is allowed for all rules.\npub(super) static GENERAL: Allowance = ",
    );
    write_allowance(&mut text, &file.allowlist)?;
    text.push_str(";\n");
    let folder = env::var_os("OUT_DIR").ok_or("Cargo sets `OUT_DIR`")?;
    fs::write(Path::new(&folder).join("secret_rules.rs"), text)?;
    Ok(())
}

fn write_rule(text: &mut String, rule: &RuleData) -> Result<(), Box<dyn Error>> {
    let entropy = rule.entropy.unwrap_or_default();
    // An allowance that also requires a file name does not apply to text without a name.
    let allowances = rule.allowlists.iter();
    let allowances: Vec<_> = allowances
        .filter(|allowance| allowance.paths.is_empty())
        .collect();
    writeln!(
        text,
        "Rule {{ id: {:?}, words: &{:?}, expression: Expression::new({:?}), entropy: {entropy:?}_f64, group: {:?}, \
         allowances: {{ static LIST: [Allowance; {}] = [",
        rule.id,
        rule.keywords,
        rule.regex,
        rule.secret_group,
        allowances.len()
    )?;
    for allowance in allowances {
        write_allowance(text, allowance)?;
        text.push_str(",\n");
    }
    text.push_str("]; &LIST } },\n");
    Ok(())
}

fn write_allowance(text: &mut String, allowance: &AllowanceData) -> Result<(), Box<dyn Error>> {
    let count = allowance.regexes.len();
    // Expressions are compiled lazily and cannot be temporaries in a static, so each list is its own static.
    write!(
        text,
        "Allowance {{ expressions: {{ static LIST: [Expression; {count}] = ["
    )?;
    for expression in &allowance.regexes {
        write!(text, "Expression::new({expression:?}), ")?;
    }
    write!(
        text,
        "]; &LIST }}, target: Target::{:?}, stopwords: &{:?} }}",
        allowance.regex_target, allowance.stopwords
    )?;
    Ok(())
}
