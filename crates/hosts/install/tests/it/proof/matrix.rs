//! All cases of the proof, with every real agent on this machine. Run them with `.ci/host-matrix`.

use std::fmt::Write as _;
use std::path::Path;

use tenterhook_install::proof::case::{ProofCase, ProofResult};
use tenterhook_install::proof::prove::{HostProof, prove};

use crate::proof::real_agents::{agents, tenterhook};

/// Set it to write the table into the page.
const UPDATE: &str = "TENTERHOOK_INTERNAL__UPDATE_DOCS";
/// The page with the table.
const PAGE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../../docs/reference/host-matrix.md"
);
/// The lines around the table.
const BEGIN: &str = "<!-- begin of the proven matrix: `.ci/host-matrix --update` writes it -->\n\n";
const END: &str = "\n<!-- end of the proven matrix -->\n";

#[tokio::test(flavor = "multi_thread")]
#[ignore = "runs real agents"]
async fn matrix() {
    let program = tenterhook();
    let mut proofs = Vec::new();
    for agent in agents() {
        println!("\n{} ({})", agent.host.title, agent.program.display());
        let proof = prove(&agent, &program, &|_| {}).await;
        println!(
            "  version {}",
            proof.version.as_deref().unwrap_or("unknown")
        );
        for proven in &proof.cases {
            println!("  {:<16} {}", name(proven.case), describe(&proven.result));
            if let Some(output) = &proven.output {
                println!("{output}");
            }
        }
        proofs.push(proof);
    }
    let table = table(&proofs);
    println!("\n{table}");
    if std::env::var_os(UPDATE).is_some() {
        write_page(&table);
    }
    let failing: Vec<&str> = proofs
        .iter()
        .filter(|proof| !proof.is_proven())
        .map(|proof| proof.title)
        .collect();
    assert!(failing.is_empty(), "cases fail with {failing:?}");
}

fn name(case: ProofCase) -> String {
    let name = serde_json::to_value(case).unwrap();
    name.as_str().unwrap().to_owned()
}

fn describe(result: &ProofResult) -> String {
    match result {
        ProofResult::Holds => "holds".to_owned(),
        ProofResult::HostCannot { why } => format!("host cannot: {why}"),
        ProofResult::Fails { what } => format!("FAILS: {what}"),
    }
}

/// Returns the table: a row for each host, a column for each case.
fn table(proofs: &[HostProof]) -> String {
    let Some(first) = proofs.iter().max_by_key(|proof| proof.cases.len()) else {
        return "no agents\n".to_owned();
    };
    let cases: Vec<ProofCase> = first.cases.iter().map(|proven| proven.case).collect();
    let mut text = String::from("| case |");
    for proof in proofs {
        let version = proof.version.as_deref().unwrap_or("?");
        write!(text, " {} {version} |", proof.title).unwrap();
    }
    text.push_str("\n|---|");
    text.push_str(&"---|".repeat(proofs.len()));
    for case in cases {
        write!(text, "\n| {} |", case.title()).unwrap();
        for proof in proofs {
            let proven = proof.cases.iter().find(|proven| proven.case == case);
            let cell = match proven.map(|proven| &proven.result) {
                Some(ProofResult::Holds) => "holds",
                Some(ProofResult::HostCannot { .. }) => "host cannot",
                Some(ProofResult::Fails { .. }) => "**fails**",
                None => "not tried",
            };
            write!(text, " {cell} |").unwrap();
        }
    }
    text.push('\n');
    for proof in proofs {
        for proven in &proof.cases {
            if let ProofResult::HostCannot { why } = &proven.result {
                let title = proven.case.title();
                push_bullet(&mut text, &format!("**{}**, {title}: {why}", proof.title));
            }
        }
    }
    text.push('\n');
    text
}

/// Adds an item of a list, in lines of at most 100 characters.
fn push_bullet(text: &mut String, item: &str) {
    text.push_str("\n-");
    let mut width = 1;
    for word in item.split(' ') {
        if width + 1 + word.len() > 100 {
            text.push_str("\n ");
            width = 1;
        }
        text.push(' ');
        text.push_str(word);
        width += 1 + word.len();
    }
}

fn write_page(table: &str) {
    let page = std::fs::read_to_string(Path::new(PAGE)).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let page = format!("{before}{BEGIN}{table}{END}{after}");
    std::fs::write(PAGE, page).unwrap();
}
