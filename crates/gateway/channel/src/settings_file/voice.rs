//! Reads `stt` and `tts` of `gateway.yaml`. What the keys mean is known to the crate of speech, which the built-ins with
//! the same settings use too.

use std::path::Path;

use tenterhook_hookfile::fields::{Empty, Fields, scalar};
use tenterhook_hookfile::tree::{Entry, Value};
use tenterhook_hookfile::{Report, one_of};
use tenterhook_voice::{
    STT_KEYS, SttSettings, TTS_KEYS, TtsSettings, VoiceSetting, VoiceSettingError,
    VoiceSettingValue,
};

use super::values::{INLINE_SECRETS, hidden, refuse_inline_secrets, variable};

type VoiceReader<T> = fn(&[VoiceSetting], Option<&Path>) -> Result<T, Vec<VoiceSettingError>>;

/// Reads `stt`: `off`, or settings.
pub(super) fn read_stt(report: &mut Report, fields: &Fields<'_>) -> Option<SttSettings> {
    read(report, fields.entry("stt")?, STT_KEYS, SttSettings::read)
}

/// Reads `tts`: `off`, or settings.
pub(super) fn read_tts(report: &mut Report, fields: &Fields<'_>) -> Option<TtsSettings> {
    read(report, fields.entry("tts")?, TTS_KEYS, TtsSettings::read)
}

fn read<T>(report: &mut Report, entry: &Entry, keys: &[&str], reader: VoiceReader<T>) -> Option<T> {
    let node = &entry.value;
    if node.as_text() == Some("off") || matches!(node.value, Value::Bool(false)) {
        return None;
    }
    let what = format!("`{}` (a mapping, or `off`)", entry.key);
    let fields = Fields::any(report, node, &what, Empty::Wrong)?;
    refuse_inline_secrets(report, &fields, "`key_env` or `key_file`");
    // Reports a key that is written instead of the name of its variable.
    let _name = variable(report, &fields, "key_env");
    let is_setting = |entry: &&Entry| !INLINE_SECRETS.contains(&entry.key.as_str());
    let written: Vec<&Entry> = fields.entries().iter().filter(is_setting).collect();
    let settings = written.iter().filter_map(|entry| setting(report, entry));
    let settings: Vec<VoiceSetting> = settings.collect();
    if settings.len() < written.len() {
        return None;
    }
    let folder = report.source().path().parent().map(Path::to_owned);
    match reader(&settings, folder.as_deref()) {
        Ok(settings) => Some(settings),
        Err(problems) => {
            for problem in problems {
                add(report, &fields, keys, problem);
            }
            None
        }
    }
}

/// Returns a setting as it is written.
fn setting(report: &mut Report, entry: &Entry) -> Option<VoiceSetting> {
    let key = &entry.key;
    let value = match &entry.value.value {
        Value::Null => VoiceSettingValue::Text("null".to_owned()),
        Value::List(items) => {
            let what = format!("an item of `{key}`");
            let texts = items.iter().map(|item| scalar(report, &what, item));
            VoiceSettingValue::List(texts.collect::<Option<_>>()?)
        }
        Value::Text(_)
        | Value::Number(_)
        | Value::Bool(_)
        | Value::Date
        | Value::Table(_)
        | Value::Broken => {
            VoiceSettingValue::Text(scalar(report, &format!("`{key}`"), &entry.value)?)
        }
    };
    let key = key.clone();
    Some(VoiceSetting { key, value })
}

/// Adds a problem at the key or the value that it is about.
fn add(report: &mut Report, fields: &Fields<'_>, keys: &[&str], problem: VoiceSettingError) {
    let entry = problem.key.as_deref().and_then(|key| fields.entry(key));
    if let Some(entry) = entry.filter(|entry| entry.key == "base_url") {
        // The address could contain a password.
        let expected = problem.expected.unwrap_or_default();
        return hidden(report, entry.value.span, &problem.message, &expected);
    }
    let unknown = entry.filter(|entry| !keys.contains(&entry.key.as_str()));
    let span = match (entry, unknown) {
        (_, Some(entry)) => entry.key_span,
        (Some(entry), None) => entry.value.span,
        (None, None) => fields.span,
    };
    let nearest = unknown.and_then(|entry| report.nearest(&entry.key, keys.iter().copied()));
    let nearest = nearest.map(str::to_owned).or(problem.suggestion);
    let expected = match unknown {
        Some(_) => Some(one_of(keys.iter().copied())),
        None => problem.expected,
    };
    let found = report.problem(span, problem.message).suggestion(nearest);
    report.add(match expected {
        Some(expected) => found.allowed(expected),
        None => found,
    });
}
