//! Recipes: Markdown files that say what an agent is to do, with which tools, and which handlers act on its events.
//!
//! | key | value |
//! |---|---|
//! | `name` | what the recipe is called; by default the name of its file |
//! | `description` | what it is for |
//! | `allowed_tools` | the tools that it may use; an empty list is none, no list is all |
//! | `hooks` | for each event `{handler: NAME, once: true}` |
//!
//! What stands below the second line of `---` is the prompt. A recipe runs no program and no file: its handlers are part of
//! this program.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tenterhook::{EventKind, HookId, HookSpec, Layer, Source as HookSource, native_policy};
use tenterhook_dialects::kodelet::{self, Kodelet};
use tenterhook_handlers::recipe::{RecipeHandlers, RecipeHook};

use crate::broken::BrokenSource;
use crate::fields::{Empty, Fields, wrong};
use crate::layers::Layers;
use crate::load::{LoadOptions, read};
use crate::problem::{LoadError, Problem};
use crate::project::{KODELET, TENTERHOOK};
use crate::report::Report;
use crate::source::{Source, Span};
use crate::suggest::one_of;
use crate::tree::{self, Entry, Format};

/// The keys of the front matter.
const RECIPE: &[&str] = &["name", "description", "allowed_tools", "hooks"];
/// The keys of a hook.
const HOOK: &[&str] = &["handler", "once"];
/// What begins and ends the front matter.
const FENCE: &str = "---";
/// The folder of recipes in those of projects and users.
const FOLDER: &str = "recipes";

/// The recipes that come along, by name.
const SHIPPED: [(&str, &str); 1] = [("compact", include_str!("recipe/compact.md"))];

/// What an agent is to do.
#[derive(Debug)]
pub struct Recipe {
    /// What it is called.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// The file; `None` came along with the program.
    pub path: Option<PathBuf>,
    /// What the agent is told.
    pub prompt: String,
    /// The tools that it may use; `None` is all.
    pub allowed_tools: Option<Vec<String>>,
    /// Its handlers as hooks. They run behind all others of their event.
    pub hooks: Vec<HookSpec>,
}

/// A name that no recipe has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no recipe `{name}`")]
pub struct NoRecipe {
    /// What was asked for.
    pub name: String,
    /// The recipes that there are.
    pub known: Vec<String>,
}

/// Where a recipe is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecipePlace {
    /// A file.
    File(PathBuf),
    /// One that came along, by its name.
    Shipped(&'static str),
}

/// Finds a recipe: a path to a file as it is, else a name in the folders of the project, of the user, and among those that
/// came along.
///
/// # Errors
/// When there is none, with the names that there are.
pub fn find_recipe(name: &str, layers: &Layers) -> Result<RecipePlace, NoRecipe> {
    let path = Path::new(name);
    if path.components().count() > 1 || path.extension().is_some() {
        if path.is_file() {
            return Ok(RecipePlace::File(path.to_owned()));
        }
    } else {
        let file = folders(layers)
            .into_iter()
            .map(|dir| dir.join(format!("{name}.md")))
            .find(|path| path.is_file());
        if let Some(file) = file {
            return Ok(RecipePlace::File(file));
        }
        if let Some((shipped, _)) = SHIPPED.iter().find(|(shipped, _)| *shipped == name) {
            return Ok(RecipePlace::Shipped(shipped));
        }
    }
    Err(NoRecipe {
        name: name.to_owned(),
        known: known(layers),
    })
}

/// Returns the folders of recipes in the order in which they count.
fn folders(layers: &Layers) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for project in layers.projects().iter().rev() {
        folders.extend([TENTERHOOK, KODELET].map(|name| project.dir.join(name).join(FOLDER)));
    }
    folders.extend(layers.user.iter().map(|dir| dir.join(FOLDER)));
    folders.extend(layers.home.iter().map(|dir| dir.join(KODELET).join(FOLDER)));
    folders
}

fn known(layers: &Layers) -> Vec<String> {
    let files = folders(layers).into_iter().flat_map(|dir| {
        let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
        entries.filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            name.strip_suffix(".md").map(str::to_owned)
        })
    });
    let shipped = SHIPPED.iter().map(|(name, _)| (*name).to_owned());
    let mut known: Vec<String> = files.chain(shipped).collect();
    known.sort();
    known.dedup();
    known
}

/// Loads a recipe.
///
/// # Errors
/// With everything that is wrong with it.
pub fn load_recipe(
    place: &RecipePlace,
    handlers: &RecipeHandlers,
    options: &LoadOptions,
) -> Result<Recipe, LoadError> {
    match place {
        RecipePlace::File(path) => {
            let text = read(path).map_err(|problem| broken(path, vec![*problem]))?;
            parse(path, &text, Some(path), handlers, options)
        }
        RecipePlace::Shipped(name) => {
            let text = SHIPPED.iter().find(|(known, _)| known == name);
            let path = PathBuf::from(format!("{name}.md"));
            let text = text.map_or("", |(_, text)| *text);
            parse(&path, text, None, handlers, options)
        }
    }
}

fn parse(
    path: &Path,
    text: &str,
    file: Option<&Path>,
    handlers: &RecipeHandlers,
    options: &LoadOptions,
) -> Result<Recipe, LoadError> {
    let (front, body) = split(text);
    let mut report = Report::new(Source::new(path, &front));
    let root = (!front.trim().is_empty())
        .then(|| tree::read(&mut report, Format::Yaml))
        .flatten();
    let fields = root
        .as_ref()
        .filter(|root| !root.is_null())
        .and_then(|root| Fields::read(&mut report, root, "a recipe", RECIPE, Empty::Wrong));
    if body.trim().is_empty() {
        let span = Span::from(0..text.lines().next().map_or(0, str::len));
        report.add(
            report
                .problem(span, "the recipe has no prompt")
                .hint("write it below the second line of `---`"),
        );
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let mut recipe = Recipe {
        name: stem.into_owned(),
        description: None,
        path: file.map(Path::to_owned),
        prompt: body.trim().to_owned(),
        allowed_tools: None,
        hooks: Vec::new(),
    };
    if let Some(fields) = fields {
        if let Some(name) = fields.full_text(&mut report, "name") {
            name.text.clone_into(&mut recipe.name);
        }
        let description = fields.text(&mut report, "description");
        recipe.description = description.map(|text| text.text.to_owned());
        recipe.allowed_tools = fields.texts(&mut report, "allowed_tools");
        if let Some(entry) = fields.entry("hooks").filter(|entry| !entry.value.is_null())
            && let Some(hooks) = Fields::any(&mut report, &entry.value, "`hooks`", Empty::Wrong)
        {
            let reading = Reading {
                handlers,
                options,
                path: file,
            };
            let specs = hooks.entries().iter();
            recipe.hooks = specs
                .filter_map(|entry| reading.hook(&mut report, entry))
                .collect();
        }
    }
    if report.has_errors() {
        return Err(broken(path, report.into_problems()));
    }
    Ok(recipe)
}

fn broken(path: &Path, problems: Vec<Problem>) -> LoadError {
    LoadError::from(vec![BrokenSource {
        path: path.to_owned(),
        layer: Layer::Explicit,
        system: "kodelet",
        problems,
    }])
}

/// Returns the front matter, with every byte at its place in the file, and what stands below it.
fn split(text: &str) -> (String, &str) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let is_fence = |line: &str| line.trim_end() == FENCE;
    let mut lines = text.split_inclusive('\n');
    let Some(first) = lines.next().filter(|line| is_fence(line)) else {
        return (String::new(), text);
    };
    let mut end = first.len();
    for line in lines {
        if is_fence(line) {
            let front = text.get(first.len()..end).unwrap_or_default();
            let blank: String = first
                .chars()
                .map(|c| if c == '\n' { c } else { ' ' })
                .collect();
            let body = text.get(end + line.len()..).unwrap_or_default();
            return (blank + front, body);
        }
        end += line.len();
    }
    // Front matter that does not end is all that there is; that there is no prompt is told.
    let front = text.get(first.len()..).unwrap_or_default();
    (" ".repeat(first.len() - 1) + "\n" + front, "")
}

/// What the hooks of one recipe share.
struct Reading<'a> {
    handlers: &'a RecipeHandlers,
    options: &'a LoadOptions,
    path: Option<&'a Path>,
}

impl Reading<'_> {
    fn hook(&self, report: &mut Report, entry: &Entry) -> Option<HookSpec> {
        let kind = event(report, entry);
        let fields = Fields::read(
            report,
            &entry.value,
            "a hook of a recipe",
            HOOK,
            Empty::Wrong,
        )?;
        let once = fields.boolean(report, "once").unwrap_or_default();
        let Some(named) = fields.entry("handler") else {
            report.add(
                report
                    .problem(fields.span, "the hook has no `handler`")
                    .allowed(one_of(self.handlers.names())),
            );
            return None;
        };
        let Some(name) = named.value.as_text() else {
            return wrong(
                report,
                "handler",
                &named.value,
                &one_of(self.handlers.names()),
            );
        };
        let Some(handler) = self.handlers.get(name) else {
            report.add(
                report
                    .problem(named.value.span, format!("there is no handler `{name}`"))
                    .allowed(one_of(self.handlers.names()))
                    .suggestion(report.nearest(name, self.handlers.names())),
            );
            return None;
        };
        let kind = kind?;
        if !handler.events().contains(&kind) {
            let message = format!("the handler `{name}` does nothing on `{}`", entry.key);
            let events = handler.events().iter().map(|kind| kind.info().name);
            report.add(
                report
                    .problem(named.value.span, message)
                    .allowed(format!("an event of its own: {}", one_of(events))),
            );
            return None;
        }
        let swapper = self.options.services.context.clone();
        let hook = RecipeHook::new(Arc::clone(handler), swapper, once);
        let spec = HookSpec::new(kind, HookId::new(format!("recipe:{name}")), Arc::new(hook));
        let line = report.source().line_of(entry.key_span.start);
        Some(HookSpec {
            // Behind everything else of its event: what hooks block it does not see, what they change it does.
            priority: i32::MIN,
            policy: native_policy(kind.info(), None),
            source: HookSource {
                layer: Layer::Code,
                path: self.path.map(Path::to_owned),
                line: self.path.map(|_| line),
            },
            ..spec
        })
    }
}

/// Reads the event of a hook: kodelet's name for it or the catalogue's.
fn event(report: &mut Report, entry: &Entry) -> Option<EventKind> {
    let row = |name: &str| {
        kodelet::EVENTS
            .iter()
            .find(|event| event.kind.info().name == name)
    };
    if let Some(event) = Kodelet::event(&entry.key).or_else(|| row(&entry.key)) {
        return Some(event.kind);
    }
    let names = || kodelet::EVENTS.iter().map(|event| event.name);
    report.add(
        report
            .problem(
                entry.key_span,
                format!("recipes have no event `{}`", entry.key),
            )
            .allowed(one_of(names()))
            .suggestion(report.nearest(&entry.key, names())),
    );
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str) -> Result<Recipe, LoadError> {
        let options = LoadOptions::of_process();
        parse(
            Path::new("r.md"),
            text,
            Some(Path::new("r.md")),
            &RecipeHandlers::default(),
            &options,
        )
    }

    #[test]
    fn the_shipped_recipes_load() {
        for (name, _) in SHIPPED {
            let options = LoadOptions::of_process();
            let place = RecipePlace::Shipped(name);
            let recipe = load_recipe(&place, &RecipeHandlers::default(), &options).unwrap();
            assert_eq!(recipe.name, name);
            assert!(recipe.path.is_none() && recipe.description.is_some());
        }
    }

    #[test]
    fn a_recipe_has_a_prompt_tools_and_hooks() {
        let text = "---\nname: tidy\nallowed_tools: [shell]\nhooks:\n  turn_end: {handler: swap_context}\n---\n\nTidy up.\n";
        let recipe = load(text).unwrap();
        assert_eq!(
            (recipe.name.as_str(), recipe.prompt.as_str()),
            ("tidy", "Tidy up.")
        );
        assert_eq!(recipe.allowed_tools, Some(vec!["shell".to_owned()]));
        let [hook] = &recipe.hooks[..] else {
            panic!("{:?}", recipe.hooks);
        };
        assert_eq!(hook.event.as_ref().unwrap().as_str(), "turn_end");
        assert_eq!(hook.source.to_string(), "r.md:5");
        let plain = load("Only a prompt.\n---\nwith a line.").unwrap();
        assert_eq!((plain.name.as_str(), plain.allowed_tools), ("r", None));
        assert!(plain.prompt.ends_with("with a line."));
        assert_eq!(
            load("---\nallowed_tools: []\n---\nx")
                .unwrap()
                .allowed_tools,
            Some(Vec::new())
        );
    }

    // K-H5, K-H8: what a recipe asks for has to be there.
    #[test]
    fn mistakes_of_a_recipe_are_found_when_it_is_loaded() {
        let hook = |hook: &str| format!("---\nhooks: {{{hook}}}\n---\nx");
        for (text, message, place) in [
            (
                hook("turn_end: {handler: swap_contxt}"),
                "there is no handler `swap_contxt`",
                (2, 29),
            ),
            (
                hook("turn_ends: {handler: swap_context}"),
                "recipes have no event `turn_ends`",
                (2, 9),
            ),
            (
                hook("agent_stop: {handler: swap_context}"),
                "the handler `swap_context` does nothing on `agent_stop`",
                (2, 31),
            ),
            (
                hook("turn_end: {once: true}"),
                "the hook has no `handler`",
                (2, 19),
            ),
            (
                hook("turn_end: {handler: swap_context, once: maybe}"),
                "`once` cannot be the text `maybe`",
                (2, 49),
            ),
            (
                hook("turn_end: swap_context"),
                "a hook of a recipe cannot be the text `swap_context`",
                (2, 19),
            ),
            (
                "---\nalowed_tools: []\n---\nx".to_owned(),
                "unknown key `alowed_tools`",
                (2, 1),
            ),
            (
                "---\nallowed_tools: shell\n---\nx".to_owned(),
                "`allowed_tools` cannot be the text `shell`",
                (2, 16),
            ),
            (
                "---\nname: x\n---\n \n".to_owned(),
                "the recipe has no prompt",
                (1, 1),
            ),
            (
                "---\nname: x\n".to_owned(),
                "the recipe has no prompt",
                (1, 1),
            ),
            (String::new(), "the recipe has no prompt", (1, 1)),
        ] {
            let error = load(&text).unwrap_err();
            let problem = &error.problems[0];
            assert_eq!(problem.message, message, "{text}");
            let found = problem.place.map(|place| (place.line, place.column));
            assert_eq!(found, Some(place), "{text}");
        }
    }
}
