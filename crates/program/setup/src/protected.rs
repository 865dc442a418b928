//! The files that the agent's file tools change only if the user agrees: the files that decide which hooks run, hook
//! files that need no approval, and the journal of hook decisions.

use std::path::PathBuf;

use tenterhook_agent::ProtectedFiles;
use tenterhook_discovery::{FolderSearch, FoundFile, Loaded};
use tenterhook_engine::Layer;

use crate::agent_options::AgentOptions;
use crate::config_dir;
use crate::data_dir::data_dir;
#[cfg(unix)]
use crate::data_dir::passphrase_places;
use crate::error::CliError;
use crate::journal;

/// How a question describes a protected file to the user.
const HOOKS_OF_THE_USER: &str = "your hooks";
const HOOKS_OF_THE_MACHINE: &str = "the hooks that are managed for all users";
#[cfg(unix)]
const PASSPHRASE: &str = "the hash of your passphrase";
const JOURNAL: &str = "the journal of hook decisions";
const HOOKS_OF_THE_CALL: &str = "a hook file that the command line names";

/// Returns the files and folders that are protected in a session: the places where Tenterhook looks for hooks, and
/// the sources that it found.
pub fn files(
    options: &AgentOptions,
    loaded: &Loaded,
    found: &[FoundFile],
) -> Result<ProtectedFiles, CliError> {
    let layers = config_dir::layers(options.hooks.config_dir.as_deref(), Some(&options.cwd))?;
    let search = config_dir::select(FolderSearch::of_layers(&layers), &options.hooks.place)?;
    let own = [
        (data_dir(), "Tenterhook's data, including approvals"),
        (layers.user.clone(), "your Tenterhook configuration"),
        (layers.system.clone(), HOOKS_OF_THE_MACHINE),
        (journal::folder(), JOURNAL),
        (options.journal.clone(), JOURNAL),
    ];
    let own = own
        .into_iter()
        .filter_map(|(path, text)| Some((path?, text)));
    // Its place does not depend on the variables that name the data folder.
    #[cfg(unix)]
    let own = own.chain(
        passphrase_places()
            .into_iter()
            .map(|path| (path, PASSPHRASE)),
    );
    let named = options.hooks.files.iter().chain(&options.hooks.extensions);
    let named = named.map(|path| (path.clone(), HOOKS_OF_THE_CALL));
    let folders = search.trusted_folders().into_iter();
    let folders = folders.map(|path| (path, HOOKS_OF_THE_USER));
    // A source may be a link to a file outside these folders.
    let hook_files = loaded.files.iter();
    let hook_files = hook_files.map(|file| (file.path.clone(), file.layer));
    let of_folders = found.iter().map(|file| (file.path.clone(), file.layer));
    let sources = hook_files
        .chain(of_folders)
        .filter_map(|(path, layer)| Some((path, description(layer)?)));
    let table = own.chain(named).chain(folders).chain(sources);
    let table: Vec<(PathBuf, &str)> = table.collect();
    let files = table.into_iter();
    Ok(files.fold(ProtectedFiles::new(), |files, (path, text)| {
        files.add(path, text)
    }))
}

/// Returns how a question describes a source of hooks. A project's source needs no protection here, because its
/// approval protects it.
fn description(layer: Layer) -> Option<&'static str> {
    match layer {
        Layer::Project => None,
        Layer::System => Some(HOOKS_OF_THE_MACHINE),
        Layer::Explicit => Some(HOOKS_OF_THE_CALL),
        Layer::User | Layer::Code => Some(HOOKS_OF_THE_USER),
    }
}
