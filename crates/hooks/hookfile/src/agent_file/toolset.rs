//! The toolsets that an agent file gives its agents, and their restrictions.

use super::known_keys;
use super::value::{read_boolean, read_names};
use crate::excerpt::shorten;
use crate::report::Report;
use crate::suggest::one_of;
use crate::tree::Node;

/// A toolset of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toolset {
    /// Which toolset it is.
    pub kind: ToolsetKind,
    /// The names of its tools that the agent has; `None` is all of them.
    pub only: Option<Vec<String>>,
    /// Whether the agent has only its tools that change nothing.
    pub read_only: bool,
    /// The folders that its file tools may use, as written; an empty list allows every folder.
    pub allow_list: Vec<String>,
    /// The folders that its file tools may not use, as written. This list takes precedence over `allow_list`.
    pub deny_list: Vec<String>,
}

/// The toolsets of docker-agent that Tenterhook provides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolsetKind {
    /// Runs commands.
    Shell,
    /// Reads and writes files.
    Filesystem,
    /// Gives tasks to other agents, which work on them in the background.
    BackgroundAgents,
}

const KINDS: [(&str, ToolsetKind); 3] = [
    ("shell", ToolsetKind::Shell),
    ("filesystem", ToolsetKind::Filesystem),
    ("background_agents", ToolsetKind::BackgroundAgents),
];

/// Reads a list of toolsets. Leaves out unavailable toolsets with a warning, so that the agent never has
/// more tools than its file gives it.
pub(super) fn read(report: &mut Report, node: &Node) -> Vec<Toolset> {
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

/// Reads the toolsets that `use_toolsets` names. `shared` holds the named toolsets of the file.
pub(super) fn read_shared(
    report: &mut Report,
    names: &Node,
    shared: Option<&Node>,
) -> Vec<Toolset> {
    let entries = shared.and_then(Node::as_table).unwrap_or_default();
    let mut toolsets = Vec::new();
    for name in read_names(report, "use_toolsets", names) {
        if let Some(entry) = entries.iter().find(|entry| entry.key == name) {
            toolsets.extend(read_one(report, &entry.value));
            continue;
        }
        let known = || entries.iter().map(|entry| entry.key.as_str());
        let message = format!("unknown toolset `{}`", shorten(&name));
        report.add(
            report
                .problem(names.span, message)
                .allowed(format!("names below `toolsets`: {}", one_of(known())))
                .suggestion(report.nearest(&name, known())),
        );
    }
    toolsets
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
        report_missing(report, node, name);
        return None;
    };
    let get = |key| {
        let entry = node.entry(key).map(|entry| &entry.value);
        entry.filter(|node| !node.is_null())
    };
    let only = get("tools").map(|node| read_names(report, "tools", node));
    let is_read_only = get("readonly").map(|node| read_boolean(report, "readonly", node));
    let mut folders =
        |key| get(key).map_or_else(Vec::new, |node| read_folders(report, key, *kind, node));
    Some(Toolset {
        kind: *kind,
        only,
        read_only: is_read_only.unwrap_or(false),
        allow_list: folders("allow_list"),
        deny_list: folders("deny_list"),
    })
}

/// Reports a toolset that Tenterhook lacks: with a warning if docker-agent has it, and with an error otherwise.
fn report_missing(report: &mut Report, node: &Node, name: &str) {
    let available = one_of(KINDS.map(|(name, _)| name));
    if known_keys::is_known("toolset_type", name) {
        let message = format!("the toolset `{}` is not available", shorten(name));
        report.add(
            report
                .warning(node.span, message)
                .allowed(available)
                .hint("the agent runs without these tools"),
        );
        return;
    }
    let span = node
        .entry("type")
        .map_or(node.span, |entry| entry.value.span);
    let known = known_keys::names("toolset_type");
    let message = format!("unknown toolset `{}`", shorten(name));
    report.add(
        report
            .problem(span, message)
            .allowed(available)
            .suggestion(report.nearest(name, known)),
    );
}

/// Reads a list of folders. Only the file tools can be restricted to folders.
fn read_folders(report: &mut Report, key: &str, kind: ToolsetKind, node: &Node) -> Vec<String> {
    if kind != ToolsetKind::Filesystem {
        let message = format!("`{key}` restricts only toolsets of type `filesystem`");
        let problem = report.problem(node.span, message);
        report.add(problem.hint("remove it, or restrict the tools with `permissions`"));
        return Vec::new();
    }
    let folders = read_names(report, key, node);
    if folders.iter().any(|folder| folder.trim().is_empty()) {
        report.add(report.problem(node.span, format!("`{key}` has an empty entry")));
    }
    let is_pattern = |folder: &&String| {
        let is_other_home = folder.starts_with('~') && !folder.starts_with("~/") && *folder != "~";
        is_other_home || folder.contains(['$', '*', '?', '['])
    };
    if let Some(folder) = folders.iter().find(is_pattern) {
        let message = format!("`{key}` contains `{folder}`, which is not a plain path");
        let problem = report.problem(node.span, message);
        report.add(problem.hint("write out the path without variables, patterns or `~USER`"));
    }
    folders
}
