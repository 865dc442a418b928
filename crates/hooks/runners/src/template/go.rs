//! Translates the supported subset of Go's `text/template` to the native syntax.
//!
//! The translation consists only of tags. Literal text becomes a string literal in its own tag, so
//! that nothing in it is parsed as a template again. Each tag takes exactly two lines, so the line
//! of an error identifies the tag in the original.

mod lexer;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::rc::Rc;

use self::lexer::{Lexeme, Piece, Token, pieces};
use super::error::UnlocatedError;
use super::scope::{Names, ROOT, Values};

/// The keywords of Go templates. An action that starts with one of them is not an expression.
pub(super) const KEYWORDS: [&str; 10] = [
    "if", "else", "end", "range", "with", "define", "template", "block", "break", "continue",
];

/// Keywords that are recognised and refused.
const UNSUPPORTED: [&str; 5] = ["define", "template", "block", "break", "continue"];

/// How deeply parentheses and blocks may be nested.
const DEPTH_LIMIT: usize = 40;

/// How many tags the translation of a template with definitions may have. Definitions that use each other could
/// otherwise grow exponentially.
const MAX_TAGS: usize = 20_000;

/// A function of the Go syntax.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Function {
    /// The name.
    pub name: &'static str,
    /// The minimum number of arguments.
    pub least: usize,
    /// The maximum number of arguments.
    pub most: usize,
}

const fn function(name: &'static str, least: usize, most: usize) -> Function {
    Function { name, least, most }
}

/// The maximum number of arguments of a function that accepts any number.
const MANY: usize = 32;

/// Every function of the Go syntax.
pub const FUNCTIONS: &[Function] = &[
    function("and", 1, MANY),
    function("or", 1, MANY),
    function("not", 1, 1),
    function("eq", 2, MANY),
    function("ne", 2, 2),
    function("lt", 2, 2),
    function("le", 2, 2),
    function("gt", 2, 2),
    function("ge", 2, 2),
    function("len", 1, 1),
    function("index", 2, MANY),
    function("printf", 1, MANY),
    function("toJSON", 1, 1),
    function("truncate", 2, 2),
];

/// The functions that only templates over arguments have.
pub(super) const ARGUMENT_FUNCTIONS: &[Function] =
    &[function(BASH, 1, MANY), function("default", 2, 2)];

/// The function that runs a command.
const BASH: &str = "bash";

/// A template in the native syntax.
#[derive(Debug)]
pub(super) struct Translated {
    pub(super) source: String,
    /// For each tag, which takes two lines, the byte offset in the original.
    pub(super) origins: Vec<usize>,
    pub(super) names: Names,
    /// Whether the template runs commands.
    pub(super) runs_commands: bool,
}

/// Returns the key that a Go name stands for: `ToolUseID` is `tool_use_id`.
pub(super) fn key_of(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut key = String::new();
    for (at, letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| letters.get(at));
        let after = letters.get(at + 1);
        let begins = letter.is_uppercase()
            && before.is_some_and(|before| {
                !before.is_uppercase() && *before != '_'
                    || before.is_uppercase() && after.is_some_and(|after| after.is_lowercase())
            });
        if begins {
            key.push('_');
        }
        key.extend(letter.to_lowercase());
    }
    key
}

/// Translates a template.
pub(super) fn translate(source: &str, values: Values<'_>) -> Result<Translated, UnlocatedError> {
    let mut pieces = pieces(source)?;
    let definitions = match values {
        Values::Event(_) => BTreeMap::new(),
        Values::Arguments => definitions(&mut pieces)?,
    };
    let mut translator = Translator {
        values,
        definitions,
        expanding: 0,
        runs_commands: false,
        source: String::new(),
        origins: Vec::new(),
        names: BTreeSet::new(),
        has_all: false,
        blocks: Vec::new(),
        dots: vec![ROOT.to_owned()],
        variables: Vec::new(),
        count: 0,
    };
    translator.pieces(&pieces)?;
    Ok(Translated {
        runs_commands: translator.runs_commands,
        source: translator.source,
        origins: translator.origins,
        names: if translator.has_all {
            Names::All
        } else {
            Names::These(translator.names)
        },
    })
}

/// Takes the definitions, such as `{{ define "name" }} … {{ end }}`, out of a template.
fn definitions<'a>(pieces: &mut Vec<Piece<'a>>) -> Result<Definitions<'a>, UnlocatedError> {
    let mut definitions = Definitions::new();
    let mut rest = Vec::new();
    let mut all = std::mem::take(pieces).into_iter();
    while let Some(piece) = all.next() {
        if piece.word() != Some("define") {
            rest.push(piece);
            continue;
        }
        let (lexemes, at) = match &piece {
            Piece::Action { lexemes, at } => (lexemes.as_slice(), *at),
            Piece::Text { at, .. } => (&[][..], *at),
        };
        let name = match lexemes {
            [_, name] => name.text(),
            _ => None,
        };
        let Some(name) = name.map(str::to_owned) else {
            let error = UnlocatedError::new(at, "a definition needs a name and nothing else");
            return Err(error.allowed("`{{ define \"name\" }}`"));
        };
        let mut body = Vec::new();
        let mut depth = 0_usize;
        loop {
            let Some(piece) = all.next() else {
                return Err(UnlocatedError::new(at, "`{{ define }}` has no `{{ end }}`"));
            };
            match piece.word() {
                Some("end") if depth == 0 => break,
                Some("end") => depth -= 1,
                Some("if" | "with" | "range") => depth += 1,
                _ => {}
            }
            body.push(piece);
        }
        definitions.insert(name, body.into());
    }
    *pieces = rest;
    Ok(definitions)
}

/// The bodies of `{{ define }}` by their names.
type Definitions<'a> = BTreeMap<String, Rc<[Piece<'a>]>>;

/// An open block.
struct Block {
    word: &'static str,
    at: usize,
    dots: usize,
    /// How many variables there were before the block, and at the start of its body.
    variables: usize,
    inner: usize,
    has_else: bool,
}

struct Translator<'a> {
    values: Values<'a>,
    definitions: Definitions<'a>,
    /// How many definitions are being expanded, each inside another.
    expanding: usize,
    runs_commands: bool,
    source: String,
    origins: Vec<usize>,
    names: BTreeSet<String>,
    /// Whether the template uses the event as a whole.
    has_all: bool,
    blocks: Vec<Block>,
    /// The expressions that the dot stands for, innermost last.
    dots: Vec<String>,
    /// The variables: each name in the original with its expression in the translation, innermost last.
    variables: Vec<(String, String)>,
    count: usize,
}

impl Translator<'_> {
    /// Translates pieces in which every block is closed.
    fn pieces(&mut self, pieces: &[Piece<'_>]) -> Result<(), UnlocatedError> {
        for piece in pieces {
            match piece {
                Piece::Text { text, at } => {
                    let literal = serde_json::Value::from(*text).to_string();
                    self.tag("{{", &literal, "}}", *at);
                }
                Piece::Action { lexemes, at } => self.action(lexemes, *at)?,
            }
        }
        if let Some(block) = self.blocks.last() {
            let message = format!("`{{{{ {} }}}}` has no `{{{{ end }}}}`", block.word);
            return Err(UnlocatedError::new(block.at, message));
        }
        Ok(())
    }

    /// Translates `{{ template "name" . }}` to the body of its definition.
    fn expand(&mut self, lexemes: &[Lexeme<'_>], at: usize) -> Result<(), UnlocatedError> {
        let (name, data) = match lexemes {
            [name, data] => (name.text(), Some(&data.token)),
            _ => (None, None),
        };
        let (Some(name), Some(data)) = (name, data) else {
            let error = UnlocatedError::new(at, "`template` needs a name and the arguments");
            return Err(error.allowed("`{{ template \"name\" . }}`"));
        };
        let is_everything = matches!(data, Token::Dot) && self.dot() == ROOT
            || matches!(data, Token::Variable(name) if name.is_empty());
        if !is_everything {
            let error = UnlocatedError::new(at, "a definition can only get all arguments");
            return Err(error.allowed("`.` outside of `range` and `with`, or `$`"));
        }
        let Some(body) = self.definitions.get(name).cloned() else {
            let known: Vec<String> = self
                .definitions
                .keys()
                .map(|name| format!("`{name}`"))
                .collect();
            let error = UnlocatedError::new(at, format!("there is no definition `{name}`"));
            return Err(error.allowed(known.join(", ")));
        };
        if self.expanding == DEPTH_LIMIT || self.origins.len() > MAX_TAGS {
            return Err(UnlocatedError::new(
                at,
                "the definitions are nested too deeply",
            ));
        }
        self.expanding += 1;
        // A definition sees neither the variables nor the blocks around its use.
        let variables = std::mem::take(&mut self.variables);
        let blocks = std::mem::take(&mut self.blocks);
        self.dots.push(ROOT.to_owned());
        let result = self.pieces(&body);
        self.dots.pop();
        self.variables = variables;
        self.blocks = blocks;
        self.expanding -= 1;
        result
    }

    fn tag(&mut self, open: &str, body: &str, close: &str, at: usize) {
        self.source.extend([open, "\n ", body, " \n", close]);
        self.origins.push(at);
    }

    /// Returns an unused name.
    fn fresh(&mut self) -> String {
        self.count += 1;
        format!("_v{}", self.count)
    }

    fn dot(&self) -> String {
        self.dots.last().cloned().unwrap_or_default()
    }

    fn action(&mut self, lexemes: &[Lexeme<'_>], at: usize) -> Result<(), UnlocatedError> {
        let Some(first) = lexemes.first() else {
            return Err(UnlocatedError::new(at, "an action is empty"));
        };
        let rest = lexemes.get(1..).unwrap_or_default();
        let Token::Word(word) = first.token else {
            return self.value(lexemes, at);
        };
        match word {
            "if" => self.open("if", rest, at),
            "with" => self.open("with", rest, at),
            "range" => self.open("range", rest, at),
            "else" => self.or_else(rest, at),
            "end" => self.end(rest, at),
            "template" if matches!(self.values, Values::Arguments) => self.expand(rest, at),
            word if UNSUPPORTED.contains(&word) => {
                let message = format!("`{{{{ {word} }}}}` is not supported");
                Err(UnlocatedError::new(at, message)
                    .allowed("`if`, `else`, `else if`, `with`, `range` and `end`"))
            }
            _ => self.value(lexemes, at),
        }
    }

    /// Translates an action that prints a value or declares a variable.
    fn value(&mut self, lexemes: &[Lexeme<'_>], at: usize) -> Result<(), UnlocatedError> {
        let (declared, rest) = declaration(lexemes);
        let code = self.pipeline(rest, at)?;
        match declared[..] {
            [] => self.tag("{{", &code, "}}", at),
            [name] => {
                let variable = self.fresh();
                self.tag("{%", &format!("set {variable} = {code}"), "%}", at);
                self.variables.push((name.to_owned(), variable));
            }
            [..] => {
                return Err(UnlocatedError::new(
                    at,
                    "only `range` can declare two variables",
                ));
            }
        }
        Ok(())
    }

    fn open(
        &mut self,
        word: &'static str,
        lexemes: &[Lexeme<'_>],
        at: usize,
    ) -> Result<(), UnlocatedError> {
        if self.blocks.len() == DEPTH_LIMIT {
            let error = UnlocatedError::new(at, "the blocks are nested too deeply");
            return Err(error.allowed(format!("at most {DEPTH_LIMIT}")));
        }
        let (declared, rest) = declaration(lexemes);
        if declared.len() > 1 && word != "range" {
            return Err(UnlocatedError::new(
                at,
                "only `range` can declare two variables",
            ));
        }
        let code = self.pipeline(rest, at)?;
        let (dots, variables) = (self.dots.len(), self.variables.len());
        let variable = self.fresh();
        if word == "range" {
            self.tag("{%", &format!("for {variable} in _items({code})"), "%}", at);
            let item = format!("{variable}[1]");
            let names = match declared[..] {
                [name] => vec![(name, item.clone())],
                [key, name] => vec![(key, format!("{variable}[0]")), (name, item.clone())],
                _ => Vec::new(),
            };
            let names = names.into_iter();
            self.variables
                .extend(names.map(|(name, code)| (name.to_owned(), code)));
            self.dots.push(item);
        } else {
            self.tag("{%", &format!("set {variable} = {code}"), "%}", at);
            self.tag("{%", &format!("if {variable}"), "%}", at);
            if let [name] = declared[..] {
                self.variables.push((name.to_owned(), variable.clone()));
            }
            if word == "with" {
                self.dots.push(variable);
            }
        }
        self.blocks.push(Block {
            word,
            at,
            dots,
            variables,
            inner: self.variables.len(),
            has_else: false,
        });
        Ok(())
    }

    fn or_else(&mut self, rest: &[Lexeme<'_>], at: usize) -> Result<(), UnlocatedError> {
        let Some(block) = self.blocks.last_mut() else {
            return Err(UnlocatedError::new(
                at,
                "`{{ else }}` is outside of any block",
            ));
        };
        if block.has_else {
            return Err(UnlocatedError::new(
                at,
                "the block has a second `{{ else }}`",
            ));
        }
        let word = block.word;
        let is_plain = rest.is_empty();
        block.has_else = is_plain;
        self.dots.truncate(block.dots);
        self.variables.truncate(block.inner);
        if is_plain {
            self.tag("{%", "else", "%}", at);
            return Ok(());
        }
        let is_if = matches!(
            rest.first().map(|lexeme| &lexeme.token),
            Some(Token::Word("if"))
        );
        let condition = rest.get(1..).unwrap_or_default();
        let (declared, _) = declaration(condition);
        if word != "if" || !is_if || !declared.is_empty() {
            let error = UnlocatedError::new(
                at,
                format!("this `{{{{ else … }}}}` of `{word}` is not supported"),
            );
            return Err(error.allowed("`{{ else }}`, and `{{ else if X }}` of `if`"));
        }
        let code = self.pipeline(condition, at)?;
        self.tag("{%", &format!("elif {code}"), "%}", at);
        Ok(())
    }

    fn end(&mut self, rest: &[Lexeme<'_>], at: usize) -> Result<(), UnlocatedError> {
        if !rest.is_empty() {
            return Err(UnlocatedError::new(at, "`{{ end }}` takes no arguments"));
        }
        let Some(block) = self.blocks.pop() else {
            return Err(UnlocatedError::new(
                at,
                "`{{ end }}` is outside of any block",
            ));
        };
        self.dots.truncate(block.dots);
        self.variables.truncate(block.variables);
        let close = if block.word == "range" {
            "endfor"
        } else {
            "endif"
        };
        self.tag("{%", close, "%}", at);
        Ok(())
    }

    /// Translates a pipeline such as `a | b | c` to an expression.
    fn pipeline(&mut self, lexemes: &[Lexeme<'_>], at: usize) -> Result<String, UnlocatedError> {
        let mut cursor = Cursor {
            lexemes,
            next: 0,
            end: lexemes.last().map_or(at, |lexeme| lexeme.at),
            depth: 0,
        };
        let code = self.piped(&mut cursor)?;
        match cursor.peek() {
            None => Ok(code),
            Some(lexeme) => Err(unexpected(lexeme)),
        }
    }

    fn piped(&mut self, cursor: &mut Cursor<'_, '_>) -> Result<String, UnlocatedError> {
        let mut code = self.command(cursor, None)?;
        while cursor.take(&Token::Pipe) {
            code = self.command(cursor, Some(code))?;
        }
        Ok(code)
    }

    /// Translates a function with its arguments, or a single value.
    fn command(
        &mut self,
        cursor: &mut Cursor<'_, '_>,
        piped: Option<String>,
    ) -> Result<String, UnlocatedError> {
        let Some(first) = cursor.peek().cloned() else {
            return Err(UnlocatedError::new(cursor.end, "a value is missing"));
        };
        if let Token::Word(word) = first.token
            && constant(word).is_none()
        {
            cursor.next += 1;
            let mut arguments = Vec::new();
            while cursor.is_at_operand() {
                arguments.push(self.operand(cursor)?);
            }
            arguments.extend(piped.map(Operand::of));
            self.runs_commands |= word == BASH;
            return call(word, &arguments, self.values, first.at);
        }
        let value = self.operand(cursor)?;
        if piped.is_some() || cursor.is_at_operand() {
            let error =
                UnlocatedError::new(first.at, "a value is not a function and takes no arguments");
            return Err(error.allowed(names_of_functions(self.values)));
        }
        Ok(value.code)
    }

    fn operand(&mut self, cursor: &mut Cursor<'_, '_>) -> Result<Operand, UnlocatedError> {
        let Some(lexeme) = cursor.advance() else {
            return Err(UnlocatedError::new(cursor.end, "a value is missing"));
        };
        let mut operand = match &lexeme.token {
            Token::Dot => Operand::of(self.whole(self.dot())),
            Token::Field(name) => Operand::of(self.field(&self.dot(), name, lexeme.at)?),
            Token::Variable("") => self.root(cursor)?,
            Token::Variable(name) => Operand::of(self.variable(name, lexeme.at)?),
            Token::Text(text) => Operand {
                code: serde_json::Value::from(text.as_str()).to_string(),
                literal: Some(text.clone()),
            },
            Token::Number(number) => Operand::of((*number).to_owned()),
            Token::Word(word) => {
                Operand::of(constant(word).map(str::to_owned).ok_or_else(|| {
                    let message = format!("expected a value, found `{word}`");
                    UnlocatedError::new(lexeme.at, message).allowed(format!("`({word} …)`"))
                })?)
            }
            Token::Open => {
                cursor.depth += 1;
                if cursor.depth > DEPTH_LIMIT {
                    let error =
                        UnlocatedError::new(lexeme.at, "the parentheses are nested too deeply");
                    return Err(error.allowed(format!("at most {DEPTH_LIMIT}")));
                }
                let code = self.piped(cursor)?;
                if !cursor.take(&Token::Close) {
                    return Err(UnlocatedError::new(
                        lexeme.at,
                        "the parenthesis is not closed",
                    ));
                }
                cursor.depth -= 1;
                Operand::of(code)
            }
            Token::Pipe | Token::Close | Token::Declare | Token::Comma => {
                return Err(unexpected(lexeme));
            }
        };
        while let Some((name, at)) = cursor.take_attached() {
            operand = Operand::of(self.field(&operand.code, name, at)?);
        }
        Ok(operand)
    }

    /// Translates `$`, alone or followed by a field.
    fn root(&mut self, cursor: &mut Cursor<'_, '_>) -> Result<Operand, UnlocatedError> {
        let code = match cursor.take_attached() {
            Some((name, at)) => self.field(ROOT, name, at)?,
            None => self.whole(ROOT.to_owned()),
        };
        Ok(Operand::of(code))
    }

    fn whole(&mut self, code: String) -> String {
        self.has_all |= code == ROOT;
        code
    }

    fn field(&mut self, of: &str, name: &str, at: usize) -> Result<String, UnlocatedError> {
        if of != ROOT {
            let name = serde_json::Value::from(name);
            return Ok(format!("_get({of}, {name})"));
        }
        let key = match self.values {
            Values::Event(scope) => {
                let key = key_of(name);
                scope
                    .check(&key, &format!(".{name}"))
                    .map_err(|message| UnlocatedError::new(at, message).allowed(scope.names()))?;
                key
            }
            Values::Arguments => name.to_owned(),
        };
        let code = format!("_get({ROOT}, {})", serde_json::Value::from(key.as_str()));
        self.names.insert(key);
        Ok(code)
    }

    fn variable(&self, name: &str, at: usize) -> Result<String, UnlocatedError> {
        let known = self.variables.iter().rev().find(|(known, _)| known == name);
        known.map(|(_, code)| code.clone()).ok_or_else(|| {
            UnlocatedError::new(at, format!("there is no variable `${name}` here"))
                .allowed("`$`, and variables that were declared before")
        })
    }
}

/// The words that are values.
const CONSTANTS: [(&str, &str); 3] = [("true", "true"), ("false", "false"), ("nil", "none")];

fn constant(word: &str) -> Option<&'static str> {
    let found = CONSTANTS.iter().find(|(name, _)| *name == word);
    found.map(|(_, code)| *code)
}

/// The expression of a value, and its text if it is a string literal.
struct Operand {
    code: String,
    literal: Option<String>,
}

impl Operand {
    fn of(code: String) -> Self {
        Self {
            code,
            literal: None,
        }
    }
}

struct Cursor<'a, 's> {
    lexemes: &'a [Lexeme<'s>],
    next: usize,
    /// Where the action ends, for the position of errors about missing values.
    end: usize,
    depth: usize,
}

impl<'a, 's> Cursor<'a, 's> {
    fn peek(&self) -> Option<&'a Lexeme<'s>> {
        self.lexemes.get(self.next)
    }

    fn advance(&mut self) -> Option<&'a Lexeme<'s>> {
        let lexeme = self.peek()?;
        self.next += 1;
        Some(lexeme)
    }

    fn take(&mut self, token: &Token<'_>) -> bool {
        let is_there = self.peek().is_some_and(|lexeme| lexeme.token == *token);
        self.next += usize::from(is_there);
        is_there
    }

    /// Takes a field that directly follows a value, without a space.
    fn take_attached(&mut self) -> Option<(&'s str, usize)> {
        let lexeme = self.peek().filter(|lexeme| !lexeme.is_spaced)?;
        let Token::Field(name) = lexeme.token else {
            return None;
        };
        self.next += 1;
        Some((name, lexeme.at))
    }

    fn is_at_operand(&self) -> bool {
        self.peek().is_some_and(|lexeme| {
            !matches!(
                lexeme.token,
                Token::Pipe | Token::Close | Token::Declare | Token::Comma
            )
        })
    }
}

/// Splits `$a, $b := rest` into the names and the rest.
fn declaration<'a, 's>(lexemes: &'a [Lexeme<'s>]) -> (Vec<&'s str>, &'a [Lexeme<'s>]) {
    let tokens: Vec<&Token<'s>> = lexemes.iter().take(4).map(|lexeme| &lexeme.token).collect();
    let rest = |count| lexemes.get(count..).unwrap_or_default();
    match tokens.as_slice() {
        [Token::Variable(name), Token::Declare, ..] => (vec![name], rest(2)),
        [
            Token::Variable(a),
            Token::Comma,
            Token::Variable(b),
            Token::Declare,
        ] => (vec![a, b], rest(4)),
        _ => (Vec::new(), lexemes),
    }
}

fn unexpected(lexeme: &Lexeme<'_>) -> UnlocatedError {
    UnlocatedError::new(lexeme.at, format!("{} is not expected here", lexeme.token))
}

fn functions(values: Values<'_>) -> impl Iterator<Item = &'static Function> {
    let more = match values {
        Values::Event(_) => &[],
        Values::Arguments => ARGUMENT_FUNCTIONS,
    };
    FUNCTIONS.iter().chain(more)
}

fn names_of_functions(values: Values<'_>) -> String {
    let names: Vec<String> = functions(values)
        .map(|function| format!("`{}`", function.name))
        .collect();
    names.join(", ")
}

fn call(
    name: &str,
    arguments: &[Operand],
    values: Values<'_>,
    at: usize,
) -> Result<String, UnlocatedError> {
    let Some(function) = functions(values).find(|function| function.name == name) else {
        let message = format!("the function `{name}` is not supported");
        return Err(UnlocatedError::new(at, message).allowed(names_of_functions(values)));
    };
    let count = arguments.len();
    if !(function.least..=function.most).contains(&count) {
        let takes = match (function.least, function.most) {
            (least, MANY) => format!("at least {least}"),
            (least, _) => least.to_string(),
        };
        let message = format!("wrong number of arguments for `{name}`: found {count}");
        return Err(UnlocatedError::new(at, message).allowed(takes));
    }
    if name == "printf" {
        check_format(arguments, at)?;
    }
    let codes: Vec<&str> = arguments.iter().map(|argument| &*argument.code).collect();
    Ok(match name {
        "and" | "or" => format!("({})", codes.join(&format!(" {name} "))),
        "not" => format!("(not {})", codes.concat()),
        _ => format!("_{name}({})", codes.join(", ")),
    })
}

/// Checks that a format is a literal with supported verbs, one for each value.
fn check_format(arguments: &[Operand], at: usize) -> Result<(), UnlocatedError> {
    const VERBS: &str = "`%s`, `%v`, `%d`, `%q`, `%t` and `%%`";
    let format = arguments
        .first()
        .and_then(|argument| argument.literal.as_deref());
    let Some(format) = format else {
        return Err(
            UnlocatedError::new(at, "the format of `printf` is not a literal")
                .allowed("a string in quotes"),
        );
    };
    let mut values = 0;
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            continue;
        }
        match letters.next() {
            Some('%') => {}
            Some('s' | 'v' | 'd' | 'q' | 't') => values += 1,
            verb => {
                let mut message = "`printf` does not support `%".to_owned();
                message.extend(verb);
                message.push('`');
                return Err(UnlocatedError::new(at, message).allowed(VERBS));
            }
        }
    }
    if values + 1 == arguments.len() {
        return Ok(());
    }
    let mut message = String::new();
    let given = arguments.len() - 1;
    write!(
        message,
        "wrong number of values for `printf`: expected {values}, found {given}"
    )
    .map_err(|_| UnlocatedError::new(at, "invalid `printf`"))?;
    Err(UnlocatedError::new(at, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_names_stand_for_keys() {
        for (name, key) in [
            ("ToolName", "tool_name"),
            ("SessionID", "session_id"),
            ("ToolUseID", "tool_use_id"),
            ("Cwd", "cwd"),
            ("HTTPStatus", "http_status"),
            ("tool_name", "tool_name"),
            ("cmd", "cmd"),
        ] {
            assert_eq!(key_of(name), key);
        }
    }
}
