//! The user's configuration folder, and the hook files in it.

use std::path::{Path, PathBuf};

use crate::args::ConfigArgs;
use crate::error::CliError;
use crate::exit::Exit;

/// The variable that names the folder.
const VARIABLE: &str = "TENTERHOOK_CONFIG_DIR";
/// The folder of hook files in it, and, with an extension, the one hook file beside it.
const HOOKS: [&str; 2] = ["hooks.d", "hooks"];
/// What a hook file may be called at its end. Other files of the folder are none.
const EXTENSIONS: [&str; 4] = ["yaml", "yml", "toml", "json"];

/// Returns the user's hook files: `hooks.yaml` or its like, then those of `hooks.d` in the byte order of their names.
///
/// A folder that somebody named has to be there: hooks that are not found guard nothing. The one that is looked at
/// by default need not be.
pub(crate) fn hook_files(args: &ConfigArgs) -> Result<Vec<PathBuf>, CliError> {
    let variable = |name: &str| {
        let value = std::env::var_os(name).filter(|value| !value.is_empty());
        value.map(PathBuf::from)
    };
    let named = match &args.config_dir {
        Some(dir) => Some((dir.clone(), "`--config-dir`".to_owned())),
        None => variable(VARIABLE).map(|dir| (dir, format!("`{VARIABLE}`"))),
    };
    if let Some((dir, by)) = named {
        if !dir.is_dir() {
            let message = format!("{by} names `{}`, which is no folder", dir.display());
            return Err(CliError::new(Exit::Usage, message)
                .hint("name the folder that `hooks.d` is in, or leave it out"));
        }
        return files(&dir);
    }
    let home = |below: &str| Some(std::env::home_dir()?.join(below));
    let base = if cfg!(windows) {
        variable("APPDATA").or_else(|| home("AppData/Roaming"))
    } else {
        let named = variable("XDG_CONFIG_HOME").filter(|path| path.is_absolute());
        named.or_else(|| home(".config"))
    };
    base.map_or(Ok(Vec::new()), |base| files(&base.join("tenterhook")))
}

/// Returns the hook files of a configuration folder. None has to be there.
fn files(config: &Path) -> Result<Vec<PathBuf>, CliError> {
    let [folder, file] = HOOKS.map(|name| config.join(name));
    let named = EXTENSIONS.map(|extension| file.with_extension(extension));
    let mut files: Vec<PathBuf> = named.into_iter().filter(|path| path.exists()).collect();
    files.extend(files_below(&folder)?);
    Ok(files)
}

fn files_below(folder: &Path) -> Result<Vec<PathBuf>, CliError> {
    let refused = |error: std::io::Error| {
        let message = format!("cannot read the user's hooks in `{}`", folder.display());
        CliError::new(Exit::Failed, message)
            .cause(&error)
            .hint("name another folder with `--config-dir DIR`")
    };
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(refused(error)),
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(refused)?.path();
        let is_hidden = path
            .file_name()
            .is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
        let is_named_so = path
            .extension()
            .and_then(|extension| extension.to_str())
            .is_some_and(|extension| EXTENSIONS.contains(&extension));
        if is_named_so && !is_hidden {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
