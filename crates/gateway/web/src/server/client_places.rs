//! How many connections the clients of one token, and of one user, may use at the same time.
//!
//! These limits leave room for everyone else, so a client that is known counts against them only. What is not known to
//! have a right token gives way instead: see `idle.rs`.

use super::counted::{Counted, Counts};
use tenterhook_channel::token::Token;

/// The maximum number of connections of one token.
const MAX_OF_TOKEN: usize = 96;

/// The maximum number of connections of all tokens of one user.
const MAX_OF_USER: usize = 128;

/// The connections of clients that have shown a right token. Clones share the counts.
#[derive(Debug, Clone)]
pub(crate) struct ClientPlaces {
    of_tokens: Counts<String>,
    of_users: Counts<String>,
}

/// A connection of a client that has shown a right token.
#[derive(Debug)]
pub(crate) struct ClientPlace {
    _of_token: Counted<String>,
    _of_user: Counted<String>,
}

impl Default for ClientPlaces {
    fn default() -> Self {
        Self {
            of_tokens: Counts::new(MAX_OF_TOKEN),
            of_users: Counts::new(MAX_OF_USER),
        }
    }
}

impl ClientPlaces {
    /// Counts a connection until the result is dropped. `None` if the token or its user has too many.
    pub(crate) fn take(&self, token: &Token) -> Option<ClientPlace> {
        Some(ClientPlace {
            _of_token: self.of_tokens.take(token.id.clone())?,
            _of_user: self.of_users.take(token.user.clone())?,
        })
    }
}
