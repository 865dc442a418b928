//! Albums: several files that a person sends as one message. Telegram delivers each file as a message of its own.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

/// How long the rest of an album is waited for, before the next poll.
pub(super) const ALBUM_PAUSE: Duration = Duration::from_millis(500);

/// The albums of the last poll, with the number of their messages.
#[derive(Debug, Default)]
pub(super) struct Albums(BTreeMap<String, usize>);

impl Albums {
    /// Removes updates that wait for the next poll: those from the first album on of which more messages may follow. An
    /// album is complete if it is as long as in the last poll. Returns whether there are such updates.
    ///
    /// The offset does not move over what is removed, so nothing is lost in a crash.
    pub(super) fn hold(&mut self, updates: &mut Vec<Value>) -> bool {
        let mut found: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (place, update) in updates.iter().enumerate() {
            if let Some(album) = album_of(update) {
                found.entry(album.to_owned()).or_default().push(place);
            }
        }
        let is_open =
            |(album, places): &(&String, &Vec<usize>)| self.0.get(*album) != Some(&places.len());
        let open = found.iter().filter(is_open);
        let mut end = open.filter_map(|(_, places)| places.first()).min();
        // An album that has begun before another one and ends after its beginning is not split.
        while let Some(earlier) = found.values().find_map(|places| {
            let (first, last) = (places.first()?, places.last()?);
            end.filter(|end| first < *end && last >= *end)
                .map(|_| first)
        }) {
            end = Some(earlier);
        }
        let end = end.copied();
        self.0 = found
            .into_iter()
            .map(|(album, places)| (album, places.len()))
            .collect();
        updates.truncate(end.unwrap_or(usize::MAX));
        end.is_some()
    }
}

/// Returns the album that an update is a part of.
pub(super) fn album_of(update: &Value) -> Option<&str> {
    update.get("message")?.get("media_group_id")?.as_str()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn updates(albums: &str) -> Vec<Value> {
        let update = |(id, album): (usize, char)| match album {
            '-' => json!({"update_id": id, "message": {}}),
            album => json!({"update_id": id, "message": {"media_group_id": album.to_string()}}),
        };
        albums.chars().enumerate().map(update).collect()
    }

    #[test]
    fn an_album_waits_until_a_poll_brings_no_more_of_it() {
        // Each row: what the polls return, and how many updates are taken. What is not taken is returned again.
        for polls in [
            vec![("--", 2)],
            vec![("-aa", 1), ("aaa", 0), ("aaa", 3)],
            vec![("-aa-", 1), ("aa-", 3)],
            vec![("ab", 0), ("aba", 0), ("abab", 0), ("abab-", 5)],
            vec![("a", 0), ("ab", 1), ("b", 1), ("c", 0)],
        ] {
            let mut albums = Albums::default();
            for (poll, taken) in &polls {
                let mut updates = updates(poll);
                let is_held = albums.hold(&mut updates);
                assert_eq!(updates.len(), *taken, "{poll} of {polls:?}");
                assert_eq!(is_held, *taken < poll.len(), "{poll} of {polls:?}");
            }
        }
    }
}
