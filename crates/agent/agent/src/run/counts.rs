//! The counters of a run: turns, model calls, tokens, costs and repeated tool calls.

use serde_json::Value;
use tenterhook_protocol::{ToolCall, Usage};

/// The counters of a run.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RunCounts {
    /// How many turns have begun.
    pub(super) turns: u32,
    /// How many model calls the turns made.
    pub(super) iterations: u32,
    /// How many times in a row stop hooks kept the agent going.
    pub(super) stop_hooks: u32,
    /// Whether the context was too long and no model call has succeeded since.
    pub(super) has_overflowed: bool,
    /// The tokens of the run's model calls.
    pub(super) usage: Usage,
    /// How many model calls were answered.
    calls: u32,
    /// How many answered model calls have no known cost.
    unpriced: u32,
    cost: f64,
}

impl RunCounts {
    /// Adds the cost of a model call.
    pub(super) fn charge(&mut self, cost: Option<f64>) {
        self.calls += 1;
        match cost {
            Some(cost) => self.cost += cost,
            None => self.unpriced += 1,
        }
    }

    /// Returns the cost of all model calls. Returns `None` if the cost of any call is unknown, or if there were no
    /// calls.
    pub(super) fn cost(&self) -> Option<f64> {
        (self.calls > 0 && self.unpriced == 0).then_some(self.cost)
    }

    pub(super) fn add(&mut self, usage: &Usage) {
        let total = &mut self.usage;
        total.input_tokens = total.input_tokens.saturating_add(usage.input_tokens);
        total.output_tokens = total.output_tokens.saturating_add(usage.output_tokens);
        total.cached_input_tokens = total
            .cached_input_tokens
            .saturating_add(usage.cached_input_tokens);
        total.cached_write_tokens = total
            .cached_write_tokens
            .saturating_add(usage.cached_write_tokens);
        if let Some(reasoning) = usage.reasoning_tokens {
            let known = total.reasoning_tokens.unwrap_or_default();
            total.reasoning_tokens = Some(known.saturating_add(reasoning));
        }
    }
}

/// Detects that a model repeats the same tool call.
#[derive(Debug, Default)]
pub(super) struct RepeatedCalls {
    last: Option<(String, Value)>,
    count: u32,
}

impl RepeatedCalls {
    /// Counts a call. Returns how many times in a row it was made.
    pub(super) fn count(&mut self, call: &ToolCall) -> u32 {
        let is_same = self
            .last
            .as_ref()
            .is_some_and(|(name, arguments)| *name == call.name && *arguments == call.arguments);
        if is_same {
            self.count += 1;
        } else {
            self.last = Some((call.name.clone(), call.arguments.clone()));
            self.count = 1;
        }
        self.count
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_equal_calls_in_a_row_are_counted() {
        let mut repeats = RepeatedCalls::default();
        let mut count = |name: &str, arguments: Value| {
            let name = name.to_owned();
            repeats.count(&ToolCall::new("", name, arguments))
        };
        assert_eq!(count("a", json!({"x": 1, "y": 2})), 1);
        assert_eq!(count("a", json!({"y": 2, "x": 1})), 2);
        assert_eq!(count("a", json!({"x": 2})), 1);
        assert_eq!(count("b", json!({"x": 2})), 1);
        assert_eq!(count("a", json!({"x": 2})), 1);
    }
}
