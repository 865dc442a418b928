//! Finds files that a line would overwrite: the target of `>`, `cp` and `mv`.

use std::path::{Path, PathBuf};

use tenterhook_shell::{LineWord, LineWordKind, words};

/// Options with which `cp` and `mv` keep the file that exists.
const KEEP: [&str; 3] = ["--no-clobber", "--backup", "--update=none"];

/// Returns the first file with content that the line would overwrite, as the line names it. Files whose names are known
/// only when the line runs are not found. This waits for the disk.
pub(super) fn overwritten(line: &str, dir: &Path) -> Option<String> {
    let words = words(line, dir);
    let place = Place {
        dir,
        is_left: words
            .iter()
            .any(|word| ["cd", "pushd"].contains(&word.raw.as_str())),
    };
    let mut outputs = words
        .iter()
        .filter(|word| word.kind == LineWordKind::Output && truncates(line, word));
    let output = outputs.find_map(|word| place.with_content(Path::new(word.text.as_deref()?)));
    let commands = words.chunk_by(|one, next| one.command == next.command);
    output.or_else(|| {
        commands
            .into_iter()
            .find_map(|words| replaced(words, &place))
    })
}

/// Reports whether the redirection before this word empties its file. `>>` appends, and `2>&1` names no file.
fn truncates(line: &str, word: &LineWord) -> bool {
    let before = line.get(..word.range.start).unwrap_or_default().trim_end();
    let is_number = word.raw.chars().all(|c| c.is_ascii_digit() || c == '-');
    !(before.ends_with(">>") || before.ends_with(">&") && is_number)
}

/// Returns the file that `cp` or `mv` replaces.
fn replaced(words: &[LineWord], place: &Place<'_>) -> Option<String> {
    let mut plain = words
        .iter()
        .filter(|word| word.kind == LineWordKind::Plain)
        .map(|word| word.text.as_deref());
    let program = Path::new(plain.next()??).file_name()?.to_str()?;
    if !["cp", "mv"].contains(&program) {
        return None;
    }
    let (options, operands): (Vec<_>, Vec<_>) = plain
        .filter(|word| *word != Some("--"))
        .partition(|word| word.is_some_and(|word| word.starts_with('-')));
    let keeps = |option: &str| {
        let letters = option.strip_prefix('-').unwrap_or_default();
        let is_long = letters.starts_with('-');
        KEEP.iter().any(|keep| option.starts_with(keep))
            || !is_long && letters.contains(['n', 'b', 't', 'S'])
    };
    // Options that name the target or a suffix take a word, so the last word means something else.
    if options.into_iter().flatten().any(keeps) {
        return None;
    }
    let (target, sources) = operands.split_last()?;
    let target = Path::new((*target)?);
    if sources.is_empty() {
        return None;
    }
    let inside = sources.iter().flatten().filter_map(|source| {
        let name = Path::new(source).file_name()?;
        Some(target.join(name))
    });
    std::iter::once(target.to_owned())
        .chain(inside)
        .find_map(|file| place.with_content(&file))
}

/// Where a line runs.
struct Place<'a> {
    dir: &'a Path,
    /// Whether the line changes its directory, so that relative names are unknown.
    is_left: bool,
}

impl Place<'_> {
    /// Returns the name of a file if it exists and is not empty.
    fn with_content(&self, file: &Path) -> Option<String> {
        if self.is_left && file.is_relative() {
            return None;
        }
        let path: PathBuf = self.dir.join(file);
        let metadata = path.metadata().ok()?;
        (metadata.is_file() && metadata.len() > 0).then(|| file.display().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_content_that_the_line_replaces_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        std::fs::create_dir(dir.join("sub")).unwrap();
        for file in ["a", "b", "it is", "sub/a"] {
            std::fs::write(dir.join(file), "content").unwrap();
        }
        std::fs::write(dir.join("empty"), "").unwrap();
        for (line, expected) in [
            ("echo x > a", Some("a")),
            ("make 2>a", Some("a")),
            ("make &> a", Some("a")),
            ("echo x >| 'it is'", Some("it is")),
            ("echo x > \"$PWD/a\"", Some("a")),
            ("cp a b", Some("b")),
            ("true && /bin/mv -v a b", Some("b")),
            ("cp new a sub", Some("sub/a")),
            ("cp a ./sub/", Some("./sub/a")),
            ("mv -- a b", Some("b")),
            ("echo x >> a", None),
            ("make 2>&1", None),
            ("echo x > new", None),
            ("echo x > empty", None),
            ("echo x > /dev/null", None),
            ("cp a new", None),
            ("cp b sub", None),
            ("cp -n a b", None),
            ("cp --backup=numbered a b", None),
            ("cp a", None),
            ("cat a b", None),
            ("cd sub && cp x a", None),
            ("cp a $x", None),
            ("echo 'x > a'", None),
        ] {
            let found = overwritten(line, dir);
            let found = found.map(|file| file.replace(&format!("{}/", dir.display()), ""));
            assert_eq!(found.as_deref(), expected, "{line}");
        }
    }
}
