//! The checks around groups of routes.

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::middleware::{from_fn, from_fn_with_state};

use super::access;
use super::http_error::{self, HttpError};
use super::state::SharedGatekeeper;
use tenterhook_channel::token::AccessScope;

/// Lets only clients with a scope use routes.
pub(super) fn require_scope<S: Clone + Send + Sync + 'static>(
    routes: Router<S>,
    gatekeeper: &SharedGatekeeper,
    scope: AccessScope,
) -> Router<S> {
    let state = (Arc::clone(gatekeeper), scope);
    routes.route_layer(from_fn_with_state(state, access::require))
}

/// Adds the checks that all requests pass, and the form of errors.
pub(super) fn checked<S: Clone + Send + Sync + 'static>(
    all: Router<S>,
    gatekeeper: &SharedGatekeeper,
) -> Router<S> {
    all.method_not_allowed_fallback(async || {
        HttpError::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "wrong_method",
            "this address does not take requests with this method",
        )
    })
    .layer(from_fn_with_state(
        Arc::clone(gatekeeper),
        access::check_caller,
    ))
    .layer(from_fn(http_error::explain))
}
