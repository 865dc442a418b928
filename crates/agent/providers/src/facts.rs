//! Known facts about models: their context windows and prices.
//!
//! Unknown facts are left out. So is a price that may not apply, because no cost is better than a wrong one.

use std::sync::LazyLock;

use serde::Deserialize;
use tenterhook_protocol::Usage;

use crate::service::Service;

/// The table. Its first lines describe the columns and the sources of the numbers.
const TABLE: &str = include_str!("facts.tsv");

/// The number of tokens that a price is for.
const PRICED: f64 = 1_000_000.0;

/// The prices of a model, in US dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Input tokens.
    pub input: f64,
    /// Output tokens, including reasoning.
    pub output: f64,
    /// Input tokens that the service read from its cache.
    pub cached_input: Option<f64>,
    /// Input tokens that the service wrote to its cache.
    pub cached_write: Option<f64>,
    /// The largest number of input tokens for which these prices apply.
    pub up_to: Option<u64>,
}

impl Price {
    /// Returns the cost of a call in US dollars; `None` if a price that it needs is not known.
    pub fn cost(&self, usage: &Usage) -> Option<f64> {
        if self.up_to.is_some_and(|most| usage.input_tokens > most) {
            return None;
        }
        let cached = usage.cached_input_tokens;
        let written = usage.cached_write_tokens;
        let fresh = usage.input_tokens.checked_sub(cached)?;
        let parts = [
            (fresh.checked_sub(written)?, Some(self.input)),
            (cached, self.cached_input),
            (written, self.cached_write),
            (usage.output_tokens, Some(self.output)),
        ];
        let costs = parts.map(|(tokens, price)| match (tokens, price) {
            (0, _) => Some(0.0),
            (tokens, price) => Some(number(tokens)? * price?),
        });
        costs
            .into_iter()
            .sum::<Option<f64>>()
            .map(|sum| sum / PRICED)
    }
}

/// Converts a count to a floating-point number; `None` if it does not fit into 32 bits.
fn number(tokens: u64) -> Option<f64> {
    u32::try_from(tokens).ok().map(f64::from)
}

/// The known facts about a model.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Facts {
    /// The context window in tokens.
    pub context_window: Option<u64>,
    /// The price.
    pub price: Option<Price>,
}

impl Facts {
    /// Returns the known facts about a service's own model, by the service's name for it.
    pub fn known(service: Service, model: &str) -> Self {
        let of_service = || ROWS.iter().filter(|row| row.service == service.as_str());
        let exact = of_service().find(|row| row.family == model);
        let found = exact.or_else(|| {
            of_service().find(|row| model.strip_prefix(row.family).is_some_and(is_date))
        });
        found.map(|row| row.facts).unwrap_or_default()
    }

    /// Returns these facts, with missing ones taken from `other`.
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            context_window: self.context_window.or(other.context_window),
            price: self.price.or(other.price),
        }
    }
}

struct Row {
    service: &'static str,
    family: &'static str,
    facts: Facts,
}

static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| lines().filter_map(row).collect());

fn lines() -> impl Iterator<Item = &'static str> {
    TABLE
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
}

fn row(line: &'static str) -> Option<Row> {
    let cells: Vec<&str> = line.split('\t').collect();
    let [
        service,
        family,
        window,
        input,
        cached_input,
        cached_write,
        output,
        up_to,
        _as_of,
    ] = cells[..]
    else {
        return None;
    };
    let price = Price {
        input: input.parse().ok()?,
        output: output.parse().ok()?,
        cached_input: cached_input.parse().ok(),
        cached_write: cached_write.parse().ok(),
        up_to: up_to.parse().ok(),
    };
    Some(Row {
        service,
        family,
        facts: Facts {
            context_window: window.parse().ok(),
            price: Some(price),
        },
    })
}

/// Reports whether the text after a family's name is a date: `-20250929` or `-2025-04-14`.
fn is_date(rest: &str) -> bool {
    let Some(date) = rest.strip_prefix('-') else {
        return false;
    };
    let digits = date.chars().filter(char::is_ascii_digit).count();
    digits == 8 && matches!(date.len() - digits, 0 | 2) && date.chars().all(is_of_date)
}

fn is_of_date(c: char) -> bool {
    c.is_ascii_digit() || c == '-'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_read_and_says_when_it_was_so() {
        assert_eq!(ROWS.len(), lines().count());
        for line in lines() {
            let cells: Vec<&str> = line.split('\t').collect();
            assert!(is_date(&format!("-{}", cells[8])), "{line}");
            let numbers = cells[2..8].iter();
            let are_read = |cell: &&&str| **cell == "-" || cell.parse::<f64>().is_ok();
            assert_eq!(numbers.filter(are_read).count(), 6, "{line}");
            let known = Service::ALL.map(Service::as_str);
            assert!(known.contains(&cells[0]), "{line}");
        }
        for (at, row) in ROWS.iter().enumerate() {
            let is_same = |other: &Row| other.service == row.service && other.family == row.family;
            assert_eq!(ROWS.iter().position(is_same), Some(at), "{}", row.family);
        }
    }

    #[test]
    fn models_are_known_by_their_family_and_its_dates_only() {
        for (service, model, window) in [
            (Service::OpenAi, "gpt-4o", Some(128_000)),
            (Service::OpenAi, "gpt-4o-2024-08-06", Some(128_000)),
            (
                Service::Anthropic,
                "claude-sonnet-4-5-20250929",
                Some(200_000),
            ),
            (Service::Gemini, "gemini-2.5-pro", Some(1_048_576)),
            (Service::OpenAi, "gpt-4o-audio-preview", None),
            (Service::OpenAi, "gpt-4o-2024", None),
            (Service::OpenAi, "gpt-4", None),
            (Service::Anthropic, "gpt-4o", None),
            (Service::Ollama, "gpt-4o", None),
        ] {
            assert_eq!(
                Facts::known(service, model).context_window,
                window,
                "{model}"
            );
        }
        let price = |model| Facts::known(Service::OpenAi, model).price.unwrap().input;
        assert!(price("gpt-4o-2024-05-13") > price("gpt-4o-2024-08-06"));
    }

    #[test]
    fn a_cost_is_the_sum_of_its_parts_and_unknown_with_one_of_them() {
        let price = Price {
            input: 3.0,
            output: 15.0,
            cached_input: Some(0.3),
            cached_write: None,
            up_to: Some(2_000_000),
        };
        let usage = |input_tokens, output_tokens, cached_input_tokens, cached_write_tokens| {
            Usage::new(input_tokens, output_tokens)
                .with_cached_input_tokens(cached_input_tokens)
                .with_cached_write_tokens(cached_write_tokens)
        };
        for (usage, expected) in [
            (usage(0, 0, 0, 0), Some("0.000000")),
            (usage(1_000_000, 0, 0, 0), Some("3.000000")),
            (usage(1_000_000, 1_000_000, 0, 0), Some("18.000000")),
            (usage(1_000_000, 0, 1_000_000, 0), Some("0.300000")),
            (usage(1_500_000, 0, 1_000_000, 0), Some("1.800000")),
            (usage(100, 0, 0, 50), None),
            (usage(2_000_001, 0, 0, 0), None),
            (usage(10, 0, 20, 0), None),
        ] {
            let cost = price.cost(&usage).map(|cost| format!("{cost:.6}"));
            assert_eq!(cost.as_deref(), expected, "{usage:?}");
        }
    }
}
