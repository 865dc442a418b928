//! Finds the templates and skills in their places.
//!
//! | kind | files |
//! |---|---|
//! | templates | each `*.md` file directly in the folder, or the place itself if it is a file |
//! | skills | each subfolder, at any depth, with a `SKILL.md`; each `*.md` file directly in the folder that has front
//! matter; or the place itself if it is a file |
//!
//! The folder of a skill is not searched for further skills. Hidden files and folders, and `node_modules`, are
//! ignored. Links are followed, but a project's links only within the project.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use super::place::{ResourcePlace, ResourceProblem, ResourceSource};

/// The file of a skill.
const SKILL: &str = "SKILL.md";

/// How many levels below a place a skill may be.
const MAX_DEPTH: u32 = 6;

/// The maximum number of directory entries that are read in one place.
const MAX_ENTRIES: usize = 4096;

/// The largest file, in bytes.
const MAX_BYTES: u64 = 256 * 1024;

/// The maximum number of bytes of all files in one place.
const MAX_IN_ALL: usize = 8 * 1024 * 1024;

/// What kind of files a place has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Templates,
    Skills,
}

/// A file that was found, with its text.
pub(super) struct Found {
    pub(super) path: PathBuf,
    pub(super) text: String,
    /// Whether the file is next to folders of skills, where there may be unrelated Markdown files too.
    pub(super) is_beside: bool,
}

/// The search of one place.
pub(super) struct Scan<'a> {
    place: &'a ResourcePlace,
    kind: Kind,
    looked_at: usize,
    /// How many more bytes may be read; `None` once the limit was exceeded.
    room: Option<usize>,
    pub(super) found: Vec<Found>,
    pub(super) problems: Vec<ResourceProblem>,
}

impl<'a> Scan<'a> {
    pub(super) fn of(place: &'a ResourcePlace, kind: Kind) -> Self {
        let mut scan = Self {
            place,
            kind,
            looked_at: 0,
            room: Some(MAX_IN_ALL),
            found: Vec::new(),
            problems: Vec::new(),
        };
        scan.begin();
        scan
    }

    fn begin(&mut self) {
        let path = &self.place.path;
        let problem = match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => return self.look(path, 0),
            Ok(_) => return self.take(path, false),
            // A default place need not exist, but a path that a hook names must.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                if !matches!(self.place.source, ResourceSource::Hooks) {
                    return;
                }
                "a hook names this path, but it does not exist".to_owned()
            }
            Err(error) => error.to_string(),
        };
        self.say(path, problem);
    }

    fn look(&mut self, folder: &Path, depth: u32) {
        let paths = match self.entries(folder) {
            Ok(paths) => paths,
            Err(problem) => return self.say(folder, problem),
        };
        for path in paths {
            let is_markdown = path.extension() == Some(OsStr::new("md"));
            let is_folder = path.is_dir();
            match self.kind {
                Kind::Templates if is_markdown && !is_folder => self.take(&path, false),
                Kind::Skills if is_folder => self.look_for_skill(&path, depth + 1),
                Kind::Skills if is_markdown && depth == 0 => self.take(&path, true),
                Kind::Templates | Kind::Skills => {}
            }
        }
    }

    fn look_for_skill(&mut self, folder: &Path, depth: u32) {
        let file = folder.join(SKILL);
        if fs::symlink_metadata(&file).is_ok() {
            self.take(&file, false);
        } else if depth < MAX_DEPTH {
            self.look(folder, depth);
        }
    }

    /// Returns the entries of a folder, sorted by name.
    fn entries(&mut self, folder: &Path) -> Result<Vec<PathBuf>, String> {
        self.check(folder)?;
        let read = fs::read_dir(folder).map_err(|error| error.to_string())?;
        let mut paths = Vec::new();
        for entry in read {
            if self.looked_at == MAX_ENTRIES {
                return Err(format!(
                    "`{}` has more than {MAX_ENTRIES} entries, so the rest is ignored",
                    self.place.path.display()
                ));
            }
            self.looked_at += 1;
            let path = entry.map_err(|error| error.to_string())?.path();
            let name = path.file_name().unwrap_or_default();
            if !name.as_encoded_bytes().starts_with(b".") && name != "node_modules" {
                paths.push(path);
            }
        }
        paths.sort();
        Ok(paths)
    }

    fn take(&mut self, path: &Path, is_beside: bool) {
        let Some(room) = self.room else {
            return;
        };
        let text = match self.check(path).and_then(|()| read(path)) {
            Ok(text) => text,
            Err(problem) => return self.say(path, problem),
        };
        self.room = room.checked_sub(text.len());
        if self.room.is_none() {
            let place = self.place.path.display();
            let problem = format!(
                "the files of `{place}` have more than {MAX_IN_ALL} bytes, so the rest is ignored"
            );
            return self.say(path, problem);
        }
        self.found.push(Found {
            path: path.to_owned(),
            text,
            is_beside,
        });
    }

    /// Refuses a project's link to a file outside the project, so that a repository cannot show the user's own files
    /// to the model.
    fn check(&self, path: &Path) -> Result<(), String> {
        let ResourceSource::Project { root } = &self.place.source else {
            return Ok(());
        };
        let whole = |path: &Path| fs::canonicalize(path).map_err(|error| error.to_string());
        if whole(path)?.starts_with(whole(root)?) {
            Ok(())
        } else {
            Err(format!("it is outside the project `{}`", root.display()))
        }
    }

    fn say(&mut self, path: &Path, problem: String) {
        self.problems.push(ResourceProblem {
            path: path.to_owned(),
            line: None,
            problem,
        });
    }
}

fn read(path: &Path) -> Result<String, String> {
    let read = || -> io::Result<Vec<u8>> {
        // Opening a named pipe would wait for its other end.
        if !fs::metadata(path)?.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        let mut bytes = Vec::new();
        File::open(path)?
            .take(MAX_BYTES + 1)
            .read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().map_err(|error| error.to_string())?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > MAX_BYTES {
        return Err(format!("it is larger than {MAX_BYTES} bytes"));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        format!("it is not text: byte {} is not valid UTF-8", at + 1)
    })?;
    Ok(text
        .strip_prefix('\u{feff}')
        .map_or_else(|| text.clone(), str::to_owned))
}
