//! Posts to a URL whenever an event fires: a webhook that needs no program.

use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tenterhook_engine::{Call, HandlerError};
use tenterhook_protocol::{AnyEffect, EventKind};

use super::row::{Builtin, EventRunner};
use tenterhook_runners::http::{Headers, Target, drain, failed, post, prepare};

pub(super) const BUILTIN: Builtin = Builtin {
    name: "http_post",
    events: EventKind::ALL,
    arguments: "a URL, then optionally a body (default: the event); `--allow-private` for a private address",
    make: |setup| Ok(Box::new(HttpPost::new(setup.arguments)?)),
};

/// How long a request may take, unless the hook's own timeout is shorter.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum number of bytes of the response that are read.
const DRAINED: usize = 64 << 10;
/// The argument that allows private addresses.
const ALLOW_PRIVATE: &str = "--allow-private";

struct HttpPost {
    target: Target,
    body: Option<String>,
}

impl HttpPost {
    fn new(arguments: &[String]) -> Result<Self, String> {
        let (flags, words): (Vec<&String>, Vec<&String>) = arguments
            .iter()
            .partition(|argument| *argument == ALLOW_PRIVATE);
        let (url, body) = match words.as_slice() {
            [url, ..] if url.is_empty() => return Err("expected a URL".to_owned()),
            [url] => (url, None),
            [url, body] => (url, Some(body)),
            [] => return Err("expected a URL".to_owned()),
            more => {
                return Err(format!(
                    "expected a URL and a body, found {} arguments",
                    more.len()
                ));
            }
        };
        let target = Target::parse(url, !flags.is_empty())
            .map_err(|error| format!("cannot post to `{url}`: {error}"))?;
        let body = body.filter(|body| !body.is_empty());
        if let Some(Err(error)) = body.map(|body| serde_json::from_str::<Value>(body)) {
            return Err(format!("the body is not valid JSON: {error}"));
        }
        prepare(&target).map_err(|error| error.to_string())?;
        Ok(Self {
            target,
            body: body.map(|body| (*body).clone()),
        })
    }

    async fn post(&self, call: &Call) -> Result<AnyEffect, HandlerError> {
        let body = match &self.body {
            Some(body) => body.clone(),
            None => call
                .event
                .to_json()
                .map_err(HandlerError::Write)?
                .to_string(),
        };
        let headers = Headers::default();
        let posted = post(&self.target, &headers, body.into_bytes())
            .await
            .map_err(|error| failed(&error))?;
        drain(posted, &headers, DRAINED)
            .await
            .map_err(|error| failed(&error))?;
        Ok(AnyEffect::default())
    }
}

impl EventRunner for HttpPost {
    fn run<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<AnyEffect, HandlerError>> {
        Box::pin(async move {
            let posted = tokio::time::timeout(TIMEOUT, self.post(call)).await;
            posted.unwrap_or(Err(HandlerError::TimedOut { after: TIMEOUT }))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(arguments: &[&str]) -> String {
        let arguments: Vec<String> = arguments.iter().map(|&text| text.to_owned()).collect();
        HttpPost::new(&arguments).err().unwrap_or_default()
    }

    #[test]
    fn wrong_arguments_are_refused() {
        for (arguments, expected) in [
            (&[][..], "expected a URL"),
            (&["--allow-private"], "expected a URL"),
            (&[""], "expected a URL"),
            (
                &["ftp://example.com"],
                "cannot post to `ftp://example.com`: its scheme is `ftp`, expected `http` or `https`",
            ),
            (
                &["http://localhost:1"],
                "cannot post to `http://localhost:1`: `localhost` is a loopback address, and private addresses are not allowed",
            ),
            (
                &["http://a.test", "{}", "x"],
                "expected a URL and a body, found 3 arguments",
            ),
            (
                &["http://a.test", "{"],
                "the body is not valid JSON: EOF while parsing an object at line 1 column 1",
            ),
            (&["http://a.test"], ""),
            (&["http://a.test", ""], ""),
            (&["http://a.test", "{\"a\": 1}"], ""),
            (&["--allow-private", "http://localhost:1"], ""),
        ] {
            assert_eq!(problem(arguments), expected, "{arguments:?}");
        }
    }
}
