//! The description of one hook system.

use std::fmt;

use crate::tool_names::ToolTable;

use crate::form::definition::Form;
use crate::hook_folder::FolderKind;
use crate::settings_file::HookSettings;

/// Everything that Tenterhook knows about one hook system, as data and functions.
///
/// Each system declares a `HookSystem` in its folder, and [`SYSTEMS`](crate::SYSTEMS) lists all of them.
/// The dialects of a system, which its forms and folders refer to, translate events and answers. A
/// dialect also decides what a failing hook does.
pub struct HookSystem {
    /// The name.
    pub name: &'static str,
    /// The system's names of tools.
    pub tools: &'static ToolTable,
    /// The forms in which hooks of the system receive events, so that Tenterhook can read them back.
    pub(crate) forms: &'static [&'static Form],
    /// The folders that may contain hooks.
    pub folders: &'static [&'static FolderKind],
    /// The order of this system's folders among folders of other systems with the same base. Lower ranks
    /// come first.
    pub folder_rank: u8,
    /// Paths inside a directory that mark it as a project with hooks.
    pub project_marks: &'static [&'static str],
    /// The system's own settings of a gateway, if they can be imported.
    pub gateway_settings: Option<&'static GatewaySettings>,
    /// The files in which people write hooks next to other settings, if the system has such files.
    pub settings: Option<&'static HookSettings>,
}

/// Settings of a gateway in the form of a hook system.
#[derive(Debug)]
pub struct GatewaySettings {
    /// Where the system keeps them, for hints.
    pub example: &'static str,
    /// Returns the text of a `gateway.yaml` that does what the settings say, or everything that is wrong with them.
    pub import: fn(&str) -> Result<String, Vec<String>>,
}

impl HookSystem {
    /// A system without tools, forms, folders and settings, which the systems use for what they do not have.
    pub(crate) const EMPTY: Self = Self {
        name: "",
        tools: &ToolTable::new("", &[]),
        forms: &[],
        folders: &[],
        folder_rank: 0,
        project_marks: &[],
        gateway_settings: None,
        settings: None,
    };

    /// Returns the names of the forms in which hooks of the system are shown events.
    pub fn form_names(&self) -> impl ExactSizeIterator<Item = &'static str> {
        self.forms.iter().map(|form| form.name)
    }
}

impl fmt::Debug for HookSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
