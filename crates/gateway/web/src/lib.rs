//! Channels whose clients read frames themselves: the chat page, HTTP, web sockets, webhooks, and standard input and
//! output.
//!
//! - [`Hub`](hub::Hub) passes frames on to everyone who shows a chat. A client that connects later misses no durable
//!   frame.
//! - [`FrameChannel`](frame_channel::FrameChannel) is the channel of such clients. The page, HTTP and standard input
//!   and output each have one.
//! - [`connection::serve`] serves one client over any stream of frames. [`socket`] connects web sockets to it, and
//!   [`stdio`] the streams of the process. [`client_frame`] has the frames that clients send.
//! - [`server::serve`] is the HTTP server: the page with its login, the API, web sockets and webhooks. It checks hosts,
//!   origins and access tokens before anything else.
//! - [`WebhookChannel`](webhook::WebhookChannel) turns signed requests of a service into messages.
//! - [`page`] has the files of the chat page.
//!
//! The hub numbers nothing and stores nothing: the store in `tenterhook-channel` does.

#![forbid(unsafe_code)]

pub mod client_chat;
pub mod client_frame;
pub mod connection;
pub mod frame_channel;
pub mod hub;
pub mod page;
pub mod server;
pub mod socket;
pub mod stdio;
pub mod webhook;
