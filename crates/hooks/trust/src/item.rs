//! The unit of approval: a hook's definition and the files that it runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use tenterhook_engine::EventName;
use tenterhook_files::hex;
use tenterhook_protocol::escape::escape_line;

use crate::copy_map::NamedPath;
use crate::covered_file::CoveredFile;
use crate::project::Project;

/// The position of a hook among the approved hooks of its file. They run in that order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HookOrder {
    /// All of them are in the approved order.
    #[default]
    AsApproved,
    /// This hook has moved relative to the approved order.
    Moved,
    /// Other hooks of its file have moved.
    NextToMoved,
}

/// A project hook with everything that one approval covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalItem {
    /// The folder of the project, without symbolic links.
    pub project: PathBuf,
    /// The root of the project's repository. Without a repository, the project folder itself.
    pub root: PathBuf,
    /// The file with the definition. Relative to the project if the file is in it.
    pub source: PathBuf,
    /// The name of the hook in that file.
    pub name: String,
    /// The whole definition, one line per setting.
    pub definition: String,
    /// The files that it runs, in the order in which it names them.
    pub files: Vec<CoveredFile>,
    /// The other files of a script's or an extension's folder, and the packages that an extension imports.
    pub covered: Vec<CoveredFile>,
    /// The text of the hook file with the definition. `None` for executables and scripts.
    pub hook_text: Option<Arc<str>>,
    /// The words of its command and its variables that name files.
    pub named: Vec<NamedPath>,
    /// The events that it declares. Empty if only running it would reveal them.
    pub events: Vec<EventName>,
    /// Notes about what the hook may run or read that the approval does not cover.
    pub unread: Vec<String>,
    /// Its position among the hooks of its file.
    pub order: HookOrder,
    /// Identifies the current version of its files if they were not read. Such an item cannot be approved:
    /// [`Trust::Review`](crate::Trust::Review) reads the files.
    pub unread_version: Option<String>,
}

impl ApprovalItem {
    /// Returns the name of the hook with its source. It is safe to print.
    pub fn shown_name(&self) -> String {
        escape_line(&format!("{} of {}", self.name, self.source.display()))
    }

    /// Describes a hook of a project whose definition and files were not read yet.
    pub fn new(project: &Project, source: PathBuf, name: String) -> Self {
        Self {
            project: project.dir.clone(),
            root: project.root.clone(),
            source,
            name,
            definition: String::new(),
            files: Vec::new(),
            covered: Vec::new(),
            hook_text: None,
            named: Vec::new(),
            events: Vec::new(),
            unread: Vec::new(),
            order: HookOrder::default(),
            unread_version: None,
        }
    }

    /// Returns whether the hook comes from this source: a hook file, or a file of a folder.
    pub fn is_from(&self, path: &Path) -> bool {
        let source = self.project.join(&self.source);
        path == source || path == source.join(&self.name)
    }

    /// Returns the same hook for a copy of the project in the folder `here`.
    pub(crate) fn moved(mut self, here: &Path) -> Self {
        let below = self
            .project
            .strip_prefix(&self.root)
            .unwrap_or(Path::new(""));
        let root = here.ancestors().nth(below.components().count());
        let root = root.unwrap_or(here).to_owned();
        let files = self.files.iter_mut().chain(&mut self.covered);
        let files = files.flat_map(|file| [&mut file.path, &mut file.target]);
        for path in files.chain(self.named.iter_mut().map(|named| &mut named.path)) {
            if let Ok(below) = path.strip_prefix(&self.root) {
                *path = root.join(below);
            }
        }
        here.clone_into(&mut self.project);
        self.root = root;
        self
    }

    /// Returns the digest of the whole item. Different items have different digests.
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
        for (place, file) in self.files.iter().chain(&self.covered).enumerate() {
            // The number separates the two lists. Approvals without covered files keep their digest.
            if place == self.files.len() {
                field(b"covered files");
                field(self.covered.len().to_string().as_bytes());
            }
            field(file.path.as_os_str().as_encoded_bytes());
            field(file.target.as_os_str().as_encoded_bytes());
            field(file.sha256.as_bytes());
            let kind = match file.link {
                Some(_) => 2,
                None => u8::from(file.is_executable),
            };
            field(&[kind]);
        }
        if let Some(version) = &self.unread_version {
            field(b"not read");
            field(version.as_bytes());
        }
        hex(&hash.finalize())
    }
}

#[cfg(test)]
mod tests {
    use tenterhook_files::hex_digest;

    use super::*;

    fn file(path: &str, bytes: &[u8], is_executable: bool) -> CoveredFile {
        CoveredFile {
            path: path.into(),
            target: Path::new("/p").join(path),
            sha256: hex_digest(bytes),
            size: 1,
            is_executable,
            ..CoveredFile::default()
        }
    }

    fn item() -> ApprovalItem {
        let project = Project {
            dir: "/p".into(),
            root: "/p".into(),
        };
        ApprovalItem {
            definition: "command: ./a.sh".to_owned(),
            files: vec![file("a.sh", b"x", true)],
            covered: vec![file("b.md", b"z", false)],
            ..ApprovalItem::new(&project, "hooks.yaml".into(), "a".to_owned())
        }
    }

    #[test]
    fn whatever_is_different_gives_another_digest() {
        type Change = (&'static str, fn(&mut ApprovalItem));
        let changes: [Change; 17] = [
            ("not read", |item| item.unread_version = Some(String::new())),
            ("project", |item| item.project = "/q".into()),
            ("source", |item| item.source = "hooks.toml".into()),
            ("name", |item| item.name = "b".to_owned()),
            ("definition", |item| item.definition.push('!')),
            ("no file", |item| item.files.clear()),
            ("path", |item| item.files[0].path = "b.sh".into()),
            ("target", |item| item.files[0].target = "/p/b.sh".into()),
            ("bytes", |item| item.files[0].sha256 = hex_digest(b"y")),
            ("mode", |item| item.files[0].is_executable = false),
            ("no covered file", |item| item.covered.clear()),
            ("covered path", |item| item.covered[0].path = "c.md".into()),
            ("covered target", |item| {
                item.covered[0].target = "/p/c.md".into();
            }),
            ("covered bytes", |item| {
                item.covered[0].sha256 = hex_digest(b"y");
            }),
            ("link", |item| item.covered[0].link = Some("c.md".into())),
            ("a file that moves to the covered files", |item| {
                let file = item.files.remove(0);
                item.covered.insert(0, file);
            }),
            ("fields that are read as one", |item| {
                item.definition = item.definition.split_off(1);
                item.name.push('c');
            }),
        ];
        for (name, change) in changes {
            let mut other = item();
            change(&mut other);
            assert_ne!(other.digest(), item().digest(), "{name}");
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
        before.covered[0].path = "/repo/h/b.md".into();
        let moved = before.moved(Path::new("/copy/of/sub"));
        assert_eq!(moved.project, Path::new("/copy/of/sub"));
        assert_eq!(moved.root, Path::new("/copy/of"));
        assert_eq!(moved.files[0].path, Path::new("/copy/of/lib.sh"));
        assert_eq!(moved.files[0].target, Path::new("/copy/of/sub/a.sh"));
        assert_eq!(moved.covered[0].path, Path::new("/copy/of/h/b.md"));
    }
}
