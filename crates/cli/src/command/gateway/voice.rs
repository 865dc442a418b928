//! The hooks of `stt` and `tts` in the settings of the gateway, and what they need on this machine.

use std::sync::Arc;

use tenterhook_builtins::{OnVoiceFailure, stt_hook, tts_hook};
use tenterhook_channel::settings::Settings;
use tenterhook_engine::HookSpec;
use tenterhook_gateway::audio_formats;
use tenterhook_protocol::escape::escape_line;
use tenterhook_setup::error::CliError;
use tenterhook_setup::exit::Exit;
use tenterhook_setup::warning::warn;
use tenterhook_voice::{VoiceError, VoiceFinding};

/// Returns the hooks that turn voice messages into text, and answers into audio.
///
/// They run before all other hooks that transform a message, so that every hook sees the transcript.
pub(super) fn hooks(settings: &Settings) -> Result<Vec<HookSpec>, CliError> {
    let mut hooks = Vec::new();
    if let Some(stt) = &settings.stt {
        // Its sender reads that a message was not understood, but not why.
        let log: OnVoiceFailure = Arc::new(|error| {
            let error = error.to_string();
            warn(format_args!("stt: {}", escape_line(&error)));
        });
        let hook = stt_hook(stt.clone(), log);
        hooks.push(hook.map_err(|error| unusable("stt", &error))?);
    }
    if let Some(tts) = &settings.tts {
        // Failures of hooks are logged already.
        let hook = tts_hook(tts.clone(), Arc::new(|_| {}));
        hooks.push(hook.map_err(|error| unusable("tts", &error))?);
    }
    for hook in &mut hooks {
        hook.priority = i32::MAX;
    }
    Ok(hooks)
}

fn unusable(key: &str, error: &VoiceError) -> CliError {
    CliError::new(Exit::Config, format!("the engine of `{key}` cannot work"))
        .cause(error)
        .hint(format!(
            "correct `{key}` in the settings of the gateway, or set it to `off`"
        ))
}

/// Returns which engines and converters are installed, and what will not work without others.
pub(super) fn findings(settings: &Settings) -> Vec<VoiceFinding> {
    let mut findings = Vec::new();
    if let Some(stt) = &settings.stt {
        findings.extend(stt.check());
    }
    if let Some(tts) = &settings.tts {
        findings.extend(tts.check());
        let channels = settings
            .channels
            .iter()
            .filter(|channel| channel.is_enabled);
        findings.extend(channels.filter_map(|channel| {
            let formats = audio_formats(&channel.kind).iter();
            let formats: Vec<String> = formats.map(|format| (*format).to_owned()).collect();
            tts.check_channel(channel.id.as_str(), &formats)
        }));
    }
    findings
}
