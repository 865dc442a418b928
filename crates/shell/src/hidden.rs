//! Recognises programs that the text of a line does not show: `$x`, `$(…)`, `/bin/su?o`.

use std::collections::HashMap;

use crate::assignment::is_assignment;
use crate::commands::Command;

/// Returns whether a shell replaces the name of this program when the line runs. Its folder does not
/// matter.
pub(crate) fn is_hidden(program: &str) -> bool {
    // A wrapper may get a whole line as one word.
    let program = program.split_whitespace().next().unwrap_or_default();
    // The variable with the user's shell is read like a shell.
    if ["$SHELL", "${SHELL}"].contains(&program) {
        return false;
    }
    let name = program.rsplit('/').next().unwrap_or_default();
    let is_set = name
        .split_once('[')
        .is_some_and(|(_, rest)| rest.contains(']'));
    let is_range = name.contains('{') && name.contains("..") && name.contains('}');
    // In `${x:-/bin/y}`, the slash belongs to the variable.
    let is_variable = name.contains('}') && program.contains("${");
    name.contains(['$', '`', '*', '?']) || is_set || is_range || is_variable
}

/// The values of variables that a line sets.
#[derive(Default)]
pub(crate) struct Values(HashMap<String, Vec<String>>);

impl Values {
    /// Collects the variables that the commands of a line set to plain text. A variable that the line
    /// names anywhere else may get another value, such as with `read x`.
    pub(crate) fn new(line: &str, commands: &[Command]) -> Self {
        let mut values: HashMap<String, Vec<String>> = HashMap::new();
        for command in commands.iter().filter(|command| command.is_certain) {
            let set = command.words.iter().take_while(|word| is_assignment(word));
            for (name, value) in set.filter_map(|word| word.split_once('=')) {
                values
                    .entry(name.to_owned())
                    .or_default()
                    .push(value.to_owned());
            }
        }
        values.retain(|name, values| names(line, name) == values.len());
        Self(values)
    }

    /// Returns the possible values of a word that consists of one variable.
    pub(crate) fn of(&self, word: &str) -> Option<&[String]> {
        let name = word.strip_prefix('$')?;
        let name = name
            .strip_prefix('{')
            .and_then(|name| name.strip_suffix('}'))
            .unwrap_or(name);
        self.0.get(name).map(Vec::as_slice)
    }
}

/// Counts where a line has a name, except where it uses the variable with this name.
fn names(line: &str, name: &str) -> usize {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let places = line.match_indices(name).filter(|(at, _)| {
        let before = line.get(..*at).unwrap_or_default();
        let after = line.get(at + name.len()..).unwrap_or_default();
        let is_use = before.ends_with('$') || (before.ends_with("${") && after.starts_with('}'));
        !before.ends_with(is_part) && !after.starts_with(is_part) && !is_use
    });
    places.count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_an_expansion_makes_is_hidden() {
        for program in [
            "$x",
            "${x}",
            "su$x",
            "${x:-/usr/bin/sudo}",
            "$(…)",
            "/bin/r?",
            "/bin/r[m]",
            "s*",
            "s{u..u}do",
            "$x y",
        ] {
            assert!(is_hidden(program), "{program}");
        }
        for program in [
            "rm",
            "[",
            "[[",
            "$HOME/bin/x",
            "${x}/bin/y",
            "$(…)/bin/y",
            "~/x",
            "ls *.rs",
            "$SHELL",
            "",
        ] {
            assert!(!is_hidden(program), "{program}");
        }
    }
}
