//! Answers that are spoken instead of written.

use tenterhook_channel::frame::Frame;
use tenterhook_channel::settings::Settings;
use tenterhook_voice::{SpokenAnswer, VoiceMode, is_spoken_whole};

/// Returns whether the text of an answer is held back until it is known whether it is spoken. `channel` returns what the
/// chat's channel says, which wins over the mode.
pub(crate) fn is_voice_only(
    settings: &Settings,
    channel: impl FnOnce() -> Option<bool>,
    is_voice: bool,
) -> bool {
    let Some(tts) = &settings.tts else {
        return false;
    };
    let is_spoken = channel().unwrap_or(match tts.enabled {
        VoiceMode::On => true,
        VoiceMode::Auto => is_voice,
        VoiceMode::Off => false,
    });
    is_spoken && tts.text == SpokenAnswer::VoiceOnly
}

/// Returns whether a recording can replace an answer. Otherwise what is not spoken would be lost.
pub(crate) fn is_replaceable(settings: &Settings, answer: &str) -> bool {
    let tts = settings.tts.as_ref();
    tts.is_some_and(|tts| is_spoken_whole(answer, tts.max_chars))
}

/// Removes the text of an answer that is spoken.
pub(crate) fn remove_text(answer: &mut [Frame]) {
    for frame in answer {
        if let Frame::End { text, .. } = frame {
            text.clear();
        }
    }
}
