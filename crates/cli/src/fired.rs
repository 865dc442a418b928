//! Which events of the catalogue `tenterhook run` fires. The others are for programs that embed the engine.

use std::collections::BTreeSet;

use tenterhook::EventName;
use tenterhook_config::Loaded;

/// The events that the agent never fires.
const NEVER: &[&str] = &[
    "gateway_start",
    "gateway_stop",
    "channel_connect",
    "channel_disconnect",
    "message_receive",
    "message_send",
    "message_cancel",
    "gateway_error",
    "setup",
    "instructions_loaded",
    "elicitation",
    "elicitation_result",
    "teammate_idle",
    "task_created",
    "task_completed",
    "tool_batch_end",
    "config_change",
    "cwd_change",
    "file_change",
    "directory_added",
    "worktree_create",
    "worktree_remove",
    "interrupt",
    "prompt_expansion",
    "message_display",
    "pre_model_switch",
    "post_model_switch",
];

/// Returns the events that hooks are waiting for and `tenterhook run` never fires. Those of a user's own are not
/// among them: their author knows who fires them.
pub(crate) fn never_fired(loaded: &Loaded) -> Vec<&'static str> {
    let hooked: BTreeSet<&str> = loaded
        .specs
        .iter()
        .filter_map(|spec| spec.event.as_ref())
        .map(EventName::as_str)
        .collect();
    let unheard = NEVER.iter().filter(|name| hooked.contains(**name));
    unheard.copied().collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use tenterhook::events;

    use super::*;

    /// Adds every text of a folder of sources.
    fn read(folder: &Path, texts: &mut String) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                read(&path, texts);
            } else {
                texts.push_str(&fs::read_to_string(path).unwrap());
            }
        }
    }

    /// Returns every name that the agent takes from the events' module.
    fn imported() -> BTreeSet<String> {
        let mut text = String::new();
        let agent = Path::new(env!("CARGO_MANIFEST_DIR")).join("../agent/src");
        read(&agent, &mut text);
        let parts = text.split("tenterhook_protocol::event::").skip(1);
        let names = parts.flat_map(|part| {
            let names = match part.strip_prefix('{') {
                Some(list) => list.split('}').next(),
                None => part.split(|c: char| !c.is_alphanumeric()).next(),
            };
            names.unwrap_or_default().split(',')
        });
        names.map(|name| name.trim().to_owned()).collect()
    }

    #[test]
    fn the_agent_fires_every_event_but_these() {
        let imported = imported();
        let is_fired = |name: &str| {
            let capitalised = |word: &str| {
                let (first, rest) = word.split_at(1);
                first.to_uppercase() + rest
            };
            let type_name: String = name.split('_').map(capitalised).collect();
            imported.contains(&type_name)
        };
        let never: Vec<&str> = events()
            .map(|info| info.name)
            .filter(|name| !is_fired(name))
            .collect();
        assert_eq!(never, NEVER);
    }
}
