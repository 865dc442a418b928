//! Loads hooks from hook files, from text and from command lines.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::path::{Component, Path, PathBuf};

use tenterhook_engine::{EventName, HookSpec, Layer};
use tenterhook_files::hex_digest;
use tenterhook_hookfile::{
    BrokenSource, HookDeclaration, HookLine, ImportEntry, LoadError, Problem, Report,
    SourceProblem, SourceText, declare_lines, read_imported, read_text,
};
use tenterhook_systems::host::{HostAgent, LostEvent};
use tenterhook_trust::{Divergence, Project, ProjectHook, denials, judge, resolved};

use crate::approved_copies::ApprovedCopies;
use crate::build::{build, check, source_of};
use crate::layers;
use crate::loaded::{Loaded, LoadedFile};
use crate::options::LoadOptions;

/// Loads a file, whose hooks belong to `layer`.
///
/// A file that your user names belongs to [`Layer::Explicit`]. Hooks of [`Layer::Project`] are left
/// out unless [`LoadOptions::trust`] lets them run. [`Loaded::project_hooks`] lists them.
///
/// Register [`Loaded::specs`] and, after them, [`Loaded::wired`].
///
/// # Errors
/// Returns every problem of the file, unless [`LoadOptions::lenient`] is set.
pub fn load_file(path: &Path, layer: Layer, options: &LoadOptions) -> Result<Loaded, LoadError> {
    load_files([(path, layer)], options)
}

/// Loads several files, each with the layer of its hooks.
///
/// # Errors
/// Returns every problem of every file, unless [`LoadOptions::lenient`] is set.
pub fn load_files<P: AsRef<Path>>(
    files: impl IntoIterator<Item = (P, Layer)>,
    options: &LoadOptions,
) -> Result<Loaded, LoadError> {
    let files = files.into_iter();
    let files: Vec<(PathBuf, Layer)> = files
        .map(|(path, layer)| (path.as_ref().to_owned(), layer))
        .collect();
    let mut known = BTreeSet::new();
    let mut parts = Vec::new();
    let mut importing = Vec::new();
    for (path, layer) in files {
        // An approved file may have been loaded already, by the file that imports it.
        if !known.insert(identity(&path, layer)) && layer == Layer::Project {
            continue;
        }
        let (part, imports) = load_part(&path, &[], layer, options);
        parts.push(part);
        if !imports.is_empty() {
            importing.push(path);
        }
        for import in imports {
            if known.insert(identity(&import.path, layer)) {
                let (part, nested) = load_part(&import.path, &import.variables, layer, options);
                parts.push(refuse_nested(part, &nested));
            }
        }
    }
    let mut loaded = join(parts, options)?;
    loaded.importing = importing;
    Ok(loaded)
}

/// Returns what tells whether a file is loaded already. Links of a project are not followed: an approved file that is
/// replaced by a link to another file stays in force, whatever the link leads to.
fn identity(path: &Path, layer: Layer) -> (Layer, PathBuf) {
    let path = if layer == Layer::Project {
        path.to_owned()
    } else {
        resolved(path)
    };
    (layer, path)
}

/// A file, and what was loaded from it.
type Part = (LoadedFile, Result<Loaded, Box<BrokenSource>>);

/// A file that another one imports.
struct ImportedFile {
    path: PathBuf,
    /// The variables that its hooks have.
    variables: Vec<(String, String)>,
}

/// Loads one file, whose hooks have these variables if it is imported. Also returns the files that it imports.
fn load_part(
    path: &Path,
    variables: &[(String, String)],
    layer: Layer,
    options: &LoadOptions,
) -> (Part, Vec<ImportedFile>) {
    let is_disabled = options.disabled.contains(path, layer);
    let misnamed = layers::misnamed(path).filter(|_| layer != Layer::Explicit);
    let text = match misnamed {
        Some(problem) => Err(Box::new(problem.into_problem(path))),
        None => read_text(path),
    };
    let mut imports = Vec::new();
    let (sha256, loaded) = match text {
        _ if is_disabled => (String::new(), Ok(Loaded::default())),
        Ok(text) => (
            hex_digest(text.as_bytes()),
            load_one(path, &text, variables, layer, options).map(|(loaded, found)| {
                imports = found;
                loaded
            }),
        ),
        // `add_missing` loads its approved hooks from their copies.
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
        variables: variables.to_vec(),
        is_broken: loaded.is_err(),
        is_disabled,
    };
    ((file, loaded), imports)
}

/// Refuses an imported file that imports others.
fn refuse_nested((mut file, loaded): Part, nested: &[ImportedFile]) -> Part {
    if nested.is_empty() {
        return (file, loaded);
    }
    let problem = SourceProblem::from("an imported file imports other files".to_owned());
    let problem = problem.hint("import those files directly");
    file.is_broken = true;
    let broken = BrokenSource::of(&file.path, file.layer, "tenterhook", problem);
    (file, Err(Box::new(broken)))
}

/// Loads text as if it were the content of a file at `path`. The extension decides the format.
///
/// # Errors
/// Returns every problem of the text, unless [`LoadOptions::lenient`] is set.
pub fn load_text(
    path: &Path,
    text: &str,
    layer: Layer,
    options: &LoadOptions,
) -> Result<Loaded, LoadError> {
    let loaded = load_one(path, text, &[], layer, options).map(|(loaded, _)| loaded);
    let file = LoadedFile {
        path: path.to_owned(),
        layer,
        sha256: hex_digest(text.as_bytes()),
        variables: Vec::new(),
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
            for reason in add_missing(&file, options, &mut loaded) {
                let broken = absent_hook(&file, reason);
                problems.extend(broken.problems.iter().cloned());
                all.broken.push(broken);
            }
        }
        problems.extend(loaded.warnings.iter().cloned());
        all.specs.extend(loaded.specs);
        all.wired.extend(loaded.wired);
        all.warnings.extend(loaded.warnings);
        all.agent_files.extend(loaded.agent_files);
        all.project_hooks.extend(loaded.project_hooks);
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

/// Returns whether a file that cannot be loaded would have hooks that run. For a file of the project,
/// the approved versions of its hooks run instead, if there are any.
fn is_in_force(file: &LoadedFile, options: &LoadOptions) -> bool {
    let Some(approvals) = options.approvals(file.layer) else {
        return true;
    };
    let (project, source) = Project::of_file(&file.path);
    let mut approved = approvals.approved(&project.dir).iter();
    options.deny_untrusted && !approved.any(|approved| approved.source.starts_with(&source))
}

/// Returns whether a hook file with approved hooks is missing.
fn is_gone(path: &Path, layer: Layer, options: &LoadOptions) -> bool {
    let Some(approvals) = options.approvals(layer) else {
        return false;
    };
    let (project, source) = Project::of_file(path);
    let mut approved = approvals.approved(&project.dir).iter();
    !layers::is_there(path) && approved.any(|approved| approved.source == source)
}

/// Adds the approved hooks that a file of the project no longer has, as they were approved. Then puts
/// all hooks into the approved order.
///
/// Returns the reasons why hooks that work on results do not run, because no denial can replace them.
fn add_missing(file: &LoadedFile, options: &LoadOptions, loaded: &mut Loaded) -> Vec<String> {
    let Some(mut copies) = ApprovedCopies::of(&file.path, &file.variables, file.layer, options)
    else {
        return Vec::new();
    };
    let mut absent = Vec::new();
    let names: Vec<String> = loaded
        .project_hooks
        .iter()
        .map(|hook| hook.item.name.clone())
        .collect();
    for restored in copies.load_all_but(&names) {
        loaded.diverged.push(restored.hook);
        absent.extend(restored.absent);
        if restored.is_wired {
            loaded
                .wired
                .extend(restored.specs.into_iter().map(behind_written));
        } else {
            loaded.specs.extend(restored.specs);
        }
    }
    let places = copies.places(&file.sha256);
    if !places.is_empty() {
        let place = |spec: &HookSpec| places.get(spec.id.as_str()).copied();
        // Hooks that were approved later have no position in the approved order, so they come last.
        loaded
            .specs
            .sort_by_key(|spec| place(spec).unwrap_or(usize::MAX));
    }
    absent
}

/// Reports that an approved hook of a file is not in force.
fn absent_hook(file: &LoadedFile, reason: String) -> BrokenSource {
    BrokenSource::of(
        &file.path,
        file.layer,
        "tenterhook",
        SourceProblem::from(reason),
    )
}

fn broken(path: &Path, layer: Layer, system: &'static str, problems: Vec<Problem>) -> BrokenSource {
    BrokenSource {
        path: path.to_owned(),
        layer,
        system,
        problems,
        is_outdated: false,
    }
}

/// Loads the text of one hook file, and returns the files that it imports. The error contains all of its
/// problems.
fn load_one(
    path: &Path,
    text: &str,
    variables: &[(String, String)],
    layer: Layer,
    options: &LoadOptions,
) -> Result<(Loaded, Vec<ImportedFile>), Box<BrokenSource>> {
    let mut report = Report::new(SourceText::new(path, text));
    let read = read_imported(&mut report, variables);
    if layer != Layer::Explicit && options.host == Some(read.system) {
        return Ok((Loaded::default(), Vec::new()));
    }
    let imports = imported(&mut report, &read.imports, layer, options);
    let mut loaded = Loaded::default();
    loaded.agent_files.extend(read.agent_file);
    let mut copies = ApprovedCopies::of(path, variables, layer, options);
    if let Some(copies) = &mut copies {
        copies.compare(&read.declarations, &hex_digest(text.as_bytes()));
    }
    let mut maker = HookMaker {
        layer,
        options,
        copies,
        loaded: &mut loaded,
    };
    let specs = maker.make_all(&mut report, read.declarations);
    let wired = maker.make_all(&mut report, read.wired);
    loaded.specs = specs;
    loaded.wired = wired.into_iter().map(behind_written).collect();
    let has_errors = report.has_errors();
    let problems = report.into_problems();
    if has_errors {
        return Err(Box::new(broken(path, layer, read.system, problems)));
    }
    loaded.warnings = problems;
    Ok((loaded, imports))
}

/// Removes `..` from a path, together with the folder before it. A path that is relative to a project's hook file
/// stays in the project, even if its folder of hooks is a link.
fn without_parents(path: &Path) -> PathBuf {
    let mut found = PathBuf::new();
    for part in path.components() {
        if part != Component::ParentDir || !found.pop() {
            found.push(part);
        }
    }
    found
}

/// Returns the paths of imported files. A missing file is an error, because its guards would be missing.
fn imported(
    report: &mut Report,
    imports: &[ImportEntry],
    layer: Layer,
    options: &LoadOptions,
) -> Vec<ImportedFile> {
    let folder = report.source().path().parent();
    let folder = folder.unwrap_or(Path::new("")).to_owned();
    let mut files = Vec::new();
    for import in imports {
        let text = &import.path;
        let path = without_parents(&folder.join(options.environment.expand_path(text)));
        // The approved hooks of a missing file are loaded from their copies.
        if !layers::is_there(&path) && !is_gone(&path, layer, options) {
            let message = format!("cannot import `{text}`: the file does not exist");
            let problem = report.problem(import.span, message);
            report.add(problem.hint("correct the path, or remove it from `import`"));
        }
        files.push(ImportedFile {
            path,
            variables: import.variables.clone(),
        });
    }
    files
}

/// Marks a hook as the program's own, so that it runs after all hooks that people wrote in files.
fn behind_written(mut spec: HookSpec) -> HookSpec {
    spec.source.layer = Layer::Code;
    spec
}

/// Builds the hooks of one file.
struct HookMaker<'a> {
    layer: Layer,
    options: &'a LoadOptions,
    /// The approved versions of the file, if approvals decide about it.
    copies: Option<ApprovedCopies<'a>>,
    loaded: &'a mut Loaded,
}

impl HookMaker<'_> {
    /// Builds the hooks that may run, without those that repeat another hook of the file.
    fn make_all(
        &mut self,
        report: &mut Report,
        declarations: Vec<HookDeclaration>,
    ) -> Vec<HookSpec> {
        let mut specs: Vec<HookSpec> = Vec::new();
        let mut lines = HashMap::new();
        for declaration in declarations {
            let span = declaration.span;
            let line = report.source().line_of(span.start);
            for spec in self.make(report, declaration) {
                // A denial has no definition, so it can never repeat another hook.
                if spec.definition.is_none() {
                    specs.push(spec);
                    continue;
                }
                if let Some((title, lost)) = self.lost_event(&spec) {
                    let message = format!("{title} {}, so this hook does not run there", lost.why);
                    report.add(report.warning(span, message).hint(lost.instead));
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

    /// Returns the host in which the hook could do nothing, and why.
    fn lost_event(&self, spec: &HookSpec) -> Option<(&'static str, LostEvent)> {
        let host = HostAgent::by_name(self.options.host?)?;
        let Some(EventName::Known(kind)) = &spec.event else {
            return None;
        };
        Some((host.title, host.lost_event(*kind)?))
    }

    /// Builds the hooks of one declaration, or the approved hooks if the declaration may not run.
    fn make(&mut self, report: &mut Report, declaration: HookDeclaration) -> Vec<HookSpec> {
        match self.options.trust.admit(declaration, self.layer) {
            Ok(approved) => build(report, self.options, &approved),
            Err(declaration) => self.make_of_project(report, &declaration),
        }
    }

    fn make_of_project(
        &mut self,
        report: &mut Report,
        declaration: &HookDeclaration,
    ) -> Vec<HookSpec> {
        let Some(copies) = &mut self.copies else {
            return Vec::new();
        };
        let (options, approvals) = (self.options, copies.approvals());
        let order = copies.order_of(declaration);
        let is_review = options.trust.reads_unapproved();
        let environment = &options.environment;
        let judged = judge(
            report,
            environment,
            approvals,
            is_review,
            order,
            declaration,
        );
        let Some(judged) = judged else {
            return Vec::new();
        };
        let mut hook = judged.hook;
        let specs = if let Some(approved) = judged.approved {
            build(report, self.options, &approved)
        } else {
            self.instead_of(report, declaration, &mut hook)
        };
        self.loaded.project_hooks.push(hook);
        specs
    }

    /// Builds the hooks that replace an untrusted one: its approved version, and denials.
    fn instead_of(
        &mut self,
        report: &mut Report,
        declaration: &HookDeclaration,
        hook: &mut ProjectHook,
    ) -> Vec<HookSpec> {
        let Some(copies) = &mut self.copies else {
            return Vec::new();
        };
        let source = source_of(report, declaration, self.layer);
        // It is checked anyway, so that its mistakes are found before someone approves it.
        let is_whole = check(report, self.options, declaration);
        let mut specs = Vec::new();
        if let Some(approved) = copies.approvals().before(&hook.item) {
            let divergence = if approved.digest == hook.item.digest() {
                Divergence::Moved
            } else {
                Divergence::Changed
            };
            let restored = copies.load(approved, divergence);
            hook.is_approved_in_force = restored.hook.denies.is_none();
            self.loaded.diverged.push(restored.hook);
            specs = restored.specs;
        }
        // If the hook cannot be built, its whole file is broken and the report has the error.
        if is_whole && self.options.deny_untrusted {
            let is_new =
                |event: &EventName| !specs.iter().any(|spec| spec.event.as_ref() == Some(event));
            let mut events = declaration.event_names();
            events.retain(is_new);
            specs.extend(denials(events, &source, hook));
        }
        specs
    }
}

/// Loads shell lines that were given on the command line as hooks.
///
/// # Errors
/// Returns every problem of every line, unless [`LoadOptions::lenient`] is set.
pub fn load_lines(
    lines: impl IntoIterator<Item = HookLine>,
    options: &LoadOptions,
) -> Result<Loaded, LoadError> {
    let mut loaded = Loaded::default();
    for (source, declaration) in declare_lines(lines) {
        let mut report = Report::new(source);
        let path = report.source().path().to_owned();
        if let Ok(approved) = options.trust.admit(declaration, Layer::Explicit) {
            let mut specs = build(&mut report, options, &approved);
            for spec in &mut specs {
                // A hook of the command line is not in a file, so it has no line number.
                spec.source.line = None;
            }
            loaded.specs.extend(specs);
        }
        let has_errors = report.has_errors();
        let problems = report.into_problems();
        if has_errors {
            let source = broken(&path, Layer::Explicit, "docker-agent", problems);
            loaded.broken.push(source);
        } else {
            loaded.warnings.extend(problems);
        }
    }
    if !loaded.broken.is_empty() && !options.lenient {
        return Err(LoadError::from(loaded.broken));
    }
    Ok(loaded)
}
