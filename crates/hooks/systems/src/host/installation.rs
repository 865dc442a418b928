//! How Tenterhook is added to a host's configuration, as data.

use serde_json::Value;

use super::event::HostEvent;

/// How Tenterhook is added to a host's configuration.
pub struct Installation {
    /// Where the hooks of the user are.
    pub user: Option<HookPlace>,
    /// Where the hooks of a project are, relative to its folder.
    pub project: Option<HookPlace>,
    /// Whether the host can be made to deny when the program of a hook is missing, killed or late.
    pub fails_closed: FailsClosed,
    /// What the person must do after the installation, such as confirming the hooks. May be empty.
    pub after: &'static str,
    /// How the host records that the person approved its entries, if Tenterhook can record it.
    pub approval: Option<&'static SelfApproval>,
    /// Folders below the home folder that only this host creates.
    pub folders: &'static [&'static str],
    /// Configuration of other hosts that this host runs, too: paths below the home folder or the project's folder.
    pub also_reads: &'static [&'static str],
    /// Settings with which this host runs no hooks.
    pub off_switches: &'static [OffSwitch],
}

/// A setting in a JSON or TOML file with which a host runs no hooks. It may be in the file of the user's hooks or of
/// a project's hooks.
#[derive(Debug, Clone, Copy)]
pub struct OffSwitch {
    /// The path of keys.
    pub keys: &'static [&'static str],
    /// The value that switches hooks off.
    pub value: OffValue,
    /// More files with the setting: paths below the home folder or the project's folder. If a variable moves the hooks
    /// of the user, a file with the same name next to them counts, too.
    pub also_in: &'static [&'static str],
}

/// The value of a setting that switches hooks off.
#[derive(Debug, Clone, Copy)]
pub enum OffValue {
    /// This value.
    Bool(bool),
    /// A list that contains this text.
    ListWith(&'static str),
}

impl OffSwitch {
    /// Returns whether the setting switches hooks off.
    ///
    /// ```
    /// # use tenterhook_systems::host::installation::{OffSwitch, OffValue};
    /// let switch = OffSwitch { keys: &["hooks", "enabled"], value: OffValue::Bool(false), also_in: &[] };
    /// assert!(switch.is_off(&serde_json::json!({"hooks": {"enabled": false}})));
    /// assert!(!switch.is_off(&serde_json::json!({"hooks": {}})));
    /// ```
    pub fn is_off(&self, settings: &Value) -> bool {
        let mut keys = self.keys.iter();
        let Some(found) = keys.try_fold(settings, |value, key| value.get(key)) else {
            return false;
        };
        match self.value {
            OffValue::Bool(off) => found.as_bool() == Some(off),
            OffValue::ListWith(text) => {
                let mut items = found.as_array().into_iter().flatten();
                items.any(|item| item == text)
            }
        }
    }
}

/// How a host records, in a TOML file, that the person approved the entries of hooks.
#[derive(Clone, Copy)]
pub struct SelfApproval {
    /// The path of the file below the home folder.
    pub path: &'static str,
    /// The environment variable with another base folder, and the path below it.
    pub variable: Option<(&'static str, &'static str)>,
    /// What the person agrees to, as a question: `Let Acme run these hooks without asking you?`.
    pub question: &'static str,
    /// What the person does without the record: `run acme and confirm the hooks`.
    pub by_hand: &'static str,
    /// Returns the value that approves an entry.
    pub value: fn(&InstalledEntry<'_>) -> ApprovalValue,
}

/// An entry in a host's configuration.
#[derive(Debug, Clone, Copy)]
pub struct InstalledEntry<'a> {
    /// The absolute path of the file that contains it.
    pub file: &'a str,
    /// The name of its list, which is the host's name for the event.
    pub list: &'a str,
    /// Its position in the list.
    pub index: usize,
    /// The element of the list.
    pub element: &'a Value,
}

/// A string in a TOML file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalValue {
    /// The tables that contain it, the outermost first.
    pub tables: Vec<String>,
    /// The key.
    pub key: &'static str,
    /// The string.
    pub value: String,
}

/// Whether a host denies when the program of a hook is missing, killed or late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailsClosed {
    /// Always.
    Always,
    /// With a key that the installation writes.
    ByKey(&'static str),
    /// It cannot be made to. The text says what opens the gate.
    Never(&'static str),
}

/// Where hooks are, and in which form.
#[derive(Debug, Clone, Copy)]
pub struct HookPlace {
    /// The path below the home folder or the project's folder.
    pub path: &'static str,
    /// The environment variable with another base folder, and the path below it: `("CODEX_HOME", "hooks.json")`.
    pub variable: Option<(&'static str, &'static str)>,
    /// The form.
    pub form: PlaceForm,
}

/// The form of a host's hook configuration.
#[derive(Clone, Copy)]
pub enum PlaceForm {
    /// A JSON file (comments allowed) that also has other settings. At `keys`, an object has a list for each event.
    Json {
        /// The path of keys to the object, for example `["hooks"]`.
        keys: &'static [&'static str],
        /// Returns the element for the list of an event, given the shim's command line.
        entry: fn(&HostEvent, &str) -> Value,
    },
    /// A TOML file with a list of tables `[[hooks]]`.
    Toml {
        /// The name of the list.
        list: &'static str,
        /// Returns the table for an event, given the shim's command line.
        entry: fn(&HostEvent, &str) -> Value,
    },
    /// Files that belong to Tenterhook alone.
    Own {
        /// Returns each file's path below the place and its text, given the path of the shim.
        files: fn(&str) -> Vec<OwnFile>,
    },
}

/// Returns the line that a host's shell runs for an event: the shim, with the host and the event.
///
/// ```
/// # use tenterhook_systems::host::installation::command_line;
/// let line = command_line("/home/ada/bin/tenterhook-shim", "acme", "BeforeTool");
/// assert_eq!(line, "'/home/ada/bin/tenterhook-shim' acme BeforeTool");
/// ```
pub fn command_line(shim: &str, host: &str, event: &str) -> String {
    format!("'{}' {host} {event}", shim.replace('\'', r"'\''"))
}

/// A file that belongs to Tenterhook alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnFile {
    /// The path below the place; empty if the place is the file.
    pub path: String,
    /// The content.
    pub text: String,
    /// Whether it is executable.
    pub is_executable: bool,
}

impl std::fmt::Debug for PlaceForm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Json { .. } => "Json",
            Self::Toml { .. } => "Toml",
            Self::Own { .. } => "Own",
        })
    }
}

impl std::fmt::Debug for SelfApproval {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.path)
    }
}

impl std::fmt::Debug for Installation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Installation")
            .field("user", &self.user)
            .field("project", &self.project)
            .finish_non_exhaustive()
    }
}
