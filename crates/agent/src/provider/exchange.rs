//! What a provider tells of its exchange with the service, while a model call is under way.

use serde_json::Value;
use tenterhook_protocol::JsonObject;
use tokio::sync::{mpsc, oneshot};

use super::{ModelError, ModelErrorKind};

/// Who hears of one model call's exchange with the service, and may change what is sent.
///
/// A provider that finds one in its request says what it sends and what comes back: both in this order, once each.
#[derive(Debug, Clone)]
pub struct Exchange {
    steps: mpsc::Sender<Step>,
    sees_payload: bool,
}

/// What a provider said, and waits to be done.
#[derive(Debug)]
pub(crate) enum Step {
    Request {
        payload: Value,
        /// The body in its place, `None` for the same. An error keeps the request from being sent.
        reply: oneshot::Sender<Result<Option<Value>, ModelError>>,
    },
    Response {
        status: u16,
        headers: JsonObject,
        heard: oneshot::Sender<()>,
    },
}

impl Exchange {
    /// Makes an exchange, and what hears it. Without `sees_payload` only the response is heard.
    pub(crate) fn new(sees_payload: bool) -> (Self, mpsc::Receiver<Step>) {
        // The provider waits for each step, so there is never a second one.
        let (steps, hearing) = mpsc::channel(1);
        let exchange = Self {
            steps,
            sees_payload,
        };
        (exchange, hearing)
    }

    /// Says whether anyone wants to see the body of the request: it need not be built otherwise.
    pub fn sees_payload(&self) -> bool {
        self.sees_payload
    }

    /// Shows the body of the request just before it is sent. Returns the body to send in its place, `None` for the
    /// same.
    ///
    /// # Errors
    /// When the request must not be sent: a hook that may redact it failed, or the call is over, so that no hook has
    /// seen it.
    pub async fn request(&self, payload: Value) -> Result<Option<Value>, ModelError> {
        if !self.sees_payload {
            return Ok(None);
        }
        let over = || ModelError::new(ModelErrorKind::Broken, "the model call is over");
        let (reply, replied) = oneshot::channel();
        let step = Step::Request { payload, reply };
        self.steps.send(step).await.map_err(|_| over())?;
        replied.await.map_err(|_| over())?
    }

    /// Tells the status and the headers of the response before anything of its body.
    pub async fn response(&self, status: u16, headers: JsonObject) {
        let (heard, done) = oneshot::channel();
        let step = Step::Response {
            status,
            headers,
            heard,
        };
        if self.steps.send(step).await.is_ok() {
            // Without an answer the call is over.
            done.await.unwrap_or_default();
        }
    }
}
