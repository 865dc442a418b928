//! Reads the arguments of a command: its subcommand, its options however they are spelled, and the other words.

use crate::options::{Row, SUBCOMMANDS, related, rows};

/// The arguments of a command.
#[derive(Debug, Default)]
pub(crate) struct Arguments<'a> {
    pub(crate) subcommand: Option<&'a str>,
    pub(crate) options: Vec<FoundOption<'a>>,
    /// The words that are neither options nor their values, without the subcommand.
    pub(crate) operands: Vec<&'a str>,
    /// Whether `--` is among the words, and words come after it.
    pub(crate) has_separator: bool,
}

/// An option of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FoundOption<'a> {
    pub(crate) name: OptionName<'a>,
    pub(crate) value: Option<&'a str>,
    /// The word that comes after it, which may be its value.
    pub(crate) next: Option<&'a str>,
}

/// The name of an option, in the spelling that stands for all spellings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OptionName<'a> {
    Letter(char),
    Word(&'a str),
}

/// The rows that apply to a command.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spellings([Option<&'static Row>; 2]);

impl Spellings {
    pub(crate) fn new(program: &str, subcommand: Option<&str>) -> Self {
        Self(rows(program, subcommand))
    }

    fn rows(&self) -> impl Iterator<Item = &'static Row> {
        // What a subcommand says of an option outranks its program.
        let [own, inner] = self.0;
        inner.into_iter().chain(own)
    }

    /// Returns whether the table has the program.
    pub(crate) fn is_known(&self) -> bool {
        self.rows().next().is_some()
    }

    pub(crate) fn has_words(&self) -> bool {
        self.rows().any(|row| row.has_words)
    }

    pub(crate) fn has_subcommands(&self) -> bool {
        self.rows().any(|row| row.has_subcommands)
    }

    fn is_valued(&self, option: &str) -> bool {
        self.rows().any(|row| row.valued.contains(&option))
    }

    fn is_attached(&self, option: &str) -> bool {
        self.rows().any(|row| row.attached.contains(&option))
    }

    /// Returns all spellings of an option, the one that stands for all of them first.
    pub(crate) fn same(&self, option: &str) -> Option<&'static [&'static str]> {
        let mut groups = self.rows().flat_map(|row| row.same);
        groups.find(|same| same.contains(&option)).copied()
    }

    /// Returns the spellings of a long option that is abbreviated.
    fn abbreviated(&self, option: &str) -> Option<&'static [&'static str]> {
        let is_short = |same: &&&[&str]| {
            same.iter()
                .any(|spelling| spelling.starts_with("--") && spelling.starts_with(option))
        };
        let mut groups = self.rows().flat_map(|row| row.same);
        let is_long = option.len() > "--".len() && !self.is_valued(option);
        groups.find(|same| is_long && is_short(same)).copied()
    }

    /// Returns the names of the options that an option stands for.
    fn names<'a>(&self, option: &'a str) -> Vec<OptionName<'a>> {
        let combined = self.rows().flat_map(|row| row.combined);
        let mut combined = combined.filter(|(of, _)| *of == option);
        if let Some((_, options)) = combined.next() {
            return options
                .iter()
                .map(|option| OptionName::Word(option))
                .collect();
        }
        let same = self.same(option).or_else(|| self.abbreviated(option));
        let name = same
            .and_then(|same| same.first().copied())
            .unwrap_or(option);
        let mut letters = name.chars();
        let name = match (letters.next(), letters.next(), letters.next()) {
            (Some('-'), Some(letter), None) => OptionName::Letter(letter),
            _ => OptionName::Word(name),
        };
        vec![name]
    }

    /// Adds the options that a word consists of.
    /// The result is whether the next word is the value of the last one.
    pub(crate) fn read_options<'a>(
        &self,
        word: &'a str,
        next: Option<&'a str>,
        found: &mut Vec<FoundOption<'a>>,
    ) -> bool {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word, None),
        };
        let is_long = word.starts_with("--");
        if self.has_words() {
            let name = OptionName::Word(name.trim_start_matches('-'));
            found.push(FoundOption { name, value, next });
            return false;
        }
        if is_long || self.same(name).is_some_and(|_| name.len() > 2) {
            let takes_next = value.is_none() && self.is_valued(name);
            let value = value.or(next.filter(|_| takes_next));
            let names = self.names(name).into_iter();
            found.extend(names.map(|name| FoundOption { name, value, next }));
            return takes_next;
        }
        self.read_letters(word.get(1..).unwrap_or_default(), next, found)
    }

    /// Adds the options that the letters after a `-` are. The result is whether the next word is the value of the last
    /// one.
    fn read_letters<'a>(
        &self,
        letters: &'a str,
        next: Option<&'a str>,
        found: &mut Vec<FoundOption<'a>>,
    ) -> bool {
        for (at, letter) in letters.char_indices() {
            let mut buffer = [b'-', 0, 0, 0, 0];
            let length = letter
                .encode_utf8(buffer.get_mut(1..).unwrap_or_default())
                .len();
            let option = std::str::from_utf8(buffer.get(..=length).unwrap_or_default());
            let option = option.unwrap_or_default();
            let rest = letters.get(at + letter.len_utf8()..).unwrap_or_default();
            let is_valued = self.is_valued(option);
            let takes_rest = !rest.is_empty() && (is_valued || self.is_attached(option));
            let takes_next = rest.is_empty() && is_valued;
            let value = if takes_rest {
                Some(rest)
            } else {
                next.filter(|_| takes_next)
            };
            for name in self.names(option) {
                let name = match name {
                    OptionName::Letter(letter) => OptionName::Letter(letter),
                    // The name is from the table, because it is not a letter.
                    OptionName::Word(name) => match self.table_name(name) {
                        Some(name) => OptionName::Word(name),
                        None => OptionName::Letter(letter),
                    },
                };
                let next = next.filter(|_| rest.is_empty());
                found.push(FoundOption { name, value, next });
            }
            if takes_rest || takes_next {
                return takes_next;
            }
        }
        false
    }

    /// Returns the name in the table that equals a name.
    fn table_name(&self, name: &str) -> Option<&'static str> {
        let combined = self.rows().flat_map(|row| row.combined);
        let combined = combined.flat_map(|(_, options)| *options);
        let same = self.rows().flat_map(|row| row.same).flat_map(|same| *same);
        same.chain(combined).find(|known| **known == name).copied()
    }

    /// Adds the option for a signal that is the value of another option: `-s KILL` means `-KILL`.
    fn add_signals(&self, found: &mut Vec<FoundOption<'_>>, from: usize) {
        let signals = found.iter().skip(from);
        let mut signals = signals.filter(|option| option.name == OptionName::Word("--signal"));
        let Some(signal) = signals.find_map(|option| option.value) else {
            return;
        };
        let groups = self.rows().flat_map(|row| row.same);
        let mut groups = groups.filter(|same| {
            same.iter()
                .any(|option| option.trim_start_matches('-').eq_ignore_ascii_case(signal))
        });
        if let Some(name) = groups.next().and_then(|same| same.first()) {
            found.push(FoundOption {
                name: OptionName::Word(name),
                value: None,
                next: None,
            });
        }
    }

    /// Returns whether the table has an option, so that it is known whether it takes a value.
    fn has(&self, option: &str) -> bool {
        let name = option.split_once('=').map_or(option, |(name, _)| name);
        self.same(name).is_some() || self.is_valued(name) || option.contains('=')
    }

    /// Reads the words after the program.
    pub(crate) fn read<'a>(&self, words: &[&'a str]) -> Arguments<'a> {
        let mut arguments = Arguments::default();
        let mut words = words.iter().copied().peekable();
        let is_tar = self.rows().any(|row| row.command == ["tar"]);
        if is_tar && let Some(first) = words.next_if(|word| !word.starts_with('-')) {
            // `tar xf FILE` needs no dash.
            let letters = first.chars().map(|letter| FoundOption {
                name: match letter {
                    'x' => OptionName::Word("--extract"),
                    'c' => OptionName::Word("--create"),
                    'f' => OptionName::Word("--file"),
                    'C' => OptionName::Word("--directory"),
                    'P' => OptionName::Word("--absolute-names"),
                    other => OptionName::Letter(other),
                },
                value: None,
                next: None,
            });
            arguments.options.extend(letters);
        }
        let mut has_ended = false;
        while let Some(word) = words.next() {
            if has_ended || word == "-" || !word.starts_with('-') {
                // The first operands are the subcommand, and then what runs.
                let before = self
                    .0
                    .iter()
                    .flatten()
                    .filter(|row| row.command.len() > 1)
                    .count();
                has_ended |= self.rows().any(|row| row.stops) && arguments.operands.len() >= before;
                arguments.operands.push(word);
            } else if word == "--" {
                has_ended = true;
                arguments.has_separator = words.peek().is_some();
            } else {
                let next = words.peek().copied();
                let count = arguments.options.len();
                if self.read_options(word, next, &mut arguments.options) {
                    words.next();
                }
                self.add_signals(&mut arguments.options, count);
            }
        }
        arguments
    }
}

/// Reads the words after a program. Returns the spellings that apply, too. There may be two readings, because an option
/// that is not in the table may take the word after it.
pub(crate) fn arguments<'a>(program: &str, words: &[&'a str]) -> Vec<(Arguments<'a>, Spellings)> {
    let own = Spellings::new(program, None);
    if !own.has_subcommands() {
        return vec![(own.read(words), own)];
    }
    let mut operands = own.read(words).operands.into_iter();
    // `cargo +nightly build` names a version first.
    let first = operands.find(|word| !(program == "cargo" && word.starts_with('+')));
    let mut readings = vec![with_subcommand(program, words, first, operands.next())];
    let place = words.iter().position(|word| Some(*word) == first);
    let before = place.and_then(|at| words.get(at.checked_sub(1)?));
    let may_be_value = before.is_some_and(|before| before.starts_with('-') && !own.has(before));
    if may_be_value && let Some(place) = place {
        let kept = words.iter().enumerate().filter(|(at, _)| *at != place);
        let kept: Vec<&str> = kept.map(|(_, word)| *word).collect();
        let mut operands = own.read(&kept).operands.into_iter();
        let first = operands.next();
        readings.push(with_subcommand(program, &kept, first, operands.next()));
    }
    readings
}

/// Reads words whose first operand is a subcommand.
fn with_subcommand<'a>(
    program: &str,
    words: &[&'a str],
    first: Option<&'a str>,
    second: Option<&'a str>,
) -> (Arguments<'a>, Spellings) {
    let mut names = SUBCOMMANDS.iter();
    let other = names.find(|(of, other, _)| *of == related(program) && Some(*other) == first);
    let (subcommand, written) = match other {
        Some((_, _, "")) => (second, [first, second]),
        Some((_, _, name)) => (Some(*name), [first, None]),
        None => (first, [first, None]),
    };
    let spellings = Spellings::new(program, subcommand);
    let mut found = spellings.read(words);
    for name in written.into_iter().flatten() {
        if let Some(at) = found.operands.iter().position(|word| *word == name) {
            found.operands.remove(at);
        }
    }
    found.subcommand = subcommand;
    (found, spellings)
}
