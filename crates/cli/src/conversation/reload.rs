//! Reloads hooks, templates and skills from their files, and reports the changes to the user.

use tenterhook_agent::resource::ResourceSource;
use tenterhook_discovery::{ChangeKind, Reloaded, Reloader};

use super::format::Format;
use super::slash_command;
use super::state::Conversation;
use tenterhook_protocol::escape::escape_line;
use tenterhook_setup::warning::warn;
use tenterhook_terminal::interrupt::Interrupts;
use tenterhook_terminal::output;
use tenterhook_terminal::output::plural::count;

impl Conversation<'_> {
    /// Loads hooks whose files have changed, and reports the changes.
    pub(super) async fn reload(&mut self) {
        let Some(reloader) = self.reloader.as_mut() else {
            return;
        };
        let cancel = self.interrupts.token();
        if let Some(news) = cancel.run_until_cancelled(reloader.follow()).await {
            self.report_reload(news);
        }
    }

    /// Reloads all hooks, templates and skills.
    pub(super) async fn reload_all(&mut self) {
        let loading = Box::pin(load_anew(&mut self.reloader, self.interrupts));
        let news = self.agent.reload(loading).await;
        self.terminal.end_open_line();
        if let Some(news) = news {
            self.report_reload(news);
        }
        let resources = self.agent.resources();
        self.terminal.print_line(&format!(
            "In force now: {}, {} and {}.",
            count(self.engine.hooks().len(), "hook"),
            count(resources.templates().len(), "template"),
            count(resources.skills().len(), "skill"),
        ));
        self.report_resources();
    }

    pub(super) fn report_reload(&self, news: Reloaded) {
        for problem in &news.problems {
            warn(escape_line(problem));
        }
        for change in news.changes {
            let line = escape_line(&change.to_string());
            let is_wanted = matches!(
                change.kind,
                ChangeKind::Reloaded { .. } | ChangeKind::Removed
            );
            if !is_wanted {
                warn(line);
            } else if self.format == Format::Text {
                output::note(line);
            }
        }
    }

    /// Warns about templates that can never be called. Also lists the project skills that the model sees, because
    /// skills need no approval.
    pub(super) fn report_resources(&self) {
        let resources = self.agent.resources();
        for template in resources.templates() {
            let name = template.name.as_str();
            if self.has_command(name) {
                warn(format_args!(
                    "the template `{}` is never used, because `/{name}` is a command",
                    escape_line(&template.path.to_string_lossy()),
                ));
            }
        }
        let is_of_project =
            |source: &ResourceSource| matches!(source, ResourceSource::Project { .. });
        let skills = resources.skills().iter();
        let names: Vec<String> = skills
            .filter(|skill| is_of_project(&skill.source) && !skill.is_hidden)
            .map(|skill| format!("`{}`", skill.name))
            .collect();
        if !names.is_empty() && self.format == Format::Text {
            output::note(format_args!(
                "The model can use these skills of the project: {}",
                names.join(", ")
            ));
        }
    }

    /// Returns whether a command has this name, so that no template can be called by it.
    pub(super) fn has_command(&self, name: &str) -> bool {
        let mut foreign = self.commands.iter().flat_map(|command| &command.names);
        slash_command::find(name).is_some() || foreign.any(|foreign| foreign == name)
    }

    /// Returns the rows of templates and skills in `/help`: how to call each, and what it is for.
    pub(super) fn resource_rows(&self) -> Vec<(String, String)> {
        let resources = self.agent.resources();
        let templates = resources.templates().iter().map(|template| {
            let hint = template.argument_hint.as_deref().unwrap_or_default();
            let way = format!("/{} {}", template.name, escape_line(hint));
            let does = format!(
                "{} ({})",
                escape_line(&template.description),
                template.source
            );
            (way.trim_end().to_owned(), does)
        });
        let skills = resources.skills().iter().map(|skill| {
            let does = format!("{} ({})", escape_line(&skill.description), skill.source);
            (format!("/skill:{}", skill.name), does)
        });
        templates.chain(skills).collect()
    }

    /// Returns the names of templates and skills, as a user types them.
    pub(super) fn resource_names(&self) -> Vec<String> {
        let resources = self.agent.resources();
        let templates = resources.templates().iter();
        let templates = templates.map(|template| format!("/{}", template.name));
        let skills = resources.skills().iter();
        let skills = skills.map(|skill| format!("/skill:{}", skill.name));
        templates.chain(skills).collect()
    }
}

/// Reloads the hooks from their files, whether or not the files have changed.
async fn load_anew(reloader: &mut Option<Reloader>, interrupts: &Interrupts) -> Option<Reloaded> {
    let cancel = interrupts.token();
    let reloading = reloader.as_mut()?.reload();
    cancel.run_until_cancelled(reloading).await
}
