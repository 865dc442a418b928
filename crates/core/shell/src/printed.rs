//! What `echo` and `printf` print.

use std::iter::Peekable;
use std::str::Chars;

use crate::word::{Word, joined, program_name};

/// How often `printf` uses its format again for more arguments.
const MAX_ROUNDS: usize = 64;

/// Returns the text that a command prints, if it is a command that prints its arguments.
pub(crate) fn printed(words: &[Word]) -> Option<String> {
    let (program, arguments) = words.split_first()?;
    match program_name(program.as_str()) {
        "echo" => {
            let is_option = |word: &Word| {
                let letters = word.as_str().strip_prefix('-').unwrap_or_default();
                !letters.is_empty() && letters.chars().all(|c| "neE".contains(c))
            };
            let options = arguments.iter().take_while(|word| is_option(word)).count();
            let (options, words) = arguments.split_at_checked(options)?;
            let text = joined(words);
            let has_escapes = options.iter().any(|word| word.as_str().contains('e'));
            Some(if has_escapes { unescaped(&text) } else { text })
        }
        "printf" => {
            let skipped = usize::from(arguments.first().is_some_and(|word| word.as_str() == "--"));
            let (format, values) = arguments.get(skipped..)?.split_first()?;
            formatted(format.as_str(), values)
        }
        // These print the name of a program, or nothing.
        "which" => arguments
            .iter()
            .map(|word| Some(word.as_str().to_owned()))
            .next()?,
        "command" => match arguments {
            [option, name] if option.as_str() == "-v" => Some(name.as_str().to_owned()),
            _ => None,
        },
        name if SILENT.contains(&name) => Some(String::new()),
        _ => None,
    }
}

/// Commands that print nothing.
const SILENT: [&str; 13] = [
    ":", "[", "cd", "exit", "export", "false", "read", "return", "set", "shift", "test", "true",
    "unset",
];

/// Programs that print settings of a shell, which people run with `eval`.
const SETTINGS: [&str; 16] = [
    "brew",
    "conda",
    "direnv",
    "dircolors",
    "fnm",
    "luarocks",
    "minikube",
    "mise",
    "nodenv",
    "opam",
    "pyenv",
    "rbenv",
    "ssh-agent",
    "starship",
    "zoxide",
    "rtx",
];

/// Returns whether a command prints settings of a shell, as `ssh-agent -s` does.
pub(crate) fn prints_settings(words: &[Word]) -> bool {
    let program = words.first().map_or("", Word::as_str);
    SETTINGS.contains(&program_name(program))
}

/// Returns what `printf` makes of a format and its arguments.
fn formatted(format: &str, values: &[Word]) -> Option<String> {
    let format = unescaped(format);
    let mut values = values.iter();
    let mut text = String::new();
    for _ in 0..MAX_ROUNDS {
        let before = values.len();
        let mut rest = format.as_str();
        while let Some((plain, after)) = rest.split_once('%') {
            text.push_str(plain);
            let (width, after) = split_width(after);
            let precision = after.strip_prefix('.').map(split_width);
            let (precision, after) = precision.map_or((None, after), |(digits, after)| {
                (digits.parse::<usize>().ok(), after)
            });
            let has_width = !width.is_empty() && width != "-";
            let mut characters = after.chars();
            match characters.next() {
                Some('%') => text.push('%'),
                // A width only adds spaces.
                Some('s') => {
                    let value = next(&mut values).chars();
                    text.extend(value.take(precision.unwrap_or(usize::MAX)));
                }
                Some('b') if !has_width => text.push_str(&unescaped(next(&mut values))),
                Some('c') => text.extend(next(&mut values).chars().next()),
                Some('d' | 'i' | 'u') if !has_width => text.push_str(next(&mut values)),
                Some('q') => text.push_str(next(&mut values)),
                // What other directives print is not followed.
                Some(_) | None => return None,
            }
            rest = characters.as_str();
        }
        text.push_str(rest);
        if values.len() == 0 || values.len() == before {
            break;
        }
    }
    Some(text)
}

/// Splits the flags and digits off the text after `%` or a dot.
fn split_width(text: &str) -> (&str, &str) {
    let is_flag = |c: char| c.is_ascii_digit() || "-+ #".contains(c);
    let rest = text.trim_start_matches(is_flag);
    text.split_at(text.len() - rest.len())
}

fn next<'a>(values: &mut std::slice::Iter<'a, Word>) -> &'a str {
    values.next().map_or("", Word::as_str)
}

/// Reads the character with the number that the next digits are, of which there are at most `max`.
fn number(characters: &mut Peekable<Chars<'_>>, radix: u32, max: usize) -> Option<char> {
    let mut digits = String::new();
    while digits.len() < max
        && let Some(digit) = characters.next_if(|digit| digit.is_digit(radix))
    {
        digits.push(digit);
    }
    let value = u32::from_str_radix(&digits, radix).ok();
    value.and_then(char::from_u32)
}

/// Replaces escapes such as `\n` and `\x41` with their characters.
pub(crate) fn unescaped(text: &str) -> String {
    if !text.contains('\\') {
        return text.to_owned();
    }
    let mut result = String::new();
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        if character != '\\' {
            result.push(character);
            continue;
        }
        let found = match number(&mut characters, 8, 4) {
            Some(value) => Some(value),
            None => match characters.next() {
                Some('n') => Some('\n'),
                Some('t') => Some('\t'),
                Some('r') => Some('\r'),
                Some('x') => number(&mut characters, 16, 2),
                Some('u') => number(&mut characters, 16, 4),
                Some('U') => number(&mut characters, 16, 8),
                Some('\\') | None => Some('\\'),
                Some(other) => {
                    result.push('\\');
                    Some(other)
                }
            },
        };
        result.extend(found);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_echo_and_printf_is_known() {
        for (words, expected) in [
            (&["echo", "a", "b"][..], Some("a b")),
            (&["echo", "-n", "-e", "a\\nb"], Some("a\nb")),
            (&["echo", "-x"], Some("-x")),
            (&["/bin/echo", "\\x72m"], Some("\\x72m")),
            (&["printf", "%s %s\\n", "a", "b"], Some("a b\n")),
            (&["printf", "%s ", "a", "b"], Some("a b ")),
            (&["printf", "\\162m 100%%"], Some("rm 100%")),
            (&["printf", "--", "a"], Some("a")),
            (&["printf"], None),
            (&["cat", "x"], None),
        ] {
            let words: Vec<Word> = words.iter().map(|word| Word::known(*word)).collect();
            assert_eq!(printed(&words).as_deref(), expected, "{words:?}");
        }
    }
}
