//! A bot of Telegram, over long polls.
//!
//! A poll tells Telegram which updates it may forget: those before its offset. So the offset moves only over updates
//! whose messages are durable. It is stored for the bot's account, because another bot counts from another number.

mod albums;
mod api;
mod bot_api;
mod buttons;
mod groups;
mod markup;
mod messages;
mod receive;
mod send;
mod view;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _, join_all};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tokio_util::sync::DropGuard;

use self::albums::{ALBUM_PAUSE, Albums, album_of};
use self::api::{Api, ApiError};
use self::bot_api::{File, Update, User};
use self::groups::Groups;
use self::receive::{Account, Received};
use self::send::Outbound;
use tenterhook_channel::channel::{
    Accepted, Channel, ChannelCapabilities, ChannelError, DeliveryError, Inlet, MediaSink,
    Outgoing, Receipt,
};
use tenterhook_channel::chat::{ChannelId, ChatRef};
use tenterhook_channel::frame::Frame;
use tenterhook_channel::message::MediaRef;
use tenterhook_channel::settings::{Show, TelegramSettings};

/// The media types of audio that Telegram shows as voice messages, the best first.
pub const AUDIO_FORMATS: &[&str] = &["audio/ogg", "audio/mpeg", "audio/mp4"];

/// How long Telegram waits for an update before it answers a poll.
const POLL_TIMEOUT: Duration = Duration::from_secs(50);
/// How many updates a poll returns.
const MAX_UPDATES: u32 = 100;
/// How long to wait before the next poll when the gateway is full.
const FULL_PAUSE: Duration = Duration::from_secs(2);
/// The longest wait that Telegram may ask for between polls.
const MAX_POLL_PAUSE: Duration = Duration::from_mins(5);
/// The maximum length of the note that Telegram shows for a button, in characters.
const MAX_BUTTON_NOTE: usize = 200;
/// The maximum size of a file that Telegram lets a bot download.
const MAX_FILE: u64 = 20 << 20;

/// A bot of Telegram.
pub struct TelegramChannel {
    id: ChannelId,
    api: Arc<Api>,
    outbound: Arc<Outbound>,
    groups: Groups,
    poll_timeout: Duration,
    /// Ends the tasks that show turns.
    _tasks: DropGuard,
}

impl std::fmt::Debug for TelegramChannel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TelegramChannel")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl TelegramChannel {
    /// Creates the channel of the bot that `token` belongs to. Nothing is sent yet.
    ///
    /// # Errors
    ///
    /// Fails if the address in the settings is invalid, or if this machine cannot verify servers.
    pub fn new(
        id: ChannelId,
        settings: &TelegramSettings,
        token: String,
        show: Show,
    ) -> Result<Self, ChannelError> {
        let api = Arc::new(Api::new(&settings.api_base, token)?);
        let tasks = CancellationToken::new();
        Ok(Self {
            id,
            outbound: Arc::new(Outbound::new(Arc::clone(&api), show, tasks.clone())),
            api,
            groups: Groups::default(),
            poll_timeout: POLL_TIMEOUT,
            _tasks: tasks.drop_guard(),
        })
    }

    /// Sets the ids of the groups that the settings list. A group that has moved keeps its first id unless its new one is
    /// among them.
    #[must_use]
    pub fn with_groups(self, listed: Vec<String>) -> Self {
        let groups = Groups::new(listed);
        Self { groups, ..self }
    }

    /// Sets how long Telegram waits for an update before it answers a poll. The default is 50 seconds. A poll that takes
    /// twice as long is abandoned.
    #[must_use]
    pub fn with_poll_timeout(self, poll_timeout: Duration) -> Self {
        Self {
            poll_timeout,
            ..self
        }
    }

    async fn receive(&self, inlet: &Inlet) -> Result<(), ChannelError> {
        let user: User = self
            .api
            .call("getMe", &())
            .await
            .map_err(|error| receive_error(&error))?;
        let account = Account::new(&user);
        let account_id = account.id.to_string();
        let mut offset = inlet.offset(&account_id).await?;
        let mut albums = Albums::default();
        loop {
            let updates = self.poll(offset).await;
            if let Some(wait) = updates.as_ref().err().and_then(ApiError::retry_after) {
                tokio::time::sleep(wait.min(MAX_POLL_PAUSE)).await;
                continue;
            }
            let mut updates = updates.map_err(|error| receive_error(&error))?;
            inlet.alive();
            if updates.is_empty() {
                // Telegram has forgotten what is before the offset. After a quiet week it may number the next update lower
                // than the last one, and would never send it if the offset stayed.
                offset = None;
            }
            let is_held = albums.hold(&mut updates);
            let (next, result) = self.take_all(inlet, &account, updates).await;
            if let Some(next) = next {
                // If this is lost in a crash, Telegram sends the updates again, and they are duplicates.
                inlet.set_offset(&account_id, next).await;
                offset = Some(next);
            }
            if result?.is_full {
                tokio::time::sleep(FULL_PAUSE).await;
            } else if is_held {
                tokio::time::sleep(ALBUM_PAUSE).await;
            }
        }
    }

    async fn poll(&self, offset: Option<i64>) -> Result<Vec<Value>, ApiError> {
        let mut params = json!({
            "limit": MAX_UPDATES,
            "timeout": self.poll_timeout.as_secs(),
            "allowed_updates": ["message", "edited_message", "callback_query"],
        });
        if let (Some(offset), Some(params)) = (offset, params.as_object_mut()) {
            params.insert("offset".to_owned(), offset.into());
        }
        self.api
            .call_within(self.poll_timeout * 2, "getUpdates", &params)
            .await
    }

    /// Takes updates. The updates of one chat are taken in order, until one cannot be recorded. Chats do not wait for each
    /// other, so that their messages share waits for the disk. Returns the next offset.
    async fn take_all(
        &self,
        inlet: &Inlet,
        account: &Account,
        updates: Vec<Value>,
    ) -> (Option<i64>, Result<Batch, ChannelError>) {
        let (mut last, mut failed) = (None, None::<(i64, ChannelError)>);
        let mut chats: BTreeMap<String, Vec<TakenUpdate>> = BTreeMap::new();
        for update in updates {
            let Some(id) = update.get("update_id").and_then(Value::as_i64) else {
                continue;
            };
            last = last.max(Some(id));
            let album = album_of(&update).map(str::to_owned);
            // An update in a form that we do not know must not stop the ones after it.
            if let Ok(mut update) = serde_json::from_value::<Update>(update) {
                if let Err(error) = self.groups.trace(inlet, &mut update).await {
                    failed = Some((id, error));
                    break;
                }
                let received = receive::read(&self.id, account, update);
                let of_chat = chats.entry(received.chat()).or_default();
                if let Some(received) = join_album(of_chat, album.as_deref(), received) {
                    of_chat.push((id, album, received));
                }
            }
        }
        let chats = chats.into_values();
        let taken = join_all(chats.map(|updates| self.take_chat(inlet, updates))).await;
        let mut batch = Batch::default();
        for taken in taken {
            match taken {
                Ok(is_full) => batch.is_full |= is_full,
                Err(error) if failed.as_ref().is_none_or(|first| error.0 < first.0) => {
                    failed = Some(error);
                }
                Err(_) => {}
            }
        }
        match failed {
            // Later updates that were recorded come again, and are duplicates.
            Some((id, error)) => (Some(id), Err(error)),
            None => (last.map(|id| id + 1), Ok(batch)),
        }
    }

    /// Takes the updates of a chat until one cannot be recorded; then its id is returned with the error. Requests that
    /// follow it are carried out all the same, so that someone can stop a turn while nothing is taken.
    async fn take_chat(
        &self,
        inlet: &Inlet,
        updates: Vec<TakenUpdate>,
    ) -> Result<bool, (i64, ChannelError)> {
        let (mut is_full, mut failed) = (false, None);
        for (id, _, received) in updates {
            if failed.is_some() {
                self.take_request(inlet, received).await;
                continue;
            }
            match self.take(inlet, received).await {
                Ok(refused) => is_full |= refused,
                Err(error) => failed = Some((id, error)),
            }
        }
        failed.map_or(Ok(is_full), Err)
    }

    /// Takes one update. Returns whether the gateway is full.
    async fn take(&self, inlet: &Inlet, received: Received) -> Result<bool, ChannelError> {
        match received {
            Received::Message(message) => {
                let chat = message.chat.clone();
                match inlet.offer(*message).await {
                    Accepted::Recorded | Accepted::Duplicate => {}
                    Accepted::Refused { code, notice } => {
                        self.outbound.notify(&chat, notice);
                        return Ok(code == "queue_full");
                    }
                    Accepted::Failed { cause } => {
                        return Err(ChannelError::new("not_recorded", cause));
                    }
                }
            }
            Received::Cancel(control) => {
                let chat = control.chat().clone();
                let notice = inlet.control(control).await;
                self.outbound.notify(&chat, notice);
            }
            request @ (Received::Pressed { .. } | Received::Stale { .. } | Received::Nothing) => {
                self.take_request(inlet, request).await;
            }
        }
        Ok(false)
    }

    /// Carries out an update that is not a message. A chat is not told that there was nothing to cancel.
    async fn take_request(&self, inlet: &Inlet, received: Received) {
        match received {
            Received::Cancel(control) => {
                inlet.control(control).await;
            }
            Received::Pressed { query, control } => {
                let note = inlet.control(control).await;
                self.answer_button(query, note.unwrap_or_default()).await;
            }
            Received::Stale { query } => {
                let note = "This question is over.".to_owned();
                self.answer_button(query, note).await;
            }
            Received::Message(_) | Received::Nothing => {}
        }
    }

    /// Ends the waiting mark of a button.
    async fn answer_button(&self, query: String, note: String) {
        let note: String = note.chars().take(MAX_BUTTON_NOTE).collect();
        let params = json!({ "callback_query_id": query, "text": note });
        // It only removes a mark, and Telegram forgets old queries.
        let answered = self.api.call::<Value>("answerCallbackQuery", &params);
        answered.await.ok();
    }
}

/// An update: its number, its album, and what it means.
type TakenUpdate = (i64, Option<String>, Received);

/// Adds a message to the earlier messages of its album in a chat. Returns what does not belong to them.
fn join_album(
    earlier: &mut [TakenUpdate],
    album: Option<&str>,
    received: Received,
) -> Option<Received> {
    let Received::Message(message) = received else {
        return Some(received);
    };
    for (_, of, earlier) in earlier {
        if let Received::Message(first) = earlier
            && album.is_some()
            && of.as_deref() == album
            && first.sender == message.sender
        {
            receive::join(first, *message);
            return None;
        }
    }
    Some(Received::Message(message))
}

/// The result of the updates of a poll.
#[derive(Debug, Default)]
struct Batch {
    is_full: bool,
}

/// Returns why receiving ends.
fn receive_error(error: &ApiError) -> ChannelError {
    let cause = error.to_string();
    match error.code() {
        Some(401 | 403 | 404) => ChannelError::new(
            "unauthorized",
            format!("{cause}; check the bot's token and `api_base`"),
        ),
        Some(409) => ChannelError::new(
            "conflict",
            format!("{cause}; stop the other program that uses this bot, or remove its webhook"),
        ),
        Some(_) => ChannelError::new("refused", cause),
        None => ChannelError::new("connection", cause),
    }
}

impl Channel for TelegramChannel {
    fn capabilities(&self) -> ChannelCapabilities {
        ChannelCapabilities {
            speaks_frames: false,
            max_file: MAX_FILE,
            audio_formats: AUDIO_FORMATS,
        }
    }

    fn alive_interval(&self) -> Option<Duration> {
        Some(self.poll_timeout)
    }

    fn run(
        &self,
        inlet: Inlet,
        stop: CancellationToken,
    ) -> BoxFuture<'_, Result<(), ChannelError>> {
        async move {
            tokio::select! {
                biased;
                () = stop.cancelled() => Ok(()),
                received = self.receive(&inlet) => received,
            }
        }
        .boxed()
    }

    fn fetch<'a>(
        &'a self,
        media: &'a MediaRef,
        into: &'a mut MediaSink,
    ) -> BoxFuture<'a, Result<(), ChannelError>> {
        async move {
            let params = json!({ "file_id": media.reference });
            let file = self.api.call("getFile", &params).await;
            let file: File =
                file.map_err(|error| ChannelError::new("download", error.to_string()))?;
            let path = file.file_path.ok_or_else(|| {
                ChannelError::new("too_large", "Telegram does not offer the file")
            })?;
            self.api.download(&path, into).await
        }
        .boxed()
    }

    fn send<'a>(&'a self, outgoing: &'a Outgoing) -> BoxFuture<'a, Result<Receipt, DeliveryError>> {
        self.outbound.send(outgoing).boxed()
    }

    fn sends(&self, frame: &Frame) -> bool {
        // Telegram has the messages of people already, and shows calls only while they run.
        !matches!(frame, Frame::Said { .. } | Frame::Call { .. })
    }

    fn live(&self, chat: &ChatRef, frame: &Frame) {
        self.outbound.live(chat, frame);
    }
}
