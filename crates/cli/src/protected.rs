//! The files that the agent's file tools change only if the user agrees: those that decide which hooks run, and whose hooks need
//! no approval, and the journal, which tells what they decided.

use std::path::{Path, PathBuf};

use tenterhook::Layer;
use tenterhook_agent::ProtectedFiles;
use tenterhook_config::{Discovery, FoundFile, Loaded};

use crate::args::{HookArgs, JournalArgs};
use crate::config_dir;
use crate::data_dir::data_dir;
use crate::error::CliError;
use crate::journal;

/// What the user reads of a file that a hook comes from.
const HOOKS_OF_THE_USER: &str = "your hooks";
const HOOKS_OF_THE_MACHINE: &str = "the hooks that are managed for all users";
const JOURNAL: &str = "the journal of what hooks decided";
const HOOKS_OF_THE_CALL: &str = "a file of hooks that the command line names";

/// Returns the files and folders that are protected in a session, from the places where hooks are looked for and from the
/// sources that were found.
pub(crate) fn files(
    args: &HookArgs,
    record: &JournalArgs,
    start: &Path,
    loaded: &Loaded,
    found: &[FoundFile],
) -> Result<ProtectedFiles, CliError> {
    let layers = config_dir::layers(&args.config, Some(start))?;
    let search =
        Discovery::of_layers(&layers).operator_profile(config_dir::operator_profile(&args.place)?);
    let own = [
        (data_dir(), "Tenterhook's data, approvals among them"),
        (layers.user.clone(), "your configuration of Tenterhook"),
        (layers.system.clone(), HOOKS_OF_THE_MACHINE),
        (journal::folder(), JOURNAL),
        (record.journal.clone(), JOURNAL),
    ];
    let own = own
        .into_iter()
        .filter_map(|(path, text)| Some((path?, text)));
    let named = args.files.iter().chain(&args.extensions);
    let named = named.map(|path| (path.clone(), HOOKS_OF_THE_CALL));
    let folders = search.trusted_folders().into_iter();
    let folders = folders.map(|path| (path, HOOKS_OF_THE_USER));
    // A source may be a link that leads out of these folders.
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

/// Says what a source of hooks is. One of a project is protected by its approval.
fn description(layer: Layer) -> Option<&'static str> {
    match layer {
        Layer::Project => None,
        Layer::System => Some(HOOKS_OF_THE_MACHINE),
        Layer::Explicit => Some(HOOKS_OF_THE_CALL),
        Layer::User | Layer::Code => Some(HOOKS_OF_THE_USER),
    }
}
