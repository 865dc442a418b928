//! Text that somebody else wrote, made fit for a terminal: a model, a tool or a hook must not move the cursor,
//! hide what it asks for, or write lines that look like the program's own.

/// Escapes what a terminal would act on. Line ends and tabs stay.
pub(crate) fn safe(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if is_acted_on(character) {
            escaped.extend(character.escape_default());
        } else {
            escaped.push(character);
        }
    }
    escaped
}

/// Escapes a name or a path, which is one line: line ends too.
pub(crate) fn safe_line(text: &str) -> String {
    safe(text).replace('\n', "\\n")
}

/// Escapes a text that stands in a line of the program's own: its further lines are indented by `indent`.
pub(crate) fn inset(text: &str, indent: usize) -> String {
    let text = safe(text.trim_end_matches('\n'));
    text.replace('\n', &format!("\n{:indent$}", ""))
}

/// Says whether a terminal does more with a character than show it: it is a control character, or changes the
/// direction of those around it.
fn is_acted_on(character: char) -> bool {
    let is_direction = matches!(
        character,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    is_direction || (character.is_control() && !matches!(character, '\n' | '\t'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_acts_on_is_shown_instead() {
        for (text, expected) in [
            ("plain ünïcode\twith a tab", "plain ünïcode\twith a tab"),
            ("a\r\nb", "a\nb"),
            ("ls\rrm", "ls\\rrm"),
            ("\u{1b}[2Kls", "\\u{1b}[2Kls"),
            ("\u{9b}2K", "\\u{9b}2K"),
            ("\u{202e}sl", "\\u{202e}sl"),
            ("\u{7}\u{7f}", "\\u{7}\\u{7f}"),
        ] {
            assert_eq!(safe(text), expected);
        }
    }

    #[test]
    fn further_lines_are_indented() {
        assert_eq!(inset("ls\n● shell\n", 4), "ls\n    ● shell");
    }
}
