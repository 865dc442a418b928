//! One-time codes with which a browser logs in. `tenterhook gateway open` prints an address with one.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::Mutex;
use subtle::ConstantTimeEq as _;
use tokio::time::Instant;

use tenterhook_channel::token::AccessScope;

/// How long a code can be used.
const CODE_LIFE: Duration = Duration::from_mins(1);

/// The maximum number of codes that wait. A new one replaces the oldest.
const MAX_CODES: usize = 16;

/// Whom a code is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginGrant {
    /// The user.
    pub user: String,
    /// What the user's page may do.
    pub scopes: Vec<AccessScope>,
}

struct PendingCode {
    code: String,
    grant: LoginGrant,
    expires: Instant,
}

/// The codes that wait to be used. They are kept in memory only. Clones share them.
#[derive(Clone)]
pub struct Logins {
    pending: Arc<Mutex<Vec<PendingCode>>>,
    life: Duration,
}

impl Default for Logins {
    fn default() -> Self {
        Self::with_life(CODE_LIFE)
    }
}

impl std::fmt::Debug for Logins {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Logins").finish_non_exhaustive()
    }
}

/// The error of a system that has no random numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("cannot create a login code: the system has no random numbers")]
pub struct NoRandomness;

impl Logins {
    /// Creates an empty list whose codes can be used this long.
    pub(crate) fn with_life(life: Duration) -> Self {
        Self {
            pending: Arc::default(),
            life,
        }
    }

    /// Creates a code that can be used once, by default for 60 seconds.
    ///
    /// # Errors
    ///
    /// Fails if the system has no random numbers.
    pub fn code(&self, user: &str, scopes: Vec<AccessScope>) -> Result<String, NoRandomness> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|_| NoRandomness)?;
        let code = URL_SAFE_NO_PAD.encode(bytes);
        let now = Instant::now();
        let mut pending = self.pending.lock();
        pending.retain(|one| one.expires > now);
        if pending.len() >= MAX_CODES {
            pending.remove(0);
        }
        pending.push(PendingCode {
            code: code.clone(),
            grant: LoginGrant {
                user: user.to_owned(),
                scopes,
            },
            expires: now + self.life,
        });
        Ok(code)
    }

    /// Returns the user of a code that can be used, without using it up.
    pub fn user_of(&self, code: &str) -> Option<String> {
        let now = Instant::now();
        let pending = self.pending.lock();
        let is_it = |one: &&PendingCode| {
            one.expires > now && bool::from(one.code.as_bytes().ct_eq(code.as_bytes()))
        };
        pending.iter().find(is_it).map(|one| one.grant.user.clone())
    }

    /// Uses a code up. Returns whom it is for, or `None` if it is unknown, used or expired.
    pub fn redeem(&self, code: &str) -> Option<LoginGrant> {
        let now = Instant::now();
        let mut pending = self.pending.lock();
        pending.retain(|one| one.expires > now);
        let is_it = |one: &PendingCode| bool::from(one.code.as_bytes().ct_eq(code.as_bytes()));
        let place = pending.iter().position(is_it)?;
        Some(pending.remove(place).grant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_code_can_be_used_once_within_a_minute() {
        let logins = Logins::default();
        let first = logins.code("owner", vec![AccessScope::Chat]).unwrap();
        let second = logins.code("ada", Vec::new()).unwrap();
        assert_eq!(logins.redeem("guess"), None);
        assert_eq!(logins.redeem(""), None);
        assert_eq!(logins.redeem(&first).unwrap().user, "owner");
        assert_eq!(logins.redeem(&first), None);

        tokio::time::advance(CODE_LIFE).await;
        assert_eq!(logins.redeem(&second), None);
    }

    #[tokio::test]
    async fn the_oldest_of_too_many_codes_is_dropped() {
        let logins = Logins::default();
        let first = logins.code("owner", Vec::new()).unwrap();
        let codes: Vec<String> = (0..MAX_CODES)
            .map(|_| logins.code("owner", Vec::new()).unwrap())
            .collect();
        assert_eq!(logins.redeem(&first), None);
        assert!(codes.iter().all(|code| logins.redeem(code).is_some()));
    }
}
