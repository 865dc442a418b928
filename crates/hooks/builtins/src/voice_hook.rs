//! The hooks of a program that has settings for voice instead of a hook file, such as a gateway.

use std::sync::Arc;
use std::time::Duration;

use tenterhook_engine::{AsyncHandler, EventKind, HookSpec, Phase};
use tenterhook_voice::{SttSettings, TtsSettings, VoiceError};

use crate::builtin::{MARGIN, OnVoiceFailure, default_policy, stt_handler, tts_handler};

/// Returns the hook that turns voice messages into text. It runs first, so that other hooks see the text.
///
/// # Errors
///
/// Fails if the engine cannot work, for example because its program is not installed.
pub fn stt_hook(settings: SttSettings, on_failure: OnVoiceFailure) -> Result<HookSpec, VoiceError> {
    let timeout = settings.timeout;
    let handler = stt_handler(settings, on_failure)?;
    Ok(spec(EventKind::MessageReceive, "stt", timeout, handler))
}

/// Returns the hook that speaks answers.
///
/// # Errors
///
/// Fails if the engine cannot work, for example because its program is not installed.
pub fn tts_hook(settings: TtsSettings, on_failure: OnVoiceFailure) -> Result<HookSpec, VoiceError> {
    let timeout = settings.timeout;
    let handler = tts_handler(settings, on_failure)?;
    Ok(spec(EventKind::MessageSend, "tts", timeout, handler))
}

fn spec(
    event: EventKind,
    name: &'static str,
    timeout: Duration,
    handler: Arc<dyn AsyncHandler>,
) -> HookSpec {
    let spec = HookSpec::new(event, name, handler);
    HookSpec {
        phase: Phase::Transform,
        timeout: timeout + MARGIN,
        policy: default_policy(name).unwrap_or(spec.policy),
        ..spec
    }
}
