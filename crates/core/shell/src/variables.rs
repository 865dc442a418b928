//! The variables that a line sets, with every value that they may have.

use crate::word::Word;

/// How many values of a variable are followed. One with more values is unknown.
const MAX_VALUES: usize = 8;

/// How many combinations of values a command is read with.
const MAX_COMBINATIONS: usize = 64;

/// The name under which the parameters `$1`, `$2` and so on are kept.
pub(crate) const PARAMETERS: &str = "@";

/// The values of variables that a line sets.
#[derive(Debug, Clone, Default)]
pub(crate) struct Variables {
    all: Vec<Known>,
}

#[derive(Debug, Clone)]
struct Known {
    name: String,
    /// The possible values. Each is a list, because a variable may be an array.
    values: Vec<Vec<Word>>,
    /// Whether it may have another value.
    is_open: bool,
}

/// The parameters before a line with its own ones.
pub(crate) struct Parameters(Vec<Known>);

/// Which of its values each variable has in one reading of a command.
#[derive(Debug, Clone, Default)]
pub(crate) struct Choice {
    values: Vec<(String, usize)>,
    /// The characters that separate words, in addition to white space.
    pub(crate) separators: String,
}

impl Variables {
    fn position(&self, name: &str) -> Option<usize> {
        self.all.iter().position(|known| known.name == name)
    }

    fn get(&self, name: &str) -> Option<&Known> {
        self.position(name).and_then(|at| self.all.get(at))
    }

    /// Adds a value. The values before stay possible, because commands may run in another order than they are written.
    pub(crate) fn add(&mut self, name: &str, value: Vec<Word>) {
        let at = self.position(name).unwrap_or_else(|| {
            self.all.push(Known {
                name: name.to_owned(),
                values: Vec::new(),
                is_open: false,
            });
            self.all.len() - 1
        });
        if let Some(known) = self.all.get_mut(at)
            && !known.values.contains(&value)
        {
            if known.values.len() < MAX_VALUES {
                known.values.push(value);
            } else {
                known.is_open = true;
            }
        }
    }

    /// Appends to every value, as `x+=y` does.
    pub(crate) fn append(&mut self, name: &str, more: &[Word]) {
        let before = self.get(name).map(|known| known.values.clone());
        let before = before.unwrap_or_default();
        if before.is_empty() {
            self.add(name, more.to_vec());
        }
        for mut value in before {
            match (value.as_mut_slice(), more) {
                ([one], [more]) => one.push_word(more),
                _ => value.extend_from_slice(more),
            }
            self.add(name, value);
        }
    }

    /// Removes the first parameters, as `shift` does.
    pub(crate) fn shift(&mut self, count: usize) {
        let before = self.get(PARAMETERS).map(|known| known.values.clone());
        for value in before.unwrap_or_default() {
            let rest = value.get(count..).unwrap_or_default();
            self.add(PARAMETERS, rest.to_vec());
        }
    }

    /// Notes that a variable may get a value that the line does not show.
    pub(crate) fn open(&mut self, name: &str) {
        if let Some(at) = self.position(name)
            && let Some(known) = self.all.get_mut(at)
        {
            known.is_open = true;
        }
    }

    /// Replaces the parameters, and returns what they were.
    pub(crate) fn replace_parameters(&mut self, values: &[Word]) -> Parameters {
        let is_parameter = |known: &Known| known.name == PARAMETERS || known.name == "0";
        let before = self
            .all
            .extract_if(.., |known| is_parameter(known))
            .collect();
        if let Some((first, rest)) = values.split_first() {
            self.add("0", vec![first.clone()]);
            self.add(PARAMETERS, rest.to_vec());
        }
        Parameters(before)
    }

    /// Puts parameters back.
    pub(crate) fn restore(&mut self, before: Parameters) {
        self.replace_parameters(&[]);
        self.all.extend(before.0);
    }

    /// Returns whether no variable is set.
    pub(crate) const fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns the value of a variable in a reading, or `None` if it is not known.
    pub(crate) fn value(&self, name: &str, is_all: bool, choice: &Choice) -> Option<&[Word]> {
        let number: Option<usize> = name.parse().ok();
        let stored = match number {
            Some(1..) => PARAMETERS,
            _ if name == "*" => PARAMETERS,
            _ => name,
        };
        let known = self.get(stored)?;
        let chosen = choice.values.iter().find(|(name, _)| name == stored);
        let value = known.values.get(chosen.map_or(0, |(_, at)| *at))?;
        match number {
            Some(number @ 1..) => Some(value.get(number - 1..number).unwrap_or_default()),
            _ if is_all => Some(value),
            _ => Some(value.get(..1).unwrap_or_default()),
        }
    }

    /// Returns the last values of a variable as text.
    pub(crate) fn texts(&self, name: &str) -> Vec<String> {
        let values = self.get(name).map(|known| known.values.as_slice());
        let values = values.unwrap_or_default().iter();
        values.map(|value| crate::word::joined(value)).collect()
    }

    /// Returns every combination of the values of these variables, and whether these are all.
    pub(crate) fn choices(&self, names: &[&str]) -> (Vec<Choice>, bool) {
        let mut choices = vec![Choice::default()];
        let separators = self.texts("IFS").concat();
        if !separators.is_empty() && !names.is_empty() {
            choices.push(Choice {
                separators,
                ..Choice::default()
            });
        }
        let mut is_complete = true;
        for name in names {
            let stored = if name.parse::<usize>().is_ok_and(|number| number > 0) || *name == "*" {
                PARAMETERS
            } else {
                name
            };
            let Some(known) = self.get(stored) else {
                continue;
            };
            let count = known.values.len() + usize::from(known.is_open);
            let is_chosen = |choice: &Choice| choice.values.iter().any(|(name, _)| name == stored);
            if count < 2 || choices.iter().any(is_chosen) {
                continue;
            }
            // The last values come first, because they are the most likely ones.
            let values = (0..count).rev();
            choices = values
                .flat_map(|at| {
                    choices.iter().map(move |choice| {
                        let mut choice = choice.clone();
                        choice.values.push((stored.to_owned(), at));
                        choice
                    })
                })
                .collect();
            is_complete &= choices.len() <= MAX_COMBINATIONS;
            choices.truncate(MAX_COMBINATIONS);
        }
        (choices, is_complete)
    }
}
