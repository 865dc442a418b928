//! The form of the denials.

use crate::frame::Printed;

/// What the shim prints for one host if it fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostFailures {
    /// The name of the host.
    pub host: &'static str,
    /// The environment variables of the host that the daemon needs.
    pub variables: &'static [&'static str],
    /// The denials of its gates.
    pub gates: &'static [GateFailure],
    /// The events on which a failure prints nothing.
    pub others: &'static [&'static str],
}

/// What the shim prints for one gate if it fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GateFailure {
    /// The host's name for the event.
    pub event: &'static str,
    /// The standard output. [`REASON`] stands for the reason, as the inside of a JSON string.
    pub stdout: &'static str,
    /// The standard error output. [`REASON`] stands for the reason.
    pub stderr: &'static str,
    /// The exit status.
    pub status: u8,
}

/// Stands for the reason in a [`GateFailure`].
pub const REASON: &str = "{reason}";

impl HostFailures {
    /// Returns whether a failure on an event denies.
    pub fn is_gate(&self, event: &str) -> bool {
        self.gates.iter().any(|gate| gate.event == event)
    }

    /// Returns whether the host's table has an event.
    pub(super) fn knows(&self, event: &str) -> bool {
        self.is_gate(event) || self.others.contains(&event)
    }

    /// Returns the denial of a gate, or `None` for an event that is not a gate of the host.
    pub(super) fn denial(&self, event: &str, reason: &str) -> Option<Printed> {
        let gate = self.gates.iter().find(|gate| gate.event == event)?;
        Some(gate.printed(reason))
    }
}

impl GateFailure {
    fn printed(&self, reason: &str) -> Printed {
        Printed {
            stdout: self.stdout.replace(REASON, &json_text(reason)).into_bytes(),
            stderr: self.stderr.replace(REASON, reason).into_bytes(),
            status: self.status,
        }
    }
}

/// Returns a text as the inside of a JSON string.
fn json_text(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '"' => escaped.push_str("\\\""),
            '\\' => escaped.push_str("\\\\"),
            '\n' => escaped.push_str("\\n"),
            '\t' => escaped.push_str("\\t"),
            // Reasons are sentences, in which no other control character has a meaning.
            control if control.is_control() => escaped.push(' '),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACME: HostFailures = HostFailures {
        host: "acme",
        variables: &[],
        gates: &[GateFailure {
            event: "before",
            stdout: "{\"deny\":\"{reason}\"}\n",
            stderr: "",
            status: 0,
        }],
        others: &["after"],
    };

    #[test]
    fn a_gate_denies_in_the_form_of_its_host_and_other_events_print_nothing() {
        let printed = ACME.printed("before", "a \"quote\"\nand a \\");
        let expected = "{\"deny\":\"a \\\"quote\\\"\\nand a \\\\\"}\n";
        assert_eq!(printed.stdout, expected.as_bytes());
        assert_eq!(printed.status, 0);
        assert_eq!(ACME.printed("after", "why"), Printed::default());
    }
}
