//! The words that the editor suggests to complete a line: commands, templates, skills and entries of
//! the session.

use super::slash_command::{self, TABLE};
use super::state::Conversation;
use tenterhook_protocol::escape::escape_line;
use tenterhook_setup::warning::warn;
use tenterhook_terminal::editor::CompletionWord;
use tenterhook_terminal::session_tree;

/// The maximum number of entries of a session that are offered as completions.
const MAX_ENTRIES: usize = 100;

impl Conversation<'_> {
    /// Updates the words that the editor suggests.
    pub(super) fn update_completions(&self) {
        self.terminal.update_completions(|words| {
            self.agent.cwd().clone_into(&mut words.cwd);
            words.commands = self.command_words();
            let entries = self.agent.session().tree().into_iter().rev();
            words.entries = entries
                .take(MAX_ENTRIES)
                .map(|entry| CompletionWord {
                    text: entry.id.to_string(),
                    about: format!(
                        "{}: {}",
                        session_tree::kind_of(entry),
                        session_tree::text_of(entry)
                    ),
                    form: String::new(),
                })
                .collect();
        });
    }

    /// Returns every command, with the form of its arguments.
    fn command_words(&self) -> Vec<CompletionWord> {
        let own = TABLE.iter().map(|row| CompletionWord {
            text: row.name.to_owned(),
            about: row.does.to_owned(),
            form: row.forms.last().copied().unwrap_or_default().to_owned(),
        });
        let foreign = self.commands.iter().flat_map(|command| {
            command.names.iter().map(|name| CompletionWord {
                text: escape_line(name),
                about: escape_line(&command.description),
                form: String::new(),
            })
        });
        let resources = self.resource_rows().into_iter().map(|(way, about)| {
            let (name, form) = way.split_once(' ').unwrap_or((&way, ""));
            CompletionWord {
                text: name.trim_start_matches('/').to_owned(),
                about,
                form: form.to_owned(),
            }
        });
        own.chain(foreign).chain(resources).collect()
    }

    /// Warns about commands of extensions that can never run.
    pub(super) fn warn_of_shadowed_commands(&self) {
        let names = self.commands.iter().flat_map(|command| &command.names);
        for name in names.filter(|name| slash_command::find(name).is_some()) {
            warn(format_args!(
                "an extension's command `/{}` never runs, because `tenterhook run` has its own command of this name",
                escape_line(name)
            ));
        }
    }
}
