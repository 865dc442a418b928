//! Reads a command line: every command in it, and the commands that these run.

use std::collections::HashMap;
use std::fmt;

use crate::assignment::is_assignment;
use crate::expand::{Expander, has_braces};
use crate::launch::{self, Launch, program_name};
use crate::parse::parse;
use crate::printed::{printed, unescaped};
use crate::script::{
    Operation, OutputKind, ParsedLine, Part, RawWord, Role, Script, SimpleCommand,
};
use crate::variables::{Choice, PARAMETERS, Variables};
use crate::word::{Word, joined};

/// How long a chain of commands that run another command may be, as in `timeout 5 env sh -c …`.
const MAX_DEPTH: u32 = 16;

/// How many commands that other commands run are read, and how many bytes they may have in total.
const MAX_LAUNCHED: usize = 4096;
const MAX_LAUNCHED_BYTES: usize = 1 << 20;

/// Everything that a command line runs, as far as the line shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reading {
    /// The commands of the line, and the commands that they run, in the order in which they were found.
    pub commands: Vec<Command>,
    /// The line, and each line that its commands pass to a shell.
    pub lines: Vec<String>,
    /// Whether everything was read. If not, a rule that restricts must assume that the line can run anything.
    pub is_complete: bool,
    /// Programs that a shell finds out only when the line runs, as written: `$x`, `$(…)` or `/bin/su?o`.
    pub hidden: Vec<String>,
    /// The programs of commands that other commands run. One that the line does not show is an empty string.
    pub(crate) launched: Vec<String>,
}

/// A command that a line runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// The program and its arguments.
    pub words: Vec<Word>,
    /// The variables that are set for it, as written without quotes.
    pub assignments: Vec<String>,
    /// Its redirections.
    pub redirections: Vec<Redirection>,
    /// What it reads from its standard input.
    pub input: Input,
    /// The number of its pipeline, and its place in the pipeline, starting at 0.
    pub pipeline: (u32, u32),
    /// The place of the command that runs it in [`Reading::commands`]; `None` if a shell runs it.
    pub run_by: Option<usize>,
    /// Whether it surely runs if the line runs to its end. Otherwise, its words may also be something else.
    pub is_certain: bool,
}

/// A redirection of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirection {
    /// The operator, such as `>>`.
    pub operator: &'static str,
    /// The file, the descriptor or the text of a here-string. For a here-document, its delimiter.
    pub target: Word,
    /// The body of a here-document.
    pub body: Option<Word>,
}

/// What a command reads from its standard input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// What the shell itself reads.
    Inherited,
    /// Text that the line shows.
    Text(String),
    /// The output of another command, or a file.
    Unknown,
}

/// Why a command line may run programs that cannot be read from it. [`Display`](fmt::Display) writes it for the author
/// of the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnreadLine<'a> {
    /// Its commands run too many other commands, or are nested too deeply.
    Nested,
    /// A shell finds out the name of this program only when the line runs.
    HiddenProgram(&'a str),
}

impl fmt::Display for UnreadLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nested => f.write_str(
                "the command runs other commands that are too many or too deeply nested to be checked",
            ),
            Self::HiddenProgram(program) => write!(
                f,
                "the program `{program}` is known only when the command runs; write its name instead"
            ),
        }
    }
}

impl Reading {
    /// Returns why the line may run programs that no command names. A rule that restricts must then assume that the
    /// line runs anything.
    pub fn unread(&self) -> Option<UnreadLine<'_>> {
        if !self.is_complete {
            return Some(UnreadLine::Nested);
        }
        let program = self.hidden.first()?;
        Some(UnreadLine::HiddenProgram(program))
    }

    /// Returns the lines and each command as text, for patterns: with and without the variables before it, and with the
    /// name of the program instead of its path.
    pub fn texts(&self) -> Vec<String> {
        let mut texts = self.lines.clone();
        for command in &self.commands {
            let text = joined(&command.words);
            if !command.assignments.is_empty() {
                texts.push(format!("{} {text}", command.assignments.join(" ")));
            }
            let program = command.program();
            if let Some(name) = program.rsplit_once('/').map(|(_, name)| name)
                && let Some(rest) = text.strip_prefix(program)
            {
                texts.push(format!("{name}{rest}"));
            }
            texts.push(text);
        }
        texts.sort_unstable();
        texts.dedup();
        texts
    }

    /// Returns the commands that are before a command in its pipeline, and feed it.
    pub fn feeding<'a>(&'a self, command: &'a Command) -> impl Iterator<Item = &'a Command> {
        let (pipeline, stage) = command.pipeline;
        let commands = self.commands.iter();
        commands.filter(move |it| it.pipeline.0 == pipeline && it.pipeline.1 < stage)
    }
}

impl Command {
    /// Returns the program as it is written.
    pub fn program(&self) -> &str {
        self.words.first().map_or("", Word::as_str)
    }

    /// Returns the name of the program without its folder.
    pub fn name(&self) -> &str {
        program_name(self.program())
    }

    /// Returns the words after the program.
    pub fn arguments(&self) -> &[Word] {
        self.words.get(1..).unwrap_or_default()
    }
}

/// Reads a command line for rules that restrict what it may run.
pub fn read(line: &str) -> Reading {
    let mut reader = Reader {
        reading: Reading {
            is_complete: true,
            ..Reading::default()
        },
        variables: Variables::default(),
        seen: HashMap::new(),
        pipelines: 0,
        launched: 0,
        bytes: 0,
        room: MAX_LAUNCHED_BYTES,
    };
    let place = Place {
        depth: 0,
        is_certain: true,
        run_by: None,
        is_sink: false,
    };
    reader.line(line, place);
    reader.reading
}

/// Follows the commands of a line and the commands that they run.
struct Reader {
    reading: Reading,
    variables: Variables,
    /// The commands that other commands run and that were read, and whether as certain ones.
    seen: HashMap<Seen, bool>,
    /// How many pipelines the lines before have.
    pipelines: u32,
    launched: usize,
    bytes: usize,
    /// How many bytes of commands that other commands run may still be copied. Commands that were read
    /// before count, too, because copying them takes time.
    room: usize,
}

/// The words, the pipeline and the input of a command.
type Seen = (Vec<Word>, (u32, u32), bool);

/// Where a line or a command was found.
#[derive(Debug, Clone, Copy)]
struct Place {
    depth: u32,
    is_certain: bool,
    run_by: Option<usize>,
    /// Whether its commands read what another command writes to them.
    is_sink: bool,
}

/// A command before it is read: what surrounds its words.
#[derive(Debug, Clone)]
struct Around {
    place: Place,
    assignments: Vec<String>,
    redirections: Vec<Redirection>,
    input: Input,
    pipeline: (u32, u32),
}

/// What the commands of one stage of a pipeline print.
struct Printed {
    pipeline: (u32, u32),
    /// `None` if it is not known.
    text: Option<String>,
}

impl Reader {
    /// Reads a line that a shell runs.
    fn line(&mut self, line: &str, place: Place) {
        if !self.is_affordable(line.len(), place.depth) {
            return;
        }
        self.reading.lines.push(line.to_owned());
        let parsed = parse(line);
        self.reading.is_complete &= parsed.is_complete || !place.is_certain;
        let first = self.pipelines;
        self.pipelines += parsed.pipelines + 1;
        self.script(&parsed.script, &parsed, first, place);
    }

    /// Reads the commands of a line. `first` is the number of its first pipeline.
    fn script(&mut self, script: &Script, parsed: &ParsedLine, first: u32, place: Place) {
        let mut printed: Vec<Printed> = Vec::new();
        for command in &script.commands {
            let text = self.simple_command(command, parsed, first, place, &printed);
            let pipeline = (first + command.pipeline, command.stage);
            // Only the stages of the current pipeline are needed.
            printed.retain(|it| it.pipeline.0 == pipeline.0);
            printed.push(Printed { pipeline, text });
        }
    }

    /// Reads a command of a script, and returns what it prints, if that is known.
    fn simple_command(
        &mut self,
        command: &SimpleCommand,
        parsed: &ParsedLine,
        first: u32,
        place: Place,
        printed: &[Printed],
    ) -> Option<String> {
        let pipeline = (first + command.pipeline, command.stage);
        let place = Place {
            is_certain: place.is_certain && command.is_certain,
            ..place
        };
        let bodies = command.redirections.iter().filter_map(|it| it.body);
        let bodies: Vec<&RawWord> = bodies.filter_map(|at| parsed.bodies.get(at)).collect();
        let targets = command.redirections.iter().map(|it| &it.target);
        for word in command.words.iter().chain(targets).chain(bodies) {
            self.nested(word, parsed, first, place);
        }
        match &command.role {
            Role::Words => return None,
            Role::Loop(name) => {
                let words = self.expand(&command.words, &Choice::default(), place.is_certain);
                for word in words {
                    if !word.is_known() {
                        self.variables.open(name);
                    }
                    self.variables.add(name, vec![word]);
                }
                return None;
            }
            Role::Command => {}
        }
        let is_set = |word: &&RawWord| is_assignment(word.plain_start());
        let count = command.words.iter().take_while(is_set).count();
        let (assignments, words) = command.words.split_at_checked(count)?;
        let assignments = self.assign(assignments);
        let redirections = self.redirections(command, parsed);
        let input = input(pipeline, printed, &redirections, place.is_sink);
        let around = Around {
            place,
            assignments,
            redirections,
            input,
            pipeline,
        };
        if words.is_empty() {
            self.variable_commands(&around.assignments, place, pipeline);
            let has_target = !around.redirections.is_empty();
            if has_target {
                self.push(Vec::new(), &around);
            }
            return None;
        }
        let mut names = Vec::new();
        for word in words {
            names_in(word, &mut names);
        }
        let mut text = None;
        let choices = self.variables.choices(&names);
        for choice in &choices {
            let words = self.expand(words, choice, place.is_certain);
            text = self.command(words, &around);
        }
        // Some shells do not expand braces.
        if words.iter().any(has_braces) {
            let mut expander = Expander {
                variables: &self.variables,
                choice: &Choice::default(),
                expands_braces: false,
                has_unread_braces: false,
            };
            let words = expander.words(words);
            let mut around = around;
            around.place.is_certain = false;
            self.command(words, &around);
        }
        text.filter(|_| choices.len() == 1)
    }

    /// Reads the commands in the substitutions of a word.
    fn nested(&mut self, word: &RawWord, parsed: &ParsedLine, first: u32, place: Place) {
        for part in &word.parts {
            match part {
                Part::Output { script, kind, .. } => {
                    let is_sink = *kind == OutputKind::Sink;
                    self.script(script, parsed, first, Place { is_sink, ..place });
                }
                Part::Array(values) => {
                    for value in values {
                        self.nested(value, parsed, first, place);
                    }
                }
                Part::Variable(variable) => match &variable.operation {
                    Operation::Alternative(word) | Operation::Other(word) => {
                        self.nested(word, parsed, first, place);
                    }
                    Operation::Value => {}
                },
                Part::Plain(_) | Part::Quoted(_) | Part::Unknown(_) => {}
            }
        }
    }

    fn expand(&mut self, raw: &[RawWord], choice: &Choice, is_certain: bool) -> Vec<Word> {
        let mut expander = Expander {
            variables: &self.variables,
            choice,
            expands_braces: true,
            has_unread_braces: false,
        };
        let words = expander.words(raw);
        self.reading.is_complete &= !(is_certain && expander.has_unread_braces);
        words
    }

    fn value(&self, parts: &[Part]) -> Word {
        let expander = Expander {
            variables: &self.variables,
            choice: &Choice::default(),
            expands_braces: false,
            has_unread_braces: false,
        };
        expander.value(parts)
    }

    /// Sets variables, and returns their texts.
    fn assign(&mut self, words: &[RawWord]) -> Vec<String> {
        let mut texts = Vec::new();
        for word in words {
            let Some((name, start)) = word.plain_start().split_once('=') else {
                continue;
            };
            let rest = word.parts.get(1..).unwrap_or_default();
            let value = if let [Part::Array(values)] = rest {
                self.expand(values, &Choice::default(), false)
            } else {
                let mut value = Word::known(start);
                value.push_word(&self.value(rest));
                vec![value]
            };
            texts.push(format!("{name}={}", joined(&value)));
            let (name, is_more) = match name.strip_suffix('+') {
                Some(name) => (name, true),
                None => (name, false),
            };
            let (name, is_element) = match name.split_once('[') {
                Some((name, _)) => (name, true),
                None => (name, false),
            };
            if is_more || is_element {
                self.variables.append(name, &value);
            } else {
                self.variables.add(name, value);
            }
        }
        texts
    }

    fn redirections(&self, command: &SimpleCommand, parsed: &ParsedLine) -> Vec<Redirection> {
        let redirections = command.redirections.iter().map(|raw| Redirection {
            operator: raw.operator,
            target: self.value(&raw.target.parts),
            body: raw.body.map(|at| {
                let body = parsed.bodies.get(at);
                body.map(|body| self.value(&body.parts)).unwrap_or_default()
            }),
        });
        redirections.collect()
    }

    /// Adds a command to the reading, and returns its place.
    fn push(&mut self, words: Vec<Word>, around: &Around) -> usize {
        let Around {
            place,
            assignments,
            redirections,
            input,
            pipeline,
        } = around.clone();
        self.reading.commands.push(Command {
            words,
            assignments,
            redirections,
            input,
            pipeline,
            run_by: place.run_by,
            is_certain: place.is_certain,
        });
        self.reading.commands.len() - 1
    }

    /// Reads a command and the commands that it runs. Returns what it prints, if that is known.
    fn command(&mut self, words: Vec<Word>, around: &Around) -> Option<String> {
        let Place {
            depth, is_certain, ..
        } = around.place;
        if self.was_seen(&words, around) || !self.is_affordable(launch::size(&words), depth) {
            return None;
        }
        let program = words.first()?;
        if depth > 0 {
            self.reading.launched.push(program.as_str().to_owned());
        }
        self.variable_commands(&around.assignments, around.place, around.pipeline);
        if is_certain && program.hides_program() {
            let program = program.as_str().to_owned();
            if !self.reading.hidden.contains(&program) {
                self.reading.hidden.push(program);
            }
        }
        self.change_variables(&words);
        let found = launch::launched(&words, self.room, &self.variables);
        self.room = found.room;
        self.reading.is_complete &= found.is_complete;
        let text = printed(&words).or_else(|| passed_on(&words, &around.input));
        let name = program_name(program.as_str()).to_owned();
        let reads_line =
            name == "parallel" || launch::is_shell(&name) && launch::reads_input(&words);
        let place = Place {
            depth: depth + 1,
            is_certain,
            run_by: Some(self.push(words, around)),
            is_sink: false,
        };
        let inner = Around {
            place,
            assignments: Vec::new(),
            redirections: Vec::new(),
            ..around.clone()
        };
        let mut printed = None;
        for launch in found.found {
            let of_launch = self.launch(launch, launch::is_fed(&name), &inner);
            printed = printed.or(of_launch);
        }
        if let Input::Text(text) = &around.input
            && reads_line
        {
            self.line(text, place);
            // Some shells replace escapes in the text that `echo` prints.
            let other = unescaped(text);
            if other != *text {
                let is_certain = false;
                self.line(
                    &other,
                    Place {
                        is_certain,
                        ..place
                    },
                );
            }
        }
        text.or(printed)
    }

    /// Reads a command or line that another command runs. `is_fed` is whether the other command adds what it reads.
    fn launch(&mut self, launch: Launch, is_fed: bool, around: &Around) -> Option<String> {
        let placed = |is_sure: bool| Place {
            is_certain: around.place.is_certain && is_sure,
            ..around.place
        };
        match launch {
            Launch::Words { words, is_certain } => {
                let around = Around {
                    place: placed(is_certain),
                    ..around.clone()
                };
                if is_fed && let Input::Text(text) = &around.input {
                    let mut words = words.clone();
                    words.extend(Word::known(text).split("").words);
                    self.command(words, &around);
                }
                self.command(words, &around).filter(|_| is_certain)
            }
            Launch::Line {
                line,
                is_certain,
                parameters,
            } => {
                if parameters.is_empty() {
                    self.line(&line, placed(is_certain));
                } else {
                    let before = self.variables.replace_parameters(&parameters);
                    self.line(&line, placed(is_certain));
                    self.variables = before;
                }
                None
            }
            Launch::Unseen => {
                self.reading.launched.push(String::new());
                None
            }
        }
    }

    /// Returns whether a command that another one runs was read before, and notes that it is read now.
    fn was_seen(&mut self, words: &[Word], around: &Around) -> bool {
        let Place {
            depth, is_certain, ..
        } = around.place;
        if depth == 0 {
            return false;
        }
        let has_text = matches!(around.input, Input::Text(_));
        let key = (words.to_vec(), around.pipeline, has_text);
        match self.seen.get_mut(&key) {
            Some(was_certain) if *was_certain || !is_certain => return true,
            Some(was_certain) => *was_certain = true,
            None => {
                self.seen.insert(key, is_certain);
            }
        }
        false
    }

    /// Reads the commands in the values of variables such as `PAGER`.
    fn variable_commands(&mut self, assignments: &[String], place: Place, pipeline: (u32, u32)) {
        for assignment in assignments {
            let Some((name, value)) = assignment.split_once('=') else {
                continue;
            };
            let inner = Place {
                depth: place.depth + 1,
                is_certain: false,
                run_by: None,
                is_sink: false,
            };
            for launch in launch::variable_commands(name, value) {
                match launch {
                    Launch::Line { line, .. } => self.line(&line, inner),
                    Launch::Words { words, .. } => {
                        let around = Around {
                            place: inner,
                            assignments: Vec::new(),
                            redirections: Vec::new(),
                            input: Input::Inherited,
                            pipeline,
                        };
                        self.command(words, &around);
                    }
                    Launch::Unseen => {}
                }
            }
        }
    }

    /// Follows commands that set variables.
    fn change_variables(&mut self, words: &[Word]) {
        let Some((program, arguments)) = words.split_first() else {
            return;
        };
        match program.as_str() {
            "read" | "mapfile" | "readarray" | "getopts" | "let" | "unset" | "printf" => {
                for word in arguments {
                    let name = word.as_str();
                    let name = name.split(['=', '[', '+']).next().unwrap_or_default();
                    self.variables.open(name);
                }
            }
            "set" => {
                let at = arguments.iter().position(|word| word.as_str() == "--");
                if let Some(values) = at.and_then(|at| arguments.get(at + 1..)) {
                    self.variables.add(PARAMETERS, values.to_vec());
                }
            }
            name if launch::sets_variables(name) => {
                for word in arguments.iter().filter(|word| is_assignment(word.as_str())) {
                    if let Some((name, _)) = word.as_str().split_once('=') {
                        let value = word.from(name.len() + 1);
                        self.variables.add(name.trim_end_matches('+'), vec![value]);
                    }
                }
            }
            _ => {}
        }
    }

    /// Returns whether a command that another one runs is within the limits.
    fn is_affordable(&mut self, bytes: usize, depth: u32) -> bool {
        if depth == 0 {
            return true;
        }
        self.launched += 1;
        self.bytes += bytes;
        let is_affordable =
            depth <= MAX_DEPTH && self.launched <= MAX_LAUNCHED && self.bytes <= MAX_LAUNCHED_BYTES;
        self.reading.is_complete &= is_affordable;
        is_affordable
    }
}

/// Returns what a command reads: the last of its own redirections, or what the stage before it prints.
fn input(
    (pipeline, stage): (u32, u32),
    printed: &[Printed],
    redirections: &[Redirection],
    is_sink: bool,
) -> Input {
    let own = redirections.iter().rev().find_map(|redirection| {
        match (redirection.operator, &redirection.body) {
            (_, Some(body)) => Some(Input::Text(body.as_str().to_owned())),
            ("<<<", None) => Some(Input::Text(redirection.target.as_str().to_owned())),
            ("<" | "<&" | "<>", None) => Some(Input::Unknown),
            _ => None,
        }
    });
    if let Some(own) = own {
        return own;
    }
    let Some(before) = stage.checked_sub(1) else {
        return if is_sink {
            Input::Unknown
        } else {
            Input::Inherited
        };
    };
    let mut text = String::new();
    for it in printed {
        if it.pipeline == (pipeline, before) {
            match &it.text {
                Some(printed) => text.push_str(printed),
                None => return Input::Unknown,
            }
        }
    }
    Input::Text(text)
}

/// Returns what a command that copies its input prints.
fn passed_on(words: &[Word], input: &Input) -> Option<String> {
    let (program, arguments) = words.split_first()?;
    let is_copy = match program_name(program.as_str()) {
        "cat" => arguments.iter().all(|word| word.as_str() == "-"),
        "tee" => true,
        _ => false,
    };
    match input {
        Input::Text(text) if is_copy => Some(text.clone()),
        Input::Text(_) | Input::Inherited | Input::Unknown => None,
    }
}

/// Collects the names of the variables in a word.
fn names_in<'a>(word: &'a RawWord, names: &mut Vec<&'a str>) {
    for part in &word.parts {
        match part {
            Part::Variable(variable) => names.push(&variable.name),
            Part::Output { script, .. } => {
                for word in script.commands.iter().flat_map(|command| &command.words) {
                    names_in(word, names);
                }
            }
            Part::Plain(_) | Part::Quoted(_) | Part::Array(_) | Part::Unknown(_) => {}
        }
    }
}
