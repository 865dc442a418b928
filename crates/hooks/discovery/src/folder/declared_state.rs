//! Turns the output of probed files into their states.

use super::candidate::Candidate;
use super::event_names::executable_event;
use super::found_file::FileState;
use super::language::Language;
use super::probe_output::ProbeResult;
use super::processes::{extension_state, script_state};

/// Sets the states of the candidates at these indexes from the results of their probes.
pub(super) fn apply_probe_results(
    candidates: &mut [Candidate],
    answers: Vec<(usize, ProbeResult)>,
) {
    for (index, answer) in answers {
        let Some(candidate) = candidates.get_mut(index) else {
            continue;
        };
        let kind = candidate.found.kind;
        let state = answer.and_then(|declared| {
            if let Some(programs) = kind.extension_programs() {
                return extension_state(programs, &declared);
            }
            // A worker registers a JSON object, which can never be the name of an event.
            let may_be_worker = kind
                .executables
                .as_ref()
                .is_some_and(|it| it.may_be_workers);
            let is_object = may_be_worker && declared.0.starts_with('{');
            if candidate.language.is_some() || is_object {
                candidate.language.get_or_insert(Language::Program);
                return script_state(candidate, &declared.0);
            }
            Ok(FileState::Hook {
                event: executable_event(kind, &declared.0)?.event,
                declared: declared.0,
            })
        });
        match state {
            Ok(state) => candidate.set_state(state),
            Err(problem) => candidate.fail(problem),
        }
    }
}
