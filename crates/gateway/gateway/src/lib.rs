//! The gateway: people talk to an agent over channels.
//!
//! [`Gateway::start`](gateway::Gateway::start) opens the state folder, creates the channels that the settings name, and
//! binds the server's address. [`Gateway::run`](gateway::Gateway::run) then works until it is stopped:
//!
//! - The intake judges each message that a channel offers, and records it before the channel acknowledges it.
//! - The router gives recorded messages to conversations, which run the agent.
//! - The outbox stores the frames of the answers, and sends them until the service has them.
//! - [`reload`] reads the settings and the hooks again and applies what has changed.
//! - The supervisor starts channels that have failed again, later and later.
//! - [`control`] is the socket through which other commands reach a gateway that runs. [`administration`] has the
//!   requests that also work without one.
//!
//! The embedding program implements [`Profile`](crate::conversations::profile::Profile), which opens agents. Nothing
//! here reads hook files or chooses a model. This crate compiles on Unix only, because of the control socket.
//!
//! # Examples
//!
//! A gateway with the chat page at `http://127.0.0.1:7878`:
//!
//! ```
//! use std::collections::BTreeMap;
//! use std::path::PathBuf;
//! use std::sync::Arc;
//!
//! use tenterhook_channel::settings::Settings;
//! use tenterhook_gateway::conversations::profile::Profile;
//! use tenterhook_gateway::gateway::{
//!     Gateway, GatewayConfig, GatewayEnd, OpeningState, StartError,
//! };
//! use tokio_util::sync::CancellationToken;
//!
//! async fn serve(
//!     profile: Arc<dyn Profile>,
//!     state: PathBuf,
//!     stop: CancellationToken,
//! ) -> Result<GatewayEnd, StartError> {
//!     let gateway = Gateway::start(GatewayConfig {
//!         settings: Settings::default(),
//!         profile,
//!         state: OpeningState::begin(state),
//!         observer: Arc::new(|notice| eprintln!("{notice:?}")),
//!         stdio: false,
//!         own_channels: BTreeMap::new(),
//!         inspector: None,
//!         reloads_from: None,
//!     })
//!     .await?;
//!     Ok(gateway.run(stop, CancellationToken::new()).await)
//! }
//! ```

#![forbid(unsafe_code)]

pub mod administration;
mod assembly;
mod backoff;
pub mod backup;
mod channel_table;
mod commands;
pub mod control;
pub mod conversations;
pub mod gateway;
mod gateway_notice;
mod grants;
mod inspection;
mod intake;
mod metrics;
mod outbox;
mod owner_places;
pub mod reload;
mod reload_result;
pub mod restore;
mod router;
mod running;
mod secrets;
pub mod session_key;
mod supervisor;

pub use assembly::audio_formats;
pub use grants::PassphraseCheck;
