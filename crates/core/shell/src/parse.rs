//! Parses a command line as a shell does, without running anything.
//!
//! It follows the grammar of POSIX and Bash. It never fails: in a line that a shell would refuse, it still finds the
//! commands. Keywords are skipped where a command may start, so that the commands between them are found whatever their
//! order is.

use crate::script::{ParsedLine, Part, RawRedirection, RawWord, Role, Script, SimpleCommand};

/// How deep substitutions may be nested.
pub(super) const MAX_NESTING: u32 = 16;

/// Keywords after which a command may start.
const KEYWORDS: [&str; 10] = [
    "!", "then", "do", "else", "elif", "if", "while", "until", "{", "}",
];

/// Keywords that end a compound command.
const CLOSERS: [&str; 4] = ["fi", "done", "esac", "}"];

/// Operators of redirections, longer ones first.
const REDIRECTIONS: [&str; 12] = [
    "&>>", "<<<", "<<-", "&>", ">>", "<<", "<&", "<>", ">&", ">|", "<", ">",
];

/// Parses a line.
pub(crate) fn parse(line: &str) -> ParsedLine {
    let mut parser = Parser {
        text: line,
        at: 0,
        base: Some(0),
        depth: 0,
        pipelines: 0,
        bodies: Vec::new(),
        pending: Vec::new(),
        functions: Vec::new(),
        repeats: false,
        no_pattern_before: 0,
        no_arithmetic: Vec::new(),
        is_complete: true,
    };
    let script = parser.script(false);
    ParsedLine {
        script,
        bodies: parser.bodies,
        pipelines: parser.pipelines,
        functions: parser.functions,
        repeats: parser.repeats,
        is_complete: parser.is_complete,
    }
}

pub(super) struct Parser<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
    /// Where the text starts in the line, if it is a part of the line.
    pub(super) base: Option<usize>,
    pub(super) depth: u32,
    pub(super) pipelines: u32,
    pub(super) bodies: Vec<RawWord>,
    /// The here-documents whose bodies start with the next line.
    pub(super) pending: Vec<HereDocument>,
    functions: Vec<String>,
    repeats: bool,
    /// No pattern of a case starts before this position, because that was tried.
    no_pattern_before: usize,
    /// Where no arithmetic starts, because that was tried.
    pub(super) no_arithmetic: Vec<usize>,
    pub(super) is_complete: bool,
}

/// A here-document whose body comes later.
pub(super) struct HereDocument {
    /// `None` if shells disagree about it.
    delimiter: Option<String>,
    /// Whether commands in the body run.
    is_expanded: bool,
    /// Whether tabs before its lines are ignored.
    is_indented: bool,
    body: usize,
}

/// Where a here-document ends.
struct DocumentLengths {
    /// The length of its text.
    text: usize,
    /// The length of its text and its delimiter.
    whole: usize,
    /// Whether all shells agree.
    is_clear: bool,
}

impl HereDocument {
    /// Looks for the delimiter in the lines after the command.
    fn lengths(&self, delimiter: &str, rest: &str, is_in_substitution: bool) -> DocumentLengths {
        let mut end = 0;
        let mut whole = rest.len();
        // The lines before, each of which a backslash joins with the next one.
        let mut joined = String::new();
        let mut is_clear = true;
        for line in rest.split_inclusive('\n') {
            let mut text = line.strip_suffix('\n').unwrap_or(line);
            if self.is_indented {
                text = text.trim_start_matches('\t');
            }
            if text == delimiter && joined.is_empty() {
                whole = end + line.len();
                break;
            }
            let kept = text.trim_end_matches('\\');
            if self.is_expanded && (text.len() - kept.len()) % 2 == 1 {
                joined.push_str(text.get(..text.len() - 1).unwrap_or_default());
                // Some shells take joined lines for the delimiter.
                is_clear &= !delimiter.starts_with(joined.as_str());
                joined.push('\n');
                end += line.len();
                continue;
            }
            joined.clear();
            // In a substitution, its parenthesis may come directly after the delimiter.
            let after = text.strip_prefix(delimiter);
            if is_in_substitution && after.is_some_and(|after| after.starts_with(')')) {
                whole = end + line.len() - line.trim_start_matches('\t').len();
                whole += delimiter.len();
                break;
            }
            end += line.len();
        }
        DocumentLengths {
            text: end.min(whole),
            whole,
            is_clear,
        }
    }
}

/// A compound command that is open.
#[derive(Clone, Copy)]
struct Frame {
    kind: FrameKind,
    /// How many commands came before it, and its place in its pipeline.
    start: usize,
    pipeline: u32,
    stage: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FrameKind {
    Parenthesis,
    /// `((`, which is arithmetic in some shells and two groups in others.
    DoubleParenthesis,
    Case,
    /// A group in braces, a loop or a condition.
    Block,
}

/// The commands of a script that is being read.
struct Commands {
    found: Vec<SimpleCommand>,
    current: SimpleCommand,
    frames: Vec<Frame>,
    /// The compound command that ended last, if nothing but redirections came after it.
    closed: Option<Frame>,
    /// Whether a test in `[[ ]]` is open, and how many parentheses are open in it.
    is_test: bool,
    test_depth: u32,
    /// Whether a pipe is waiting for its next command, which may be on another line.
    is_piped: bool,
}

impl Commands {
    fn new(pipeline: u32) -> Self {
        Self {
            found: Vec::new(),
            current: command(pipeline, 0, true),
            frames: Vec::new(),
            closed: None,
            is_test: false,
            test_depth: 0,
            is_piped: false,
        }
    }

    fn is_start(&self) -> bool {
        self.current.words.is_empty() && !self.is_test
    }

    /// Ends the current command. The next one has this place in a pipeline.
    fn end(&mut self, pipeline: u32, stage: u32) {
        self.is_piped = false;
        if let Some(frame) = self.closed.take()
            && self.current.words.is_empty()
        {
            // Redirections after a compound command apply to each of its commands.
            let redirections = std::mem::take(&mut self.current.redirections);
            for command in self.found.get_mut(frame.start..).unwrap_or_default() {
                command
                    .redirections
                    .splice(0..0, redirections.iter().cloned());
            }
        }
        let is_empty = self.current.words.is_empty() && self.current.redirections.is_empty();
        if is_empty {
            self.current.pipeline = pipeline;
            self.current.stage = stage;
        } else {
            let is_certain = self.is_next_certain();
            let next = command(pipeline, stage, is_certain);
            self.found.push(std::mem::replace(&mut self.current, next));
        }
    }

    fn is_next_certain(&self) -> bool {
        let is_arithmetic = |frame: &Frame| frame.kind == FrameKind::DoubleParenthesis;
        !self.is_test && !self.frames.iter().any(is_arithmetic)
    }

    fn open(&mut self, kind: FrameKind) {
        self.frames.push(Frame {
            kind,
            start: self.found.len(),
            pipeline: self.current.pipeline,
            stage: self.current.stage,
        });
        self.current.is_certain = self.is_next_certain();
    }

    /// Closes the innermost compound command of one of these kinds. What follows has the place of the whole command.
    /// Returns `false` if none is open.
    fn close(&mut self, kinds: &[FrameKind]) -> bool {
        let is_one = |frame: &Frame| kinds.contains(&frame.kind);
        let Some(place) = self.frames.iter().rposition(is_one) else {
            return false;
        };
        self.closed = self.frames.drain(place..).next();
        if let Some(frame) = self.closed {
            self.current.pipeline = frame.pipeline;
            self.current.stage = frame.stage;
        }
        self.current.is_certain = self.is_next_certain();
        true
    }

    /// Ends the current command at a pipe. All commands of a compound command feed the next one.
    fn pipe(&mut self) {
        let (pipeline, stage) = (self.current.pipeline, self.current.stage);
        if let Some(frame) = self.closed.filter(|_| self.current.words.is_empty()) {
            for command in self.found.get_mut(frame.start..).unwrap_or_default() {
                command.pipeline = pipeline;
                command.stage = stage;
            }
        }
        self.end(pipeline, stage.saturating_add(1));
        self.is_piped = true;
    }

    fn is_case(&self) -> bool {
        self.frames
            .last()
            .is_some_and(|frame| frame.kind == FrameKind::Case)
    }
}

const fn command(pipeline: u32, stage: u32, is_certain: bool) -> SimpleCommand {
    SimpleCommand {
        role: Role::Command,
        words: Vec::new(),
        redirections: Vec::new(),
        pipeline,
        stage,
        is_certain,
    }
}

/// What a parser of a part of a line found.
pub(super) struct Outcome {
    pipelines: u32,
    bodies: Vec<RawWord>,
    functions: Vec<String>,
    repeats: bool,
    is_complete: bool,
}

impl Parser<'_> {
    /// Returns a parser for text that is a part of this one's, at a position in the line if it is unchanged.
    pub(super) fn inner<'b>(&mut self, text: &'b str, base: Option<usize>) -> Parser<'b> {
        Parser {
            text,
            at: 0,
            base,
            depth: self.depth + 1,
            pipelines: self.pipelines,
            bodies: std::mem::take(&mut self.bodies),
            pending: Vec::new(),
            functions: Vec::new(),
            repeats: false,
            no_pattern_before: 0,
            no_arithmetic: Vec::new(),
            is_complete: self.is_complete,
        }
    }

    pub(super) fn outcome(self) -> Outcome {
        Outcome {
            pipelines: self.pipelines,
            bodies: self.bodies,
            functions: self.functions,
            repeats: self.repeats,
            is_complete: self.is_complete,
        }
    }

    /// Continues after a part of the text was parsed.
    pub(super) fn take(&mut self, inner: Outcome) {
        self.pipelines = inner.pipelines;
        self.bodies = inner.bodies;
        self.functions.extend(inner.functions);
        self.repeats |= inner.repeats;
        self.is_complete = inner.is_complete;
    }

    pub(super) fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    pub(super) fn peek_at(&self, offset: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + offset).copied()
    }

    pub(super) fn eat(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        if found {
            self.at += text.len();
        }
        found
    }

    const fn new_pipeline(&mut self) -> u32 {
        self.pipelines += 1;
        self.pipelines
    }

    /// Ends the current command at the end of its pipeline.
    fn end(&mut self, commands: &mut Commands) {
        // What feeds a group feeds each of its commands.
        let fed = commands.frames.iter().rev().find(|frame| frame.stage > 0);
        let (pipeline, stage) = match fed {
            Some(frame) => (frame.pipeline, frame.stage),
            None => (self.new_pipeline(), 0),
        };
        commands.end(pipeline, stage);
    }

    /// Skips white space within a line, also a line that continues.
    fn spaces(&mut self) {
        loop {
            match self.peek() {
                Some(b' ' | b'\t') => self.at += 1,
                Some(b'\r') if matches!(self.peek_at(1), None | Some(b'\n')) => self.at += 1,
                Some(b'\\') if self.rest().starts_with("\\\n") => self.at += 2,
                _ => return,
            }
        }
    }

    /// Skips white space, ends of lines and comments.
    pub(super) fn lines(&mut self) {
        loop {
            self.spaces();
            match self.peek() {
                Some(b'\n') => {
                    self.at += 1;
                    self.here_documents();
                }
                Some(b'#') => self.comment(),
                _ => return,
            }
        }
    }

    fn comment(&mut self) {
        let rest = self.rest();
        self.at += rest.find('\n').unwrap_or(rest.len());
    }

    /// Reads commands up to the end of the text, or up to the parenthesis that closes them.
    pub(super) fn script(&mut self, is_nested: bool) -> Script {
        let first = self.new_pipeline();
        let mut commands = Commands::new(first);
        loop {
            self.spaces();
            let Some(next) = self.peek() else { break };
            match next {
                b'\n' => {
                    if !commands.is_piped {
                        self.end(&mut commands);
                    }
                    self.at += 1;
                    self.here_documents();
                }
                b'#' => self.comment(),
                b'|' if commands.is_test && commands.test_depth > 0 => self.at += 1,
                b';' => self.semicolon(&mut commands),
                b'&' if self.peek_at(1) != Some(b'>') => {
                    self.end(&mut commands);
                    self.at += 1;
                    self.eat("&");
                }
                b'|' => self.bar(&mut commands),
                b'(' => self.parenthesis(&mut commands),
                b')' if commands.is_test && commands.test_depth > 0 => {
                    commands.test_depth -= 1;
                    self.at += 1;
                }
                b')' => {
                    self.end(&mut commands);
                    let kinds = [FrameKind::Parenthesis, FrameKind::DoubleParenthesis];
                    if !commands.close(&kinds) && is_nested {
                        break;
                    }
                    self.at += 1;
                }
                b'<' | b'>' if commands.is_test => self.at += 1,
                _ => self.word_or_redirection(&mut commands),
            }
        }
        commands.end(0, 0);
        Script {
            commands: commands.found,
        }
    }

    /// Reads an opening parenthesis: a group, arithmetic or a function.
    fn parenthesis(&mut self, commands: &mut Commands) {
        self.at += 1;
        if commands.is_test {
            commands.test_depth += 1;
            return;
        }
        if commands.is_start() {
            if self.peek() == Some(b'(') {
                commands.open(FrameKind::DoubleParenthesis);
            } else {
                commands.open(FrameKind::Parenthesis);
            }
            return;
        }
        let start = self.at;
        self.spaces();
        if commands.current.words.len() == 1 && self.eat(")") {
            // `NAME() COMMAND` defines a function. Its command counts, because something may call it.
            let name = commands.current.words.pop();
            let name = name.as_ref().and_then(RawWord::plain);
            self.functions.extend(name.map(str::to_owned));
            self.repeats = true;
            return;
        }
        self.at = start;
        self.end(commands);
        commands.open(FrameKind::Parenthesis);
    }

    fn word_or_redirection(&mut self, commands: &mut Commands) {
        let is_file = matches!(self.peek(), Some(b'<' | b'>')) && self.peek_at(1) == Some(b'(');
        if !is_file && let Some(operator) = self.operator() {
            self.redirection(None, operator, commands);
            return;
        }
        let start = self.at;
        let word = self.word();
        if self.at == start {
            // A character that starts nothing.
            let length = self.rest().chars().next().map_or(1, char::len_utf8);
            self.at += length;
            return;
        }
        // The number or `{variable}` before a redirection is not a word.
        if matches!(self.peek(), Some(b'<' | b'>'))
            && self.peek_at(1) != Some(b'(')
            && !commands.is_test
            && word.plain().is_some_and(is_descriptor)
            && let Some(operator) = self.operator()
        {
            let descriptor = word.plain().map(str::to_owned);
            self.redirection(descriptor, operator, commands);
            return;
        }
        commands.is_piped = false;
        if commands.is_test {
            commands.is_test = word.plain() != Some("]]");
            commands.test_depth *= u32::from(commands.is_test);
            commands.current.words.push(word);
            return;
        }
        if commands.current.words.is_empty()
            && let Some(keyword) = word.plain()
            && self.keyword(keyword, commands)
        {
            return;
        }
        commands.current.words.push(word);
    }

    /// Reads `;`, or `;;`, `;&` and `;;&` after a branch of a `case`.
    fn semicolon(&mut self, commands: &mut Commands) {
        self.end(commands);
        self.at += 1;
        let is_end = self.eat(";") | self.eat("&");
        if is_end {
            self.eat("&");
        }
        if is_end && commands.is_case() {
            self.case_patterns(commands);
        }
    }

    /// Reads `||`, `|` or `|&`.
    fn bar(&mut self, commands: &mut Commands) {
        self.at += 1;
        if self.eat("|") {
            self.end(commands);
        } else {
            self.eat("&");
            commands.pipe();
        }
    }

    /// Reads what a keyword of the shell starts or ends. Returns `false` if the word is not a keyword here.
    fn keyword(&mut self, word: &str, commands: &mut Commands) -> bool {
        match word {
            "[[" => {
                commands.is_test = true;
                return false;
            }
            "for" | "select" => self.for_loop(commands),
            "case" => self.case(commands),
            "function" => self.function(),
            "time" | "coproc" => return self.is_before_compound(word == "coproc"),
            _ if CLOSERS.contains(&word) => {
                let kind = if word == "esac" {
                    FrameKind::Case
                } else {
                    FrameKind::Block
                };
                self.end(commands);
                commands.close(&[kind]);
            }
            "while" | "until" => {
                self.repeats = true;
                commands.open(FrameKind::Block);
            }
            "if" | "{" => commands.open(FrameKind::Block),
            _ => return KEYWORDS.contains(&word),
        }
        true
    }

    /// Reads a loop up to its `do`.
    fn for_loop(&mut self, commands: &mut Commands) {
        self.repeats = true;
        commands.open(FrameKind::Block);
        self.spaces();
        if self.rest().starts_with("((") {
            return;
        }
        let name = self.word();
        let start = self.at;
        self.lines();
        if self.word().plain() != Some("in") {
            self.at = start;
            return;
        }
        let mut words = Vec::new();
        loop {
            self.spaces();
            let before = self.at;
            let word = self.word();
            if self.at == before {
                break;
            }
            words.push(word);
        }
        commands.current.role = Role::Loop(name.plain().unwrap_or_default().to_owned());
        commands.current.words = words;
        self.end(commands);
        commands.current.role = Role::Command;
    }

    /// Reads the beginning of `case`.
    fn case(&mut self, commands: &mut Commands) {
        commands.open(FrameKind::Case);
        self.spaces();
        let subject = self.word();
        commands.current.role = Role::Words;
        commands.current.words.push(subject);
        self.end(commands);
        commands.current.role = Role::Command;
        self.lines();
        let start = self.at;
        if self.word().plain() == Some("in") {
            self.case_patterns(commands);
        } else {
            self.at = start;
        }
    }

    /// Reads the patterns before the commands of a case.
    fn case_patterns(&mut self, commands: &mut Commands) {
        self.lines();
        let start = self.at;
        if self.word().plain() == Some("esac") {
            self.at = start;
            return;
        }
        self.at = start;
        if start < self.no_pattern_before {
            return;
        }
        self.eat("(");
        let mut patterns = Vec::new();
        loop {
            self.spaces();
            match self.peek() {
                Some(b')') => {
                    self.at += 1;
                    break;
                }
                Some(b'|') => self.at += 1,
                Some(b'\n' | b';' | b'&') | None => {
                    // This is not a pattern, so its words may be a command.
                    self.no_pattern_before = self.at;
                    self.at = start;
                    return;
                }
                Some(_) => {
                    let before = self.at;
                    patterns.push(self.word());
                    if self.at == before {
                        self.at += 1;
                    }
                }
            }
        }
        commands.current.role = Role::Words;
        commands.current.words = patterns;
        self.end(commands);
        commands.current.role = Role::Command;
    }

    fn operator(&self) -> Option<&'static str> {
        if !matches!(self.peek(), Some(b'<' | b'>' | b'&')) {
            return None;
        }
        let rest = self.rest();
        REDIRECTIONS
            .into_iter()
            .find(|operator| rest.starts_with(operator))
    }

    fn redirection(
        &mut self,
        descriptor: Option<String>,
        operator: &'static str,
        commands: &mut Commands,
    ) {
        self.at += operator.len();
        self.spaces();
        let start = self.at;
        let target = self.word();
        let is_here = operator == "<<" || operator == "<<-";
        let body = is_here.then(|| {
            let is_quoted = |part: &Part| matches!(part, Part::Quoted(_));
            let body = self.bodies.len();
            let written = self.text.get(start..self.at).unwrap_or_default();
            let texts = target.parts.iter().map(|part| match part {
                Part::Plain(text) | Part::Quoted(text) => Some(text.as_str()),
                Part::Variable(_) | Part::Output { .. } | Part::Array(_) | Part::Unknown(_) => None,
            });
            // Shells take the end of a line of Windows for a part of the delimiter.
            let carriage_return = (self.peek() == Some(b'\r')).then_some(Some("\r"));
            let delimiter: Option<String> = texts.chain(carriage_return).collect();
            self.bodies.push(RawWord::default());
            self.pending.push(HereDocument {
                delimiter: delimiter.filter(|it| !it.contains('\n') && !written.contains('$')),
                is_expanded: !target.parts.iter().any(is_quoted),
                is_indented: operator == "<<-",
                body,
            });
            body
        });
        commands.current.redirections.push(RawRedirection {
            descriptor,
            operator,
            target,
            body,
        });
    }

    /// Reads the head of a function after `function`.
    fn function(&mut self) {
        self.spaces();
        let name = self.word();
        self.functions.extend(name.plain().map(str::to_owned));
        self.repeats = true;
        self.spaces();
        if self.eat("(") {
            self.spaces();
            self.eat(")");
        }
    }

    /// Reads the options and the name between `time` or `coproc` and a compound command. Returns `false`, and reads
    /// nothing, if there is no compound command: before a program, these are read like programs that run another one.
    fn is_before_compound(&mut self, mut is_named: bool) -> bool {
        let start = self.at;
        loop {
            self.spaces();
            let before = self.at;
            let next = self.word();
            let next = next.plain().unwrap_or_default();
            let is_compound = self.peek() == Some(b'(') && next.is_empty()
                || KEYWORDS.contains(&next)
                || ["for", "case", "select", "[["].contains(&next);
            if is_compound {
                self.at = before;
                return true;
            }
            // `time` has options, and `coproc` may have a name.
            let is_skipped = ["-p", "--", "time"].contains(&next);
            let is_name = std::mem::take(&mut is_named) && self.at > before;
            if !is_skipped && !is_name {
                self.at = start;
                return false;
            }
        }
    }

    /// Reads the bodies of the here-documents of the line that just ended.
    fn here_documents(&mut self) {
        for document in std::mem::take(&mut self.pending) {
            let Some(delimiter) = &document.delimiter else {
                self.is_complete = false;
                continue;
            };
            let rest = self.rest();
            let lengths = document.lengths(delimiter, rest, self.depth > 0);
            let text = rest.get(..lengths.text).unwrap_or_default().to_owned();
            self.is_complete &= lengths.is_clear;
            let mut body = RawWord::default();
            if document.is_expanded {
                let mut inner = self.inner(&text, self.base.map(|base| base + self.at));
                inner.is_complete &= self.depth < MAX_NESTING;
                if inner.is_complete {
                    inner.quoted(&mut body, None);
                }
                let inner = inner.outcome();
                self.take(inner);
            } else {
                body.push_quoted(&text);
            }
            body.range = self
                .base
                .map(|base| base + self.at..base + self.at + text.len());
            if let Some(place) = self.bodies.get_mut(document.body) {
                *place = body;
            }
            self.at += lengths.whole;
        }
    }
}

/// Returns whether a word before a redirection names a descriptor: a number or `{variable}`.
fn is_descriptor(word: &str) -> bool {
    let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
    is_number || (word.starts_with('{') && word.ends_with('}') && word.len() > 2)
}
