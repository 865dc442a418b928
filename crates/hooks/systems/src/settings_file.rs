//! How coding agents write hooks in their own files, so that these hooks run here without a change.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tenterhook_engine::{Dialect, EventKind};

pub use crate::command_hook::{Condition, ConditionError, ConditionTool, PatternSubject};

/// The files of a hook system in which people write hooks next to other settings.
///
/// At the key `hooks`, such a file has an object with a list for each event.
pub struct HookSettings {
    /// The names of the folders and files of the system, by which its files are recognised.
    pub places: &'static [&'static str],
    /// Where the user's own file is, below the home folder.
    pub user: &'static str,
    /// Where the file of a project is, below its folder.
    pub project: &'static str,
    /// The events that hooks can be for.
    pub events: &'static [SettingsEvent],
    /// Keys next to the events that are not events.
    pub other_keys: &'static [&'static str],
    /// What each key of such a file does here.
    pub keys: &'static [SettingsKey],
    /// The tools whose calls the key `if` of a hook can select. Empty if the system has no such key.
    pub conditions: &'static [ConditionTool],
    /// How plugins of the system have hooks.
    pub plugin: Option<&'static PluginHooks>,
    /// The key of an object that switches hooks off: with `enabled: false` all of them, and with `disabled` the
    /// hooks with these names or command lines.
    pub switches_key: Option<&'static str>,
    /// Whether hooks are in groups, each with a matcher and the list `hooks`.
    pub has_groups: bool,
    /// The keys of a hook that have its command line. The first one that is present counts.
    pub command_keys: &'static [&'static str],
    /// The key of a hook that has its timeout.
    pub timeout_key: &'static str,
    /// What one unit of the timeout is.
    pub timeout_unit: Duration,
    /// The timeout of a hook that does not set one.
    pub default_timeout: Duration,
    /// How matchers are written.
    pub matchers: MatcherStyle,
    /// Returns the dialect of a hook on an event, with the condition in its key `if`.
    pub dialect: fn(&'static SettingsEvent, Option<Condition>) -> Arc<dyn Dialect>,
}

impl fmt::Debug for HookSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.user)
    }
}

impl HookSettings {
    /// Returns the event with this name.
    pub fn event(&self, name: &str) -> Option<&'static SettingsEvent> {
        self.events.iter().find(|event| event.name == name)
    }

    /// Returns what a key does, or `None` if the system does not have it there.
    pub fn key(&self, place: KeyPlace, name: &str) -> Option<KeyEffect> {
        let mut keys = self.keys.iter();
        let key = keys.find(|key| key.place == place && key.name == name)?;
        Some(key.effect)
    }

    /// Returns whether a key of a hook does here what it does in the system.
    pub fn carries(&self, name: &str) -> bool {
        self.key(KeyPlace::Hook, name) == Some(KeyEffect::Carried)
    }
}

/// A key of a file of settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SettingsKey {
    /// Where the key is.
    pub place: KeyPlace,
    /// The name of the key.
    pub name: &'static str,
    /// What the key does here.
    pub effect: KeyEffect,
}

impl SettingsKey {
    /// Creates a key next to `hooks`.
    pub const fn of_file(name: &'static str, effect: KeyEffect) -> Self {
        Self {
            place: KeyPlace::File,
            name,
            effect,
        }
    }

    /// Creates a key next to a matcher.
    pub const fn of_group(name: &'static str, effect: KeyEffect) -> Self {
        Self {
            place: KeyPlace::Group,
            name,
            effect,
        }
    }

    /// Creates a key of a hook.
    pub const fn of_hook(name: &'static str, effect: KeyEffect) -> Self {
        Self {
            place: KeyPlace::Hook,
            name,
            effect,
        }
    }
}

/// Where a key of a file of settings is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyPlace {
    /// Next to `hooks`.
    File,
    /// Next to a matcher and its list `hooks`.
    Group,
    /// In a hook.
    Hook,
}

/// What a key of a file of settings does here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyEffect {
    /// The same as in the system.
    Carried,
    /// Nothing, because it only changes what people see.
    Display,
    /// Nothing, because it is about something else than the hooks of the file. The text says what.
    Separate(&'static str),
    /// Nothing, and the reader of the file warns. The text says what happens instead.
    Ignored(&'static str),
    /// It restricts HTTP hooks, so that a file with such a hook is refused.
    RefusedWithHttp,
    /// The file or the hook is refused, because guards could be missing. The text says why.
    Refused(&'static str),
    /// Only hooks of a type that does not run here have it.
    OfOtherType,
}

/// How plugins have hooks.
#[derive(Debug)]
pub struct PluginHooks {
    /// The file that describes a plugin, below the folder of the plugin.
    pub manifest: &'static str,
    /// The folder of a plugin that contains its files of hooks.
    pub folder: &'static str,
    /// The variables with the folder of the plugin.
    pub root_variables: &'static [&'static str],
    /// The variables with the folder in which the plugin keeps its data.
    pub data_variables: &'static [&'static str],
    /// The folder with the data of all plugins, below the home folder.
    pub data: &'static str,
    /// The folder of installed plugins, below the home folder: `MARKETPLACE/PLUGIN/VERSION`.
    pub installed: &'static str,
    /// How the names of variables with the plugin's options begin.
    pub option_prefix: &'static str,
}

impl PluginHooks {
    /// Returns the folder of the plugin that a file of hooks belongs to, given its absolute path. Looks at nothing
    /// but the path, so that files that an agent adds cannot change it.
    pub fn root(&self, path: &Path) -> Option<PathBuf> {
        if let Some(root) = path
            .ancestors()
            .nth(Path::new(self.manifest).components().count())
            && root.join(self.manifest) == path
        {
            return Some(root.to_owned());
        }
        let folder = path.parent()?;
        let root = folder.parent()?;
        // A folder of the agent's own settings, such as `.claude/hooks`, is not in a plugin.
        let is_settings = root.file_name().is_some_and(|name| {
            Path::new(self.data)
                .components()
                .next()
                .is_some_and(|it| it.as_os_str() == name)
        });
        (folder.ends_with(self.folder) && !is_settings).then(|| root.to_owned())
    }

    /// Returns the name of the variable with an option of the plugin.
    pub fn option_variable(&self, option: &str) -> String {
        let name = |c: char| {
            if c.is_ascii_alphanumeric() {
                c.to_ascii_uppercase()
            } else {
                '_'
            }
        };
        let name: String = option.chars().map(name).collect();
        format!("{}{name}", self.option_prefix)
    }

    /// Returns the name by which the agent's settings know a plugin. `name` is the name in its manifest, if it is known.
    pub fn id(&self, root: &Path, name: Option<&str>) -> String {
        let part = |up: usize| {
            let folder = root.ancestors().nth(up).and_then(Path::file_name);
            folder.unwrap_or_default().to_string_lossy().into_owned()
        };
        let is_installed = root
            .ancestors()
            .nth(3)
            .is_some_and(|folder| folder.ends_with(self.installed));
        if is_installed {
            format!("{}@{}", part(1), part(2))
        } else {
            format!("{}@inline", name.map_or_else(|| part(0), str::to_owned))
        }
    }

    /// Returns the name of the folder with a plugin's data.
    pub fn data_name(&self, root: &Path, name: Option<&str>) -> String {
        let is_kept = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let id = self.id(root, name);
        id.chars()
            .map(|c| if is_kept(c) { c } else { '-' })
            .collect()
    }
}

/// An event for which hooks can be written in a file of settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SettingsEvent {
    /// The system's name for the event.
    pub name: &'static str,
    /// The event of the catalogue.
    pub kind: EventKind,
    /// Whether matchers have an effect on the event.
    pub has_matcher: bool,
    /// Which occurrences of the catalogue's event are this event.
    pub occurrences: Occurrences,
    /// The timeout of a hook that does not set one, if the event has its own.
    pub timeout: Option<Duration>,
}

/// Which occurrences of an event of the catalogue are an event of a system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occurrences {
    /// All of them, except results of calls that were denied.
    All,
    /// Results of tools that succeeded.
    Succeeded,
    /// Results of tools that failed.
    Failed,
}

impl SettingsEvent {
    /// Creates an event with a matcher and the system's usual timeout.
    pub const fn new(name: &'static str, kind: EventKind) -> Self {
        Self {
            name,
            kind,
            has_matcher: true,
            occurrences: Occurrences::All,
            timeout: None,
        }
    }

    /// Makes matchers have no effect.
    #[must_use]
    pub const fn without_matcher(self) -> Self {
        Self {
            has_matcher: false,
            ..self
        }
    }

    /// Restricts the event to some occurrences.
    #[must_use]
    pub const fn only(self, occurrences: Occurrences) -> Self {
        Self {
            occurrences,
            ..self
        }
    }

    /// Sets the timeout of hooks that do not set one, in seconds.
    #[must_use]
    pub const fn within(self, seconds: u64) -> Self {
        Self {
            timeout: Some(Duration::from_secs(seconds)),
            ..self
        }
    }
}

/// How matchers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatcherStyle {
    /// A list of names separated by `|` or `,`, or else a regular expression for any part of the subject.
    NamesOrPart,
    /// A regular expression for any part of the subject.
    Part,
    /// A regular expression for the whole subject.
    Whole,
}

impl MatcherStyle {
    /// Returns the matcher in our own form, which is a regular expression for the whole subject.
    pub fn whole(self, written: &str) -> String {
        let is_everything = written.is_empty() || written == "*";
        let is_name = |c: char| c.is_ascii_alphanumeric() || "_- ,|".contains(c);
        if is_everything || self == Self::Whole {
            return written.to_owned();
        }
        if self == Self::NamesOrPart && written.chars().all(is_name) {
            let names = written.split(['|', ',']).map(str::trim);
            return names
                .filter(|name| !name.is_empty())
                .collect::<Vec<_>>()
                .join("|");
        }
        format!("(?s:.*)(?:{written})(?s:.*)")
    }
}

#[cfg(test)]
mod tests {
    use tenterhook_engine::Matcher;

    use super::*;

    #[test]
    fn matchers_are_read_as_their_system_documents_them() {
        use MatcherStyle::{NamesOrPart, Part, Whole};
        for (style, written, subject, expected) in [
            (NamesOrPart, "", "Bash", true),
            (NamesOrPart, "*", "Bash", true),
            (NamesOrPart, "Bash", "Bash", true),
            (NamesOrPart, "Bash", "BashOutput", false),
            (NamesOrPart, "Edit|Write", "Write", true),
            (NamesOrPart, "Edit, Write", "Write", true),
            (NamesOrPart, "mcp__memory", "mcp__memory__read", false),
            (NamesOrPart, "mcp__memory__.*", "mcp__memory__read", true),
            (NamesOrPart, "Note.*", "NotebookEdit", true),
            (NamesOrPart, ".*Edit", "NotebookEdit2", true),
            (NamesOrPart, "^Edit", "MultiEdit", false),
            (Part, "Bash", "BashOutput", true),
            (Part, "Edit|Write", "MultiEdit", true),
            (Part, "^(Bash|apply_patch)$", "apply_patch", true),
            (Whole, "bash|edit", "edit", true),
            (Whole, "bash", "bash2", false),
        ] {
            let matcher = Matcher::parse(&style.whole(written)).unwrap();
            assert_eq!(
                matcher.matches(Some(subject)),
                expected,
                "{written} {subject}"
            );
        }
    }
}
