//! Tells which hook system a single script or executable is written for.
//!
//! Discovery finds files in the folders of the systems, so it knows the system of each. A file that a person names may be
//! anywhere.

use std::path::Path;

use crate::SYSTEMS;
use crate::hook_folder::{FolderBase, FolderFiles, FolderKind, FolderPath, ScriptHooks};
use crate::native;

/// Returns the kind of folder that a script or an executable belongs to.
///
/// A folder that only one system has decides first, then the file's name and content. Every other file is one of
/// Tenterhook's own, which may also be an executable that declares an event of kodelet.
///
/// ```
/// use std::path::Path;
/// use tenterhook_systems::kind_of_file;
///
/// let kind = |path: &str, text: &str| kind_of_file(Path::new(path), text.as_bytes()).name;
/// assert_eq!(kind("shop/.operator/hooks/guard.py", ""), "operator");
/// assert_eq!(kind("guard.py", "from operator_use.program.hooks.types import ToolCallEvent"), "operator");
/// assert_eq!(kind("guard.py", "from tenterhook import on"), "tenterhook");
/// ```
pub fn kind_of_file(path: &Path, text: &[u8]) -> &'static FolderKind {
    let kinds = || SYSTEMS.iter().flat_map(|system| system.folders).copied();
    kinds()
        .find(|kind| is_in_folder(kind, path) && may_have(kind, path, text))
        .or_else(|| kinds().find(|kind| is_marked(kind, path, text)))
        .unwrap_or(&native::FOLDER)
}

/// Returns whether a file is in a folder of this kind, as far as its path shows.
fn is_in_folder(kind: &FolderKind, path: &Path) -> bool {
    let mut locations = kind.locations.iter().filter(|location| {
        let is_own = |base: &FolderBase| !matches!(base, FolderBase::Machine | FolderBase::User);
        // The folder `hooks` of a configuration folder has a name that other folders have too.
        location.bases.iter().all(is_own)
    });
    let mut folders = path.ancestors().skip(1).take(2);
    let in_package = matches!(
        kind.files,
        FolderFiles::Packages(_) | FolderFiles::Extensions(_)
    );
    let parent = folders.next();
    let above = folders.next().filter(|_| in_package);
    locations.any(|location| {
        let is_here = |folder: &Path| is_at(folder, location.path);
        parent.is_some_and(is_here) || above.is_some_and(is_here)
    })
}

/// Returns whether a folder has the path of a location.
fn is_at(folder: &Path, path: FolderPath) -> bool {
    let (collection, below) = match path {
        FolderPath::Fixed(path) => return folder.ends_with(path),
        FolderPath::Selected(selection) => (selection.collection, selection.below),
        FolderPath::Each {
            collection, below, ..
        } => (collection, below),
    };
    let member = folder.parent().filter(|_| folder.ends_with(below));
    let above = member.and_then(Path::parent);
    above.is_some_and(|above| above.ends_with(collection))
}

/// Returns whether a file of the folder is looked at: other projects use some of these folders for something else.
fn may_have(kind: &FolderKind, path: &Path, text: &[u8]) -> bool {
    match &kind.files {
        FolderFiles::Containing(wanted) => contains(text, wanted),
        FolderFiles::Extensions(_) => has_program_name(kind, path),
        FolderFiles::All | FolderFiles::Packages(_) => true,
    }
}

/// Returns whether the name or the content of a file shows its system.
fn is_marked(kind: &FolderKind, path: &Path, text: &[u8]) -> bool {
    let has_mark = |scripts: &ScriptHooks| {
        let mut marks = scripts.marks.iter();
        kind.language(path).is_some() && marks.any(|mark| contains(text, mark.as_bytes()))
    };
    has_program_name(kind, path) || kind.scripts.as_ref().is_some_and(has_mark)
}

fn has_program_name(kind: &FolderKind, path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    kind.extension_programs()
        .is_some_and(|programs| name.starts_with(programs.prefix.as_bytes()))
}

fn contains(text: &[u8], wanted: &[u8]) -> bool {
    text.windows(wanted.len()).any(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_the_name_and_the_content_tell_the_system() {
        for (path, text, expected) in [
            ("p/.tenterhook/hooks/guard.py", "", "tenterhook"),
            (
                "p/.tenterhook/hooks/guard.py",
                "hooks_registry",
                "tenterhook",
            ),
            ("guard.sh", "#!/bin/sh", "tenterhook"),
            ("hooks/guard.py", "", "tenterhook"),
            ("p/.operator/hooks/guard.py", "", "operator"),
            (".operator/profiles/work/hooks/guard.py", "", "operator"),
            ("p/core/hooks/guard.py", "hooks_registry", "morphix"),
            ("p/core/hooks/guard.py", "", "tenterhook"),
            (
                "p/workspaces/main/hooks/guard.py",
                "hooks_registry",
                "morphix",
            ),
            ("guard.py", "from core.hooks_registry import x", "morphix"),
            ("p/.pi/extensions/guard.ts", "", "pi"),
            ("p/.pi/extensions/guard/index.ts", "", "pi"),
            ("guard.ts", "import type { ExtensionAPI } from 'x'", "pi"),
            ("guard.sh", "ExtensionAPI", "tenterhook"),
            ("p/.kodelet/hooks/guard", "", "kodelet"),
            ("p/.kodelet/plugins/a@b/hooks/guard", "", "kodelet"),
            (
                "p/.kodelet/extensions/kodelet-extension-x",
                "",
                "kodelet_extension",
            ),
            (
                "p/.kodelet/extensions/x/kodelet-extension-x",
                "",
                "kodelet_extension",
            ),
            ("kodelet-extension-x", "", "kodelet_extension"),
        ] {
            let kind = kind_of_file(Path::new(path), text.as_bytes());
            assert_eq!(kind.name, expected, "{path}");
        }
    }
}
