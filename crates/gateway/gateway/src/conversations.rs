//! Conversations: what happens between a recorded message and the frames that answer it.
//!
//! All messages with the same session key belong to one conversation. A [`ChatTask`](conversation::ChatTask) processes
//! them in order, and runs at most one turn at a time:
//!
//! ```text
//! recorded message → files → hooks of message_receive → turn of the agent
//!     → hooks of message_deliver and message_send → durable frames
//! ```
//!
//! - The embedding program implements [`Profile`](profile::Profile). It opens agents and has the hooks.
//! - [`ConversationParts`](conversation_parts::ConversationParts) is what all conversations of a gateway share.
//! - [`OpenQuestions`](approvals::OpenQuestions) asks people whether a tool call may run, and takes their answers.
//! - [`Delivery`](deliver::Delivery) runs the hooks over everything that leaves a chat.
//! - [`GatewayEvents`](gateway_events::GatewayEvents) has the events of the gateway itself.
//!
//! A conversation knows no service: it reads messages from the store and shows frames to an
//! [`Publisher`](tenterhook_channel::publisher::Publisher). Who may write is decided before, in `tenterhook-channel`.

mod agent_slot;
pub mod approvals;
mod chat_command;
mod chat_frontend;
pub mod conversation;
pub mod conversation_parts;
pub mod deliver;
pub mod gateway_events;
mod message_parts;
mod places;
pub mod profile;
mod receive;
mod reply;
mod send_tool;
pub mod session_tails;
mod spoken_answer;
mod turn;
mod turn_control;
mod turn_work;
