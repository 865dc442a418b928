//! The slash commands of a conversation, in one table: what runs them, `/help` and the messages read it.

/// A command that the conversation has itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Own {
    New,
    Resume,
    Fork,
    Tree,
    Compact,
    Model,
    Thinking,
    Help,
    Quit,
}

/// What there is to know of a command.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) own: Own,
    /// The name, without the slash.
    pub(crate) name: &'static str,
    /// The forms of what may stand behind the name; `""` is nothing.
    pub(crate) forms: &'static [&'static str],
    /// What it does, as half a sentence.
    pub(crate) does: &'static str,
}

const fn row(
    own: Own,
    name: &'static str,
    forms: &'static [&'static str],
    does: &'static str,
) -> Row {
    Row {
        own,
        name,
        forms,
        does,
    }
}

/// Every command, in the order in which people are told of them. Those of extensions cannot take their names.
pub(crate) const TABLE: &[Row] = &[
    row(
        Own::Compact,
        "compact",
        &[""],
        "summarises the conversation so far",
    ),
    row(Own::New, "new", &[""], "begins another session"),
    row(
        Own::Resume,
        "resume",
        &["ID"],
        "goes on with a stored session",
    ),
    row(
        Own::Fork,
        "fork",
        &["ENTRY"],
        "copies the session up to an entry, and goes on in the copy",
    ),
    row(
        Own::Tree,
        "tree",
        &["", "ENTRY [summary]"],
        "shows the entries, or goes to one of them",
    ),
    row(
        Own::Model,
        "model",
        &["", "NAME", "next"],
        "shows the models, or chooses the one that answers from now on",
    ),
    row(
        Own::Thinking,
        "thinking",
        &["", "LEVEL"],
        "shows how much the model thinks, or chooses it",
    ),
    row(Own::Help, "help", &[""], "shows this"),
    row(Own::Quit, "quit", &[""], "ends the session"),
];

/// Finds a command by its name, without the slash.
pub(crate) fn find(name: &str) -> Option<&'static Row> {
    TABLE.iter().find(|row| row.name == name)
}

impl Row {
    /// Returns the ways to write the command.
    pub(crate) fn ways(&self) -> impl Iterator<Item = String> {
        let ways = self.forms.iter();
        ways.map(|form| format!("/{} {form}", self.name).trim_end().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_command_stands_once_in_the_table_and_says_how_it_is_written() {
        let names: BTreeSet<&str> = TABLE.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), TABLE.len());
        for row in TABLE {
            assert_eq!(find(row.name).map(|found| found.own), Some(row.own));
            let same = TABLE.iter().filter(|other| other.own == row.own);
            assert_eq!(same.count(), 1, "{}", row.name);
            assert!(
                !row.forms.is_empty() && !row.does.is_empty(),
                "{}",
                row.name
            );
        }
        let ways: Vec<String> = find("tree").unwrap().ways().collect();
        assert_eq!(ways, ["/tree", "/tree ENTRY [summary]"]);
    }
}
