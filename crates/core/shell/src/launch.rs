//! Finds the commands that a command runs: after a wrapper such as `timeout`, in the value of an
//! option such as `git difftool -x`, or in a line for a shell such as the argument of `sh -c`.
//!
//! In case of doubt, the tables find too many commands instead of too few. For example, an option
//! that is not in a wrapper's row may or may not take the next word as its value, so the command is
//! read in both ways.

use std::collections::BTreeSet;

use crate::assignment::is_assignment;
use crate::launch_git::git;
use crate::launches::{Launch, Launches, is_abbreviated, without_mark};
use crate::variables::Variables;
use crate::word::{Word, joined, program_name};
use crate::wrappers::{
    COMMAND_OPTIONS, COMMAND_WORDS, FED, JOINING, SETTERS, SHELLS, WRAPPERS, Wrapper, is_shell,
    wrapper,
};

/// Returns whether an option of a shell takes the next word as its value, as `-o` and `-euo` do.
fn takes_next(word: &str) -> bool {
    if let Some(long) = word.strip_prefix("--") {
        return ["rcfile", "init-file"].contains(&long);
    }
    word.starts_with(['-', '+']) && word.ends_with(['o', 'O'])
}

/// Returns the commands that a command runs. Its first word is its program. `room` is the limit on their
/// total size, in bytes.
pub(super) fn launched(words: &[Word], room: usize, variables: &Variables) -> Launches {
    let mut launches = Launches::new(room);
    let Some((program, arguments)) = words.split_first() else {
        return launches;
    };
    let name = program_name(program.as_str());
    let is_dynamic_linker = name.starts_with("ld-") || name.starts_with("ld.");
    let linker = wrapper("ld.so");
    let found = if is_dynamic_linker {
        Some(&linker)
    } else {
        WRAPPERS.iter().find(|wrapper| wrapper.name == name)
    };
    if let Some(wrapper) = found {
        wrapped(wrapper, arguments, &mut launches);
    }
    // A variable may contain the name of a shell, such as `$SHELL`.
    if SHELLS.contains(&name) || name.starts_with('$') {
        // Other shells have another syntax, so what looks hidden in it may not be.
        let is_posix = !["elvish", "fish", "nu", "pwsh", "xonsh"].contains(&name);
        shell_lines(arguments, is_posix, &mut launches);
    }
    if sets_variables(name) {
        set_variables(arguments, &mut launches);
    }
    special_arguments(name, arguments, &mut launches);
    let subcommand = if name == "git" {
        Some(git(arguments, variables, &mut launches))
    } else {
        None
    };
    let is_key = |of: &[&str]| match of {
        [program] => *program == name,
        [program, of] => *program == name && Some(*of) == subcommand,
        _ => false,
    };
    for (_, options) in COMMAND_OPTIONS.iter().filter(|(of, _)| is_key(of)) {
        for option in *options {
            option_values(option, arguments, &mut launches);
        }
    }
    for (_, before) in COMMAND_WORDS.iter().filter(|(of, _)| is_key(of)) {
        let starts = arguments.iter().enumerate();
        for (at, _) in starts.filter(|(_, word)| before.contains(&word.as_str())) {
            command_at(arguments.get(at + 1..).unwrap_or_default(), &mut launches);
        }
    }
    launches
}

/// Returns whether a program runs the words or lines that it reads.
pub(super) fn is_fed(name: &str) -> bool {
    FED.contains(&name)
}

/// Returns whether a program that runs others has a name with this beginning.
pub(super) fn runs_others(start: &str) -> bool {
    let wrappers = WRAPPERS.iter().map(|wrapper| wrapper.name);
    let others = ["eval", "find", "git", "source", "tar", "rsync"];
    wrappers
        .chain(SHELLS)
        .chain(others)
        .any(|name| name.starts_with(start))
}

/// Returns whether a program sets the variables that its arguments name.
pub(super) fn sets_variables(name: &str) -> bool {
    SETTERS.contains(&name)
}

/// Returns whether a program runs the files that its arguments name.
pub(super) fn runs_file(name: &str) -> bool {
    is_shell(name) || [".", "source"].contains(&name)
}

/// Returns whether a command runs the text that it reads: a shell with neither `-c` nor a script, for example.
pub(super) fn reads_input(name: &str, words: &[Word]) -> bool {
    if name == "parallel" || name == "su" {
        return true;
    }
    if !runs_file(name) {
        return false;
    }
    let mut arguments = words.iter().skip(1).map(Word::as_str);
    while let Some(word) = arguments.next() {
        if takes_next(word) {
            arguments.next();
        } else if let Some(letters) = word.strip_prefix('-') {
            let letters = letters.strip_prefix('-').map_or(letters, |_| "");
            if letters.contains('c') {
                return false;
            }
            if letters.contains('s') || letters.is_empty() && !word.starts_with("--") {
                return true;
            }
        } else if !word.starts_with('+') {
            let path = word.replace("//", "/");
            return ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"].contains(&path.as_str());
        }
    }
    is_shell(name)
}

/// Returns the commands that `xargs` makes of its command and the text that it reads.
pub(super) fn with_input(words: &[Word], arguments: &[Word], text: &str) -> Vec<Vec<Word>> {
    let mut options = arguments.iter().map(Word::as_str);
    let placeholder = options.find_map(|word| {
        let rest = word
            .strip_prefix("-I")
            .or_else(|| word.strip_prefix("--replace"))?;
        let rest = rest.strip_prefix('=').unwrap_or(rest);
        Some(if rest.is_empty() { "" } else { rest })
    });
    let at = arguments.iter().position(|word| word.as_str() == "-I");
    let next = at.and_then(|at| arguments.get(at + 1)).map(Word::as_str);
    let placeholder = placeholder.map(|it| {
        if it.is_empty() {
            next.unwrap_or("{}")
        } else {
            it
        }
    });
    if let Some(placeholder) = placeholder {
        let lines = text.lines().take(MAX_INPUT_LINES);
        let replaced = lines.map(|line| {
            let words = words.iter();
            let words = words.map(|word| Word::known(word.as_str().replace(placeholder, line)));
            words.collect()
        });
        return replaced.collect();
    }
    // Quotes in the text group words, as in a shell.
    let quoted = crate::commands::commands(&text.replace(['\n', '\0'], " "));
    let quoted = quoted.into_iter().flatten().map(Word::known);
    let plain = Word::known(text).split("").words;
    [quoted.collect(), plain]
        .into_iter()
        .map(|more: Vec<Word>| words.iter().cloned().chain(more).collect())
        .collect()
}

/// How many lines of a text make commands of their own.
const MAX_INPUT_LINES: usize = 64;

/// Returns the commands in the value of a variable, if programs run it.
pub(super) fn variable_commands(name: &str, value: &str) -> Vec<Launch> {
    let line = |line: &str| Launch::Line {
        line: line.to_owned(),
        is_certain: false,
        parameters: Vec::new(),
    };
    if name == "GIT_CONFIG_PARAMETERS" {
        // Its value is a list of quoted settings, as `git -c` takes them.
        let value = value.replace("'='", "=");
        let settings = crate::commands::commands(&value).into_iter().flatten();
        let git = settings.map(|setting| Launch::Words {
            words: ["git", "-c", &setting].map(Word::known).to_vec(),
            is_certain: false,
        });
        return git.collect();
    }
    let ends = [
        "PAGER",
        "EDITOR",
        "ASKPASS",
        "_RSH",
        "VISUAL",
        "BROWSER",
        "LESSOPEN",
        "LESSCLOSE",
        "SSH_COMMAND",
        "PROXY_COMMAND",
        "PROMPT_COMMAND",
        "EXTERNAL_DIFF",
        "GIT_SSH",
    ];
    let is_setting = name.starts_with("GIT_CONFIG_VALUE_");
    if !is_setting && !ends.iter().any(|end| name.ends_with(end)) {
        return Vec::new();
    }
    // A value of git's configuration may be an alias, whose command starts with `!`. One of `less` starts with `|`.
    vec![line(value.trim_start_matches(['!', '|', '-']))]
}

/// Adds the commands in arguments that only one program has in this form.
fn special_arguments(name: &str, arguments: &[Word], launches: &mut Launches) {
    match name {
        "env" => split_strings(arguments, launches),
        "tar" => tar_letters(arguments, launches),
        "eval" => {
            let is_end = arguments.first().is_some_and(|word| word.as_str() == "--");
            let line = arguments.get(usize::from(is_end)..).unwrap_or_default();
            launches.joined(line, true);
        }
        "trap" => {
            let mut words = arguments.iter().map(Word::as_str);
            if let Some(line) = words.find(|word| !word.starts_with('-')) {
                launches.line(line, true);
            }
        }
        "alias" => {
            for word in arguments {
                if let Some((_, line)) = word.as_str().split_once('=') {
                    launches.line(line, false);
                }
            }
        }
        _ => {}
    }
}

/// Returns the positions in a wrapper's words at which its command may begin.
fn command_positions(wrapper: &Wrapper, words: &[Word]) -> BTreeSet<usize> {
    let is_joining = JOINING.contains(&wrapper.name);
    let mut open = BTreeSet::from([0]);
    let mut commands = BTreeSet::new();
    let end = |at: usize, commands: &mut BTreeSet<usize>| {
        commands.insert(at + wrapper.operands);
        if wrapper.is_optional {
            commands.insert(at);
        }
    };
    // `env` sets variables of any name, and people give it the output of a program.
    let is_skipped = |at: usize| {
        let word = words.get(at);
        word.is_some_and(|word| word.as_str().contains('=') || word.has_output())
    };
    // Positions only grow, so each one is checked once.
    while let Some(at) = open.pop_first() {
        let Some(word) = words.get(at).map(Word::as_str) else {
            continue;
        };
        if word == "--" {
            end(at + 1, &mut commands);
        } else if word == "-" {
            // `env - x` means `env -i x`. For other programs, `-` may be an operand.
            open.insert(at + 1);
            end(at, &mut commands);
        } else if word.starts_with('-') {
            let is_flag = |letters: &str| letters.chars().all(|c| wrapper.flags.contains(c));
            let is_known = word.strip_prefix('-').is_some_and(is_flag) || word.contains('=');
            if wrapper.valued.contains(&word) || ends_with_valued(wrapper, word) {
                open.insert(at + 2);
            } else if is_known || has_attached_value(wrapper, word) {
                open.insert(at + 1);
            } else {
                open.extend([at + 1, at + 2]);
            }
        } else if is_assignment(word) && !is_joining || wrapper.name == "env" && is_skipped(at) {
            open.insert(at + 1);
        } else {
            end(at, &mut commands);
        }
    }
    commands
}

/// Adds the commands that may follow a wrapper's options.
fn wrapped(wrapper: &Wrapper, words: &[Word], launches: &mut Launches) {
    // `command -v x` only looks for a program.
    let is_option = |word: &&Word| word.as_str().starts_with('-');
    let mut options = words.iter().take_while(is_option);
    if wrapper.name == "command" && options.any(|word| word.as_str().contains(['v', 'V'])) {
        return;
    }
    let is_joining = JOINING.contains(&wrapper.name);
    let commands = command_positions(wrapper, words);
    // An unknown option may take the next word.
    let is_shown = words.iter().take(1).all(Word::is_known);
    let is_only = commands.len() == 1 && is_shown;
    let commands = commands.into_iter().map(|mut at| {
        // `ssh HOST -p 22 LINE` has options after its operand, too.
        while wrapper.name == "ssh"
            && let Some(word) = words.get(at).map(Word::as_str)
            && word.starts_with('-')
        {
            at += 1 + usize::from(wrapper.valued.contains(&word));
        }
        words.get(at..).unwrap_or_default()
    });
    for words in commands.filter(|words| !words.is_empty()) {
        if is_joining {
            launches.joined(words, is_only);
        }
        launches.words(words, !is_joining);
    }
}

/// Returns whether a word is a group of options of which the last takes the next word, such as `-Hu`.
fn ends_with_valued(wrapper: &Wrapper, word: &str) -> bool {
    let letters = word.strip_prefix('-').unwrap_or_default();
    let Some((flags, last)) = letters
        .char_indices()
        .next_back()
        .and_then(|(at, _)| letters.split_at_checked(at))
    else {
        return false;
    };
    let mut valued = wrapper
        .valued
        .iter()
        .filter_map(|option| option.strip_prefix('-'));
    !flags.is_empty()
        && flags.chars().all(|c| wrapper.flags.contains(c))
        && valued.any(|option| option == last)
}

/// Returns whether a word is an option with its value, such as `-n1`.
fn has_attached_value(wrapper: &Wrapper, word: &str) -> bool {
    let mut valued = wrapper.valued.iter().filter(|option| option.len() == 2);
    valued.any(|option| word.len() > 2 && word.starts_with(option))
}

/// Adds the lines that a shell gets with `-c`.
fn shell_lines(words: &[Word], is_certain: bool, launches: &mut Launches) {
    let is_c = |word: &Word| {
        let word = word.as_str();
        let letters = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        letters.is_some_and(|letters| letters.contains('c')) || word.starts_with("--c")
    };
    let Some(at) = words.iter().position(is_c) else {
        return;
    };
    if let Some((_, line)) = words.get(at).and_then(|word| word.as_str().split_once('=')) {
        launches.line(line, false);
    }
    // The line is the first word after the options. The words after it are its parameters.
    let mut line = at;
    while let Some(word) = words.get(line).map(Word::as_str) {
        if takes_next(word) {
            line += 2;
        } else if word.starts_with(['-', '+']) && word.len() > 1 {
            line += 1;
        } else {
            break;
        }
    }
    if let Some(word) = words.get(line) {
        let parameters = words.get(line + 1..).unwrap_or_default();
        launches.line_with(word.as_str(), is_certain, parameters);
    }
}

/// Adds the strings that `env -S` splits into words.
fn split_strings(words: &[Word], launches: &mut Launches) {
    for (at, word) in words.iter().map(Word::as_str).enumerate() {
        let short = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        let short = short
            .and_then(|rest| rest.split_once('S'))
            .map(|(_, text)| text);
        let is_long = word.starts_with("--s");
        let long = word
            .split_once('=')
            .filter(|_| is_long)
            .map(|(_, text)| text);
        let is_alone = is_long && !word.contains('=');
        let Some(text) = short.or(long).or(is_alone.then_some("")) else {
            continue;
        };
        let rest = words.get(at + 1..).unwrap_or_default();
        // `env` reads `\_` as a space. The words that it makes may again be its own options.
        let line = format!("env {text} {}", joined(rest)).replace("\\_", " ");
        launches.line(&line, true);
        // The rest of the words could be joined as often as there are words.
        if !launches.is_complete {
            return;
        }
    }
}

/// Adds the commands in the variables that commands such as `env` and `export` set.
fn set_variables(words: &[Word], launches: &mut Launches) {
    for word in words {
        if let Some((name, value)) = word.as_str().split_once('=') {
            launches.found.extend(variable_commands(name, value));
        }
    }
}

/// Adds the value of an option in the first word of `tar`, which needs no dash: `tar cIf COMMAND FILE`.
fn tar_letters(words: &[Word], launches: &mut Launches) {
    let Some((letters, values)) = words.split_first() else {
        return;
    };
    let letters = letters.as_str();
    let letters = letters.strip_prefix('-').unwrap_or(letters);
    if !letters.starts_with('-') && letters.contains(['I', 'F']) {
        // Which value belongs to which letter depends on the letters before it.
        for value in values.iter().take(letters.len()) {
            launches.line(value.as_str(), false);
        }
    }
}

/// Adds the values of an option: the next word, or the text that is attached to the option.
fn option_values(option: &str, words: &[Word], launches: &mut Launches) {
    let letter = option.strip_prefix('-').filter(|letter| letter.len() == 1);
    for (at, word) in words.iter().map(Word::as_str).enumerate() {
        let attached = if let Some(letter) = letter {
            let letters = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
            letters
                .and_then(|letters| letters.split_once(letter))
                .map(|(_, rest)| rest)
        } else {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            is_abbreviated(option, name).then_some(value)
        };
        let Some(attached) = attached else { continue };
        let value = if attached.is_empty() {
            words.get(at + 1).map_or("", Word::as_str)
        } else {
            attached
        };
        // In `core.pager=CMD` or `exec=CMD`, the command comes after the `=`.
        if let Some((_, inner)) = value.split_once('=') {
            launches.line(without_mark(inner), false);
        }
        // `ssh -o` also takes a space between the name and the command.
        if option == "-o"
            && let Some((_, inner)) = value.split_once(' ')
        {
            launches.line(inner, false);
        }
        launches.line(value, false);
    }
}

/// Adds the command that starts with these words and ends at `;` or `+`.
fn command_at(words: &[Word], launches: &mut Launches) {
    // `+` ends a command only after `{}`.
    let before = std::iter::once(None).chain(words.iter().map(Some));
    let mut pairs = before.zip(words);
    let end = pairs.position(|(before, word)| {
        let is_after_file = before.is_some_and(|before| before.as_str() == "{}");
        word.as_str() == ";" || word.as_str() == "+" && is_after_file
    });
    let end = end.unwrap_or(words.len());
    let words = words.get(..end).unwrap_or_default();
    let is_option = |word: &&Word| word.as_str().starts_with('-');
    let skipped = words.iter().take_while(is_option).count();
    let words = words.get(skipped..).unwrap_or_default();
    launches.words(words, true);
    // `git bisect run` and `git submodule foreach` also take a line.
    if words.len() == 1 {
        launches.joined(words, false);
    }
}
