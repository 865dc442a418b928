//! Access tokens: who may use the server, and for what.
//!
//! All tokens are kept in memory, so a check reads no disk and a revocation takes effect at once. The store has only
//! their digests.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use parking_lot::RwLock;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use tenterhook_protocol::event::SenderRole;
use thiserror::Error;
use tokio::sync::{Mutex, watch};
use tokio::time::sleep;

use crate::secret::HiddenSecret;
use crate::store::{DocumentKind, Store, StoreError};

/// What every token begins with, so that people and scanners recognise one.
pub const TOKEN_PREFIX: &str = "thg_";
/// The user of a token that is for no one else.
pub const DEFAULT_USER: &str = "owner";

const MAX_TOKENS: usize = 1000;
const MAX_USER: usize = 32;
const MAX_NAME: usize = 64;
/// How often the last use of a token is stored at most.
const USE_INTERVAL: Duration = Duration::from_mins(1);

/// The length of the part of a secret that is in a cookie. Both parts have more than 120 random bits.
const COOKIE_PART: usize = TOKEN_PREFIX.len() + 21;

/// How many revoked tokens are remembered until the program ends.
const MAX_REVOKED: usize = 256;

/// How often the clock is looked at while a token waits to expire. Clocks are set.
const CLOCK_INTERVAL: Duration = Duration::from_mins(1);

/// What a token allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AccessScope {
    /// Write messages and read the chats of its user.
    Chat,
    /// Answer questions whether a tool call may run.
    Approve,
    /// See what hooks and channels do. Only for tokens of [`DEFAULT_USER`].
    Inspect,
    /// Everything. Only for tokens of [`DEFAULT_USER`].
    Admin,
}

impl AccessScope {
    /// All scopes.
    pub const ALL: [Self; 4] = [Self::Chat, Self::Approve, Self::Inspect, Self::Admin];

    /// Returns everything that a token of a user can allow. What concerns all chats is for the owner alone.
    pub fn all_of(user: &str) -> Vec<Self> {
        let mut scopes = Self::ALL.to_vec();
        scopes.retain(|scope| !scope.is_for_owner_only() || user == DEFAULT_USER);
        scopes
    }

    fn is_for_owner_only(self) -> bool {
        matches!(self, Self::Inspect | Self::Admin)
    }

    /// Returns the word that names the scope.
    pub fn word(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Approve => "approve",
            Self::Inspect => "inspect",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for AccessScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// An access token, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// Identifies it: 16 hexadecimal digits.
    pub id: String,
    /// What it is for, in its owner's words. Several tokens may have the same name.
    pub name: String,
    /// Who it is for: the sender's id in channels of the kinds `web` and `http`.
    pub user: String,
    /// What it allows.
    pub scopes: Vec<AccessScope>,
    /// When it was created.
    pub created: Timestamp,
    /// When it expires. `None` for never.
    pub expires: Option<Timestamp>,
    /// When it was last used, to the minute.
    pub last_used: Option<Timestamp>,
    /// The port of the server whose page has it in a cookie. Only that page can use it. `None` for a token that programs
    /// send in a header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cookie_port: Option<u16>,
}

impl Token {
    /// Returns whether it allows something. The scope `admin` allows everything. Whatever a stored token says, only the
    /// owner's tokens allow more than the chats of their user.
    pub fn allows(&self, scope: AccessScope) -> bool {
        let is_possible = !scope.is_for_owner_only() || self.user == DEFAULT_USER;
        let is_granted = self.scopes.contains(&scope) || self.scopes.contains(&AccessScope::Admin);
        is_possible && is_granted
    }

    /// Returns what its user may do in chats: an owner can approve tool calls, others are members.
    pub fn role(&self) -> SenderRole {
        if self.allows(AccessScope::Approve) {
            SenderRole::Owner
        } else {
            SenderRole::Member
        }
    }

    fn is_owners(&self) -> bool {
        self.user == DEFAULT_USER && self.allows(AccessScope::Approve)
    }

    fn is_expired(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }
}

/// A token that was just created. Its secret is never shown again.
#[derive(Debug, Clone)]
pub struct NewToken {
    /// The token.
    pub token: Token,
    /// What its user sends.
    pub secret: HiddenSecret,
}

/// A token of a page that was just created. Its secret is in two parts, because browsers send a cookie to every port of
/// its host: the page keeps the other part in a place that only pages of its own port can read.
#[derive(Debug, Clone)]
pub struct NewCookie {
    /// The token.
    pub token: Token,
    /// The first part of the secret, for the cookie.
    pub cookie: HiddenSecret,
    /// The second part, which the page sends with its requests.
    pub key: HiddenSecret,
}

/// Why a token cannot be used, created or revoked.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TokenError {
    /// No token has this secret.
    #[error("unknown token")]
    Unknown,
    /// Its time is over.
    #[error("the token has expired")]
    Expired,
    /// It was revoked since the program started.
    #[error("the token was revoked")]
    Revoked,
    /// The name of a new token.
    #[error("a token cannot have this name; expected 1 to {MAX_NAME} characters in one line")]
    InvalidName,
    /// The user of a new token.
    #[error(
        "`{found}` cannot be the user of a token; expected 1 to {MAX_USER} lower-case letters, digits and `-`"
    )]
    InvalidUser {
        /// The user that was given.
        found: String,
    },
    /// A new token without a scope.
    #[error("a token needs a scope; available: `chat`, `approve`, `inspect`, `admin`")]
    NoScope,
    /// A scope of a new token that is for the owner alone.
    #[error(
        "the scope `{scope}` is for the user `{DEFAULT_USER}` alone; available for `{user}`: `chat`, `approve`"
    )]
    OwnerOnly {
        /// The scope.
        scope: AccessScope,
        /// The user of the token.
        user: String,
    },
    /// There is no room for another one.
    #[error("there are already {MAX_TOKENS} tokens; revoke some first")]
    TooMany,
    /// The operating system has no random bytes.
    #[error("the operating system provides no random bytes, so no secret can be made")]
    NoRandomBytes,
    /// The store cannot be read or written.
    #[error("the tokens cannot be stored: {0}")]
    Store(#[from] StoreError),
}

/// A record of the store.
#[derive(Serialize, Deserialize)]
struct StoredToken {
    #[serde(flatten)]
    token: Token,
    /// The digest of the secret, as base64.
    sha256: String,
    /// The digest of the part in the cookie.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cookie_sha256: Option<String>,
}

type TokenDigest = [u8; 32];

#[derive(Debug, Clone)]
struct KnownToken {
    token: Token,
    digest: TokenDigest,
    cookie: Option<TokenDigest>,
}

impl KnownToken {
    fn from_stored(value: serde_json::Value) -> Option<Self> {
        let stored: StoredToken = serde_json::from_value(value).ok()?;
        let read = |text: String| URL_SAFE_NO_PAD.decode(text).ok()?.try_into().ok();
        Some(Self {
            token: stored.token,
            digest: read(stored.sha256)?,
            cookie: match stored.cookie_sha256 {
                Some(text) => Some(read(text)?),
                None => None,
            },
        })
    }

    fn to_stored(&self) -> Result<serde_json::Value, StoreError> {
        let stored = StoredToken {
            token: self.token.clone(),
            sha256: URL_SAFE_NO_PAD.encode(self.digest),
            cookie_sha256: self.cookie.map(|digest| URL_SAFE_NO_PAD.encode(digest)),
        };
        serde_json::to_value(stored).map_err(|error| StoreError::Io {
            cause: error.to_string(),
        })
    }
}

/// The access tokens. Clones share their state.
#[derive(Debug, Clone)]
pub struct Tokens {
    store: Store,
    known: Arc<RwLock<BTreeMap<String, KnownToken>>>,
    unreadable: Arc<[String]>,
    /// Held while the store is changed, so that noting a use cannot bring back a revoked token.
    changing: Arc<Mutex<()>>,
    /// The digests of tokens that were revoked lately. A client that still has one is not guessing. Waiting tasks see
    /// each change.
    revoked: watch::Sender<VecDeque<TokenDigest>>,
    is_set_up: Arc<AtomicBool>,
}

/// The id of the document that says that an owner was there once.
const OWNER_CAME: &str = "owner";

impl Tokens {
    /// Reads the tokens. A record that cannot be read admits no one, and does not affect other tokens.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be read.
    pub async fn open(store: Store) -> Result<Self, TokenError> {
        let mut known = BTreeMap::new();
        let mut unreadable = Vec::new();
        for (id, value) in store.documents(DocumentKind::Token).await? {
            match KnownToken::from_stored(value) {
                Some(token) if token.token.id == id => drop(known.insert(id, token)),
                _ => unreadable.push(id),
            }
        }
        let noted = store.document(DocumentKind::Setup, OWNER_CAME).await?;
        let tokens = Self {
            store,
            is_set_up: Arc::new(AtomicBool::new(noted.is_some())),
            known: Arc::new(RwLock::new(known)),
            unreadable: unreadable.into(),
            changing: Arc::default(),
            revoked: watch::Sender::default(),
        };
        let is_owners = |known: &KnownToken| known.token.is_owners();
        let has_owner = tokens.known.read().values().any(is_owners);
        if has_owner {
            tokens.note_owner().await?;
        }
        Ok(tokens)
    }

    /// Returns whether an owner was there once: signed in, got a token, or wrote a message. From then on, only an owner and
    /// the passphrase give rights.
    pub fn is_set_up(&self) -> bool {
        self.is_set_up.load(Ordering::Acquire)
    }

    /// Notes that an owner was there.
    ///
    /// # Errors
    ///
    /// Fails if that cannot be stored. It counts until the program ends nevertheless.
    pub async fn note_owner(&self) -> Result<(), TokenError> {
        if self.is_set_up.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let value = Some(serde_json::Value::Bool(true));
        let stored = self
            .store
            .set_document(DocumentKind::Setup, OWNER_CAME, value);
        Ok(stored.await?)
    }

    /// Returns the ids of records that could not be read. [`Tokens::revoke`] removes them.
    pub fn unreadable(&self) -> &[String] {
        &self.unreadable
    }

    /// Creates a token. `user` is [`DEFAULT_USER`], or 1 to 32 lower-case letters, digits and `-`.
    ///
    /// # Errors
    ///
    /// Fails if an argument is invalid, if there are too many tokens, or if the token cannot be stored.
    pub async fn create(
        &self,
        name: &str,
        user: &str,
        scopes: &[AccessScope],
        expires: Option<Timestamp>,
    ) -> Result<NewToken, TokenError> {
        self.add(name, user, scopes, (expires, None)).await
    }

    /// Creates a token for the cookie of the page that is served on a port.
    ///
    /// # Errors
    ///
    /// Fails like [`Tokens::create`].
    pub async fn create_for_cookie(
        &self,
        name: &str,
        (user, scopes): (&str, &[AccessScope]),
        port: u16,
        expires: Timestamp,
    ) -> Result<NewCookie, TokenError> {
        let new = self.add(name, user, scopes, (Some(expires), Some(port)));
        let NewToken { token, secret } = new.await?;
        let (cookie, key) = parts_of(secret.expose());
        Ok(NewCookie {
            token,
            cookie: HiddenSecret::new(cookie),
            key: HiddenSecret::new(key),
        })
    }

    async fn add(
        &self,
        name: &str,
        user: &str,
        scopes: &[AccessScope],
        (expires, cookie_port): (Option<Timestamp>, Option<u16>),
    ) -> Result<NewToken, TokenError> {
        let name = name.trim();
        if name.is_empty() || name.chars().count() > MAX_NAME || name.contains(char::is_control) {
            return Err(TokenError::InvalidName);
        }
        check_user(user)?;
        let mut scopes = scopes.to_vec();
        scopes.sort_unstable();
        scopes.dedup();
        if scopes.is_empty() {
            return Err(TokenError::NoScope);
        }
        if let Some(scope) = scopes.iter().find(|scope| scope.is_for_owner_only())
            && user != DEFAULT_USER
        {
            return Err(TokenError::OwnerOnly {
                scope: *scope,
                user: user.to_owned(),
            });
        }
        let mut id = [0; 8];
        let mut bytes = [0; 32];
        getrandom::fill(&mut id)
            .and_then(|()| getrandom::fill(&mut bytes))
            .map_err(|_| TokenError::NoRandomBytes)?;
        let secret = format!("{TOKEN_PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes));
        let token = Token {
            id: format!("{:016x}", u64::from_be_bytes(id)),
            name: name.to_owned(),
            user: user.to_owned(),
            scopes,
            created: Timestamp::now(),
            expires,
            last_used: None,
            cookie_port,
        };
        let known = KnownToken {
            token: token.clone(),
            digest: Sha256::digest(&secret).into(),
            cookie: cookie_port.map(|_| Sha256::digest(parts_of(&secret).0).into()),
        };
        let _changing = self.changing.lock().await;
        self.remove_expired(token.created).await?;
        if self.known.read().len() >= MAX_TOKENS {
            return Err(TokenError::TooMany);
        }
        if token.is_owners() {
            self.note_owner().await?;
        }
        self.write(&known).await?;
        self.known.write().insert(token.id.clone(), known);
        Ok(NewToken {
            token,
            secret: HiddenSecret::new(secret),
        })
    }

    /// Returns the token that has a secret. Stores the time of this use in the background, at most once a minute.
    ///
    /// # Errors
    ///
    /// Fails if no token has the secret, or if it has expired or was revoked.
    pub fn check(&self, secret: &str) -> Result<Token, TokenError> {
        self.check_at(secret, Timestamp::now())
    }

    /// Returns the token with this part of its secret in a cookie. It is not known then who sent the cookie: a program on
    /// another port may have it.
    ///
    /// # Errors
    ///
    /// Fails like [`Tokens::check`].
    pub fn check_cookie(&self, cookie: &str) -> Result<Token, TokenError> {
        let digest: TokenDigest = Sha256::digest(cookie).into();
        let found = self.find(&digest, |known| known.cookie.as_ref());
        self.accept(found, &digest, Timestamp::now())
    }

    fn check_at(&self, secret: &str, now: Timestamp) -> Result<Token, TokenError> {
        let digest: TokenDigest = Sha256::digest(secret).into();
        let found = self.find(&digest, |known| Some(&known.digest));
        self.accept(found, &digest, now)
    }

    fn accept(
        &self,
        found: Option<Token>,
        digest: &TokenDigest,
        now: Timestamp,
    ) -> Result<Token, TokenError> {
        let found = found.ok_or_else(|| self.absence_of(digest))?;
        if found.is_expired(now) {
            return Err(TokenError::Expired);
        }
        let is_noted = found
            .last_used
            .is_some_and(|used| now.duration_since(used).unsigned_abs() < USE_INTERVAL);
        if !is_noted {
            self.note_use(&found.id, now);
        }
        Ok(found)
    }

    /// Waits until the token with an id is revoked or expires. Connections that were opened with it then end.
    pub async fn ended(&self, id: &str) {
        let mut revoked = self.revoked.subscribe();
        loop {
            let found = self.known.read().get(id).map(|known| known.token.expires);
            let Some(expires) = found else {
                return;
            };
            let left = expires.map_or(CLOCK_INTERVAL, |expires| {
                let left = expires.duration_since(Timestamp::now());
                Duration::try_from(left).unwrap_or_default()
            });
            if left.is_zero() {
                return;
            }
            tokio::select! {
                changed = revoked.changed() => if changed.is_err() {
                    return;
                },
                () = sleep(left.min(CLOCK_INTERVAL)) => {}
            }
        }
    }

    /// Compares the secret with every token, so that the time tells nothing about which one is similar.
    fn find(
        &self,
        digest: &TokenDigest,
        digest_of: impl Fn(&KnownToken) -> Option<&TokenDigest>,
    ) -> Option<Token> {
        let known = self.known.read();
        let mut found = None;
        for known in known.values() {
            if digest_of(known).is_some_and(|own| own.ct_eq(digest).into()) {
                found = Some(&known.token);
            }
        }
        found.cloned()
    }

    fn absence_of(&self, digest: &TokenDigest) -> TokenError {
        let revoked = self.revoked.borrow();
        let mut equal = revoked.iter().map(|known| bool::from(known.ct_eq(digest)));
        if equal.any(|is_equal| is_equal) {
            TokenError::Revoked
        } else {
            TokenError::Unknown
        }
    }

    /// Notes a use in memory at once, and in the store if no other change is being written. A use that is not stored
    /// is not worth an error.
    fn note_use(&self, id: &str, now: Timestamp) {
        if let Some(known) = self.known.write().get_mut(id) {
            known.token.last_used = Some(now);
        }
        let (Ok(changing), Ok(runtime)) = (
            Arc::clone(&self.changing).try_lock_owned(),
            tokio::runtime::Handle::try_current(),
        ) else {
            return;
        };
        let (tokens, id) = (self.clone(), id.to_owned());
        // The lock lets at most one such task run.
        runtime.spawn(async move {
            let _changing = changing;
            let known = tokens.known.read().get(&id).cloned();
            if let Some(known) = known {
                drop(tokens.write(&known).await);
            }
        });
    }

    /// Returns the role that a user has in chats by the tokens in force: the role of the token that allows most. `None`
    /// if no token of the user allows writing messages.
    pub fn role_of(&self, user: &str) -> Option<SenderRole> {
        let now = Timestamp::now();
        let known = self.known.read();
        let tokens = known.values().map(|known| &known.token);
        let valid = tokens.filter(|token| {
            token.user == user && !token.is_expired(now) && token.allows(AccessScope::Chat)
        });
        valid
            .map(Token::role)
            .max_by_key(|role| *role == SenderRole::Owner)
    }

    /// Returns the tokens, the oldest first.
    pub fn list(&self) -> Vec<Token> {
        let known = self.known.read();
        let mut tokens: Vec<_> = known.values().map(|known| known.token.clone()).collect();
        tokens.sort_by(|a, b| (a.created, &a.id).cmp(&(b.created, &b.id)));
        tokens
    }

    /// Revokes the token with an id, or all tokens with a name. Returns the revoked ones. They are refused from now
    /// on, also if the store cannot be written.
    ///
    /// # Errors
    ///
    /// Fails if there is no such token, or if the store cannot be written. In that case the tokens would come back
    /// with the next start, so try again.
    pub async fn revoke(&self, id_or_name: &str) -> Result<Vec<Token>, TokenError> {
        let _changing = self.changing.lock().await;
        if self.unreadable.iter().any(|id| id == id_or_name) {
            self.remove(id_or_name).await?;
            return Ok(Vec::new());
        }
        let is_meant = |token: &Token| token.id == id_or_name || token.name == id_or_name;
        let mut revoked = self.list();
        revoked.retain(is_meant);
        if revoked.is_empty() {
            return Err(TokenError::Unknown);
        }
        let mut digests = Vec::new();
        self.known.write().retain(|_, known| {
            let stays = !is_meant(&known.token);
            if !stays {
                digests.push(known.digest);
                digests.extend(known.cookie);
            }
            stays
        });
        self.revoked.send_modify(|all| {
            all.extend(digests);
            let surplus = all.len().saturating_sub(MAX_REVOKED);
            all.drain(..surplus);
        });
        let mut written = Ok(());
        for token in &revoked {
            written = self.remove(&token.id).await.and(written);
        }
        written.map(|()| revoked)
    }

    async fn remove_expired(&self, now: Timestamp) -> Result<(), TokenError> {
        let mut expired = self.list();
        expired.retain(|token| token.is_expired(now));
        for token in expired {
            self.remove(&token.id).await?;
            self.known.write().remove(&token.id);
        }
        Ok(())
    }

    async fn write(&self, known: &KnownToken) -> Result<(), TokenError> {
        let value = known.to_stored()?;
        Ok(self
            .store
            .set_document(DocumentKind::Token, &known.token.id, Some(value))
            .await?)
    }

    async fn remove(&self, id: &str) -> Result<(), TokenError> {
        Ok(self
            .store
            .set_document(DocumentKind::Token, id, None)
            .await?)
    }
}

/// Returns the part of a secret for a cookie, and the rest.
fn parts_of(secret: &str) -> (String, String) {
    let cookie = secret.chars().take(COOKIE_PART).collect();
    (cookie, secret.chars().skip(COOKIE_PART).collect())
}

/// Checks the name of a user: 1 to 32 lower-case letters, digits and `-`.
///
/// # Errors
///
/// Fails for any other name.
pub fn check_user(user: &str) -> Result<(), TokenError> {
    let is_valid = (1..=MAX_USER).contains(&user.len())
        && user
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    if is_valid {
        Ok(())
    } else {
        Err(TokenError::InvalidUser {
            found: crate::labels::clean_label(user),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn open(folder: &tempfile::TempDir) -> Tokens {
        let store = Store::open(folder.path()).unwrap();
        Tokens::open(store).await.unwrap()
    }

    fn after(seconds: i64) -> Timestamp {
        Timestamp::from_second(Timestamp::now().as_second() + seconds).unwrap()
    }

    #[tokio::test]
    async fn an_expired_token_is_refused_and_makes_room() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = open(&folder).await;
        let expires = Some(after(100));
        let made = tokens
            .create("a", "b", &[AccessScope::Chat], expires)
            .await
            .unwrap();
        let secret = made.secret.expose();
        assert!(tokens.check_at(secret, after(90)).is_ok());
        assert_eq!(
            tokens.check_at(secret, after(101)),
            Err(TokenError::Expired)
        );
        let past = Some(after(-1));
        tokens
            .create("old", "b", &[AccessScope::Chat], past)
            .await
            .unwrap();
        tokens
            .create("new", "b", &[AccessScope::Chat], None)
            .await
            .unwrap();
        let names: Vec<_> = tokens.list().into_iter().map(|token| token.name).collect();
        assert_eq!(names.len(), 2, "{names:?}");
        assert!(!names.contains(&"old".to_owned()));
    }

    #[tokio::test]
    async fn who_waits_for_the_end_of_a_token_learns_of_its_revocation_and_expiry() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = open(&folder).await;
        let create = async |name: &str, expires| {
            let scopes = [AccessScope::Chat];
            let made = tokens.create(name, "ann", &scopes, expires).await;
            made.unwrap().token.id
        };
        let (kept, revoked) = (create("a", None).await, create("b", None).await);
        let soon = Timestamp::now() + jiff::SignedDuration::from_millis(50);
        tokens.ended(&create("c", Some(soon)).await).await;
        tokens.ended("unknown").await;
        let waiting = tokens.clone();
        let id = revoked.clone();
        let waiting = tokio::spawn(async move { waiting.ended(&id).await });
        tokens.revoke(&revoked).await.unwrap();
        waiting.await.unwrap();
        let still = tokio::time::timeout(Duration::from_millis(20), tokens.ended(&kept)).await;
        assert!(still.is_err());
    }

    #[tokio::test]
    async fn the_last_use_is_stored_once_a_minute() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = open(&folder).await;
        let made = tokens
            .create("a", "b", &[AccessScope::Chat], None)
            .await
            .unwrap();
        let (first, soon, later) = (after(0), after(59), after(61));
        for (now, noted) in [(first, first), (soon, first), (later, later)] {
            tokens.check_at(made.secret.expose(), now).unwrap();
            assert_eq!(tokens.list()[0].last_used, Some(noted));
            // The lock is free once the use is stored.
            drop(tokens.changing.lock().await);
            let document = tokens
                .store
                .document(DocumentKind::Token, &made.token.id)
                .await;
            let stored = KnownToken::from_stored(document.unwrap().unwrap()).unwrap();
            assert_eq!(stored.token.last_used, Some(noted));
        }
    }
}
