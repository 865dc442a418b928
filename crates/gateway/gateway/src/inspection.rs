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
use tenterhook_channel::store::{ChatQueues, ChatSummary, QueueDepth};
use tenterhook_protocol::JsonObject;

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
        let mut chats = running.store.chats(MAX_CHATS).await.map_err(described)?;
        for chat in &mut chats {
            if !running.shows_contents(&chat.chat) {
                chat.title.clear();
            }
        }
        let queues = running.store.queues().await.map_err(described)?;
        let pairings = running.pairings.list().await.map_err(described)?;
        let pairings: Vec<Value> = pairings
            .into_iter()
            .filter_map(|(channel, found)| Some((channel, found.ok()?)))
            .flat_map(|(channel, found)| pending(&channel, &found.requests))
            .collect();
        if let Some(fields) = state.as_object_mut() {
            add_queues(fields, &chats, &queues);
            fields.insert("pairings".to_owned(), pairings.into());
            let approvals = &running.intake.approvals;
            let approvals = approvals.open_approvals(|chat| running.shows_contents(chat));
            fields.insert("approvals".to_owned(), approvals.into());
        }
        Ok(state)
    }

    async fn pair(
        &self,
        channel: &str,
        code: &str,
        decision: InspectorDecision,
        user: &InspectorUser,
    ) -> Result<(), String> {
        let running = self.0.upgrade().ok_or(STOPPED)?;
        let by = decider(user);
        let (method, params) = match decision {
            // Who may be an owner is decided with `tenterhook gateway pair`.
            InspectorDecision::Approve => (
                "pair.approve",
                json!({ "channel": channel, "code": code, "role": "member", "by": by }),
            ),
            InspectorDecision::Deny => (
                "pair.deny",
                json!({ "channel": channel, "code": code, "by": by }),
            ),
        };
        let done = administer(method, &params, &running.tokens, &running.pairings).await;
        done.unwrap_or_else(|| Err(format!("unknown method `{method}`")))
            .map(drop)
    }
}

/// Adds the chats, and how much waits in each chat, in each channel and in all.
fn add_queues(state: &mut JsonObject, chats: &[ChatSummary], queues: &[ChatQueues]) {
    let described = chats.iter().map(|chat| {
        let mut described = json!(chat);
        let queue = queues.iter().find(|queue| queue.chat == chat.chat);
        if let (Some(fields), Some(queue)) = (described.as_object_mut(), queue) {
            fields.extend(depths([queue]));
        }
        described
    });
    state.insert("chats".to_owned(), described.collect());
    // A message of a new chat is stored before the chat has frames.
    let is_listed = |queue: &&ChatQueues| chats.iter().any(|chat| chat.chat == queue.chat);
    let new_chats = queues
        .iter()
        .filter(|queue| !is_listed(queue))
        .take(MAX_CHATS);
    let new_chats = new_chats.map(|queue| {
        let mut described = depths([queue]);
        described.insert("chat".to_owned(), json!(queue.chat));
        Value::Object(described)
    });
    let new_chats: Vec<Value> = new_chats.collect();
    if let Some(Value::Array(chats)) = state.get_mut("chats") {
        chats.extend(new_chats);
    }
    if let Some(Value::Array(channels)) = state.get_mut("channels") {
        for channel in channels.iter_mut().filter_map(Value::as_object_mut) {
            let id = channel.get("id").and_then(Value::as_str);
            let of_channel = queues
                .iter()
                .filter(|queue| id == Some(queue.chat.channel.as_str()));
            let depths = depths(of_channel);
            channel.extend(depths);
        }
    }
    state.extend(depths(queues));
}

/// Returns how much waits in chats together.
fn depths<'a>(queues: impl IntoIterator<Item = &'a ChatQueues>) -> JsonObject {
    let (mut inbox, mut outbox) = (QueueDepth::default(), QueueDepth::default());
    for queue in queues {
        inbox.add(queue.inbox);
        outbox.add(queue.outbox);
    }
    JsonObject::from_iter([
        ("inbox".to_owned(), json!(inbox)),
        ("outbox".to_owned(), json!(outbox)),
    ])
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
            let approvals = &running.intake.approvals;
            approvals.decide(nonce, choice, &decider(user), |chat| {
                running.shows_contents(chat)
            })
        })
    }

    fn decide_pairing<'a>(
        &'a self,
        channel: &'a str,
        code: &'a str,
        decision: InspectorDecision,
        user: &'a InspectorUser,
    ) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(self.pair(channel, code, decision, user))
    }
}

#[cfg(test)]
mod tests {
    use tenterhook_channel::chat::{ChannelId, ChatRef};

    use super::*;

    #[test]
    fn what_waits_is_counted_for_chats_channels_and_all() {
        let chat = |id: &str| ChatRef {
            channel: ChannelId::new("web").unwrap(),
            chat: id.to_owned(),
            thread: None,
        };
        let depth = |waiting, oldest| QueueDepth { waiting, oldest };
        let chats = [ChatSummary {
            chat: chat("ann"),
            last_seq: 4,
            at: 7,
            title: "hello".to_owned(),
        }];
        let queues = [
            ChatQueues {
                chat: chat("ann"),
                inbox: depth(2, Some(5)),
                outbox: depth(1, None),
            },
            ChatQueues {
                chat: chat("ben"),
                inbox: depth(1, Some(3)),
                outbox: QueueDepth::default(),
            },
        ];
        let channels = json!({"channels": [{"id": "web"}, {"id": "http"}]});
        let mut state = channels.as_object().unwrap().clone();
        add_queues(&mut state, &chats, &queues);
        let state = Value::Object(state);
        assert_eq!(state["inbox"], json!({"waiting": 3, "oldest": 3}));
        assert_eq!(state["channels"][0]["inbox"]["waiting"], 3);
        assert_eq!(state["channels"][1]["outbox"], json!({"waiting": 0}));
        assert_eq!(state["chats"][0]["title"], "hello");
        assert_eq!(
            state["chats"][0]["inbox"],
            json!({"waiting": 2, "oldest": 5})
        );
        assert_eq!(
            state["chats"][1]["inbox"],
            json!({"waiting": 1, "oldest": 3})
        );
    }

    #[test]
    fn a_decision_names_who_decided_and_with_which_token() {
        let user = InspectorUser {
            user: "ann".to_owned(),
            token: "laptop".to_owned(),
        };
        assert_eq!(decider(&user), "ann (inspector, laptop)");
    }
}
