//! What the status and the body of an answer mean.
//!
//! | answer | meaning |
//! |---|---|
//! | 200, JSON or plain text in UTF-8, at most 1 MiB | like the output of a command that exits with 0 |
//! | 200 without a body, 204 | no opinion |
//! | 3xx | a failure: redirects are not followed |
//! | any other status | a failure |
//! | 200 that is longer, of another type, compressed, not UTF-8 or incomplete | a failure |

use std::ops::Deref;
use std::time::Duration;

use reqwest::StatusCode;
use reqwest::Url;
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderName, LOCATION};
use tenterhook_protocol::excerpt;
use thiserror::Error;

use super::client::{Posted, cause};
use super::target::Headers;

/// The longest answer, in bytes: the same limit as for a command's stdout.
const BODY_LIMIT: usize = 1 << 20;
/// How much of the body of a failed answer is shown, in bytes.
const EXCERPT: usize = 2 << 10;
/// How much of the body of a failed answer is read, in bytes. It is more than is shown, so that
/// secrets can be removed before the text is cut.
const READ_FOR_EXCERPT: usize = 16 << 10;
/// How long to wait for the body of a failed answer. The wait is short, because the status alone
/// tells the cause.
const EXCERPT_TIMEOUT: Duration = Duration::from_secs(1);

/// Why an answer cannot be used.
#[derive(Debug, Error)]
pub enum AnswerError {
    #[error("`{host}` answered {status} and redirects to {to}; redirects are not followed")]
    Redirect {
        host: String,
        status: StatusCode,
        to: String,
    },
    #[error("`{host}` answered {status}{}", .excerpt.as_ref().map(|text| format!(": {text}")).unwrap_or_default())]
    Status {
        host: String,
        status: StatusCode,
        excerpt: Option<String>,
    },
    #[error("the answer is too long: more than {BODY_LIMIT} bytes")]
    TooLong,
    #[error("the answer ended early: {problem}")]
    Broken { problem: String },
    #[error("the answer is `{found}`, expected `application/json` or `text/plain` in UTF-8")]
    Type { found: String },
    #[error("the answer is encoded as `{found}`, which was not requested")]
    Encoding { found: String },
    #[error("the answer is not UTF-8")]
    NotUtf8,
    #[error("the answer is `{found}`, but not a JSON object")]
    NoObject { found: String },
}

/// Reads an answer. Returns its body, or `None` if it has no opinion.
pub(crate) async fn read(
    mut posted: Posted,
    headers: &Headers,
) -> Result<Option<Vec<u8>>, AnswerError> {
    match posted.response.status() {
        StatusCode::OK => {}
        StatusCode::NO_CONTENT => return Ok(None),
        _ => return Err(refusal(posted, headers).await),
    }
    let body = body(&mut posted).await?;
    if body.trim_ascii().is_empty() {
        return Ok(None);
    }
    let found = header(&posted, &CONTENT_ENCODING);
    if let Some(found) = found.filter(|encoding| !encoding.eq_ignore_ascii_case("identity")) {
        return Err(AnswerError::Encoding { found });
    }
    if std::str::from_utf8(&body).is_err() {
        return Err(AnswerError::NotUtf8);
    }
    if let Some(found) = header(&posted, &CONTENT_TYPE) {
        check_type(found, &body)?;
    }
    Ok(Some(body))
}

/// Reads at most `limit` bytes of an answer and discards them.
///
/// # Errors
/// Fails if the status is not a success.
pub async fn drain(mut posted: Posted, headers: &Headers, limit: usize) -> Result<(), AnswerError> {
    if !posted.response.status().is_success() {
        return Err(refusal(posted, headers).await);
    }
    let mut left = limit;
    while let Some(chunk) = chunk(&mut posted).await? {
        match left.checked_sub(chunk.len()) {
            Some(rest) => left = rest,
            None => break,
        }
    }
    Ok(())
}

async fn body(posted: &mut Posted) -> Result<Vec<u8>, AnswerError> {
    let mut body = Vec::new();
    while let Some(chunk) = chunk(posted).await? {
        if body.len() + chunk.len() > BODY_LIMIT {
            return Err(AnswerError::TooLong);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

async fn chunk(
    posted: &mut Posted,
) -> Result<Option<impl Deref<Target = [u8]> + use<>>, AnswerError> {
    let chunk = posted.response.chunk().await;
    chunk.map_err(|error| AnswerError::Broken {
        problem: cause(&error),
    })
}

/// Checks the content type, and that the body fits it.
fn check_type(found: String, body: &[u8]) -> Result<(), AnswerError> {
    let lower = found.to_ascii_lowercase();
    let mut parts = lower.split(';').map(str::trim);
    let kind = parts.next().unwrap_or_default();
    let is_utf8 = parts
        .filter_map(|part| part.strip_prefix("charset="))
        .all(|charset| matches!(charset.trim_matches('"'), "utf-8" | "utf8" | "us-ascii"));
    let is_json = kind == "application/json" || kind.ends_with("+json");
    if !(is_utf8 && (is_json || kind == "text/plain")) {
        return Err(AnswerError::Type { found });
    }
    let text = body.trim_ascii_start();
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    if is_json && !text.trim_ascii_start().starts_with(b"{") {
        return Err(AnswerError::NoObject { found });
    }
    Ok(())
}

/// Returns the error for an answer whose status is a failure.
async fn refusal(mut posted: Posted, headers: &Headers) -> AnswerError {
    let status = posted.response.status();
    let host = posted.response.url().host_str();
    let host = host.unwrap_or_default().to_owned();
    if status.is_redirection() {
        let to = header(&posted, &LOCATION);
        return AnswerError::Redirect {
            host,
            status,
            to: to.map_or_else(|| "an unnamed address".to_owned(), |to| place(&posted, &to)),
        };
    }
    let mut bytes = Vec::new();
    let mut is_whole = false;
    let reading = async {
        while let Ok(next) = chunk(&mut posted).await {
            let Some(chunk) = next else {
                is_whole = true;
                break;
            };
            bytes.extend_from_slice(&chunk);
            if bytes.len() >= READ_FOR_EXCERPT {
                break;
            }
        }
    };
    // A timeout is not an error: the message shows what arrived in time.
    let _ = tokio::time::timeout(EXCERPT_TIMEOUT, reading).await;
    if !is_whole {
        bytes.truncate(excerpt::head_end(&bytes));
    }
    let text = headers.redact(&String::from_utf8_lossy(&bytes));
    let text = excerpt::head(&text, EXCERPT);
    // Messages show a cause on one line.
    let words: Vec<&str> = text
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty())
        .collect();
    AnswerError::Status {
        host,
        status,
        excerpt: (!words.is_empty()).then(|| words.join(" ")),
    }
}

/// Returns the host that a redirect leads to. Paths and queries are left out, because they may
/// contain keys.
fn place(posted: &Posted, location: &str) -> String {
    let url = posted.response.url().join(location);
    let host = url.as_ref().ok().and_then(Url::host_str);
    host.map_or_else(|| "an invalid URL".to_owned(), |host| format!("`{host}`"))
}

fn header(posted: &Posted, name: &HeaderName) -> Option<String> {
    let value = posted.response.headers().get(name)?;
    Some(String::from_utf8_lossy(value.as_bytes()).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_json_objects_and_plain_text_in_utf8_are_answers() {
        for (kind, body, expected) in [
            ("application/json", "{}", Ok(())),
            ("Application/JSON; charset=UTF-8", " {}", Ok(())),
            ("application/problem+json", "\u{feff}{}", Ok(())),
            ("text/plain", "hello", Ok(())),
            ("text/plain; charset=\"us-ascii\"", "hello", Ok(())),
            (
                "application/json",
                "[]",
                Err("the answer is `application/json`, but not a JSON object"),
            ),
            (
                "text/plain; charset=latin1",
                "{}",
                Err(
                    "the answer is `text/plain; charset=latin1`, expected `application/json` or `text/plain` in UTF-8",
                ),
            ),
            (
                "text/html",
                "<html>",
                Err(
                    "the answer is `text/html`, expected `application/json` or `text/plain` in UTF-8",
                ),
            ),
            (
                "",
                "{}",
                Err("the answer is ``, expected `application/json` or `text/plain` in UTF-8"),
            ),
        ] {
            let checked = check_type(kind.to_owned(), body.as_bytes());
            let checked = checked.map_err(|error| error.to_string());
            assert_eq!(checked, expected.map_err(str::to_owned), "{kind}");
        }
    }
}
