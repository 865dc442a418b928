//! Identifies the repository of a project, and checks whether approvals apply to it.
//!
//! The first commit identifies a repository. An approval is bound to a folder and to that commit. To
//! check whether a repository has a commit, only its objects are queried, so that starting a session
//! never walks the history.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::future::join_all;
use tenterhook_process::CancellationToken;
use tenterhook_process::git::{Git, GitError};

use crate::project::plain_join;
use crate::record::{ApprovalRecord, RepositoryIdentity};
use crate::search_path;

/// How long git may take to answer which commits a repository has.
const LOOK_DEADLINE: Duration = Duration::from_secs(10);
/// How long git may take to find the first commit for an approval.
const WALK_DEADLINE: Duration = Duration::from_mins(1);

/// What git reported about the repositories of approvals.
#[derive(Debug, Default)]
pub(crate) struct Repositories {
    /// The commits of each repository, by the folder that contains its `.git`.
    seen: HashMap<PathBuf, Result<Commits, String>>,
    /// For each approved project, the folder that contains `.git`, as found by `look`.
    tops: HashMap<PathBuf, Option<PathBuf>>,
    /// The identities of projects whose hooks are about to be approved.
    identities: HashMap<PathBuf, Result<RepositoryIdentity, String>>,
    /// Projects that were approved in another copy of the repository, and the corresponding folders here.
    elsewhere: Vec<(PathBuf, PathBuf)>,
}

/// The wanted commits that a repository has.
#[derive(Debug, Default)]
struct Commits {
    /// Whether `HEAD` is a commit.
    has_head: bool,
    known: BTreeSet<String>,
}

impl Repositories {
    /// Examines the repositories of the approvals that may apply in `start`.
    pub(crate) async fn look(
        approved: &BTreeMap<PathBuf, Vec<ApprovalRecord>>,
        start: &Path,
    ) -> Self {
        let named = std::path::absolute(start).unwrap_or_else(|_| start.to_owned());
        let start = std::fs::canonicalize(start).unwrap_or_else(|_| named.clone());
        let (above, others): (Vec<_>, Vec<_>) = approved
            .iter()
            .partition(|(project, _)| start.starts_with(project));
        let is_bound = |it: &&ApprovalRecord| it.repository.binds_to_repository();
        let bound = above
            .iter()
            .filter(|(_, approved)| approved.iter().any(|it| is_bound(&it)));
        let of_projects: HashMap<PathBuf, Option<PathBuf>> = bound
            .map(|(project, _)| ((*project).clone(), top(project)))
            .collect();
        let mut tops: BTreeSet<PathBuf> = of_projects.values().flatten().cloned().collect();
        let here = top(&start);
        let commits = |all: &[(&PathBuf, &Vec<ApprovalRecord>)]| -> BTreeSet<String> {
            let all = all.iter().flat_map(|(_, approved)| approved.iter());
            all.filter_map(|it| it.repository.first_commit().map(str::to_owned))
                .collect()
        };
        let elsewhere = commits(&others);
        if !elsewhere.is_empty() {
            tops.extend(here.clone());
        }
        let mut wanted = commits(&above);
        wanted.extend(elsewhere);
        let looked_at = tops.into_iter().map(|top| async {
            let around = above.iter().map(|(project, _)| project.as_path());
            let around: Vec<&Path> = around.chain([top.as_path()]).collect();
            let commits = commits_of(&top, &wanted, &around).await;
            (top, commits)
        });
        let mut this = Self {
            seen: join_all(looked_at).await.into_iter().collect(),
            tops: of_projects,
            ..Self::default()
        };
        if let Some(here) = here {
            this.find_elsewhere(&others, &here, &start);
        }
        // If a link has replaced a project, or a folder in it, its approvals must still be found.
        let linked = others
            .iter()
            .filter(|(project, _)| named.starts_with(project));
        let linked = linked.filter_map(|(project, _)| {
            let here = std::fs::canonicalize(project).ok()?;
            let is_below = here == **project;
            let here = if is_below { start.clone() } else { here };
            Some(((*project).clone(), here))
        });
        this.elsewhere.extend(linked);
        this
    }

    /// Finds approvals from other copies of the repository at `top` that concern `start`.
    fn find_elsewhere(
        &mut self,
        others: &[(&PathBuf, &Vec<ApprovalRecord>)],
        top: &Path,
        start: &Path,
    ) {
        let Some(Ok(commits)) = self.seen.get(top) else {
            return;
        };
        for (project, approved) in others {
            let is_known = |it: &&ApprovalRecord| {
                let first = it.repository.first_commit();
                first.is_some_and(|first| commits.known.contains(first))
            };
            let root = approved.iter().find(is_known);
            let root = root.and_then(|it| it.root.as_deref());
            let below = root.and_then(|root| project.strip_prefix(root).ok());
            let here = below.map(|below| plain_join(top, below));
            let here = here.filter(|here| start.starts_with(here) && here != *project);
            self.elsewhere
                .extend(here.map(|here| ((*project).clone(), here)));
        }
    }

    pub(crate) fn elsewhere(&self) -> impl Iterator<Item = (&Path, &Path)> {
        let pairs = self.elsewhere.iter();
        pairs.map(|(project, here)| (project.as_path(), here.as_path()))
    }

    /// Returns why a project's approval does not apply to the repository that the project is in now.
    pub(crate) fn objection(
        &self,
        project: &Path,
        approved: &RepositoryIdentity,
    ) -> Option<String> {
        if !approved.binds_to_repository() {
            return None;
        }
        let known = self.tops.get(project).cloned();
        let now = known.unwrap_or_else(|| top(project));
        let seen = now.as_ref().and_then(|top| self.seen.get(top));
        match (approved.first_commit(), now.is_some(), seen) {
            (None, false, _) => None,
            (Some(first), false, _) => Some(format!(
                "it was approved in the repository whose first commit is {}, and there is no repository here now",
                short(first)
            )),
            (None, true, Some(Ok(commits))) => commits.has_head.then(|| {
                "it was approved without a repository, and there is a repository here now".to_owned()
            }),
            (Some(first), true, Some(Ok(commits))) => (!commits.known.contains(first)).then(|| {
                format!(
                    "it was approved in the repository whose first commit is {}, and the repository here does not have that commit",
                    short(first)
                )
            }),
            (_, true, Some(Err(problem))) => {
                Some(format!("its repository cannot be read: {problem}"))
            }
            (_, true, None) => Some("its repository was not read".to_owned()),
        }
    }

    /// Reads the first commits of the repositories of projects.
    pub(crate) async fn identify(&mut self, projects: impl IntoIterator<Item = &Path>) {
        let projects: BTreeSet<&Path> = projects.into_iter().collect();
        for project in projects {
            let identity = identity_of(project).await;
            self.identities.insert(project.to_owned(), identity);
        }
    }

    /// Returns the identity of a project that was read before.
    pub(crate) fn identity(&self, project: &Path) -> Option<Result<RepositoryIdentity, String>> {
        self.identities.get(project).cloned()
    }
}

/// Returns the abbreviated hash of a commit, for messages.
fn short(commit: &str) -> &str {
    commit.get(..12).unwrap_or(commit)
}

/// Returns the nearest folder at or above `dir` that contains the `.git` of a repository. Like git, it
/// ignores an empty `.git` folder.
fn top(dir: &Path) -> Option<PathBuf> {
    let has_git = |dir: &&Path| {
        let git = dir.join(".git");
        git.is_file() || git.join("HEAD").symlink_metadata().is_ok()
    };
    dir.ancestors().find(has_git).map(Path::to_owned)
}

/// Returns whether a folder is in a repository.
pub(crate) fn has_repository(dir: &Path) -> bool {
    top(dir).is_some()
}

/// Prepares git. A program `git` inside one of the `projects` never runs.
fn git(deadline: Duration, projects: &[&Path]) -> Git {
    // These commands only read objects and start nothing from the repository, so it is safe to read a
    // repository of another user, as happens in containers.
    let settings = [
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_CONFIG_KEY_0", "safe.directory"),
        ("GIT_CONFIG_VALUE_0", "*"),
    ];
    let settings = settings.map(|(name, value)| (name.into(), value.into()));
    let git = Git::new(settings, deadline, CancellationToken::new());
    match search_path::outside(projects) {
        Some(search) => git.env("PATH", search),
        None => git,
    }
}

/// Asks git which of the wanted commits a repository has.
async fn commits_of(
    top: &Path,
    wanted: &BTreeSet<String>,
    projects: &[&Path],
) -> Result<Commits, String> {
    let mut input = String::from("HEAD\n");
    for commit in wanted {
        input.push_str(commit);
        input.push('\n');
    }
    let command = [
        "cat-file",
        "--batch-check=%(objecttype) %(objectname)",
        "--buffer",
    ];
    let run = git(LOOK_DEADLINE, projects)
        .feed(top, &command, input.as_bytes())
        .await
        .map_err(|error| tenterhook_engine::error_chain(&error))?;
    let text = String::from_utf8_lossy(&run);
    let mut lines = text.lines().map(|line| line.strip_prefix("commit "));
    let has_head = lines.next().flatten().is_some();
    let known = lines.flatten().map(str::to_owned).collect();
    Ok(Commits { has_head, known })
}

/// Returns the identity of the repository that a folder is in.
async fn identity_of(dir: &Path) -> Result<RepositoryIdentity, String> {
    let Some(top) = top(dir) else {
        return Ok(RepositoryIdentity::None);
    };
    let walk = [
        "rev-list",
        "--first-parent",
        "--max-parents=0",
        "HEAD",
        "--",
    ];
    let projects = [top.as_path(), dir];
    let git = git(WALK_DEADLINE, &projects);
    let walked = match git.run(&top, &walk).await {
        Ok(walked) => walked,
        // `git rev-list` fails in a repository that has no commit yet.
        Err(GitError::Failed { .. })
            if !commits_of(&top, &BTreeSet::new(), &projects)
                .await?
                .has_head =>
        {
            return Ok(RepositoryIdentity::NoCommit);
        }
        Err(error) => return Err(tenterhook_engine::error_chain(&error)),
    };
    let text = String::from_utf8_lossy(&walked);
    match text.lines().last().map(str::trim) {
        Some(commit) if !commit.is_empty() => {
            Ok(RepositoryIdentity::FirstCommit(commit.to_owned()))
        }
        _ => Err("git did not find a first commit".to_owned()),
    }
}
