//! The supported subset of Go's `text/template`, translated to the own syntax.
//!
//! Everything of the translation is a tag: texts are string literals in a tag of their own, so that nothing in them
//! is read as a template again. Each tag takes two lines of the translation, which is how an error finds its way
//! back to the original.

mod lexer;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use self::lexer::{Lexeme, Piece, Token, pieces};
use super::{Fault, Names, ROOT, Scope};

/// The words that begin an action that is no value.
pub(super) const KEYWORDS: [&str; 10] = [
    "if", "else", "end", "range", "with", "define", "template", "block", "break", "continue",
];

/// Keywords that are read and refused.
const UNSUPPORTED: [&str; 5] = ["define", "template", "block", "break", "continue"];

/// How deep parentheses and blocks may be nested.
const DEPTH_LIMIT: usize = 40;

/// A function of the Go syntax.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Function {
    /// The name.
    pub name: &'static str,
    /// The fewest arguments.
    pub least: usize,
    /// The most arguments.
    pub most: usize,
}

const fn function(name: &'static str, least: usize, most: usize) -> Function {
    Function { name, least, most }
}

/// How many arguments a function takes that takes any number.
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

/// A template in the own syntax.
#[derive(Debug)]
pub(super) struct Translated {
    pub(super) source: String,
    /// For every second line, the byte of the original.
    pub(super) origins: Vec<usize>,
    pub(super) names: Names,
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
pub(super) fn translate(source: &str, scope: &Scope) -> Result<Translated, Fault> {
    let mut translator = Translator {
        scope,
        source: String::new(),
        origins: Vec::new(),
        names: BTreeSet::new(),
        has_all: false,
        blocks: Vec::new(),
        dots: vec![ROOT.to_owned()],
        variables: Vec::new(),
        count: 0,
    };
    for piece in pieces(source)? {
        match piece {
            Piece::Text { text, at } => {
                let literal = serde_json::Value::from(text).to_string();
                translator.tag("{{", &literal, "}}", at);
            }
            Piece::Action { lexemes, at } => translator.action(&lexemes, at)?,
        }
    }
    if let Some(block) = translator.blocks.last() {
        let message = format!("`{{{{ {} }}}}` has no `{{{{ end }}}}`", block.word);
        return Err(Fault::new(block.at, message));
    }
    Ok(Translated {
        source: translator.source,
        origins: translator.origins,
        names: if translator.has_all {
            Names::All
        } else {
            Names::These(translator.names)
        },
    })
}

/// A block that is open.
struct Block {
    word: &'static str,
    at: usize,
    dots: usize,
    /// How many variables there were before it, and when its body began.
    variables: usize,
    inner: usize,
    has_else: bool,
}

struct Translator<'a> {
    scope: &'a Scope,
    source: String,
    origins: Vec<usize>,
    names: BTreeSet<String>,
    /// The event is looked at as a whole.
    has_all: bool,
    blocks: Vec<Block>,
    /// What the dot is, innermost last.
    dots: Vec<String>,
    /// Names of the original and what they are here, innermost last.
    variables: Vec<(String, String)>,
    count: usize,
}

impl Translator<'_> {
    fn tag(&mut self, open: &str, body: &str, close: &str, at: usize) {
        self.source.extend([open, "\n ", body, " \n", close]);
        self.origins.push(at);
    }

    /// Returns a name that nothing else has.
    fn fresh(&mut self) -> String {
        self.count += 1;
        format!("_v{}", self.count)
    }

    fn dot(&self) -> String {
        self.dots.last().cloned().unwrap_or_default()
    }

    fn action(&mut self, lexemes: &[Lexeme<'_>], at: usize) -> Result<(), Fault> {
        let Some(first) = lexemes.first() else {
            return Err(Fault::new(at, "an action is empty"));
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
            word if UNSUPPORTED.contains(&word) => {
                let message = format!("`{{{{ {word} }}}}` is not supported");
                Err(Fault::new(at, message)
                    .allowed("`if`, `else`, `else if`, `with`, `range` and `end`"))
            }
            _ => self.value(lexemes, at),
        }
    }

    /// Translates an action that prints, or that gives a variable its value.
    fn value(&mut self, lexemes: &[Lexeme<'_>], at: usize) -> Result<(), Fault> {
        let (declared, rest) = declaration(lexemes);
        let code = self.pipeline(rest, at)?;
        match declared[..] {
            [] => self.tag("{{", &code, "}}", at),
            [name] => {
                let variable = self.fresh();
                self.tag("{%", &format!("set {variable} = {code}"), "%}", at);
                self.variables.push((name.to_owned(), variable));
            }
            [..] => return Err(Fault::new(at, "two variables stand only in `range`")),
        }
        Ok(())
    }

    fn open(&mut self, word: &'static str, lexemes: &[Lexeme<'_>], at: usize) -> Result<(), Fault> {
        if self.blocks.len() == DEPTH_LIMIT {
            let fault = Fault::new(at, "the blocks are nested too deep");
            return Err(fault.allowed(format!("at most {DEPTH_LIMIT}")));
        }
        let (declared, rest) = declaration(lexemes);
        if declared.len() > 1 && word != "range" {
            return Err(Fault::new(at, "two variables stand only in `range`"));
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

    fn or_else(&mut self, rest: &[Lexeme<'_>], at: usize) -> Result<(), Fault> {
        let Some(block) = self.blocks.last_mut() else {
            return Err(Fault::new(at, "`{{ else }}` belongs to no block"));
        };
        if block.has_else {
            return Err(Fault::new(at, "a second `{{ else }}` of one block"));
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
            let fault = Fault::new(
                at,
                format!("this `{{{{ else … }}}}` of `{word}` is not supported"),
            );
            return Err(fault.allowed("`{{ else }}`, and `{{ else if X }}` of `if`"));
        }
        let code = self.pipeline(condition, at)?;
        self.tag("{%", &format!("elif {code}"), "%}", at);
        Ok(())
    }

    fn end(&mut self, rest: &[Lexeme<'_>], at: usize) -> Result<(), Fault> {
        if !rest.is_empty() {
            return Err(Fault::new(at, "`{{ end }}` takes nothing"));
        }
        let Some(block) = self.blocks.pop() else {
            return Err(Fault::new(at, "`{{ end }}` belongs to no block"));
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

    /// Translates `a | b | c` to the code of its value.
    fn pipeline(&mut self, lexemes: &[Lexeme<'_>], at: usize) -> Result<String, Fault> {
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

    fn piped(&mut self, cursor: &mut Cursor<'_, '_>) -> Result<String, Fault> {
        let mut code = self.command(cursor, None)?;
        while cursor.take(&Token::Pipe) {
            code = self.command(cursor, Some(code))?;
        }
        Ok(code)
    }

    /// Translates a function with its arguments, or a value alone.
    fn command(
        &mut self,
        cursor: &mut Cursor<'_, '_>,
        piped: Option<String>,
    ) -> Result<String, Fault> {
        let Some(first) = cursor.peek().cloned() else {
            return Err(Fault::new(cursor.end, "a value is missing"));
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
            return call(word, &arguments, first.at);
        }
        let value = self.operand(cursor)?;
        if piped.is_some() || cursor.is_at_operand() {
            let fault = Fault::new(first.at, "a value is no function and takes nothing");
            return Err(fault.allowed(names_of_functions()));
        }
        Ok(value.code)
    }

    fn operand(&mut self, cursor: &mut Cursor<'_, '_>) -> Result<Operand, Fault> {
        let Some(lexeme) = cursor.advance() else {
            return Err(Fault::new(cursor.end, "a value is missing"));
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
                    let message = format!("`{word}` stands where a value has to");
                    Fault::new(lexeme.at, message).allowed(format!("`({word} …)`"))
                })?)
            }
            Token::Open => {
                cursor.depth += 1;
                if cursor.depth > DEPTH_LIMIT {
                    let fault = Fault::new(lexeme.at, "the parentheses are nested too deep");
                    return Err(fault.allowed(format!("at most {DEPTH_LIMIT}")));
                }
                let code = self.piped(cursor)?;
                if !cursor.take(&Token::Close) {
                    return Err(Fault::new(lexeme.at, "the parenthesis is not closed"));
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

    /// Translates `$`, alone or with the field behind it.
    fn root(&mut self, cursor: &mut Cursor<'_, '_>) -> Result<Operand, Fault> {
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

    fn field(&mut self, of: &str, name: &str, at: usize) -> Result<String, Fault> {
        if of != ROOT {
            let name = serde_json::Value::from(name);
            return Ok(format!("_get({of}, {name})"));
        }
        let key = key_of(name);
        self.scope
            .check(&key, &format!(".{name}"))
            .map_err(|message| Fault::new(at, message).allowed(self.scope.names()))?;
        let code = format!("_get({ROOT}, {})", serde_json::Value::from(key.as_str()));
        self.names.insert(key);
        Ok(code)
    }

    fn variable(&self, name: &str, at: usize) -> Result<String, Fault> {
        let known = self.variables.iter().rev().find(|(known, _)| known == name);
        known.map(|(_, code)| code.clone()).ok_or_else(|| {
            Fault::new(at, format!("there is no variable `${name}` here"))
                .allowed("`$`, and variables of an action or block before")
        })
    }
}

/// The words that are values.
const CONSTANTS: [(&str, &str); 3] = [("true", "true"), ("false", "false"), ("nil", "none")];

fn constant(word: &str) -> Option<&'static str> {
    let found = CONSTANTS.iter().find(|(name, _)| *name == word);
    found.map(|(_, code)| *code)
}

/// A value's code, and its text where it is a literal.
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
    /// Where the action ends, for what is missing there.
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

    /// Takes a field that stands directly behind the value before it.
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

fn unexpected(lexeme: &Lexeme<'_>) -> Fault {
    Fault::new(lexeme.at, format!("{} is not expected here", lexeme.token))
}

fn names_of_functions() -> String {
    let names: Vec<String> = FUNCTIONS
        .iter()
        .map(|function| format!("`{}`", function.name))
        .collect();
    names.join(", ")
}

fn call(name: &str, arguments: &[Operand], at: usize) -> Result<String, Fault> {
    let Some(function) = FUNCTIONS.iter().find(|function| function.name == name) else {
        let message = format!("the function `{name}` is not supported");
        return Err(Fault::new(at, message).allowed(names_of_functions()));
    };
    let count = arguments.len();
    if !(function.least..=function.most).contains(&count) {
        let takes = match (function.least, function.most) {
            (least, MANY) => format!("at least {least}"),
            (least, _) => least.to_string(),
        };
        let message = format!("`{name}` has {count} arguments");
        return Err(Fault::new(at, message).allowed(takes));
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
fn check_format(arguments: &[Operand], at: usize) -> Result<(), Fault> {
    const VERBS: &str = "`%s`, `%v`, `%d`, `%q`, `%t` and `%%`";
    let format = arguments
        .first()
        .and_then(|argument| argument.literal.as_deref());
    let Some(format) = format else {
        return Err(
            Fault::new(at, "the format of `printf` is no literal").allowed("a text in quotes")
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
                let mut message = "`printf` does not know `%".to_owned();
                message.extend(verb);
                message.push('`');
                return Err(Fault::new(at, message).allowed(VERBS));
            }
        }
    }
    if values + 1 == arguments.len() {
        return Ok(());
    }
    let mut message = String::new();
    let given = arguments.len() - 1;
    write!(message, "`printf` has {given} values for {values} verbs")
        .map_err(|_| Fault::new(at, "`printf` is wrong"))?;
    Err(Fault::new(at, message))
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
