//! What a handler notes about one run for the journal.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tenterhook_protocol::journal::RunStep;

/// The maximum number of steps and of problems of one run. Further ones are not recorded.
const MAX_NOTES: usize = 64;

/// Takes what a handler notes about one run, if the engine has a journal: how long its parts took, and problems that its
/// answer hides.
///
/// ```
/// use std::time::Duration;
/// use tenterhook_engine::RunNotes;
///
/// // Without a journal, nothing is noted.
/// let notes = RunNotes::default();
/// notes.add_step("transcription", Duration::from_millis(420));
/// notes.add_problem(|| "the recording of 4 s was not understood".to_owned());
/// ```
#[derive(Debug, Clone, Default)]
pub struct RunNotes(Option<Arc<Mutex<Noted>>>);

/// The notes of one run.
#[derive(Debug, Default)]
pub(crate) struct Noted {
    pub(crate) steps: Vec<RunStep>,
    pub(crate) problems: Vec<String>,
}

impl RunNotes {
    /// Returns notes that are kept if `is_recorded`.
    pub(crate) fn new(is_recorded: bool) -> Self {
        Self(is_recorded.then(Arc::default))
    }

    /// Notes that a part of the run took this time.
    pub fn add_step(&self, name: &'static str, took: Duration) {
        self.add(|noted| &mut noted.steps, || RunStep::new(name, took));
    }

    /// Notes a problem that did not make the run fail. `problem` is not called without a journal.
    pub fn add_problem(&self, problem: impl FnOnce() -> String) {
        self.add(|noted| &mut noted.problems, problem);
    }

    fn add<T>(&self, list: impl FnOnce(&mut Noted) -> &mut Vec<T>, item: impl FnOnce() -> T) {
        if let Some(noted) = &self.0 {
            let mut noted = noted.lock();
            let list = list(&mut noted);
            if list.len() < MAX_NOTES {
                list.push(item());
            }
        }
    }

    /// Returns what was noted, and forgets it.
    pub(crate) fn take(&self) -> Noted {
        let noted = self.0.as_deref();
        noted.map_or_else(Noted::default, |noted| std::mem::take(&mut *noted.lock()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_has_a_limited_number_of_notes() {
        let notes = RunNotes::new(true);
        for _ in 0..=MAX_NOTES {
            notes.add_step("step", Duration::ZERO);
            notes.add_problem(String::new);
        }
        let taken = notes.take();
        assert_eq!(
            (taken.steps.len(), taken.problems.len()),
            (MAX_NOTES, MAX_NOTES)
        );
        assert!(notes.take().steps.is_empty());
    }

    #[test]
    fn nothing_is_noted_without_a_journal() {
        let notes = RunNotes::new(false);
        notes.add_problem(|| unreachable!("no one reads it"));
        assert!(notes.take().problems.is_empty());
    }
}
