//! Signatures of webhooks: HMAC with SHA-256 over the body, or over `TIME.BODY`.

use std::fmt::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::http::HeaderMap;
use hmac::{Hmac, Mac as _};
use sha2::{Digest as _, Sha256};

use tenterhook_channel::settings::WebhookSettings;

/// How far the time of a request may be from ours.
pub(super) const MAX_AGE: Duration = Duration::from_mins(5);

/// The key of a webhook, and where its signatures are.
pub(super) struct SignatureKey {
    mac: Option<Hmac<Sha256>>,
    header: String,
    prefix: String,
    timestamp_header: Option<String>,
}

impl SignatureKey {
    pub(super) fn new(settings: &WebhookSettings, secret: &str) -> Self {
        Self {
            // HMAC takes keys of any length. Without a key, no signature is right.
            mac: Hmac::new_from_slice(secret.as_bytes())
                .ok()
                .filter(|_| !secret.is_empty()),
            header: settings.header.clone(),
            prefix: settings.prefix.clone(),
            timestamp_header: settings.timestamp_header.clone(),
        }
    }

    /// Returns whether a request has the right signature, and is new enough if it has to have a time.
    pub(super) fn is_signed(&self, headers: &HeaderMap, body: &[u8], now: SystemTime) -> bool {
        let signature = single(headers, &self.header)
            .and_then(|value| value.strip_prefix(&self.prefix))
            .and_then(decode_hex);
        let (Some(signature), Some(mac)) = (signature, &self.mac) else {
            return false;
        };
        let mut mac = mac.clone();
        if let Some(name) = &self.timestamp_header {
            let Some(time) = single(headers, name).filter(|time| is_recent(time, now)) else {
                return false;
            };
            mac.update(time.as_bytes());
            mac.update(b".");
        }
        mac.update(body);
        mac.verify_slice(&signature).is_ok()
    }

    /// Returns the time of a request that is signed, in seconds since 1970. `None` if the signature does not cover one.
    pub(super) fn time(&self, headers: &HeaderMap) -> Option<u64> {
        single(headers, self.timestamp_header.as_ref()?)?
            .parse()
            .ok()
    }

    /// Returns what identifies a request, whatever its id is: the digest of what is signed.
    pub(super) fn digest(&self, headers: &HeaderMap, body: &[u8]) -> String {
        let time = self.timestamp_header.as_ref();
        let time = time.and_then(|name| single(headers, name)).unwrap_or("");
        let digest = Sha256::new()
            .chain_update(time)
            .chain_update(".")
            .chain_update(body)
            .finalize();
        digest.iter().fold(String::new(), |mut text, byte| {
            _ = write!(text, "{byte:02x}");
            text
        })
    }
}

/// Returns the value of a header that occurs once.
fn single<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).into_iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

fn is_recent(time: &str, now: SystemTime) -> bool {
    let is_number = !time.is_empty() && time.bytes().all(|byte| byte.is_ascii_digit());
    let seconds = time.parse::<u64>().ok().filter(|_| is_number);
    let now = seconds_of(now);
    seconds.is_some_and(|seconds| seconds.abs_diff(now) <= MAX_AGE.as_secs())
}

/// Returns a time in seconds since 1970.
pub(super) fn seconds_of(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}

fn decode_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| match pair {
            [high, low] => u8::try_from(digit(*high)? << 4 | digit(*low)?).ok(),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenterhook_channel::settings::SecretSource;
    use tenterhook_protocol::event::SenderRole;

    const SECRET: &str = "It's a Secret to Everybody";
    const NOW: u64 = 1_790_000_000;

    type Row<'a> = (&'a [(&'static str, &'a str)], &'a str, bool);

    fn key(timestamp_header: Option<&str>) -> SignatureKey {
        let settings = WebhookSettings {
            secret: SecretSource::Environment("X".to_owned()),
            header: "x-hub-signature-256".to_owned(),
            prefix: "sha256=".to_owned(),
            timestamp_header: timestamp_header.map(str::to_owned),
            delivery_header: "x-github-delivery".to_owned(),
            event_header: "x-github-event".to_owned(),
            events: Vec::new(),
            template: String::new(),
            chat: "ops".to_owned(),
            role: SenderRole::Guest,
        };
        SignatureKey::new(&settings, SECRET)
    }

    fn is_signed(key: &SignatureKey, headers: &[(&'static str, &str)], body: &[u8]) -> bool {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        key.is_signed(&map, body, UNIX_EPOCH + Duration::from_secs(NOW))
    }

    fn sign(text: &str) -> String {
        let mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
        let bytes = mac.chain_update(text).finalize().into_bytes();
        bytes.iter().fold("sha256=".to_owned(), |text, byte| {
            format!("{text}{byte:02x}")
        })
    }

    // G65
    #[test]
    fn only_the_right_signature_over_the_raw_body_counts() {
        // The example of GitHub's documentation.
        let digits = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
        let (right, upper) = (format!("sha256={digits}"), digits.to_uppercase());
        let (right, upper) = (right.as_str(), format!("sha256={upper}"));
        let short = right.trim_end_matches('7');
        let name = "x-hub-signature-256";
        let rows: &[Row<'_>] = &[
            (&[(name, right)], "Hello, World!", true),
            (&[(name, &upper)], "Hello, World!", true),
            (&[(name, right)], "Hello, World! ", false),
            (&[(name, digits)], "Hello, World!", false),
            (&[(name, short)], "Hello, World!", false),
            (
                &[(name, short.trim_end_matches('1'))],
                "Hello, World!",
                false,
            ),
            (&[(name, "sha256=")], "Hello, World!", false),
            (&[(name, "sha256=zz")], "Hello, World!", false),
            (&[(name, right), (name, right)], "Hello, World!", false),
            (&[], "Hello, World!", false),
        ];
        for (headers, body, expected) in rows {
            assert_eq!(
                is_signed(&key(None), headers, body.as_bytes()),
                *expected,
                "{headers:?} {body}"
            );
        }
    }

    // G65
    #[test]
    fn a_time_is_signed_and_at_most_five_minutes_away() {
        let key = key(Some("x-time"));
        let rows: &[(&str, bool)] = &[
            ("1790000000", true),
            ("1789999700", true),
            ("1790000300", true),
            ("1789999699", false),
            ("1790000301", false),
            ("+1790000000", false),
            ("", false),
            ("now", false),
        ];
        for (time, expected) in rows {
            let signature = sign(&format!("{time}.body"));
            let headers = [
                ("x-hub-signature-256", signature.as_str()),
                ("x-time", time),
            ];
            assert_eq!(is_signed(&key, &headers, b"body"), *expected, "{time}");
        }
        let signature = sign("1790000000.body");
        let moved = [
            ("x-hub-signature-256", signature.as_str()),
            ("x-time", "1790000001"),
        ];
        assert!(!is_signed(&key, &moved, b"body"));
        assert!(!is_signed(
            &key,
            &[("x-hub-signature-256", &sign("body"))],
            b"body"
        ));
    }
}
