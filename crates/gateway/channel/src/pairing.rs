//! Admits unknown senders by a code that they show to the owner.
//!
//! A sender whom no list admits gets one message with a code. The owner approves the code on the host, never by chat.
//! Each channel has one document in the store. A document that cannot be read is an error, and admits no one.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tenterhook_protocol::event::SenderRole;
use thiserror::Error;
use tokio::sync::Mutex;

use crate::chat::{ChannelId, Sender};
use crate::labels::clean_label;
use crate::rate::{Lockout, TooManyAttempts};
use crate::store::{DocumentKind, Store, StoreError};

/// How long a code can be approved, and the time after which its sender may get another one.
const LIFETIME: Duration = Duration::from_hours(1);
/// The maximum number of codes of a channel that wait for the owner.
const MAX_PENDING: usize = 3;
/// The maximum number of senders of a channel that were admitted by a code.
const MAX_ADMITTED: usize = 1000;
/// Crockford's base 32: no letters that look like digits.
const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// A request of a sender to be admitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairingRequest {
    /// The channel's id of the sender.
    pub sender: String,
    /// The name that the sender chose, cleaned. Anyone can choose any name.
    pub name: Option<String>,
    /// The code that the sender was given: 8 characters. `None` if the owner has denied the request; the sender
    /// then gets no other code until it expires.
    pub code: Option<String>,
    /// When it expires.
    pub expires: Timestamp,
    /// Who has denied it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
}

/// A sender whom the owner has admitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairedSender {
    /// The channel's id of the sender.
    pub sender: String,
    /// The name that the sender had when asking, cleaned.
    pub name: Option<String>,
    /// What the sender may do in direct chats.
    pub role: SenderRole,
    /// Since when.
    pub since: Timestamp,
    /// Who has admitted the sender. `None` if an earlier version has stored it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
}

/// The pairings of a channel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelPairings {
    /// The requests that have not expired.
    pub requests: Vec<PairingRequest>,
    /// The senders whom the owner has admitted.
    pub admitted: Vec<PairedSender>,
}

/// Why a pairing is impossible.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PairingError {
    /// No request of the channel has the code.
    #[error(
        "no request in `{channel}` has this code; `tenterhook gateway pair list` shows those that wait"
    )]
    UnknownCode {
        /// The channel.
        channel: ChannelId,
    },
    /// The sender was not admitted by a code.
    #[error("`{sender}` is not paired in `{channel}`; `tenterhook gateway pair list` shows who is")]
    UnknownSender {
        /// The channel.
        channel: ChannelId,
        /// The sender, cleaned.
        sender: String,
    },
    /// Too many wrong codes.
    #[error("too many wrong codes for `{channel}`: {cause}")]
    Locked {
        /// The channel.
        channel: ChannelId,
        /// How long to wait.
        cause: TooManyAttempts,
    },
    /// There is no room.
    #[error("{MAX_ADMITTED} senders are paired in `{channel}` already; revoke some first")]
    TooMany {
        /// The channel.
        channel: ChannelId,
    },
    /// The document cannot be understood.
    #[error("the pairings of `{channel}` cannot be read, so they admit no one: {cause}")]
    Broken {
        /// The channel.
        channel: String,
        /// What is wrong.
        cause: String,
    },
    /// The operating system has no random bytes.
    #[error("the operating system provides no random bytes, so no code can be made")]
    NoRandomBytes,
    /// The store cannot be read or written.
    #[error("the pairings cannot be stored: {0}")]
    Store(#[from] StoreError),
}

/// The pairings of all channels. Clones share their state. A process has one for its store.
#[derive(Debug, Clone)]
pub struct Pairings {
    store: Store,
    lockout: Lockout,
    /// Held from reading a document until it is written again.
    changing: Arc<Mutex<()>>,
}

impl Pairings {
    /// Creates the pairings of a store.
    pub fn new(store: Store) -> Self {
        Self {
            store,
            lockout: Lockout::default(),
            changing: Arc::default(),
        }
    }

    /// Returns the role of a sender whom the owner has admitted.
    ///
    /// # Errors
    ///
    /// Fails if the pairings cannot be read. The sender must then not be admitted, and gets no code.
    pub async fn role(
        &self,
        channel: &ChannelId,
        sender: &str,
    ) -> Result<Option<SenderRole>, PairingError> {
        let pairings = self.read(channel).await?;
        let mut admitted = pairings.admitted.iter();
        Ok(admitted
            .find(|known| known.sender == sender)
            .map(|known| known.role))
    }

    /// Records that a sender wants to be admitted. Returns the code to send, or `None` for silence: the sender has got
    /// a code in the last hour, or 3 others wait already.
    ///
    /// # Errors
    ///
    /// Fails if the request cannot be recorded. The sender must then get no reply.
    pub async fn request(
        &self,
        channel: &ChannelId,
        sender: &Sender,
    ) -> Result<Option<String>, PairingError> {
        self.request_at(channel, sender, Timestamp::now()).await
    }

    async fn request_at(
        &self,
        channel: &ChannelId,
        sender: &Sender,
        now: Timestamp,
    ) -> Result<Option<String>, PairingError> {
        let _changing = self.changing.lock().await;
        let mut pairings = self.read(channel).await?;
        let code = pairings.add_request(sender, new_code()?, now);
        if code.is_some() {
            self.write(channel, &pairings).await?;
        }
        Ok(code)
    }

    /// Returns the request that waits with a code, and changes nothing.
    pub async fn waiting(&self, channel: &ChannelId, code: &str) -> Option<PairingRequest> {
        let mut pairings = self.read(channel).await.ok()?;
        pairings.forget_expired(Timestamp::now());
        let code = Some(folded(code));
        let mut requests = pairings.requests.into_iter();
        requests.find(|request| request.code == code)
    }

    /// Admits the sender who was given a code. `by` is who decides, for people who ask later.
    ///
    /// # Errors
    ///
    /// Fails if the code is wrong or has expired, after 5 wrong codes, or if the store cannot be used.
    pub async fn approve(
        &self,
        channel: &ChannelId,
        code: &str,
        role: SenderRole,
        by: &str,
    ) -> Result<PairedSender, PairingError> {
        let decision = (role, by);
        self.approve_at(channel, code, decision, Timestamp::now())
            .await
    }

    async fn approve_at(
        &self,
        channel: &ChannelId,
        code: &str,
        (role, by): (SenderRole, &str),
        now: Timestamp,
    ) -> Result<PairedSender, PairingError> {
        let _changing = self.changing.lock().await;
        let mut pairings = self.read(channel).await?;
        let request = self.take_request(channel, &mut pairings, code, now)?;
        pairings
            .admitted
            .retain(|known| known.sender != request.sender);
        if pairings.admitted.len() >= MAX_ADMITTED {
            let channel = channel.clone();
            return Err(PairingError::TooMany { channel });
        }
        let admitted = PairedSender {
            sender: request.sender,
            name: request.name,
            role,
            since: now,
            decided_by: Some(clean_label(by)),
        };
        pairings.admitted.push(admitted.clone());
        self.write(channel, &pairings).await?;
        Ok(admitted)
    }

    /// Denies the request with a code. Its sender gets no other code in this hour. `by` is who decides.
    ///
    /// # Errors
    ///
    /// Fails if the code is wrong or has expired, after 5 wrong codes, or if the store cannot be used.
    pub async fn deny(
        &self,
        channel: &ChannelId,
        code: &str,
        by: &str,
    ) -> Result<PairingRequest, PairingError> {
        let _changing = self.changing.lock().await;
        let mut pairings = self.read(channel).await?;
        let mut request = self.take_request(channel, &mut pairings, code, Timestamp::now())?;
        request.code = None;
        request.decided_by = Some(clean_label(by));
        pairings.requests.push(request.clone());
        self.write(channel, &pairings).await?;
        Ok(request)
    }

    /// Removes a sender whom the owner has admitted.
    ///
    /// # Errors
    ///
    /// Fails if the sender was not admitted, or if the store cannot be used.
    pub async fn revoke(
        &self,
        channel: &ChannelId,
        sender: &str,
    ) -> Result<PairedSender, PairingError> {
        let _changing = self.changing.lock().await;
        let mut pairings = self.read(channel).await?;
        let is_meant = |known: &PairedSender| known.sender == sender;
        let Some(at) = pairings.admitted.iter().position(is_meant) else {
            return Err(PairingError::UnknownSender {
                channel: channel.clone(),
                sender: clean_label(sender),
            });
        };
        let revoked = pairings.admitted.remove(at);
        self.write(channel, &pairings).await?;
        Ok(revoked)
    }

    /// Returns the pairings by channel. One that cannot be read is an error of its own.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be read.
    pub async fn list(
        &self,
    ) -> Result<Vec<(String, Result<ChannelPairings, PairingError>)>, PairingError> {
        let documents = self.store.documents(DocumentKind::Pairing).await?;
        let now = Timestamp::now();
        let parsed = documents.into_iter().map(|(channel, value)| {
            let pairings = ChannelPairings::parse(&channel, value);
            let current = pairings.map(|mut pairings| {
                pairings.forget_expired(now);
                pairings
            });
            (channel, current)
        });
        Ok(parsed.collect())
    }

    /// Removes and returns the request that waits with a code. Counts a wrong code.
    fn take_request(
        &self,
        channel: &ChannelId,
        pairings: &mut ChannelPairings,
        code: &str,
        now: Timestamp,
    ) -> Result<PairingRequest, PairingError> {
        self.lockout
            .check(channel)
            .map_err(|cause| PairingError::Locked {
                channel: channel.clone(),
                cause,
            })?;
        pairings.forget_expired(now);
        let code = folded(code);
        let mut requests = pairings.requests.iter();
        let Some(at) = requests.position(|request| request.code.as_ref() == Some(&code)) else {
            self.lockout.failed(channel);
            let channel = channel.clone();
            return Err(PairingError::UnknownCode { channel });
        };
        self.lockout.succeeded(channel);
        Ok(pairings.requests.remove(at))
    }

    async fn read(&self, channel: &ChannelId) -> Result<ChannelPairings, PairingError> {
        let document = self
            .store
            .document(DocumentKind::Pairing, channel.as_str())
            .await?;
        match document {
            Some(value) => ChannelPairings::parse(channel.as_str(), value),
            None => Ok(ChannelPairings::default()),
        }
    }

    async fn write(
        &self,
        channel: &ChannelId,
        pairings: &ChannelPairings,
    ) -> Result<(), PairingError> {
        let value = serde_json::to_value(pairings).map_err(|error| StoreError::Io {
            cause: error.to_string(),
        })?;
        Ok(self
            .store
            .set_document(DocumentKind::Pairing, channel.as_str(), Some(value))
            .await?)
    }
}

impl ChannelPairings {
    fn parse(channel: &str, value: serde_json::Value) -> Result<Self, PairingError> {
        serde_json::from_value(value).map_err(|error| PairingError::Broken {
            channel: channel.to_owned(),
            cause: error.to_string(),
        })
    }

    fn forget_expired(&mut self, now: Timestamp) {
        self.requests.retain(|request| request.expires > now);
    }

    fn add_request(&mut self, sender: &Sender, code: String, now: Timestamp) -> Option<String> {
        self.forget_expired(now);
        let has_asked = |request: &PairingRequest| request.sender == sender.id;
        let waiting = self.requests.iter().filter(|known| known.code.is_some());
        if self.requests.iter().any(has_asked) || waiting.count() >= MAX_PENDING {
            return None;
        }
        self.requests.push(PairingRequest {
            sender: sender.id.clone(),
            name: sender.name.as_deref().map(clean_label),
            code: Some(code.clone()),
            expires: now.saturating_add(LIFETIME).ok()?,
            decided_by: None,
        });
        Some(code)
    }
}

/// Returns 8 random characters: 40 bits.
fn new_code() -> Result<String, PairingError> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|_| PairingError::NoRandomBytes)?;
    let letter = |byte: u8| {
        ALPHABET
            .get(usize::from(byte % 32))
            .copied()
            .map(char::from)
    };
    Ok(bytes.into_iter().filter_map(letter).collect())
}

/// Returns a code as it was made, although people type it in lower case, in groups, and with letters that look like
/// digits.
fn folded(code: &str) -> String {
    let letters = code.chars().filter(|c| !matches!(c, '-' | ' '));
    let fold = |c: char| match c.to_ascii_uppercase() {
        'O' => '0',
        'I' | 'L' => '1',
        c => c,
    };
    letters.map(fold).take(16).collect()
}

#[cfg(test)]
mod tests {
    use tenterhook_protocol::event::SenderRole::Member;

    use super::*;

    fn tg() -> ChannelId {
        ChannelId::new("tg").unwrap()
    }

    fn sender(id: &str) -> Sender {
        Sender {
            id: id.to_owned(),
            name: Some("An\nna".to_owned()),
            is_bot: false,
        }
    }

    fn at(minutes: i64) -> Timestamp {
        Timestamp::from_second(1_600_000_000 + 60 * minutes).unwrap()
    }

    fn open(folder: &tempfile::TempDir) -> Pairings {
        Pairings::new(Store::open(folder.path()).unwrap())
    }

    #[test]
    fn a_code_has_8_characters_that_are_easy_to_read_aloud() {
        let codes: Vec<_> = (0..100).map(|_| new_code().unwrap()).collect();
        for code in &codes {
            assert_eq!(code.len(), 8);
            assert!(code.bytes().all(|byte| ALPHABET.contains(&byte)), "{code}");
            assert_eq!(&folded(code), code);
        }
        let mut different = codes.clone();
        different.sort();
        different.dedup();
        assert_eq!(different.len(), codes.len());
        assert_eq!(folded("o1il-abcd"), "0111ABCD");
    }

    // G73
    #[test]
    fn a_channel_has_3_codes_at_once_and_a_sender_one_an_hour() {
        let mut pairings = ChannelPairings::default();
        let mut ask = |id: &str, code: &str, minute| {
            pairings.add_request(&sender(id), code.to_owned(), at(minute))
        };
        assert_eq!(ask("1", "A", 0).as_deref(), Some("A"));
        assert_eq!(ask("1", "B", 1), None, "an hour has not passed");
        assert_eq!(ask("2", "C", 10).as_deref(), Some("C"));
        assert_eq!(ask("3", "D", 20).as_deref(), Some("D"));
        assert_eq!(ask("4", "E", 30), None, "the fourth");
        assert_eq!(
            ask("4", "F", 60).as_deref(),
            Some("F"),
            "the first has expired"
        );
        assert_eq!(ask("1", "G", 61), None, "others wait now");
        assert_eq!(ask("1", "H", 70).as_deref(), Some("H"));
        assert_eq!(pairings.requests.len(), 3);
        assert_eq!(pairings.requests[0].name.as_deref(), Some("An na"));
    }

    // G73
    #[tokio::test]
    async fn an_expired_or_denied_code_admits_no_one() {
        let folder = tempfile::tempdir().unwrap();
        let pairings = open(&folder);
        let old = pairings
            .request_at(&tg(), &sender("1"), at(0))
            .await
            .unwrap()
            .unwrap();
        assert!(
            pairings
                .approve_at(&tg(), &old, (Member, "ann"), at(60))
                .await
                .is_err()
        );
        let code = pairings
            .request(&tg(), &sender("2"))
            .await
            .unwrap()
            .unwrap();
        pairings.deny(&tg(), &code, "ann").await.unwrap();
        assert!(pairings.approve(&tg(), &code, Member, "ann").await.is_err());
        assert_eq!(
            pairings.request(&tg(), &sender("2")).await,
            Ok(None),
            "not in this hour"
        );
        for id in ["3", "4", "5"] {
            assert!(
                pairings
                    .request(&tg(), &sender(id))
                    .await
                    .unwrap()
                    .is_some()
            );
        }
    }
}
