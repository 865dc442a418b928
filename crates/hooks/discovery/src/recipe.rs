//! Recipes: Markdown files with a prompt for an agent, the tools that it may use, and handlers for its
//! events.
//!
//! | key | value |
//! |---|---|
//! | `name`, `description` | a title, and what the recipe is for |
//! | `allowed_tools` | the tools that it may use; without the key, all tools; with an empty list, no tools |
//! | `allowed_commands` | patterns for the commands that its shell may run; without the key, all commands |
//! | `arguments` | for each argument `{description: TEXT, default: TEXT}` |
//! | `hooks` | for each event `{handler: NAME, once: true}` |
//! | `workflow`, `profile` | how kodelet's subagents use the recipe; without effect here |
//!
//! The text after the second line of `---` is the prompt, an [`ArgumentTemplate`]. The caller that renders it decides
//! whether it may run commands. The handlers are part of this program.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use tenterhook_engine::{EventKind, HookId, HookSpec, Layer, Source as HookSource, native_policy};
use tenterhook_files::readable_entries;
use tenterhook_runners::recipe::{RecipeHandlers, RecipeHook};
use tenterhook_runners::template::ArgumentTemplate;
use tenterhook_systems::kodelet::{self, Kodelet};

use crate::layers::Layers;
use crate::options::LoadOptions;
use tenterhook_hookfile::BrokenSource;
use tenterhook_hookfile::Report;
use tenterhook_hookfile::fields::{Empty, Fields, scalar, wrong};
use tenterhook_hookfile::one_of;
use tenterhook_hookfile::read_text;
use tenterhook_hookfile::tree::{self, Entry, Format, Value};
use tenterhook_hookfile::{LoadError, Problem};
use tenterhook_hookfile::{SourceText, Span};
use tenterhook_trust::TENTERHOOK;

/// The keys of the front matter.
const RECIPE: &[&str] = &[
    "name",
    "description",
    "allowed_tools",
    "allowed_commands",
    "arguments",
    "hooks",
    "workflow",
    "profile",
];
/// The keys of an argument.
const ARGUMENT: &[&str] = &["description", "default"];
/// The keys of a hook.
const HOOK: &[&str] = &["handler", "once"];
/// The line that begins and ends the front matter.
const FENCE: &str = "---";
/// The name of the folder with recipes, in folders of projects and users.
const FOLDER: &str = "recipes";

/// The recipes that are shipped with the program, by name.
const SHIPPED: [(&str, &str); 1] = [("compact", include_str!("recipe/compact.md"))];

/// A task for an agent.
#[derive(Debug)]
pub struct Recipe {
    /// The name by which it was called, or the name of its file if it was called by a path. Hooks receive it.
    pub name: String,
    /// A description of its purpose.
    pub description: Option<String>,
    /// The file. `None` if it is shipped with the program.
    pub path: Option<PathBuf>,
    /// The prompt for the agent.
    pub prompt: ArgumentTemplate,
    /// The arguments of the prompt that have a default value.
    pub defaults: BTreeMap<String, String>,
    /// The tools that it may use. `None` means all tools.
    pub allowed_tools: Option<Vec<String>>,
    /// Patterns for the commands that its shell may run. `None` means all commands.
    pub allowed_commands: Option<Vec<String>>,
    /// Its handlers as hooks. They run after all other hooks of their event.
    pub hooks: Vec<HookSpec>,
}

/// The error of a name that no recipe has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no recipe `{name}`")]
pub struct NoRecipe {
    /// The unknown name.
    pub name: String,
    /// The names of the available recipes.
    pub known: Vec<String>,
}

/// The location of a recipe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecipePlace {
    /// A file.
    File(PathBuf),
    /// A recipe that is shipped with the program, by name.
    Shipped(&'static str),
}

/// Finds a recipe by the path of its file or by name. A name is searched in the folders of the project
/// and the user, then among the shipped recipes.
///
/// # Errors
/// Returns the available names if the recipe does not exist.
pub fn find_recipe(name: &str, layers: &Layers) -> Result<RecipePlace, NoRecipe> {
    let path = Path::new(name);
    let is_path = path.components().count() > 1 || path.extension().is_some();
    if is_path && path.is_file() {
        return Ok(RecipePlace::File(path.to_owned()));
    }
    // A name may contain folders, but it may not leave the folders of recipes.
    let is_name = path
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    let mut files = folders(layers)
        .into_iter()
        .filter_map(|(dir, prefix)| Some((dir, name.strip_prefix(&prefix)?.to_owned())))
        .flat_map(|(dir, name)| [dir.join(format!("{name}.md")), dir.join(name)]);
    if let Some(file) = files.find(|path| is_name && path.is_file()) {
        return Ok(RecipePlace::File(file));
    }
    if let Some((shipped, _)) = SHIPPED.iter().find(|(shipped, _)| *shipped == name) {
        return Ok(RecipePlace::Shipped(shipped));
    }
    Err(NoRecipe {
        name: name.to_owned(),
        known: known(layers),
    })
}

/// Returns the folders of recipes in order of precedence, each with the prefix of the names in it.
fn folders(layers: &Layers) -> Vec<(PathBuf, String)> {
    let mut folders = Vec::new();
    for project in layers.projects().iter().rev() {
        folders.push((project.dir.join(TENTERHOOK).join(FOLDER), String::new()));
        folders.extend(of_kodelet(&project.dir));
    }
    folders.extend(own_folders(layers));
    folders
}

/// Returns the user's own folders of recipes, each with the prefix of the names in it.
fn own_folders(layers: &Layers) -> Vec<(PathBuf, String)> {
    let user = layers.user.iter();
    let user = user.map(|dir| (dir.join(FOLDER), String::new()));
    let home = layers.home.iter().flat_map(|dir| of_kodelet(dir));
    user.chain(home).collect()
}

/// Reports whether a recipe is built in or in the user's own folders, so that its commands may run without asking.
///
/// Paths are compared where they lead to, because a path that begins with such a folder can leave it again with `..`
/// or a link. A path that cannot be followed is not the user's own.
pub fn is_own_recipe(place: &RecipePlace, layers: &Layers) -> bool {
    let RecipePlace::File(path) = place else {
        return true;
    };
    let Ok(path) = path.canonicalize() else {
        return false;
    };
    own_folders(layers)
        .into_iter()
        .filter_map(|(dir, _)| dir.canonicalize().ok())
        .any(|dir| path.starts_with(dir))
}

/// Returns the folders of recipes in kodelet's folder of a project or a user: its own, then one for each plugin.
fn of_kodelet(base: &Path) -> Vec<(PathBuf, String)> {
    let mut folders = vec![(base.join(kodelet::FOLDER).join(FOLDER), String::new())];
    let mut plugins: Vec<(PathBuf, String)> = readable_entries(&base.join(kodelet::PLUGINS))
        .filter_map(|plugin| {
            let name = plugin.file_name().into_string().ok()?;
            let prefix = format!("{}/", name.replacen('@', "/", 1));
            Some((plugin.path().join(FOLDER), prefix))
        })
        .collect();
    plugins.sort_unstable();
    folders.extend(plugins);
    folders
}

fn known(layers: &Layers) -> Vec<String> {
    let files = folders(layers).into_iter().flat_map(|(dir, prefix)| {
        let entries = readable_entries(&dir);
        entries.filter_map(move |entry| {
            let name = entry.file_name().into_string().ok()?;
            Some(format!("{prefix}{}", name.strip_suffix(".md")?))
        })
    });
    let shipped = SHIPPED.iter().map(|(name, _)| (*name).to_owned());
    let mut known: Vec<String> = files.chain(shipped).collect();
    known.sort();
    known.dedup();
    known
}

/// Loads a recipe. `called` is the name or path by which the user called it.
///
/// # Errors
/// Returns all problems of the recipe.
pub fn load_recipe(
    called: &str,
    place: &RecipePlace,
    handlers: &RecipeHandlers,
    options: &LoadOptions,
) -> Result<Recipe, LoadError> {
    let mut recipe = match place {
        RecipePlace::File(path) => {
            let text = read_text(path).map_err(|problem| broken(path, vec![*problem]))?;
            parse(path, &text, Some(path), handlers, options)?
        }
        RecipePlace::Shipped(name) => {
            let text = SHIPPED.iter().find(|(known, _)| known == name);
            let path = PathBuf::from(format!("{name}.md"));
            let text = text.map_or("", |(_, text)| *text);
            parse(&path, text, None, handlers, options)?
        }
    };
    if !Path::new(called).is_file() {
        called.clone_into(&mut recipe.name);
    }
    Ok(recipe)
}

fn parse(
    path: &Path,
    text: &str,
    file: Option<&Path>,
    handlers: &RecipeHandlers,
    options: &LoadOptions,
) -> Result<Recipe, LoadError> {
    let (front, body) = split(text);
    let mut report = Report::new(SourceText::new(path, &front));
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
                .hint("write it after the second line of `---`"),
        );
    }
    let prompt = match ArgumentTemplate::parse(body.trim()) {
        Ok(prompt) => prompt,
        Err(error) => {
            let start = text.len() - body.trim_start().len();
            let first = text.get(..start).unwrap_or_default().matches('\n').count();
            let message = format!("line {}: {}", first + error.line, error.message);
            let mut problem = report.problem(Span::from(0..0), message);
            if let Some(allowed) = error.allowed {
                problem = problem.allowed(allowed);
            }
            report.add(problem);
            return Err(broken(path, report.into_problems()));
        }
    };
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let mut recipe = Recipe {
        name: stem.into_owned(),
        description: None,
        path: file.map(Path::to_owned),
        prompt,
        defaults: BTreeMap::new(),
        allowed_tools: None,
        allowed_commands: None,
        hooks: Vec::new(),
    };
    if let Some(fields) = fields {
        let reading = Reading {
            handlers,
            options,
            path: file,
        };
        reading.front(&mut report, &fields, &mut recipe);
    }
    if report.has_errors() {
        return Err(broken(path, report.into_problems()));
    }
    Ok(recipe)
}

/// Reads a list of strings, which can also be one string with commas.
fn list(report: &mut Report, fields: &Fields<'_>, key: &str) -> Option<Vec<String>> {
    let Value::Text(text) = &fields.entry(key)?.value.value else {
        return fields.texts(report, key);
    };
    let items = text.split(',').map(str::trim);
    Some(
        items
            .filter(|item| !item.is_empty())
            .map(str::to_owned)
            .collect(),
    )
}

/// Reads the arguments, and returns those with a default value.
fn defaults(report: &mut Report, fields: &Fields<'_>) -> BTreeMap<String, String> {
    let mut defaults = BTreeMap::new();
    let entry = fields
        .entry("arguments")
        .filter(|entry| !entry.value.is_null());
    let arguments =
        entry.and_then(|entry| Fields::any(report, &entry.value, "`arguments`", Empty::Wrong));
    for entry in arguments.iter().flat_map(Fields::entries) {
        if entry.value.is_null() {
            continue;
        }
        let keys = Fields::read(report, &entry.value, "an argument", ARGUMENT, Empty::Absent);
        let Some(keys) = keys else {
            continue;
        };
        let _description = keys.text(report, "description");
        let default = keys.entry("default");
        if let Some(text) = default.and_then(|it| scalar(report, "`default`", &it.value)) {
            defaults.insert(entry.key.clone(), text);
        }
    }
    defaults
}

fn broken(path: &Path, problems: Vec<Problem>) -> LoadError {
    LoadError::from(vec![BrokenSource {
        path: path.to_owned(),
        layer: Layer::Explicit,
        system: "kodelet",
        problems,
        is_outdated: false,
    }])
}

/// Returns the front matter and the text after it. The front matter is padded with spaces, so that every
/// byte keeps its position in the file.
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
            let padding: String = first
                .chars()
                .map(|c| if c == '\n' { c } else { ' ' })
                .collect();
            let body = text.get(end + line.len()..).unwrap_or_default();
            return (padding + front, body);
        }
        end += line.len();
    }
    // Without a closing line, everything is front matter. The caller reports the missing prompt.
    let front = text.get(first.len()..).unwrap_or_default();
    (" ".repeat(first.len() - 1) + "\n" + front, "")
}

/// The context that the hooks of one recipe share.
struct Reading<'a> {
    handlers: &'a RecipeHandlers,
    options: &'a LoadOptions,
    path: Option<&'a Path>,
}

impl Reading<'_> {
    /// Reads the keys before the prompt.
    fn front(&self, report: &mut Report, fields: &Fields<'_>, recipe: &mut Recipe) {
        // These keys are checked, but nothing depends on them.
        let _title = fields.full_text(report, "name");
        let _profile = fields.text(report, "profile");
        let _workflow = fields.boolean(report, "workflow");
        let description = fields.text(report, "description");
        recipe.description = description.map(|text| text.text.to_owned());
        let tools = list(report, fields, "allowed_tools");
        recipe.allowed_tools = tools.map(|tools| {
            let names = tools.iter().flat_map(|tool| kodelet::tool_names(tool));
            names.collect()
        });
        recipe.allowed_commands = list(report, fields, "allowed_commands");
        recipe.defaults = defaults(report, fields);
        if let Some(entry) = fields.entry("hooks").filter(|entry| !entry.value.is_null())
            && let Some(hooks) = Fields::any(report, &entry.value, "`hooks`", Empty::Wrong)
        {
            let specs = hooks.entries().iter();
            recipe.hooks = specs.filter_map(|entry| self.hook(report, entry)).collect();
        }
    }

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
                    .allowed(format!("an event that it handles: {}", one_of(events))),
            );
            return None;
        }
        let swapper = self.options.services.context.clone();
        let hook = RecipeHook::new(Arc::clone(handler), swapper, once);
        let spec = HookSpec::new(kind, HookId::new(format!("recipe:{name}")), Arc::new(hook));
        let line = report.source().line_of(entry.key_span.start);
        Some(HookSpec {
            // Last on its event, so that it does not see what other hooks block, but sees their changes.
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

/// Reads the event of a hook, by kodelet's name or the name in the catalogue.
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
            let recipe = load_recipe(name, &place, &RecipeHandlers::default(), &options).unwrap();
            assert_eq!(recipe.name, name);
            assert!(recipe.path.is_none() && recipe.description.is_some());
        }
    }

    #[test]
    fn a_recipe_has_a_prompt_tools_and_hooks() {
        let text = "---\nname: tidy\nallowed_tools: [shell]\nhooks:\n  turn_end: {handler: swap_context}\n---\n\nTidy up.\n";
        let recipe = load(text).unwrap();
        assert_eq!(
            (recipe.name.as_str(), recipe.prompt.source()),
            ("r", "Tidy up.")
        );
        assert_eq!(recipe.allowed_tools, Some(vec!["shell".to_owned()]));
        let [hook] = &recipe.hooks[..] else {
            panic!("{:?}", recipe.hooks);
        };
        assert_eq!(hook.event.as_ref().unwrap().as_str(), "turn_end");
        assert_eq!(hook.source.to_string(), "r.md:5");
        let plain = load("Only a prompt.\n---\nwith a line.").unwrap();
        assert_eq!((plain.name.as_str(), plain.allowed_tools), ("r", None));
        assert!(plain.prompt.source().ends_with("with a line."));
        assert_eq!(
            load("---\nallowed_tools: []\n---\nx")
                .unwrap()
                .allowed_tools,
            Some(Vec::new())
        );
    }

    #[test]
    fn a_recipe_of_kodelet_has_arguments_and_kodelets_names_of_tools() {
        let text = "---\nname: Docker Build\nworkflow: true\nprofile: fast\nallowed_tools: \"bash, file_write,apply_patch\"\nallowed_commands: 'git *, ls'\narguments:\n  image: {description: The image}\n  tag: {default: latest}\n  count: {default: 5}\n  plain:\n---\n{{.image}}:{{.tag}}";
        let recipe = load(text).unwrap();
        let tools = recipe.allowed_tools.unwrap();
        let expected = [
            "shell",
            "write_file",
            "write_file",
            "edit_file",
            "delete_file",
        ];
        assert_eq!(tools, expected);
        let commands = recipe.allowed_commands.unwrap();
        assert_eq!(commands, ["git *", "ls"]);
        let defaults = [("count", "5"), ("tag", "latest")];
        let defaults = defaults.map(|(name, text)| (name.to_owned(), text.to_owned()));
        assert_eq!(recipe.defaults, BTreeMap::from(defaults));
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
                "`once` cannot be the string `maybe`",
                (2, 49),
            ),
            (
                hook("turn_end: swap_context"),
                "a hook of a recipe cannot be the string `swap_context`",
                (2, 19),
            ),
            (
                "---\nalowed_tools: []\n---\nx".to_owned(),
                "unknown key `alowed_tools`",
                (2, 1),
            ),
            (
                "---\nallowed_tools: {shell: true}\n---\nx".to_owned(),
                "`allowed_tools` cannot be a mapping",
                (2, 16),
            ),
            (
                "---\nname: x\n---\n\nx\n{{ nmae }}".to_owned(),
                "line 6: the function `nmae` is not supported",
                (1, 1),
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
            let found = problem
                .position
                .map(|position| (position.line, position.column));
            assert_eq!(found, Some(place), "{text}");
        }
    }
}
