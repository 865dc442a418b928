//! Parses a command line as a shell does, without running anything.
//!
//! It follows the grammar of POSIX and Bash. It never fails: in a line that a shell would refuse, it still finds the
//! commands. Keywords are skipped where a command may start, so that the commands between them are found whatever their
//! order is.

use crate::assignment::is_assignment;
use crate::script::{
    Operation, OutputKind, ParsedLine, Part, RawRedirection, RawWord, Role, Script, SimpleCommand,
    Variable,
};

/// How deep substitutions may be nested.
const MAX_NESTING: u32 = 16;

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
        is_complete: true,
    };
    let script = parser.script(false);
    ParsedLine {
        script,
        bodies: parser.bodies,
        pipelines: parser.pipelines,
        is_complete: parser.is_complete,
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    /// Where the text starts in the line, if it is a part of the line.
    base: Option<usize>,
    depth: u32,
    pipelines: u32,
    bodies: Vec<RawWord>,
    /// The here-documents whose bodies start with the next line.
    pending: Vec<HereDocument>,
    is_complete: bool,
}

/// A here-document whose body comes later.
struct HereDocument {
    delimiter: String,
    /// Whether commands in the body run.
    is_expanded: bool,
    /// Whether tabs before its lines are ignored.
    is_indented: bool,
    body: usize,
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
    /// Whether a test in `[[ ]]` is open.
    is_test: bool,
}

impl Commands {
    fn is_start(&self) -> bool {
        self.current.words.is_empty() && !self.is_test
    }

    /// Ends the current command. The next one has this place in a pipeline.
    fn end(&mut self, pipeline: u32, stage: u32) {
        self.closed = None;
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

impl Parser<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn peek_at(&self, offset: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + offset).copied()
    }

    fn eat(&mut self, text: &str) -> bool {
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
        match fed.copied() {
            Some(frame) => commands.end(frame.pipeline, frame.stage),
            None => {
                let pipeline = self.new_pipeline();
                commands.end(pipeline, 0);
            }
        }
    }

    /// Skips white space within a line, also a line that continues.
    fn blanks(&mut self) {
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
    fn lines(&mut self) {
        loop {
            self.blanks();
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
    fn script(&mut self, is_nested: bool) -> Script {
        let first = self.new_pipeline();
        let mut commands = Commands {
            found: Vec::new(),
            current: command(first, 0, true),
            frames: Vec::new(),
            closed: None,
            is_test: false,
        };
        loop {
            self.blanks();
            let Some(next) = self.peek() else { break };
            match next {
                b'\n' => {
                    self.end(&mut commands);
                    self.at += 1;
                    self.here_documents();
                }
                b'#' => self.comment(),
                b';' => {
                    self.end(&mut commands);
                    self.at += 1;
                    let is_end = self.eat(";") | self.eat("&");
                    if is_end {
                        self.eat("&");
                    }
                    if is_end && commands.is_case() {
                        self.case_patterns(&mut commands);
                    }
                }
                b'&' if self.peek_at(1) != Some(b'>') => {
                    self.end(&mut commands);
                    self.at += 1;
                    self.eat("&");
                }
                b'|' => {
                    self.at += 1;
                    if self.eat("|") {
                        self.end(&mut commands);
                    } else {
                        self.eat("&");
                        commands.pipe();
                    }
                }
                b'(' => self.parenthesis(&mut commands),
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
        self.blanks();
        if commands.current.words.len() == 1 && self.eat(")") {
            // `NAME() COMMAND` defines a function. Its command counts, because something may call it.
            commands.current.words.clear();
            return;
        }
        self.at = start;
        self.end(commands);
        commands.open(FrameKind::Parenthesis);
    }

    fn word_or_redirection(&mut self, commands: &mut Commands) {
        let is_file = matches!(self.peek(), Some(b'<' | b'>')) && self.peek_at(1) == Some(b'(');
        if !is_file && let Some(operator) = self.operator() {
            self.redirection(operator, commands);
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
        {
            return;
        }
        if commands.is_test {
            commands.is_test = word.plain() != Some("]]");
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

    /// Reads what a keyword of the shell starts or ends. Returns `false` if the word is not a keyword here.
    fn keyword(&mut self, word: &str, commands: &mut Commands) -> bool {
        match word {
            "[[" => {
                commands.is_test = true;
                return false;
            }
            "for" | "select" => self.for_loop(commands),
            "case" => self.case(commands),
            "function" => {
                self.blanks();
                self.word();
                self.blanks();
                if self.eat("(") {
                    self.blanks();
                    self.eat(")");
                }
            }
            "time" | "coproc" => {
                // Before a program, these are read like programs that run another one.
                let start = self.at;
                self.blanks();
                let is_compound = self.peek() == Some(b'(') || {
                    let next = self.word();
                    let next = next.plain().unwrap_or_default();
                    KEYWORDS.contains(&next) || ["for", "case", "select"].contains(&next)
                };
                self.at = start;
                return is_compound;
            }
            _ if CLOSERS.contains(&word) => {
                let kind = if word == "esac" {
                    FrameKind::Case
                } else {
                    FrameKind::Block
                };
                self.end(commands);
                commands.close(&[kind]);
            }
            "if" | "while" | "until" | "{" => commands.open(FrameKind::Block),
            _ => return KEYWORDS.contains(&word),
        }
        true
    }

    /// Reads a loop up to its `do`.
    fn for_loop(&mut self, commands: &mut Commands) {
        commands.open(FrameKind::Block);
        self.blanks();
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
            self.blanks();
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
        self.blanks();
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
        self.eat("(");
        let mut patterns = Vec::new();
        loop {
            self.blanks();
            match self.peek() {
                Some(b')') => {
                    self.at += 1;
                    break;
                }
                Some(b'|') => self.at += 1,
                Some(b'\n' | b';' | b'&') | None => {
                    // This is not a pattern, so its words may be a command.
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

    fn redirection(&mut self, operator: &'static str, commands: &mut Commands) {
        self.at += operator.len();
        self.blanks();
        let target = self.word();
        let is_here = operator == "<<" || operator == "<<-";
        let body = is_here.then(|| {
            let is_quoted = |part: &Part| matches!(part, Part::Quoted(_));
            let body = self.bodies.len();
            self.bodies.push(RawWord::default());
            self.pending.push(HereDocument {
                delimiter: as_written(&target),
                is_expanded: !target.parts.iter().any(is_quoted),
                is_indented: operator == "<<-",
                body,
            });
            body
        });
        commands.current.redirections.push(RawRedirection {
            operator,
            target,
            body,
        });
    }

    /// Reads the bodies of the here-documents of the line that just ended.
    fn here_documents(&mut self) {
        for document in std::mem::take(&mut self.pending) {
            let rest = self.rest();
            let mut end = 0;
            let mut length = rest.len();
            for line in rest.split_inclusive('\n') {
                let text = line.trim_end_matches(['\n', '\r']);
                let text = if document.is_indented {
                    text.trim_start_matches('\t')
                } else {
                    text
                };
                if text == document.delimiter {
                    length = end + line.len();
                    break;
                }
                end += line.len();
            }
            let text = rest.get(..end.min(length)).unwrap_or_default().to_owned();
            let mut body = RawWord::default();
            if document.is_expanded {
                let mut inner = Parser {
                    text: &text,
                    at: 0,
                    base: self.base.map(|base| base + self.at),
                    depth: self.depth + 1,
                    pipelines: self.pipelines,
                    bodies: std::mem::take(&mut self.bodies),
                    pending: Vec::new(),
                    is_complete: self.is_complete && self.depth < MAX_NESTING,
                };
                if inner.is_complete {
                    inner.quoted(&mut body, None);
                }
                self.bodies = inner.bodies;
                self.pipelines = inner.pipelines;
                self.is_complete = inner.is_complete;
            } else {
                body.push_quoted(&text);
            }
            body.range = self
                .base
                .map(|base| base + self.at..base + self.at + text.len());
            if let Some(place) = self.bodies.get_mut(document.body) {
                *place = body;
            }
            self.at += length;
        }
    }

    /// Reads a word. It is empty if none starts here.
    fn word(&mut self) -> RawWord {
        let mut word = RawWord::default();
        let start = self.at;
        self.word_until(&mut word, None);
        word.range = self.base.map(|base| base + start..base + self.at);
        word
    }

    /// Reads the parts of a word up to its end, or up to a closing brace.
    fn word_until(&mut self, word: &mut RawWord, end: Option<u8>) {
        while let Some(next) = self.peek() {
            if Some(next) == end {
                return;
            }
            match next {
                b' ' | b'\t' | b'\n' | b';' | b'|' | b'&' | b')' if end.is_none() => return,
                b'\r' if end.is_none() && matches!(self.peek_at(1), None | Some(b'\n')) => return,
                b'<' | b'>' if end.is_none() => {
                    if !word.parts.is_empty() || self.peek_at(1) != Some(b'(') {
                        return;
                    }
                    let kind = if next == b'<' {
                        OutputKind::Source
                    } else {
                        OutputKind::Sink
                    };
                    self.at += 2;
                    self.substitution(word, false, kind);
                }
                b'(' if end.is_none() => {
                    if !self.in_word_parenthesis(word) {
                        return;
                    }
                }
                b'\'' => {
                    self.at += 1;
                    let rest = self.rest();
                    let length = rest.find('\'').unwrap_or(rest.len());
                    word.push_quoted(rest.get(..length).unwrap_or_default());
                    self.at = (self.at + length + 1).min(self.text.len());
                }
                b'"' => {
                    self.at += 1;
                    word.push_quoted("");
                    self.quoted(word, Some(b'"'));
                }
                b'\\' => {
                    self.at += 1;
                    if let Some(escaped) = self.rest().chars().next() {
                        self.at += escaped.len_utf8();
                        if escaped != '\n' {
                            word.push_quoted(escaped.encode_utf8(&mut [0; 4]));
                        }
                    }
                }
                b'$' => self.dollar(word, false),
                b'`' => self.backticks(word, false),
                _ => {
                    let rest = self.rest();
                    let length = rest
                        .bytes()
                        .skip(1)
                        .position(|byte| is_special(byte) || Some(byte) == end)
                        .map_or(rest.len(), |length| length + 1);
                    // Bytes that are not ASCII are never special, so this is the end of a character.
                    word.push_plain(rest.get(..length).unwrap_or_default());
                    self.at += length;
                }
            }
        }
    }

    /// Reads a parenthesis within a word: the values of an array, a pattern or a file. Returns `false` if it ends the word.
    fn in_word_parenthesis(&mut self, word: &mut RawWord) -> bool {
        let Some(text) = word.plain() else {
            return false;
        };
        if text.ends_with('=') && is_assignment(text) {
            self.at += 1;
            let mut values = Vec::new();
            loop {
                self.lines();
                let before = self.at;
                let value = self.word();
                if self.at > before {
                    values.push(value);
                } else if self.eat(")") || self.peek().is_none() {
                    break;
                } else {
                    self.at += 1;
                }
            }
            word.parts.push(Part::Array(values));
            return true;
        }
        if text == "=" {
            self.at += 1;
            self.substitution(word, false, OutputKind::Source);
            return true;
        }
        // Patterns such as `@(a|b)`, and qualifiers such as `*(.)`.
        if text.ends_with(['?', '*', '+', '@', '!']) {
            let rest = self.rest();
            if let Some(length) = rest.find(')').filter(|length| {
                let inside = rest.get(..*length).unwrap_or_default();
                !inside.contains(['\n', ';', '&', '$', '`', ' '])
            }) {
                let pattern = rest.get(..=length).unwrap_or_default().to_owned();
                word.parts.push(Part::Unknown(pattern));
                self.at += length + 1;
                return true;
            }
        }
        false
    }

    /// Reads the text in double quotes up to `end`, or the body of a here-document.
    fn quoted(&mut self, word: &mut RawWord, end: Option<u8>) {
        while let Some(next) = self.peek() {
            if Some(next) == end {
                self.at += 1;
                return;
            }
            match next {
                b'\\' => {
                    self.at += 1;
                    match self.rest().chars().next() {
                        Some('\n') => self.at += 1,
                        Some(escaped @ ('$' | '`' | '\\')) => {
                            self.at += 1;
                            word.push_quoted(escaped.encode_utf8(&mut [0; 4]));
                        }
                        Some('"') if end.is_some() => {
                            self.at += 1;
                            word.push_quoted("\"");
                        }
                        _ => word.push_quoted("\\"),
                    }
                }
                b'$' => self.dollar(word, true),
                b'`' => self.backticks(word, true),
                _ => {
                    let rest = self.rest();
                    let length = rest
                        .bytes()
                        .position(|byte| matches!(byte, b'\\' | b'$' | b'`') || Some(byte) == end)
                        .unwrap_or(rest.len());
                    word.push_quoted(rest.get(..length).unwrap_or_default());
                    self.at += length;
                }
            }
        }
    }

    /// Reads what starts with a dollar sign.
    fn dollar(&mut self, word: &mut RawWord, is_quoted: bool) {
        let start = self.at;
        self.at += 1;
        match self.peek() {
            Some(b'"') if !is_quoted => {}
            Some(b'\'') if !is_quoted => {
                self.at += 1;
                self.ansi_quoted(word);
            }
            Some(b'(') if self.peek_at(1) == Some(b'(') && self.arithmetic(word) => {}
            Some(b'(') => {
                self.at += 1;
                self.substitution(word, is_quoted, OutputKind::Text);
            }
            Some(b'[') => {
                // `$[…]` is an old form of arithmetic.
                let rest = self.rest();
                let length = rest.find(']').map_or(rest.len(), |length| length + 1);
                word.parts.push(Part::Unknown("$[…]".to_owned()));
                self.at += length;
            }
            Some(b'{') => self.braced_variable(word, is_quoted, start),
            Some(next) if next.is_ascii_alphabetic() || next == b'_' => {
                let rest = self.rest();
                let length = name_length(rest);
                let name = rest.get(..length).unwrap_or_default().to_owned();
                self.at += length;
                self.push_variable(word, name, is_quoted, start);
            }
            Some(next @ (b'0'..=b'9' | b'@' | b'*' | b'#' | b'?' | b'$' | b'!' | b'-')) => {
                self.at += 1;
                self.push_variable(word, char::from(next).to_string(), is_quoted, start);
            }
            _ if is_quoted => word.push_quoted("$"),
            _ => word.push_plain("$"),
        }
    }

    fn push_variable(&mut self, word: &mut RawWord, name: String, is_quoted: bool, start: usize) {
        word.parts.push(Part::Variable(Variable {
            written: self.text.get(start..self.at).unwrap_or_default().to_owned(),
            is_all: name == "@" || name == "*",
            name,
            is_quoted,
            operation: Operation::Value,
        }));
    }

    /// Reads `$'…'`, in which a backslash stands for another character.
    fn ansi_quoted(&mut self, word: &mut RawWord) {
        let mut text = String::new();
        let mut characters = self.rest().char_indices().peekable();
        let mut length = self.rest().len();
        while let Some((at, next)) = characters.next() {
            match next {
                '\'' => {
                    length = at + 1;
                    break;
                }
                '\\' => {
                    let Some((_, escaped)) = characters.next() else {
                        break;
                    };
                    let mut number = |radix: u32, first: Option<char>, max: usize| {
                        let mut digits: String = first.into_iter().collect();
                        while digits.len() < max
                            && let Some((_, digit)) =
                                characters.next_if(|(_, digit)| digit.is_digit(radix))
                        {
                            digits.push(digit);
                        }
                        u32::from_str_radix(&digits, radix)
                            .ok()
                            .and_then(char::from_u32)
                    };
                    let value = match escaped {
                        'n' => Some('\n'),
                        't' => Some('\t'),
                        'r' => Some('\r'),
                        'a' => Some('\u{7}'),
                        'b' => Some('\u{8}'),
                        'e' | 'E' => Some('\u{1b}'),
                        'f' => Some('\u{c}'),
                        'v' => Some('\u{b}'),
                        'x' => number(16, None, 2),
                        'u' => number(16, None, 4),
                        'U' => number(16, None, 8),
                        digit @ '0'..='7' => number(8, Some(digit), 3),
                        'c' => characters
                            .next()
                            .and_then(|(_, control)| u8::try_from(control).ok())
                            .map(|control| char::from(control & 0x1f)),
                        other => Some(other),
                    };
                    text.extend(value);
                }
                other => text.push(other),
            }
        }
        self.at += length;
        word.push_quoted(&text);
    }

    /// Reads arithmetic after its dollar sign. Returns `false` if it is a substitution that starts with a group.
    fn arithmetic(&mut self, word: &mut RawWord) -> bool {
        let mut depth = 0_usize;
        let mut before = b' ';
        let mut has_command = false;
        let bytes = self.rest().as_bytes();
        let mut length = None;
        for (at, byte) in bytes.iter().copied().enumerate() {
            match byte {
                b'(' => {
                    has_command |= before == b'$';
                    depth += 1;
                }
                b'`' => has_command = true,
                b'\'' | b'"' | b'\n' | b';' => return false,
                b')' if depth == 1 => {
                    length = (before == b')').then_some(at + 1);
                    break;
                }
                b')' => depth -= 1,
                _ => {}
            }
            before = byte;
        }
        let Some(length) = length else { return false };
        if has_command {
            return false;
        }
        word.parts.push(Part::Unknown("$(…)".to_owned()));
        self.at += length;
        true
    }

    /// Reads the commands of a substitution after its parenthesis.
    fn substitution(&mut self, word: &mut RawWord, is_quoted: bool, kind: OutputKind) {
        if self.rest().starts_with("…)") {
            // This is how a substitution is shown. It appears when text with one is read again.
            self.at += "…)".len();
            word.parts.push(Part::Unknown("$(…)".to_owned()));
            return;
        }
        if self.depth >= MAX_NESTING {
            self.is_complete = false;
            word.parts.push(Part::Unknown("$(…)".to_owned()));
            self.at = self.text.len();
            return;
        }
        self.depth += 1;
        let pending = std::mem::take(&mut self.pending);
        let script = self.script(true);
        self.eat(")");
        self.pending.splice(0..0, pending);
        self.depth -= 1;
        word.parts.push(Part::Output {
            script,
            is_quoted,
            kind,
        });
    }

    /// Reads a substitution in backticks.
    fn backticks(&mut self, word: &mut RawWord, is_quoted: bool) {
        self.at += 1;
        let start = self.at;
        let mut has_escapes = false;
        let mut text = String::new();
        let mut characters = self.rest().char_indices();
        let mut length = self.rest().len();
        while let Some((at, next)) = characters.next() {
            match next {
                '`' => {
                    length = at + 1;
                    break;
                }
                '\\' => {
                    has_escapes = true;
                    match characters.next() {
                        Some((_, escaped @ ('`' | '\\' | '$'))) => text.push(escaped),
                        Some((_, '"')) if is_quoted => text.push('"'),
                        Some((_, other)) => text.extend(['\\', other]),
                        None => text.push('\\'),
                    }
                }
                other => text.push(other),
            }
        }
        self.at += length;
        if self.depth >= MAX_NESTING {
            self.is_complete = false;
            return;
        }
        let mut inner = Parser {
            text: &text,
            at: 0,
            base: self.base.filter(|_| !has_escapes).map(|base| base + start),
            depth: self.depth + 1,
            pipelines: self.pipelines,
            bodies: std::mem::take(&mut self.bodies),
            pending: Vec::new(),
            is_complete: self.is_complete,
        };
        let script = inner.script(false);
        self.is_complete = inner.is_complete;
        self.pipelines = inner.pipelines;
        self.bodies = inner.bodies;
        word.parts.push(Part::Output {
            script,
            is_quoted,
            kind: OutputKind::Text,
        });
    }

    /// Reads `${…}` after its dollar sign.
    fn braced_variable(&mut self, word: &mut RawWord, is_quoted: bool, start: usize) {
        if self.depth >= MAX_NESTING {
            self.is_complete = false;
            self.at = self.text.len();
            return;
        }
        self.depth += 1;
        self.at += 1;
        let is_changed = matches!(self.peek(), Some(b'#' | b'!'))
            && self.peek_at(1).is_some_and(|next| next != b'}');
        self.at += usize::from(is_changed);
        let rest = self.rest();
        let length = match name_length(rest) {
            0 => rest
                .bytes()
                .take_while(u8::is_ascii_digit)
                .count()
                .max(usize::from(
                    rest.starts_with(['@', '*', '?', '$', '-', '#', '!']),
                )),
            length => length,
        };
        let name = rest.get(..length).unwrap_or_default().to_owned();
        self.at += length;
        let is_all = self.eat("[@]") || self.eat("[*]") || name == "@" || name == "*";
        let has_index = self.peek() == Some(b'[');
        let is_alternative = !is_changed && !has_index && self.alternative_operator();
        let mut argument = RawWord::default();
        self.word_until(&mut argument, Some(b'}'));
        self.eat("}");
        self.depth -= 1;
        let operation = if is_alternative {
            Operation::Alternative(argument)
        } else if is_changed || has_index || !argument.parts.is_empty() || name.is_empty() {
            Operation::Other(argument)
        } else {
            Operation::Value
        };
        word.parts.push(Part::Variable(Variable {
            written: self.text.get(start..self.at).unwrap_or_default().to_owned(),
            name,
            is_all,
            is_quoted,
            operation,
        }));
    }

    /// Reads the operator of `${x:-y}` and similar forms.
    fn alternative_operator(&mut self) -> bool {
        let offset = usize::from(self.peek() == Some(b':'));
        let found = matches!(self.peek_at(offset), Some(b'-' | b'=' | b'+'));
        if found {
            self.at += offset + 1;
        }
        found
    }
}

/// Returns whether a byte ends text that stands for itself outside of quotes.
const fn is_special(byte: u8) -> bool {
    matches!(
        byte,
        b' ' | b'\t'
            | b'\n'
            | b'\r'
            | b';'
            | b'|'
            | b'&'
            | b'('
            | b')'
            | b'<'
            | b'>'
            | b'\''
            | b'"'
            | b'\\'
            | b'$'
            | b'`'
    )
}

/// Returns the length of the name at the start of a text.
fn name_length(text: &str) -> usize {
    let is_start = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    if is_start {
        text.bytes().take_while(is_part).count()
    } else {
        0
    }
}

/// Returns whether a word before a redirection names a descriptor: a number or `{variable}`.
fn is_descriptor(word: &str) -> bool {
    let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
    is_number || (word.starts_with('{') && word.ends_with('}') && word.len() > 2)
}

/// Returns the delimiter of a here-document, without its quotes.
fn as_written(word: &RawWord) -> String {
    let parts = word.parts.iter().map(|part| match part {
        Part::Plain(text) | Part::Quoted(text) | Part::Unknown(text) => text.as_str(),
        Part::Variable(variable) => variable.written.as_str(),
        Part::Output { .. } | Part::Array(_) => "",
    });
    parts.collect()
}
