//! The two forms of configuration in which Tenterhook's entries stand among the entries of others.

use serde_json::Value;
use tenterhook_systems::host::HostEvent;
use tenterhook_systems::host::installation::PlaceForm;

use crate::edit_error::EditError;
use crate::entry::{FoundEntry, LinePrefix, NewEntry};
use crate::json_settings::{self, WithEntries};
use crate::toml_settings;

/// Where the entries are in a text.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ListForm {
    /// In JSON, in the object at this path.
    Json(&'static [&'static str]),
    /// In TOML, in the list of tables with this name.
    Toml(&'static str),
}

/// Returns the entry of an event with a command line.
pub(crate) type EntryFn = fn(&HostEvent, &str) -> Value;

impl ListForm {
    /// Returns the form and the entries of a place, unless its files belong to Tenterhook alone.
    pub(crate) fn of(form: &PlaceForm) -> Option<(Self, EntryFn)> {
        match form {
            PlaceForm::Json { keys, entry } => Some((Self::Json(keys), *entry)),
            PlaceForm::Toml { list, entry } => Some((Self::Toml(list), *entry)),
            PlaceForm::Own { .. } => None,
        }
    }

    pub(crate) fn add(self, text: &str, entries: &[NewEntry]) -> Result<WithEntries, EditError> {
        match self {
            Self::Json(keys) => json_settings::add(text, keys, entries),
            Self::Toml(list) => Ok(WithEntries {
                text: toml_settings::add(text, list, entries)?,
                created: Vec::new(),
            }),
        }
    }

    pub(crate) fn find(
        self,
        text: &str,
        prefix: LinePrefix<'_>,
    ) -> Result<Vec<FoundEntry>, EditError> {
        match self {
            Self::Json(keys) => json_settings::find(text, keys, prefix),
            Self::Toml(list) => toml_settings::find(text, list, prefix),
        }
    }

    pub(crate) fn remove(
        self,
        text: &str,
        prefix: LinePrefix<'_>,
        selects: &dyn Fn(&str) -> bool,
        created: &[Vec<String>],
    ) -> Result<String, EditError> {
        match self {
            Self::Json(keys) => json_settings::remove(text, keys, prefix, selects, created),
            Self::Toml(list) => toml_settings::remove(text, list, prefix, selects),
        }
    }
}
