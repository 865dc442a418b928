//! Combines the effects of one dispatch. Pure: the result depends only on the effects and their
//! order.
//!
//! | part of the effect | how it is combined |
//! |---|---|
//! | `permission` | the strongest counts, with the first reason given for it |
//! | `block`, `stop_run`, `supply` | the first is kept |
//! | `context`, `inject`, `follow_up`, `notices`, `collect` | all are kept, in order, without empty texts |
//! | `handled` | true if any hook sets it |
//! | `metadata` | for each key, the last value is kept |
//! | `rewrite` | already applied to the event; here only the names of the fields are kept |

use serde_json::Value;
use tenterhook_protocol::{AnyEffect, AnyOutcome, HookId, JsonObject, Verdict};

/// Adds the effect of `hook` to the outcome of the hooks before it.
pub fn fold(outcome: &mut AnyOutcome, hook: &HookId, effect: AnyEffect) {
    if let Some(verdict) = effect.permission {
        fold_permission(outcome, hook, verdict);
    }
    if let (None, Some(reason)) = (&outcome.block, effect.block) {
        outcome.block = Some(reason);
        outcome.blocked_by = Some(hook.clone());
    }
    for field in effect.rewrite.into_iter().map(|(field, _)| field) {
        if !outcome.rewritten.contains(&field) {
            outcome.rewritten.push(field);
        }
    }
    let is_text = |text: &String| !text.is_empty();
    outcome
        .context
        .extend(effect.context.into_iter().filter(is_text));
    outcome
        .follow_up
        .extend(effect.follow_up.into_iter().filter(is_text));
    outcome
        .notices
        .extend(effect.notices.into_iter().filter(is_text));
    outcome.inject.extend(effect.inject);
    outcome.handled |= effect.handled;
    outcome.supply = outcome.supply.take().or(effect.supply);
    if let (None, Some(reason)) = (&outcome.stop_run, effect.stop_run) {
        outcome.stop_run = Some(reason);
        outcome.run_stopped_by = Some(hook.clone());
    }
    outcome.metadata.extend(effect.metadata);
    fold_lists(&mut outcome.collect, effect.collect);
}

/// Adds the outcome of another operation of the same call. It is combined as effects are.
pub(crate) fn fold_operation(outcome: &mut AnyOutcome, next: AnyOutcome) {
    outcome.hooks_run += next.hooks_run;
    if next.permission > outcome.permission {
        outcome.permission = next.permission;
        outcome.permission_reason = next.permission_reason;
        outcome.permission_by = next.permission_by;
    }
    if outcome.block.is_none() {
        outcome.block = next.block;
        outcome.blocked_by = next.blocked_by;
    }
    if outcome.stop_run.is_none() {
        outcome.stop_run = next.stop_run;
        outcome.run_stopped_by = next.run_stopped_by;
    }
    outcome.withheld_by = outcome.withheld_by.take().or(next.withheld_by);
    outcome.remedy = outcome.remedy.take().or(next.remedy);
    for field in next.rewritten {
        if !outcome.rewritten.contains(&field) {
            outcome.rewritten.push(field);
        }
    }
    outcome.context.extend(next.context);
    outcome.inject.extend(next.inject);
    outcome.follow_up.extend(next.follow_up);
    outcome.handled |= next.handled;
    outcome.supply = outcome.supply.take().or(next.supply);
    fold_lists(&mut outcome.collect, next.collect);
    outcome.notices.extend(next.notices);
    outcome.metadata.extend(next.metadata);
    outcome.failures.extend(next.failures);
}

fn fold_permission(outcome: &mut AnyOutcome, hook: &HookId, verdict: Verdict) {
    if verdict.permission > outcome.permission {
        outcome.permission = verdict.permission;
        outcome.permission_reason = verdict.reason;
        outcome.permission_by = Some(hook.clone());
    }
}

fn fold_lists(lists: &mut JsonObject, more: JsonObject) {
    for (name, items) in more {
        let list = lists
            .entry(name)
            .or_insert_with(|| Value::Array(Vec::new()));
        if let (Value::Array(list), Value::Array(items)) = (list, items) {
            list.extend(items);
        }
    }
}
