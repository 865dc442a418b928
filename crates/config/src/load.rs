//! Files and texts in, hooks out.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use tenterhook::{HookSpec, Layer};
use tenterhook_handlers::Services;

use crate::agent_file::{self, AgentFile, Form};
use crate::broken::BrokenSource;
use crate::disabled::DisabledSources;
use crate::draft::{Context, Draft};
use crate::environment::Environment;
use crate::layers;
use crate::link::dead_target;
use crate::native;
use crate::problem::{LoadError, Problem, Severity};
use crate::project::Project;
use crate::report::Report;
use crate::source::Source;
use crate::tree::{self, Format};
use crate::trust::{self, Brought, Trust, TrustState};

/// The largest file that is read.
const SIZE_LIMIT: usize = 4 << 20;

/// What a load depends on beside the files.
#[derive(Debug, Clone)]
pub struct LoadOptions {
    /// Loads the files that have no errors, and returns the others as [`Loaded::broken`]. Without it, a load with a
    /// broken file is an error.
    pub lenient: bool,
    /// The working directory that events are expected to have. Executables are looked up from here, to warn
    /// of those that are missing.
    pub directory: PathBuf,
    /// The variables that files may name.
    pub environment: Environment,
    /// What the handlers of the hooks may use of this program.
    pub services: Services,
    /// Who says which hooks of the project layer run.
    pub trust: Trust,
    /// Makes a gate of the project layer deny that may not run, in the place of leaving it out.
    pub deny_untrusted: bool,
    /// The files that the user has disabled. They are not read.
    pub disabled: DisabledSources,
}

impl LoadOptions {
    /// Takes the working directory and the variables of this process.
    pub fn of_process() -> Self {
        Self {
            lenient: false,
            directory: std::env::current_dir().unwrap_or_default(),
            environment: Environment::of_process(),
            services: Services::default(),
            trust: Trust::default(),
            deny_untrusted: false,
            disabled: DisabledSources::default(),
        }
    }
}

/// The hooks of one or several files.
#[derive(Debug, Clone, Default)]
pub struct Loaded {
    /// The hooks, file by file and in the order of each file.
    pub specs: Vec<HookSpec>,
    /// The hooks that keys of agents stand for, such as `redact_secrets`. They run behind all others of their
    /// event, whatever file those are from.
    pub wired: Vec<HookSpec>,
    /// What a person should look at.
    pub warnings: Vec<Problem>,
    /// The files that are in force and cannot be loaded, with [`LoadOptions::lenient`].
    pub broken: Vec<BrokenSource>,
    /// Files of the project that cannot be loaded and of which nothing was ever approved. They would not run anyway.
    pub untrusted: Vec<BrokenSource>,
    /// The agents of the agent files.
    pub agent_files: Vec<AgentFile>,
    /// What the project brings, with [`Trust::Approved`]: what runs and what does not.
    pub brought: Vec<Brought>,
    /// The files, in their order.
    pub files: Vec<LoadedFile>,
}

/// A hook file as it was loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedFile {
    /// The file.
    pub path: PathBuf,
    /// What its hooks belong to.
    pub layer: Layer,
    /// The SHA-256 of what it held; empty where it could not be read.
    pub sha256: String,
    /// It has errors, and so no hooks.
    pub is_broken: bool,
    /// The user has disabled it, and it has no hooks.
    pub is_disabled: bool,
}

/// Loads a file. `layer` is what its hooks belong to.
///
/// # Errors
/// With every problem of the file, unless [`LoadOptions::lenient`] is set.
pub fn load_file(path: &Path, layer: Layer, options: &LoadOptions) -> Result<Loaded, LoadError> {
    load_files([(path, layer)], options)
}

/// Loads files.
///
/// # Errors
/// With every problem of every file, unless [`LoadOptions::lenient`] is set.
pub fn load_files<P: AsRef<Path>>(
    files: impl IntoIterator<Item = (P, Layer)>,
    options: &LoadOptions,
) -> Result<Loaded, LoadError> {
    let parts = files.into_iter().map(|(path, layer)| {
        let path = path.as_ref();
        let is_disabled = options.disabled.contains(path, layer);
        let misnamed = layers::misnamed(path).filter(|_| layer != Layer::Explicit);
        let text = match misnamed {
            Some(fault) => Err(Box::new(fault.into_problem(path))),
            None => read(path),
        };
        let (sha256, loaded) = match text {
            _ if is_disabled => (String::new(), Ok(Loaded::default())),
            Ok(text) => (
                trust::hex_digest(text.as_bytes()),
                load_one(path, &text, layer, options),
            ),
            Err(problem) => (
                String::new(),
                Err(Box::new(broken(path, layer, "tenterhook", vec![*problem]))),
            ),
        };
        let file = LoadedFile {
            path: path.to_owned(),
            layer,
            sha256,
            is_broken: loaded.is_err(),
            is_disabled,
        };
        (file, loaded)
    });
    join(parts, options)
}

/// Loads a text as if it stood in a file at `path`, whose extension tells the format.
///
/// # Errors
/// With every problem of the text, unless [`LoadOptions::lenient`] is set.
pub fn load_text(
    path: &Path,
    text: &str,
    layer: Layer,
    options: &LoadOptions,
) -> Result<Loaded, LoadError> {
    let loaded = load_one(path, text, layer, options);
    let file = LoadedFile {
        path: path.to_owned(),
        layer,
        sha256: trust::hex_digest(text.as_bytes()),
        is_broken: loaded.is_err(),
        is_disabled: false,
    };
    join([(file, loaded)], options)
}

fn join(
    parts: impl IntoIterator<Item = (LoadedFile, Result<Loaded, Box<BrokenSource>>)>,
    options: &LoadOptions,
) -> Result<Loaded, LoadError> {
    let mut all = Loaded::default();
    let mut problems = Vec::new();
    for (file, part) in parts {
        match part {
            Ok(loaded) => {
                problems.extend(loaded.warnings.iter().cloned());
                all.specs.extend(loaded.specs);
                all.wired.extend(loaded.wired);
                all.warnings.extend(loaded.warnings);
                all.agent_files.extend(loaded.agent_files);
                all.brought.extend(loaded.brought);
            }
            Err(broken) if is_in_force(&file, options) => {
                problems.extend(broken.problems.iter().cloned());
                all.broken.push(*broken);
            }
            Err(broken) => all.untrusted.push(*broken),
        }
        all.files.push(file);
    }
    if !all.broken.is_empty() && !options.lenient {
        return Err(LoadError {
            problems,
            broken: all.broken,
        });
    }
    Ok(all)
}

/// Says whether a file that cannot be loaded would have hooks that run: one of the project only has them where somebody
/// approved one.
fn is_in_force(file: &LoadedFile, options: &LoadOptions) -> bool {
    let (Layer::Project, Trust::Approved(approvals)) = (file.layer, &options.trust) else {
        return true;
    };
    let (project, source) = Project::of_file(&file.path);
    let mut approved = approvals.approved(&project.dir).iter();
    options.deny_untrusted || approved.any(|approved| approved.source.starts_with(&source))
}

fn broken(path: &Path, layer: Layer, system: &'static str, problems: Vec<Problem>) -> BrokenSource {
    BrokenSource {
        path: path.to_owned(),
        layer,
        system,
        problems,
    }
}

/// Reads a file as text. The error is one problem of the file as a whole, or of the first byte that is no text.
pub(crate) fn read(path: &Path) -> Result<String, Box<Problem>> {
    let whole = |message: String| {
        let source = Source::new(path, "");
        Box::new(Problem::new(Severity::Error, &source, None, message))
    };
    let bytes = read_bytes(path).map_err(|error| {
        if error.kind() == ErrorKind::NotFound && path.is_symlink() {
            return Box::new(dead_target(path).into_problem(path));
        }
        let what = if path.is_dir() { "folder" } else { "file" };
        let mut problem = whole(format!("the {what} cannot be read: {error}"));
        problem.cause = Some(error.to_string());
        problem
    })?;
    if bytes.len() > SIZE_LIMIT {
        let problem = *whole("the file is too large".to_owned());
        return Err(Box::new(problem.allowed("at most 4 MiB")));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
        let source = Source::new(path, &text);
        let span = (valid..valid + 1).into();
        let message = "the file is not UTF-8 text".to_owned();
        Box::new(Problem::new(Severity::Error, &source, Some(span), message))
    })
}

/// Reads a regular file up to one byte more than is allowed. Anything else could make the load wait.
fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
    let metadata = std::fs::metadata(path)?;
    if metadata.is_dir() {
        // A folder of hook files is looked for as a file where it cannot be read.
        std::fs::read_dir(path)?;
    }
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    let limit = u64::try_from(SIZE_LIMIT).unwrap_or(u64::MAX);
    File::open(path)?.take(limit + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Says whether a file that stands elsewhere has the ending and the content of a hook file.
pub(crate) fn is_hook_file(path: &Path) -> bool {
    let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
    if !layers::has_extension(&path.with_extension(extension)) {
        return false;
    }
    // A file that is not text, or too long, is data.
    let Ok(text) = read(path) else {
        return false;
    };
    let mut report = Report::new(Source::new(path, &text));
    match tree::read(&mut report, Format::of(path, &text)) {
        Some(root) if !report.has_errors() => {
            root.entry("hooks").is_some() || has_hooks_of_docker_agent(&root)
        }
        // In a text with mistakes the key alone tells.
        _ => text.lines().any(|line| {
            let key = line.trim_start_matches(['{', '[', '"', ' ']);
            key.strip_prefix("hooks")
                .is_some_and(|rest| rest.starts_with([':', '"', '=', ' ', ']']))
        }),
    }
}

fn has_hooks_of_docker_agent(root: &tree::Node) -> bool {
    match Form::of(root) {
        Some(Form::AgentFile) => root.entry("agents").is_some(),
        Some(Form::UserSettings) => {
            let settings = root.entry("settings");
            settings.is_some_and(|settings| settings.value.entry("hooks").is_some())
        }
        Some(Form::DropIn) => true,
        None => false,
    }
}

/// Loads one text; the error is everything that is wrong with it.
fn load_one(
    path: &Path,
    text: &str,
    layer: Layer,
    options: &LoadOptions,
) -> Result<Loaded, Box<BrokenSource>> {
    let mut report = Report::new(Source::new(path, text));
    let format = Format::of(path, text);
    let root = tree::read(&mut report, format);
    let mut loaded = Loaded::default();
    let mut system = "tenterhook";
    if let Some(root) = root {
        let mut wired = Vec::new();
        let drafts = if let Some(form) = Form::of(&root) {
            system = "docker-agent";
            let read = agent_file::read(&mut report, &root, form);
            if form == Form::AgentFile {
                loaded.agent_files.push(read.file);
            }
            wired = read.wired;
            read.drafts
        } else if root.is_null() {
            Vec::new()
        } else {
            native::read(&mut report, &root)
        };
        let context = Context { layer, options };
        loaded.specs = build(&mut report, &context, drafts, &mut loaded.brought);
        loaded.wired = build(&mut report, &context, wired, &mut loaded.brought);
        for spec in &mut loaded.wired {
            // The program brings these along, so they run after what people wrote in any file.
            spec.source.layer = Layer::Code;
        }
    }
    let has_errors = report.has_errors();
    let problems = report.into_problems();
    if has_errors {
        return Err(Box::new(broken(path, layer, system, problems)));
    }
    loaded.warnings = problems;
    Ok(loaded)
}

/// Makes the hooks that may run, without those that another one of the file makes needless.
fn build(
    report: &mut Report,
    context: &Context<'_>,
    drafts: Vec<Draft>,
    brought: &mut Vec<Brought>,
) -> Vec<HookSpec> {
    let mut specs: Vec<HookSpec> = Vec::new();
    let mut lines = HashMap::new();
    for draft in drafts {
        let span = draft.span;
        let line = report.source().line_of(span.start);
        for spec in make(report, context, draft, brought) {
            let identity = (
                spec.event.clone(),
                spec.matcher.to_string(),
                spec.agent.clone(),
                spec.definition.clone(),
            );
            match lines.entry(identity) {
                Entry::Occupied(first) => {
                    let message =
                        format!("the hook is the same as the one on line {}", first.get());
                    report.add(report.warning(span, message).hint("it runs once"));
                }
                Entry::Vacant(vacant) => {
                    vacant.insert(line);
                    specs.push(spec);
                }
            }
        }
    }
    specs
}

/// Makes the hooks of one entry: what it says, if it may run.
fn make(
    report: &mut Report,
    context: &Context<'_>,
    mut draft: Draft,
    brought: &mut Vec<Brought>,
) -> Vec<HookSpec> {
    let (Layer::Project, Trust::Approved(approvals)) = (context.layer, &context.options.trust)
    else {
        return draft.build(report, context);
    };
    let Some(judged) = trust::judge(report, context, approvals, &mut draft) else {
        return Vec::new();
    };
    let may_run = judged.state == TrustState::Trusted;
    // What may not run is made all the same, so that its mistakes are found before somebody approves it.
    let specs = draft.build(report, context);
    let specs = match (may_run, context.options.deny_untrusted) {
        (true, _) => specs,
        (false, true) => trust::denials(specs, &judged, approvals),
        (false, false) => Vec::new(),
    };
    brought.push(judged);
    specs
}
