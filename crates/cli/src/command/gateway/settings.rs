//! Reads the settings of the gateway.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::agent_args::AgentArgs;
use tenterhook_channel::settings::Settings;
use tenterhook_hookfile::{LoadError, Report, SourceText, read_text};
use tenterhook_protocol::escape::escape_line;
use tenterhook_setup::config_dir;
use tenterhook_setup::error::CliError;
use tenterhook_setup::exit::Exit;
use tenterhook_setup::warning::{show_warnings, warn};

use crate::command::gateway::args::{Listen, SettingsArgs};

/// The name of the file in the user's configuration folder.
const FILE: &str = "gateway.yaml";

/// Where a project may have a file of the same name. It is never read: anyone who can write to a repository must not decide
/// who may talk to the agent.
const OF_PROJECT: [&str; 2] = [".tenterhook/gateway.yaml", FILE];

/// Returns the file of the settings that the options select. It may not exist.
pub(super) fn path(args: &SettingsArgs, agent: &AgentArgs) -> Result<Option<PathBuf>, CliError> {
    let layers = config_dir::layers(agent.hooks.config.config_dir.as_deref(), Some(&agent.cwd))?;
    let of_user = layers.user.map(|folder| folder.join(FILE));
    Ok(args.file.clone().or(of_user))
}

/// Reads the settings that the options select. Warns about files of the project.
pub(super) fn read(args: &SettingsArgs, agent: &AgentArgs) -> Result<Settings, CliError> {
    let layers = config_dir::layers(agent.hooks.config.config_dir.as_deref(), Some(&agent.cwd))?;
    let path = path(args, agent)?;
    let folders = layers.projects().into_iter().map(|project| project.dir);
    for ignored in ignored(folders, path.as_deref()) {
        warn(format_args!(
            "`{}` is ignored, because settings of a gateway never come from a project; to use it, pass `--gateway`",
            escape_line(&ignored.display().to_string())
        ));
    }
    let Some(path) = path else {
        return Ok(Settings::default());
    };
    // A link whose target is gone had settings, perhaps with limits.
    let is_missing = fs::symlink_metadata(&path).is_err_and(|it| it.kind() == ErrorKind::NotFound);
    if is_missing && args.file.is_none() {
        return Ok(Settings::default());
    }
    let text = read_text(&path).map_err(|problem| {
        let problem = *problem;
        let message = format!("cannot read the settings `{}`", path.display());
        CliError {
            causes: vec![problem.cause.unwrap_or(problem.message)],
            ..CliError::new(Exit::Config, message)
                .hint("name a regular file that you can read with `--gateway FILE`")
        }
    })?;
    parsed(&path, &text)
}

/// Returns the files in project folders that look like settings, except the one that is used.
fn ignored(folders: impl Iterator<Item = PathBuf>, used: Option<&Path>) -> Vec<PathBuf> {
    let used = used.and_then(|path| path.canonicalize().ok());
    let files = folders.flat_map(|folder| OF_PROJECT.map(|name| folder.join(name)));
    let is_ignored = |file: &PathBuf| {
        let found = file.canonicalize().ok();
        found.is_some() && found != used
    };
    files.filter(is_ignored).collect()
}

fn parsed(path: &Path, text: &str) -> Result<Settings, CliError> {
    let mut report = Report::new(SourceText::new(path, text));
    let settings = Settings::read(&mut report);
    let has_errors = report.has_errors();
    let problems = report.into_problems();
    match settings.filter(|_| !has_errors) {
        Some(settings) => {
            show_warnings(&problems);
            Ok(settings)
        }
        None => Err(LoadError {
            problems,
            broken: Vec::new(),
        }
        .into()),
    }
}

/// Replaces the address of the server, if an option names another one. Channels that need a server are off without one.
pub(super) fn with_listen(
    mut settings: Settings,
    listen: Option<Listen>,
) -> Result<Settings, CliError> {
    match listen {
        None => {}
        Some(Listen::Off) => {
            settings.listen = None;
            settings.inspect.listen = None;
            for channel in &mut settings.channels {
                channel.is_enabled &= !channel.kind.needs_server();
            }
        }
        Some(Listen::At(address)) if address.ip().is_loopback() || settings.is_public => {
            settings.listen = Some(address);
            if address.ip().is_loopback() {
                let inspector = &mut settings.inspect.listen;
                *inspector = inspector.map(|_| address);
            }
        }
        Some(Listen::At(address)) => {
            let message = format!("other machines can reach `{address}`");
            return Err(CliError::new(Exit::Config, message).hint(
                "listen on a loopback address such as `127.0.0.1:7878`, or write `public: true` into the settings",
            ));
        }
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_off_without_a_server() {
        let settings = with_listen(Settings::default(), Some(Listen::Off)).unwrap();
        assert_eq!(settings.listen, None);
        assert!(settings.channels.iter().all(|channel| !channel.is_enabled));
    }

    // G69
    #[test]
    fn an_address_for_other_machines_needs_public_settings() {
        let at = |text: &str| Some(Listen::At(text.parse().unwrap()));
        let open = "0.0.0.0:7878";
        let refused = with_listen(Settings::default(), at(open)).unwrap_err();
        assert_eq!(refused.exit, Exit::Config);
        let public = Settings {
            is_public: true,
            ..Settings::default()
        };
        let allowed = with_listen(public, at(open)).unwrap();
        assert_eq!(allowed.listen, Some(open.parse().unwrap()));
        let local = with_listen(Settings::default(), at("127.0.0.1:1")).unwrap();
        assert_eq!(local.listen, Some("127.0.0.1:1".parse().unwrap()));
        let off = with_listen(Settings::default(), Some(Listen::Off)).unwrap();
        assert_eq!(off.listen, None);
    }

    #[test]
    fn files_of_projects_are_ignored_unless_they_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join(OF_PROJECT[0]);
        fs::create_dir(inner.parent().unwrap()).unwrap();
        fs::write(&inner, "").unwrap();
        let named = folder.path().join(OF_PROJECT[1]);
        fs::write(&named, "").unwrap();
        let folders = || [folder.path().to_owned()].into_iter();
        assert_eq!(ignored(folders(), None), [inner.clone(), named.clone()]);
        assert_eq!(ignored(folders(), Some(&named)), [inner]);
    }
}
