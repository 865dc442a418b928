//! The way out: what a conversation uses to show frames.

use std::path::PathBuf;

use futures_util::future::BoxFuture;
use thiserror::Error;

use crate::channel::ChannelCapabilities;
use crate::chat::ChatRef;
use crate::frame::{Frame, Media};
use crate::message::MediaRef;

pub use crate::store::InboxUpdate;

/// Shows frames to the chats they belong to.
pub trait Publisher: Send + Sync {
    /// Returns what the chat's channel can do. `None` if the channel does not exist any more.
    fn capabilities(&self, chat: &ChatRef) -> Option<ChannelCapabilities>;

    /// Shows a frame that is not durable. It never blocks, and the frame may be lost.
    fn live(&self, chat: &ChatRef, frame: &Frame);

    /// Stores durable frames, and changes the states of messages of the inbox, in one transaction. Then the frames are sent in order.
    ///
    /// # Errors
    ///
    /// Fails if they cannot be stored. Then nothing was stored.
    fn publish<'a>(
        &'a self,
        chat: &'a ChatRef,
        frames: Vec<Frame>,
        update: InboxUpdate,
    ) -> BoxFuture<'a, Result<(), PublishError>>;

    /// Fetches a file of an admitted message and keeps a copy.
    ///
    /// # Errors
    ///
    /// Describes for the sender why there is no copy.
    fn fetch<'a>(
        &'a self,
        chat: &'a ChatRef,
        media: &'a MediaRef,
    ) -> BoxFuture<'a, Result<SavedMedia, String>>;

    /// Sends a question. Returns whether someone may see it.
    fn ask<'a>(&'a self, chat: &'a ChatRef, question: &'a Frame) -> BoxFuture<'a, bool>;
}

/// A file of which the gateway has a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedMedia {
    /// What it is.
    pub media: Media,
    /// The absolute path of the copy.
    pub path: PathBuf,
}

/// The error of frames that could not be stored.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("cannot store the answer: {cause}")]
pub struct PublishError {
    /// What happened.
    pub cause: String,
}
