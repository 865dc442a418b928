//! Reads a command line: follows its commands, and the commands that they run.

use std::cell::Cell;
use std::collections::HashMap;

use crate::assignment::is_assignment;
use crate::expand::{Expander, has_braces};
use crate::launch;
use crate::launches::{Launch, size};
use crate::parse::parse;
use crate::printed::{printed, unescaped};
use crate::reading::{Input, LineCommand, Reading, Redirection, Stage};
use crate::script::{
    Operation, OutputKind, ParsedLine, Part, RawWord, Role, Script, SimpleCommand,
};
use crate::variables::{Choice, PARAMETERS, Variables};
use crate::word::{Word, joined, program_name};

/// How long a chain of commands that run another command may be, as in `timeout 5 env sh -c …`.
const MAX_DEPTH: u32 = 16;

/// How many commands that other commands run are read, and how many bytes they may have in total.
const MAX_LAUNCHED: usize = 4096;
const MAX_LAUNCHED_BYTES: usize = 1 << 18;

/// Reads a command line for rules that restrict what it may run.
pub fn read(line: &str) -> Reading {
    let mut reader = Reader::new(Variables::default());
    let place = Place {
        depth: 0,
        is_certain: true,
        run_by: None,
        scope: None,
    };
    reader.line(line, place);
    if reader.repeats && !reader.variables.is_empty() {
        // A loop, a function or a trap may run with values that are set later in the line.
        reader = Reader::new(reader.variables);
        reader.line(line, place);
    }
    reader.reading
}

/// Follows the commands of a line and the commands that they run.
struct Reader {
    reading: Reading,
    variables: Variables,
    /// The pipelines and inputs around lines and substitutions.
    scopes: Vec<Scope>,
    /// The functions that the line defines.
    functions: Vec<String>,
    /// Whether commands may run in another order than they are written, or more than once.
    repeats: bool,
    /// What commands read if nothing is redirected, after `exec < FILE`.
    input: Input,
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
type Seen = (Vec<Word>, Stage, bool);

/// What is around a line or a substitution.
#[derive(Debug, Clone)]
struct Scope {
    stage: Stage,
    /// What its commands read if nothing is redirected.
    input: Input,
    outer: Option<usize>,
}

/// Where a line or a command was found.
#[derive(Debug, Clone, Copy)]
struct Place {
    depth: u32,
    is_certain: bool,
    run_by: Option<usize>,
    /// The scope in [`Reader::scopes`].
    scope: Option<usize>,
}

/// A command before it is read: what surrounds its words.
#[derive(Debug, Clone)]
struct Around {
    place: Place,
    assignments: Vec<String>,
    redirections: Vec<Redirection>,
    input: Input,
    stage: Stage,
}

/// What the commands of one stage of a pipeline print.
struct Printed {
    stage: Stage,
    /// `None` if it is not known.
    text: Option<String>,
}

impl Reader {
    fn new(variables: Variables) -> Self {
        Self {
            reading: Reading {
                is_complete: true,
                ..Reading::default()
            },
            variables,
            scopes: Vec::new(),
            functions: Vec::new(),
            repeats: false,
            input: Input::Inherited,
            seen: HashMap::new(),
            pipelines: 0,
            launched: 0,
            bytes: 0,
            room: MAX_LAUNCHED_BYTES,
        }
    }

    /// Adds a scope inside of a place.
    fn scope(&mut self, stage: Stage, input: Input, place: Place) -> usize {
        self.scopes.push(Scope {
            stage,
            input,
            outer: place.scope,
        });
        self.scopes.len() - 1
    }

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
        self.functions.extend(parsed.functions.iter().cloned());
        self.repeats |= parsed.repeats;
        self.script(&parsed.script, &parsed, first, place);
    }

    /// Reads the commands of a line. `first` is the number of its first pipeline.
    fn script(&mut self, script: &Script, parsed: &ParsedLine, first: u32, place: Place) {
        let mut printed: Vec<Printed> = Vec::new();
        for command in &script.commands {
            let text = self.simple_command(command, parsed, first, place, &printed);
            let stage = stage_of(command, first);
            // Only the stages of the current pipeline are needed.
            printed.retain(|it| it.stage.0 == stage.0);
            printed.push(Printed { stage, text });
        }
    }

    /// Sets the variable of a loop to each of its words.
    fn loop_variable(&mut self, name: &str, words: &[RawWord], is_certain: bool) {
        let mut names = Vec::new();
        for word in words {
            names_in(word, &mut names);
        }
        let (choices, _) = self.variables.choices(&names);
        for choice in &choices {
            for word in self.expand(words, choice, is_certain) {
                self.variables.add(name, vec![word]);
            }
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
        let stage = stage_of(command, first);
        let place = Place {
            is_certain: place.is_certain && command.is_certain,
            ..place
        };
        for word in command.all_words(&parsed.bodies) {
            self.nested(word, parsed, first, stage, place);
        }
        match &command.role {
            Role::Words => return None,
            Role::Loop(name) => {
                self.loop_variable(name, &command.words, place.is_certain);
                return Some(String::new());
            }
            Role::Command => {}
        }
        let is_set = |word: &&RawWord| word.assignment().is_some();
        let count = command.words.iter().take_while(is_set).count();
        let (assignments, words) = command.words.split_at_checked(count)?;
        let assignments = self.assign(assignments);
        if let Some(setter) = words.first().and_then(RawWord::plain)
            && launch::sets_variables(setter)
        {
            self.assign_arrays(words);
        }
        let redirections = self.redirections(command, parsed);
        let input = self.input_of(stage, printed, &redirections, place);
        let around = Around {
            place,
            assignments,
            redirections,
            input,
            stage,
        };
        if words.is_empty() {
            self.variable_commands(&around);
            if !around.redirections.is_empty() {
                self.push(Vec::new(), &around);
            }
            return Some(String::new());
        }
        self.with_choices(words, &around)
    }

    /// Reads a command with each combination of the values of its variables. Returns what it prints, if that is known.
    fn with_choices(&mut self, words: &[RawWord], around: &Around) -> Option<String> {
        let is_certain = around.place.is_certain;
        let mut names = Vec::new();
        for word in words {
            names_in(word, &mut names);
        }
        let (choices, has_all) = self.variables.choices(&names);
        if !has_all
            && let Some(program) = words.first()
            && program
                .parts
                .iter()
                .any(|part| matches!(part, Part::Variable(_)))
        {
            // One of the values that were left out may be any program.
            self.reading
                .hidden
                .push(self.value(&program.parts).as_str().to_owned());
        }
        let sources = self.sources(words);
        let mut printed = Vec::new();
        for choice in &choices {
            let words = self.expand(words, choice, is_certain);
            if let Some(source) = &sources
                && let Some(program) = words.first()
                && launch::runs_file(program_name(program.as_str()))
            {
                let place = Place {
                    depth: around.place.depth + 1,
                    ..around.place
                };
                self.line(source, place);
            }
            printed.push(self.command(words, around));
        }
        // Some shells do not expand braces.
        if words.iter().any(has_braces) {
            let choice = Choice::default();
            let expander = Expander {
                expands_braces: false,
                ..self.expander(&choice)
            };
            let words = expander.words(words);
            let mut around = around.clone();
            around.place.is_certain = false;
            self.command(words, &around);
        }
        let printed: Option<Vec<String>> = printed.into_iter().collect();
        Some(printed?.join("\n"))
    }

    /// Returns what the commands in `<(…)` print, if a word has them and that is known.
    fn sources(&self, words: &[RawWord]) -> Option<String> {
        let parts = words.iter().flat_map(|word| &word.parts);
        let mut sources = parts.filter_map(|part| match part {
            Part::Output {
                script,
                kind: OutputKind::Source,
                ..
            } => Some(script),
            Part::Plain(_)
            | Part::Quoted(_)
            | Part::Variable(_)
            | Part::Output { .. }
            | Part::Array(_)
            | Part::Unknown(_) => None,
        });
        let choice = Choice::default();
        sources.find_map(|script| self.expander(&choice).printed(script))
    }

    fn expander<'a>(&'a self, choice: &'a Choice) -> Expander<'a> {
        Expander {
            variables: &self.variables,
            choice,
            expands_braces: true,
            is_complete: Cell::new(true),
            depth: 0,
        }
    }

    /// Reads the commands in the substitutions of a word.
    fn nested(
        &mut self,
        word: &RawWord,
        parsed: &ParsedLine,
        first: u32,
        stage: Stage,
        place: Place,
    ) {
        for part in &word.parts {
            match part {
                Part::Output { script, kind, .. } => {
                    // What `<(…)` prints comes before the command, and what `>(…)` reads comes after it.
                    let (pipeline, at) = stage;
                    let scope = match kind {
                        OutputKind::Text => place.scope,
                        OutputKind::Source => {
                            let input = self.inherited(place);
                            Some(self.scope((pipeline, at.saturating_sub(1)), input, place))
                        }
                        OutputKind::Sink => {
                            Some(self.scope((pipeline, at + 1), Input::Unknown, place))
                        }
                    };
                    self.script(script, parsed, first, Place { scope, ..place });
                }
                Part::Array(values) => {
                    for value in values {
                        self.nested(value, parsed, first, stage, place);
                    }
                }
                Part::Variable(variable) => match &variable.operation {
                    Operation::Alternative(operator, word) => {
                        self.nested(word, parsed, first, stage, place);
                        if *operator == '=' {
                            let value = self.value(&word.parts);
                            self.variables.add(&variable.name, vec![value]);
                        }
                    }
                    Operation::Other(word) => self.nested(word, parsed, first, stage, place),
                    Operation::Value | Operation::Element(_) => {}
                },
                Part::Plain(_) | Part::Quoted(_) | Part::Unknown(_) => {}
            }
        }
    }

    fn expand(&mut self, raw: &[RawWord], choice: &Choice, is_certain: bool) -> Vec<Word> {
        let expander = self.expander(choice);
        let words = expander.words(raw);
        let is_complete = expander.is_complete.get();
        let bytes = size(&words);
        let is_affordable = bytes <= self.room;
        self.room = self.room.saturating_sub(bytes);
        self.reading.is_complete &= is_affordable && (is_complete || !is_certain);
        if is_affordable { words } else { Vec::new() }
    }

    fn value(&self, parts: &[Part]) -> Word {
        let choice = Choice::default();
        self.expander(&choice).value(parts)
    }

    /// Returns every value that a word may have where a shell does not split it.
    fn values(&mut self, word: &RawWord) -> Vec<Word> {
        let mut names = Vec::new();
        names_in(word, &mut names);
        let (choices, _) = self.variables.choices(&names);
        let mut values = Vec::new();
        for choice in &choices {
            let expander = self.expander(choice);
            let value = expander.value(&word.parts);
            let is_complete = expander.is_complete.get();
            self.reading.is_complete &= is_complete;
            values.push(value);
        }
        values
    }

    /// Sets variables, and returns their texts.
    fn assign(&mut self, words: &[RawWord]) -> Vec<String> {
        let mut texts = Vec::new();
        for word in words {
            let Some((name, value)) = word.assignment() else {
                continue;
            };
            let values = if let [Part::Array(elements)] = value.parts.as_slice() {
                vec![self.expand(elements, &Choice::default(), false)]
            } else {
                let values = self.values(&value).into_iter();
                values.map(|value| vec![value]).collect()
            };
            let is_more = name.ends_with('+');
            let (name, is_element) = match name.trim_end_matches('+').split_once('[') {
                Some((name, _)) => (name, true),
                None => (name.trim_end_matches('+'), false),
            };
            for value in values {
                texts.push(format!("{name}={}", joined(&value)));
                if is_more || is_element {
                    self.variables.append(name, &value);
                }
                if !is_more {
                    self.variables.add(name, value);
                }
            }
        }
        texts
    }

    /// Sets the arrays in the arguments of a command such as `declare`.
    fn assign_arrays(&mut self, words: &[RawWord]) {
        let is_array = |word: &&RawWord| {
            let value = word.assignment().map(|(_, value)| value);
            value.is_some_and(|value| matches!(value.parts.as_slice(), [Part::Array(_)]))
        };
        let arrays: Vec<RawWord> = words.iter().filter(is_array).cloned().collect();
        self.assign(&arrays);
    }

    fn redirections(&mut self, command: &SimpleCommand, parsed: &ParsedLine) -> Vec<Redirection> {
        let mut redirections = Vec::new();
        for raw in &command.redirections {
            let body = raw.body.and_then(|at| parsed.bodies.get(at));
            let body = body.map(|body| self.values(body));
            let targets = self.values(&raw.target);
            let source = self.sources(std::slice::from_ref(&raw.target));
            let body = body.or_else(|| source.map(|text| vec![Word::known(text)]));
            redirections.push(Redirection {
                descriptor: raw.descriptor.clone(),
                operator: raw.operator,
                target: lines(targets),
                body: body.map(lines),
            });
        }
        redirections
    }

    /// Returns what commands read if nothing else is known.
    fn inherited(&self, place: Place) -> Input {
        let scope = place.scope.and_then(|at| self.scopes.get(at));
        scope.map_or_else(|| self.input.clone(), |scope| scope.input.clone())
    }

    /// Returns what a command reads: its own redirection, what the stage before it prints, or what is around it.
    fn input_of(
        &self,
        stage: Stage,
        printed: &[Printed],
        redirections: &[Redirection],
        place: Place,
    ) -> Input {
        match input(stage, printed, redirections) {
            Input::Inherited => self.inherited(place),
            own @ (Input::Text(_) | Input::Unknown) => own,
        }
    }

    /// Adds a command to the reading, and returns its place.
    fn push(&mut self, words: Vec<Word>, around: &Around) -> usize {
        let Around {
            place,
            assignments,
            redirections,
            input,
            stage,
        } = around.clone();
        let mut stages = vec![stage];
        let mut scope = place.scope;
        while let Some(outer) = scope.and_then(|at| self.scopes.get(at)) {
            stages.push(outer.stage);
            scope = outer.outer;
        }
        self.reading.commands.push(LineCommand {
            words,
            assignments,
            redirections,
            input,
            stages,
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
        if self.was_seen(&words, around) || !self.is_affordable(size(&words), depth) {
            return None;
        }
        let program = words.first()?;
        if depth > 0 {
            self.reading.launched.push(program.as_str().to_owned());
        }
        self.variable_commands(around);
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
        let reads_line = launch::reads_input(&name, &words);
        if words.len() == 1 && name == "exec" {
            self.input = around.input.clone();
        }
        let arguments = words.get(1..).unwrap_or_default().to_vec();
        let run_by = Some(self.push(words, around));
        let place = Place {
            depth: depth + 1,
            is_certain,
            run_by,
            scope: Some(self.scope(around.stage, around.input.clone(), around.place)),
        };
        for alias in self.variables.texts(&format!("{ALIAS}{name}")) {
            let line = format!("{alias} {}", joined(&arguments));
            self.line(
                &line,
                Place {
                    is_certain: false,
                    ..place
                },
            );
        }
        // Its stage is the stage of this command.
        let inner = Around {
            place: Place {
                scope: around.place.scope,
                ..place
            },
            assignments: Vec::new(),
            redirections: Vec::new(),
            ..around.clone()
        };
        let fed = launch::is_fed(&name).then_some(arguments);
        let mut printed = None;
        for launch in found.found {
            let of_launch = self.launch(launch, fed.as_deref(), &inner, place.scope);
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

    /// Reads a command or line that another command runs. `fed` has the arguments of the other command if it adds what it
    /// reads. A line gets `scope`.
    fn launch(
        &mut self,
        launch: Launch,
        fed: Option<&[Word]>,
        around: &Around,
        scope: Option<usize>,
    ) -> Option<String> {
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
                if let Some(arguments) = fed
                    && let Input::Text(text) = &around.input
                {
                    for words in launch::with_input(&words, arguments, text) {
                        self.command(words, &around);
                    }
                }
                self.command(words, &around).filter(|_| is_certain)
            }
            Launch::Line {
                line,
                is_certain,
                parameters,
            } => {
                let place = Place {
                    scope,
                    ..placed(is_certain)
                };
                if parameters.is_empty() {
                    self.line(&line, place);
                } else {
                    let before = self.variables.replace_parameters(&parameters);
                    self.line(&line, place);
                    self.variables.restore(before);
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
        let key = (words.to_vec(), around.stage, has_text);
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
    fn variable_commands(&mut self, around: &Around) {
        for assignment in &around.assignments {
            let Some((name, value)) = assignment.split_once('=') else {
                continue;
            };
            let place = Place {
                depth: around.place.depth + 1,
                is_certain: false,
                ..around.place
            };
            for launch in launch::variable_commands(name, value) {
                match launch {
                    Launch::Line { line, .. } => self.line(&line, place),
                    Launch::Words { words, .. } => {
                        let around = Around {
                            place,
                            assignments: Vec::new(),
                            redirections: Vec::new(),
                            input: Input::Inherited,
                            stage: around.stage,
                        };
                        self.command(words, &around);
                    }
                    Launch::Unseen => {}
                }
            }
        }
    }

    /// Follows `set`, whose words after its options become the parameters.
    fn set_parameters(&mut self, arguments: &[Word]) {
        let is_option = |word: &&Word| {
            let word = word.as_str();
            word.starts_with(['-', '+']) && word != "--"
        };
        let options = arguments.iter().take_while(is_option).count();
        let values = arguments.get(options..).unwrap_or_default();
        let values = match values.split_first() {
            Some((first, rest)) if first.as_str() == "--" => rest,
            _ => values,
        };
        self.variables.add(PARAMETERS, values.to_vec());
    }

    /// Follows a command such as `export` or `declare`.
    fn declare(&mut self, arguments: &[Word]) {
        let is_reference = arguments.iter().any(|word| word.as_str() == "-n");
        for word in arguments.iter().filter(|word| is_assignment(word.as_str())) {
            if let Some((name, value)) = word.as_str().split_once('=')
                && value != "(…)"
            {
                let value = word.from(name.len() + 1);
                self.variables.add(name.trim_end_matches('+'), vec![value]);
                if is_reference {
                    self.variables.open(name);
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
                for name in ["REPLY", "MAPFILE", "OPTARG"] {
                    self.variables.open(name);
                }
            }
            "shift" => {
                let count = arguments.first().map_or("1", Word::as_str);
                self.variables.shift(count.parse().unwrap_or(1));
            }
            "trap" => self.repeats = true,
            "alias" => {
                for word in arguments {
                    if let Some((name, _)) = word.as_str().split_once('=') {
                        let value = word.from(name.len() + 1);
                        self.variables.add(&format!("{ALIAS}{name}"), vec![value]);
                    }
                }
            }
            "set" => self.set_parameters(arguments),
            name if launch::sets_variables(name) => self.declare(arguments),
            name if self.functions.iter().any(|function| function == name) => {
                self.variables.add(PARAMETERS, arguments.to_vec());
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

/// Returns what a command reads by its own redirections, or from the stage before it.
fn input((pipeline, stage): Stage, printed: &[Printed], redirections: &[Redirection]) -> Input {
    let is_standard = |it: &&Redirection| it.descriptor.as_deref().is_none_or(|it| it == "0");
    let mut own = redirections.iter().rev().filter(is_standard);
    let own = own.find_map(
        |redirection| match (redirection.operator, &redirection.body) {
            (_, Some(body)) => Some(Input::Text(body.as_str().to_owned())),
            ("<<<", None) => Some(Input::Text(redirection.target.as_str().to_owned())),
            ("<" | "<&" | "<>", None) => Some(Input::Unknown),
            _ => None,
        },
    );
    if let Some(own) = own {
        return own;
    }
    if stage < FIRST_STAGE + STAGE_STEP {
        return Input::Inherited;
    }
    let before = stage - STAGE_STEP;
    let mut text = String::new();
    for it in printed.iter().filter(|it| it.stage == (pipeline, before)) {
        match &it.text {
            Some(printed) => {
                text.push_str(printed);
                text.push('\n');
            }
            None => return Input::Unknown,
        }
    }
    Input::Text(text)
}

/// The first place in a pipeline, and the distance to the next one. Between them is room for what a command in `<(…)`
/// prints, and for what one in `>(…)` reads.
const FIRST_STAGE: u32 = 1;
const STAGE_STEP: u32 = 2;

fn stage_of(command: &SimpleCommand, first: u32) -> Stage {
    let stage = command
        .stage
        .saturating_mul(STAGE_STEP)
        .saturating_add(FIRST_STAGE);
    (first + command.pipeline, stage)
}

/// The prefix of the names under which aliases are kept.
const ALIAS: &str = "alias ";

/// Returns the possible texts of a word, each on a line.
fn lines(values: Vec<Word>) -> Word {
    let mut values = values.into_iter();
    let mut text = values.next().unwrap_or_default();
    for value in values {
        text.push_str("\n");
        text.push_word(&value);
    }
    text
}

/// Returns what a command that copies its input prints.
fn passed_on(words: &[Word], input: &Input) -> Option<String> {
    let program = program_name(words.first()?.as_str());
    let is_copy = ["cat", "head", "tail", "sort", "uniq", "grep", "tee"].contains(&program);
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
