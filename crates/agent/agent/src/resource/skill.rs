//! Skills: instructions for a kind of task, which the model reads when it has such a task.

use std::path::PathBuf;

use super::place::ResourceSource;

/// Instructions for a kind of task.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Skill {
    /// The name. A line `/skill:name` gives the instructions to the model.
    pub name: String,
    /// What it is for, and when to use it.
    pub description: String,
    /// The absolute path of the file.
    pub path: PathBuf,
    /// Who provides it.
    pub source: ResourceSource,
    /// Whether the skill is hidden from the model, so that only the user can call it.
    pub is_hidden: bool,
    pub(super) body: String,
}

/// The text before the list of skills in the system prompt.
const INTRODUCTION: &str = "Skills are instructions for kinds of tasks. When a task fits the description of one, read its file before you begin. Resolve relative paths in a skill file against the folder of that file.";

impl Skill {
    /// Returns the prompt for a call with these arguments.
    pub(super) fn fill(&self, arguments: &str) -> String {
        let folder = self.path.parent().unwrap_or(&self.path);
        let mut text = format!(
            "<skill name=\"{}\" location=\"{}\">\nResolve relative paths in this skill against {}.\n\n{}\n</skill>",
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

/// Returns the list of skills for the model's system prompt. Returns `None` if all skills are hidden.
pub(super) fn introduce(skills: &[Skill]) -> Option<String> {
    let shown = skills.iter().filter(|skill| !skill.is_hidden);
    let entries: String = shown.map(Skill::entry).collect();
    (!entries.is_empty())
        .then(|| format!("{INTRODUCTION}\n\n<available_skills>\n{entries}</available_skills>"))
}

/// Escapes text so that it cannot end the XML element that contains it.
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
            source: ResourceSource::User,
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
        let alone = "<skill name=\"pdf\" location=\"/kit/pdf/SKILL.md\">\nResolve relative paths in this skill against /kit/pdf.\n\nDo it.\n</skill>";
        assert_eq!(skill.fill(""), alone);
        assert_eq!(skill.fill("a.pdf"), format!("{alone}\n\nUser: a.pdf"));
    }
}
