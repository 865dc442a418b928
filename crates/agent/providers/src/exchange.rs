//! Shows what a provider sends and receives while a model call is in progress.

use serde_json::Value;
use tenterhook_protocol::JsonObject;
use tokio::sync::{mpsc, oneshot};

use crate::error::{ProviderError, ProviderErrorKind};

/// The sending end of one model call's exchange. Its receiver observes the exchange and may change the request.
///
/// A provider that finds an exchange in its request reports first the request, then the response, once each.
#[derive(Debug, Clone)]
pub struct ProviderExchange {
    steps: mpsc::Sender<ExchangeStep>,
    sees_payload: bool,
}

/// A step of an exchange. The provider waits until the receiver has answered it.
#[derive(Debug)]
pub enum ExchangeStep {
    /// A request is about to be sent.
    Request {
        /// The body of the request.
        payload: Value,
        /// Receives the body to send instead, or `None` to send it unchanged. An error stops the request.
        reply: oneshot::Sender<Result<Option<Value>, ProviderError>>,
    },
    /// The status and headers of a response have arrived.
    Response {
        /// The status of the response.
        status: u16,
        /// The headers of the response.
        headers: JsonObject,
        /// Lets the provider continue, once it is used or dropped.
        heard: oneshot::Sender<()>,
    },
}

impl ProviderExchange {
    /// Creates an exchange and its receiver. Without `sees_payload`, the receiver gets only the response.
    pub fn new(sees_payload: bool) -> (Self, mpsc::Receiver<ExchangeStep>) {
        // The provider waits for each step, so there is never more than one.
        let (steps, hearing) = mpsc::channel(1);
        let exchange = Self {
            steps,
            sees_payload,
        };
        (exchange, hearing)
    }

    /// Returns whether the receiver wants the body of the request. Otherwise the provider need not build it.
    pub fn sees_payload(&self) -> bool {
        self.sees_payload
    }

    /// Shows the body of the request just before it is sent. Returns the body to send instead, or `None` to send it
    /// unchanged.
    ///
    /// # Errors
    /// Fails if the request must not be sent, because a hook that may redact it failed, or because the call has ended
    /// and no hook has seen it.
    pub async fn request(&self, payload: Value) -> Result<Option<Value>, ProviderError> {
        if !self.sees_payload {
            return Ok(None);
        }
        let over = || ProviderError::new(ProviderErrorKind::Broken, "the model call has ended");
        let (reply, replied) = oneshot::channel();
        let step = ExchangeStep::Request { payload, reply };
        self.steps.send(step).await.map_err(|_| over())?;
        replied.await.map_err(|_| over())?
    }

    /// Reports the status and headers of the response before its body is read.
    pub async fn response(&self, status: u16, headers: JsonObject) {
        let (heard, done) = oneshot::channel();
        let step = ExchangeStep::Response {
            status,
            headers,
            heard,
        };
        if self.steps.send(step).await.is_ok() {
            // If the receiver is dropped instead of answering, the call has ended: nothing is left to wait for.
            done.await.unwrap_or_default();
        }
    }
}
