//! Access tokens over the life of a store.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use tenterhook_channel::store::{DocumentKind, Store};
use tenterhook_channel::token::{
    AccessScope, DEFAULT_USER, TOKEN_PREFIX, Token, TokenError, Tokens,
};
use tenterhook_protocol::event::SenderRole;

async fn open(folder: &tempfile::TempDir) -> (Store, Tokens) {
    let store = Store::open(folder.path()).unwrap();
    let tokens = Tokens::open(store.clone()).await.unwrap();
    (store, tokens)
}

#[tokio::test]
async fn a_token_is_known_by_its_secret_also_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let (store, tokens) = open(&folder).await;
    let scopes = [AccessScope::Approve, AccessScope::Chat, AccessScope::Chat];
    let made = tokens
        .create("laptop", "anna", &scopes, None)
        .await
        .unwrap();
    let secret = made.secret.expose();
    assert!(
        secret.starts_with(TOKEN_PREFIX) && secret.len() == 47,
        "{secret}"
    );
    assert_eq!(made.token.scopes, [AccessScope::Chat, AccessScope::Approve]);
    assert_eq!(tokens.check(secret).unwrap(), made.token);
    let shorter = secret.split_at(46).0;
    for wrong in [
        "",
        TOKEN_PREFIX,
        shorter,
        &format!("{secret} "),
        &made.token.id,
    ] {
        assert_eq!(tokens.check(wrong), Err(TokenError::Unknown), "{wrong}");
    }
    let documents = store.documents(DocumentKind::Token).await.unwrap();
    assert!(!format!("{documents:?}{made:?}").contains(secret));
    drop((store, tokens));
    let tokens = open_again(&folder).await;
    assert_eq!(tokens.check(secret).unwrap().id, made.token.id);
}

/// Opens the store once the task that notes a use has let go of it.
async fn open_again(folder: &tempfile::TempDir) -> Tokens {
    for _ in 0..1000 {
        if let Ok(store) = Store::open(folder.path()) {
            return Tokens::open(store).await.unwrap();
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    unreachable!("the store stays open");
}

#[tokio::test]
async fn a_revoked_token_is_refused_at_once_and_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let (store, tokens) = open(&folder).await;
    let clone = tokens.clone();
    let mut made = Vec::new();
    for name in ["browser", "browser", "phone"] {
        let token = tokens
            .create(name, DEFAULT_USER, &[AccessScope::Chat], None)
            .await;
        made.push(token.unwrap());
    }
    // The note of this use must not bring the token back.
    assert!(clone.check(made[0].secret.expose()).is_ok());
    assert_eq!(tokens.revoke("browser").await.unwrap().len(), 2);
    assert_eq!(
        clone.check(made[0].secret.expose()),
        Err(TokenError::Revoked)
    );
    assert_eq!(
        clone.check(made[1].secret.expose()),
        Err(TokenError::Revoked)
    );
    assert!(clone.check(made[2].secret.expose()).is_ok());
    assert_eq!(tokens.revoke("browser").await, Err(TokenError::Unknown));
    drop((store, tokens, clone));
    let tokens = open_again(&folder).await;
    let left: Vec<_> = tokens.list().into_iter().map(|token| token.name).collect();
    assert_eq!(left, ["phone"]);
    let revoked = tokens.revoke(&made[2].token.id).await.unwrap();
    assert_eq!(revoked[0].name, "phone");
    assert_eq!(tokens.list(), []);
}

#[tokio::test]
async fn an_unreadable_record_admits_no_one_and_can_be_revoked() {
    let folder = tempfile::tempdir().unwrap();
    let (store, tokens) = open(&folder).await;
    let made = tokens
        .create("a", "b", &[AccessScope::Chat], None)
        .await
        .unwrap();
    let broken = json!({"id": "x", "sha256": "", "scopes": ["root"]});
    store
        .set_document(DocumentKind::Token, "x", Some(broken))
        .await
        .unwrap();
    let copied = store
        .document(DocumentKind::Token, &made.token.id)
        .await
        .unwrap();
    store
        .set_document(DocumentKind::Token, "y", copied)
        .await
        .unwrap();
    let tokens = Tokens::open(store.clone()).await.unwrap();
    assert_eq!(tokens.unreadable(), ["x", "y"]);
    assert!(tokens.check(made.secret.expose()).is_ok());
    assert_eq!(tokens.revoke("x").await, Ok(Vec::new()));
    let tokens = Tokens::open(store).await.unwrap();
    assert_eq!(tokens.unreadable(), ["y"]);
}

#[tokio::test]
async fn invalid_tokens_are_not_created() {
    let folder = tempfile::tempdir().unwrap();
    let (_, tokens) = open(&folder).await;
    for user in ["", "Anna", "a b", "a/b", "ä", &"a".repeat(33)] {
        let made = tokens
            .create("name", user, &[AccessScope::Chat], None)
            .await;
        assert!(
            matches!(made, Err(TokenError::InvalidUser { .. })),
            "{user}"
        );
    }
    for name in ["", " ", "a\nb", &"a".repeat(65)] {
        let made = tokens.create(name, "a", &[AccessScope::Chat], None).await;
        assert!(matches!(made, Err(TokenError::InvalidName)), "{name}");
    }
    let made = tokens.create("name", "a", &[], None).await;
    assert!(matches!(made, Err(TokenError::NoScope)));
    assert_eq!(tokens.list(), []);
}

#[test]
fn who_may_approve_is_an_owner() {
    for (scope, role, allowed) in [
        (
            AccessScope::Chat,
            SenderRole::Member,
            vec![AccessScope::Chat],
        ),
        (
            AccessScope::Approve,
            SenderRole::Owner,
            vec![AccessScope::Approve],
        ),
        (
            AccessScope::Inspect,
            SenderRole::Member,
            vec![AccessScope::Inspect],
        ),
        (
            AccessScope::Admin,
            SenderRole::Owner,
            AccessScope::ALL.to_vec(),
        ),
    ] {
        let token = Token {
            id: String::new(),
            name: String::new(),
            user: DEFAULT_USER.to_owned(),
            scopes: vec![scope],
            created: Timestamp::UNIX_EPOCH,
            expires: None,
            last_used: None,
            cookie_port: None,
        };
        assert_eq!(token.role(), role, "{scope}");
        let mut scopes = AccessScope::ALL.to_vec();
        scopes.retain(|scope| token.allows(*scope));
        assert_eq!(scopes, allowed, "{scope}");
    }
}

#[tokio::test]
async fn a_user_other_than_the_owner_gets_no_right_beyond_their_own_chats() {
    let folder = tempfile::tempdir().unwrap();
    let (_store, tokens) = open(&folder).await;
    for scope in [AccessScope::Inspect, AccessScope::Admin] {
        let scopes = [AccessScope::Chat, scope];
        let refused = tokens.create("ada's phone", "ada", &scopes, None).await;
        let user = "ada".to_owned();
        assert_eq!(refused.unwrap_err(), TokenError::OwnerOnly { scope, user });
        assert!(
            tokens
                .create("mine", DEFAULT_USER, &scopes, None)
                .await
                .is_ok()
        );
    }
    assert_eq!(
        AccessScope::all_of("ada"),
        [AccessScope::Chat, AccessScope::Approve]
    );
    // A token that was stored with more scopes, for example by hand.
    let stored = Token {
        user: "ada".to_owned(),
        scopes: vec![AccessScope::Admin],
        ..tokens.list()[0].clone()
    };
    assert!(stored.allows(AccessScope::Approve));
    assert!(!stored.allows(AccessScope::Inspect));
    assert!(!stored.allows(AccessScope::Admin));
}
