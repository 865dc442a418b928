//! A checked name of a folder.

use std::fmt;
use std::str::FromStr;

/// The name of a workspace or profile. It is the name of one folder and cannot lead elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FolderName(String);

/// The error for text that is not a [`FolderName`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a folder name, expected a name without `/`, `\\` or a leading dot", .0.escape_debug())]
pub struct NoFolderName(String);

impl FolderName {
    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for FolderName {
    type Err = NoFolderName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_wrong =
            |character: char| character.is_control() || ['/', '\\', ':'].contains(&character);
        if text.is_empty() || text.starts_with('.') || text.contains(is_wrong) {
            return Err(NoFolderName(text.to_owned()));
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for FolderName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_nowhere_else() {
        for name in ["main", "a b", "ä", "x.y"] {
            assert_eq!(name.parse::<FolderName>().unwrap().as_str(), name);
        }
        for name in ["", ".", "..", "../x", "a/b", "/etc", "a\\b", "C:", "a\nb"] {
            assert!(name.parse::<FolderName>().is_err(), "{name:?}");
        }
    }
}
