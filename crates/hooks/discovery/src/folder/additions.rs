//! What scripts and extensions add to a session in addition to hooks.

use std::fmt;

use serde::Serialize;

use super::folder_hooks::{FoundExtension, FoundScript};

/// The tools, commands, flags and providers of models that a script or extension adds to a session, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Additions {
    /// The name of the script or extension.
    pub name: String,
    /// Its tools.
    pub tools: Vec<String>,
    /// Its commands, without the slash.
    pub commands: Vec<String>,
    /// Its flags.
    pub flags: Vec<String>,
    /// Its providers of models.
    pub providers: Vec<String>,
}

impl Additions {
    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        let lists = [&self.tools, &self.commands, &self.flags, &self.providers];
        lists.iter().all(|list| list.is_empty())
    }
}

impl fmt::Display for Additions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (kind, sign, names) in [
            ("tools", "", &self.tools),
            ("commands", "/", &self.commands),
            ("flags", "", &self.flags),
            ("providers", "", &self.providers),
        ] {
            if !names.is_empty() {
                let names: Vec<String> = names.iter().map(|name| format!("{sign}{name}")).collect();
                write!(f, "{separator}{kind}: {}", names.join(", "))?;
                separator = "; ";
            }
        }
        Ok(())
    }
}

impl FoundScript {
    /// Returns what the script adds to a session.
    pub fn additions(&self) -> Additions {
        Additions {
            name: self.name.clone(),
            tools: names(&self.tools, |tool| &tool.name),
            commands: names(&self.commands, |command| &command.name),
            flags: names(&self.flags, |flag| &flag.name),
            providers: names(&self.providers, |provider| &provider.name),
        }
    }
}

impl FoundExtension {
    /// Returns what the extension adds to a session.
    pub fn additions(&self) -> Additions {
        Additions {
            name: self.id.clone(),
            tools: names(&self.tools, |tool| &tool.name),
            commands: names(&self.commands, |command| &command.name),
            flags: Vec::new(),
            providers: Vec::new(),
        }
    }
}

fn names<T>(items: &[T], name: fn(&T) -> &String) -> Vec<String> {
    items.iter().map(|item| name(item).clone()).collect()
}
