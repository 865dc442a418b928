//! The files of the page, which are part of the program.

use std::fmt::Write as _;
use std::sync::LazyLock;

use sha2::{Digest as _, Sha256};

/// A file of the page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageFile {
    pub(crate) name: &'static str,
    /// The value of `Content-Type`.
    pub(crate) media_type: &'static str,
    pub(crate) text: &'static str,
    /// The value of `ETag`: a quoted hash of the contents.
    pub(crate) etag: &'static str,
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

/// The name of the page itself.
pub(crate) const INDEX: &str = "index.html";

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        /// The name and contents of each file.
        const FILES: &[(&str, &str)] = &[$(($name, include_str!(concat!("page/", $name)))),*];
    };
}

files![
    "app.js",
    "decision.js",
    "detail.js",
    "diff.js",
    "element.js",
    "facets.js",
    "filter.js",
    "format.js",
    "gateway-view.js",
    "hooks-view.js",
    "icon.svg",
    "index.html",
    "keyboard.js",
    "latency-view.js",
    "lines.js",
    "list.js",
    "notices.js",
    "rewrite.js",
    "run.js",
    "session-view.js",
    "sessions.js",
    "source.js",
    "stats.js",
    "store.js",
    "style.css",
    "theme-button.js",
    "theme.js",
    "timeline.js",
    "top-bar.js",
    "waterfall.js",
];

static PAGE_FILES: LazyLock<Vec<PageFile>> = LazyLock::new(|| {
    let files = FILES.iter().map(|&(name, text)| PageFile {
        name,
        media_type: media_type(name),
        text,
        etag: etag(text).leak(),
    });
    files.collect()
});

/// Returns all files of the page.
pub(crate) fn files() -> &'static [PageFile] {
    &PAGE_FILES
}

/// Returns the file with a name.
pub(crate) fn file(name: &str) -> Option<PageFile> {
    files().iter().find(|file| file.name == name).copied()
}

fn media_type(name: &str) -> &'static str {
    match name.rsplit_once('.') {
        Some((_, "html")) => HTML,
        Some((_, "css")) => CSS,
        Some((_, "svg")) => SVG,
        _ => JAVASCRIPT,
    }
}

/// The number of bytes of the hash that an `ETag` contains.
const ETAG_BYTES: usize = 12;

fn etag(text: &str) -> String {
    let mut etag = String::from('"');
    for byte in Sha256::digest(text).iter().take(ETAG_BYTES) {
        // Writing to a string cannot fail.
        let _ = write!(etag, "{byte:02x}");
    }
    etag.push('"');
    etag
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    #[test]
    fn every_file_in_the_folder_is_part_of_the_program() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/page");
        let found: BTreeSet<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        assert_eq!(
            found,
            FILES.iter().map(|(name, _)| (*name).to_owned()).collect()
        );
    }
}
