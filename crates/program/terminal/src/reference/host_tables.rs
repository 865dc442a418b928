//! The tables of `docs/reference/host-matrix.md` and of the pages in `docs/how-to/hosts/`: what each host does with the
//! effects of hooks.

use tenterhook_engine::EventKind;
use tenterhook_systems::HOSTS;
use tenterhook_systems::host::capability::{CapabilityRow, HostEffect, Support};
use tenterhook_systems::host::installation::FailsClosed;
use tenterhook_systems::host::{HostAgent, HostEvent, HostMode};

use crate::reference::layout::wrap;

/// The width of a line of text.
const WIDTH: usize = 100;

/// Every effect, in the order of the overview, with its meaning.
const EFFECTS: &[(HostEffect, &str)] = &[
    (HostEffect::Deny, "deny a call"),
    (HostEffect::DenyReason, "show the model the reason"),
    (HostEffect::Ask, "ask a person"),
    (HostEffect::Allow, "allow without asking"),
    (HostEffect::Rewrite, "change the arguments"),
    (HostEffect::Context, "add text for the model"),
    (HostEffect::ReplaceResult, "replace a result"),
    (HostEffect::BlockPrompt, "block a prompt"),
    (HostEffect::RewritePrompt, "change a prompt"),
    (HostEffect::Continue, "keep the agent working"),
    (HostEffect::StopRun, "end the run"),
];

/// Returns the overview: one row for each effect, one column for each host.
pub fn host_overview() -> String {
    let mut lines = vec![
        row("effect", HOSTS.iter().map(|host| link(host))),
        row("---", HOSTS.iter().map(|_| "---".to_owned())),
    ];
    for (effect, meaning) in EFFECTS {
        let cells = HOSTS.iter().map(|host| overview_cell(host, *effect));
        lines.push(row(meaning, cells));
    }
    let closed = HOSTS
        .iter()
        .map(|host| match host.installation.fails_closed {
            FailsClosed::Always | FailsClosed::ByKey(_) => "yes".to_owned(),
            FailsClosed::Never(_) => "no".to_owned(),
        });
    lines.push(row(
        "deny if Tenterhook's program is missing, killed or late",
        closed,
    ));
    let unseen = HOSTS.iter().map(|host| match host.blind_spots {
        [] => "yes".to_owned(),
        _ => format!(
            "[not all](#{})",
            host.title.to_lowercase().replace(' ', "-")
        ),
    });
    lines.push(row("hooks see all calls and who makes them", unseen));
    let versions = HOSTS.iter().map(|host| host.measured_version.to_owned());
    lines.push(row("measured version", versions));
    lines.join("\n") + "\n"
}

/// Returns the complete tables of all hosts, each under its own heading.
pub fn host_details() -> String {
    let sections = HOSTS
        .iter()
        .map(|host| format!("## {}\n\n{}", host.title, host_table(host)));
    sections.collect::<Vec<String>>().join("\n")
}

/// Returns the table of one host, and what happens if Tenterhook's program is missing.
pub fn host_table(host: &HostAgent) -> String {
    let mut text = format!(
        "Measured with version {}, without a person unless the table says otherwise.\n\n",
        host.measured_version
    );
    text.push_str("| event | effect | works | what was seen |\n|---|---|---|---|\n");
    for event in host.events {
        for found in host.capabilities.iter().filter(|it| it.event == event.name) {
            text.push_str(&capability_row(event, found));
            text.push('\n');
        }
    }
    let closed = match host.installation.fails_closed {
        FailsClosed::Always => {
            "If Tenterhook's program is missing or killed, the host denies the call.".to_owned()
        }
        FailsClosed::ByKey(key) => format!(
            "If Tenterhook's program is missing or killed, the host denies the call. `tenterhook install` sets `{key}` \
             for this."
        ),
        FailsClosed::Never(why) => format!(
            "The host cannot be made to deny a call if Tenterhook's program is missing or killed: {why}."
        ),
    };
    text.push('\n');
    for line in wrap(&closed, WIDTH) {
        text.push_str(&line);
        text.push('\n');
    }
    if !host.blind_spots.is_empty() {
        text.push_str("\n| no hook sees | instead |\n|---|---|\n");
        for spot in host.blind_spots {
            let cells = [spot.instead.to_owned()].into_iter();
            text.push_str(&row(spot.what, cells));
            text.push('\n');
        }
    }
    text
}

fn capability_row(event: &HostEvent, found: &CapabilityRow) -> String {
    let meaning = meaning(found.effect);
    let mode = match found.mode {
        Some(HostMode::Interactive) => " (with a person)",
        Some(HostMode::Headless) => " (without a person)",
        None => "",
    };
    let works = match found.support {
        Support::Honoured => "yes",
        Support::Lost => "no",
        Support::Dangerous => "no, unsafe",
    };
    let note = found.note.replace('|', "\\|");
    format!("| `{}` | {meaning}{mode} | {works} | {note} |", event.name)
}

fn meaning(effect: HostEffect) -> &'static str {
    let found = EFFECTS.iter().find(|(known, _)| *known == effect);
    found.map_or("", |(_, meaning)| meaning)
}

/// Returns whether any event of the host honours an effect. A difference between the modes is shown.
fn overview_cell(host: &HostAgent, effect: HostEffect) -> String {
    let honours = |mode: HostMode| {
        host.capabilities.iter().any(|row| {
            // Where the host asks a person anyway, a hook does not decide that it asks.
            let is_own_question = effect == HostEffect::Ask
                && host.event(row.event).map(|event| event.kind)
                    == Some(EventKind::PermissionRequest);
            row.effect == effect
                && !is_own_question
                && row.support == Support::Honoured
                && row.mode.is_none_or(|measured| measured == mode)
        })
    };
    let word = match (honours(HostMode::Headless), honours(HostMode::Interactive)) {
        (true, true) => "yes",
        (true, false) => "without a person",
        (false, true) => "with a person",
        (false, false) => "no",
    };
    word.to_owned()
}

fn link(host: &HostAgent) -> String {
    format!("[{}](../how-to/hosts/{}.md)", host.title, host.name)
}

fn row(first: &str, cells: impl Iterator<Item = String>) -> String {
    let cells: Vec<String> = cells.collect();
    format!("| {first} | {} |", cells.join(" | "))
}
