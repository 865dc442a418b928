//! What the built-ins `stt` and `tts` share: their arguments, and the time that they have.

use std::sync::Arc;
use std::time::Duration;

use tenterhook_voice::{VoiceError, VoiceSetting, VoiceSettingError};

/// Receives why voice failed, for the operator of a gateway. It must not block.
///
/// The sender of a message reads only that it was not understood, because a cause can contain names of hosts.
pub type OnVoiceFailure = Arc<dyn Fn(&VoiceError) + Send + Sync>;

/// How much longer the hook may take than the work, so that the work reports its own timeout.
pub(crate) const MARGIN: Duration = Duration::from_secs(1);

/// Returns how long the work may take: less than the hook, so that it can still answer.
pub(super) fn time_left(settings: Duration, hook: Duration) -> Duration {
    let left = hook.checked_sub(MARGIN).filter(|left| !left.is_zero());
    settings.min(left.unwrap_or(hook / 2))
}

/// Reads the arguments of `stt` or `tts`.
pub(super) fn read_arguments<T>(
    arguments: &[String],
    read: impl FnOnce(&[VoiceSetting]) -> Result<T, Vec<VoiceSettingError>>,
) -> Result<T, String> {
    let settings: Result<Vec<VoiceSetting>, VoiceSettingError> = arguments
        .iter()
        .map(|argument| VoiceSetting::from_argument(argument))
        .collect();
    let settings = settings.map_err(|problem| problem.to_string())?;
    read(&settings).map_err(|problems| {
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        problems.join("; ")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_work_ends_before_the_hook_does() {
        let seconds = Duration::from_secs;
        for (settings, hook, expected) in [
            (seconds(60), seconds(60), seconds(59)),
            (seconds(30), seconds(60), seconds(30)),
            (seconds(30), seconds(1), Duration::from_millis(500)),
        ] {
            assert_eq!(time_left(settings, hook), expected, "{settings:?} {hook:?}");
        }
    }
}
