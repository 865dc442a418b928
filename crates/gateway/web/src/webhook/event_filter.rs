//! Decides which events of a service become messages.

use axum::http::HeaderMap;
use serde::Deserialize;
use tenterhook_channel::settings::WebhookSettings;

/// The event with which a service only tries the address.
const PING: &str = "ping";

/// The events of a webhook that become messages.
#[derive(Debug)]
pub(super) struct EventFilter {
    header: String,
    /// `EVENT` or `EVENT.ACTION`. Empty for all events except `ping`.
    events: Vec<String>,
}

/// The part of a body that the filter reads.
#[derive(Deserialize)]
struct EventBody {
    action: Option<String>,
}

impl EventFilter {
    pub(super) fn new(settings: &WebhookSettings) -> Self {
        Self {
            header: settings.event_header.clone(),
            events: settings.events.clone(),
        }
    }

    /// Returns whether a request becomes a message. The header is not signed: what decides about rights must not depend
    /// on it.
    pub(super) fn admits(&self, headers: &HeaderMap, body: &[u8]) -> bool {
        let event = headers.get(&self.header);
        let event = event.and_then(|value| value.to_str().ok());
        if self.events.is_empty() {
            return event != Some(PING);
        }
        let Some(event) = event else { return false };
        let is_listed = |wanted: &str| self.events.iter().any(|listed| listed == wanted);
        if is_listed(event) {
            return true;
        }
        // A body that is no such object has no action, and only the name of the event counts.
        let action = serde_json::from_slice::<EventBody>(body).ok();
        let action = action.and_then(|body| body.action);
        action.is_some_and(|action| is_listed(&format!("{event}.{action}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_becomes_a_message_if_it_is_listed_or_if_nothing_is_and_it_is_not_a_ping() {
        const OPENED: &str = r#"{"action": "opened"}"#;
        for (listed, event, body, expected) in [
            ("", Some("ping"), "{}", false),
            ("", Some("push"), "{}", true),
            ("", None, "{}", true),
            ("issues", Some("issues"), OPENED, true),
            ("issues", Some("issue_comment"), OPENED, false),
            ("issues", None, OPENED, false),
            ("issues.opened push", Some("issues"), OPENED, true),
            ("issues.opened push", Some("push"), "[]", true),
            (
                "issues.opened",
                Some("issues"),
                r#"{"action": "closed"}"#,
                false,
            ),
            ("issues.opened", Some("issues"), r#"{"action": 1}"#, false),
            ("issues.opened", Some("issues"), "not JSON", false),
            ("push", Some("ping"), "{}", false),
            ("ping", Some("ping"), "{}", true),
        ] {
            let filter = EventFilter {
                header: "x-github-event".to_owned(),
                events: listed.split_whitespace().map(str::to_owned).collect(),
            };
            let mut headers = HeaderMap::new();
            if let Some(event) = event {
                headers.insert("x-github-event", event.parse().unwrap());
            }
            let admitted = filter.admits(&headers, body.as_bytes());
            assert_eq!(admitted, expected, "{listed} {event:?} {body}");
        }
    }
}
