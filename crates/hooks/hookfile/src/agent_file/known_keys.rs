//! The keys that an agent file may have, and what Tenterhook does with each.
//!
//! The table is in `known_keys.txt`, whose first lines explain its form. [`KeyCheck::check`] walks over a
//! part of a document and reports keys that the table does not allow. It checks only keys. The readers of
//! the agent file check the values of the keys that they use.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use tenterhook_systems::docker_agent::DockerAgent;

use crate::excerpt::shorten;
use crate::report::Report;
use crate::suggest::one_of;
use crate::tree::{Entry, Node, Value};

/// Stands for every name in a mapping of names.
const ANY_NAME: &str = "*";
/// The largest number of places that a message suggests for a misplaced key.
const MAX_PLACES: usize = 2;

static TABLE: LazyLock<BTreeMap<&str, Kind>> =
    LazyLock::new(|| parse(include_str!("known_keys.txt")));

/// A kind of mapping.
#[derive(Debug)]
struct Kind {
    /// Where it is in a file, as a prefix of its keys; `None` if messages should not suggest it.
    place: Option<&'static str>,
    /// Its position in the table. Messages suggest places in this order.
    position: usize,
    keys: Vec<Key>,
}

#[derive(Debug)]
struct Key {
    name: &'static str,
    stance: Stance,
    /// The kind of the mappings in the key's value.
    child: Option<&'static str>,
    /// For a used key, its meaning. For any other key, a hint that says what to do instead.
    note: Option<&'static str>,
}

/// What Tenterhook does with a key.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Stance {
    Used,
    About,
    Unused,
    /// Refuses the listed values, or every value if the list is empty.
    Refused(Vec<&'static str>),
}

fn parse(table: &'static str) -> BTreeMap<&'static str, Kind> {
    let mut kinds: BTreeMap<&str, Kind> = BTreeMap::new();
    let mut current = "";
    let lines = table.lines().map(str::trim);
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(header) = line.strip_prefix('[') {
            let (name, place) = header
                .trim_end_matches(']')
                .split_once(' ')
                .unwrap_or((header, "?"));
            let kind = Kind {
                place: (place != "?").then_some(if place == "-" { "" } else { place }),
                position: kinds.len(),
                keys: Vec::new(),
            };
            kinds.insert(name, kind);
            current = name;
        } else if let (Some(kind), Some(key)) = (kinds.get_mut(current), Key::parse(line)) {
            kind.keys.push(key);
        }
    }
    kinds
}

impl Key {
    fn parse(line: &'static str) -> Option<Self> {
        let (words, note) = match line.split_once(" : ") {
            Some((words, note)) => (words, Some(note)),
            None => (line, None),
        };
        let mut words = words.split_whitespace();
        let name = words.next()?;
        let stance = match words.next()?.split_once('=') {
            Some((_, values)) => Stance::Refused(values.split(',').collect()),
            None => Stance::parse(line.split_whitespace().nth(1)?)?,
        };
        let child = words.next().and_then(|word| word.strip_prefix('>'));
        Some(Self {
            name,
            stance,
            child,
            note,
        })
    }

    /// Returns whether the key is refused because of this value.
    fn refuses(&self, value: &Node) -> bool {
        let Stance::Refused(values) = &self.stance else {
            return false;
        };
        let written = match &value.value {
            Value::Bool(value) => value.to_string(),
            Value::Text(text) => text.clone(),
            Value::Null | Value::Broken => return false,
            // A value of any other type is invalid. It might be meant as a restriction, so refuse it.
            Value::Number(_) | Value::Date | Value::List(_) | Value::Table(_) => return true,
        };
        values.is_empty() || values.contains(&written.as_str())
    }
}

impl Stance {
    fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "used" => Self::Used,
            "about" => Self::About,
            "unused" => Self::Unused,
            "refused" => Self::Refused(Vec::new()),
            _ => return None,
        })
    }
}

/// Returns the names of the keys of a kind.
pub(super) fn names(kind: &str) -> Vec<&'static str> {
    let keys = TABLE.get(kind).map_or(&[][..], |kind| &kind.keys);
    keys.iter().map(|key| key.name).collect()
}

/// Returns whether a kind has the key.
pub(super) fn is_known(kind: &str, key: &str) -> bool {
    find(kind, key).is_some()
}

fn find(kind: &str, name: &str) -> Option<&'static Key> {
    let keys = &TABLE.get(kind)?.keys;
    keys.iter()
        .find(|key| key.name == name || key.name == ANY_NAME)
}

/// How much to report about known keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    /// Warn about keys that have no effect, and refuse unimplemented keys that restrict the agent.
    Full,
    /// Report only unknown keys. Tenterhook does not use the mapping, so none of its keys has an effect.
    UnknownOnly,
}

/// Checks the keys of a document.
#[derive(Debug, Default)]
pub(super) struct KeyCheck {
    /// The keys that already have a warning. One warning per key is enough.
    warned: BTreeSet<(&'static str, &'static str)>,
}

impl KeyCheck {
    /// Checks the keys of a mapping, or of each mapping in a list, and of all mappings below. `kind` is
    /// the kind of these mappings in the table.
    pub(super) fn check(
        &mut self,
        report: &mut Report,
        kind: &'static str,
        node: &Node,
        detail: Detail,
    ) {
        for entry in node.as_table().unwrap_or_default() {
            self.check_entry(report, kind, entry, detail);
        }
        for item in node.as_list().unwrap_or_default() {
            let detail = detail_of(kind, item, detail);
            self.check(report, kind, item, detail);
        }
    }

    fn check_entry(
        &mut self,
        report: &mut Report,
        kind: &'static str,
        entry: &Entry,
        detail: Detail,
    ) {
        let Some(key) = find(kind, &entry.key) else {
            unknown_key(report, kind, entry);
            return;
        };
        let mut below = detail;
        if detail == Detail::Full {
            if key.refuses(&entry.value) {
                refuse(report, key, entry);
                return;
            }
            if key.stance != Stance::Used {
                below = Detail::UnknownOnly;
            }
            let has_no_effect = !matches!(key.stance, Stance::Used | Stance::About);
            if has_no_effect && !entry.value.is_null() && self.warned.insert((kind, key.name)) {
                let warning = report.warning(
                    entry.key_span,
                    format!("`{}` has no effect here", entry.key),
                );
                report.add(match key.note {
                    Some(note) => warning.hint(note),
                    None => warning,
                });
            }
        }
        if let Some(child) = key.child {
            let below = detail_of(child, &entry.value, below);
            self.check(report, child, &entry.value, below);
        }
    }
}

/// Returns the detail for a mapping. The keys of a toolset that Tenterhook lacks restrict nothing.
fn detail_of(kind: &str, node: &Node, detail: Detail) -> Detail {
    let name = node.entry("type").and_then(|entry| entry.value.as_text());
    let is_missing = kind == "toolset"
        && name.is_some_and(|name| {
            find("toolset_type", name).is_none_or(|known| known.stance != Stance::Used)
        });
    if is_missing {
        Detail::UnknownOnly
    } else {
        detail
    }
}

fn refuse(report: &mut Report, key: &Key, entry: &Entry) {
    let written = match entry.value.as_text() {
        Some(text) => format!("{}: {}", entry.key, shorten(text)),
        None => entry.key.clone(),
    };
    let message = format!("`{written}` restricts the agent, but Tenterhook cannot enforce it");
    let problem = report.problem(entry.key_span, message);
    report.add(
        problem.hint(
            key.note
                .unwrap_or("remove the key to run without the restriction"),
        ),
    );
}

/// Reports a key that this kind of mapping does not have. Suggests a similar key, or the place where the
/// key belongs.
fn unknown_key(report: &mut Report, kind: &'static str, entry: &Entry) {
    if report.is_full() {
        return;
    }
    let name = shorten(&entry.key);
    let places = places_of(&entry.key);
    if !places.is_empty() {
        let problem = report.problem(entry.key_span, format!("misplaced key `{name}`"));
        report.add(problem.allowed(places.join(" or ")).hint("move it there"));
        return;
    }
    let known = names(kind);
    let keys = TABLE.get(kind).map_or(&[][..], |kind| &kind.keys);
    let used = keys.iter().filter(|key| key.stance == Stance::Used);
    let problem = report.problem(entry.key_span, format!("unknown key `{name}`"));
    report.add(
        problem
            .allowed(one_of(used.map(|key| key.name)))
            .suggestion(report.nearest(&entry.key, known)),
    );
}

/// Returns the places where a key is allowed, the most likely ones first.
pub(super) fn places_of(key: &str) -> Vec<String> {
    let mut kinds: Vec<(&Kind, &str)> = TABLE
        .values()
        .filter_map(|kind| Some((kind, kind.place?)))
        .filter(|(kind, _)| kind.keys.iter().any(|known| known.name == key))
        .collect();
    kinds.sort_by_key(|(kind, _)| kind.position);
    let event = DockerAgent::event(key).map(|_| format!("`agents.NAME.hooks.{key}`"));
    let places = kinds.into_iter().map(|(_, place)| match place {
        "" => format!("`{key}` at the top level of the file"),
        place => format!("`{place}.{key}`"),
    });
    event.into_iter().chain(places).take(MAX_PLACES).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_understood_and_every_kind_exists() {
        let text = include_str!("known_keys.txt");
        let lines = text.lines().map(str::trim);
        let lines: Vec<_> = lines
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .collect();
        let headers = lines.iter().filter(|line| line.starts_with('[')).count();
        assert_eq!(TABLE.len(), headers, "a kind appears twice in the table");
        let keys: usize = TABLE.values().map(|kind| kind.keys.len()).sum();
        assert_eq!(keys, lines.len() - headers, "a line is not understood");
        for (name, kind) in &*TABLE {
            let mut seen = BTreeSet::new();
            for key in &kind.keys {
                assert!(
                    seen.insert(key.name),
                    "`{}` appears twice in `{name}`",
                    key.name
                );
                let child = key.child.is_none_or(|child| TABLE.contains_key(child));
                assert!(
                    child,
                    "`{}` of `{name}` has a kind that does not exist",
                    key.name
                );
            }
        }
    }

    /// Returns the keys that Tenterhook uses or refuses, as a table.
    fn reference() -> String {
        let mut table = "| mapping | key | meaning |\n|---|---|---|\n".to_owned();
        for name in ["file", "agent", "toolset"] {
            let kind = &TABLE[name];
            let place = match kind.place.unwrap_or_default() {
                "" => "the file".to_owned(),
                place => format!("`{place}`"),
            };
            for key in &kind.keys {
                let note = key.note.unwrap_or_default();
                let meaning = match &key.stance {
                    Stance::Used => {
                        assert!(
                            !note.is_empty(),
                            "`{}` of `{name}` has no meaning",
                            key.name
                        );
                        note.to_owned()
                    }
                    Stance::Refused(values) => {
                        let values: Vec<String> =
                            values.iter().map(|value| format!("`{value}`")).collect();
                        let refused = match values.as_slice() {
                            [] => "refused".to_owned(),
                            values => format!("{}: refused", values.join(", ")),
                        };
                        if note.is_empty() {
                            refused
                        } else {
                            format!("{refused}; {note}")
                        }
                    }
                    Stance::About | Stance::Unused => continue,
                };
                table.extend([format!("| {place} | `{}` | {meaning} |\n", key.name)]);
            }
        }
        table
    }

    #[test]
    fn the_page_of_hook_files_lists_every_key_that_is_used_or_refused() {
        crate::reference_page::compare("the keys of agent files", &reference());
    }
}
