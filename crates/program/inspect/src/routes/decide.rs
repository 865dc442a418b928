//! The state of a gateway, and decisions about it.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::{Extension, Json};
use serde::Deserialize;
use serde_json::Value;
use tenterhook_journal::Redactor;

use crate::inspected_gateway::{InspectedGateway, InspectorDecision, InspectorUser};
use crate::inspector::Inspector;
use crate::route_error::RouteError;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DecisionBody {
    decision: InspectorDecision,
}

/// `GET /v1/inspect/gateway`: the state of the gateway, without secrets.
pub(super) async fn state(
    State(inspector): State<Arc<Inspector>>,
) -> Result<Json<Value>, RouteError> {
    let state = gateway(&inspector)?.state().await;
    let failed = |error| RouteError::new(StatusCode::INTERNAL_SERVER_ERROR, "no_state", error);
    let mut state = state.map_err(failed)?;
    Redactor::shared().redact_value(&mut state);
    Ok(Json(state))
}

/// `POST /v1/inspect/approvals/{nonce}`: answers the question whether a tool call may run.
pub(super) async fn approval(
    State(inspector): State<Arc<Inspector>>,
    Extension(user): Extension<InspectorUser>,
    Path(nonce): Path<String>,
    Json(body): Json<DecisionBody>,
) -> Result<StatusCode, RouteError> {
    let gateway = gateway(&inspector)?;
    let decided = gateway.decide_approval(&nonce, body.decision, &user).await;
    done(decided)
}

/// `POST /v1/inspect/pairings/{channel}/{code}`: decides whether a sender is admitted.
pub(super) async fn pairing(
    State(inspector): State<Arc<Inspector>>,
    Extension(user): Extension<InspectorUser>,
    Path((channel, code)): Path<(String, String)>,
    Json(body): Json<DecisionBody>,
) -> Result<StatusCode, RouteError> {
    let gateway = gateway(&inspector)?;
    let decided = gateway.decide_pairing(&channel, &code, body.decision, &user);
    done(decided.await)
}

fn gateway(inspector: &Inspector) -> Result<&Arc<dyn InspectedGateway>, RouteError> {
    let missing = "this inspector does not belong to a gateway";
    let gateway = inspector.gateway();
    gateway.ok_or_else(|| RouteError::not_found(missing))
}

fn done(decided: Result<(), String>) -> Result<StatusCode, RouteError> {
    let refused = |error| RouteError::new(StatusCode::CONFLICT, "not_decided", error);
    decided.map(|()| StatusCode::NO_CONTENT).map_err(refused)
}

#[cfg(test)]
mod tests {
    use futures_util::future::{BoxFuture, ready};
    use serde_json::json;

    use super::*;
    use crate::inspector::InspectedSource;
    use crate::record_log::{LogLimits, RecordLog};

    /// A gateway with a token in the error of a channel.
    #[derive(Debug)]
    struct LeakyGateway(String);

    impl InspectedGateway for LeakyGateway {
        fn state(&self) -> BoxFuture<'_, Result<Value, String>> {
            let error = format!("cannot connect with {}", self.0);
            let state = json!({
                "channels": [{ "id": "telegram", "error": error }],
                "pairings": [{ "channel": "telegram", "code": "K7QMX2PD" }],
                "approvals": [{ "nonce": "b3J7cXkzT9vL1pQe" }],
            });
            Box::pin(ready(Ok(state)))
        }

        fn decide_approval<'a>(
            &'a self,
            _nonce: &'a str,
            _decision: InspectorDecision,
            _user: &'a InspectorUser,
        ) -> BoxFuture<'a, Result<(), String>> {
            Box::pin(ready(Ok(())))
        }

        fn decide_pairing<'a>(
            &'a self,
            _channel: &'a str,
            _code: &'a str,
            _decision: InspectorDecision,
            _user: &'a InspectorUser,
        ) -> BoxFuture<'a, Result<(), String>> {
            Box::pin(ready(Ok(())))
        }
    }

    #[tokio::test]
    async fn a_token_in_the_error_of_a_channel_is_not_shown_but_codes_of_requests_are() {
        let token = format!("ghp_{}", "1x9QzP3vW7kB5nR2mT8yL4cF6dH0sJgA1x9Q");
        let log = Arc::new(RecordLog::new(LogLimits::LIVE, 1));
        let gateway = Arc::new(LeakyGateway(token));
        let inspector = Inspector::new(InspectedSource::Gateway, log).with_gateway(gateway);
        let shown = state(State(Arc::new(inspector))).await.ok().unwrap().0;
        assert!(!shown.to_string().contains("1x9Q"), "{shown}");
        assert_eq!(shown["pairings"][0]["code"], "K7QMX2PD");
        assert_eq!(shown["approvals"][0]["nonce"], "b3J7cXkzT9vL1pQe");
    }
}
