//! Prompt templates and skills, which are read from files.
//!
//! Both are text that the user calls and the model reads; no part of them runs. A broken file hides no other file. If
//! two have the same name, the first in this order is used: the user's, then those that hooks name, then the
//! project's. So a repository can never replace the user's own files.

mod front_matter;
mod place;
mod scan;
mod skill;
mod template;

use std::path::Path;

use self::front_matter::FrontMatter;
pub use self::place::{ResourcePlace, ResourcePlaces, ResourceProblem, ResourceSource};
use self::scan::{Found, Kind, Scan};
pub use self::skill::Skill;
pub use self::template::PromptTemplate;

/// The prefix of a skill's name in a command.
const SKILL: &str = "skill:";

/// The longest name, in characters.
const MAX_NAME_CHARS: usize = 64;

/// The longest description, in characters.
const MAX_DESCRIPTION_CHARS: usize = 1024;

/// The maximum number of templates. The same limit applies to skills.
const MAX_RESOURCES: usize = 256;

/// The templates and skills of a session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Resources {
    templates: Vec<PromptTemplate>,
    skills: Vec<Skill>,
    problems: Vec<ResourceProblem>,
}

impl Resources {
    /// Loads the templates and skills of the places. Files that cannot be used are among the problems.
    pub fn load(places: &ResourcePlaces) -> Self {
        let mut this = Self::default();
        for place in by_source(&places.prompts) {
            for found in this.scan(place, Kind::Templates) {
                let made = template(found, &place.source);
                add(&mut this.templates, made, &mut this.problems);
            }
        }
        for place in by_source(&places.skills) {
            for found in this.scan(place, Kind::Skills) {
                if found.is_beside && !found.text.starts_with("---") {
                    continue;
                }
                let made = skill(found, &place.source);
                add(&mut this.skills, made, &mut this.problems);
            }
        }
        this
    }

    /// Returns the templates.
    pub fn templates(&self) -> &[PromptTemplate] {
        &self.templates
    }

    /// Returns the skills.
    pub fn skills(&self) -> &[Skill] {
        &self.skills
    }

    /// Returns the problems of files that cannot be used, or not as intended.
    pub fn problems(&self) -> &[ResourceProblem] {
        &self.problems
    }

    /// Returns whether `/name` calls a template or a skill.
    pub fn has(&self, name: &str) -> bool {
        match name.strip_prefix(SKILL) {
            Some(name) => self.skills.iter().any(|skill| skill.name == name),
            None => self.templates.iter().any(|template| template.name == name),
        }
    }

    /// Returns the expanded prompt, if `text` is a slash with the name of a template or skill, and possibly
    /// arguments.
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

    /// Returns the list of skills for the model's system prompt, if there are any.
    pub fn introduce(&self) -> Option<String> {
        skill::introduce(&self.skills)
    }

    fn scan(&mut self, place: &ResourcePlace, kind: Kind) -> Vec<Found> {
        let mut scan = Scan::of(place, kind);
        self.problems.append(&mut scan.problems);
        scan.found
    }
}

/// Returns places in the order of their precedence.
fn by_source(places: &[ResourcePlace]) -> Vec<&ResourcePlace> {
    let rank = |place: &&ResourcePlace| match place.source {
        ResourceSource::User => 0,
        ResourceSource::Hooks => 1,
        ResourceSource::Project { .. } => 2,
    };
    let mut places: Vec<&ResourcePlace> = places.iter().collect();
    places.sort_by_key(rank);
    places
}

/// A template or skill: it has a name and a file.
trait Named {
    fn name(&self) -> &str;
    fn path(&self) -> &Path;
}

impl Named for PromptTemplate {
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

/// Adds a template or skill to its list, or the reason why it cannot be used to the problems.
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
        // Two places may contain the same file, for example through a link.
        Some(other) if other.path() == made.path() => {}
        Some(other) => problems.push(problem(
            made.path(),
            format!(
                "the name `{}` is taken by `{}`",
                made.name(),
                other.path().display()
            ),
        )),
        None if list.len() == MAX_RESOURCES => problems.push(problem(
            made.path(),
            format!("ignored, because the limit of {MAX_RESOURCES} is reached"),
        )),
        None => list.push(made),
    }
}

fn template(found: Found, source: &ResourceSource) -> Result<PromptTemplate, ResourceProblem> {
    let (front, body) = read(&found)?;
    let name = stem(&found.path);
    check_name(&name).map_err(|text| problem(&found.path, text))?;
    let first = body.lines().map(str::trim).find(|line| !line.is_empty());
    let description = front.description.or(first.map(str::to_owned));
    Ok(PromptTemplate {
        name,
        description: plain(&description.unwrap_or_default(), MAX_DESCRIPTION_CHARS),
        argument_hint: front.argument_hint.map(|hint| plain(&hint, MAX_NAME_CHARS)),
        source: source.clone(),
        body: body.trim().to_owned(),
        path: found.path,
    })
}

fn skill(found: Found, source: &ResourceSource) -> Result<Skill, ResourceProblem> {
    let (front, body) = read(&found)?;
    let wrong = |text: String| problem(&found.path, text);
    let folder = found.path.parent().and_then(Path::file_name);
    let usual = match folder {
        Some(folder) if !found.is_beside => folder.to_string_lossy().into_owned(),
        _ => stem(&found.path),
    };
    let name = front.name.unwrap_or(usual);
    check_name(&name).map_err(wrong)?;
    let description = plain(
        &front.description.unwrap_or_default(),
        MAX_DESCRIPTION_CHARS,
    );
    if description.is_empty() {
        return Err(wrong(
            "the front matter has no `description`, which says when to use the skill".to_owned(),
        ));
    }
    Ok(Skill {
        name,
        description,
        source: source.clone(),
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

/// Checks that a name can be typed after a slash.
fn check_name(name: &str) -> Result<(), String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let is_name = name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(is_plain)
        && name.len() <= MAX_NAME_CHARS;
    if is_name {
        return Ok(());
    }
    Err(format!(
        "invalid name `{}`, expected at most {MAX_NAME_CHARS} letters, digits, `-` and `_`, starting with a letter or a digit",
        plain(name, MAX_NAME_CHARS)
    ))
}

/// Returns text as one line without control characters, cut to `most` characters.
fn plain(text: &str, most: usize) -> String {
    let shown = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let shown: String = shown.collect();
    let words: Vec<&str> = shown.split_whitespace().collect();
    words.join(" ").chars().take(most).collect()
}

#[cfg(test)]
mod tests;
