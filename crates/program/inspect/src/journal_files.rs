//! Reads journals from files.
//!
//! A hook run has no time of its own: the time is in the record of its dispatch, which follows. Records of several files
//! are therefore merged in blocks, and a block is never torn apart.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use jiff::Timestamp;
use tenterhook_engine::journal::JournalRecord;
use thiserror::Error;

use crate::record_log::{LogLimits, RecordLog};

/// The maximum length of a line. Longer lines are not journal records.
const MAX_LINE: usize = 4 << 20;

/// The maximum number of hook runs that wait for the record of their dispatch.
const MAX_RUNS: usize = 10_000;

/// A journal that cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum JournalFileError {
    /// The path is not a file.
    #[error("`{}` is a {found}, expected a journal: a file with one JSON object per line", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
        /// What it is.
        found: &'static str,
    },
    /// The file cannot be opened or read.
    #[error("cannot read the journal `{}`", path.display())]
    Unreadable {
        /// The path.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

/// Reads journals and merges their records by time. It blocks. Lines that are not journal records are counted, and so
/// are records beyond the limits, of which the oldest are left out.
///
/// # Errors
///
/// Fails if a path is not a file or cannot be read.
pub fn read_journals(paths: &[PathBuf], limits: LogLimits) -> Result<RecordLog, JournalFileError> {
    let mut merge = Merge::new(limits);
    for path in paths {
        let failed = |source| JournalFileError::Unreadable {
            path: path.clone(),
            source,
        };
        let mut reader = BufReader::new(open(path)?);
        merge.read(&mut reader).map_err(failed)?;
    }
    Ok(merge.finish())
}

/// Opens a file. Anything else is refused before it is opened, because opening a FIFO waits for a writer.
fn open(path: &Path) -> Result<File, JournalFileError> {
    let failed = |source| JournalFileError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let kind = std::fs::metadata(path).map_err(failed)?.file_type();
    if !kind.is_file() {
        return Err(JournalFileError::NotAFile {
            path: path.to_owned(),
            found: describe(kind),
        });
    }
    File::open(path).map_err(failed)
}

fn describe(kind: std::fs::FileType) -> &'static str {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt as _;
        if kind.is_fifo() {
            return "FIFO";
        }
        if kind.is_socket() {
            return "socket";
        }
    }
    if kind.is_dir() { "folder" } else { "device" }
}

/// Records that stay together: a dispatch with its runs, or a single record.
struct Block {
    time: Timestamp,
    lines: Vec<Bytes>,
    bytes: usize,
}

struct Merge {
    limits: LogLimits,
    blocks: Vec<Block>,
    records: usize,
    bytes: usize,
    unreadable: u64,
    dropped: u64,
}

impl Merge {
    fn new(limits: LogLimits) -> Self {
        Self {
            limits,
            blocks: Vec::new(),
            records: 0,
            bytes: 0,
            unreadable: 0,
            dropped: 0,
        }
    }

    fn read(&mut self, reader: &mut impl BufRead) -> io::Result<()> {
        let mut runs = Vec::new();
        let mut time = Timestamp::MIN;
        let mut line = Vec::new();
        while next_line(reader, &mut line)? {
            let text = line.trim_ascii();
            if text.is_empty() {
                continue;
            }
            let record = (line.len() <= MAX_LINE)
                .then(|| serde_json::from_slice::<JournalRecord>(text).ok())
                .flatten();
            let Some(record) = record else {
                self.unreadable += 1;
                continue;
            };
            runs.push(Bytes::copy_from_slice(text));
            let ended = time_of(&record);
            time = ended.unwrap_or(time);
            if ended.is_some() || runs.len() >= MAX_RUNS {
                self.push(time, std::mem::take(&mut runs));
            }
        }
        // The file was cut off before the record of their dispatch.
        if !runs.is_empty() {
            self.push(time, runs);
        }
        Ok(())
    }

    fn push(&mut self, time: Timestamp, lines: Vec<Bytes>) {
        let bytes = lines.iter().map(Bytes::len).sum();
        self.records += lines.len();
        self.bytes += bytes;
        self.blocks.push(Block { time, lines, bytes });
        // Twice the limits, so that the blocks are sorted seldom.
        if self.records / 2 > self.limits.records || self.bytes / 2 > self.limits.bytes {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        self.blocks.sort_by_key(|block| block.time);
        let (mut records, mut bytes) = (self.records, self.bytes);
        let is_too_much = |block: &Block| {
            let is_excess = records > self.limits.records || bytes > self.limits.bytes;
            if is_excess {
                records -= block.lines.len();
                bytes -= block.bytes;
            }
            is_excess
        };
        let excess = self.blocks.iter().map(is_too_much);
        let count = excess.take_while(|is_excess| *is_excess).count();
        self.blocks.drain(..count);
        self.dropped += (self.records - records) as u64;
        (self.records, self.bytes) = (records, bytes);
    }

    fn finish(mut self) -> RecordLog {
        self.drop_oldest();
        let log = RecordLog::new(self.limits, 1);
        log.count_left_out(self.unreadable, self.dropped);
        log.append(self.blocks.into_iter().flat_map(|block| block.lines));
        log
    }
}

/// Reads the next line into `line`, without its end. Of a line that is too long, only the beginning is kept. Returns
/// whether there was one.
fn next_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    let limit = MAX_LINE as u64 + 1;
    if reader.by_ref().take(limit).read_until(b'\n', line)? == 0 {
        return Ok(false);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    } else if line.len() > MAX_LINE {
        reader.skip_until(b'\n')?;
    }
    Ok(true)
}

/// Returns when something happened. Hook runs have no time.
fn time_of(record: &JournalRecord) -> Option<Timestamp> {
    match record {
        JournalRecord::Dispatch(dispatch) => Some(dispatch.timestamp),
        JournalRecord::Source(source) => Some(source.timestamp),
        JournalRecord::Exception(exception) => Some(exception.timestamp),
        JournalRecord::Output(output) => Some(output.timestamp),
        JournalRecord::ModelCall(call) => Some(call.timestamp),
        JournalRecord::Host(host) => Some(host.timestamp),
        JournalRecord::Reload(reload) => Some(reload.timestamp),
        JournalRecord::Run(_) | _ => None,
    }
}

#[cfg(test)]
mod tests {
    use tenterhook_engine::event::TurnStart;
    use tenterhook_engine::{Engine, MemoryJournal, Origin};

    use super::*;

    const LIMITS: LogLimits = LogLimits {
        records: 1000,
        bytes: 1 << 20,
    };

    /// Returns the two lines of a dispatch with one hook that began in this second.
    async fn dispatch(second: i64) -> String {
        let memory = std::sync::Arc::new(MemoryJournal::new());
        let engine = Engine::builder().journal(memory.clone()).build();
        engine.on(|_: &TurnStart| ());
        let _outcome = engine
            .dispatcher(Origin::default())
            .dispatch(TurnStart::default())
            .await;
        let mut records = memory.take();
        if let Some(JournalRecord::Dispatch(dispatch)) = records.last_mut() {
            dispatch.timestamp = Timestamp::from_second(second).unwrap();
            dispatch.reason = Some(format!("second {second}"));
        }
        let lines = records.iter().map(|it| serde_json::to_string(it).unwrap());
        lines.map(|line| line + "\n").collect()
    }

    fn read(texts: &[&[u8]], limits: LogLimits) -> RecordLog {
        let folder = tempfile::tempdir().unwrap();
        let paths = texts.iter().enumerate().map(|(at, text)| {
            let path = folder.path().join(format!("{at}.jsonl"));
            std::fs::write(&path, text).unwrap();
            path
        });
        read_journals(&paths.collect::<Vec<_>>(), limits).unwrap()
    }

    fn text_of(log: &RecordLog) -> String {
        let lines = log.after(None, usize::MAX).lines;
        let lines = lines.iter().map(|line| std::str::from_utf8(line).unwrap());
        lines.flat_map(|line| [line, "\n"]).collect()
    }

    #[tokio::test]
    async fn records_of_several_files_are_merged_by_time_and_dispatches_stay_whole() {
        let [one, two, three, four] = [
            dispatch(1).await,
            dispatch(2).await,
            dispatch(3).await,
            dispatch(4).await,
        ];
        let (a, b) = (format!("{one}{four}"), format!("{two}{three}"));
        let log = read(&[a.as_bytes(), b.as_bytes()], LIMITS);
        assert_eq!(text_of(&log), format!("{one}{two}{three}{four}"));
        assert_eq!(log.counts().unreadable, 0);
    }

    #[tokio::test]
    async fn lines_that_are_not_records_are_counted_and_skipped() {
        let (one, two) = (dispatch(1).await, dispatch(2).await);
        let (torn, _) = two.split_at(two.len() - 40);
        let junk = "not JSON\n{\"record\": \"new_kind\"}\n[1]\n\n\0\0\n";
        let text = [
            one.as_bytes(),
            junk.as_bytes(),
            b"\xff\xfe\n",
            torn.as_bytes(),
        ]
        .concat();
        let log = read(&[&text], LIMITS);
        // The run of the second dispatch is complete; the dispatch is not.
        assert_eq!(log.counts().kept, 3);
        assert_eq!(log.counts().unreadable, 6);
        assert!(text_of(&log).starts_with(&one));
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_skipped() {
        let one = dispatch(1).await;
        let noise = "x".repeat(MAX_LINE + 10);
        let text = format!("{noise}\n{one}{noise}");
        let log = read(&[text.as_bytes()], LIMITS);
        assert_eq!((log.counts().kept, log.counts().unreadable), (2, 2));
    }

    #[tokio::test]
    async fn only_the_newest_records_are_kept_whatever_their_file() {
        let mut texts = [String::new(), String::new()];
        for second in 0..100 {
            let place = usize::try_from(second % 2).unwrap();
            texts[place].push_str(&dispatch(second).await);
        }
        let limits = LogLimits {
            records: 6,
            ..LIMITS
        };
        let log = read(&[texts[0].as_bytes(), texts[1].as_bytes()], limits);
        assert_eq!((log.counts().kept, log.counts().dropped), (6, 194));
        let text = text_of(&log);
        let seconds = [97, 98, 99].map(|second| text.find(&format!("second {second}")).unwrap());
        assert!(seconds.is_sorted(), "{text}");
    }

    // I4
    #[tokio::test]
    async fn a_hundred_thousand_records_keep_their_order() {
        let mut text = String::new();
        let one = dispatch(0).await;
        for second in 0..50_000 {
            let reason = format!("second {second}");
            text.push_str(&one.replace("second 0", &reason));
        }
        let limits = LogLimits {
            records: 200_000,
            bytes: 1 << 30,
        };
        let log = read(&[text.as_bytes()], limits);
        assert_eq!(log.counts().kept, 100_000);
        assert!(text_of(&log) == text, "the order is another one");
    }

    #[test]
    fn an_empty_file_has_no_records() {
        assert_eq!(read(&[b""], LIMITS).counts().kept, 0);
        assert_eq!(read(&[b"\n\r\n  \n"], LIMITS).counts().unreadable, 0);
    }

    #[test]
    fn a_path_that_is_not_a_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let error = read_journals(&[folder.path().to_owned()], LIMITS).unwrap_err();
        assert!(error.to_string().contains("is a folder"), "{error}");
        let missing = folder.path().join("missing.jsonl");
        let error = read_journals(&[missing], LIMITS).unwrap_err();
        assert!(error.to_string().starts_with("cannot read"), "{error}");
    }
}
