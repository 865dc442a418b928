//! The content of a file, independent of its format: a tree of values with positions.
//!
//! There is one reader for each of YAML, TOML and JSON. They turn the same content into the same tree, so
//! the rest of the crate does not depend on the format. The depth of a tree is limited, and so is the
//! size of the values that YAML aliases repeat.

mod comments;
mod json;
mod node;
mod toml;
mod yaml;

use std::path::Path;

pub use self::node::{Entry, Node, Number, Value};
use crate::report::Report;

/// The format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// YAML.
    Yaml,
    /// TOML.
    Toml,
    /// JSON.
    Json,
}

impl Format {
    /// Recognises the format by the extension of the path, or by the content if the extension is unknown.
    pub fn of(path: &Path, text: &str) -> Self {
        let extension = path.extension().and_then(|extension| extension.to_str());
        match extension.map(str::to_ascii_lowercase).as_deref() {
            Some("yaml" | "yml") => Self::Yaml,
            Some("toml") => Self::Toml,
            Some("json") => Self::Json,
            _ => Self::of_content(text),
        }
    }

    fn of_content(text: &str) -> Self {
        let first = text
            .lines()
            .map(str::trim)
            .find(|line| !line.is_empty() && !line.starts_with('#'))
            .unwrap_or_default();
        let equals = first.find('=').unwrap_or(usize::MAX);
        let colon = first.find(':').unwrap_or(usize::MAX);
        if first.starts_with('{') {
            Self::Json
        } else if first.starts_with('[') || equals < colon {
            Self::Toml
        } else {
            Self::Yaml
        }
    }
}

/// Reads the text of the report's source. Adds syntax errors and duplicate keys to the report. Returns
/// `None` if the text cannot be read as a tree.
pub fn read(report: &mut Report, format: Format) -> Option<Node> {
    match format {
        Format::Yaml => yaml::read(report),
        Format::Toml => toml::read(report),
        Format::Json => json::read(report),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_told_by_the_extension_and_else_by_the_content() {
        for (path, text, expected) in [
            ("a.yml", "{}", Format::Yaml),
            ("a.TOML", "", Format::Toml),
            ("a.json", "a: b", Format::Json),
            ("hooks", "\n# a = b\n{\"hooks\": []}", Format::Json),
            (
                "hooks",
                "# about\n[[hooks]]\nevent = \"stop\"",
                Format::Toml,
            ),
            ("hooks", "version = 1", Format::Toml),
            ("hooks", "hooks:\n  - event: stop", Format::Yaml),
            ("hooks", "", Format::Yaml),
        ] {
            assert_eq!(Format::of(Path::new(path), text), expected, "{path} {text}");
        }
    }
}
