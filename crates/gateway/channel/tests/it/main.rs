//! Tests of the settings, of admission and of the store, on real files.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod admission;
mod channel_secrets;
mod current_role;
mod pairing;
mod settings;
mod store;
mod token;
mod voice_settings;
