//! The keys of HTTP hooks, the same in native files and in agent files: a URL, `headers`, `allow_private`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use tenterhook::{Dialect, Handler};
use tenterhook_handlers::http::{Headers, HttpHandler, Target, TargetError};

use crate::draft::Definition;
use crate::environment::Environment;
use crate::fields::{Fields, scalar, wrong};
use crate::report::Report;
use crate::source::Span;
use crate::tree::shorten;

/// What an HTTP hook posts to, and with which headers.
#[derive(Debug)]
pub(crate) struct HttpAction {
    /// The URL as it is written.
    url: String,
    target: Target,
    allow_private: bool,
    headers: Vec<Header>,
}

/// A header as it is written. Its value is a secret.
struct Header {
    name: String,
    value: String,
    span: Span,
}

/// Shows the name only.
impl fmt::Debug for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl HttpAction {
    /// Reads the URL below `key` and what belongs to it.
    pub(crate) fn read(
        report: &mut Report,
        fields: &Fields<'_>,
        key: &str,
    ) -> Option<(Self, Span)> {
        let allow_private = fields.boolean(report, "allow_private");
        let headers = read_headers(report, fields);
        let text = fields.full_text(report, key)?;
        let allow_private = allow_private.unwrap_or_default();
        let target = match Target::parse(text.text.trim(), allow_private) {
            Ok(target) => target,
            Err(error) => {
                let message = format!("cannot post to `{}`: {error}", shorten(text.text));
                let problem = report.problem(text.span, message);
                report.add(if matches!(error, TargetError::Private { .. }) {
                    problem.hint("if that is meant, write `allow_private: true`")
                } else {
                    problem.allowed("a URL such as `https://example.com/hook`")
                });
                return None;
            }
        };
        if target.is_plain() {
            let message = format!("events go to `{}` in plain text", target.host());
            report.add(
                report
                    .warning(text.span, message)
                    .hint("write `https://`, or post to this machine only"),
            );
        }
        let action = Self {
            url: text.text.trim().to_owned(),
            target,
            allow_private,
            headers: headers?,
        };
        Some((action, text.span))
    }

    /// Makes the handler.
    pub(crate) fn handler(
        &self,
        report: &mut Report,
        environment: &Environment,
        span: Span,
        dialect: Arc<dyn Dialect>,
        strict_output: bool,
    ) -> Option<Arc<dyn Handler>> {
        let mut headers = Headers::default();
        let mut is_whole = true;
        for header in &self.headers {
            if let Some(variable) = environment.first_unset(&header.value) {
                let message = format!(
                    "the header `{}` names `{variable}`, which is not set",
                    header.name
                );
                report.add(
                    report
                        .warning(header.span, message)
                        .hint("the header is sent with nothing in its place"),
                );
            }
            let value = environment.expand_value(&header.value);
            if let Err(error) = headers.add(&header.name, value.as_encoded_bytes()) {
                report.add(report.problem(header.span, error.to_string()));
                is_whole = false;
            }
        }
        let handler = HttpHandler::new(self.target.clone(), headers, dialect);
        match handler {
            Ok(handler) => {
                is_whole.then(|| Arc::new(handler.strict_output(strict_output)) as Arc<dyn Handler>)
            }
            Err(error) => {
                report.add(report.problem(span, error.to_string()));
                None
            }
        }
    }

    /// Returns the headers as they are written, for somebody who has to judge what they tell.
    pub(crate) fn written_headers(&self) -> impl Iterator<Item = (&str, &str)> {
        let headers = self.headers.iter();
        headers.map(|header| (header.name.as_str(), header.value.as_str()))
    }

    /// Adds everything that tells this hook from another one. Of the headers' values that is a digest.
    pub(crate) fn define(&self, definition: Definition, key: &str) -> Definition {
        let sorted: BTreeMap<String, &Header> = self
            .headers
            .iter()
            .map(|header| (header.name.to_ascii_lowercase(), header))
            .collect();
        let headers: Map<String, Value> = sorted
            .into_iter()
            .map(|(name, header)| (name, sealed(&header.value).into()))
            .collect();
        definition
            .field(key, Some(self.url.as_str()))
            .field("headers", (!headers.is_empty()).then_some(headers))
            .field("allow_private", self.allow_private.then_some(true))
    }
}

/// Returns what stands for a secret where two of them are compared.
fn sealed(secret: &str) -> String {
    format!("sha256:{:x}", Sha256::digest(secret))
}

fn read_headers(report: &mut Report, fields: &Fields<'_>) -> Option<Vec<Header>> {
    let Some(entry) = fields.entry("headers") else {
        return Some(Vec::new());
    };
    let Some(entries) = entry.value.as_table() else {
        return wrong(
            report,
            "headers",
            &entry.value,
            "a mapping of names to texts",
        );
    };
    // The values come later, when what they name is known.
    let mut names = Headers::default();
    let headers: Vec<_> = entries
        .iter()
        .filter_map(|entry| {
            let what = format!("`headers.{}`", entry.key);
            if let Err(error) = names.add(&entry.key, b"") {
                report.add(report.problem(entry.key_span, error.to_string()));
                return None;
            }
            Some(Header {
                name: entry.key.clone(),
                value: scalar(report, &what, &entry.value)?,
                span: entry.key_span,
            })
        })
        .collect();
    (headers.len() == entries.len()).then_some(headers)
}
