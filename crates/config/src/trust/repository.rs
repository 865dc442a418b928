//! Which repository a project is in, and whether the approvals of a project fit where it is now.
//!
//! A repository is known by its first commit. An approval is bound to a folder and to that commit. Whether a commit
//! belongs to a repository is read off its objects, so that no history is walked when a session starts.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::future::join_all;
use serde::{Deserialize, Serialize};
use tenterhook_handlers::git::{Git, GitError};
use tenterhook_process::CancellationToken;

use super::{Approved, search_path};

/// How long git may take to answer which commits a repository has.
const LOOK_DEADLINE: Duration = Duration::from_secs(10);
/// How long git may take to walk to the first commit, when something is approved.
const WALK_DEADLINE: Duration = Duration::from_mins(1);

/// The repository that an approval is bound to.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RepositoryIdentity {
    /// The approval is older than this record. It is bound to its folder alone.
    #[default]
    Unrecorded,
    /// The project was in no repository, or in one without a commit.
    None,
    /// The first commit of the repository: the one at the end of the first parents of `HEAD`.
    FirstCommit(String),
}

/// What git says of the repositories that matter.
#[derive(Debug, Default)]
pub(super) struct Repositories {
    /// What each repository has, by the folder with its `.git`.
    seen: HashMap<PathBuf, Result<Commits, String>>,
    /// The folder with the `.git` of each project that something was approved in, as it was when they were looked at.
    tops: HashMap<PathBuf, Option<PathBuf>>,
    /// The identities of projects whose hooks are about to be approved.
    identities: HashMap<PathBuf, Result<RepositoryIdentity, String>>,
    /// Projects whose approvals were given in another copy of the repository, and what stands for them here.
    elsewhere: Vec<(PathBuf, PathBuf)>,
}

/// The commits of a repository that somebody asked for.
#[derive(Debug, Default)]
struct Commits {
    /// `HEAD` is a commit.
    has_head: bool,
    known: BTreeSet<String>,
}

impl Repositories {
    /// Looks at the repositories of the approvals that may count in `start`.
    pub(super) async fn look(approved: &BTreeMap<PathBuf, Vec<Approved>>, start: &Path) -> Self {
        let named = std::path::absolute(start).unwrap_or_else(|_| start.to_owned());
        let start = std::fs::canonicalize(start).unwrap_or_else(|_| named.clone());
        let (above, others): (Vec<_>, Vec<_>) = approved
            .iter()
            .partition(|(project, _)| start.starts_with(project));
        let is_bound = |it: &&Approved| it.repository != RepositoryIdentity::Unrecorded;
        let bound = above
            .iter()
            .filter(|(_, approved)| approved.iter().any(|it| is_bound(&it)));
        let of_projects: HashMap<PathBuf, Option<PathBuf>> = bound
            .map(|(project, _)| ((*project).clone(), top(project)))
            .collect();
        let mut tops: BTreeSet<PathBuf> = of_projects.values().flatten().cloned().collect();
        let here = top(&start);
        let commits = |all: &[(&PathBuf, &Vec<Approved>)]| -> BTreeSet<String> {
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
        // A link that has taken the place of a project, or of a folder in it, must not lead away from its approvals.
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

    /// Finds the approvals of other copies of the repository at `top` that would count in `start`.
    fn find_elsewhere(&mut self, others: &[(&PathBuf, &Vec<Approved>)], top: &Path, start: &Path) {
        let Some(Ok(commits)) = self.seen.get(top) else {
            return;
        };
        for (project, approved) in others {
            let is_known = |it: &&Approved| {
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

    pub(super) fn elsewhere(&self) -> impl Iterator<Item = (&Path, &Path)> {
        let pairs = self.elsewhere.iter();
        pairs.map(|(project, here)| (project.as_path(), here.as_path()))
    }

    /// Returns why an approval of a project does not fit the repository that the project is in now.
    pub(super) fn objection(
        &self,
        project: &Path,
        approved: &RepositoryIdentity,
    ) -> Option<String> {
        if *approved == RepositoryIdentity::Unrecorded {
            return None;
        }
        let known = self.tops.get(project).cloned();
        let now = known.unwrap_or_else(|| top(project));
        let seen = now.as_ref().and_then(|top| self.seen.get(top));
        match (approved, now.is_some(), seen) {
            (RepositoryIdentity::None, false, _) | (RepositoryIdentity::Unrecorded, ..) => None,
            (RepositoryIdentity::FirstCommit(first), false, _) => Some(format!(
                "it was approved in the repository that begins with commit {}, and there is no repository here now",
                short(first)
            )),
            (RepositoryIdentity::None, true, Some(Ok(commits))) if !commits.has_head => None,
            (RepositoryIdentity::None, true, Some(Ok(_))) => {
                Some("it was approved outside of a repository, and there is a repository here now".to_owned())
            }
            (RepositoryIdentity::FirstCommit(first), true, Some(Ok(commits))) => {
                (!commits.known.contains(first)).then(|| {
                    format!(
                        "it was approved in the repository that begins with commit {}, and the one here now does not have that commit",
                        short(first)
                    )
                })
            }
            (_, true, Some(Err(problem))) => Some(format!("its repository cannot be read: {problem}")),
            (_, true, None) => Some("its repository was not looked at".to_owned()),
        }
    }

    /// Reads the first commits of the repositories of projects.
    pub(super) async fn identify(&mut self, projects: impl IntoIterator<Item = &Path>) {
        let projects: BTreeSet<&Path> = projects.into_iter().collect();
        for project in projects {
            let identity = identity_of(project).await;
            self.identities.insert(project.to_owned(), identity);
        }
    }

    /// Returns the identity of a project that was read before.
    pub(super) fn identity(&self, project: &Path) -> Option<Result<RepositoryIdentity, String>> {
        self.identities.get(project).cloned()
    }
}

impl RepositoryIdentity {
    /// Returns the first commit.
    pub fn first_commit(&self) -> Option<&str> {
        match self {
            Self::FirstCommit(commit) => Some(commit),
            Self::Unrecorded | Self::None => None,
        }
    }
}

/// Joins a path without adding a `/` behind the folder for an empty one.
fn plain_join(dir: &Path, below: &Path) -> PathBuf {
    dir.components().chain(below.components()).collect()
}

/// Returns the part of a commit's name that people read.
fn short(commit: &str) -> &str {
    commit.get(..12).unwrap_or(commit)
}

/// Returns the folder with the `.git` of the repository that a folder is in. An empty folder `.git` is not a repository to
/// git either, which goes on looking above it.
fn top(dir: &Path) -> Option<PathBuf> {
    let has_git = |dir: &&Path| {
        let git = dir.join(".git");
        git.is_file() || git.join("HEAD").symlink_metadata().is_ok()
    };
    dir.ancestors().find(has_git).map(Path::to_owned)
}

/// Says whether a folder is in a repository.
pub(super) fn has_repository(dir: &Path) -> bool {
    top(dir).is_some()
}

/// Makes git run at a repository. `projects` are those around it: no `git` of theirs is run.
fn git(deadline: Duration, projects: &[&Path]) -> Git {
    // Objects are read and nothing of the repository is started, so it may be another user's, as in a container.
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

/// Asks a repository which of the commits it has.
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
        .map_err(|error| tenterhook::error_chain(&error))?;
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
        // A repository without a commit has no first one.
        Err(GitError::Failed { .. })
            if !commits_of(&top, &BTreeSet::new(), &projects)
                .await?
                .has_head =>
        {
            return Ok(RepositoryIdentity::None);
        }
        Err(error) => return Err(tenterhook::error_chain(&error)),
    };
    let text = String::from_utf8_lossy(&walked);
    match text.lines().last().map(str::trim) {
        Some(commit) if !commit.is_empty() => {
            Ok(RepositoryIdentity::FirstCommit(commit.to_owned()))
        }
        _ => Err("git found no first commit".to_owned()),
    }
}
