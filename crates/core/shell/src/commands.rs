//! Lists the commands of a line, each as its words.

use std::cell::Cell;

use crate::expand::Expander;
use crate::parse::parse;
use crate::script::{Operation, Part, RawWord, Role, Script};
use crate::variables::{Choice, Variables};
use crate::word::Word;

/// Returns the commands of a line, each as its words. Commands in substitutions are included. Braces are expanded, and
/// variables are as written.
pub fn commands(line: &str) -> Vec<Vec<String>> {
    let parsed = parse(line);
    let mut found = Vec::new();
    in_script(&parsed.script, &mut found);
    for body in &parsed.bodies {
        in_word(body, &mut found);
    }
    found
}

fn in_script(script: &Script, found: &mut Vec<Vec<String>>) {
    for command in &script.commands {
        for word in &command.words {
            in_word(word, found);
        }
        for redirection in &command.redirections {
            in_word(&redirection.target, found);
        }
        if command.role != Role::Command || command.words.is_empty() {
            continue;
        }
        let expander = Expander {
            variables: &Variables::default(),
            choice: &Choice::default(),
            expands_braces: true,
            is_complete: Cell::new(true),
            depth: 0,
        };
        let words = expander.words(&command.words);
        found.push(words.into_iter().map(Word::into_string).collect());
    }
}

fn in_word(word: &RawWord, found: &mut Vec<Vec<String>>) {
    for part in &word.parts {
        match part {
            Part::Output { script, .. } => in_script(script, found),
            Part::Array(values) => values.iter().for_each(|value| in_word(value, found)),
            Part::Variable(variable) => match &variable.operation {
                Operation::Alternative(_, word) | Operation::Other(word) => in_word(word, found),
                Operation::Value | Operation::Element(_) => {}
            },
            Part::Plain(_) | Part::Quoted(_) | Part::Unknown(_) => {}
        }
    }
}
