//! Records as a file: a journal, or the page with the records in it.

use std::ops::Deref;
use std::sync::{Arc, LazyLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{Bytes, BytesMut};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::page::{self, INDEX};
use crate::record_log::RecordLog;

/// The size of the pieces in which records are written, in bytes.
const CHUNK: usize = 64 << 10;

/// Returns all records as a journal, in pieces. It keeps no records: those that the log drops before they are read are
/// left out.
pub fn export_jsonl<L>(log: L) -> impl Iterator<Item = Bytes> + Send
where
    L: Deref<Target = RecordLog> + Send,
{
    let newest = log.newest();
    let mut position = log.after(None, 0).position;
    std::iter::from_fn(move || {
        if position >= newest {
            return None;
        }
        let piece = Piece::after(&log, Some(position), usize::MAX);
        position = piece.last;
        (!piece.text.is_empty()).then_some(piece.text)
    })
}

/// Returns the page with all records as one file, in pieces. It loads nothing, and no text of a record can become HTML
/// or code. Like [`export_jsonl`], it keeps no records.
pub fn export_html<L>(log: L) -> impl Iterator<Item = Bytes> + Send
where
    L: Deref<Target = RecordLog> + Send,
{
    let page = &*SELF_CONTAINED;
    let records = export_jsonl(log).map(|chunk| without_markup(&chunk));
    [page.before.as_str(), RECORDS_START]
        .map(|text| Bytes::from_static(text.as_bytes()))
        .into_iter()
        .chain(records)
        .chain([RECORDS_END, page.after.as_str()].map(|text| Bytes::from_static(text.as_bytes())))
}

/// The maximum number of records of a piece.
const MAX_OF_PIECE: usize = 256;

/// Consecutive records as lines, of about 64 KiB together.
struct Piece {
    text: Bytes,
    /// The position before the first of them.
    before: u64,
    /// The position of the last of them.
    last: u64,
}

impl Piece {
    /// Reads at most `max` records after a position.
    fn after(log: &RecordLog, position: Option<u64>, max: usize) -> Self {
        let slice = log.after(position, max.min(MAX_OF_PIECE));
        let before = slice.position - slice.lines.len() as u64;
        let (mut text, mut last) = (BytesMut::new(), before);
        for line in &slice.lines {
            text.extend_from_slice(line);
            text.extend_from_slice(b"\n");
            last += 1;
            if text.len() >= CHUNK {
                break;
            }
        }
        Self {
            text: text.freeze(),
            before,
            last,
        }
    }
}

/// The log has dropped records before they were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("records were dropped before they were read")]
pub(crate) struct RecordsDropped;

/// Returns at most `max` records after a position as lines, in pieces, and the position of the last of them. It keeps no
/// records, so it ends with an error if the log drops some of them before they are read.
pub(crate) fn lines_after(
    log: Arc<RecordLog>,
    position: Option<u64>,
    max: usize,
) -> (
    u64,
    impl Iterator<Item = Result<Bytes, RecordsDropped>> + Send,
) {
    // The oldest record may be dropped at any time, so the first piece is read now.
    let first = Piece::after(&log, position, max);
    let end = first.before.saturating_add(max as u64);
    let end = end.min(log.newest()).max(first.last);
    let mut position = first.before;
    let mut first = Some(first);
    let pieces = std::iter::from_fn(move || {
        let rest = end.checked_sub(position).filter(|rest| *rest > 0)?;
        let rest = usize::try_from(rest).unwrap_or(usize::MAX);
        let piece = first.take();
        let piece = piece.unwrap_or_else(|| Piece::after(&log, Some(position), rest));
        if piece.before != position || piece.text.is_empty() {
            position = end;
            return Some(Err(RecordsDropped));
        }
        position = piece.last;
        Some(Ok(piece.text))
    });
    (end, pieces)
}

const RECORDS_START: &str = "<script type=\"application/x-ndjson\" id=\"records\">\n";
const RECORDS_END: &str = "</script>\n";

/// Writes each `<` as `\u003c`. In JSON it occurs only within texts, and without it nothing ends the element.
fn without_markup(json: &[u8]) -> Bytes {
    let mut escaped = BytesMut::with_capacity(json.len());
    for (at, part) in json.split(|byte| *byte == b'<').enumerate() {
        if at > 0 {
            escaped.extend_from_slice(b"\\u003c");
        }
        escaped.extend_from_slice(part);
    }
    escaped.freeze()
}

/// The page with all of its files, in the parts before and after the records.
struct SelfContained {
    before: String,
    after: String,
}

static SELF_CONTAINED: LazyLock<SelfContained> = LazyLock::new(|| {
    let index = page::file(INDEX).map_or("", |file| file.text);
    let mut builder = Inliner::default();
    let html = builder.inline(index);
    let policy = format!("<meta charset=\"utf-8\">\n{}", builder.policy());
    let html = html.replacen("<meta charset=\"utf-8\">", &policy, 1);
    let (before, after) = html.split_once("</body>").unwrap_or((&html, ""));
    SelfContained {
        before: before.to_owned(),
        after: format!("</body>{after}"),
    }
});

/// Replaces references to files with the files.
#[derive(Default)]
struct Inliner {
    /// The hashes of scripts, as they are written in a policy.
    scripts: Vec<String>,
    styles: Vec<String>,
    has_modules: bool,
}

impl Inliner {
    fn inline(&mut self, html: &str) -> String {
        let mut parts = html.split('<');
        let mut inlined = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (tag, rest) = part.split_once('>').unwrap_or((part, ""));
            match self.replacement(tag) {
                Some(replacement) => inlined.push_str(&replacement),
                None if tag == "/script" => {}
                None => {
                    inlined.push('<');
                    inlined.push_str(tag);
                    inlined.push('>');
                }
            }
            inlined.push_str(rest);
        }
        inlined
    }

    /// Returns what replaces a tag that refers to a file.
    fn replacement(&mut self, tag: &str) -> Option<String> {
        let named = |name| {
            let path = attribute(tag, name)?;
            page::file(path.rsplit('/').next()?)
        };
        if tag.starts_with("link ") {
            if attribute(tag, "rel") != Some("stylesheet") {
                // Icons: a file has none.
                return Some(String::new());
            }
            let style = named("href")?.text;
            self.styles.push(hash(style));
            return Some(format!("<style>{style}</style>"));
        }
        if !tag.starts_with("script ") {
            return None;
        }
        let file = named("src")?;
        if attribute(tag, "type") != Some("module") {
            return Some(self.script("", file.text));
        }
        let import = self.script(
            " type=\"module\"",
            &format!("import '{MODULES}{}';", file.name),
        );
        if std::mem::replace(&mut self.has_modules, true) {
            return Some(import);
        }
        let map = self.script(" type=\"importmap\"", &import_map());
        Some(map + &import)
    }

    fn script(&mut self, attributes: &str, text: &str) -> String {
        self.scripts.push(hash(text));
        format!("<script{attributes}>{text}</script>")
    }

    /// Returns a policy that allows these scripts and styles, and nothing else. Modules are `data:` addresses.
    fn policy(&self) -> String {
        let (scripts, styles) = (self.scripts.join(" "), self.styles.join(" "));
        format!(
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
             script-src data: {scripts}; style-src {styles}; img-src data:; base-uri 'none'; \
             form-action 'none'\">"
        )
    }
}

/// What the names of modules begin with. A relative name has no meaning in a module without an address.
const MODULES: &str = "inspect/";

/// Maps the names of modules to their contents.
fn import_map() -> String {
    let modules = page::files()
        .iter()
        .filter(|file| has_type(file.name, "js"));
    let names: Vec<&str> = modules.clone().map(|file| file.name).collect();
    let imports: Map<String, Value> = modules
        .map(|file| {
            let text = names.iter().fold(file.text.to_owned(), |text, name| {
                let absolute = format!("'{MODULES}{name}'");
                text.replace(&format!("'./{name}'"), &absolute)
            });
            let address = format!("data:text/javascript;base64,{}", STANDARD.encode(text));
            (format!("{MODULES}{}", file.name), address.into())
        })
        .collect();
    json!({ "imports": imports }).to_string()
}

fn has_type(name: &str, extension: &str) -> bool {
    name.rsplit_once('.')
        .is_some_and(|(_, found)| found == extension)
}

/// Returns the value of an attribute in double quotes.
fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let (_, value) = tag.split_once(&format!(" {name}=\""))?;
    value.split('"').next()
}

fn hash(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)))
}

#[cfg(test)]
mod tests {
    use crate::record_log::LogLimits;

    use super::*;

    fn exported(lines: &[&'static str]) -> String {
        let log = RecordLog::new(LogLimits::FILES, 1);
        log.append(lines.iter().map(|line| Bytes::from_static(line.as_bytes())));
        let chunks: Vec<Bytes> = export_html(&log).collect();
        String::from_utf8(chunks.concat()).unwrap()
    }

    // I5
    #[test]
    fn no_text_of_a_record_becomes_html_or_code() {
        let line = r#"{"reason":"</script><img src=x onerror=alert(1)><!--<script>"}"#;
        let html = exported(&[line]);
        let (_, records) = html.split_once(RECORDS_START).unwrap();
        let (records, after) = records.split_once("</script>").unwrap();
        assert!(!records.contains('<'), "{records}");
        assert_eq!(
            serde_json::from_str::<Value>(records).unwrap(),
            serde_json::from_str::<Value>(line).unwrap()
        );
        assert!(!after.contains("onerror"));
    }

    #[test]
    fn an_exported_page_refers_to_no_file() {
        let html = exported(&[]);
        for reference in [" src=", " href=\"/inspect", "<link", "'./"] {
            assert!(!html.contains(reference), "{reference}");
        }
        assert!(html.contains("Content-Security-Policy"));
        assert!(html.trim_end().ends_with("</html>"));
    }

    /// Text within these elements ends at their end tag, wherever it is.
    #[test]
    fn no_file_of_the_page_ends_its_element_early() {
        for file in page::files().iter().filter(|file| file.name != INDEX) {
            for end in ["</script", "</style", "<!--"] {
                assert!(!file.text.contains(end), "{}: {end}", file.name);
            }
        }
    }

    /// A client that reads slowly must not keep what the log has dropped.
    #[test]
    fn a_slow_reader_keeps_no_dropped_records_alive() {
        let limits = LogLimits {
            records: 1000,
            bytes: 64 << 20,
        };
        let log = Arc::new(RecordLog::new(limits, 1));
        let old: Vec<Bytes> = (0..1000).map(|_| Bytes::from(vec![b'1'; 1000])).collect();
        log.append(old.iter().cloned());
        let mut journal = export_jsonl(Arc::clone(&log));
        let (end, mut lines) = lines_after(Arc::clone(&log), None, 500);
        assert_eq!(end, 500);
        assert!(journal.next().is_some() && lines.next().unwrap().is_ok());
        log.append(std::iter::repeat_n(Bytes::from_static(b"2"), 1000));
        assert!(old.iter().all(Bytes::is_unique));
        assert_eq!(lines.next(), Some(Err(RecordsDropped)));
        assert_eq!(lines.next(), None);
        assert!(journal.map(|piece| piece.len()).sum::<usize>() <= 2000);
    }

    #[test]
    fn records_that_arrive_later_are_not_added_to_an_answer() {
        let log = Arc::new(RecordLog::new(LogLimits::LIVE, 1));
        log.append(["1", "2", "3"].map(|line| Bytes::from_static(line.as_bytes())));
        let (end, lines) = lines_after(Arc::clone(&log), Some(1), 10);
        log.append([Bytes::from_static(b"4")]);
        let lines: Vec<Bytes> = lines.map(Result::unwrap).collect();
        assert_eq!((end, lines.concat()), (3, b"2\n3\n".to_vec()));
        let (end, mut none) = lines_after(log, Some(4), 10);
        assert!(end == 4 && none.next().is_none());
    }

    #[test]
    fn large_logs_are_written_in_pieces() {
        let line = Bytes::from(vec![b'1'; 1000]);
        let log = RecordLog::new(LogLimits::FILES, 1);
        log.append(std::iter::repeat_n(line, 1000));
        let chunks: Vec<Bytes> = export_jsonl(&log).collect();
        assert!(chunks.len() > 10 && chunks.iter().all(|chunk| chunk.len() < 2 * CHUNK));
        assert_eq!(chunks.concat().len(), 1001 * 1000);
    }
}
