//! Files and texts in, hooks out.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use tenterhook::{HookSpec, Layer};
use tenterhook_handlers::Services;

use self::approved::ApprovedCopies;
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
use crate::trust::{self, Approvals, Brought, DivergedHook, Divergence, Trust, TrustState};

mod approved;

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
    /// Approved hooks that changed in the project or are gone. They are in force as approved, or their gates
    /// deny.
    pub diverged: Vec<DivergedHook>,
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
            // Its approved hooks are loaded from their copies.
            Err(_) if is_gone(path, layer, options) => (String::new(), Ok(Loaded::default())),
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
        let mut loaded = match part {
            Ok(loaded) => loaded,
            Err(broken) if is_in_force(&file, options) => {
                problems.extend(broken.problems.iter().cloned());
                all.broken.push(*broken);
                Loaded::default()
            }
            Err(broken) => {
                all.untrusted.push(*broken);
                Loaded::default()
            }
        };
        if !file.is_disabled {
            add_missing(&file, options, &mut loaded);
        }
        problems.extend(loaded.warnings.iter().cloned());
        all.specs.extend(loaded.specs);
        all.wired.extend(loaded.wired);
        all.warnings.extend(loaded.warnings);
        all.agent_files.extend(loaded.agent_files);
        all.brought.extend(loaded.brought);
        all.diverged.extend(loaded.diverged);
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

/// Says whether a file that cannot be loaded would have hooks that run. Of a file of the project, the approved versions of
/// its hooks run instead, if there are any.
fn is_in_force(file: &LoadedFile, options: &LoadOptions) -> bool {
    let Some(approvals) = approvals(file.layer, options) else {
        return true;
    };
    let (project, source) = Project::of_file(&file.path);
    let mut approved = approvals.approved(&project.dir).iter();
    options.deny_untrusted && !approved.any(|approved| approved.source.starts_with(&source))
}

/// Returns the approvals, if they decide about the hooks of a layer.
fn approvals(layer: Layer, options: &LoadOptions) -> Option<&Approvals> {
    (layer == Layer::Project)
        .then(|| options.trust.approvals())
        .flatten()
}

/// Says whether a hook file is not there whose hooks were approved.
fn is_gone(path: &Path, layer: Layer, options: &LoadOptions) -> bool {
    let Some(approvals) = approvals(layer, options) else {
        return false;
    };
    let (project, source) = Project::of_file(path);
    let mut approved = approvals.approved(&project.dir).iter();
    !layers::is_there(path) && approved.any(|approved| approved.source == source)
}

/// Adds the approved hooks of a file of the project that the file does not have any more, as they were approved.
/// All then stand in the order that was approved.
fn add_missing(file: &LoadedFile, options: &LoadOptions, loaded: &mut Loaded) {
    let Some(mut copies) = ApprovedCopies::of(&file.path, file.layer, options) else {
        return;
    };
    let names: Vec<String> = loaded
        .brought
        .iter()
        .map(|brought| brought.item.name.clone())
        .collect();
    for restored in copies.load_all_but(&names) {
        loaded.diverged.push(restored.hook);
        if restored.is_wired {
            loaded.wired.extend(restored.specs.into_iter().map(wired));
        } else {
            loaded.specs.extend(restored.specs);
        }
    }
    let places = copies.places(&file.sha256);
    if !places.is_empty() {
        let place = |spec: &HookSpec| places.get(spec.id.as_str()).copied();
        // What was approved later has no place yet.
        loaded
            .specs
            .sort_by_key(|spec| place(spec).unwrap_or(usize::MAX));
    }
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
    let read = read_drafts(&mut report, path, text);
    let mut loaded = Loaded::default();
    loaded.agent_files.extend(read.agent_file);
    let context = Context { layer, options };
    let mut copies = ApprovedCopies::of(path, layer, options);
    if let Some(copies) = &mut copies {
        copies.compare(&read.drafts, &trust::hex_digest(text.as_bytes()));
    }
    let copies = &mut copies;
    loaded.specs = build(&mut report, &context, read.drafts, &mut loaded, copies);
    let specs = build(&mut report, &context, read.wired, &mut loaded, copies);
    loaded.wired = specs.into_iter().map(wired).collect();
    let has_errors = report.has_errors();
    let problems = report.into_problems();
    if has_errors {
        return Err(Box::new(broken(path, layer, read.system, problems)));
    }
    loaded.warnings = problems;
    Ok(loaded)
}

/// What one text says.
struct DraftsRead {
    drafts: Vec<Draft>,
    /// The hooks that keys of agents stand for.
    wired: Vec<Draft>,
    agent_file: Option<AgentFile>,
    system: &'static str,
}

/// Reads a text as the hook file of its kind.
fn read_drafts(report: &mut Report, path: &Path, text: &str) -> DraftsRead {
    let mut all = DraftsRead {
        drafts: Vec::new(),
        wired: Vec::new(),
        agent_file: None,
        system: "tenterhook",
    };
    let Some(root) = tree::read(report, Format::of(path, text)) else {
        return all;
    };
    if let Some(form) = Form::of(&root) {
        all.system = "docker-agent";
        let read = agent_file::read(report, &root, form);
        all.agent_file = (form == Form::AgentFile).then_some(read.file);
        all.wired = read.wired;
        all.drafts = read.drafts;
    } else if !root.is_null() {
        all.drafts = native::read(report, &root);
    }
    all
}

/// Makes a hook one that the program brings along, so that it runs after what people wrote in any file.
fn wired(mut spec: HookSpec) -> HookSpec {
    spec.source.layer = Layer::Code;
    spec
}

/// Makes the hooks that may run, without those that another one of the file makes needless.
fn build(
    report: &mut Report,
    context: &Context<'_>,
    drafts: Vec<Draft>,
    loaded: &mut Loaded,
    copies: &mut Option<ApprovedCopies<'_>>,
) -> Vec<HookSpec> {
    let mut specs: Vec<HookSpec> = Vec::new();
    let mut lines = HashMap::new();
    for draft in drafts {
        let span = draft.span;
        let line = report.source().line_of(span.start);
        for spec in make(report, context, draft, loaded, copies) {
            // What denies instead of a hook has no definition, and stands for that hook alone.
            if spec.definition.is_none() {
                specs.push(spec);
                continue;
            }
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

/// Makes the hooks of one entry: what it says if it is trusted, else what was approved.
fn make(
    report: &mut Report,
    context: &Context<'_>,
    mut draft: Draft,
    loaded: &mut Loaded,
    copies: &mut Option<ApprovedCopies<'_>>,
) -> Vec<HookSpec> {
    let Some(copies) = copies else {
        return draft.build(report, context);
    };
    let approvals = copies.approvals();
    let order = copies.order_of(&draft);
    let Some(mut judged) = trust::judge(report, context, approvals, order, &mut draft) else {
        return Vec::new();
    };
    // What may not run is made all the same, so that its mistakes are found before somebody approves it.
    let now = draft.build(report, context);
    let denies = context.options.deny_untrusted;
    let specs = match (judged.state, approvals.before(&judged.item)) {
        (TrustState::Trusted, _) => now,
        (_, Some(approved)) => {
            let divergence = if approved.digest == judged.item.digest() {
                Divergence::Moved
            } else {
                Divergence::Changed
            };
            let restored = copies.load(approved, divergence);
            judged.is_approved_in_force = restored.hook.denies.is_none();
            loaded.diverged.push(restored.hook);
            let mut specs = restored.specs;
            if denies {
                let known = |spec: &HookSpec| specs.iter().any(|it| it.event == spec.event);
                let new = now.into_iter().filter(|spec| !known(spec)).collect();
                specs.extend(trust::denials(new, &judged));
            }
            specs
        }
        (_, None) if denies => trust::denials(now, &judged),
        (_, None) => Vec::new(),
    };
    loaded.brought.push(judged);
    specs
}
