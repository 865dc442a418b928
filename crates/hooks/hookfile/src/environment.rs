//! The environment variables that hook files may use. They are captured once, so that all files of a load
//! see the same values.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// Environment variables and a home directory.
#[derive(Clone, Default)]
pub struct Environment {
    variables: BTreeMap<OsString, OsString>,
    home: Option<PathBuf>,
}

/// Shows only the names, because values may be secret.
impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.variables.keys()).finish()
    }
}

impl Environment {
    /// Captures the variables of this process and the home directory of its user.
    pub fn of_process() -> Self {
        Self {
            variables: std::env::vars_os().collect(),
            home: std::env::home_dir(),
        }
    }

    /// Creates an environment from these variables. The value of `HOME` becomes the home directory.
    pub fn new<K: Into<OsString>, V: Into<OsString>>(
        variables: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        let variables: BTreeMap<OsString, OsString> = variables
            .into_iter()
            .map(|(key, value)| (key.into(), value.into()))
            .collect();
        let home = variables.get(OsStr::new("HOME")).map(PathBuf::from);
        Self { variables, home }
    }

    /// Replaces `${env.NAME}` with the value of the variable, and nothing else. An unset variable becomes
    /// empty text.
    pub fn expand_value(&self, text: &str) -> OsString {
        self.expand(text, |reference| reference.strip_prefix("{env."))
    }

    /// Returns the name of the first `${env.NAME}` in a value whose variable is not set.
    pub fn first_unset<'a>(&self, text: &'a str) -> Option<&'a str> {
        let references = text.split("${env.").skip(1);
        let mut names = references.filter_map(|rest| Some(split_name(rest, "{")?.0));
        names.find(|name| !self.variables.contains_key(OsStr::new(name)))
    }

    /// Replaces a leading `~`, and `$NAME`, `${NAME}` and `${env.NAME}` everywhere.
    pub fn expand_path(&self, text: &str) -> PathBuf {
        let (home, rest) = match (text.strip_prefix('~'), &self.home) {
            (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => {
                (Some(home), rest)
            }
            _ => (None, text),
        };
        let rest = self.expand(rest, |reference| {
            let braced = reference.strip_prefix("{env.");
            let braced = braced.or_else(|| reference.strip_prefix('{'));
            Some(braced.unwrap_or(reference))
        });
        let mut path = home.map_or_else(OsString::new, |home| home.clone().into_os_string());
        path.push(rest);
        PathBuf::from(path)
    }

    /// Replaces references to variables. For each `$`, `reference` gets the text after it. If the `$`
    /// starts a reference, `reference` returns the text from the start of the name.
    fn expand(&self, text: &str, reference: impl Fn(&str) -> Option<&str>) -> OsString {
        let mut expanded = OsString::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('$') {
            expanded.push(before);
            let name = reference(after).and_then(|from_name| split_name(from_name, after));
            let Some((name, behind)) = name else {
                expanded.push("$");
                rest = after;
                continue;
            };
            if let Some(value) = self.variables.get(OsStr::new(name)) {
                expanded.push(value);
            }
            rest = behind;
        }
        expanded.push(rest);
        expanded
    }
}

/// Splits the text after a `$` into the variable's name and the rest, without the closing brace if there
/// is one.
fn split_name<'a>(from_name: &'a str, after_dollar: &str) -> Option<(&'a str, &'a str)> {
    let is_part = |c: char| c == '_' || c.is_ascii_alphanumeric();
    let end = from_name.find(|c| !is_part(c)).unwrap_or(from_name.len());
    let (name, behind) = from_name.split_at_checked(end)?;
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if after_dollar.starts_with('{') {
        Some((name, behind.strip_prefix('}')?))
    } else {
        Some((name, behind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment() -> Environment {
        Environment::new([("HOME", "/home/ada"), ("T", "token"), ("DIR", "work")])
    }

    #[test]
    fn values_expand_only_the_exact_form() {
        for (text, expected) in [
            ("v-${env.T}", "v-token"),
            ("${env.T}${env.T}", "tokentoken"),
            ("[${env.NONE}]", "[]"),
            ("$T ${T} $$ ~", "$T ${T} $$ ~"),
            ("${env.T", "${env.T"),
            ("${env.}", "${env.}"),
            ("${env.T-x}", "${env.T-x}"),
            ("$${env.T}", "$token"),
            ("", ""),
        ] {
            assert_eq!(environment().expand_value(text), expected, "{text}");
        }
    }

    #[test]
    fn a_variable_that_is_not_set_is_named() {
        for (text, expected) in [
            ("v-${env.T} ${env.NONE} ${env.OTHER}", Some("NONE")),
            ("${env.T} ${env. $NONE ${NONE} ${env.NONE", None),
        ] {
            assert_eq!(environment().first_unset(text), expected, "{text}");
        }
    }

    #[test]
    fn paths_expand_the_home_directory_and_variables() {
        for (text, expected) in [
            ("~", "/home/ada"),
            ("~/x", "/home/ada/x"),
            ("~bob/x", "~bob/x"),
            ("a/~", "a/~"),
            ("$DIR/x", "work/x"),
            ("${DIR}x", "workx"),
            ("${env.DIR}/$T", "work/token"),
            ("$NONE", ""),
            ("a$", "a$"),
            ("$1", "$1"),
            ("${DIR", "${DIR"),
        ] {
            assert_eq!(
                environment().expand_path(text),
                PathBuf::from(expected),
                "{text}"
            );
        }
    }
}
