//! What the page shows and decides of a gateway.

use std::fmt;

use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::Value;

/// What someone decides about a question or a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InspectorDecision {
    /// The tool call may run, or the sender is admitted.
    Approve,
    /// It may not, or is not.
    Deny,
}

/// Who decides. The server that checks clients adds it as an extension to each request that decides. Without it, the
/// request fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InspectorUser {
    /// The user of the token.
    pub user: String,
    /// The name of the token.
    pub token: String,
}

/// The gateway that an inspector shows. The errors describe for the user why a request failed.
pub trait InspectedGateway: Send + Sync + fmt::Debug {
    /// Describes the gateway: its channels and chats, and what waits for a decision.
    fn state(&self) -> BoxFuture<'_, Result<Value, String>>;

    /// Answers the question whether a tool call may run, for `user`.
    fn decide_approval<'a>(
        &'a self,
        nonce: &'a str,
        decision: InspectorDecision,
        user: &'a InspectorUser,
    ) -> BoxFuture<'a, Result<(), String>>;

    /// Decides for `user` whether a sender is admitted to a channel.
    fn decide_pairing<'a>(
        &'a self,
        channel: &'a str,
        code: &'a str,
        decision: InspectorDecision,
        user: &'a InspectorUser,
    ) -> BoxFuture<'a, Result<(), String>>;
}
