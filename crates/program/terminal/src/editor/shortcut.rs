//! The keys that run commands of extensions. Such a command has the name `key:` and the key, for example
//! `key:ctrl-alt-p`.

use reedline::{KeyCode, KeyModifiers};

/// The beginning of the names of these commands.
const PREFIX: &str = "key:";

/// Keys with which the user controls the program. Extensions cannot take them.
const RESERVED: [char; 2] = ['c', 'd'];

/// The keys with names.
const NAMED: &[(&str, KeyCode)] = &[
    ("space", KeyCode::Char(' ')),
    ("enter", KeyCode::Enter),
    ("return", KeyCode::Enter),
    ("tab", KeyCode::Tab),
    ("backspace", KeyCode::Backspace),
    ("delete", KeyCode::Delete),
    ("up", KeyCode::Up),
    ("down", KeyCode::Down),
    ("left", KeyCode::Left),
    ("right", KeyCode::Right),
    ("home", KeyCode::Home),
    ("end", KeyCode::End),
    ("pageup", KeyCode::PageUp),
    ("pagedown", KeyCode::PageDown),
];

/// Returns the key that runs a command, if there is one. A key that writes text or ends a line needs Ctrl or Alt.
pub(super) fn key_of(command: &str) -> Option<(KeyModifiers, KeyCode)> {
    let mut parts: Vec<&str> = command.strip_prefix(PREFIX)?.split('-').collect();
    let key = code_of(parts.pop()?)?;
    let mut modifiers = KeyModifiers::NONE;
    for part in parts {
        modifiers |= match part {
            "ctrl" => KeyModifiers::CONTROL,
            "alt" => KeyModifiers::ALT,
            "shift" => KeyModifiers::SHIFT,
            _ => return None,
        };
    }
    let has_modifier = modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
    let is_free = has_modifier || matches!(key, KeyCode::F(_));
    let is_reserved = modifiers == KeyModifiers::CONTROL
        && RESERVED
            .into_iter()
            .any(|letter| key == KeyCode::Char(letter));
    (is_free && !is_reserved).then_some((modifiers, key))
}

fn code_of(name: &str) -> Option<KeyCode> {
    if let Some((_, code)) = NAMED.iter().find(|(known, _)| *known == name) {
        return Some(*code);
    }
    let mut letters = name.chars();
    match (letters.next()?, letters.as_str()) {
        (letter, "") => Some(KeyCode::Char(letter)),
        ('f', number) => {
            let number = number.parse().ok();
            number
                .filter(|number| (1..=12).contains(number))
                .map(KeyCode::F)
        }
        ('x', code) => {
            let code = u32::from_str_radix(code, 16).ok()?;
            char::from_u32(code).map(KeyCode::Char)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_of_a_shortcut_names_a_key_that_does_not_write_text() {
        let (ctrl, alt, shift) = (
            KeyModifiers::CONTROL,
            KeyModifiers::ALT,
            KeyModifiers::SHIFT,
        );
        for (command, expected) in [
            ("key:ctrl-x", Some((ctrl, KeyCode::Char('x')))),
            ("key:ctrl-alt-p", Some((ctrl | alt, KeyCode::Char('p')))),
            ("key:ctrl-shift-up", Some((ctrl | shift, KeyCode::Up))),
            ("key:ctrl-x2e", Some((ctrl, KeyCode::Char('.')))),
            ("key:f5", Some((KeyModifiers::NONE, KeyCode::F(5)))),
            ("key:ctrl-c", None),
            ("key:ctrl-d", None),
            ("key:a", None),
            ("key:enter", None),
            ("key:shift-a", None),
            ("key:super-a", None),
            ("key:f13", None),
            ("key:", None),
            ("compact", None),
        ] {
            assert_eq!(key_of(command), expected, "{command}");
        }
    }
}
