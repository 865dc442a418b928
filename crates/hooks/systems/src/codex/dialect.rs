//! The dialect of Codex's hooks.

use std::sync::Arc;

use serde_json::Value;
use tenterhook_engine::{
    Dialect, EventInfo, EventKind, EventRef, Permission, ReadError, WriteError,
};
use tenterhook_protocol::{AnyEffect, JsonObject};

use super::tools::TOOLS;
use crate::command_hook::{
    Answer, BlockedResult, CommandHook, HookContract, Printed, add_context, blocked_by_status,
    documented, read_shared, write,
};
use crate::settings_file::{Condition, SettingsEvent};

static CONTRACT: HookContract = HookContract {
    name: "codex",
    name_of_failures: "codex",
    tools: &TOOLS,
    write: write_event,
    read,
    directory_variables: &[],
    session_variables: &[],
    marks: &[],
    because: "a gate that fails denies; exit statuses other than 2 warn, as Codex documents",
};

/// Returns the dialect of a hook on an event. Codex's hooks have no key `if`.
pub(super) fn dialect(
    event: &'static SettingsEvent,
    condition: Option<Condition>,
) -> Arc<dyn Dialect> {
    Arc::new(CommandHook::new(&CONTRACT, event, condition))
}

fn write_event(own: &SettingsEvent, event: &EventRef) -> Result<JsonObject, WriteError> {
    let mut object = write(own, event, |_, _, text| Value::from(text))?;
    let extra = &event.envelope().origin.extra;
    for key in ["model", "turn_id"] {
        if let Some(value) = extra.get(key) {
            object.insert(key.to_owned(), value.clone());
        }
    }
    Ok(object)
}

/// Events whose hooks may print text for the model instead of JSON.
const TEXT_IS_CONTEXT: &[EventKind] = &[
    EventKind::SessionStart,
    EventKind::SubagentStart,
    EventKind::UserPromptSubmit,
];

fn read(
    event: &SettingsEvent,
    info: &EventInfo,
    printed: &Printed<'_>,
    _strict: bool,
) -> Result<AnyEffect, ReadError> {
    match printed.status {
        0 => {}
        // Without a text, Codex ignores status 2.
        2 if !printed.stderr.trim().is_empty() => {
            return Ok(blocked_by_status(info, printed, BlockedResult::IsReplaced));
        }
        _ => return Err(documented(printed)),
    }
    let mut effect = AnyEffect::default();
    if printed.stdout.starts_with('{') {
        let mut answer = Answer::parse(event, printed.stdout)?;
        effect = read_shared(info, &mut answer, BlockedResult::IsReplaced)?;
        // Codex knows no keys beyond those that are read.
        answer.check_rest(info, &effect, true)?;
        ignore_bare_allow(&mut effect);
    } else if TEXT_IS_CONTEXT.contains(&info.kind) {
        add_context(info, printed.stdout.to_owned(), &mut effect);
    }
    Ok(effect)
}

/// Removes an approval without changed arguments, which Codex ignores.
fn ignore_bare_allow(effect: &mut AnyEffect) {
    let permission = effect.permission.as_ref();
    let is_allow = permission.is_some_and(|verdict| verdict.permission == Permission::Allow);
    if is_allow && effect.rewrite.is_empty() {
        effect.permission = None;
        let notice = "Codex ignores `permissionDecision: allow` without `updatedInput`";
        effect.notices.push(notice.to_owned());
    }
}
