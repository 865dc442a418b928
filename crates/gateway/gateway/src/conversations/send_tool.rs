//! The tool with which the agent sends texts and files to the chat of its turn.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use tenterhook_journal::Redactor;
use tenterhook_protocol::ToolResult;
use tenterhook_protocol::event::{DeliveryKind, MessagePart};
use tenterhook_tools::{ToolContext, ToolFailure, TypedTool};

use crate::conversations::chat_frontend::{ChatFrontend, TurnView};
use crate::conversations::deliver::{Content, import};
use tenterhook_channel::message::MediaKind;
use tenterhook_channel::publisher::{InboxUpdate, SavedMedia};

/// The name of the tool.
const NAME: &str = "send";

/// Sends texts and files to the chat of the current turn.
pub(crate) struct SendTool {
    frontend: Arc<ChatFrontend>,
}

/// The arguments of the tool.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SendInput {
    /// A text.
    #[serde(default)]
    text: Option<String>,
    /// The path of a file in the working directory.
    #[serde(default)]
    file: Option<String>,
}

impl SendTool {
    pub(crate) fn new(frontend: Arc<ChatFrontend>) -> Self {
        Self { frontend }
    }
}

impl std::fmt::Debug for SendTool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SendTool").finish_non_exhaustive()
    }
}

impl TypedTool for SendTool {
    type Input = SendInput;

    fn name(&self) -> &str {
        NAME
    }

    fn description(&self) -> String {
        "Sends a text, a file, or both to the person in this chat, in addition to your answer. Use it for files, and \
         for news during long work. Your answer is sent anyway."
            .to_owned()
    }

    fn category(&self) -> &'static str {
        "chat"
    }

    fn is_read_only(&self) -> bool {
        false
    }

    fn wants_approval(&self) -> bool {
        false
    }

    fn check_input(&self, input: &SendInput) -> Result<(), Box<dyn Error + Send + Sync>> {
        let is_empty = |value: &Option<String>| value.as_deref().is_none_or(str::is_empty);
        if is_empty(&input.text) && is_empty(&input.file) {
            return Err("expected `text`, `file` or both".into());
        }
        Ok(())
    }

    async fn run(
        &self,
        input: SendInput,
        call: ToolContext<'_>,
    ) -> Result<ToolResult, ToolFailure> {
        let turn = self.frontend.turn();
        let turn = turn.ok_or_else(|| ToolFailure::permanent("there is no chat to send to"))?;
        let text = input.text.unwrap_or_default();
        if has_secret(&text) {
            return Err(ToolFailure::permanent("the text contains a secret"));
        }
        let mut content = Content::from(text);
        if let Some(file) = input.file.filter(|file| !file.is_empty()) {
            let saved = save_file(&turn, call.cwd, &file).await;
            content.media.push(saved.map_err(ToolFailure::permanent)?);
        }
        let to = turn.recipient();
        let sent = turn.delivery.deliver(&to, DeliveryKind::Extra, content);
        let frames = sent.await.into_frames(Some(&turn.turn), None);
        turn.publish(frames, InboxUpdate::default()).await;
        Ok(ToolResult::text("Sent."))
    }
}

/// Copies a file to the media folder, if it may leave. The copy is checked, so the file cannot change in between.
async fn save_file(turn: &TurnView, cwd: &Path, file: &str) -> Result<SavedMedia, String> {
    let place = cwd.join(file);
    let part = MessagePart {
        kind: kind_of(file).word().to_owned(),
        data: Some(place.display().to_string()),
        ..MessagePart::default()
    };
    let (media, hooks) = (&turn.parts.media, turn.delivery.dispatcher());
    let saved = import(media, hooks, &part, &turn.to.chat).await;
    let saved = saved.map_err(|problem| format!("cannot send `{file}`: {problem}"))?;
    let path = saved.path.clone();
    let checking = tokio::task::spawn_blocking(move || {
        let bytes = std::fs::read(path)?;
        Ok::<bool, std::io::Error>(has_secret(&String::from_utf8_lossy(&bytes)))
    });
    let problem = match checking.await {
        Ok(Ok(false)) => return Ok(saved),
        Ok(Ok(true)) => "it contains a secret",
        Ok(Err(_)) | Err(_) => "it cannot be checked",
    };
    // A file that was in the media folder before is part of the conversation.
    let is_new = tokio::fs::canonicalize(&place)
        .await
        .is_ok_and(|place| place != saved.path);
    if is_new {
        media.discard(&saved.media.id, &turn.to.chat).await;
    }
    Err(format!("cannot send `{file}`: {problem}"))
}

fn has_secret(text: &str) -> bool {
    !Redactor::shared().find(text).is_empty()
}

/// Returns how people see a file with this name.
fn kind_of(file: &str) -> MediaKind {
    let extension = Path::new(file).extension();
    let extension = extension.map(|extension| extension.to_string_lossy().to_ascii_lowercase());
    match extension.as_deref() {
        Some("png" | "jpg" | "jpeg" | "gif" | "webp") => MediaKind::Image,
        Some("flac" | "m4a" | "mp3" | "oga" | "ogg" | "opus" | "wav") => MediaKind::Audio,
        _ => MediaKind::File,
    }
}
