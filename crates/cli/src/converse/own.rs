//! What the conversation does itself: commands of the user, names, and what there is to call.

use tenterhook::EntryId;
use tenterhook_agent::resource::Bringer;
use tenterhook_agent::{UserCommand, UserCommandError};

use super::{Conversation, Record, command, load_anew};
use crate::args::Format;
use crate::check::count;
use crate::exit::Exit;
use crate::hooks::warn;
use crate::output::{self, style};
use crate::safe::{inset, safe, safe_line};
use crate::table::{self, Cell};

impl Conversation<'_> {
    /// Runs a command of the user and shows what it printed.
    pub(super) async fn run_for_user(&mut self, command: UserCommand, record: &mut Record) {
        let cancel = self.interrupts.token();
        self.terminal.wait_for("waiting for the command");
        let ran = self.agent.run_command(command, &cancel).await;
        self.terminal.settle();
        let error = match ran {
            Ok(ran) => {
                let Some(result) = ran.result else { return };
                self.terminal.lines(result.output.lines().map(safe));
                match result.exit_code {
                    _ if result.cancelled => {
                        record.note(Exit::Interrupted);
                        output::note("The command was cancelled");
                    }
                    Some(0) => {}
                    Some(status) => {
                        output::note(format_args!("The command ended with status {status}"));
                    }
                    None => output::note("The command was ended by a signal"),
                }
                return;
            }
            Err(error) => error,
        };
        let exit = match error {
            UserCommandError::Canceled => Exit::Interrupted,
            UserCommandError::Empty => Exit::Usage,
            UserCommandError::Start(_) | _ => Exit::Failed,
        };
        let text = tenterhook::error_chain(&error);
        let text = format!("The command was not run: {}", inset(&text, 4));
        self.fail(record, exit, text);
    }

    /// Gives the session a name.
    pub(super) async fn name(&mut self, name: &str) {
        self.agent.name_session(name).await;
        self.terminal.settle();
        let name = self.agent.session().name().unwrap_or_default();
        self.terminal
            .line(&format!("The session is named `{}`.", safe_line(name)));
    }

    /// Gives an entry a label, or takes it away.
    pub(super) async fn label(
        &mut self,
        entry: &EntryId,
        label: Option<&str>,
        record: &mut Record,
    ) {
        if let Err(error) = self.agent.label(entry, label).await {
            let text = safe_line(&error.to_string());
            let text = format!("Nothing is changed: {text}; `/tree` shows the entries");
            self.fail(record, Exit::Usage, text);
        }
    }

    /// Shows the hooks that are in force, an event a line.
    pub(super) fn show_hooks(&self) {
        let hooks = self.engine.hooks();
        let rows: Vec<Vec<Cell>> = hooks
            .chunk_by(|a, b| a.event == b.event)
            .map(|hooks| {
                let event = hooks.first().and_then(|hook| hook.event.as_ref());
                let event = event.map_or("every event", |event| event.as_str());
                let names = hooks.iter().map(|hook| match &hook.problem {
                    Some(_) => format!("{} (broken)", hook.id),
                    None => hook.id.to_string(),
                });
                let names: Vec<String> = names.collect();
                vec![
                    (event.to_owned(), style::NAME),
                    table::plain(safe_line(&names.join(", "))),
                ]
            })
            .collect();
        if rows.is_empty() {
            self.terminal.line("No hooks.");
        } else {
            self.terminal.lines(table::lines(&rows));
        }
    }

    /// Loads hooks, templates and skills anew.
    pub(super) async fn reload_all(&mut self) {
        let loading = Box::pin(load_anew(&mut self.reloader, self.interrupts));
        let news = self.agent.reload(loading).await;
        self.terminal.settle();
        if let Some(news) = news {
            self.tell(news);
        }
        let resources = self.agent.resources();
        self.terminal.line(&format!(
            "In force now: {}, {} and {}.",
            count(self.engine.hooks().len(), "hook"),
            count(resources.templates().len(), "template"),
            count(resources.skills().len(), "skill"),
        ));
        self.tell_resources();
    }

    /// Says which templates cannot be called, and which skills of the project the model is told of: nobody approved them.
    pub(super) fn tell_resources(&self) {
        let resources = self.agent.resources();
        for template in resources.templates() {
            let name = template.name.as_str();
            if self.has_command(name) {
                warn(format_args!(
                    "the template `{}` is never used: there is a command `/{name}`",
                    safe_line(&template.path.to_string_lossy()),
                ));
            }
        }
        let is_told = |bringer: &Bringer| matches!(bringer, Bringer::Project { .. });
        let skills = resources.skills().iter();
        let names: Vec<String> = skills
            .filter(|skill| is_told(&skill.bringer) && !skill.is_hidden)
            .map(|skill| format!("`{}`", skill.name))
            .collect();
        if !names.is_empty() && self.format == Format::Text {
            output::note(format_args!(
                "The model is told of skills of the project: {}",
                names.join(", ")
            ));
        }
    }

    /// Says whether a command takes a name from templates.
    pub(super) fn has_command(&self, name: &str) -> bool {
        let mut brought = self.commands.iter().flat_map(|command| &command.names);
        command::find(name).is_some() || brought.any(|brought| brought == name)
    }

    /// Returns how templates and skills are called, and what they are for.
    pub(super) fn resource_rows(&self) -> Vec<(String, String)> {
        let resources = self.agent.resources();
        let templates = resources.templates().iter().map(|template| {
            let hint = template.argument_hint.as_deref().unwrap_or_default();
            let way = format!("/{} {}", template.name, safe_line(hint));
            let does = format!(
                "{} ({})",
                safe_line(&template.description),
                template.bringer
            );
            (way.trim_end().to_owned(), does)
        });
        let skills = resources.skills().iter().map(|skill| {
            let does = format!("{} ({})", safe_line(&skill.description), skill.bringer);
            (format!("/skill:{}", skill.name), does)
        });
        templates.chain(skills).collect()
    }

    /// Returns the names of templates and skills as they are called.
    pub(super) fn resource_names(&self) -> Vec<String> {
        let resources = self.agent.resources();
        let templates = resources.templates().iter();
        let templates = templates.map(|template| format!("/{}", template.name));
        let skills = resources.skills().iter();
        let skills = skills.map(|skill| format!("/skill:{}", skill.name));
        templates.chain(skills).collect()
    }
}
