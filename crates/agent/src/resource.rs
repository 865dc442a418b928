//! What files bring to a conversation: prompt templates and skills.
//!
//! Both are text, for the user to call and for the model to read; nothing of them runs. One that cannot be used hides
//! no other. Of two with one name the first counts: what the user has, then what hooks bring, then what the project has,
//! so that a repository never takes the place of what is the user's own.

mod front_matter;
mod scan;
mod skill;
mod template;

use std::fmt;
use std::path::{Path, PathBuf};

use self::front_matter::FrontMatter;
use self::scan::{Found, Kind, Scan};
pub use self::skill::Skill;
pub use self::template::Template;

/// What stands before the name of a skill.
const SKILL: &str = "skill:";

/// The longest name, in characters.
const LONGEST_NAME: usize = 64;

/// The longest description, in characters.
const LONGEST_DESCRIPTION: usize = 1024;

/// The most templates, and the most skills.
const MOST: usize = 256;

/// Who brings a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Bringer {
    /// The user.
    User,
    /// Hooks of `resources_discover`.
    Hooks,
    /// The project that the agent works in.
    Project {
        /// The folder that no link of the project leads out of.
        root: PathBuf,
    },
}

impl fmt::Display for Bringer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::User => "user",
            Self::Hooks => "hooks",
            Self::Project { .. } => "project",
        })
    }
}

/// A folder or file to look at. It need not be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The folder or file.
    pub path: PathBuf,
    /// Who brings what is there.
    pub bringer: Bringer,
}

/// Where templates and skills are looked for. Of places of one bringer the first counts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResourcePlaces {
    /// Places of templates.
    pub prompts: Vec<Place>,
    /// Places of skills.
    pub skills: Vec<Place>,
}

impl ResourcePlaces {
    /// Adds what hooks name. A relative path starts from `cwd`.
    pub(crate) fn add_of_hooks(&mut self, prompts: Vec<PathBuf>, skills: Vec<PathBuf>, cwd: &Path) {
        let place = |path: PathBuf| Place {
            path: cwd.join(path),
            bringer: Bringer::Hooks,
        };
        self.prompts.extend(prompts.into_iter().map(place));
        self.skills.extend(skills.into_iter().map(place));
    }
}

/// A file that cannot be used, or not as it is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceProblem {
    /// The file or folder.
    pub path: PathBuf,
    /// The line, where it is one.
    pub line: Option<u64>,
    /// What is wrong.
    pub problem: String,
}

impl fmt::Display for ResourceProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.path.display())?;
        if let Some(line) = self.line {
            write!(f, ", line {line}")?;
        }
        write!(f, ": {}", self.problem)
    }
}

/// The templates and skills of a session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Resources {
    templates: Vec<Template>,
    skills: Vec<Skill>,
    problems: Vec<ResourceProblem>,
}

impl Resources {
    /// Reads what the places have. What cannot be used is among the problems.
    pub fn load(places: &ResourcePlaces) -> Self {
        let mut this = Self::default();
        for place in by_bringer(&places.prompts) {
            for found in this.scan(place, Kind::Templates) {
                let made = template(found, &place.bringer);
                add(&mut this.templates, made, &mut this.problems);
            }
        }
        for place in by_bringer(&places.skills) {
            for found in this.scan(place, Kind::Skills) {
                if found.is_beside && !found.text.starts_with("---") {
                    continue;
                }
                let made = skill(found, &place.bringer);
                add(&mut this.skills, made, &mut this.problems);
            }
        }
        this
    }

    /// Returns the templates.
    pub fn templates(&self) -> &[Template] {
        &self.templates
    }

    /// Returns the skills.
    pub fn skills(&self) -> &[Skill] {
        &self.skills
    }

    /// Returns what could not be used, or not as it is meant.
    pub fn problems(&self) -> &[ResourceProblem] {
        &self.problems
    }

    /// Says whether a line `/name` is meant for a template, or for a skill.
    pub fn has(&self, name: &str) -> bool {
        match name.strip_prefix(SKILL) {
            Some(name) => self.skills.iter().any(|skill| skill.name == name),
            None => self.templates.iter().any(|template| template.name == name),
        }
    }

    /// Returns the prompt that `text` stands for, if it is the name of a template or skill with what stands behind it.
    pub fn expand(&self, text: &str) -> Option<String> {
        let line = text.strip_prefix('/')?;
        let (name, arguments) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let arguments = arguments.trim();
        if let Some(name) = name.strip_prefix(SKILL) {
            let skill = self.skills.iter().find(|skill| skill.name == name)?;
            return Some(skill.fill(arguments));
        }
        let mut templates = self.templates.iter();
        let template = templates.find(|template| template.name == name)?;
        Some(template.fill(arguments))
    }

    /// Says which skills there are, to the model.
    pub(crate) fn introduce(&self) -> Option<String> {
        skill::introduce(&self.skills)
    }

    fn scan(&mut self, place: &Place, kind: Kind) -> Vec<Found> {
        let mut scan = Scan::of(place, kind);
        self.problems.append(&mut scan.problems);
        scan.found
    }
}

/// Returns places in the order in which they count.
fn by_bringer(places: &[Place]) -> Vec<&Place> {
    let rank = |place: &&Place| match place.bringer {
        Bringer::User => 0,
        Bringer::Hooks => 1,
        Bringer::Project { .. } => 2,
    };
    let mut places: Vec<&Place> = places.iter().collect();
    places.sort_by_key(rank);
    places
}

/// What has a name and a file.
trait Named {
    fn name(&self) -> &str;
    fn path(&self) -> &Path;
}

impl Named for Template {
    fn name(&self) -> &str {
        &self.name
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

impl Named for Skill {
    fn name(&self) -> &str {
        &self.name
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

/// Keeps what can be used, and says of the rest why it cannot.
fn add<T: Named>(
    list: &mut Vec<T>,
    made: Result<T, ResourceProblem>,
    problems: &mut Vec<ResourceProblem>,
) {
    let made = match made {
        Ok(made) => made,
        Err(problem) => return problems.push(problem),
    };
    match list.iter().find(|other| other.name() == made.name()) {
        // Two places may lead to one file.
        Some(other) if other.path() == made.path() => {}
        Some(other) => problems.push(problem(
            made.path(),
            format!(
                "the name `{}` is taken by `{}`",
                made.name(),
                other.path().display()
            ),
        )),
        None if list.len() == MOST => problems.push(problem(
            made.path(),
            format!("there are {MOST} already, which is the most"),
        )),
        None => list.push(made),
    }
}

fn template(found: Found, bringer: &Bringer) -> Result<Template, ResourceProblem> {
    let (front, body) = read(&found)?;
    let name = stem(&found.path);
    check_name(&name).map_err(|text| problem(&found.path, text))?;
    let first = body.lines().map(str::trim).find(|line| !line.is_empty());
    let description = front.description.or(first.map(str::to_owned));
    Ok(Template {
        name,
        description: plain(&description.unwrap_or_default(), LONGEST_DESCRIPTION),
        argument_hint: front.argument_hint.map(|hint| plain(&hint, LONGEST_NAME)),
        bringer: bringer.clone(),
        body: body.trim().to_owned(),
        path: found.path,
    })
}

fn skill(found: Found, bringer: &Bringer) -> Result<Skill, ResourceProblem> {
    let (front, body) = read(&found)?;
    let wrong = |text: String| problem(&found.path, text);
    let folder = found.path.parent().and_then(Path::file_name);
    let usual = match folder {
        Some(folder) if !found.is_beside => folder.to_string_lossy().into_owned(),
        _ => stem(&found.path),
    };
    let name = front.name.unwrap_or(usual);
    check_name(&name).map_err(wrong)?;
    let description = plain(&front.description.unwrap_or_default(), LONGEST_DESCRIPTION);
    if description.is_empty() {
        return Err(wrong(
            "its front matter has no `description`, which says when the skill is used".to_owned(),
        ));
    }
    Ok(Skill {
        name,
        description,
        bringer: bringer.clone(),
        is_hidden: front.disable_model_invocation,
        body: body.to_owned(),
        path: found.path,
    })
}

fn read(found: &Found) -> Result<(FrontMatter, &str), ResourceProblem> {
    front_matter::read(&found.text).map_err(|wrong| ResourceProblem {
        path: found.path.clone(),
        line: wrong.line,
        problem: wrong.problem,
    })
}

fn problem(path: &Path, problem: String) -> ResourceProblem {
    ResourceProblem {
        path: path.to_owned(),
        line: None,
        problem,
    }
}

fn stem(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

/// A name is what a user can type behind a slash, and no more.
fn check_name(name: &str) -> Result<(), String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let is_name = name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(is_plain)
        && name.len() <= LONGEST_NAME;
    if is_name {
        return Ok(());
    }
    Err(format!(
        "its name is `{}`, expected at most {LONGEST_NAME} letters, digits, `-` and `_`, of which the first is a letter or a digit",
        plain(name, LONGEST_NAME)
    ))
}

/// Returns a text as one line without control characters, of at most so many characters.
fn plain(text: &str, most: usize) -> String {
    let shown = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let shown: String = shown.collect();
    let words: Vec<&str> = shown.split_whitespace().collect();
    words.join(" ").chars().take(most).collect()
}

#[cfg(test)]
mod tests;
