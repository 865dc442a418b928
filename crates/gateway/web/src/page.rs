//! The page on which people chat: files that are part of the program.
//!
//! The page needs no build step and loads nothing from other servers. It is sent with a policy under which the browser
//! runs no inline script and applies no inline style, so the files contain neither. What the page shows comes over the
//! WebSocket; see [`frame`](tenterhook_channel::frame).

use std::fmt::Write as _;
use std::sync::LazyLock;

use sha2::{Digest as _, Sha256};

/// A file of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asset {
    /// The value of `Content-Type`.
    pub media_type: &'static str,
    /// The contents.
    pub bytes: &'static [u8],
    /// The value of `ETag`: a quoted hash of the contents.
    pub etag: &'static str,
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";
const TEXT: &str = "text/plain; charset=utf-8";

macro_rules! files {
    ($($name:literal: $media_type:expr),* $(,)?) => {
        /// The name, media type and contents of each file.
        const FILES: &[(&str, &str, &[u8])] = &[
            $(($name, $media_type, include_bytes!(concat!("page/", $name)))),*
        ];
    };
}

files! {
    "index.html": HTML,
    "style.css": CSS,
    "icon.svg": SVG,
    "theme.js": JAVASCRIPT,
    "app.js": JAVASCRIPT,
    "composer.js": JAVASCRIPT,
    "connection.js": JAVASCRIPT,
    "element.js": JAVASCRIPT,
    "log.js": JAVASCRIPT,
    "markdown.js": JAVASCRIPT,
    "microphone.js": JAVASCRIPT,
    "questions.js": JAVASCRIPT,
    "recorder.js": JAVASCRIPT,
    "recorder-worklet.js": JAVASCRIPT,
    "server.js": JAVASCRIPT,
    "state.js": JAVASCRIPT,
    "storage.js": JAVASCRIPT,
    "wav.js": JAVASCRIPT,
    "markdown-it.js": JAVASCRIPT,
    "markdown-it.LICENSE": TEXT,
}

/// The files with their tags, which are computed once.
static ASSETS: LazyLock<Vec<(&str, Asset)>> = LazyLock::new(|| {
    let assets = FILES.iter().map(|&(name, media_type, bytes)| {
        let asset = Asset {
            media_type,
            bytes,
            etag: etag(bytes).leak(),
        };
        (name, asset)
    });
    assets.collect()
});

/// The number of bytes of the hash that an `ETag` contains.
const ETAG_BYTES: usize = 12;

fn etag(bytes: &[u8]) -> String {
    let mut etag = String::from('"');
    for byte in Sha256::digest(bytes).iter().take(ETAG_BYTES) {
        // Writing to a string cannot fail.
        let _ = write!(etag, "{byte:02x}");
    }
    etag.push('"');
    etag
}

/// Returns the file at the path of a request, such as `/style.css`. `/` is the page itself.
pub fn asset(path: &str) -> Option<Asset> {
    let name = match path.strip_prefix('/')? {
        "" => "index.html",
        name => name,
    };
    let found = ASSETS.iter().find(|(known, _)| *known == name);
    found.map(|(_, asset)| *asset)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use super::*;

    const VENDORED: &str = "markdown-it.js";

    /// The name and text of each file of ours.
    fn own_files() -> Vec<(&'static str, &'static str)> {
        let own = FILES
            .iter()
            .filter(|(name, ..)| !name.starts_with("markdown-it"));
        own.map(|&(name, _, bytes)| (name, std::str::from_utf8(bytes).unwrap()))
            .collect()
    }

    /// Returns what stands between `before` and the next `"` or `'` at each place.
    fn quoted_after<'a>(text: &'a str, before: &str) -> Vec<&'a str> {
        let parts = text.split(before).skip(1);
        parts
            .map(|part| part.split(['"', '\'']).next().unwrap())
            .collect()
    }

    #[test]
    fn every_file_that_the_page_refers_to_exists() {
        let mut count = 0;
        for (name, text) in own_files() {
            for before in [
                " src=\"/",
                " href=\"/",
                "src: '/",
                " from './",
                "import './",
            ] {
                for target in quoted_after(text, before) {
                    assert!(asset(&format!("/{target}")).is_some(), "{name}: {target}");
                    count += 1;
                }
            }
        }
        assert!(count > 20, "only {count} references were found");
    }

    #[test]
    fn every_icon_that_the_page_uses_exists() {
        let files = own_files();
        let (_, html) = files
            .iter()
            .find(|(name, _)| *name == "index.html")
            .unwrap();
        let icons: BTreeSet<&str> = quoted_after(html, "<symbol id=\"i-").into_iter().collect();
        for (name, text) in &files {
            for before in ["href=\"#i-", "icon('"] {
                for icon in quoted_after(text, before) {
                    assert!(icons.contains(icon), "{name}: {icon}");
                }
            }
        }
    }

    #[test]
    fn every_file_in_the_folder_is_part_of_the_program() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/page");
        let found: BTreeSet<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        let known = FILES.iter().map(|(name, ..)| (*name).to_owned());
        assert_eq!(found, known.collect());
    }

    #[test]
    fn the_files_are_small() {
        let size_of = |name: &str| asset(&format!("/{name}")).unwrap().bytes.len();
        let own: usize = own_files().iter().map(|(name, _)| size_of(name)).sum();
        assert!(own <= 120 * 1024, "{own} bytes");
        assert!(size_of(VENDORED) <= 128 * 1024);
    }

    #[test]
    fn files_are_found_by_the_path_of_a_request() {
        let page = asset("/").unwrap();
        assert_eq!(Some(page), asset("/index.html"));
        assert_eq!(page.media_type, HTML);
        assert!(page.bytes.starts_with(b"<!doctype html>"));
        assert_eq!(asset("/app.js").unwrap().media_type, JAVASCRIPT);
        for path in [
            "",
            "app.js",
            "/missing.js",
            "//app.js",
            "/../page.rs",
            "/page/app.js",
        ] {
            assert_eq!(asset(path), None, "{path}");
        }
    }

    #[test]
    fn the_tag_of_a_file_is_a_quoted_hash_of_its_contents() {
        let tags: BTreeSet<&str> = ASSETS.iter().map(|(_, asset)| asset.etag).collect();
        assert_eq!(tags.len(), FILES.len());
        for tag in tags {
            let digits = tag
                .strip_prefix('"')
                .and_then(|tag| tag.strip_suffix('"'))
                .unwrap();
            assert_eq!(digits.len(), 2 * ETAG_BYTES);
            assert!(digits.bytes().all(|byte| byte.is_ascii_hexdigit()), "{tag}");
        }
    }
}
