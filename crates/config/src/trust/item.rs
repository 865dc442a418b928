//! What is approved as one: a definition and the files that it runs.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use tenterhook::EventName;

use super::words::Named;

/// The largest file that is approved.
const FILE_LIMIT: u64 = 64 << 20;

/// Something that a repository brings and that is approved as one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The folder of the project, without symbolic links.
    pub project: PathBuf,
    /// The root of the repository that the project is in; without a repository the folder itself.
    pub root: PathBuf,
    /// The file that has the definition, below the project where it is.
    pub source: PathBuf,
    /// What the hook is called in that file.
    pub name: String,
    /// The whole definition, a line for each thing that it says.
    pub definition: String,
    /// The files that it runs, in the order in which it names them.
    pub files: Vec<ItemFile>,
    /// The text of the hook file that has the definition; `None` for executables and scripts.
    pub hook_text: Option<Arc<str>>,
    /// The words of its command and its variables that name files.
    pub(crate) named: Vec<Named>,
    /// The events that it says it is for; empty where that is not said before it runs.
    pub events: Vec<EventName>,
    /// Parts of a command line from which no file can be read off: whatever they run is not approved one by one.
    pub unread: Vec<String>,
}

/// A file that a hook runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemFile {
    /// The path as it is named, below the project where it is.
    pub path: PathBuf,
    /// Where that leads once symbolic links are followed.
    pub target: PathBuf,
    /// What it holds.
    pub bytes: Arc<[u8]>,
    /// It may be executed.
    pub is_executable: bool,
    /// The SHA-256 of the bytes, in hexadecimal digits.
    pub sha256: String,
}

impl ItemFile {
    /// Opens the file at `path` and reads it once. `shown` is the path for people.
    pub(crate) fn read(path: &Path, shown: &Path) -> io::Result<Self> {
        let (bytes, is_executable) = read_whole(path)?;
        Ok(Self {
            path: shown.to_owned(),
            target: std::fs::canonicalize(path)?,
            sha256: hex_digest(&bytes),
            bytes: bytes.into(),
            is_executable,
        })
    }
}

impl Item {
    /// Returns the same hook of a copy of the project in another folder.
    pub(crate) fn moved(mut self, here: &Path) -> Self {
        let below = self
            .project
            .strip_prefix(&self.root)
            .unwrap_or(Path::new(""));
        let root = here.ancestors().nth(below.components().count());
        let root = root.unwrap_or(here).to_owned();
        for file in &mut self.files {
            for path in [&mut file.path, &mut file.target] {
                if let Ok(below) = path.strip_prefix(&self.root) {
                    *path = root.join(below);
                }
            }
        }
        for named in &mut self.named {
            if let Ok(below) = named.path.strip_prefix(&self.root) {
                named.path = root.join(below);
            }
        }
        here.clone_into(&mut self.project);
        self.root = root;
        self
    }

    /// Returns what stands for the item as a whole: other items have other digests.
    pub fn digest(&self) -> String {
        let mut hash = Sha256::new();
        let mut field = |bytes: &[u8]| {
            // The length keeps two fields from being read as one.
            hash.update(u64::try_from(bytes.len()).unwrap_or(u64::MAX).to_le_bytes());
            hash.update(bytes);
        };
        field(b"tenterhook approval 1");
        field(self.project.as_os_str().as_encoded_bytes());
        field(self.source.as_os_str().as_encoded_bytes());
        field(self.name.as_bytes());
        field(self.definition.as_bytes());
        for file in &self.files {
            field(file.path.as_os_str().as_encoded_bytes());
            field(file.target.as_os_str().as_encoded_bytes());
            field(file.sha256.as_bytes());
            field(&[u8::from(file.is_executable)]);
        }
        hex(&hash.finalize())
    }
}

/// Reads a regular file through one descriptor, and says whether it may be executed.
pub(crate) fn read_whole(path: &Path) -> io::Result<(Vec<u8>, bool)> {
    let file = open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    if metadata.len() > FILE_LIMIT {
        return Err(io::Error::other("it is larger than 64 MiB"));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or_default() + 1);
    file.take(FILE_LIMIT + 1).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > FILE_LIMIT {
        return Err(io::Error::other("it is larger than 64 MiB"));
    }
    Ok((bytes, may_execute(&metadata)))
}

#[cfg(unix)]
fn open(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    // A pipe that stands where a file should be must not keep the load waiting.
    let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or_default();
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

#[cfg(not(unix))]
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).open(path)
}

#[cfg(unix)]
fn may_execute(metadata: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    metadata.permissions().mode() & 0o111 != 0
}

#[cfg(not(unix))]
fn may_execute(_metadata: &std::fs::Metadata) -> bool {
    true
}

/// Returns the SHA-256 of bytes in hexadecimal digits.
pub(crate) fn hex_digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            // Writing to a text does not fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item() -> Item {
        let file = ItemFile {
            path: "a.sh".into(),
            target: "/p/a.sh".into(),
            bytes: Arc::from(&b"x"[..]),
            is_executable: true,
            sha256: hex_digest(b"x"),
        };
        Item {
            project: "/p".into(),
            root: "/p".into(),
            source: "hooks.yaml".into(),
            name: "a".to_owned(),
            definition: "command: ./a.sh".to_owned(),
            files: vec![file],
            hook_text: None,
            named: Vec::new(),
            events: Vec::new(),
            unread: Vec::new(),
        }
    }

    #[test]
    fn whatever_is_different_gives_another_digest() {
        let changes: [fn(&mut Item); 9] = [
            |item| item.project = "/q".into(),
            |item| item.source = "hooks.toml".into(),
            |item| item.name = "b".to_owned(),
            |item| item.definition.push('!'),
            |item| item.files.clear(),
            |item| item.files[0].path = "b.sh".into(),
            |item| item.files[0].target = "/p/b.sh".into(),
            |item| item.files[0].sha256 = hex_digest(b"y"),
            |item| item.files[0].is_executable = false,
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let mut other = item();
            change(&mut other);
            assert_ne!(other.digest(), item().digest(), "{number}");
        }
        assert_eq!(item().digest(), item().digest());
    }

    #[test]
    fn a_hook_moves_with_its_repository() {
        let mut before = item();
        before.project = "/repo/sub".into();
        before.root = "/repo".into();
        before.files[0].path = "/repo/lib.sh".into();
        before.files[0].target = "/repo/sub/a.sh".into();
        let moved = before.moved(Path::new("/copy/of/sub"));
        assert_eq!(moved.project, Path::new("/copy/of/sub"));
        assert_eq!(moved.root, Path::new("/copy/of"));
        assert_eq!(moved.files[0].path, Path::new("/copy/of/lib.sh"));
        assert_eq!(moved.files[0].target, Path::new("/copy/of/sub/a.sh"));
    }

    #[test]
    fn fields_are_not_read_as_one() {
        let (mut one, mut other) = (item(), item());
        one.name = "ab".to_owned();
        one.definition = "c".to_owned();
        other.name = "a".to_owned();
        other.definition = "bc".to_owned();
        assert_ne!(one.digest(), other.digest());
    }
}
