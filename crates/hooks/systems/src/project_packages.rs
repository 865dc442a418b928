//! Finds the modules of a project that a Python script imports.
//!
//! Some systems run hooks inside the program whose project contains them, so the hooks may import that program's
//! packages. The names are read from the `import` statements. A module that is imported in another way is not found.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// The largest number of files that are found for one script.
const MAX_FILES: usize = 256;
/// Their largest total size, in bytes.
const MAX_BYTES: u64 = 8 << 20;

/// The packages of a project that a script may import, in addition to the files next to it.
#[derive(Debug)]
pub struct ProjectPackages {
    /// The names of the packages, which are folders of the project.
    pub names: &'static [&'static str],
    /// The modules that Tenterhook provides instead of the project's own.
    pub provided: &'static [&'static str],
}

/// The reason why the files that a script imports cannot be listed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// There are too many, or they are too large.
    #[error(
        "it imports more than {MAX_FILES} files or {} MiB of the project", MAX_BYTES >> 20
    )]
    TooMuch,
    /// A file cannot be read.
    #[error("`{}`, which it imports, cannot be read: {source}", path.display())]
    Unreadable {
        /// The file, relative to the project.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

impl ProjectPackages {
    /// No packages.
    pub const NONE: Self = Self {
        names: &[],
        provided: &[],
    };

    /// Returns the files of the packages in the project `root` that scripts with these texts import, directly or
    /// indirectly, in the order of their paths.
    ///
    /// # Errors
    /// Fails if there are too many files, or if one cannot be read.
    pub fn imported<'a>(
        &self,
        root: &Path,
        texts: impl Iterator<Item = &'a [u8]>,
    ) -> Result<Vec<PathBuf>, ImportError> {
        if self.names.is_empty() {
            return Ok(Vec::new());
        }
        let (mut found, mut bytes) = (BTreeSet::new(), 0);
        let mut pending: Vec<_> = texts.flat_map(|text| self.files(root, &[], text)).collect();
        while let Some((path, package)) = pending.pop() {
            if found.contains(&path) {
                continue;
            }
            let text =
                read(&path, MAX_BYTES - bytes).map_err(|source| ImportError::Unreadable {
                    path: path.strip_prefix(root).unwrap_or(&path).to_owned(),
                    source,
                })?;
            bytes += u64::try_from(text.len()).unwrap_or(u64::MAX);
            found.insert(path);
            if found.len() > MAX_FILES || bytes > MAX_BYTES {
                return Err(ImportError::TooMuch);
            }
            let package: Vec<&str> = package.iter().map(String::as_str).collect();
            pending.extend(self.files(root, &package, &text));
        }
        Ok(found.into_iter().collect())
    }

    /// Returns the files that a module of a package imports, each with the package that it belongs to.
    fn files(&self, root: &Path, package: &[&str], text: &[u8]) -> Vec<(PathBuf, Vec<String>)> {
        let text = String::from_utf8_lossy(text);
        let mut files = Vec::new();
        for module in modules(&text, package) {
            let Some((last, parent)) = module.split_last() else {
                continue;
            };
            let top = module.first().map_or("", String::as_str);
            let mut dir: PathBuf = [root]
                .into_iter()
                .chain(parent.iter().map(Path::new))
                .collect();
            // Otherwise it is a name in a module.
            let is_module = dir.join(format!("{last}.py")).is_file() || dir.join(last).is_dir();
            let is_provided = self.provides(&module) || (!is_module && self.provides(parent));
            if is_provided || !self.names.contains(&top) {
                continue;
            }
            root.clone_into(&mut dir);
            let mut above: &[String] = &[];
            for (depth, name) in module.iter().enumerate() {
                files.push((dir.join(format!("{name}.py")), above.to_vec()));
                dir.push(name);
                above = module.get(..=depth).unwrap_or_default();
                // A package with provided modules is itself run only for its own names.
                if !self.contains_provided(above) || (!is_module && above == parent) {
                    files.push((dir.join("__init__.py"), above.to_vec()));
                }
            }
        }
        files.retain(|(path, _)| path.is_file());
        files
    }

    fn provides(&self, module: &[String]) -> bool {
        self.provided.contains(&module.join(".").as_str())
    }

    fn contains_provided(&self, package: &[String]) -> bool {
        let package = format!("{}.", package.join("."));
        self.provided.iter().any(|name| name.starts_with(&package))
    }
}

/// Reads a file up to its first byte above a limit.
fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    File::open(path)?.take(most + 1).read_to_end(&mut text)?;
    Ok(text)
}

/// Returns the full names of the modules that a source may import. A name after `from … import` may be a module or
/// not, so both are returned.
fn modules(text: &str, package: &[&str]) -> BTreeSet<Vec<String>> {
    let text = text.replace("\\\r\n", " ").replace("\\\n", " ");
    let mut modules = BTreeSet::new();
    let mut lines = text
        .lines()
        .map(|line| line.split_once('#').map_or(line, |(code, _)| code));
    while let Some(line) = lines.next() {
        // A statement may follow another one on its line: `try: import x; from y import z`.
        for statement in line.split([';', ':']).map(str::trim) {
            if let Some(names) = after_word(statement, "import") {
                modules.extend(names.split(',').filter_map(|name| full_name(name, package)));
            } else if let Some((module, names)) = after_word(statement, "from").and_then(at_import)
            {
                let mut names = names.to_owned();
                while names.contains('(') && !names.contains(')') {
                    let Some(line) = lines.next() else { break };
                    names.push_str(line);
                }
                let names = names.split([',', '(', ')']);
                let module = module.trim();
                let dot = if module.ends_with('.') { "" } else { "." };
                modules.extend(full_name(module, package));
                modules.extend(names.filter_map(|name| {
                    let name = name.split_whitespace().next()?;
                    full_name(&format!("{module}{dot}{name}"), package)
                }));
            }
        }
    }
    modules
}

/// Returns the rest of a statement that begins with a word.
fn after_word<'a>(statement: &'a str, word: &str) -> Option<&'a str> {
    let rest = statement.strip_prefix(word)?;
    rest.starts_with([' ', '\t', '.'])
        .then_some(rest.trim_start())
}

/// Splits the rest of a `from` statement at the word `import`.
fn at_import(rest: &str) -> Option<(&str, &str)> {
    rest.match_indices("import").find_map(|(start, word)| {
        let (module, names) = (rest.get(..start)?, rest.get(start + word.len()..)?);
        let is_word =
            module.ends_with([' ', '\t', '.']) && names.starts_with([' ', '\t', '(', '*']);
        is_word.then_some((module, names))
    })
}

/// Returns the parts of a module's full name. A name with leading dots is relative to the package.
fn full_name(name: &str, package: &[&str]) -> Option<Vec<String>> {
    let name = name.split_whitespace().next()?;
    let relative = name.trim_start_matches('.');
    let dots = name.len() - relative.len();
    let kept = match dots {
        0 => 0,
        dots => (package.len() + 1).checked_sub(dots)?,
    };
    let own = relative.split('.').filter(|part| !part.is_empty());
    let parts: Vec<String> = package
        .get(..kept)?
        .iter()
        .copied()
        .chain(own)
        .map(str::to_owned)
        .collect();
    let is_name = |part: &String| part.chars().all(|it| it.is_alphanumeric() || it == '_');
    (!parts.is_empty() && parts.iter().all(is_name)).then_some(parts)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn named(text: &str) -> Vec<String> {
        let modules = modules(text, &["core", "security"]);
        modules.iter().map(|parts| parts.join(".")).collect()
    }

    #[test]
    fn every_form_of_an_import_names_its_modules() {
        let rows: [(&str, &[&str]); 13] = [
            ("import core.a, core.b as b", &["core.a", "core.b"]),
            ("from core.a import x", &["core.a", "core.a.x"]),
            ("from core.a import(x)", &["core.a", "core.a.x"]),
            (
                "from core import (\n    a,  # the first\n    b as c,\n)\n",
                &["core", "core.a", "core.b"],
            ),
            ("from core \\\n  import a", &["core", "core.a"]),
            ("\ttry: import core.a; import core.b", &["core.a", "core.b"]),
            ("from . import x", &["core.security", "core.security.x"]),
            (
                "from .x import y",
                &["core.security.x", "core.security.x.y"],
            ),
            ("from ..config import y", &["core.config", "core.config.y"]),
            ("from core.a import *", &["core.a"]),
            (
                "from core.important import x",
                &["core.important", "core.important.x"],
            ),
            ("from .... import x\nimport ../x, /etc/x", &[]),
            ("important = 1\nfromage(x)\n# import core.a", &[]),
        ];
        for (text, expected) in rows {
            assert_eq!(named(text), expected, "{text}");
        }
    }

    #[test]
    fn imports_are_followed_within_the_packages_of_the_project() {
        const PACKAGES: ProjectPackages = ProjectPackages {
            names: &["core"],
            provided: &["core.given"],
        };
        let root = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("core/__init__.py", "import core.agent"),
            ("core/agent.py", ""),
            ("core/given.py", "import core.unused"),
            ("core/unused.py", ""),
            ("core/security/__init__.py", "from .guard import check"),
            (
                "core/security/guard.py",
                "from ..config import limits\nimport other\n",
            ),
            ("core/config/__init__.py", "import core.security"),
            ("other/__init__.py", ""),
        ] {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let imported = |text: &str| PACKAGES.imported(root.path(), [text.as_bytes()].into_iter());
        let names = |text: &str| -> Vec<String> {
            let found = imported(text).unwrap().into_iter();
            let found = found.map(|path| path.strip_prefix(root.path()).unwrap().to_owned());
            found.map(|path| path.display().to_string()).collect()
        };
        let text =
            "from core.given import x\nfrom core.security import guard\nimport json, other\n";
        assert_eq!(
            names(text),
            [
                "core/config/__init__.py",
                "core/security/__init__.py",
                "core/security/guard.py"
            ]
        );
        assert_eq!(names("from core import given, agent"), ["core/agent.py"]);
        let all = ["core/__init__.py", "core/agent.py"];
        assert_eq!(names("from core import VERSION"), all);
        for number in 0..=MAX_FILES {
            let path = root.path().join(format!("core/m{number}.py"));
            fs::write(path, format!("import core.m{}", number + 1)).unwrap();
        }
        let error = imported("import core.m0").unwrap_err();
        let expected = "it imports more than 256 files or 8 MiB of the project";
        assert_eq!(error.to_string(), expected);
    }
}
