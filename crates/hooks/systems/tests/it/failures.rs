//! The shim's table of failures says what the hosts' own folders say.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use tenterhook_shim::failure::{HOST_FAILURES, REASON};
use tenterhook_systems::HOSTS;

use crate::UPDATE;

/// The file with the table, from the folder of this crate.
const FILE: &str = "../../hosts/shim/src/failure/hosts.rs";

/// Returns the file with the table as it must be, before formatting.
fn expected_file() -> String {
    let mut table = String::from(
        "//! The denials of all hosts. A test of `tenterhook-systems` writes this file.\n\n\
         use super::form::{GateFailure, HostFailures};\n\n/// The failures of all hosts.\n\
         pub static HOST_FAILURES: &[HostFailures] = &[\n",
    );
    for host in HOSTS {
        let (gates, others): (Vec<_>, Vec<_>) =
            host.events.iter().partition(|event| event.role.is_gate());
        write!(
            table,
            "HostFailures {{ host: {:?}, variables: &{:?}, gates: &[",
            host.name, host.variables
        )
        .unwrap();
        for event in gates {
            let answer = host.failure_answer(event, REASON);
            write!(
                table,
                "GateFailure {{ event: {:?}, stdout: {:?}, stderr: {:?}, status: {} }},",
                event.name, answer.stdout, answer.stderr, answer.status
            )
            .unwrap();
        }
        let others: Vec<&str> = others.iter().map(|event| event.name).collect();
        writeln!(table, "], others: &{others:?} }},").unwrap();
    }
    table + "];\n"
}

#[test]
fn the_shim_fails_as_each_host_wants() {
    let mut wrong = Vec::new();
    for host in HOSTS {
        let known = HOST_FAILURES.iter().find(|known| known.host == host.name);
        let is_right = known.is_some_and(|known| {
            known.variables == host.variables
                && host.events.iter().all(|event| {
                    let answer = host.failure_answer(event, "a \"reason\"");
                    let printed = known.printed(event.name, "a \"reason\"");
                    known.is_gate(event.name) == event.role.is_gate()
                        && printed.stdout == answer.stdout.as_bytes()
                        && printed.stderr == answer.stderr.as_bytes()
                        && printed.status == answer.status
                })
        });
        if !is_right {
            wrong.push(host.name);
        }
    }
    let known = HOST_FAILURES.len();
    if std::env::var_os(UPDATE).is_some() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE);
        fs::write(path, expected_file()).unwrap();
    } else {
        assert!(
            wrong.is_empty() && known == HOSTS.len(),
            "{wrong:?} differ, and the table has {known} hosts; run `cargo fmt` after \
             `{UPDATE}=1 cargo test -p tenterhook-systems --test it`"
        );
    }
}
