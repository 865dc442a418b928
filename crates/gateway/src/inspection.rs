//! What the inspector shows and decides of the gateway.

use std::fmt;
use std::sync::Weak;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tenterhook_inspect::{InspectedGateway, InspectorDecision, InspectorUser};

use crate::administration::{administer, described};
use crate::commands::MAX_CHATS;
use crate::running::Running;
use tenterhook_channel::message::ApprovalChoice;
use tenterhook_channel::pairing::PairingRequest;

/// The error of a request while the gateway stops.
const STOPPED: &str = "the gateway has stopped";

/// The gateway, as the inspector uses it.
pub(crate) struct GatewayView(pub(crate) Weak<Running>);

impl fmt::Debug for GatewayView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatewayView").finish_non_exhaustive()
    }
}

impl GatewayView {
    async fn describe(&self) -> Result<Value, String> {
        let running = self.0.upgrade().ok_or(STOPPED)?;
        let mut state = running.status();
        let chats = running.store.chats(MAX_CHATS).await.map_err(described)?;
        let pairings = running.pairings.list().await.map_err(described)?;
        let pairings: Vec<Value> = pairings
            .into_iter()
            .filter_map(|(channel, found)| Some((channel, found.ok()?)))
            .flat_map(|(channel, found)| pending(&channel, &found.requests))
            .collect();
        if let Some(fields) = state.as_object_mut() {
            fields.insert("chats".to_owned(), json!(chats));
            fields.insert("pairings".to_owned(), pairings.into());
            let approvals = running.intake.approvals.open_approvals();
            fields.insert("approvals".to_owned(), approvals.into());
        }
        Ok(state)
    }

    async fn pair(
        &self,
        channel: &str,
        code: &str,
        decision: InspectorDecision,
    ) -> Result<(), String> {
        let running = self.0.upgrade().ok_or(STOPPED)?;
        let (method, params) = match decision {
            // Who may be an owner is decided with `tenterhook gateway pair`.
            InspectorDecision::Approve => (
                "pair.approve",
                json!({ "channel": channel, "code": code, "role": "member" }),
            ),
            InspectorDecision::Deny => ("pair.deny", json!({ "channel": channel, "code": code })),
        };
        let done = administer(method, &params, &running.tokens, &running.pairings).await;
        done.unwrap_or_else(|| Err(format!("unknown method `{method}`")))
            .map(drop)
    }
}

/// Returns who decides, as other people in the chat see it.
fn decider(user: &InspectorUser) -> String {
    format!("{} (inspector, {})", user.user, user.token)
}

/// Returns the requests that wait for a decision.
fn pending(channel: &str, requests: &[PairingRequest]) -> Vec<Value> {
    let open = requests.iter().filter(|request| request.code.is_some());
    let open = open.map(|request| {
        json!({
            "channel": channel,
            "code": request.code,
            "sender": request.sender,
            "name": request.name,
            "expires": request.expires,
        })
    });
    open.collect()
}

impl InspectedGateway for GatewayView {
    fn state(&self) -> BoxFuture<'_, Result<Value, String>> {
        Box::pin(self.describe())
    }

    fn decide_approval<'a>(
        &'a self,
        nonce: &'a str,
        decision: InspectorDecision,
        user: &'a InspectorUser,
    ) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let running = self.0.upgrade().ok_or(STOPPED)?;
            let choice = match decision {
                InspectorDecision::Approve => ApprovalChoice::Allow,
                InspectorDecision::Deny => ApprovalChoice::Deny,
            };
            running
                .intake
                .approvals
                .decide(nonce, choice, &decider(user))
        })
    }

    fn decide_pairing<'a>(
        &'a self,
        channel: &'a str,
        code: &'a str,
        decision: InspectorDecision,
    ) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(self.pair(channel, code, decision))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_names_who_decided_and_with_which_token() {
        let user = InspectorUser {
            user: "ann".to_owned(),
            token: "laptop".to_owned(),
        };
        assert_eq!(decider(&user), "ann (inspector, laptop)");
    }
}
