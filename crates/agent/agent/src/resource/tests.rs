use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

use super::*;

/// A home and a project.
struct Disk {
    dir: TempDir,
}

impl Disk {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        for folder in ["home/prompts", "home/skills", "work/prompts", "work/skills"] {
            fs::create_dir_all(dir.path().join(folder)).unwrap();
        }
        Self { dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn file(&self, name: &str, text: impl AsRef<[u8]>) -> &Self {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    /// Returns the places of user and project, and one that hooks name.
    fn places(&self) -> ResourcePlaces {
        let root = self.path("work");
        let of = |kind: &str| {
            let project = ResourceSource::Project { root: root.clone() };
            [("work", project), ("home", ResourceSource::User)].map(|(folder, source)| {
                ResourcePlace {
                    path: self.path(folder).join(kind),
                    source,
                }
            })
        };
        ResourcePlaces {
            prompts: of("prompts").into(),
            skills: of("skills").into(),
        }
    }

    fn load(&self) -> Resources {
        Resources::load(&self.places())
    }

    /// Returns what the problems say, with names for the folder.
    fn problems(&self, resources: &Resources) -> Vec<String> {
        let folder = self.dir.path().to_str().unwrap();
        let problems = resources.problems().iter();
        problems
            .map(|problem| problem.to_string().replace(folder, ""))
            .collect()
    }
}

#[test]
fn templates_are_the_markdown_files_of_a_folder() {
    let disk = Disk::new();
    disk.file("work/prompts/fix.md", "\n  Fix $1.\n")
        .file(
            "work/prompts/review.md",
            "---\ndescription: \"Looks\\e[31m\\nat it\"\nargument-hint: FILE\n---\nReview $@\n",
        )
        .file("work/prompts/notes.txt", "no template")
        .file("work/prompts/.hidden.md", "no template")
        .file("work/prompts/deep/more.md", "no template");
    let resources = disk.load();
    assert_eq!(disk.problems(&resources), [""; 0]);
    let seen: Vec<_> = resources
        .templates()
        .iter()
        .map(|template| {
            (
                template.name.as_str(),
                template.description.as_str(),
                template.argument_hint.as_deref(),
                template.source.to_string(),
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("fix", "Fix $1.", None, "project".to_owned()),
            (
                "review",
                "Looks [31m at it",
                Some("FILE"),
                "project".to_owned()
            ),
        ]
    );
    for (text, expected) in [
        ("/fix it", Some("Fix it.")),
        ("/fix", Some("Fix .")),
        ("/fix\nit all", Some("Fix it.")),
        ("/review a b", Some("Review a b")),
        ("/fixes", None),
        ("fix it", None),
        ("/skill:fix", None),
        ("/", None),
    ] {
        assert_eq!(resources.expand(text).as_deref(), expected, "{text}");
    }
    assert!(resources.has("fix") && !resources.has("skill:fix"));
}

#[test]
fn skills_are_folders_with_a_file_of_that_name() {
    let disk = Disk::new();
    let skill = |name: &str| format!("---\nname: {name}\ndescription: Does {name}.\n---\nDo it.\n");
    disk.file("home/skills/pdf/SKILL.md", skill("pdf"))
        .file("home/skills/pdf/deeper/SKILL.md", skill("deeper"))
        .file("home/skills/group/web/SKILL.md", skill("web"))
        .file("home/skills/unnamed/SKILL.md", "---\ndescription: d\n---\n")
        .file("home/skills/single.md", skill("one"))
        .file("home/skills/README.md", "# About these skills\n")
        .file("home/skills/node_modules/x/SKILL.md", skill("x"))
        .file(
            "home/skills/mine/SKILL.md",
            "---\ndescription: d\ndisable-model-invocation: true\n---\n",
        );
    let resources = disk.load();
    assert_eq!(disk.problems(&resources), [""; 0]);
    let names: Vec<&str> = resources.skills().iter().map(|s| &*s.name).collect();
    assert_eq!(names, ["web", "mine", "pdf", "one", "unnamed"]);
    let told = resources.introduce().unwrap();
    assert!(
        told.contains("<name>pdf</name>") && !told.contains("mine"),
        "{told}"
    );
    assert!(resources.has("skill:mine"));
    let text = resources.expand("/skill:pdf a.pdf").unwrap();
    let location = disk.path("home/skills/pdf/SKILL.md");
    assert!(text.contains(location.to_str().unwrap()), "{text}");
    assert!(text.ends_with("Do it.\n</skill>\n\nUser: a.pdf"), "{text}");
}

#[test]
fn what_is_the_users_own_counts_before_what_hooks_and_the_project_bring() {
    let disk = Disk::new();
    disk.file("work/prompts/fix.md", "of the project")
        .file("home/prompts/fix.md", "of the user")
        .file("hook/fix.md", "of a hook")
        .file("hook/more.md", "of a hook")
        .file("work/prompts/more.md", "of the project");
    let mut places = disk.places();
    let named = ["hook/fix.md", "hook/more.md", "hook", "gone.md"];
    let named = named.map(PathBuf::from).into();
    places.add_from_hooks(named, Vec::new(), disk.dir.path());
    let resources = Resources::load(&places);
    assert_eq!(resources.expand("/fix").as_deref(), Some("of the user"));
    assert_eq!(resources.expand("/more").as_deref(), Some("of a hook"));
    assert_eq!(
        disk.problems(&resources),
        [
            "`/hook/fix.md`: the name `fix` is taken by `/home/prompts/fix.md`",
            "`/hook/fix.md`: the name `fix` is taken by `/home/prompts/fix.md`",
            "`/gone.md`: a hook names this path, but it does not exist",
            "`/work/prompts/fix.md`: the name `fix` is taken by `/home/prompts/fix.md`",
            "`/work/prompts/more.md`: the name `more` is taken by `/hook/more.md`",
        ]
    );
}

#[test]
fn a_file_that_cannot_be_used_hides_no_other() {
    let disk = Disk::new();
    let long = "x".repeat(256 * 1024 + 1);
    disk.file("work/prompts/bad name.md", "x")
        .file("work/prompts/bytes.md", b"a\xff")
        .file("work/prompts/front.md", "---\ndescription: [\n---\n")
        .file("work/prompts/good.md", "good")
        .file("work/prompts/long.md", long)
        .file("work/skills/plain/SKILL.md", "# No front matter\n")
        .file(
            "work/skills/evil/SKILL.md",
            "---\nname: ../up\ndescription: d\n---\n",
        )
        .file("work/skills/good/SKILL.md", "---\ndescription: d\n---\n");
    fs::create_dir(disk.path("work/skills/odd")).unwrap();
    fs::create_dir(disk.path("work/skills/odd/SKILL.md")).unwrap();
    let resources = disk.load();
    assert!(resources.has("good") && resources.has("skill:good"));
    let problems = disk.problems(&resources);
    let expected = [
        "`/work/prompts/long.md`: it is larger than 262144 bytes",
        "`/work/prompts/bad name.md`: invalid name `bad name`, expected at most 64 letters, digits, `-` and `_`",
        "`/work/prompts/bytes.md`: it is not text: byte 2 is not valid UTF-8",
        "`/work/prompts/front.md`, line ",
        "`/work/skills/odd/SKILL.md`: it is not a regular file",
        "`/work/skills/plain/SKILL.md`: the front matter has no `description`",
        "`/work/skills/evil/SKILL.md`: invalid name `../up`",
    ];
    assert_eq!(problems.len(), expected.len(), "{problems:#?}");
    for expected in expected {
        let is_told = problems.iter().any(|problem| problem.starts_with(expected));
        assert!(is_told, "{expected}: {problems:#?}");
    }
}

#[cfg(unix)]
#[test]
fn a_link_of_a_project_does_not_lead_out_of_it_and_pipes_are_not_opened() {
    use std::os::unix::fs::symlink;
    let disk = Disk::new();
    disk.file("home/secret.md", "the key")
        .file("work/elsewhere/inside.md", "inside");
    symlink(
        disk.path("home/secret.md"),
        disk.path("work/prompts/out.md"),
    )
    .unwrap();
    symlink(
        disk.path("work/elsewhere/inside.md"),
        disk.path("work/prompts/in.md"),
    )
    .unwrap();
    symlink(
        disk.path("home/secret.md"),
        disk.path("home/prompts/own.md"),
    )
    .unwrap();
    symlink(disk.path("work/skills"), disk.path("work/skills/again")).unwrap();
    symlink("/dev/zero", disk.path("home/prompts/endless.md")).unwrap();
    let resources = disk.load();
    assert_eq!(resources.expand("/own").as_deref(), Some("the key"));
    assert_eq!(resources.expand("/in").as_deref(), Some("inside"));
    assert_eq!(
        disk.problems(&resources),
        [
            "`/home/prompts/endless.md`: it is not a regular file",
            "`/work/prompts/out.md`: it is outside the project `/work`",
        ]
    );
}

#[test]
fn a_place_with_too_much_in_it_is_cut_off_and_said() {
    let disk = Disk::new();
    for number in 0..=MAX_RESOURCES {
        disk.file(&format!("work/prompts/p{number:03}.md"), "x");
    }
    let resources = disk.load();
    assert_eq!(resources.templates().len(), MAX_RESOURCES);
    assert_eq!(
        disk.problems(&resources),
        ["`/work/prompts/p256.md`: ignored, because the limit of 256 is reached"]
    );
}

#[test]
fn a_place_hands_over_no_more_than_fits() {
    let disk = Disk::new();
    let text = "a".repeat(256 * 1024);
    for number in 10..50 {
        disk.file(&format!("work/prompts/p{number}.md"), &text);
    }
    let resources = disk.load();
    assert_eq!(resources.templates().len(), 32);
    assert_eq!(
        disk.problems(&resources),
        [
            "`/work/prompts/p42.md`: the files of `/work/prompts` have more than 8388608 bytes, so the rest is ignored"
        ]
    );
}
