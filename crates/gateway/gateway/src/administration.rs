//! Requests about access tokens and admissions, for the gateway that runs and for commands without one.
//!
//! | method | parameters | result |
//! |---|---|---|
//! | `pair.list` | | for each channel: `channel`, and `requests` and `admitted`, or `error` |
//! | `pair.approve` | `channel`, `code`, `role`; `by` | the sender |
//! | `pair.deny` | `channel`, `code`; `by` | the request |
//! | `pair.revoke` | `channel`, `sender` | the sender |
//! | `token.create` | `name`, `user`, `scopes`, `expires` | `token`, `secret` |
//! | `token.list` | | the tokens |
//! | `token.revoke` | `name`: the id or the name | the revoked tokens |

use std::fmt::Display;
use std::path::Path;

use jiff::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tenterhook_protocol::event::SenderRole;

use crate::grants::GIVES_RIGHTS;
use tenterhook_channel::chat::ChannelId;
use tenterhook_channel::pairing::Pairings;
use tenterhook_channel::store::Store;
use tenterhook_channel::token::{AccessScope, TokenError, Tokens};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Approve {
    channel: ChannelId,
    code: String,
    role: SenderRole,
    #[serde(default = "command_line")]
    by: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Deny {
    channel: ChannelId,
    code: String,
    #[serde(default = "command_line")]
    by: String,
}

/// Returns who decides if a request does not say it. Only the owner of the machine's account can use the control socket.
fn command_line() -> String {
    "the command line".to_owned()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Revoke {
    channel: ChannelId,
    sender: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CreateToken {
    name: String,
    user: String,
    scopes: Vec<AccessScope>,
    expires: Option<Timestamp>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RevokeToken {
    name: String,
}

/// Carries out a request about tokens or admissions. Returns `None` if the method is another one.
///
/// # Errors
///
/// The inner result describes for the user why the request failed.
pub async fn administer(
    method: &str,
    params: &Value,
    tokens: &Tokens,
    pairings: &Pairings,
) -> Option<Result<Value, String>> {
    Some(match method {
        "pair.list" => list_pairings(pairings).await,
        "pair.approve" => approve(params, tokens, pairings).await,
        "pair.deny" => deny(params, pairings).await,
        "pair.revoke" => revoke(params, pairings).await,
        "token.create" => create_token(params, tokens).await,
        "token.list" => Ok(json!(tokens.list())),
        "token.revoke" => revoke_token(params, tokens).await,
        _ => return None,
    })
}

/// Carries out a request about tokens or admissions in the state folder of a gateway that does not run. No owner can be
/// asked then: after the gateway was set up, requests that give rights must be `is_proven` by the user's passphrase.
///
/// # Errors
///
/// Describes for the user why the request failed.
pub async fn administer_stored(
    state: &Path,
    (method, is_proven): (&str, bool),
    params: &Value,
) -> Result<Value, String> {
    let state = state.to_owned();
    let opened = tokio::task::spawn_blocking(move || Store::open(&state)).await;
    let store = opened.map_err(described)?.map_err(described)?;
    let tokens = Tokens::open(store.clone()).await.map_err(described)?;
    if GIVES_RIGHTS.contains(&method) && tokens.is_set_up() && !is_proven {
        return Err(NOT_PROVEN.to_owned());
    }
    let pairings = Pairings::new(store);
    administer(method, params, &tokens, &pairings)
        .await
        .unwrap_or_else(|| Err(format!("unknown method `{method}`")))
}

const NOT_PROVEN: &str = "an owner has to confirm this, and no gateway runs that could ask one; start the gateway, or \
    set a passphrase with `tenterhook protect`";

/// Returns the text of an error, for the answer to a request.
pub(crate) fn described(error: impl Display) -> String {
    error.to_string()
}

/// Reads the parameters of a request.
pub(crate) fn read<T: DeserializeOwned>(params: &Value) -> Result<T, String> {
    serde_json::from_value(params.clone()).map_err(|error| format!("invalid parameters: {error}"))
}

async fn list_pairings(pairings: &Pairings) -> Result<Value, String> {
    let channels = pairings.list().await.map_err(described)?.into_iter();
    let channels = channels.map(|(channel, found)| match found {
        Ok(found) => json!({
            "channel": channel,
            "requests": found.requests,
            "admitted": found.admitted,
        }),
        Err(problem) => json!({ "channel": channel, "error": problem.to_string() }),
    });
    Ok(channels.collect())
}

async fn approve(params: &Value, tokens: &Tokens, pairings: &Pairings) -> Result<Value, String> {
    let Approve {
        channel,
        code,
        role,
        by,
    } = read(params)?;
    let approved = pairings.approve(&channel, &code, role, &by).await;
    let approved = approved.map_err(described)?;
    if role == SenderRole::Owner {
        tokens.note_owner().await.map_err(described)?;
    }
    Ok(json!(approved))
}

async fn deny(params: &Value, pairings: &Pairings) -> Result<Value, String> {
    let Deny { channel, code, by } = read(params)?;
    let denied = pairings.deny(&channel, &code, &by).await;
    denied.map(|request| json!(request)).map_err(described)
}

async fn revoke(params: &Value, pairings: &Pairings) -> Result<Value, String> {
    let Revoke { channel, sender } = read(params)?;
    let revoked = pairings.revoke(&channel, &sender).await;
    revoked.map(|sender| json!(sender)).map_err(described)
}

async fn create_token(params: &Value, tokens: &Tokens) -> Result<Value, String> {
    let CreateToken {
        name,
        user,
        scopes,
        expires,
    } = read(params)?;
    let created = tokens.create(&name, &user, &scopes, expires).await;
    let created = created.map_err(described)?;
    Ok(json!({ "token": created.token, "secret": created.secret.expose() }))
}

async fn revoke_token(params: &Value, tokens: &Tokens) -> Result<Value, String> {
    let RevokeToken { name } = read(params)?;
    let revoked = tokens.revoke(&name).await.map_err(|error| {
        if error == TokenError::Unknown {
            format!(
                "no token has the id or the name `{name}`; `tenterhook gateway token list` shows the tokens"
            )
        } else {
            described(error)
        }
    })?;
    Ok(json!(revoked))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenterhook_channel::chat::Sender;

    #[tokio::test]
    async fn tokens_are_created_listed_and_revoked_without_a_gateway() {
        let folder = tempfile::tempdir().unwrap();
        let call = |method: &'static str, params: Value| {
            let folder = folder.path().to_owned();
            async move { administer_stored(&folder, (method, false), &params).await }
        };
        let wanted = json!({"name": "laptop", "user": "ada", "scopes": ["chat"], "expires": null});
        let created = call("token.create", wanted.clone()).await.unwrap();
        assert!(created["secret"].as_str().unwrap().starts_with("thg_"));
        let listed = call("token.list", json!({})).await.unwrap();
        assert_eq!(listed[0]["user"], "ada");
        assert!(
            !listed
                .to_string()
                .contains(created["secret"].as_str().unwrap())
        );
        let revoked = call("token.revoke", json!({"name": "laptop"}))
            .await
            .unwrap();
        assert_eq!(revoked[0]["id"], created["token"]["id"]);
        assert_eq!(call("token.list", json!({})).await.unwrap(), json!([]));
        // Since the owner has a token, nothing gives rights without a proof.
        let owner = json!({"name": "me", "user": "owner", "scopes": ["admin"], "expires": null});
        call("token.create", owner).await.unwrap();
        let error = call("token.create", wanted.clone()).await.unwrap_err();
        assert!(error.contains("an owner has to confirm this"), "{error}");
        let proven = ("token.create", true);
        administer_stored(folder.path(), proven, &wanted)
            .await
            .unwrap();
        let call = |method: &'static str, params: Value| {
            let folder = folder.path().to_owned();
            async move { administer_stored(&folder, (method, true), &params).await }
        };
        let twice = json!({"name": "x", "user": "ada", "scopes": [], "expires": null});
        let error = call("token.create", twice).await.unwrap_err();
        assert!(error.contains("scope"), "{error}");
    }

    #[tokio::test]
    async fn a_sender_is_admitted_with_the_code_and_revoked() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let tokens = Tokens::open(store.clone()).await.unwrap();
        let pairings = Pairings::new(store);
        let channel = ChannelId::new("tg").unwrap();
        let sender = Sender {
            id: "42".to_owned(),
            name: Some("Ada".to_owned()),
            is_bot: false,
        };
        let code = pairings.request(&channel, &sender).await.unwrap();
        let call = async |method: &str, params: Value| {
            let done = administer(method, &params, &tokens, &pairings).await;
            done.unwrap()
        };
        let listed = call("pair.list", json!({})).await.unwrap();
        assert_eq!(listed[0]["requests"][0]["code"], json!(code));
        let approve = json!({"channel": "tg", "code": code, "role": "member"});
        let approved = call("pair.approve", approve.clone()).await.unwrap();
        assert_eq!(approved["sender"], "42");
        assert_eq!(approved["decided_by"], "the command line");
        assert!(call("pair.approve", approve).await.is_err());
        let stranger = Sender {
            id: "43".to_owned(),
            ..sender
        };
        let code = pairings.request(&channel, &stranger).await.unwrap();
        let deny = json!({"channel": "tg", "code": code, "by": "ann (inspector, laptop)"});
        let denied = call("pair.deny", deny).await.unwrap();
        assert_eq!(denied["decided_by"], "ann (inspector, laptop)");
        let revoke = json!({"channel": "tg", "sender": "42"});
        let revoked = call("pair.revoke", revoke.clone()).await.unwrap();
        assert_eq!(revoked["role"], "member");
        assert!(call("pair.revoke", revoke).await.is_err());
        let other = administer("status", &json!({}), &tokens, &pairings).await;
        assert!(other.is_none());
    }
}
