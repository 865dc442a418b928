//! Skills: instructions for a kind of task, which the model reads when there is one.

use std::path::PathBuf;

use super::Bringer;

/// Instructions for a kind of task.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Skill {
    /// The name; a line `/skill:name` hands the instructions to the model.
    pub name: String,
    /// What it is for, and when.
    pub description: String,
    /// The file, by its absolute path.
    pub path: PathBuf,
    /// Who brings it.
    pub bringer: Bringer,
    /// Only the user decides when it is used: the model is not told that there is one.
    pub is_hidden: bool,
    pub(super) body: String,
}

/// What the model is told before the skills that there are.
const INTRODUCTION: &str = "Skills are instructions for kinds of tasks. When a task fits the description of one, read its file before you begin. A relative path in it starts from the folder of the file.";

impl Skill {
    /// Returns the prompt for what stands behind the name.
    pub(super) fn fill(&self, arguments: &str) -> String {
        let folder = self.path.parent().unwrap_or(&self.path);
        let mut text = format!(
            "<skill name=\"{}\" location=\"{}\">\nA relative path in it starts from {}.\n\n{}\n</skill>",
            self.name,
            escaped(&self.path.to_string_lossy()),
            folder.display(),
            self.body.trim(),
        );
        if !arguments.is_empty() {
            text.push_str("\n\nUser: ");
            text.push_str(arguments);
        }
        text
    }

    fn entry(&self) -> String {
        format!(
            "  <skill>\n    <name>{}</name>\n    <description>{}</description>\n    <location>{}</location>\n  </skill>\n",
            self.name,
            escaped(&self.description),
            escaped(&self.path.to_string_lossy()),
        )
    }
}

/// Says which skills there are, to the model; nothing where there are none.
pub(super) fn introduce(skills: &[Skill]) -> Option<String> {
    let told = skills.iter().filter(|skill| !skill.is_hidden);
    let entries: String = told.map(Skill::entry).collect();
    (!entries.is_empty())
        .then(|| format!("{INTRODUCTION}\n\n<available_skills>\n{entries}</available_skills>"))
}

/// Writes a text so that it cannot end the element that it stands in.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skill(name: &str, description: &str, is_hidden: bool) -> Skill {
        Skill {
            name: name.to_owned(),
            description: description.to_owned(),
            path: PathBuf::from(format!("/kit/{name}/SKILL.md")),
            bringer: Bringer::User,
            is_hidden,
            body: "\nDo it.\n".to_owned(),
        }
    }

    #[test]
    fn the_model_is_told_of_skills_that_are_not_hidden() {
        assert_eq!(introduce(&[skill("a", "d", true)]), None);
        let told = introduce(&[
            skill("pdf", "</skill> & more", false),
            skill("a", "d", true),
        ]);
        let expected = format!(
            "{INTRODUCTION}\n\n<available_skills>\n  <skill>\n    <name>pdf</name>\n    <description>&lt;/skill&gt; &amp; more</description>\n    <location>/kit/pdf/SKILL.md</location>\n  </skill>\n</available_skills>"
        );
        assert_eq!(told, Some(expected));
    }

    #[test]
    fn a_skill_is_handed_over_with_where_it_is_and_what_the_user_adds() {
        let skill = skill("pdf", "d", false);
        let alone = "<skill name=\"pdf\" location=\"/kit/pdf/SKILL.md\">\nA relative path in it starts from /kit/pdf.\n\nDo it.\n</skill>";
        assert_eq!(skill.fill(""), alone);
        assert_eq!(skill.fill("a.pdf"), format!("{alone}\n\nUser: a.pdf"));
    }
}
