//! `tenterhook import`: run the hooks that were written for a coding agent, without a change.

use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use clap::Parser;
use serde_json::json;
use tenterhook_hookfile::{EXTENSIONS, Report, SourceText, read, read_text};
use tenterhook_setup::ancestry;
use tenterhook_setup::config_dir;
use tenterhook_setup::error::CliError;
use tenterhook_setup::exit::Exit;
use tenterhook_setup::hook_args::ConfigArgs;
use tenterhook_systems::settings_file::HookSettings;
use tenterhook_systems::{HookSystem, SYSTEMS};
use tenterhook_terminal::output;
use tenterhook_trust::TENTERHOOK;

/// The name of the hook file, without its extension.
const HOOKS: &str = "hooks";

/// Which hooks to import.
#[derive(Debug, Parser)]
pub(crate) struct ImportArgs {
    /// The coding agent whose hooks to import, for example `claude-code`.
    #[arg(value_name = "AGENT")]
    pub(crate) agent: String,

    /// Import the hooks of this project into its own hook file. They run after you approve them.
    #[arg(long)]
    pub(crate) project: bool,

    /// The file with the hooks. The default is the agent's usual file.
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) config: ConfigArgs,

    /// Print a single JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The file to import, as it is written in the hook file, and the hook file.
struct Import {
    source: PathBuf,
    written: String,
    hook_file: PathBuf,
}

pub(crate) fn import(args: &ImportArgs) -> Result<Exit, CliError> {
    ancestry::require_user("import hooks")?;
    let (system, settings) = system(&args.agent)?;
    let import = if args.project {
        of_project(settings, args.file.as_deref())?
    } else {
        of_user(settings, args)?
    };
    let hooks = count(system, &import.source)?;
    let changed = add(&import)?;
    report(args, system, &import, hooks, changed);
    Ok(Exit::Done)
}

fn system(name: &str) -> Result<(&'static HookSystem, &'static HookSettings), CliError> {
    let with_settings = || {
        let systems = SYSTEMS.iter();
        systems.filter_map(|system| Some((*system, system.settings?)))
    };
    let found = with_settings().find(|(system, _)| system.name == name);
    found.ok_or_else(|| {
        let names: Vec<&str> = with_settings().map(|(system, _)| system.name).collect();
        CliError::new(Exit::Usage, format!("cannot import hooks of `{name}`"))
            .hint(format!("available: `{}`", names.join("`, `")))
    })
}

fn of_user(settings: &HookSettings, args: &ImportArgs) -> Result<Import, CliError> {
    let no_folder = |what: &str| CliError::new(Exit::Config, format!("{what} is unknown"));
    let (source, written) = if let Some(file) = &args.file {
        let path = absolute(file)?;
        (path.clone(), path.display().to_string())
    } else {
        let home = std::env::home_dir().ok_or_else(|| no_folder("your home folder"))?;
        (home.join(settings.user), format!("~/{}", settings.user))
    };
    let folder = config_dir::user(&args.config)?;
    let folder = folder.ok_or_else(|| no_folder("your configuration folder"))?;
    Ok(Import {
        source,
        written,
        hook_file: hook_file(&folder),
    })
}

fn of_project(settings: &HookSettings, file: Option<&Path>) -> Result<Import, CliError> {
    let project = absolute(Path::new("."))?;
    let file = file.unwrap_or(Path::new(settings.project));
    let source = project.join(file);
    let below = source.strip_prefix(&project).map_err(|_| {
        let message = format!("`{}` is not a file of this project", file.display());
        CliError::new(Exit::Usage, message).hint("leave out `--project` to import it for yourself")
    })?;
    Ok(Import {
        written: format!("../{}", below.display()),
        hook_file: hook_file(&project.join(TENTERHOOK)),
        source,
    })
}

fn absolute(path: &Path) -> Result<PathBuf, CliError> {
    let found = fs::canonicalize(path);
    found.map_err(|error| {
        let message = format!("cannot find `{}`", path.display());
        CliError::new(Exit::Config, message).cause(&error)
    })
}

/// Returns the hook file of a folder: the one that exists, or else `hooks.yaml`.
fn hook_file(folder: &Path) -> PathBuf {
    let mut paths = EXTENSIONS
        .map(|extension| folder.join(HOOKS).with_extension(extension))
        .into_iter();
    paths
        .find(|path| path.exists())
        .unwrap_or_else(|| folder.join(HOOKS).with_extension("yaml"))
}

/// Reads the file to import, and returns the number of its hooks.
fn count(system: &HookSystem, path: &Path) -> Result<usize, CliError> {
    let shown = path.display();
    let text = read_text(path).map_err(|problem| {
        CliError::new(
            Exit::Config,
            format!("cannot import `{shown}`: {}", problem.message),
        )
        .hint("name the file with the hooks: `--file FILE`")
    })?;
    let mut found = Report::new(SourceText::new(path, &text));
    let file = read(&mut found);
    if file.system != system.name {
        let message = format!("`{shown}` is not a file with hooks of `{}`", system.name);
        return Err(
            CliError::new(Exit::Config, message).hint(format!("it is a file of `{}`", file.system))
        );
    }
    if found.has_errors() {
        let problems = found.into_problems();
        return Err(CliError {
            causes: problems
                .iter()
                .map(|problem| problem.render(false))
                .collect(),
            ..CliError::new(Exit::Config, format!("cannot import `{shown}`"))
        });
    }
    Ok(file.declarations.len())
}

/// Adds the import to the hook file. Returns whether the file changed.
fn add(import: &Import) -> Result<bool, CliError> {
    let path = &import.hook_file;
    let by_hand = |why: String| {
        CliError::new(Exit::Config, why).hint(format!(
            "add `{}` to the list `import` in `{}`",
            import.written,
            path.display()
        ))
    };
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        Err(error) => {
            let message = format!("cannot read `{}`", path.display());
            return Err(CliError::new(Exit::Config, message).cause(&error));
        }
    };
    if imports_of(path, &text).contains(&import.written) {
        return Ok(false);
    }
    if !path
        .extension()
        .is_some_and(|it| it == "yaml" || it == "yml")
    {
        return Err(by_hand(format!("`{}` is not a YAML file", path.display())));
    }
    let changed = with_import(&text, &import.written);
    // Text that was edited by hand may have a form that the edit does not know.
    let mut expected = imports_of(path, &text);
    expected.push(import.written.clone());
    if imports_of(path, &changed) != expected {
        let message = format!("cannot add a line to `{}`", path.display());
        return Err(by_hand(message));
    }
    replace(path, &changed).map_err(|error| {
        let message = format!("cannot write `{}`", path.display());
        CliError::new(Exit::Config, message).cause(&error)
    })?;
    Ok(true)
}

fn imports_of(path: &Path, text: &str) -> Vec<String> {
    let mut report = Report::new(SourceText::new(path, text));
    let file = read(&mut report);
    file.imports.into_iter().map(|(import, _)| import).collect()
}

/// Returns the text of a hook file with one more import: in its list `import`, or in a new list at the end.
fn with_import(text: &str, path: &str) -> String {
    let item = format!("- {}\n", json!(path));
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    let Some(at) = lines.iter().position(|line| line.starts_with("import:")) else {
        let separator = if text.is_empty() || text.ends_with('\n') {
            ""
        } else {
            "\n"
        };
        return format!("{text}{separator}import:\n  {item}");
    };
    let items = lines.iter().skip(at + 1);
    let items = items.take_while(|line| line.trim_start().starts_with("- "));
    let last = items.clone().last();
    let indent: String = last.map_or("  ".to_owned(), |line| {
        line.chars().take_while(|c| *c == ' ').collect()
    });
    let end = at + 1 + items.count();
    let added = format!("{indent}{item}");
    lines.insert(end, &added);
    lines.concat()
}

/// Replaces a file as a whole, so that no one reads a part of it.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    if let Ok(found) = fs::metadata(path) {
        file.as_file().set_permissions(found.permissions())?;
    }
    file.persist(path)?;
    Ok(())
}

fn report(args: &ImportArgs, system: &HookSystem, import: &Import, hooks: usize, changed: bool) {
    let hook_file = import.hook_file.display();
    if args.json {
        output::line(json!({
            "agent": system.name,
            "file": import.source,
            "hook_file": import.hook_file,
            "hooks": hooks,
            "changed": changed,
        }));
        return;
    }
    let written = &import.written;
    if changed {
        output::line(format!("Added `{written}` to `import` in `{hook_file}`."));
    } else {
        output::line(format!("`{hook_file}` already imports `{written}`."));
    }
    let plural = if hooks == 1 { "hook" } else { "hooks" };
    output::line(format!(
        "It has {hooks} {plural}. `tenterhook list` shows them."
    ));
    if args.project {
        output::line("They run after you approve them: `tenterhook trust`");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_import_is_added_to_the_list_or_at_the_end() {
        for (text, expected) in [
            ("", "import:\n  - \"~/a\"\n"),
            ("version: 1", "version: 1\nimport:\n  - \"~/a\"\n"),
            (
                "# mine\nimport:\n- x # why\nhooks: []\n",
                "# mine\nimport:\n- x # why\n- \"~/a\"\nhooks: []\n",
            ),
            (
                "import:\n    - x\n    - y\n",
                "import:\n    - x\n    - y\n    - \"~/a\"\n",
            ),
        ] {
            assert_eq!(with_import(text, "~/a"), expected);
        }
    }
}
