//! `tenterhook events`: the list of all events, and the reference page of one.

use clap::Parser;
use serde_json::{Value, json};
use tenterhook_engine::EventKind;
use tenterhook_terminal::output::{self, style, styled};
use tenterhook_terminal::reference::{
    EventNameMatch, EventPage, TextLine, find_event, list_lines, page_lines,
};

use crate::event_name::parse_event_name;
use tenterhook_setup::error::CliError;
use tenterhook_setup::exit::Exit;

#[derive(Debug, Parser)]
#[command(override_usage = "tenterhook events [OPTIONS] [NAME]")]
pub(crate) struct EventsArgs {
    /// The event, by its own name or by the name that another hook system has for it. Lists all events if you leave it
    /// out.
    #[arg(value_name = "NAME")]
    name: Option<String>,

    /// Print one JSON object.
    #[arg(long)]
    json: bool,

    /// Print the JSON Schema of the event's payload.
    #[arg(long, requires = "name", conflicts_with = "json")]
    schema: bool,
}

pub(crate) fn events(args: &EventsArgs) -> Result<Exit, CliError> {
    match &args.name {
        Some(name) => show_page(args, name)?,
        None if args.json => output::json(&list_json()),
        None => {
            show(list_lines());
            output::line("\n`tenterhook events NAME` shows one event.");
        }
    }
    Ok(Exit::Done)
}

fn show_page(args: &EventsArgs, name: &str) -> Result<(), CliError> {
    let found = find_one(name)?;
    let page = EventPage::of(found.kind);
    if args.schema {
        output::json(&page.schema);
    } else if args.json {
        output::json(&page_json(&page, name, &found));
    } else {
        if let Some(sentence) = origin_of_name(name, &page, &found) {
            output::line(format_args!("{sentence}\n"));
        }
        show(page_lines(&page));
    }
    Ok(())
}

/// Finds the event that the user means.
fn find_one(name: &str) -> Result<EventNameMatch, CliError> {
    let mut found = find_event(name);
    if found.len() > 1 {
        let meant: Vec<String> = found
            .iter()
            .map(|found| {
                format!(
                    "`{}` ({})",
                    found.kind.info().name,
                    found.systems.join(", ")
                )
            })
            .collect();
        let message = format!("`{name}` is the name of {} events", found.len());
        return Err(
            CliError::new(Exit::Usage, message).hint(format!("choose one: {}", meant.join(", ")))
        );
    }
    match found.pop() {
        Some(found) => Ok(found),
        // A name that is not found cannot be parsed, so this is an error with a hint.
        None => parse_event_name(name).map(|event| EventNameMatch {
            kind: event.kind(),
            systems: Vec::new(),
        }),
    }
}

/// Explains a name that is not the event's own.
fn origin_of_name(name: &str, page: &EventPage, found: &EventNameMatch) -> Option<String> {
    if name == page.name || found.kind == EventKind::Custom {
        return None;
    }
    Some(match found.systems.as_slice() {
        [] => format!("`{name}` is `{}` in Tenterhook.", page.name),
        [system] => format!("`{name}` is the name of `{}` in {system}.", page.name),
        systems => format!(
            "`{name}` is the name of `{}` in {}.",
            page.name,
            systems.join(" and ")
        ),
    })
}

fn page_json(page: &EventPage, name: &str, found: &EventNameMatch) -> Value {
    let mut value = serde_json::to_value(page).unwrap_or_default();
    if let Some(object) = value.as_object_mut() {
        let found = json!({ "name": name, "systems": found.systems });
        object.insert("found_by".to_owned(), found);
    }
    value
}

fn list_json() -> Value {
    let pages = EventKind::ALL.iter().map(|kind| EventPage::of(*kind));
    let events: Vec<Value> = pages
        .map(|page| {
            json!({
                "name": page.name,
                "group": page.group,
                "class": page.class,
                "run": page.run,
                "subject": page.subject,
                "meaning": page.summary(),
                "fired_by_run": page.is_fired_by_run,
                "fired_by_gateway": page.is_fired_by_gateway,
                "names": page.names,
            })
        })
        .collect();
    json!({ "events": events })
}

/// Prints the lines of a page.
pub(crate) fn show(lines: Vec<TextLine>) {
    for line in lines {
        match line {
            TextLine::Heading(text) => output::line(styled(style::STRONG, text)),
            TextLine::Text(text) => output::line(text),
        }
    }
}
