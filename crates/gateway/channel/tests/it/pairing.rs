//! Senders who are admitted by a code.

use serde_json::json;
use tenterhook_channel::chat::{ChannelId, Sender};
use tenterhook_channel::pairing::{PairingError, Pairings};
use tenterhook_channel::store::{DocumentKind, Store};
use tenterhook_protocol::event::SenderRole::{Member, Owner};

fn tg() -> ChannelId {
    ChannelId::new("tg").unwrap()
}

fn sender(id: &str) -> Sender {
    Sender {
        id: id.to_owned(),
        name: Some("An\nna".to_owned()),
        is_bot: false,
    }
}

fn open(folder: &tempfile::TempDir) -> Pairings {
    Pairings::new(Store::open(folder.path()).unwrap())
}

// G73
#[tokio::test]
async fn an_approved_sender_is_admitted_also_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let pairings = open(&folder);
    let code = pairings
        .request(&tg(), &sender("1"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(pairings.request(&tg(), &sender("1")).await, Ok(None));
    assert_eq!(pairings.role(&tg(), "1").await, Ok(None));
    let other = ChannelId::new("other").unwrap();
    let wrong_channel = pairings.approve(&other, &code, Member, "ann").await;
    assert_eq!(
        wrong_channel,
        Err(PairingError::UnknownCode {
            channel: other.clone()
        })
    );
    let typed = code.to_ascii_lowercase();
    let admitted = pairings
        .approve(&tg(), &typed, Member, "ann")
        .await
        .unwrap();
    assert_eq!((admitted.sender.as_str(), admitted.role), ("1", Member));
    assert!(
        pairings.approve(&tg(), &code, Owner, "ann").await.is_err(),
        "one use"
    );
    drop(pairings);
    let pairings = open(&folder);
    assert_eq!(pairings.role(&tg(), "1").await, Ok(Some(Member)));
    assert_eq!(pairings.role(&tg(), "2").await, Ok(None));
    assert_eq!(pairings.role(&other, "1").await, Ok(None));
    let list = pairings.list().await.unwrap();
    let [(channel, Ok(known))] = list.as_slice() else {
        unreachable!("{list:?}");
    };
    assert_eq!((channel.as_str(), known.admitted.len()), ("tg", 1));
    pairings.revoke(&tg(), "1").await.unwrap();
    assert_eq!(pairings.role(&tg(), "1").await, Ok(None));
    assert!(matches!(
        pairings.revoke(&tg(), "1").await,
        Err(PairingError::UnknownSender { .. })
    ));
}

// G73
#[tokio::test]
async fn wrong_codes_lock_the_channel_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let pairings = open(&folder);
    let code = pairings
        .request(&tg(), &sender("1"))
        .await
        .unwrap()
        .unwrap();
    for _ in 0..5 {
        let wrong = pairings.approve(&tg(), "UUUUUUUU", Member, "ann").await;
        assert_eq!(wrong, Err(PairingError::UnknownCode { channel: tg() }));
    }
    assert!(matches!(
        pairings.approve(&tg(), &code, Member, "ann").await,
        Err(PairingError::Locked { .. })
    ));
    let other = ChannelId::new("other").unwrap();
    let code = pairings
        .request(&other, &sender("1"))
        .await
        .unwrap()
        .unwrap();
    assert!(pairings.approve(&other, &code, Member, "ann").await.is_ok());
}

#[tokio::test]
async fn a_broken_document_is_an_error_and_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let broken = json!({"requests": [], "admitted": [{"sender": 1}]});
    store
        .set_document(DocumentKind::Pairing, "tg", Some(broken.clone()))
        .await
        .unwrap();
    let pairings = Pairings::new(store.clone());
    let is_broken = |error: PairingError| matches!(error, PairingError::Broken { .. });
    assert!(is_broken(pairings.role(&tg(), "1").await.unwrap_err()));
    assert!(is_broken(
        pairings.request(&tg(), &sender("1")).await.unwrap_err()
    ));
    assert!(is_broken(pairings.revoke(&tg(), "1").await.unwrap_err()));
    let approved = pairings.approve(&tg(), "ABCDEFGH", Member, "ann").await;
    assert!(is_broken(approved.unwrap_err()));
    assert!(pairings.list().await.unwrap()[0].1.is_err());
    let document = store.document(DocumentKind::Pairing, "tg").await.unwrap();
    assert_eq!(document, Some(broken));
}
