//! The maximum sizes of audio.

/// The maximum size of a recording in bytes: the limit of OpenAI's service.
pub const MAX_RECORDING_BYTES: usize = 25 * 1024 * 1024;

/// The maximum size of spoken audio in bytes: the limit of files in the gateway.
pub const MAX_SPEECH_BYTES: usize = 20 * 1024 * 1024;
