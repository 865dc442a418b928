//! The sets of tools that an agent file gives its agents.

use crate::report::Report;
use crate::suggest::one_of;
use crate::tree::{Entry, Node, shorten};

/// A set of tools of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toolset {
    /// Which set.
    pub kind: ToolsetKind,
    /// The names of the tools of it that the agent has; `None` is all of them.
    pub only: Option<Vec<String>>,
}

/// The sets of docker-agent that there are tools for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolsetKind {
    /// Commands.
    Shell,
    /// Files.
    Filesystem,
    /// Tasks that other agents work on in the background.
    BackgroundAgents,
}

const KINDS: [(&str, ToolsetKind); 3] = [
    ("shell", ToolsetKind::Shell),
    ("filesystem", ToolsetKind::Filesystem),
    ("background_agents", ToolsetKind::BackgroundAgents),
];

/// Reads a list of sets. Those that are not available are left out with a warning, so the agent has no more
/// tools than its file gives it.
pub(crate) fn read(report: &mut Report, node: &Node) -> Vec<Toolset> {
    let Some(items) = node.as_list() else {
        if !node.is_broken() {
            let message = format!("`toolsets` cannot be {}", node.describe());
            report.add(
                report
                    .problem(node.span, message)
                    .allowed("a list of toolsets"),
            );
        }
        return Vec::new();
    };
    items
        .iter()
        .filter_map(|item| read_one(report, item))
        .collect()
}

fn read_one(report: &mut Report, node: &Node) -> Option<Toolset> {
    let name = node.entry("type").and_then(|entry| entry.value.as_text());
    let available = || one_of(KINDS.map(|(name, _)| name));
    let Some(name) = name else {
        if !node.is_broken() {
            report.add(
                report
                    .warning(node.span, "the toolset has no `type`")
                    .allowed(available()),
            );
        }
        return None;
    };
    let Some((_, kind)) = KINDS.iter().find(|(known, _)| *known == name) else {
        let message = format!("the toolset `{}` is not available", shorten(name));
        report.add(
            report
                .warning(node.span, message)
                .allowed(available())
                .hint("the agent runs without these tools"),
        );
        return None;
    };
    let only = node.entry("tools").filter(|entry| !entry.value.is_null());
    Some(Toolset {
        kind: *kind,
        only: only.map(|entry| names(report, entry)),
    })
}

fn names(report: &mut Report, entry: &Entry) -> Vec<String> {
    let items = entry.value.as_list();
    let names: Option<Vec<String>> = items.and_then(|items| {
        items
            .iter()
            .map(|item| item.as_text().map(str::to_owned))
            .collect()
    });
    names.unwrap_or_else(|| {
        if !entry.value.is_broken() {
            let message = format!("`tools` cannot be {}", entry.value.describe());
            report.add(
                report
                    .problem(entry.value.span, message)
                    .allowed("a list of names"),
            );
        }
        Vec::new()
    })
}
