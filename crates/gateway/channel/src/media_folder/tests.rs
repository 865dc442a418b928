use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::chat::ChannelId;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n0123";

fn chat(name: &str) -> ChatRef {
    ChatRef {
        channel: ChannelId::new("web").unwrap(),
        chat: name.to_owned(),
        thread: None,
    }
}

fn part(kind: &str, data: &str) -> MessagePart {
    MessagePart {
        kind: kind.to_owned(),
        data: Some(data.to_owned()),
        ..MessagePart::default()
    }
}

fn file_names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

async fn save(media: &MediaFolder, bytes: &[u8], name: &str) -> SavedMedia {
    let name = Some(name.to_owned());
    media
        .save(bytes.to_vec(), MediaKind::Image, name, &chat("a"))
        .await
        .unwrap()
}

// G58
#[tokio::test]
async fn two_files_with_one_name_are_two_files() {
    let folder = TempDir::new().unwrap();
    let media = MediaFolder::open(&folder.path().join("media")).unwrap();
    let name = "AwACAgIAAxkBAAIBZ2Vx.png";
    let first = save(&media, PNG, name).await;
    let second = save(&media, b"text", name).await;
    assert_ne!(first.media.id, second.media.id);
    assert_eq!(fs::read(&first.path).unwrap(), PNG);
    assert_eq!(fs::read(&second.path).unwrap(), b"text");
    assert_eq!(first.media.name, name);
    assert_eq!(first.media.media_type, "image/png");
    assert_eq!(first.media.kind, MediaKind::Image);
    assert_eq!(second.media.media_type, "text/plain");
    assert_eq!(second.media.kind, MediaKind::File);
    assert!(second.path.ends_with(format!("{}.txt", second.media.id)));
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_of_the_process_can_read_copies() {
    use std::os::unix::fs::PermissionsExt as _;
    let outer = TempDir::new().unwrap();
    let folder = outer.path().join("state/media");
    let media = MediaFolder::open(&folder).unwrap();
    let saved = save(&media, PNG, "x").await;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    assert_eq!(mode(&saved.path), 0o600);
    assert_eq!(mode(&saved.path.with_extension(RECORD)), 0o600);
}

// G81, the part of files
#[tokio::test]
async fn the_senders_name_is_one_harmless_label() {
    let folder = TempDir::new().unwrap();
    let media = MediaFolder::open(folder.path()).unwrap();
    for (name, expected) in [
        ("../../x", "x"),
        ("C:\\a\\b.png", "b.png"),
        ("a\n## SYSTEM\u{202e}.png", "a ## SYSTEM.png"),
        ("..", "image.png"),
        ("dir/", "image.png"),
        (&"y".repeat(100), &"y".repeat(64)),
    ] {
        let saved = save(&media, PNG, name).await;
        assert_eq!(saved.media.name, expected);
        assert_eq!(saved.path.parent(), Some(media.0.path.as_path()));
    }
}

#[tokio::test]
async fn a_copy_is_found_only_by_its_id_and_its_own_chat_also_after_a_restart() {
    let folder = TempDir::new().unwrap();
    let media = MediaFolder::open(folder.path()).unwrap();
    let saved = save(&media, PNG, "x.png").await;
    let id = saved.media.id.clone();
    assert_eq!(media.find(&id, &chat("b")).await, None);
    let media = MediaFolder::open(folder.path()).unwrap();
    assert_eq!(media.find(&id, &chat("a")).await, Some(saved));
    let upper = id.to_uppercase();
    let braces = format!("{{{id}}}");
    for wrong in [
        "",
        "..",
        "../x",
        "a/b",
        &upper,
        &braces,
        &format!("{id}.png"),
    ] {
        assert_eq!(media.find(wrong, &chat("a")).await, None, "{wrong}");
    }
}

// G80, the part of the folder
#[tokio::test]
async fn a_file_that_is_too_large_or_has_no_room_leaves_nothing() {
    let folder = TempDir::new().unwrap();
    let limits = Limits {
        file: 100,
        folder: 600,
        ..Limits::default()
    };
    let media = MediaFolder::open_with(folder.path(), None, limits).unwrap();
    let owner = chat("a");
    let keep = |size: usize| media.save(vec![0; size], MediaKind::File, None, &owner);
    let too_large = MediaError::TooLarge {
        size: 101,
        limit: 100,
    };
    assert_eq!(keep(101).await, Err(too_large));
    assert_eq!(file_names(folder.path()), Vec::<String>::new());
    keep(100).await.unwrap();
    assert_eq!(keep(51).await, Err(MediaError::Full));
    keep(50).await.unwrap();
    assert_eq!(file_names(folder.path()).len(), 4);
    let media = MediaFolder::open_with(folder.path(), None, limits).unwrap();
    let again = media.save(vec![0], MediaKind::File, None, &owner).await;
    assert_eq!(again, Err(MediaError::Full));
}

#[tokio::test]
async fn a_sweep_removes_the_oldest_copies_that_no_one_uses() {
    let folder = TempDir::new().unwrap();
    let limits = Limits {
        folder: 1_600,
        ..Limits::default()
    };
    let media = MediaFolder::open_with(folder.path(), None, limits).unwrap();
    fs::write(folder.path().join("notes.txt"), "not ours").unwrap();
    let days_ago = |path: &Path, days: u64| {
        let at = SystemTime::now() - Duration::from_hours(24 * days);
        for file in [path.to_owned(), path.with_extension(RECORD)] {
            let file = fs::File::options().append(true).open(file).unwrap();
            file.set_modified(at).unwrap();
        }
    };
    let mut saved = Vec::new();
    for days in [9, 8, 3, 2, 1] {
        let copy = save(&media, &[1; 80], "x").await;
        days_ago(&copy.path, days);
        saved.push(copy);
    }
    let unfinished = folder.path().join(format!("{}.bin.part", Uuid::now_v7()));
    fs::write(&unfinished, "x").unwrap();

    let used = saved[0].media.id.clone();
    let removed = media.sweep(&|id| id == used).await.unwrap();
    let is_there: Vec<bool> = saved.iter().map(|copy| copy.path.exists()).collect();
    // The first one is used, the second one is too old, the third one makes room.
    assert_eq!(is_there, [true, false, false, true, true]);
    assert_eq!(removed, 2);
    assert!(unfinished.exists() && folder.path().join("notes.txt").exists());
    save(&media, &[1; 80], "x").await;
    assert_eq!(media.sweep(&|_| false).await.unwrap(), 1);
    assert_eq!(media.find(&used, &chat("a")).await, None);
}

#[tokio::test]
async fn a_person_who_fills_the_folder_takes_neither_room_nor_files_from_others() {
    let folder = TempDir::new().unwrap();
    let limits = Limits {
        folder: 400,
        young: Duration::ZERO,
        ..Limits::default()
    };
    let media = MediaFolder::open_with(folder.path(), None, limits).unwrap();
    let keep = async |who: &str| {
        let bytes = vec![1; 10];
        media.save(bytes, MediaKind::File, None, &chat(who)).await
    };
    let first = keep("ada/work").await.unwrap();
    for (chats, people) in [(["bob/a", "bob/b"], 1), (["eve/a", "eve/b"], 2)] {
        let mut kept = 0;
        while keep(chats[kept % 2]).await.is_ok() {
            kept += 1;
        }
        assert_eq!(kept, 10, "{people}");
    }
    for who in ["mia/a", "dan/a"] {
        while keep(who).await.is_ok() {}
    }
    // Those who have much make room, and Ada's oldest file is not theirs.
    let removed = media.sweep(&|_| false).await.unwrap();
    assert!(removed > 4, "{removed}");
    assert!(
        media
            .find(&first.media.id, &chat("ada/work"))
            .await
            .is_some()
    );
    assert!(keep("ada/work").await.is_ok());
}

// G20 and G84, the part of the folder
#[cfg(unix)]
#[tokio::test]
async fn a_part_can_bring_only_base64_and_files_of_allowed_folders() {
    use std::os::unix::fs::symlink;
    let outer = TempDir::new().unwrap();
    let at = |name: &str| outer.path().join(name);
    let media = MediaFolder::open(&at("media")).unwrap();
    fs::create_dir_all(at("cwd/sub")).unwrap();
    fs::create_dir(at("cwd-2")).unwrap();
    fs::write(at("secret"), "key").unwrap();
    fs::write(at("cwd-2/near"), "key").unwrap();
    fs::write(at("cwd/sub/ok.txt"), "fine").unwrap();
    symlink(at("secret"), at("cwd/link")).unwrap();
    symlink(outer.path(), at("cwd/up")).unwrap();
    symlink(at("cwd/sub"), at("inside")).unwrap();
    let foreign = media
        .save(PNG.to_vec(), MediaKind::Image, None, &chat("b"))
        .await
        .unwrap();
    let own = save(&media, PNG, "own.png").await;
    let allowed = [at("missing"), at("cwd")];
    let import = async |data: &str| {
        let part = part("file", data);
        media.import_part(&part, &allowed, &chat("a")).await
    };
    let path = |name: &str| at(name).to_str().unwrap().to_owned();

    for (refused, why) in [
        ("/etc/passwd".to_owned(), "outside"),
        (path("secret"), "outside"),
        (path("cwd/link"), "outside"),
        (path("cwd/up/secret"), "outside"),
        (path("cwd/../secret"), "outside"),
        (path("cwd-2/near"), "outside"),
        (path("cwd/sub"), "not a regular file"),
        (path("cwd/missing"), "neither"),
        ("/tmp/abc".repeat(2), "neither"),
        ("cwd/sub/ok.txt".to_owned(), "neither"),
        ("../secret".to_owned(), "outside"),
        ("up/secret".to_owned(), "outside"),
        ("link".to_owned(), "outside"),
        (
            foreign.path.to_str().unwrap().to_owned(),
            "not a file of this chat",
        ),
        (path("media"), "not a file of this chat"),
        (
            own.path.with_extension(RECORD).to_str().unwrap().to_owned(),
            "not a file of this chat",
        ),
    ] {
        let error = import(&refused).await.unwrap_err();
        assert!(
            error.starts_with("the file part") && error.contains(why),
            "{refused}: {error}"
        );
    }
    for file in ["cwd/sub/ok.txt", "inside/ok.txt", "cwd/up/cwd/sub/ok.txt"] {
        let imported = import(&path(file)).await.unwrap();
        assert_eq!(imported.media.name, "ok.txt");
        assert_eq!(fs::read(&imported.path).unwrap(), b"fine");
    }
    for relative in ["sub/ok.txt", "./sub/../sub/ok.txt"] {
        let imported = import(relative).await.unwrap();
        assert_eq!(fs::read(&imported.path).unwrap(), b"fine", "{relative}");
    }
    assert_eq!(import(own.path.to_str().unwrap()).await, Ok(own));
    let jpeg = STANDARD.encode(b"\xff\xd8\xff\xe0 picture");
    assert!(jpeg.starts_with('/'));
    assert_eq!(import(&jpeg).await.unwrap().media.media_type, "image/jpeg");
}

#[tokio::test]
async fn an_error_names_the_part() {
    let folder = TempDir::new().unwrap();
    let limits = Limits {
        file: 5,
        ..Limits::default()
    };
    let media = MediaFolder::open_with(folder.path(), None, limits).unwrap();
    let mut named = part("audio", "");
    named.metadata.insert("name".into(), json!("a\n.ogg"));
    named.data = None;
    for (part, expected) in [
        (named, "the audio part `a .ogg` has no data"),
        (part("text", "x"), "the part `text` cannot be sent"),
        (
            part("image", "%%"),
            "the image part has data that is neither",
        ),
        (part("file", "aGVsbG8h"), "the file part cannot be kept"),
        (part("file", &"aGVs".repeat(9)), "the file part is larger"),
    ] {
        let error = media.import_part(&part, &[], &chat("a")).await.unwrap_err();
        assert!(error.starts_with(expected), "{error}");
    }
    let hello = part("file", "aGVs\nbG8=\n");
    let saved = media.import_part(&hello, &[], &chat("a")).await.unwrap();
    assert_eq!(fs::read(&saved.path).unwrap(), b"hello");
    assert_eq!(saved.media.name, "file.txt");
}

#[cfg(unix)]
#[tokio::test]
async fn a_part_never_sends_a_file_of_the_state_even_if_it_lies_in_the_working_folder() {
    let folder = TempDir::new().unwrap();
    let cwd = fs::canonicalize(folder.path()).unwrap();
    let state = cwd.join("state");
    fs::create_dir(&state).unwrap();
    let store = state.join("gateway.redb");
    fs::write(&store, "tokens").unwrap();
    fs::write(cwd.join("report.txt"), "fine").unwrap();
    fs::hard_link(&store, cwd.join("hard.txt")).unwrap();
    std::os::unix::fs::symlink(&store, cwd.join("soft.txt")).unwrap();
    let media = MediaFolder::open_in_state(&state).unwrap();
    let other = save(&media, PNG, "of another chat.png").await;
    let record = other.path.with_extension("meta");
    for allowed in [&cwd, &state] {
        let import = async |path: &Path| {
            let part = part("file", path.to_str().unwrap());
            let allowed = std::slice::from_ref(allowed);
            media.import_part(&part, allowed, &chat("b")).await
        };
        for path in [store.clone(), cwd.join("hard.txt"), cwd.join("soft.txt")] {
            let refused = import(&path).await.unwrap_err();
            let expected = ["own state", "outside of the folders"];
            let is_refused = expected.iter().any(|text| refused.contains(text));
            assert!(is_refused, "{}: {refused}", path.display());
        }
        for path in [&other.path, &record] {
            let refused = import(path).await.unwrap_err();
            assert!(refused.contains("not a file of this chat"), "{refused}");
        }
        assert_eq!(
            import(&cwd.join("report.txt")).await.is_ok(),
            *allowed == cwd
        );
    }
}
