//! Stores the model's answers, to reuse them for the same conversation.
//!
//! The built-in `cache_response` fills the cache; the agent looks in it before it calls the model. Each file holds
//! one answer, so several agents can share a folder.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use sha2::{Digest as _, Sha256};
use tenterhook_files::{Durability, make_private, replace_file};
use tenterhook_protocol::{Message, Role, message_extra};

/// The maximum number of answers that a folder keeps. The oldest are removed first.
const MAX_ANSWERS: usize = 1_000;
/// The largest answer that is stored, in bytes.
const MAX_ANSWER_BYTES: usize = 1 << 20;
/// How long an answer is valid.
const MAX_AGE: Duration = Duration::from_hours(24);

/// A folder of stored answers.
///
/// An answer is reused when the agent and the whole conversation before it are the same, ignoring spaces around a
/// message. It is valid for 24 hours. The folder holds at most 1,000 answers of at most 1 MiB each. Conversations
/// with images are never stored.
#[derive(Debug, Clone)]
pub struct ResponseCache {
    dir: PathBuf,
}

impl ResponseCache {
    /// Returns the cache below the data folder. It creates nothing before the first answer is stored.
    pub fn new(data_dir: &Path) -> Self {
        Self {
            dir: data_dir.join("responses"),
        }
    }

    /// Returns the stored answer to a conversation that ends with a user message. Unreadable files count as missing.
    pub async fn find(&self, agent: &str, conversation: &[Message]) -> Option<String> {
        let path = self.path(agent, conversation)?;
        let read = tokio::task::spawn_blocking(move || read_fresh(&path));
        read.await.ok()?.ok().flatten()
    }

    /// Stores the answer to a conversation. A conversation that does not end with a user message is ignored: tools have
    /// run since, and a stored answer would not repeat what they did.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub(crate) async fn keep(
        &self,
        agent: &str,
        conversation: &[Message],
        answer: &str,
    ) -> io::Result<()> {
        let Some(path) = self.path(agent, conversation) else {
            return Ok(());
        };
        if answer.is_empty() || answer.len() > MAX_ANSWER_BYTES {
            return Ok(());
        }
        let answer = answer.to_owned();
        tokio::task::spawn_blocking(move || write(&path, &answer))
            .await
            .map_err(io::Error::other)?
    }

    /// Returns the file of a conversation; `None` if its answer must not be stored.
    fn path(&self, agent: &str, conversation: &[Message]) -> Option<PathBuf> {
        let last = conversation.last()?;
        let is_more_than_text = conversation.iter().any(|message| {
            let mut calls = message.tool_calls.iter();
            !message.images.is_empty()
                || !message.parts.is_empty()
                || message.extra.keys().any(|key| !is_known(key))
                || calls.any(|call| !call.extra.is_empty())
        });
        if last.role != Role::User || is_more_than_text {
            return None;
        }
        let mut hash = Sha256::new();
        let mut add = |text: &str| {
            hash.update(text.len().to_le_bytes());
            hash.update(text);
        };
        add(agent);
        for message in conversation {
            add(message.role.as_str());
            add(message.content.trim());
            for call in &message.tool_calls {
                add(&call.name);
                add(&call.arguments.to_string());
            }
        }
        Some(self.dir.join(format!("{:x}.txt", hash.finalize())))
    }
}

/// Returns whether a key of a message's `extra` is the agent's own, so that the model does not see its value.
fn is_known(key: &str) -> bool {
    message_extra::KEYS.contains(&key)
}

fn read_fresh(path: &Path) -> io::Result<Option<String>> {
    let file = fs::File::open(path)?;
    let age = SystemTime::now().duration_since(file.metadata()?.modified()?);
    if age.is_ok_and(|age| age > MAX_AGE) {
        return Ok(None);
    }
    let mut text = String::new();
    file.take(MAX_ANSWER_BYTES as u64)
        .read_to_string(&mut text)?;
    Ok(Some(text))
}

fn write(path: &Path, answer: &str) -> io::Result<()> {
    let Some(dir) = path.parent() else {
        return Ok(());
    };
    make_private(dir)?;
    replace_file(path, answer.as_bytes(), 0o600, Durability::None)?;
    prune(dir)
}

/// Removes the oldest answers beyond the limit.
fn prune(dir: &Path) -> io::Result<()> {
    let mut answers = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if let Ok(modified) = entry.metadata().and_then(|found| found.modified()) {
            answers.push((modified, entry.path()));
        }
    }
    answers.sort();
    let surplus = answers.len().saturating_sub(MAX_ANSWERS);
    for (_, path) in answers.into_iter().take(surplus) {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_the_same_conversation_of_the_same_agent_has_the_answer() {
        let dir = tempfile::tempdir().unwrap();
        let cache = ResponseCache::new(dir.path());
        let asked = [Message::system("short"), Message::user("what is a hook?")];
        assert_eq!(cache.find("root", &asked).await, None);
        cache.keep("root", &asked, "A callback.").await.unwrap();
        let spaced = [
            Message::system("short"),
            Message::user(" what is a hook?\n"),
        ];
        let other = [Message::user("what is a hook?")];
        let later = [asked.as_slice(), &[Message::assistant("A callback.")]].concat();
        for (agent, conversation, expected) in [
            ("root", asked.as_slice(), Some("A callback.")),
            ("root", &spaced, Some("A callback.")),
            ("helper", &asked, None),
            ("root", &other, None),
            ("root", &later, None),
            ("root", &[], None),
        ] {
            let found = cache.find(agent, conversation).await;
            assert_eq!(found.as_deref(), expected, "{agent} {conversation:?}");
        }
    }

    #[tokio::test]
    async fn an_answer_that_tools_had_a_part_in_is_not_kept() {
        let dir = tempfile::tempdir().unwrap();
        let cache = ResponseCache::new(dir.path());
        let asked = [
            Message::user("delete it"),
            Message::tool("1".into(), "deleted".to_owned(), false),
        ];
        cache.keep("root", &asked, "Done.").await.unwrap();
        assert!(!dir.path().join("responses").exists());
    }

    #[test]
    fn the_oldest_answers_go_first_and_old_ones_do_not_count() {
        let dir = tempfile::tempdir().unwrap();
        for number in 0..MAX_ANSWERS + 2 {
            let path = dir.path().join(format!("{number}.txt"));
            let file = fs::File::create(path).unwrap();
            let age = Duration::from_secs(u64::try_from(MAX_ANSWERS + 2 - number).unwrap());
            file.set_modified(SystemTime::now() - age).unwrap();
        }
        prune(dir.path()).unwrap();
        assert!(!dir.path().join("1.txt").exists());
        assert!(dir.path().join("2.txt").exists());
        let old = fs::File::options()
            .write(true)
            .open(dir.path().join("5.txt"))
            .unwrap();
        old.set_modified(SystemTime::now() - MAX_AGE - MAX_AGE)
            .unwrap();
        assert_eq!(read_fresh(&dir.path().join("5.txt")).unwrap(), None);
        assert_eq!(
            read_fresh(&dir.path().join("6.txt")).unwrap().as_deref(),
            Some("")
        );
    }
}
