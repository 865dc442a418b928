//! Real agents: which they are, and where the program under test is.

use std::path::{Path, PathBuf};

use tenterhook_install::proof::installed_agent::{AgentSearch, InstalledAgent};
use tenterhook_systems::HOSTS;

/// Names a folder that `.ci/host-agents` filled.
const FOLDER: &str = "TENTERHOOK_HOSTS";
/// Limits a test to some hosts: names with commas between them.
const ONLY: &str = "TENTERHOOK_TEST_HOSTS";

/// Names another program `tenterhook` to test.
const PROGRAM: &str = "TENTERHOOK_TEST_PROGRAM";

/// Returns the program `tenterhook` that Cargo built. The shim is next to it.
pub(crate) fn tenterhook() -> PathBuf {
    if let Some(named) = std::env::var_os(PROGRAM) {
        return named.into();
    }
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().and_then(Path::parent).unwrap();
    let program = folder.join("tenterhook");
    let hint = "run `cargo build -p tenterhook-cli` first";
    assert!(
        program.is_file(),
        "`{}` is missing: {hint}",
        program.display()
    );
    assert!(
        folder.join("tenterhook-shim").is_file(),
        "the shim is missing: {hint}"
    );
    program
}

/// Returns the agents on this machine, and says which are missing.
pub(crate) fn agents() -> Vec<InstalledAgent> {
    let search = AgentSearch::new(std::env::var_os(FOLDER).map(PathBuf::from));
    let only = std::env::var(ONLY).unwrap_or_default();
    let is_wanted = |name: &str| only.is_empty() || only.split(',').any(|word| word == name);
    let wanted = HOSTS.iter().filter(|host| is_wanted(host.name));
    let found = wanted.filter_map(|host| {
        let agent = search.find(host);
        if agent.is_none() {
            println!(
                "skipped: {} is not on this machine; `.ci/host-agents FOLDER` installs it, and {FOLDER}=FOLDER finds it",
                host.title
            );
        }
        agent
    });
    found.collect()
}
