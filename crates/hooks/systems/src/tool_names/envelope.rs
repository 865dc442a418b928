//! Parses the patch format between `*** Begin Patch` and `*** End Patch`, which names every file that it changes.
//!
//! ```text
//! *** Begin Patch
//! *** Add File: a.txt
//! +a line
//! *** Update File: b.txt
//! *** Move to: c.txt
//! @@ fn main() {
//!  context
//! -old
//! +new
//! *** Delete File: d.txt
//! *** End Patch
//! ```
//!
//! The parser follows kodelet's (`pkg/tools/apply_patch.go`), so that it finds the operations that kodelet performs. It
//! refuses everything that kodelet refuses.

use serde_json::Value;
use tenterhook_engine::CanonicalCall;
use tenterhook_protocol::JsonObject;

use crate::tool_names::row::Problem;

/// The canonical tools to which a patch's operations are translated.
pub(crate) const TOOLS: [&str; 3] = ["edit_file", "write_file", "delete_file"];

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const ADD: &str = "*** Add File: ";
const DELETE: &str = "*** Delete File: ";
const UPDATE: &str = "*** Update File: ";
const MOVE: &str = "*** Move to: ";
const END_OF_FILE: &str = "*** End of File";

/// Writes the patch of one operation: an edit, a new file, or else a deletion.
pub(crate) fn written(tool: &str, rest: &mut JsonObject) -> Result<String, Problem> {
    let mut take = |key: &str| match rest.remove(key) {
        Some(Value::String(text)) => Ok(text),
        Some(other) => Err(format!("`{key}` is {other}, expected a string")),
        None => Err(format!("`{key}` is missing")),
    };
    let path = take("path")?;
    match tool {
        "write_file" => addition(&path, &take("content")?),
        "edit_file" => update(&path, &take("old_text")?, &take("new_text")?),
        _ => deletion(&path),
    }
}

/// Writes the patch that creates a file. Its last line gets a line break, because patches have no files without one.
fn addition(path: &str, content: &str) -> Result<String, Problem> {
    // A file of one empty line is not an empty file.
    let lines = match content.strip_suffix('\n') {
        Some("") => "+\n".to_owned(),
        text => prefixed("+", text.unwrap_or(content)),
    };
    Ok(format!("{BEGIN}\n{ADD}{}\n{lines}{END}", checked(path)?))
}

/// Writes the patch that replaces a text in a file.
fn update(path: &str, old: &str, new: &str) -> Result<String, Problem> {
    let lines = prefixed("-", old) + &prefixed("+", new);
    Ok(format!(
        "{BEGIN}\n{UPDATE}{}\n@@\n{lines}{END}",
        checked(path)?
    ))
}

/// Returns the lines of a text, each behind a mark. An empty text has no lines.
fn prefixed(mark: &str, text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let lines = text.split('\n').flat_map(|line| [mark, line, "\n"]);
    lines.collect()
}

/// Writes the patch that deletes a file.
fn deletion(path: &str) -> Result<String, Problem> {
    Ok(format!("{BEGIN}\n{DELETE}{}\n{END}", checked(path)?))
}

/// Refuses a path that a patch cannot contain.
fn checked(path: &str) -> Result<&str, Problem> {
    if path.trim() != path || path.contains('\n') {
        return Err(
            "`path` begins or ends with a space, or has a line break; a patch cannot contain such a path".into(),
        );
    }
    Ok(path)
}

/// Returns the operations of a patch in order. `others` are the arguments next to the patch; each operation gets them.
pub(crate) fn operations(patch: &str, others: &JsonObject) -> Result<Vec<CanonicalCall>, Problem> {
    let patch = patch.trim();
    let mut reader = Reader {
        // A carriage return belongs to its line, because it is written to the file.
        lines: patch.split('\n').enumerate().collect(),
        next: 0,
        operations: Vec::new(),
        others,
    };
    reader.patch()?;
    Ok(reader.operations)
}

struct Reader<'a> {
    /// The lines with their positions, from 0.
    lines: Vec<(usize, &'a str)>,
    next: usize,
    operations: Vec<CanonicalCall>,
    others: &'a JsonObject,
}

/// The old and the new lines of one change.
#[derive(Default)]
struct Change<'a> {
    old: Vec<&'a str>,
    new: Vec<&'a str>,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.lines.get(self.next).map(|(_, line)| *line)
    }

    fn problem(&self, expected: &str) -> Problem {
        match self.lines.get(self.next) {
            Some((at, line)) => format!(
                "line {} of the patch is `{}`, expected {expected}",
                at + 1,
                shortened(line)
            ),
            None => format!("the patch ends early, expected {expected}"),
        }
    }

    fn patch(&mut self) -> Result<(), Problem> {
        if self.peek().is_none_or(|line| line.trim() != BEGIN) {
            return Err(self.problem(&format!("`{BEGIN}`")));
        }
        if self.lines.last().is_none_or(|(_, line)| line.trim() != END) {
            return Err(format!("the patch does not end with `{END}`"));
        }
        self.lines.pop();
        self.next = 1;
        while let Some(line) = self.peek() {
            let header = line.trim();
            if let Some(path) = header.strip_prefix(ADD) {
                self.add(path)?;
            } else if let Some(path) = header.strip_prefix(DELETE) {
                self.next += 1;
                self.push("delete_file", path, [])?;
            } else if let Some(path) = header.strip_prefix(UPDATE) {
                self.update(path)?;
            } else {
                return Err(
                    self.problem("`*** Add File: `, `*** Update File: ` or `*** Delete File: `")
                );
            }
        }
        Ok(())
    }

    fn add(&mut self, path: &str) -> Result<(), Problem> {
        self.next += 1;
        let mut content = String::new();
        while let Some(line) = self.peek().and_then(|line| line.strip_prefix('+')) {
            content.push_str(line);
            content.push('\n');
            self.next += 1;
        }
        self.push("write_file", path, [("content", content)])
    }

    fn update(&mut self, path: &str) -> Result<(), Problem> {
        self.next += 1;
        let moved = self.peek().and_then(|line| line.trim().strip_prefix(MOVE));
        if moved.is_some() {
            self.next += 1;
        }
        let mut changes = Vec::new();
        while let Some(line) = self.peek() {
            if line.trim().is_empty() {
                self.next += 1;
                continue;
            }
            if line.starts_with("***") {
                break;
            }
            changes.push(self.change(changes.is_empty())?);
        }
        if changes.is_empty() {
            return Err(self.problem(&format!("a change of `{}`", shortened(path))));
        }
        let moved = moved.filter(|moved| *moved != path);
        for change in &changes {
            self.edit(path, change)?;
        }
        // A move deletes the old file and writes the changed text to the new one. A guard of either path must see it.
        if let Some(moved) = moved {
            for change in &changes {
                self.edit(moved, change)?;
            }
            self.push("delete_file", path, [])?;
        }
        Ok(())
    }

    fn change(&mut self, is_first: bool) -> Result<Change<'a>, Problem> {
        let head = self.peek().unwrap_or_default().trim();
        if head == "@@" || head.starts_with("@@ ") {
            self.next += 1;
        } else if !is_first {
            return Err(self.problem("`@@`"));
        }
        let mut change = Change::default();
        let start = self.next;
        while let Some(line) = self.peek() {
            if line.trim() == END_OF_FILE && self.next > start {
                self.next += 1;
                break;
            }
            if line.is_empty() {
                change.old.push("");
                change.new.push("");
            } else if let Some(line) = line.strip_prefix(' ') {
                change.old.push(line);
                change.new.push(line);
            } else if let Some(line) = line.strip_prefix('+') {
                change.new.push(line);
            } else if let Some(line) = line.strip_prefix('-') {
                change.old.push(line);
            } else {
                break;
            }
            self.next += 1;
        }
        if self.next == start {
            return Err(self.problem("a line that begins with ` `, `+` or `-`"));
        }
        Ok(change)
    }

    fn edit(&mut self, path: &str, change: &Change<'_>) -> Result<(), Problem> {
        let texts = [
            ("old_text", change.old.join("\n")),
            ("new_text", change.new.join("\n")),
        ];
        self.push("edit_file", path, texts)
    }

    fn push<const N: usize>(
        &mut self,
        tool: &str,
        path: &str,
        texts: [(&str, String); N],
    ) -> Result<(), Problem> {
        if path.is_empty() {
            return Err("a file of the patch has no name".to_owned());
        }
        let mut input = JsonObject::new();
        input.insert("path".to_owned(), path.into());
        input.extend(texts.map(|(key, text)| (key.to_owned(), Value::from(text))));
        for (key, value) in self.others {
            if input.contains_key(key) {
                return Err(format!("`{key}` cannot be given next to a patch"));
            }
            input.insert(key.clone(), value.clone());
        }
        self.operations.push(CanonicalCall {
            tool: tool.to_owned(),
            input,
        });
        Ok(())
    }
}

/// Cuts a line to a length that a message can show.
pub(crate) fn shortened(line: &str) -> &str {
    tenterhook_protocol::excerpt::head(line, 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(patch: &str) -> Result<Vec<(String, String, String)>, Problem> {
        let text = |call: &CanonicalCall, key: &str| {
            call.input
                .get(key)
                .and_then(Value::as_str)
                .unwrap_or("-")
                .to_owned()
        };
        let operations = operations(patch, &JsonObject::new())?;
        let row = |call: &CanonicalCall| {
            let content = match call.tool.as_str() {
                "edit_file" => format!("{}>{}", text(call, "old_text"), text(call, "new_text")),
                _ => text(call, "content"),
            };
            (call.tool.clone(), text(call, "path"), content)
        };
        Ok(operations.iter().map(row).collect())
    }

    #[test]
    fn every_operation_of_a_patch_is_found() {
        let patch = [
            "",
            "*** Begin Patch",
            "*** Add File: a b.txt",
            "+one",
            "++two",
            "*** Update File: b",
            "@@ fn x",
            " keep",
            "-old",
            "+new",
            "",
            "@@",
            "+end",
            "*** End of File",
            "*** Update File: c",
            "*** Move to: /d",
            "-x",
            "+y",
            "*** Delete File: e",
            "*** End Patch",
            "",
        ]
        .join("\n");
        let expected = [
            ("write_file", "a b.txt", "one\n+two\n"),
            ("edit_file", "b", "keep\nold\n>keep\nnew\n"),
            ("edit_file", "b", ">end"),
            ("edit_file", "c", "x>y"),
            ("edit_file", "/d", "x>y"),
            ("delete_file", "c", "-"),
            ("delete_file", "e", "-"),
        ]
        .map(|(tool, path, content)| (tool.to_owned(), path.to_owned(), content.to_owned()));
        assert_eq!(read(&patch).unwrap(), expected);
    }

    #[test]
    fn a_patch_that_cannot_be_parsed_is_an_error() {
        for (patch, problem) in [
            ("", "line 1 of the patch is ``, expected `*** Begin Patch`"),
            ("*** Begin Patch", "does not end with"),
            ("*** Begin Patch\n*** Add File: a", "does not end with"),
            (
                "*** Begin Patch\nrm\n*** End Patch",
                "line 2 of the patch is `rm`",
            ),
            (
                "*** Begin Patch\n*** Update File: a\n*** End Patch",
                "expected a change of `a`",
            ),
            (
                "*** Begin Patch\n*** Update File: a\n@@\n*** End Patch",
                "begins with",
            ),
            (
                "*** Begin Patch\n*** Update File: a\nx\n*** End Patch",
                "begins with",
            ),
            (
                "*** Begin Patch\n*** Update File: a\n-x\ny\n*** End Patch",
                "expected `@@`",
            ),
            (
                "*** Begin Patch\n*** Delete File: \n*** End Patch",
                "line 2",
            ),
            (
                "*** Begin Patch\n*** Rename File: a\n*** End Patch",
                "line 2",
            ),
            (
                "<<EOF\n*** Begin Patch\n*** End Patch\nEOF",
                "expected `*** Begin Patch`",
            ),
        ] {
            let error = read(patch).unwrap_err();
            assert!(error.contains(problem), "{patch:?}: {error}");
        }
    }

    #[test]
    fn a_deletion_is_read_as_it_was_written() {
        let patch = deletion("a b").unwrap();
        assert_eq!(
            read(&patch).unwrap(),
            [("delete_file".to_owned(), "a b".to_owned(), "-".to_owned())]
        );
        assert!(deletion("a\n*** Delete File: b").is_err());
    }
}
