//! The gateway's copies of files that people, hooks and tools send.
//!
//! A copy belongs to one chat. Its id is its only name on the disk, so that no sender chooses a path.

mod part_content;
mod sniff;

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tenterhook_files::{Durability, UnfinishedFile, close_to_others};
use tenterhook_protocol::event::MessagePart;
use thiserror::Error;
use uuid::Uuid;

pub use self::sniff::kind_of_bytes;

use self::part_content::{Content, Sources};
use self::sniff::sniff;
use crate::chat::ChatRef;
use crate::frame::Media;
use crate::labels::clean_label;
use crate::message::MediaKind;
use crate::publisher::SavedMedia;

/// The folder in the state folder with the files that people sent.
pub const MEDIA_FOLDER: &str = "media";

/// The maximum size of a file in bytes.
pub const MAX_MEDIA: usize = 20 * 1024 * 1024;

/// How long an incomplete copy is left alone, because it may still be written.
const MAX_WRITING: Duration = Duration::from_hours(1);

/// What is next to each copy: all that is known about it.
const RECORD: &str = "meta";

/// Why there is no copy of a file.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MediaError {
    /// The file is too large.
    #[error("the file has {size} bytes; the limit is {limit}")]
    TooLarge {
        /// Its size in bytes.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// The folder is full.
    #[error("there is no room for more files; try again later")]
    Full,
    /// The folder cannot be used.
    #[error("cannot use the media folder: {cause}")]
    Io {
        /// What happened.
        cause: String,
    },
}

impl From<io::Error> for MediaError {
    fn from(error: io::Error) -> Self {
        Self::Io {
            cause: error.to_string(),
        }
    }
}

/// The folder with the copies. Clones use the same folder.
#[derive(Debug, Clone)]
pub struct MediaFolder(Arc<Folder>);

impl MediaFolder {
    /// Opens the folder, or creates it. Only its owner can read it. It blocks.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be created or read.
    pub fn open(folder: &Path) -> Result<Self, MediaError> {
        Self::open_with(folder, None, Limits::default())
    }

    /// Opens the folder `media` of the gateway's state, or creates it. Other files of the state are never copied, so that
    /// no part sends the store. It blocks.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be created or read.
    pub fn open_in_state(state: &Path) -> Result<Self, MediaError> {
        Self::open_with(&state.join(MEDIA_FOLDER), Some(state), Limits::default())
    }

    fn open_with(folder: &Path, state: Option<&Path>, limits: Limits) -> Result<Self, MediaError> {
        close_to_others(folder)?;
        let path = fs::canonicalize(folder)?;
        let used = Used::of(list(&path)?.values());
        Ok(Self(Arc::new(Folder {
            path,
            state: state.map(fs::canonicalize).transpose()?,
            limits,
            used: Mutex::new(used),
        })))
    }

    /// Keeps a copy of a file for a chat.
    ///
    /// The media type is read from the bytes. A file whose bytes are not of the kind that was said becomes a
    /// [`MediaKind::File`]. `name` is shown and never used as a path.
    ///
    /// # Errors
    ///
    /// Fails if the file is larger than [`MAX_MEDIA`], or if there is no room: in the folder, or in the quarter of it that
    /// one person may fill. Then nothing is left of it.
    pub async fn save(
        &self,
        bytes: Vec<u8>,
        kind: MediaKind,
        name: Option<String>,
        owner: &ChatRef,
    ) -> Result<SavedMedia, MediaError> {
        let owner = owner.clone();
        self.blocking(move |folder| folder.save(&bytes, kind, name.as_deref(), owner))
            .await?
    }

    /// Returns the copy with an id, if it belongs to a chat.
    pub async fn find(&self, id: &str, chat: &ChatRef) -> Option<SavedMedia> {
        let chat = chat.clone();
        self.find_owned(id, move |owner| *owner == chat).await
    }

    /// Returns the copy with an id, if `is_owner` is true for the chat that it belongs to.
    pub async fn find_owned(
        &self,
        id: &str,
        is_owner: impl Fn(&ChatRef) -> bool + Send + 'static,
    ) -> Option<SavedMedia> {
        let id = id.to_owned();
        let found = self
            .blocking(move |folder| folder.find(&id, is_owner))
            .await;
        found.ok().flatten()
    }

    /// Removes the copy with an id, if it belongs to a chat. Call it only for a copy that nothing refers to.
    pub async fn discard(&self, id: &str, chat: &ChatRef) {
        let (id, chat) = (id.to_owned(), chat.clone());
        // A copy that stays is removed when it is old.
        self.blocking(move |folder| folder.discard(&id, &chat))
            .await
            .ok();
    }

    /// Keeps a copy of a part that a hook or a tool added. Its `data` is base64, or the path of a regular file that is in
    /// one of the `allowed` folders after all links are followed. A relative path begins in one of these folders. It can
    /// also be a copy of the same chat.
    ///
    /// # Errors
    ///
    /// Describes the part and what is wrong with it.
    pub async fn import_part(
        &self,
        part: &MessagePart,
        allowed: &[PathBuf],
        owner: &ChatRef,
    ) -> Result<SavedMedia, String> {
        let kind = match part.kind.as_str() {
            "audio" => MediaKind::Audio,
            "image" => MediaKind::Image,
            "file" => MediaKind::File,
            other => {
                let kind = clean_label(other);
                return Err(format!(
                    "the part `{kind}` cannot be sent; expected audio, image or file"
                ));
            }
        };
        let name = part.metadata.get("name").and_then(|name| name.as_str());
        let name = name.map(str::to_owned);
        let described = match &name {
            Some(name) => format!("the {} part `{}`", kind.word(), clean_label(name)),
            None => format!("the {} part", kind.word()),
        };
        let Some(data) = part.data.clone() else {
            return Err(format!(
                "{described} has no data; expected base64 or the path of a file"
            ));
        };
        let (allowed, owner) = (allowed.to_vec(), owner.clone());
        let imported =
            self.blocking(move |folder| folder.import(&data, &allowed, kind, name, owner));
        match imported.await {
            Ok(imported) => imported.map_err(|error| format!("{described} {error}")),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Removes copies that are too old, unless `is_in_use` says that someone needs the id. To make room, also removes
    /// copies that are older than a day, the oldest first: of a person whose part of the folder is more than three quarters
    /// full, and if the whole folder is that full, of everyone who has an equal part or more. Returns how many were removed.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be read.
    pub async fn sweep(
        &self,
        is_in_use: &(dyn Fn(&str) -> bool + Sync),
    ) -> Result<usize, MediaError> {
        let copies = self.blocking(|folder| list(&folder.path)).await??;
        let limits = self.0.limits;
        let now = SystemTime::now();
        let mut used = Used::of(copies.values());
        let mut oldest_first: Vec<(String, Copy)> = copies.into_iter().collect();
        oldest_first.sort_by_key(|(_, copy)| copy.changed);
        let mut removed = Vec::new();
        for (id, copy) in oldest_first {
            let age = now.duration_since(copy.changed).unwrap_or_default();
            let max_age = if copy.is_complete() {
                limits.age
            } else {
                MAX_WRITING
            };
            let is_over = used.is_over(&copy.holder, limits) && age > limits.young;
            if (age > max_age || is_over && copy.is_complete()) && !is_in_use(&id) {
                used.release(&copy.holder, copy.size);
                removed.push(copy);
            }
        }
        let count = removed.len();
        self.blocking(move |folder| folder.remove(&removed)).await?;
        Ok(count)
    }

    /// Runs work on a thread for work that blocks.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Folder) -> T + Send + 'static,
    ) -> Result<T, MediaError> {
        let folder = Arc::clone(&self.0);
        tokio::task::spawn_blocking(move || work(&folder))
            .await
            .map_err(|error| io::Error::other(error).into())
    }
}

/// How much is kept, and how long.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// The maximum size of a file in bytes.
    file: u64,
    /// The maximum size of all files in bytes.
    folder: u64,
    /// How long a file is kept.
    age: Duration,
    /// How long a file is kept also if there is little room. No answer waits longer until it is sent.
    young: Duration,
}

impl Limits {
    /// Returns how much one person may fill.
    fn share(&self) -> u64 {
        self.folder / 4
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            file: MAX_MEDIA as u64,
            folder: 1024 * 1024 * 1024,
            age: Duration::from_hours(7 * 24),
            young: Duration::from_hours(24),
        }
    }
}

/// What is stored next to a copy.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    media: Media,
    owner: ChatRef,
    extension: String,
}

#[derive(Debug)]
struct Folder {
    /// Without links.
    path: PathBuf,
    /// The folder of the gateway's state, without links.
    state: Option<PathBuf>,
    limits: Limits,
    used: Mutex<Used>,
}

/// The size of copies in bytes, including those that are being written: of all, and of each person.
#[derive(Debug, Default)]
struct Used {
    total: u64,
    of: HashMap<String, u64>,
}

impl Used {
    fn of<'a>(copies: impl IntoIterator<Item = &'a Copy>) -> Self {
        let mut used = Self::default();
        for copy in copies {
            used.reserve(&copy.holder, copy.size);
        }
        used
    }

    fn held_by(&self, holder: &str) -> u64 {
        self.of.get(holder).copied().unwrap_or_default()
    }

    fn reserve(&mut self, holder: &str, size: u64) {
        self.total += size;
        *self.of.entry(holder.to_owned()).or_default() += size;
    }

    fn release(&mut self, holder: &str, size: u64) {
        self.total = self.total.saturating_sub(size);
        if let Some(held) = self.of.get_mut(holder) {
            *held = held.saturating_sub(size);
            if *held == 0 {
                self.of.remove(holder);
            }
        }
    }

    /// Returns whether copies of a person make room.
    fn is_over(&self, holder: &str, limits: Limits) -> bool {
        let is_most_full = |used: u64, room: u64| used > room / 4 * 3;
        let (held, people) = (self.held_by(holder), self.of.len() as u64);
        let has_much = held.saturating_mul(people) >= self.total;
        is_most_full(held, limits.share()) || has_much && is_most_full(self.total, limits.folder)
    }
}

/// Returns who holds the files of a chat: the user, in channels of this server, otherwise the chat.
fn holder_of(owner: &ChatRef) -> String {
    let user = owner.chat.split_once('/').map(|(user, _)| user);
    user.unwrap_or(&owner.chat).to_owned()
}

impl Folder {
    fn save(
        &self,
        bytes: &[u8],
        kind: MediaKind,
        name: Option<&str>,
        owner: ChatRef,
    ) -> Result<SavedMedia, MediaError> {
        let size = bytes.len() as u64;
        let limit = self.limits.file;
        if size > limit {
            return Err(MediaError::TooLarge { size, limit });
        }
        let holder = holder_of(&owner);
        self.reserve(&holder, size)?;
        let sniffed = sniff(bytes);
        let kind = sniffed.kind(kind);
        let id = Uuid::now_v7().to_string();
        let path = self.place(&id, sniffed.extension);
        let record = Record {
            media: Media {
                kind,
                id: id.clone(),
                media_type: sniffed.media_type.to_owned(),
                name: shown_name(name, kind, sniffed.extension),
                size,
            },
            owner,
            extension: sniffed.extension.to_owned(),
        };
        // The record comes last: a copy without one is not found.
        let written = write_whole(&path, bytes).and_then(|()| {
            let record = serde_json::to_vec(&record)?;
            write_whole(&self.place(&id, RECORD), &record)
        });
        if let Err(error) = written {
            fs::remove_file(&path).ok();
            self.used.lock().release(&holder, size);
            return Err(error.into());
        }
        Ok(SavedMedia {
            media: record.media,
            path,
        })
    }

    fn find(&self, id: &str, is_owner: impl Fn(&ChatRef) -> bool) -> Option<SavedMedia> {
        let id = checked_id(id)?;
        let record = fs::read(self.place(id, RECORD)).ok()?;
        let record: Record = serde_json::from_slice(&record).ok()?;
        let path = self.place(id, &record.extension);
        let is_ours = is_owner(&record.owner) && path.parent() == Some(self.path.as_path());
        let is_there = fs::symlink_metadata(&path).is_ok_and(|found| found.is_file());
        (is_ours && is_there).then_some(SavedMedia {
            media: record.media,
            path,
        })
    }

    /// The error continues a sentence about the part.
    fn import(
        &self,
        data: &str,
        allowed: &[PathBuf],
        kind: MediaKind,
        name: Option<String>,
        owner: ChatRef,
    ) -> Result<SavedMedia, String> {
        let sources = Sources {
            media: &self.path,
            state: self.state.as_deref(),
            allowed,
            limit: self.limits.file,
        };
        match sources.read(data)? {
            Content::Bytes(bytes, file_name) => {
                let name = name.or(file_name);
                self.save(&bytes, kind, name.as_deref(), owner)
                    .map_err(|error| format!("cannot be kept: {error}"))
            }
            Content::Kept(path) => {
                let id = path.file_stem().and_then(|id| id.to_str());
                let found = id.and_then(|id| self.find(id, |chat| *chat == owner));
                found
                    .filter(|found| found.path == path)
                    .ok_or_else(|| "is not a file of this chat".to_owned())
            }
        }
    }

    /// Counts bytes before they are written.
    fn reserve(&self, holder: &str, size: u64) -> Result<(), MediaError> {
        let mut used = self.used.lock();
        let is_full = used.total.saturating_add(size) > self.limits.folder;
        if is_full || used.held_by(holder).saturating_add(size) > self.limits.share() {
            return Err(MediaError::Full);
        }
        used.reserve(holder, size);
        Ok(())
    }

    fn discard(&self, id: &str, chat: &ChatRef) {
        if let Some(found) = self.find(id, |owner| owner == chat) {
            let copy = Copy {
                files: vec![self.place(id, RECORD), found.path],
                has_record: true,
                has_content: true,
                holder: holder_of(chat),
                size: found.media.size,
                changed: SystemTime::now(),
            };
            self.remove(&[copy]);
        }
    }

    fn remove(&self, copies: &[Copy]) {
        for copy in copies {
            // A file that stays is tried again by the next sweep.
            let is_gone = copy.files.iter().all(|file| fs::remove_file(file).is_ok());
            if is_gone {
                self.used.lock().release(&copy.holder, copy.size);
            }
        }
    }

    fn place(&self, id: &str, extension: &str) -> PathBuf {
        self.path.join(format!("{id}.{extension}"))
    }
}

/// Returns the id if it has the form that [`Folder::save`] gives to ids.
fn checked_id(id: &str) -> Option<&str> {
    let uuid = Uuid::try_parse(id).ok()?;
    (uuid.to_string() == id).then_some(id)
}

/// Returns the name to show: the last part of the sender's name, or one that says what the file is.
fn shown_name(name: Option<&str>, kind: MediaKind, extension: &str) -> String {
    let last = name.and_then(|name| name.rsplit(['/', '\\']).next());
    let label = clean_label(last.unwrap_or_default());
    if label.is_empty() || label.chars().all(|c| c == '.') {
        format!("{}.{extension}", kind.word())
    } else {
        label
    }
}

/// Writes a file that no one sees before it is complete and on the disk.
fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut unfinished = UnfinishedFile::create_with_extension(path, "part")?;
    unfinished.write_all(bytes)?;
    unfinished.replace(Durability::Content)
}

/// The files of one copy.
#[derive(Debug)]
struct Copy {
    /// The record comes first: without it, the rest is not found.
    files: Vec<PathBuf>,
    has_record: bool,
    has_content: bool,
    /// Whose it is. Empty if the record cannot be read.
    holder: String,
    size: u64,
    changed: SystemTime,
}

impl Copy {
    fn is_complete(&self) -> bool {
        self.has_record && self.has_content
    }
}

/// Returns the copies in the folder by their ids. Files with other names are not ours.
fn list(folder: &Path) -> io::Result<BTreeMap<String, Copy>> {
    let mut copies: BTreeMap<String, Copy> = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let parts = name.to_str().and_then(|name| name.split_once('.'));
        let Some((id, extension)) = parts.filter(|(id, _)| checked_id(id).is_some()) else {
            continue;
        };
        // It may be gone by now.
        let Ok(found) = entry.metadata() else {
            continue;
        };
        let changed = found.modified()?;
        let copy = copies.entry(id.to_owned()).or_insert_with(|| Copy {
            files: Vec::new(),
            has_record: false,
            has_content: false,
            holder: String::new(),
            size: 0,
            changed,
        });
        copy.changed = copy.changed.max(changed);
        if extension == RECORD {
            copy.has_record = true;
            let record = fs::read(entry.path()).ok();
            let record = record.and_then(|record| serde_json::from_slice::<Record>(&record).ok());
            copy.holder = record.map_or_else(String::new, |record| holder_of(&record.owner));
            copy.files.insert(0, entry.path());
        } else {
            copy.has_content |= !extension.ends_with("part");
            copy.size += found.len();
            copy.files.push(entry.path());
        }
    }
    Ok(copies)
}

#[cfg(test)]
mod tests;
