//! The URL and the headers of a request. Both are checked when a hook is loaded.

use std::fmt;
use std::net::IpAddr;

use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use thiserror::Error;

use super::address::not_public;

/// The URL of an HTTP hook. Its scheme is `http` or `https`, it has a host and no user, and its
/// host is not known to be private unless private addresses are allowed.
#[derive(Clone, PartialEq, Eq)]
pub struct Target {
    url: Url,
    allow_private: bool,
}

/// Why a hook cannot post to a URL.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TargetError {
    /// The URL is invalid.
    #[error("it is not a valid URL: {problem}")]
    Url {
        /// What is wrong with it.
        problem: String,
    },
    /// The URL has an unsupported scheme.
    #[error("its scheme is `{scheme}`, expected `http` or `https`")]
    Scheme {
        /// The scheme.
        scheme: String,
    },
    /// The URL contains a user name or a password, which would appear wherever the URL is shown.
    #[error("it contains a user name or a password; send them in a header")]
    User,
    /// The host is private.
    #[error("`{host}` is {what}, and private addresses are not allowed")]
    Private {
        /// The host.
        host: String,
        /// The kind of address, such as `a loopback address`.
        what: &'static str,
    },
}

impl Target {
    /// Checks a URL. If the host is a name, its addresses are also checked whenever the name is looked up.
    ///
    /// # Errors
    /// Fails if the URL is invalid, is not `http` or `https`, contains a user name or a password,
    /// or has a host that is not allowed.
    pub fn parse(url: &str, allow_private: bool) -> Result<Self, TargetError> {
        let url = Url::parse(url).map_err(|error| TargetError::Url {
            problem: error.to_string(),
        })?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(TargetError::Scheme {
                scheme: url.scheme().to_owned(),
            });
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(TargetError::User);
        }
        let target = Self { url, allow_private };
        match target.private() {
            Some(what) if !allow_private => Err(TargetError::Private {
                host: target.host().to_owned(),
                what,
            }),
            _ => Ok(target),
        }
    }

    /// Returns whether events would cross a network unencrypted.
    pub fn is_plain(&self) -> bool {
        self.url.scheme() == "http" && self.private() != Some(LOOPBACK)
    }

    /// Returns the host, for messages.
    pub fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    pub(super) fn url(&self) -> &Url {
        &self.url
    }

    pub(super) fn allows_private(&self) -> bool {
        self.allow_private
    }

    /// Returns what kind of private host this is, as far as that is known without looking it up.
    fn private(&self) -> Option<&'static str> {
        let host = self.host().trim_end_matches('.');
        if host == "localhost" || host.ends_with(".localhost") {
            return Some(LOOPBACK);
        }
        let literal = host.trim_start_matches('[').trim_end_matches(']');
        not_public(literal.parse::<IpAddr>().ok()?)
    }
}

const LOOPBACK: &str = "a loopback address";

/// Shows the URL without its query, which may contain a key.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut url = self.url.clone();
        url.set_fragment(None);
        let has_query = url.query().is_some();
        url.set_query(None);
        f.write_str(url.as_str())?;
        f.write_str(if has_query { "?…" } else { "" })
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target")
            .field("url", &self.to_string())
            .field("allow_private", &self.allow_private)
            .finish()
    }
}

/// The headers that a hook's author adds. Their values are secrets and are never shown.
#[derive(Clone, Default)]
pub struct Headers {
    map: HeaderMap,
}

/// Why a header cannot be added to a request.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// The name is invalid.
    #[error("`{}` is not a valid header name", .name.escape_debug())]
    Name {
        /// The name.
        name: String,
    },
    /// Tenterhook sets this header itself.
    #[error("the header `{name}` is set by the request itself")]
    Reserved {
        /// The header.
        name: String,
    },
    /// The header was added already. Names are compared without regard to case.
    #[error("the header `{name}` is given twice")]
    Twice {
        /// The header.
        name: String,
    },
    /// The value contains a character that is not allowed in a header. The message does not show the value.
    #[error(
        "the value of the header `{name}` contains a character that is not allowed in a header"
    )]
    Value {
        /// The header.
        name: String,
    },
}

/// Headers that belong to the request or to the connection.
const RESERVED: &[&str] = &[
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
];

impl Headers {
    /// Adds a header.
    ///
    /// # Errors
    /// Fails if the name or the value cannot be sent, if the request sets this header itself, or if
    /// the header was added already.
    pub fn add(&mut self, name: &str, value: &[u8]) -> Result<(), HeaderError> {
        let given = || name.to_owned();
        let key = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| HeaderError::Name { name: given() })?;
        if RESERVED.contains(&key.as_str()) {
            return Err(HeaderError::Reserved { name: given() });
        }
        let mut value =
            HeaderValue::from_bytes(value).map_err(|_| HeaderError::Value { name: given() })?;
        value.set_sensitive(true);
        if self.map.insert(key, value).is_some() {
            return Err(HeaderError::Twice { name: given() });
        }
        Ok(())
    }

    pub(super) fn map(&self) -> &HeaderMap {
        &self.map
    }

    /// Removes the values of the headers, and the words of these values, from text that a server wrote.
    pub(super) fn redact(&self, text: &str) -> String {
        let values = self.map.values().map(HeaderValue::as_bytes);
        let mut secrets: Vec<_> = values
            .map(String::from_utf8_lossy)
            .flat_map(|value| {
                let words = value.split_whitespace().map(str::to_owned);
                words
                    .chain([value.clone().into_owned()])
                    .collect::<Vec<_>>()
            })
            .filter(|secret| secret.len() >= SHORTEST_SECRET)
            .collect();
        // The longest first: replacing a word of a value first would leave the rest of the value in
        // the text.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets
            .iter()
            .fold(text.to_owned(), |text, secret| text.replace(secret, "***"))
    }
}

/// The length of the shortest word that is removed, in bytes. Shorter words are too common.
const SHORTEST_SECRET: usize = 6;

/// Shows only the names.
impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.map.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(url: &str) -> String {
        Target::parse(url, false).unwrap_err().to_string()
    }

    #[test]
    fn a_url_that_no_hook_can_post_to_says_why() {
        for (url, expected) in [
            ("", "it is not a valid URL: relative URL without a base"),
            (
                "example.com/x",
                "it is not a valid URL: relative URL without a base",
            ),
            ("http://", "it is not a valid URL: empty host"),
            (
                "ftp://example.com",
                "its scheme is `ftp`, expected `http` or `https`",
            ),
            (
                "file:///etc/passwd",
                "its scheme is `file`, expected `http` or `https`",
            ),
            (
                "https://ada@example.com",
                "it contains a user name or a password; send them in a header",
            ),
            (
                "https://:pw@example.com",
                "it contains a user name or a password; send them in a header",
            ),
        ] {
            assert_eq!(problem(url), expected, "{url}");
        }
    }

    #[test]
    fn every_spelling_of_a_private_address_is_refused_and_can_be_allowed() {
        for url in [
            "http://127.0.0.1/",
            "http://2130706433/",
            "http://0x7f.1/",
            "http://0177.0.0.1/",
            "http://127.1/",
            "http://127.0.0.1./",
            "http://0/",
            "http://[::1]/",
            "http://[::]/",
            "http://[::ffff:127.0.0.1]/",
            "http://[::ffff:7f00:1]/",
            "http://[0:0:0:0:0:ffff:a9fe:a9fe]/",
            "http://[fd00:ec2::254]/",
            "http://[fe80::1]/",
            "http://169.254.169.254/latest/meta-data",
            "http://100.100.100.200/",
            "http://10.0.0.1/",
            "https://192.168.1.1:8443/",
            "http://localhost/",
            "http://LOCALHOST:8080/",
            "http://localhost./",
            "http://api.localhost/",
            "http://①②⑦.⓪.⓪.①/",
        ] {
            assert!(
                problem(url).contains("private addresses are not allowed"),
                "{url}"
            );
            assert!(Target::parse(url, true).is_ok(), "{url}");
        }
    }

    #[test]
    fn only_plain_text_on_a_network_is_plain() {
        for (url, is_plain) in [
            ("http://example.com", true),
            ("http://10.0.0.1", true),
            ("https://example.com", false),
            ("http://127.0.0.1:80", false),
            ("http://[::1]", false),
            ("http://localhost:1", false),
        ] {
            assert_eq!(
                Target::parse(url, true).unwrap().is_plain(),
                is_plain,
                "{url}"
            );
        }
    }

    #[test]
    fn a_query_is_not_shown() {
        let target = Target::parse("https://example.com/a?key=canary#x", false).unwrap();
        assert_eq!(target.to_string(), "https://example.com/a?…");
        assert!(!format!("{target:?}").contains("canary"));
    }

    #[test]
    fn headers_that_cannot_be_sent_say_why_without_their_value() {
        let mut headers = Headers::default();
        headers.add("X-Token", b"one").unwrap();
        for (name, value, expected) in [
            ("x-token", "two", "the header `x-token` is given twice"),
            (
                "Host",
                "a",
                "the header `Host` is set by the request itself",
            ),
            ("a b", "a", "`a b` is not a valid header name"),
            ("", "a", "`` is not a valid header name"),
            (
                "X-Other",
                "canary\r\nX-Evil: 1",
                "the value of the header `X-Other` contains a character that is not allowed in a header",
            ),
        ] {
            let error = headers.add(name, value.as_bytes()).unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn values_are_never_shown_and_are_taken_out_of_what_others_say() {
        let mut headers = Headers::default();
        headers
            .add("Authorization", b"Bearer canary-token")
            .unwrap();
        assert_eq!(format!("{headers:?}"), r#"{"authorization"}"#);
        assert!(!format!("{:?}", headers.map()).contains("canary"));
        assert_eq!(
            headers.redact("no: Bearer canary-token, canary-token!"),
            "no: ***, ***!"
        );
    }
}
