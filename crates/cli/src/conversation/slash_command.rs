//! The table of slash commands. The code that runs them, `/help` and error messages all read it.

/// One of the conversation's own commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SlashCommandKind {
    New,
    Resume,
    Fork,
    Tree,
    Compact,
    Model,
    Thinking,
    Name,
    Label,
    Hooks,
    Reload,
    Help,
    Quit,
}

/// The description of a command.
#[derive(Debug)]
pub(crate) struct SlashCommand {
    pub(crate) kind: SlashCommandKind,
    /// The name, without the slash.
    pub(crate) name: &'static str,
    /// The forms of the command's arguments. `""` means no arguments.
    pub(crate) forms: &'static [&'static str],
    /// What it does, as a sentence without a subject.
    pub(crate) does: &'static str,
}

const fn row(
    kind: SlashCommandKind,
    name: &'static str,
    forms: &'static [&'static str],
    does: &'static str,
) -> SlashCommand {
    SlashCommand {
        kind,
        name,
        forms,
        does,
    }
}

/// Every command, in the order in which `/help` shows them. Commands of extensions cannot replace them.
pub(crate) const TABLE: &[SlashCommand] = &[
    row(
        SlashCommandKind::Compact,
        "compact",
        &["[INSTRUCTIONS]"],
        "summarises the conversation so far",
    ),
    row(SlashCommandKind::New, "new", &[""], "starts a new session"),
    row(
        SlashCommandKind::Resume,
        "resume",
        &["ID"],
        "resumes a stored session",
    ),
    row(
        SlashCommandKind::Fork,
        "fork",
        &["ENTRY"],
        "copies the session up to an entry and continues in the copy",
    ),
    row(
        SlashCommandKind::Tree,
        "tree",
        &["", "ENTRY [summary [INSTRUCTIONS]]"],
        "shows the entries, or goes to one of them",
    ),
    row(
        SlashCommandKind::Model,
        "model",
        &["", "NAME", "next"],
        "shows the models, or switches to another one",
    ),
    row(
        SlashCommandKind::Thinking,
        "thinking",
        &["", "LEVEL"],
        "shows or sets how much the model thinks",
    ),
    row(
        SlashCommandKind::Label,
        "label",
        &["ENTRY [TEXT]"],
        "labels an entry, or removes its label",
    ),
    row(
        SlashCommandKind::Name,
        "name",
        &["NAME"],
        "names the session",
    ),
    row(
        SlashCommandKind::Hooks,
        "hooks",
        &[""],
        "shows the hooks that are in force",
    ),
    row(
        SlashCommandKind::Reload,
        "reload",
        &[""],
        "reloads hooks, templates and skills",
    ),
    row(SlashCommandKind::Help, "help", &[""], "shows this help"),
    row(SlashCommandKind::Quit, "quit", &[""], "ends the session"),
];

/// Finds a command by its name, without the slash.
pub(crate) fn find(name: &str) -> Option<&'static SlashCommand> {
    TABLE.iter().find(|row| row.name == name)
}

impl SlashCommand {
    /// Returns every form of the command, with its name.
    pub(crate) fn ways(&self) -> impl Iterator<Item = String> {
        let ways = self.forms.iter();
        ways.map(|form| format!("/{} {form}", self.name).trim_end().to_owned())
    }
}

/// Returns the name of the command that a line starts with. A line that starts with a path is not a command.
pub(super) fn command_name(line: &str) -> Option<&str> {
    let word = line.split_whitespace().next().unwrap_or_default();
    let name = word.strip_prefix('/')?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || ['-', '_', ':'].contains(&c);
    (name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(is_name))
        .then_some(name)
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
            assert_eq!(find(row.name).map(|found| found.kind), Some(row.kind));
            let same = TABLE.iter().filter(|other| other.kind == row.kind);
            assert_eq!(same.count(), 1, "{}", row.name);
            assert!(
                !row.forms.is_empty() && !row.does.is_empty(),
                "{}",
                row.name
            );
        }
        let ways: Vec<String> = find("tree").unwrap().ways().collect();
        assert_eq!(ways, ["/tree", "/tree ENTRY [summary [INSTRUCTIONS]]"]);
    }

    #[test]
    fn a_word_after_a_slash_is_a_command_and_a_path_is_none() {
        for (line, expected) in [
            ("/compct", Some("compct")),
            ("/help me", Some("help")),
            ("/my_plan:a-2", Some("my_plan:a-2")),
            ("/etc/hosts is what?", None),
            ("/", None),
            ("/ is a slash", None),
            ("what is /tmp", None),
        ] {
            assert_eq!(command_name(line), expected, "{line}");
        }
    }
}
