//! The commands that reach the gateway through its control socket.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};
use tenterhook_protocol::error_chain;
use tenterhook_protocol::event::{DeliveryKind, MessagePart};

use crate::administration::{administer, described, read};
use crate::backup::write_backup;
use crate::control::ControlHandler;
use crate::conversations::deliver::{Content, Delivery, Recipient};
use crate::grants::{GIVES_RIGHTS, GrantOutcome};
use crate::owner_places::{owners_places, person_with_code};
use crate::reload::{ReloadRequester, Reloads};
use crate::running::{LinkedPage, Running};
use tenterhook_channel::chat::{ChannelId, ChatRef};
use tenterhook_channel::message::MediaKind;
use tenterhook_channel::publisher::{InboxUpdate, Publisher as _};

/// How long a request waits until a message is delivered. It is shorter than a request may take.
const DELIVERY_PATIENCE: Duration = Duration::from_secs(45);

/// How many chats a list has.
pub(crate) const MAX_CHATS: usize = 200;

/// Carries out commands.
pub(crate) struct Commands(pub(crate) Arc<Running>);

#[derive(Deserialize)]
struct OpenParams {
    user: String,
    /// Whether the link opens the inspector instead of the chats.
    #[serde(default)]
    inspect: bool,
    /// Whether the inspector may decide about approvals and pairings.
    #[serde(default)]
    admin: bool,
}

#[derive(Deserialize)]
struct GrantParams {
    method: String,
    params: Value,
}

#[derive(Deserialize)]
struct NameParams {
    name: String,
}

#[derive(Deserialize)]
struct BackupParams {
    /// An absolute path.
    file: PathBuf,
}

#[derive(Deserialize)]
struct SendParams {
    chat: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    file: Option<PathBuf>,
    /// Whether to wait until the chat's service has the message.
    #[serde(default)]
    wait: bool,
}

impl ControlHandler for Commands {
    fn handle<'a>(
        &'a self,
        method: &'a str,
        params: Value,
    ) -> BoxFuture<'a, Result<Value, String>> {
        Box::pin(self.run_command(method, params))
    }
}

impl Commands {
    async fn run_command(&self, method: &str, params: Value) -> Result<Value, String> {
        let running = &self.0;
        let params = if GIVES_RIGHTS.contains(&method) {
            match running
                .grants
                .check(running.tokens.is_set_up(), method, params)
                .await?
            {
                GrantOutcome::Granted(params) => params,
                GrantOutcome::Waiting => return Ok(json!({ "waiting": true })),
            }
        } else {
            params
        };
        match method {
            "grant.begin" => self.begin_grant(read(&params)?).await,
            "status" => Ok(running.status()),
            "stop" => {
                running.stop.cancel();
                Ok(json!({ "within_seconds": running.max_shutdown().as_secs() }))
            }
            "open" => self.open(&read(&params)?),
            "channels" => {
                let channels = running.channels.all();
                let statuses = channels.iter().map(|channel| channel.status());
                Ok(json!(statuses.collect::<Vec<_>>()))
            }
            "reload" => {
                let changes = Reloads(Arc::clone(running))
                    .reload(ReloadRequester::User)
                    .await?;
                Ok(json!(changes))
            }
            "channels.restart" => {
                let NameParams { name } = read(&params)?;
                running.restart_channel(&name).await
            }
            "chats" => {
                let chats = running.store.chats(MAX_CHATS).await;
                chats.map(|chats| json!(chats)).map_err(described)
            }
            "send" => self.send(read(&params)?).await,
            "backup" => self.backup(&read::<BackupParams>(&params)?.file).await,
            _ => administer(method, &params, &running.tokens, &running.pairings)
                .await
                .unwrap_or_else(|| Err(format!("the gateway has no command `{method}`"))),
        }
    }

    /// Writes a backup into a file that does not exist.
    async fn backup(&self, file: &Path) -> Result<Value, String> {
        if !file.is_absolute() {
            return Err(format!(
                "`{}` is a relative path; expected an absolute one",
                file.display()
            ));
        }
        let running = &self.0;
        let sessions = running.router.profile().sessions().await;
        let written = write_backup(&running.store, &running.state_folder, sessions, file);
        let summary = written.await.map_err(|error| error_chain(&error))?;
        Ok(json!(summary))
    }

    /// Begins to ask an owner whether a command may give rights.
    async fn begin_grant(&self, grant: GrantParams) -> Result<Value, String> {
        let running = &self.0;
        let GrantParams { method, params } = grant;
        let person = person_with_code(running, &params).await;
        if !running.tokens.is_set_up() {
            return Ok(json!({ "granted": true }));
        }
        let places = (
            owners_places(running).await,
            running.intake.approvals.clone(),
        );
        let stop = running.channel_stop.clone();
        let wanted = (method.as_str(), params, person);
        let (begun, asking) = running.grants.begin(wanted, places, stop)?;
        running.tasks.spawn(asking);
        Ok(begun)
    }

    /// Makes a link that signs in.
    fn open(&self, open: &OpenParams) -> Result<Value, String> {
        let page = match (open.inspect, open.admin) {
            (false, _) => LinkedPage::Chats,
            (true, false) => LinkedPage::Inspector,
            (true, true) => LinkedPage::DecidingInspector,
        };
        let url = self.0.login_url(&open.user, page)?;
        Ok(json!({ "url": url }))
    }

    /// Sends a message to a chat, after the hooks of `message_deliver`.
    async fn send(&self, send: SendParams) -> Result<Value, String> {
        let running = &self.0;
        let chat = find_chat(&send.chat)?;
        if running.outbox.capabilities(&chat).is_none() {
            return Err(format!("the gateway has no channel `{}`", chat.channel));
        }
        let mut content = Content::from(send.text);
        if let Some(file) = send.file {
            let part = MessagePart {
                kind: MediaKind::File.word().to_owned(),
                data: Some(file.display().to_string()),
                ..MessagePart::default()
            };
            let folder = file
                .parent()
                .map(PathBuf::from)
                .into_iter()
                .collect::<Vec<_>>();
            content
                .media
                .push(running.media.import_part(&part, &folder, &chat).await?);
        }
        if content.text.is_empty() && content.media.is_empty() {
            return Err("there is nothing to send: give a text or a file".to_owned());
        }
        let to = Recipient {
            chat: chat.clone(),
            user: String::new(),
            in_reply_to: Vec::new(),
        };
        let delivery = Delivery::new(running.events.dispatcher(), running.media.clone());
        let content = delivery.deliver(&to, DeliveryKind::Extra, content).await;
        let frames = content.into_frames(None, None);
        let mut ends = running.outbox.ends();
        let published = running
            .outbox
            .accept(&chat, frames, InboxUpdate::default())
            .await;
        let mut missing = published.map_err(described)?;
        if !send.wait {
            return Ok(json!({ "state": "accepted" }));
        }
        let delivered = async {
            while !missing.is_empty() {
                match ends.recv().await {
                    Ok(end) if end.chat == chat && missing.remove(&end.seq) => end.result?,
                    Ok(_) => {}
                    // So many messages were sent meanwhile that some are not known here.
                    Err(_) => return Ok(false),
                }
            }
            Ok::<_, String>(true)
        };
        let delivered = tokio::time::timeout(DELIVERY_PATIENCE, delivered).await;
        let is_delivered = delivered.unwrap_or(Ok(false)).map_err(|cause| {
            format!("the message to `{chat}` was accepted, but cannot be delivered: {cause}")
        })?;
        let state = if is_delivered {
            "delivered"
        } else {
            "accepted"
        };
        Ok(json!({ "state": state }))
    }
}

/// Reads `CHANNEL:CHAT` or `CHANNEL:CHAT#THREAD`, as lists of chats show it.
fn find_chat(name: &str) -> Result<ChatRef, String> {
    let (channel, chat) = name
        .split_once(':')
        .ok_or_else(|| format!("`{name}` is not a chat; expected `CHANNEL:CHAT`"))?;
    let (chat, thread) = match chat.rsplit_once('#') {
        Some((chat, thread)) => (chat, Some(thread.to_owned())),
        None => (chat, None),
    };
    Ok(ChatRef {
        channel: ChannelId::new(channel).map_err(described)?,
        chat: chat.to_owned(),
        thread,
    })
}

#[cfg(test)]
mod tests;
