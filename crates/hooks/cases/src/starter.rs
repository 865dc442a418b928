//! A first guard for a project or a user, with its test cases.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use tenterhook_files::make_private;
use tenterhook_hookfile::quoted_for_shell;
use tenterhook_systems::native::PROJECT_FOLDER;

use crate::selection::shown_path;

/// The language that a first guard is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StarterLanguage {
    /// A hook file with a built-in hook, which judges commands.
    Yaml,
    /// A script in Python, which judges paths.
    Python,
    /// A script in JavaScript, which judges paths.
    JavaScript,
    /// The same script with the name of a script in TypeScript.
    TypeScript,
    /// An executable shell script, which judges paths.
    Shell,
}

/// Where a first guard belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StarterPlace<'a> {
    /// The folder `.tenterhook` of the project in this folder. The guard runs after the user approved it.
    Project(&'a Path),
    /// The user's configuration folder. The guard is in force at once, in every project.
    User(&'a Path),
}

/// The guard in one language.
struct Template {
    /// The guard, below the folder of the hooks.
    hook: &'static str,
    text: &'static str,
    /// Its cases, next to it.
    cases: &'static str,
    cases_text: &'static str,
    interpreter: Option<&'static str>,
    is_executable: bool,
    /// Arguments of `tenterhook fire` for a call that the guard denies.
    denied_call: &'static str,
}

/// What stands in a template instead of how the guard gets into force.
const USE: &str = "{use}";

/// A name that no language has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown language `{0}`")]
pub struct UnknownStarterLanguage(String);

impl FromStr for StarterLanguage {
    type Err = UnknownStarterLanguage;

    fn from_str(name: &str) -> Result<Self, UnknownStarterLanguage> {
        let found = Self::NAMES
            .iter()
            .find(|(long, short, _)| name == *long || name == *short);
        let (_, _, language) = found.ok_or_else(|| UnknownStarterLanguage(name.to_owned()))?;
        Ok(*language)
    }
}

impl StarterLanguage {
    /// The long and the short names of the languages.
    pub const NAMES: [(&'static str, &'static str, Self); 5] = [
        ("yaml", "yml", Self::Yaml),
        ("python", "py", Self::Python),
        ("javascript", "js", Self::JavaScript),
        ("typescript", "ts", Self::TypeScript),
        ("shell", "sh", Self::Shell),
    ];

    const fn template(self) -> Template {
        let script = Template {
            hook: "hooks/guard.mjs",
            text: include_str!("starter/guard.mjs"),
            cases: "hooks/guard.cases.yaml",
            cases_text: include_str!("starter/guard.cases.yaml"),
            interpreter: Some("node"),
            is_executable: false,
            denied_call: "--tool read_file --arg path=.env",
        };
        match self {
            Self::Yaml => Template {
                hook: "hooks.yaml",
                text: include_str!("starter/hooks.yaml"),
                cases: "hooks.cases.yaml",
                cases_text: include_str!("starter/hooks.cases.yaml"),
                interpreter: None,
                denied_call: "--tool shell --arg cmd='rm -rf /'",
                ..script
            },
            Self::Python => Template {
                hook: "hooks/guard.py",
                text: include_str!("starter/guard.py"),
                interpreter: Some("python3"),
                ..script
            },
            Self::JavaScript => script,
            Self::TypeScript => Template {
                hook: "hooks/guard.ts",
                ..script
            },
            Self::Shell => Template {
                hook: "hooks/guard.sh",
                text: include_str!("starter/guard.sh"),
                interpreter: None,
                is_executable: true,
                ..script
            },
        }
    }
}

/// The files of a first guard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StarterGuard {
    /// The guard, below the folder of the place.
    pub hook: PathBuf,
    /// Its test cases, below the folder of the place.
    pub cases: PathBuf,
    /// The name of the interpreter that the guard needs, which is looked up in `PATH`.
    pub interpreter: Option<&'static str>,
    denied_call: &'static str,
}

/// Why a guard was not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StarterError {
    /// A file already exists. Nothing was written.
    #[error("`{}` exists already", .path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// Something else than a folder is where the folder for the hooks belongs.
    #[error("`{}` is not a folder", .path.display())]
    NotFolder {
        /// The path.
        path: PathBuf,
    },
    /// A link leads out of the project, so the guard would be written for something else.
    #[error("`{}` is a link that leads out of the project", .path.display())]
    LeavesProject {
        /// The link.
        path: PathBuf,
    },
    /// A file or a folder cannot be written.
    #[error("cannot write `{}`", .path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl StarterError {
    /// Returns what the user can do about it.
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::Exists { .. } => {
                "`init` overwrites nothing; move the file away, or choose another language with `--lang`"
            }
            Self::NotFolder { .. } => "move it away, so that `init` can create the folder",
            Self::LeavesProject { .. } => {
                "replace the link with a folder; `init` writes only below the folder of the project"
            }
            Self::Write { .. } => "make the folder writable",
        }
    }
}

impl StarterPlace<'_> {
    /// Returns the folder of the project or the configuration folder.
    pub const fn folder(&self) -> &Path {
        match self {
            Self::Project(folder) | Self::User(folder) => folder,
        }
    }

    /// Returns how the guard gets into force, for the comment at its top.
    const fn how_to_use(&self) -> &'static str {
        match self {
            Self::Project(_) => "tenterhook trust",
            Self::User(_) => "it is in force in every agent that `tenterhook install` guards",
        }
    }
}

impl StarterGuard {
    /// Returns lines for a person who works in `start`: what was written and what to do next.
    pub fn next_steps(&self, place: StarterPlace<'_>, start: &Path) -> Vec<String> {
        let folder = place.folder();
        let hook = shown_path(&folder.join(&self.hook), start);
        let cases = shown_path(&folder.join(&self.cases), start);
        let fire = format!("  tenterhook fire tool_guard {}", self.denied_call);
        let why = " # ask the guard about one call";
        let created = format!("Created `{hook}` and its test cases `{cases}`.");
        match place {
            StarterPlace::Project(project) => {
                // The commands are for the folder in which the user types them.
                let (place, named) = if start.starts_with(project) {
                    (String::new(), hook)
                } else {
                    let place = format!(", in `{}`", shown_path(project, start));
                    (place, self.hook.display().to_string())
                };
                let named = quoted_for_shell(&[named]);
                vec![
                    created,
                    format!("Next{place}:"),
                    "  tenterhook test  # run the test cases".to_owned(),
                    format!("{fire} --script {named} {why}"),
                    "  tenterhook trust  # approve the guard, so that it runs".to_owned(),
                ]
            }
            StarterPlace::User(_) => vec![
                created,
                "It is in force from the next session on, in every agent that Tenterhook guards.".to_owned(),
                "Next:".to_owned(),
                "  tenterhook test  # run the test cases".to_owned(),
                format!("{fire} {why}"),
                "  tenterhook install claude-code  # guard an agent: `tenterhook status` lists yours".to_owned(),
            ],
        }
    }

    /// Writes a guard and its test cases. No file is overwritten.
    ///
    /// # Errors
    /// Fails if one of the files exists or cannot be written, or if a link leads out of the project.
    pub fn write(place: StarterPlace<'_>, language: StarterLanguage) -> Result<Self, StarterError> {
        let template = language.template();
        let below = match place {
            StarterPlace::Project(_) => Path::new(PROJECT_FOLDER),
            StarterPlace::User(_) => Path::new(""),
        };
        let guard = Self {
            hook: below.join(template.hook),
            cases: below.join(template.cases),
            interpreter: template.interpreter,
            denied_call: template.denied_call,
        };
        for file in [&guard.hook, &guard.cases] {
            let path = place.folder().join(file);
            // A link that leads nowhere is there, too.
            if path.symlink_metadata().is_ok() {
                return Err(StarterError::Exists { path });
            }
        }
        let hook = place.folder().join(&guard.hook);
        if let StarterPlace::Project(project) = place {
            let folders: Vec<&Path> = guard.hook.ancestors().skip(1).collect();
            for folder in folders.into_iter().rev() {
                refuse_other_folder(&project.join(folder), project)?;
            }
        }
        if let Some(folder) = hook.parent() {
            let created = match place {
                StarterPlace::Project(_) => fs::create_dir_all(folder),
                StarterPlace::User(_) => make_private(folder),
            };
            created.map_err(|source| StarterError::Write {
                path: folder.to_owned(),
                source,
            })?;
        }
        let text = template.text.replace(USE, place.how_to_use());
        create(&hook, &text, template.is_executable)?;
        let cases = place.folder().join(&guard.cases);
        if let Err(error) = create(&cases, template.cases_text, false) {
            // A guard without its cases would keep the next attempt from writing both.
            fs::remove_file(&hook).ok();
            return Err(error);
        }
        Ok(guard)
    }
}

/// Checks a folder for hooks that may not exist yet. A repository from elsewhere could contain a link to the user's own
/// hooks, which are in force in every project.
fn refuse_other_folder(folder: &Path, project: &Path) -> Result<(), StarterError> {
    if folder.symlink_metadata().is_err() {
        return Ok(());
    }
    let path = folder.to_owned();
    let (Ok(whole), Ok(project)) = (folder.canonicalize(), project.canonicalize()) else {
        return Err(StarterError::LeavesProject { path });
    };
    if !whole.starts_with(project) {
        return Err(StarterError::LeavesProject { path });
    }
    if !whole.is_dir() {
        return Err(StarterError::NotFolder { path });
    }
    Ok(())
}

/// Creates a file. Fails if it already exists.
fn create(path: &Path, text: &str, is_executable: bool) -> Result<(), StarterError> {
    let failed = |source: io::Error| {
        if source.kind() == ErrorKind::AlreadyExists {
            return StarterError::Exists {
                path: path.to_owned(),
            };
        }
        StarterError::Write {
            path: path.to_owned(),
            source,
        }
    };
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(if is_executable { 0o755 } else { 0o644 });
    }
    #[cfg(not(unix))]
    let _unused = is_executable;
    let mut file = options.open(path).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(|error| {
        // Part of a guard would look like a guard.
        fs::remove_file(path).ok();
        failed(error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CasesFile;

    #[test]
    fn a_guard_is_written_once_and_nothing_is_overwritten() {
        let project = tempfile::tempdir().unwrap();
        let dir = project.path();
        let written =
            StarterGuard::write(StarterPlace::Project(dir), StarterLanguage::Python).unwrap();
        assert_eq!(written.hook, Path::new(".tenterhook/hooks/guard.py"));
        let cases = dir.join(&written.cases);
        assert_eq!(CasesFile::read(&cases).unwrap().cases.len(), 8);
        fs::write(&cases, "mine").unwrap();
        // The TypeScript guard has the same test file.
        let again = StarterGuard::write(StarterPlace::Project(dir), StarterLanguage::TypeScript)
            .unwrap_err();
        assert_eq!(
            again.to_string(),
            format!("`{}` exists already", cases.display())
        );
        assert!(!dir.join(".tenterhook/hooks/guard.ts").exists());
        assert_eq!(fs::read_to_string(cases).unwrap(), "mine");
    }
}
