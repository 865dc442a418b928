//! Which rows of a host's capability table a proof has verified.

use serde::Serialize;
use tenterhook_systems::host::HostAgent;
use tenterhook_systems::host::capability::Support;

use crate::proof::case::{ProofCase, ProofResult};
use crate::proof::prove::HostProof;

/// Whether a row of the table is true for the installed version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RowResult {
    /// The host honours the effect, as the row says.
    Verified,
    /// The row says that the host honours the effect, but it did not.
    Differs,
    /// The row says that the host ignores the effect, so Tenterhook does not use it.
    NotUsed,
}

/// A row of the table that a case of the proof has tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CheckedRow {
    /// The host's name for the event.
    pub event: &'static str,
    /// The case that tried it.
    pub case: ProofCase,
    /// Whether it is true.
    pub result: RowResult,
}

impl HostProof {
    /// Returns the rows of the host's table that the cases have tried.
    pub fn checked_rows(&self) -> Vec<CheckedRow> {
        let Some(host) = HostAgent::by_name(self.host) else {
            return Vec::new();
        };
        let mut checked = Vec::new();
        for proven in &self.cases {
            for row in proven.case.rows(host) {
                let is_honoured = row.support == Support::Honoured;
                let result = match &proven.result {
                    ProofResult::Holds if is_honoured => RowResult::Verified,
                    ProofResult::Fails { .. } if is_honoured => RowResult::Differs,
                    ProofResult::Holds
                    | ProofResult::HostCannot { .. }
                    | ProofResult::Fails { .. } => RowResult::NotUsed,
                };
                checked.push(CheckedRow {
                    event: row.event,
                    case: proven.case,
                    result,
                });
            }
        }
        checked
    }
}
