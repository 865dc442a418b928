//! Which files of the places are templates and skills.
//!
//! | in a place of | is one |
//! |---|---|
//! | templates | each `*.md` in the folder itself; a place that is a file |
//! | skills | each folder below with a `SKILL.md`, and nothing deeper in it; each `*.md` in the folder itself that has front matter; a place that is a file |
//!
//! Hidden files and folders, and `node_modules`, are passed over. Links are followed, those of a project not out of it.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use super::{Bringer, Place, ResourceProblem};

/// The file of a skill.
const SKILL: &str = "SKILL.md";

/// How deep below a place a skill may be.
const MOST_DEPTH: u32 = 6;

/// The most entries of folders of one place that are looked at.
const MOST_ENTRIES: usize = 4096;

/// The most bytes of a file.
const MOST_BYTES: u64 = 256 * 1024;

/// The most bytes of all files of one place.
const MOST_IN_ALL: usize = 8 * 1024 * 1024;

/// What a place has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Templates,
    Skills,
}

/// A file that was found, with its text.
pub(super) struct Found {
    pub(super) path: PathBuf,
    pub(super) text: String,
    /// It stands beside the folders of skills, where other Markdown may stand too.
    pub(super) is_beside: bool,
}

/// Looks through one place.
pub(super) struct Scan<'a> {
    place: &'a Place,
    kind: Kind,
    looked_at: usize,
    /// How many bytes more are kept; `None` once there were too many.
    room: Option<usize>,
    pub(super) found: Vec<Found>,
    pub(super) problems: Vec<ResourceProblem>,
}

impl<'a> Scan<'a> {
    pub(super) fn of(place: &'a Place, kind: Kind) -> Self {
        let mut scan = Self {
            place,
            kind,
            looked_at: 0,
            room: Some(MOST_IN_ALL),
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
            // What nobody said that it is there need not be.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                if !matches!(self.place.bringer, Bringer::Hooks) {
                    return;
                }
                "a hook names it, and it is not there".to_owned()
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
        } else if depth < MOST_DEPTH {
            self.look(folder, depth);
        }
    }

    /// Returns the entries of a folder in the order of their names.
    fn entries(&mut self, folder: &Path) -> Result<Vec<PathBuf>, String> {
        self.check(folder)?;
        let read = fs::read_dir(folder).map_err(|error| error.to_string())?;
        let mut paths = Vec::new();
        for entry in read {
            if self.looked_at == MOST_ENTRIES {
                return Err(format!(
                    "`{}` has more than {MOST_ENTRIES} entries, and the rest is left out",
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
                "the files of `{place}` have more than {MOST_IN_ALL} bytes, and the rest is left out"
            );
            return self.say(path, problem);
        }
        self.found.push(Found {
            path: path.to_owned(),
            text,
            is_beside,
        });
    }

    /// A link of a repository must not hand what is the user's own to the model.
    fn check(&self, path: &Path) -> Result<(), String> {
        let Bringer::Project { root } = &self.place.bringer else {
            return Ok(());
        };
        let whole = |path: &Path| fs::canonicalize(path).map_err(|error| error.to_string());
        if whole(path)?.starts_with(whole(root)?) {
            Ok(())
        } else {
            Err(format!("it leads out of the project `{}`", root.display()))
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
        // Whoever opens a pipe waits for its other end.
        if !fs::metadata(path)?.is_file() {
            return Err(io::Error::other("it is no file"));
        }
        let mut bytes = Vec::new();
        File::open(path)?
            .take(MOST_BYTES + 1)
            .read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().map_err(|error| error.to_string())?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > MOST_BYTES {
        return Err(format!("it has more than {MOST_BYTES} bytes"));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        format!("it is no text: byte {} is not UTF-8", at + 1)
    })?;
    Ok(text
        .strip_prefix('\u{feff}')
        .map_or_else(|| text.clone(), str::to_owned))
}
