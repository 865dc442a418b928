//! The list of agents that `.ci/host-agents` installs.

use tenterhook_systems::HOSTS;

const LIST: &str = include_str!("../../../../../../.ci/host-agents.txt");

#[test]
fn every_host_is_installed_in_the_version_that_its_table_was_measured_on() {
    for host in HOSTS {
        let is_installed = LIST.lines().any(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            matches!(words.as_slice(), [_, _, version, program]
                if *version == host.measured_version && host.programs.contains(program))
        });
        assert!(is_installed, "{}", host.title);
    }
}

#[test]
fn every_host_can_be_proven() {
    for host in HOSTS {
        assert!(host.headless.is_some(), "{}", host.title);
    }
}
