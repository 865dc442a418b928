//! Finds the files of hooks that an import names, and the variables that their agent gives to these hooks.

use std::fs;
use std::path::{Path, PathBuf};

use tenterhook_files::make_private;
use tenterhook_hookfile::fields::{Empty, Fields};
use tenterhook_hookfile::tree::{self, Format, Node};
use tenterhook_hookfile::{Report, SourceText, read_text};
use tenterhook_systems::settings_file::{HookSettings, KeyEffect, KeyPlace, PluginHooks};

use crate::error::CliError;
use crate::exit::Exit;

/// Parts of names of variables that often have secrets as their values.
const SECRETS: [&str; 5] = ["TOKEN", "SECRET", "PASSWORD", "KEY", "CREDENTIAL"];

/// Whose settings apply to an import.
#[derive(Debug, Clone, Copy)]
pub struct SettingsPlace<'a> {
    /// The settings of the agent that belong to the same person or project.
    pub file: &'a Path,
    /// The folder of the user.
    pub home: Option<&'a Path>,
}

/// The files to import, and what a person should know about them.
#[derive(Debug, Default)]
pub struct ImportSources {
    /// The files, each with the variables of its hooks.
    pub files: Vec<(PathBuf, Vec<(String, String)>)>,
    /// What the import does not carry over, one sentence each.
    pub notes: Vec<String>,
}

impl ImportSources {
    /// Finds the files that a path stands for: itself, or the files of the plugin in a folder or in a manifest.
    ///
    /// # Errors
    /// Fails if a folder is not a plugin, or a manifest cannot be read or names a file outside of its plugin.
    pub fn find(
        settings: &'static HookSettings,
        path: &Path,
        place: SettingsPlace<'_>,
    ) -> Result<Self, CliError> {
        let mut sources = Self::default();
        let Some(plugin) = settings.plugin else {
            sources.files.push((path.to_owned(), Vec::new()));
            return Ok(sources);
        };
        let root = if path.is_dir() {
            Some(path.to_owned())
        } else {
            plugin.root(path)
        };
        let Some(root) = root else {
            sources.files.push((path.to_owned(), Vec::new()));
            sources.note_plugins(path);
            return Ok(sources);
        };
        let manifest = Manifest::read(plugin, &root)?;
        let is_single = path.is_file() && !path.ends_with(plugin.manifest);
        let files = if is_single {
            vec![path.to_owned()]
        } else {
            manifest.files(plugin, &root)?
        };
        if files.is_empty() {
            let message = format!("`{}` is not a plugin with hooks", path.display());
            return Err(CliError::new(Exit::Config, message).hint(format!(
                "a plugin has the file `{}/hooks.json`, or `{}` names its files",
                plugin.folder, plugin.manifest
            )));
        }
        let mut variables = sources.variables(settings, plugin, &root, &manifest, place)?;
        if let Some(name) = &manifest.name
            && plugin.data_name(&root, Some(name)) != plugin.data_name(&root, None)
        {
            let data = plugin.data_name(&root, Some(name));
            let names = plugin.data_variables.iter();
            let value = format!("${{env.HOME}}/{}/{data}", plugin.data);
            variables.extend(names.map(|name| ((*name).to_owned(), value.clone())));
        }
        if let Some(home) = place.home {
            let data = plugin.data_name(&root, manifest.name.as_deref());
            // The agent creates this folder, too. A plugin may expect that it exists.
            let _may_exist = make_private(&home.join(plugin.data).join(data));
        }
        for file in files {
            let mut variables = variables.clone();
            if plugin.root(&file).as_deref() != Some(&*root) {
                let folder = root.to_string_lossy().into_owned();
                let names = plugin.root_variables.iter();
                variables.extend(names.map(|name| ((*name).to_owned(), folder.clone())));
            }
            sources.files.push((file, variables));
        }
        Ok(sources)
    }

    /// Collects the variables that the agent gives to the hooks of a plugin: the variables of its settings, and the options.
    fn variables(
        &mut self,
        settings: &HookSettings,
        plugin: &PluginHooks,
        root: &Path,
        manifest: &Manifest,
        place: SettingsPlace<'_>,
    ) -> Result<Vec<(String, String)>, CliError> {
        let mut variables = Vec::new();
        let parsed = if place.file.is_file() {
            Some(Parsed::read(place.file)?)
        } else {
            None
        };
        let has_variables = settings.key(KeyPlace::File, "env") == Some(KeyEffect::Carried);
        if let Some(parsed) = parsed.as_ref().filter(|_| has_variables) {
            for (name, value) in parsed.variables(&["env"])? {
                if SECRETS
                    .iter()
                    .any(|part| name.to_ascii_uppercase().contains(part))
                {
                    self.notes.push(format!(
                        "the variable `{name}` of `{}` may be a secret and is not copied; set it in your environment if the hooks need it",
                        place.file.display()
                    ));
                } else {
                    variables.push((name, value));
                }
            }
        }
        let id = plugin.id(root, manifest.name.as_deref());
        let chosen = match &parsed {
            Some(parsed) => parsed.variables(&["pluginConfigs", &id, "options"])?,
            None => Vec::new(),
        };
        for option in &manifest.options {
            let variable = plugin.option_variable(&option.name);
            let mut values = chosen.iter();
            let value = values.find(|(name, _)| *name == option.name);
            let value = value.map(|(_, value)| value.clone());
            match value.or_else(|| option.default.clone()) {
                Some(value) => variables.push((variable, value)),
                None => self.notes.push(format!(
                    "the option `{}` of the plugin has no value in the settings; set `{variable}` in your environment if the hooks need it",
                    option.name
                )),
            }
        }
        Ok(variables)
    }

    /// Notes the plugins that a file of settings switches on: their hooks are in other files.
    fn note_plugins(&mut self, path: &Path) {
        // The reader of the hooks reports a file that cannot be read.
        let Ok(parsed) = Parsed::read(path) else {
            return;
        };
        let plugins = parsed.variables(&["enabledPlugins"]);
        let plugins = plugins.unwrap_or_default().into_iter();
        let on = plugins.filter(|(_, value)| value == "true");
        let names: Vec<String> = on.map(|(name, _)| format!("`{name}`")).collect();
        if !names.is_empty() {
            self.notes.push(format!(
                "the hooks of plugins are not part of this file: {}; import each with `--file FOLDER`",
                names.join(", ")
            ));
        }
        let local = path.with_extension("local.json");
        if local.is_file() {
            self.notes.push(format!(
                "`{}` is another file; import it with `--file`, too, if it has hooks",
                local.display()
            ));
        }
    }
}

/// An option of a plugin.
#[derive(Debug)]
struct PluginOption {
    name: String,
    default: Option<String>,
}

/// What a plugin's manifest says about its hooks.
#[derive(Debug, Default)]
struct Manifest {
    name: Option<String>,
    /// The files that it names, as written.
    named: Vec<String>,
    /// Whether it contains hooks itself.
    has_hooks: bool,
    options: Vec<PluginOption>,
}

impl Manifest {
    /// Reads the manifest of a plugin. A plugin may have none.
    fn read(plugin: &PluginHooks, root: &Path) -> Result<Self, CliError> {
        let path = root.join(plugin.manifest);
        if !path.is_file() {
            return Ok(Self::default());
        }
        let parsed = Parsed::read(&path)?;
        let text = |node: &Node| node.as_text().map(str::to_owned);
        let mut manifest = Self {
            name: parsed.node(&["name"]).and_then(text),
            ..Self::default()
        };
        if let Some(hooks) = parsed.node(&["hooks"]) {
            let items = hooks.as_list().unwrap_or(std::slice::from_ref(hooks));
            for item in items {
                match (item.as_text(), item.as_table()) {
                    (Some(path), _) => manifest.named.push(path.to_owned()),
                    (None, Some(_)) if hooks.as_table().is_some() => manifest.has_hooks = true,
                    _ => {
                        return Err(
                            parsed.refusal("`hooks` is not a path, a list of paths or hooks")
                        );
                    }
                }
            }
        }
        let options = parsed.node(&["userConfig"]).and_then(Node::as_table);
        for entry in options.unwrap_or_default() {
            let default = entry.value.entry("default");
            manifest.options.push(PluginOption {
                name: entry.key.clone(),
                default: default.and_then(|it| scalar(&it.value)),
            });
        }
        Ok(manifest)
    }

    /// Returns the files with hooks.
    fn files(&self, plugin: &PluginHooks, root: &Path) -> Result<Vec<PathBuf>, CliError> {
        let usual = root.join(plugin.folder).join("hooks.json");
        let mut files: Vec<PathBuf> = usual.is_file().then_some(usual).into_iter().collect();
        if self.has_hooks {
            files.push(root.join(plugin.manifest));
        }
        for named in &self.named {
            let outside = || {
                let message =
                    format!("the manifest names `{named}`, which is not a file of the plugin");
                CliError::new(Exit::Config, message)
            };
            let found =
                fs::canonicalize(root.join(named)).map_err(|error| outside().cause(&error))?;
            if !found.starts_with(root) || !found.is_file() {
                return Err(outside());
            }
            if !files.contains(&found) {
                files.push(found);
            }
        }
        Ok(files)
    }
}

/// A file of settings or a manifest.
struct Parsed {
    path: PathBuf,
    text: String,
    root: Node,
}

impl Parsed {
    fn read(path: &Path) -> Result<Self, CliError> {
        let refusal = |why: String| {
            let message = format!("cannot read `{}`: {why}", path.display());
            CliError::new(Exit::Config, message)
        };
        let text = read_text(path).map_err(|problem| refusal(problem.message))?;
        let mut report = Report::new(SourceText::new(path, &text));
        let root = tree::read(&mut report, Format::of(path, &text));
        let mut problems = report.into_problems().into_iter();
        match (root, problems.next()) {
            (Some(root), None) => Ok(Self {
                path: path.to_owned(),
                text,
                root,
            }),
            (_, problem) => {
                let why = problem.map_or("it is empty".to_owned(), |problem| problem.message);
                Err(refusal(why))
            }
        }
    }

    fn refusal(&self, why: &str) -> CliError {
        let message = format!("cannot read `{}`: {why}", self.path.display());
        CliError::new(Exit::Config, message)
    }

    /// Returns the value below these keys.
    fn node(&self, keys: &[&str]) -> Option<&Node> {
        let mut node = &self.root;
        for key in keys {
            node = &node.entry(key)?.value;
        }
        Some(node)
    }

    /// Returns the mapping of names to strings below these keys. It is empty if a key is missing.
    fn variables(&self, keys: &[&str]) -> Result<Vec<(String, String)>, CliError> {
        let Some((last, above)) = keys.split_last() else {
            return Ok(Vec::new());
        };
        let Some(node) = self.node(above).filter(|node| node.entry(last).is_some()) else {
            return Ok(Vec::new());
        };
        let mut report = Report::new(SourceText::new(&self.path, &self.text));
        let fields = Fields::any(&mut report, node, "the file", Empty::Absent);
        let found = fields.and_then(|fields| fields.variables(&mut report, last));
        found.ok_or_else(|| self.refusal(&format!("`{last}` is not a mapping of names to strings")))
    }
}

/// Returns a text, number or boolean as it is written.
fn scalar(node: &Node) -> Option<String> {
    let mut report = Report::new(SourceText::new(Path::new(""), ""));
    tenterhook_hookfile::fields::scalar(&mut report, "", node)
}
