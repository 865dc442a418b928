//! The commands in a command line, as far as they can be read off it.
//!
//! The reading errs on the side of more commands: it is for rules that restrict. It knows quotes,
//! separators, substitutions, redirections and the words that may stand before a command; what a line
//! makes of variables, of encoded text or inside another program stays unknown.

use std::iter::Peekable;
use std::path::Path;
use std::str::Chars;

/// How deep substitutions inside quotes are followed. What lies deeper is still found by the plain cut.
const DEEPEST: u32 = 16;

/// Words of the shell's grammar that may stand before a command.
const GRAMMAR: [&str; 10] = [
    "!", "{", "then", "do", "else", "elif", "if", "while", "until", "function",
];

/// Programs and builtins that run the command behind them.
const WRAPPERS: [&str; 10] = [
    "time", "coproc", "command", "builtin", "exec", "eval", "env", "nohup", "sudo", "doas",
];

/// How many wrappers around one command are readings of their own; the command inside always is one.
const MOST_WRAPPERS: u32 = 64;

/// Returns every reading of a command line that a rule should see: the line and each command in it, as
/// they are written and in plain words.
pub fn readings(line: &str) -> Vec<String> {
    let mut readings = vec![line.to_owned()];
    // A quote may hide a separator, or a separator stand in what only looks quoted: both cuts count.
    let parts = line.split(is_syntax).chain([line]);
    for part in parts {
        readings.push(part.trim().to_owned());
        let mut commands = Vec::new();
        read(&mut part.chars().peekable(), None, 0, &mut commands);
        for words in &commands {
            push_forms(words, &mut readings);
        }
    }
    readings.sort_unstable();
    readings.dedup();
    readings
}

/// Returns the commands of a line, each in its words. A command that only a substitution inside quotes has is among them.
pub fn commands(line: &str) -> Vec<Vec<String>> {
    let mut commands = Vec::new();
    read(&mut line.chars().peekable(), None, 0, &mut commands);
    commands
}

/// Characters with which a command line does more than run one program with plain arguments.
pub fn is_syntax(character: char) -> bool {
    matches!(
        character,
        ';' | '&' | '|' | '<' | '>' | '`' | '$' | '(' | ')' | '{' | '}' | '\\' | '\n' | '\r'
    )
}

/// Adds the command that the words make, with and without what may stand before it.
fn push_forms(words: &[String], readings: &mut Vec<String>) {
    readings.push(words.join(" "));
    let mut words = words;
    let mut wrappers = 0;
    let mut may_be_option = false;
    while let Some((first, rest)) = words.split_first() {
        let name = Path::new(first)
            .file_name()
            .map(|name| name.to_string_lossy());
        let is_wrapper = name.as_deref().is_some_and(|name| WRAPPERS.contains(&name));
        let is_option = may_be_option && first.starts_with('-');
        if is_wrapper && wrappers < MOST_WRAPPERS {
            wrappers += 1;
            push_program(words, readings);
        }
        if !(is_wrapper || is_option || GRAMMAR.contains(&first.as_str()) || is_assignment(first)) {
            push_program(words, readings);
            return;
        }
        may_be_option = is_wrapper || is_option;
        words = rest;
    }
}

/// Adds a command as it is written, and without the folder before its program.
fn push_program(words: &[String], readings: &mut Vec<String>) {
    readings.push(words.join(" "));
    if let Some((first, rest)) = words.split_first()
        && let Some(name) = Path::new(first).file_name()
    {
        let name = name.to_string_lossy().into_owned();
        readings.push([&[name], rest].concat().join(" "));
    }
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        let name = name.strip_suffix('+').unwrap_or(name);
        let mut characters = name.chars();
        characters
            .next()
            .is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
            && characters.all(|other| other.is_ascii_alphanumeric() || other == '_')
    })
}

/// A command that is being read.
#[derive(Default)]
struct Draft {
    words: Vec<String>,
    word: String,
    /// A word is under way; it may be empty, as `''` is.
    is_word: bool,
    /// The word under way is the target of a redirection and no part of the command.
    is_target: bool,
}

impl Draft {
    fn push(&mut self, character: char) {
        self.word.push(character);
        self.is_word = true;
    }

    fn end_word(&mut self) {
        let word = std::mem::take(&mut self.word);
        if !std::mem::take(&mut self.is_word) {
            return;
        }
        if !std::mem::take(&mut self.is_target) {
            self.words.push(word);
        }
    }

    /// Starts a redirection; the number before it is none of the command's words.
    fn redirect(&mut self) {
        if self
            .word
            .chars()
            .all(|character| character.is_ascii_digit())
        {
            self.word.clear();
            self.is_word = false;
        }
        self.end_word();
        self.is_target = true;
    }

    fn end_command(&mut self, commands: &mut Vec<Vec<String>>) {
        self.end_word();
        let draft = std::mem::take(self);
        if !draft.words.is_empty() {
            commands.push(draft.words);
        }
    }
}

/// Reads commands until `end`, or until the text is over.
fn read(
    text: &mut Peekable<Chars<'_>>,
    end: Option<char>,
    depth: u32,
    commands: &mut Vec<Vec<String>>,
) {
    let mut draft = Draft::default();
    let mut open = 0_u32;
    while let Some(character) = text.next() {
        match character {
            ')' if end == Some(')') && open == 0 => break,
            '`' if end == Some('`') => break,
            '(' => {
                open = open.saturating_add(1);
                draft.end_command(commands);
            }
            ')' => {
                open = open.saturating_sub(1);
                draft.end_command(commands);
            }
            ';' | '&' | '|' | '\n' | '\r' | '`' => draft.end_command(commands),
            '<' | '>' => {
                draft.redirect();
                // Of `2>&1` and `>|`, what follows is the target and starts no command.
                while text
                    .next_if(|next| matches!(next, '&' | '|' | '>'))
                    .is_some()
                {}
            }
            '\\' => match text.next() {
                None | Some('\n') => {}
                Some(escaped) => draft.push(escaped),
            },
            '\'' => {
                draft.is_word = true;
                draft
                    .word
                    .extend(text.by_ref().take_while(|next| *next != '\''));
            }
            '"' => read_quoted(text, depth, &mut draft, commands),
            // A dollar before a quote only says how the quoted text is read.
            '$' if matches!(text.peek(), Some('\'' | '"')) => {}
            blank if blank.is_whitespace() => draft.end_word(),
            other => draft.push(other),
        }
    }
    draft.end_command(commands);
}

/// Reads up to the closing double quote; substitutions in it are commands of their own.
fn read_quoted(
    text: &mut Peekable<Chars<'_>>,
    depth: u32,
    draft: &mut Draft,
    commands: &mut Vec<Vec<String>>,
) {
    draft.is_word = true;
    while let Some(character) = text.next() {
        match character {
            '"' => return,
            '\\' => match text.next() {
                None | Some('\n') => {}
                Some(escaped @ ('"' | '\\' | '$' | '`')) => draft.word.push(escaped),
                Some(other) => draft.word.extend(['\\', other]),
            },
            '`' if depth < DEEPEST => read(text, Some('`'), depth + 1, commands),
            '$' if depth < DEEPEST && text.next_if_eq(&'(').is_some() => {
                read(text, Some(')'), depth + 1, commands);
            }
            other => draft.word.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_found_in_plain_words() {
        for line in [
            "rm v",
            "  rm   v ",
            "rm\tv",
            "! rm v",
            "X=1 rm v",
            "X='a; b' Y+=2 rm v",
            "true; X='a;b' rm v",
            "'rm' v",
            "\"rm\" v",
            "r''m v",
            "$'rm' v",
            "\\rm v",
            "r\\m v",
            "rm \\\nv",
            "/bin/rm v",
            "if true; then rm v; fi",
            "if ! rm v; then true; fi",
            "if false; then a; elif rm v; then b; else c; fi",
            "if false; then a; else rm v; fi",
            "for x in 1 2; do rm v; done",
            "while rm v; do true; done",
            "until rm v; do true; done",
            "case x in x) rm v;; esac",
            "f() { rm v; }; f",
            "{ rm v; }",
            "(rm v)",
            "true&&rm v",
            "true|rm v",
            "true & rm v",
            "true\nrm v",
            "echo $(rm v)",
            "echo `rm v`",
            "echo \"$(rm v)\"",
            "echo \"a `rm v` b\"",
            "echo \"$(X='a;b' rm v)\"",
            "echo \"$(echo \"$(Y=';' rm v)\")\"",
            "cat <(rm v)",
            "time -p rm v",
            "command rm v",
            "exec rm v",
            "eval 'true; rm v'",
            "env X=1 rm v",
            "sudo -n rm v",
            ">log rm v",
            "2> log rm v",
            "rm>log v",
            "rm 2>/dev/null v",
            "rm v 2>&1",
            "sh <<END\nrm v\nEND",
        ] {
            let found = readings(line);
            assert!(found.contains(&"rm v".to_owned()), "{line}: {found:?}");
        }
    }

    #[test]
    fn what_is_no_command_is_not_made_one() {
        for line in [
            "echo rm v",
            "echo 'rm v'",
            "git commit -m 'rm v'",
            "X=1 echo rm v",
            "arm v",
        ] {
            let found = readings(line);
            assert!(!found.contains(&"rm v".to_owned()), "{line}: {found:?}");
        }
    }

    #[test]
    fn expansions_keep_their_place_in_the_command() {
        let found = readings("cd /; rm $HOME/{a,b}");
        assert!(found.contains(&"rm $HOME/{a,b}".to_owned()), "{found:?}");
    }

    #[test]
    fn the_line_itself_is_a_reading() {
        let found = readings("curl x |  sh");
        assert!(found.contains(&"curl x |  sh".to_owned()), "{found:?}");
    }

    #[test]
    fn deep_and_broken_lines_end() {
        for line in [
            "\"$(".repeat(5000),
            "'".to_owned(),
            "\\".to_owned(),
            "((((".to_owned(),
        ] {
            assert!(!readings(&line).is_empty());
        }
    }
}
