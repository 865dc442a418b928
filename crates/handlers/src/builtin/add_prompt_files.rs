//! Gives the model files of instructions: the nearest of each name above the working directory, then the user's own.

use std::path::{Path, PathBuf};

use futures_util::future::BoxFuture;
use tenterhook::{Call, HandlerError};
use tenterhook_protocol::{AnyEffect, EventKind};

use super::{Builtin, Run, blocking, context, directory};

pub(super) const BUILTIN: Builtin = Builtin {
    name: "add_prompt_files",
    events: &[EventKind::TurnStart],
    arguments: "file names",
    make: |setup| {
        let is_flag = |name: &&String| name.is_empty() || name.starts_with('-');
        match setup.arguments.iter().find(is_flag) {
            Some(name) => Err(format!("`{name}` is no file name")),
            None => Ok(Box::new(AddPromptFiles {
                names: setup.arguments.to_vec(),
            })),
        }
    },
};

/// The most bytes that one file gives the model: context has to stay bounded.
const FILE_LIMIT: usize = 256 << 10;

struct AddPromptFiles {
    names: Vec<String>,
}

impl Run for AddPromptFiles {
    fn run<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<AnyEffect, HandlerError>> {
        Box::pin(async move {
            let Some(dir) = directory(&call.event).map(Path::to_owned) else {
                return Ok(AnyEffect::default());
            };
            let names = self.names.clone();
            blocking(move || give(&dir, &names)).await
        })
    }
}

/// Reads every file that is there.
fn give(dir: &Path, names: &[String]) -> AnyEffect {
    let home = std::env::home_dir();
    let texts: Vec<String> = names
        .iter()
        .flat_map(|name| paths(dir, home.as_deref(), name))
        .filter_map(|path| read(&path))
        .collect();
    if texts.is_empty() {
        AnyEffect::default()
    } else {
        context(texts.join("\n\n"))
    }
}

/// Returns the nearest file of that name at or above `dir`, and that of the user's home if it is another one.
fn paths(dir: &Path, home: Option<&Path>, name: &str) -> Vec<PathBuf> {
    let nearest = dir
        .ancestors()
        .map(|ancestor| ancestor.join(name))
        .find(|path| path.is_file());
    let own = home
        .map(|home| home.join(name))
        .filter(|path| path.is_file() && nearest.as_ref() != Some(path));
    nearest.into_iter().chain(own).collect()
}

/// Reads a file up to the limit. What cannot be read is left out: a prompt file is no gate.
fn read(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).ok()?;
    std::io::Read::read_to_end(
        &mut std::io::Read::take(file, FILE_LIMIT as u64),
        &mut bytes,
    )
    .ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_file_comes_before_the_one_at_home() {
        let root = tempfile::tempdir().unwrap();
        let (home, dir) = (root.path().join("home"), root.path().join("project/src"));
        std::fs::create_dir_all(&home).unwrap();
        std::fs::create_dir_all(&dir).unwrap();
        let (own, above) = (home.join("GUIDE.md"), root.path().join("project/GUIDE.md"));
        std::fs::write(&own, "own").unwrap();
        assert_eq!(
            paths(&dir, Some(&home), "GUIDE.md"),
            std::slice::from_ref(&own)
        );
        std::fs::write(&above, "above").unwrap();
        assert_eq!(paths(&dir, Some(&home), "GUIDE.md"), [above.clone(), own]);
        assert_eq!(
            paths(&dir, Some(&root.path().join("project")), "GUIDE.md"),
            [above]
        );
        assert!(paths(&dir, Some(&home), "MISSING.md").is_empty());
    }
}
