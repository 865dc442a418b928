//! Reads the keys of HTTP hooks, which are the same in native files and in agent files: a URL, `headers` and
//! `allow_private`.
//!
//! The code that builds the hook later checks whether the URL and the headers are valid.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};
use tenterhook_files::hex_digest;

use crate::definition::Definition;
use crate::fields::{Fields, scalar, wrong};
use crate::report::Report;
use crate::source::Span;

/// The URL that an HTTP hook posts to, and its headers.
#[derive(Debug, Clone)]
pub struct HttpDeclaration {
    /// The URL as written.
    pub url: String,
    /// Where the URL is in the file.
    pub url_span: Span,
    /// Whether the URL may lead to an address that is not public.
    pub allow_private: bool,
    /// The headers as written.
    pub headers: Vec<HeaderDeclaration>,
}

/// A header as written. Its value counts as a secret.
#[derive(Clone)]
pub struct HeaderDeclaration {
    /// The name.
    pub name: String,
    /// Where the name is in the file.
    pub name_span: Span,
    /// The value, which may contain `${env.NAME}`.
    pub value: String,
}

/// Shows only the name.
impl fmt::Debug for HeaderDeclaration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl HttpDeclaration {
    /// Reads the URL below `key`, and the keys next to it.
    pub fn read(report: &mut Report, fields: &Fields<'_>, key: &str) -> Option<(Self, Span)> {
        let allow_private = fields.boolean(report, "allow_private");
        let headers = read_headers(report, fields);
        let text = fields.full_text(report, key)?;
        let declaration = Self {
            url: text.text.trim().to_owned(),
            url_span: text.span,
            allow_private: allow_private.unwrap_or_default(),
            headers: headers?,
        };
        Some((declaration, text.span))
    }

    /// Adds everything that distinguishes this hook from others. Values of headers are added as digests,
    /// because they are secrets.
    pub fn define(&self, definition: Definition, key: &str) -> Definition {
        let sorted: BTreeMap<String, &HeaderDeclaration> = self
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

/// Returns a digest that replaces a secret in comparisons.
fn sealed(secret: &str) -> String {
    format!("sha256:{}", hex_digest(secret))
}

fn read_headers(report: &mut Report, fields: &Fields<'_>) -> Option<Vec<HeaderDeclaration>> {
    let Some(entry) = fields.entry("headers") else {
        return Some(Vec::new());
    };
    let Some(entries) = entry.value.as_table() else {
        return wrong(
            report,
            "headers",
            &entry.value,
            "a mapping of names to strings",
        );
    };
    let headers: Vec<_> = entries
        .iter()
        .filter_map(|entry| {
            let what = format!("`headers.{}`", entry.key);
            Some(HeaderDeclaration {
                name: entry.key.clone(),
                name_span: entry.key_span,
                value: scalar(report, &what, &entry.value)?,
            })
        })
        .collect();
    (headers.len() == entries.len()).then_some(headers)
}
