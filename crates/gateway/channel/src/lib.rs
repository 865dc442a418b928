//! What the channels of a gateway share.
//!
//! A *channel* is a place where people talk to the agent, such as a web page or a Telegram bot. This crate has the
//! types that channels, conversations and the gateway exchange, and the parts that all channels need:
//!
//! - [`channel`] has the interface of a channel. A [`Channel`](channel::Channel) receives messages, offers them to its
//!   [`Inlet`](channel::Inlet), and sends what it gets. The gateway implements [`Intake`](channel::Intake), which is
//!   behind the inlet.
//! - [`message`] has what comes in, and [`frame`] has what goes out. [`chat`] has the names of channels, chats and
//!   senders. An [`Publisher`](publisher::Publisher) shows frames to a chat.
//! - [`settings`] has the contents of `gateway.yaml`. [`channel_secrets`] reads the secrets that the file names.
//! - [`admission`] decides who may talk to the agent. [`pairing`] admits senders by a code, [`token`] has the access
//!   tokens of the page and of HTTP, and [`rate`] limits senders. [`current_role`] judges the sender of an earlier message
//!   again.
//! - [`fair_places`] keeps one person from taking what all share.
//! - [`store`] has everything that survives a crash: messages, frames, sessions, pairings and tokens. [`media_folder`]
//!   has the copies of files.
//!
//! This crate knows no agent, no hook and no service. The channels are in `tenterhook-web` and `tenterhook-adapters`,
//! and `tenterhook-gateway` connects them with the conversations.
//!
//! # Examples
//!
//! The settings decide whether a sender is admitted:
//!
//! ```
//! use std::path::Path;
//!
//! use tenterhook_channel::admission::{Admission, AdmissionFacts, admit};
//! use tenterhook_channel::chat::Sender;
//! use tenterhook_channel::settings::Settings;
//! use tenterhook_hookfile::{Report, SourceText};
//! use tenterhook_protocol::event::SenderRole;
//!
//! let text = r#"channels: { tg: { kind: telegram, token_env: TOKEN, owners: ["1001"], dm: allow } }"#;
//! let mut report = Report::new(SourceText::new(Path::new("gateway.yaml"), text));
//! let settings = Settings::read(&mut report).ok_or("the file has errors")?;
//! let channel = settings.channels.iter().find(|channel| channel.id.as_str() == "tg");
//! let channel = channel.ok_or("the file has no channel `tg`")?;
//!
//! let admission = |id: &str| {
//!     let sender = Sender { id: id.to_owned(), name: None, is_bot: false };
//!     let facts = AdmissionFacts {
//!         chat: id,
//!         sender: &sender,
//!         is_direct: true,
//!         is_addressed: true,
//!         paired: None,
//!         authenticated: None,
//!     };
//!     admit(channel, facts)
//! };
//! assert_eq!(admission("1001"), Admission::Admitted(SenderRole::Owner));
//! assert!(matches!(admission("2002"), Admission::Refused(_)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

pub mod admission;
pub mod approval_card;
pub mod channel;
pub mod channel_secrets;
pub mod chat;
pub mod current_role;
pub mod fair_places;
pub mod frame;
pub mod labels;
pub mod live_settings;
pub mod media_folder;
pub mod message;
pub mod pairing;
pub mod publisher;
pub mod rate;
pub mod secret;
pub mod settings;
mod settings_file;
pub mod store;
pub mod token;
