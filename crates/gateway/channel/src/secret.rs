//! A secret that does not show itself.

use std::fmt;

use subtle::ConstantTimeEq as _;

/// A token, a key or a code. Neither `Debug` nor an error shows it, and comparing takes the same time for every
/// difference.
#[derive(Clone)]
pub struct HiddenSecret(String);

impl HiddenSecret {
    /// Wraps a secret.
    pub fn new(secret: impl Into<String>) -> Self {
        Self(secret.into())
    }

    /// Returns the secret itself, for the one place that needs it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl PartialEq for HiddenSecret {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_bytes().ct_eq(other.0.as_bytes()).into()
    }
}

impl Eq for HiddenSecret {}

impl fmt::Debug for HiddenSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HiddenSecret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_compared_but_never_shown() {
        let secret = HiddenSecret::new("thg_abc");
        assert_eq!(secret, HiddenSecret::new("thg_abc"));
        assert_ne!(secret, HiddenSecret::new("thg_abd"));
        assert_ne!(secret, HiddenSecret::new("thg_ab"));
        assert_eq!(format!("{secret:?}"), "HiddenSecret");
    }
}
