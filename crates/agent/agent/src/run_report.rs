//! The input and the result of a run: [`Prompt`] and [`RunReport`].

use tenterhook_protocol::event::InputSource;
use tenterhook_protocol::{Image, JsonObject, Message, Usage};

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunEnd {
    /// The model had nothing left to do.
    Completed,
    /// A hook handled the input, so no model was called.
    Handled,
    /// The run was cancelled.
    Cancelled,
    /// A hook stopped the run.
    HookBlocked {
        /// The event whose hook stopped it.
        event: &'static str,
        /// The hook's reason.
        reason: String,
    },
    /// The model repeated one tool call.
    LoopDetected {
        /// The tool.
        tool: String,
    },
    /// The limit of model calls was reached and not raised.
    MaxIterations {
        /// The limit.
        limit: u32,
    },
    /// A model call failed.
    Error {
        /// What went wrong.
        message: String,
    },
}

/// The result of a prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct RunReport {
    /// How the run ended.
    pub end: RunEnd,
    /// The model's last text in this run. Empty if it wrote none.
    pub response: String,
    /// The number of turns.
    pub turns: u32,
    /// The tokens of the run's model calls, if the provider counted them.
    pub usage: Usage,
    /// The cost of these calls in US dollars. `None` if the price of any call is unknown.
    pub cost: Option<f64>,
}

/// An input for the agent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Prompt {
    /// The text.
    pub text: String,
    /// The images that belong to the text.
    pub images: Vec<Image>,
    /// Where it comes from.
    pub source: InputSource,
    /// The [`extra`](tenterhook_protocol::Message::extra) of its message.
    pub extra: JsonObject,
}

impl Prompt {
    /// Returns the message for the model.
    pub(crate) fn into_message(self) -> Message {
        let mut message = Message::user(self.text).with_images(self.images);
        message.extra = self.extra;
        message
    }
}

impl From<&str> for Prompt {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

impl From<String> for Prompt {
    fn from(text: String) -> Self {
        Self {
            text,
            ..Self::default()
        }
    }
}
