//! A file that an approval covers, and what is known about its content.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tenterhook_files::{
    Durability, HashingReader, UnfinishedFile, hex_digest, make_private, may_execute, open_itself,
    read_whole,
};

use crate::file_memory::{FileStamp, KnownFile};

/// A file that a hook names, or a file or link of a folder or package that an approval covers whole.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoveredFile {
    /// The path by which it is named. Relative to the project if the file is in it.
    pub path: PathBuf,
    /// The path of the file after following symbolic links.
    pub target: PathBuf,
    /// The SHA-256 of the bytes, in hexadecimal digits. Of a link, the SHA-256 of its path.
    pub sha256: String,
    /// The size in bytes. 0 for a link, and in older approvals.
    #[serde(default)]
    pub size: u64,
    /// Whether it may be executed.
    pub is_executable: bool,
    /// The path that the copy of a link contains, relative to the link. `None` for a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<PathBuf>,
    /// The file when it was last read. `None` if it was changed too recently to be recognised.
    #[serde(skip)]
    pub(crate) known: Option<KnownFile>,
    /// The content of a file that a hook names. Empty for the other files, which are too many to keep.
    #[serde(skip)]
    pub bytes: Arc<[u8]>,
}

impl CoveredFile {
    /// Opens the file at `path` and reads it once. `shown` is its path in messages and in the approval.
    pub fn read(path: &Path, shown: &Path) -> io::Result<Self> {
        let (bytes, is_executable) = read_whole(path)?;
        Ok(Self {
            path: shown.to_owned(),
            target: fs::canonicalize(path)?,
            sha256: hex_digest(&bytes),
            size: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
            is_executable,
            bytes: bytes.into(),
            ..Self::default()
        })
    }

    /// Reads a file of a folder that is covered whole: itself, not the target of a link. Also returns its text if it is
    /// at most `text_limit` bytes long. A file that grows beyond `limit` bytes is an error. `shown` is its path in the
    /// approval. It is known if it did not change while it was read, and not shortly before.
    pub(crate) fn scan(
        path: &Path,
        shown: PathBuf,
        limit: u64,
        text_limit: u64,
    ) -> io::Result<(Self, Option<String>)> {
        let grows = || io::Error::other("it grows while it is read");
        let (file, metadata) = open_itself(path)?;
        if metadata.len() > limit {
            return Err(grows());
        }
        let stamp = FileStamp::of(&metadata).and_then(FileStamp::if_stable);
        let mut bytes = Vec::new();
        let bounded = (&file).take(limit.saturating_add(1));
        let (sha256, size) = if metadata.len() <= text_limit {
            HashingReader::copy(bounded, &mut bytes)?
        } else {
            HashingReader::copy(bounded, &mut io::sink())?
        };
        if size > limit {
            return Err(grows());
        }
        let after = FileStamp::of(&file.metadata()?);
        let known = stamp.filter(|stamp| after == Some(*stamp));
        let file = Self {
            path: shown,
            target: path.to_owned(),
            size,
            is_executable: may_execute(&metadata),
            known: known.map(|stamp| KnownFile {
                stamp,
                sha256: sha256.clone(),
                imports: Vec::new(),
            }),
            sha256,
            ..Self::default()
        };
        Ok((file, String::from_utf8(bytes).ok()))
    }

    /// Returns the same file without its content.
    pub(crate) fn without_bytes(&self) -> Self {
        Self {
            bytes: Arc::default(),
            ..self.clone()
        }
    }

    /// Returns whether it belongs to an installed package.
    pub fn is_of_package(&self) -> bool {
        self.path.iter().any(|part| part == "node_modules")
    }

    /// Returns whether a copy is what was approved. Reads it.
    pub(crate) fn is_copy(&self, copy: &Path) -> bool {
        if let Some(link) = &self.link {
            return fs::read_link(copy).is_ok_and(|found| found == *link);
        }
        let opened = open_itself(copy);
        opened.is_ok_and(|(file, metadata)| {
            may_execute(&metadata) == self.is_executable
                && metadata.len() == self.size
                && HashingReader::copy(file, &mut io::sink())
                    .is_ok_and(|(sha256, _)| sha256 == self.sha256)
        })
    }

    /// Copies the file at `from`, or its bytes if it has them. Fails if the content is not what was approved.
    pub(crate) fn copy(&self, from: &Path, to: &Path) -> io::Result<()> {
        let dir = to.parent().unwrap_or(Path::new("."));
        make_private(dir)?;
        if let Some(link) = &self.link {
            return place_link(link, to);
        }
        let mut copy = UnfinishedFile::create(to)?;
        let (sha256, size) = if self.bytes.is_empty() {
            let (file, _) = open_itself(from)?;
            HashingReader::copy(file.take(self.size + 1), &mut copy)?
        } else {
            HashingReader::copy(&*self.bytes, &mut copy)?
        };
        if sha256 != self.sha256 || size != self.size {
            return Err(io::Error::other(
                "its content differs from what was approved",
            ));
        }
        // Read-only, so that a hook that tries to write to its approved file gets an error.
        copy.set_mode(if self.is_executable { 0o500 } else { 0o400 })?;
        // A copy is compared with what was approved before it runs.
        copy.replace(Durability::None)
    }
}

/// Creates a link. Replaces a file or link that is already there.
fn place_link(link: &Path, to: &Path) -> io::Result<()> {
    if fs::symlink_metadata(to).is_ok() {
        fs::remove_file(to)?;
    }
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(link, to)
    }
    #[cfg(not(unix))]
    {
        let problem = format!(
            "it is a link to `{}`, which is not supported here",
            link.display()
        );
        Err(io::Error::other(problem))
    }
}
