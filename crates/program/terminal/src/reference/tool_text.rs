//! The list of tools and the page of one tool, as plain text for a terminal of 80 columns.

use crate::reference::terminal::{TextLine, TextPage};
use crate::reference::tool::{ToolInSystem, ToolNameMatch, ToolPage};

/// The width of the column with names of tools.
const NAME_WIDTH: usize = 11;

/// The width of the column with names of hook systems.
const SYSTEM_WIDTH: usize = 12;

/// Returns the list of all tools.
pub fn tool_list_lines() -> Vec<TextLine> {
    let pages = ToolPage::all();
    let mut text = TextPage::default();
    for (title, is_of_agent) in [
        ("Tools of the agent of `tenterhook run`", true),
        ("Tools that other agents have", false),
    ] {
        text.heading(title);
        for page in pages.iter().filter(|page| page.is_of_agent == is_of_agent) {
            text.push(String::new());
            text.push(format!("  {}  ({})", page.name, page.effect()));
            text.wrapped(&page.meaning, 4);
            arguments(&mut text, page, 4);
            short_names(&mut text, page);
        }
    }
    text.into_lines()
}

/// Returns the page of a tool.
pub fn tool_page_lines(page: &ToolPage) -> Vec<TextLine> {
    let mut text = TextPage::default();
    text.heading(&page.name);
    text.paragraph(&page.meaning);
    let agent = if page.is_of_agent {
        "The agent of `tenterhook run` has this tool."
    } else {
        "The agent of `tenterhook run` does not have this tool, but other agents do."
    };
    text.paragraph(&format!("It {}. {agent}", page.effect()));
    text.heading("Arguments");
    if page.arguments.is_empty() {
        text.paragraph("The tool has no arguments.");
    }
    arguments(&mut text, page, 2);
    if !page.names.is_empty() {
        text.heading("In other hook systems");
        text.paragraph(&format!(
            "An arrow leads from an argument there to an argument of `{}`.",
            page.canonical
        ));
        for row in &page.names {
            text.row(2, (row.system, SYSTEM_WIDTH), &described(row));
        }
    }
    text.heading("Try it");
    text.push(format!("  $ {}", page.example));
    text.into_lines()
}

/// Returns the tools that one name stands for, with the arguments that select each.
pub fn tool_name_lines(name: &str, found: &[ToolNameMatch]) -> Vec<TextLine> {
    let mut text = TextPage::default();
    text.heading(&format!("`{name}` stands for several tools"));
    let pages = found.iter().filter_map(|found| ToolPage::of(&found.name));
    for page in pages {
        for row in page.names.iter().filter(|row| row.name == name) {
            let described = format!("{}: {}", row.system, described(row));
            text.row(2, (&page.name, NAME_WIDTH), &described);
        }
    }
    text.into_lines()
}

/// Describes a tool of another system: its name, which calls are meant, and its arguments.
fn described(row: &ToolInSystem) -> String {
    let name = format!("`{}` {}", row.name, row.when);
    match row.arguments.as_str() {
        "" => name.trim_end().to_owned(),
        arguments => format!("{}: {arguments}", name.trim_end()),
    }
}

fn arguments(text: &mut TextPage, page: &ToolPage, indent: usize) {
    let names = page.arguments.iter().map(|argument| argument.name.len());
    let width = names.max().unwrap_or_default();
    for argument in &page.arguments {
        text.row(indent, (&argument.name, width), &argument.describe());
    }
}

/// Adds the names of a tool in the other hook systems, one line for each system.
fn short_names(text: &mut TextPage, page: &ToolPage) {
    let mut systems: Vec<(&str, Vec<String>)> = Vec::new();
    for row in &page.names {
        let name = format!("`{}`", row.name);
        match systems.iter_mut().find(|(system, _)| *system == row.system) {
            Some((_, names)) if names.contains(&name) => {}
            Some((_, names)) => names.push(name),
            None => systems.push((row.system, vec![name])),
        }
    }
    let systems: Vec<String> = systems
        .into_iter()
        .map(|(system, names)| format!("{system} {}", names.join(", ")))
        .collect();
    if !systems.is_empty() {
        text.wrapped(&format!("Other names: {}.", systems.join("; ")), 4);
    }
}
