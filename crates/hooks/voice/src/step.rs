//! How long the parts of the work take.

use std::time::Duration;

use tokio::time::Instant;

/// A part of the work that takes long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VoiceStep {
    /// The engine turns a recording into text.
    Transcription,
    /// The engine speaks a text.
    Speech,
    /// A program converts audio.
    Conversion,
}

impl VoiceStep {
    /// Returns the name of the part: `transcription`, `speech` or `conversion`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Transcription => "transcription",
            Self::Speech => "speech",
            Self::Conversion => "conversion",
        }
    }
}

/// Receives how long a part took, also of one that failed or ran out of time.
pub type OnVoiceStep<'a> = dyn Fn(VoiceStep, Duration) + Send + Sync + 'a;

/// When the work has to end, and who receives how long its parts took.
#[derive(Clone, Copy)]
pub(crate) struct TimedWork<'a> {
    pub(crate) deadline: Instant,
    pub(crate) on_step: &'a OnVoiceStep<'a>,
}

impl TimedWork<'_> {
    /// Does a part of the work, and reports how long it took.
    pub(crate) async fn step<T>(&self, step: VoiceStep, work: impl Future<Output = T>) -> T {
        let _timer = StepTimer {
            step,
            on_step: self.on_step,
            began: Instant::now(),
        };
        work.await
    }
}

/// Reports when it is dropped, so that a part that is cut off at the deadline is reported, too.
struct StepTimer<'a> {
    step: VoiceStep,
    on_step: &'a OnVoiceStep<'a>,
    began: Instant,
}

impl Drop for StepTimer<'_> {
    fn drop(&mut self) {
        (self.on_step)(self.step, self.began.elapsed());
    }
}
