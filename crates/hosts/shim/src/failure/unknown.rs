//! Failures that only the exit status can express: on events that the tables do not have, for example after a newer
//! version was uninstalled, and if nothing reads the standard output.
//!
//! Such a name does not say what a denial does. On an event after which the agent wants to stop, the
//! exit status of a denial keeps the agent working, and some agents continue for a long time. So only
//! events that look like gates are denied.

use super::form::HostFailures;
use super::hosts::HOST_FAILURES;
use crate::frame::Printed;

/// The exit status that denies in most hosts.
const DENIED: u8 = 2;
/// The first letters of events that hosts announce before they do something.
const GATE_PREFIXES: [&str; 2] = ["pre", "before"];

/// Returns what the shim prints for an unknown host, or for an event that the host's table does not
/// have: what denies in most hosts if the event looks like a gate, and otherwise only a message.
pub fn unknown(event: &str, reason: &str) -> Printed {
    by_status(looks_like_gate(event), reason)
}

/// Returns what the shim prints if its standard output cannot be written. A gate is denied by the exit status. With
/// other events, a status could keep the agent working, so there is only a message.
pub fn unread(host: &str, event: &str, reason: &str) -> Printed {
    let is_gate = match HostFailures::of(host) {
        Some(host) if host.knows(event) => host.is_gate(event),
        Some(_) | None => looks_like_gate(event),
    };
    by_status(is_gate, reason)
}

/// Some hosts follow the status only together with a message.
fn by_status(is_denied: bool, reason: &str) -> Printed {
    Printed {
        stdout: Vec::new(),
        stderr: format!("{reason}\n").into_bytes(),
        status: if is_denied { DENIED } else { 0 },
    }
}

/// Returns whether any host has a gate with this name, or the name is new and begins like the name of
/// a gate.
fn looks_like_gate(event: &str) -> bool {
    let name = plain(event);
    let is_name = |known: &str| plain(known) == name;
    let mut hosts = HOST_FAILURES.iter();
    if hosts.any(|host| host.gates.iter().any(|gate| is_name(gate.event))) {
        return true;
    }
    let mut hosts = HOST_FAILURES.iter();
    let is_other = hosts.any(|host| host.others.iter().any(|other| is_name(other)));
    !is_other && GATE_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Returns a name without case and punctuation, in which hosts differ.
fn plain(name: &str) -> String {
    let letters = name.chars().filter(|character| character.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_that_looks_like_a_gate_is_denied_by_the_status() {
        for event in [
            "PreToolUse",
            "pre_tool_use",
            "preToolUse",
            "PermissionRequest",
            "tool.execute.before",
            "BeforeModelSwitch",
        ] {
            assert_eq!(unknown(event, "no").status, 2, "{event}");
        }
    }

    #[test]
    fn other_unknown_events_only_get_a_message() {
        for event in [
            "Stop",
            "stop",
            "session_end",
            "PostToolUse",
            "Elicitation",
            "",
        ] {
            let printed = unknown(event, "no");
            assert_eq!((printed.status, printed.stdout.len()), (0, 0), "{event}");
            assert_eq!(printed.stderr, b"no\n");
        }
    }

    #[test]
    fn a_known_host_denies_the_gates_of_other_hosts() {
        for host in HOST_FAILURES {
            let printed = host.printed("no.such.event.PreToolUse", "no");
            assert_eq!(printed.status, 0, "{}", host.host);
            let gates = HOST_FAILURES.iter().flat_map(|other| other.gates);
            for gate in gates.filter(|gate| !host.knows(gate.event)) {
                let printed = host.printed(gate.event, "no");
                assert_eq!(printed.status, 2, "{}: {}", host.host, gate.event);
            }
        }
        assert!(HostFailures::of("no-such-host").is_none());
    }
}
