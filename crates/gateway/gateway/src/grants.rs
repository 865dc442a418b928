//! Who may give rights through the control socket.
//!
//! Every program of this account can use the socket, and whether a person started it cannot be known for certain. So a
//! command that gives someone rights needs the passphrase of the user, or an owner who is signed in already and confirms
//! a number that only the command shows. Without either, rights are given only while the gateway is being set up: until an
//! owner was there for the first time.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::conversations::approvals::OpenQuestions;
use tenterhook_channel::approval_card::escape_for_approval;
use tenterhook_channel::chat::ChatRef;
use tenterhook_protocol::JsonObject;

/// The methods that give rights.
pub(crate) const GIVES_RIGHTS: [&str; 3] = ["open", "token.create", "pair.approve"];

/// The key of the parameters that proves that the user gives the command.
const PROOF: &str = "proof";

/// How long one request waits for the answer. The command asks again.
const PATIENCE: Duration = Duration::from_secs(45);

/// How many numbers an owner chooses from.
const CHOICES: usize = 4;

/// Checks the passphrase of the user. It may block. The error describes for the user why it does not count.
pub type PassphraseCheck = Arc<dyn Fn(&str) -> Result<(), String> + Send + Sync>;

/// What proves that the user gives a command.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Proof {
    Passphrase(String),
    /// The id of a request that an owner has to confirm.
    Request(String),
}

/// The request that waits for an owner.
struct PendingGrant {
    id: String,
    method: String,
    params: Value,
    /// Whether an owner confirmed it, once that is known.
    confirmed: watch::Receiver<Option<bool>>,
}

/// Decides who may give rights.
#[derive(Default)]
pub(crate) struct Grants {
    passphrase: Mutex<Option<PassphraseCheck>>,
    pending: Mutex<Option<PendingGrant>>,
}

impl fmt::Debug for Grants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grants").finish_non_exhaustive()
    }
}

/// What a command has to do next.
pub(crate) enum GrantOutcome {
    /// The request may be carried out, with these parameters.
    Granted(Value),
    /// An owner has not answered yet.
    Waiting,
}

impl Grants {
    /// Accepts a passphrase as a proof from now on.
    pub(crate) fn check_passphrase_with(&self, check: PassphraseCheck) {
        *self.passphrase.lock() = Some(check);
    }

    /// Begins a request for rights: asks an owner in these chats to confirm a number. `person` is who a code of a pairing
    /// was given to. Returns the number, and what has to
    /// run for the answer, until `stop`.
    pub(crate) fn begin(
        &self,
        (method, params, person): (&str, Value, Option<String>),
        (places, questions): (Vec<ChatRef>, OpenQuestions),
        stop: CancellationToken,
    ) -> Result<(Value, BoxFuture<'static, ()>), String> {
        if !GIVES_RIGHTS.contains(&method) {
            return Err(format!("`{method}` gives no rights"));
        }
        if places.is_empty() {
            return Err(NO_OWNER.to_owned());
        }
        let (id, numbers) = random_numbers().ok_or("the system has no random numbers")?;
        let number = numbers.0.clone();
        let title = format!(
            "A command on the gateway's machine asks for {}. Which number does it show? If you did not run it, dismiss \
             this.",
            describe(method, &params, person.as_deref())
        );
        let (answer, confirmed) = watch::channel(None);
        {
            let mut pending = self.pending.lock();
            let is_open = pending.as_ref().is_some_and(|other| {
                other.confirmed.borrow().is_none() && other.confirmed.has_changed().is_ok()
            });
            if is_open {
                return Err(
                    "another command waits for an owner; try again when it is over".to_owned(),
                );
            }
            *pending = Some(PendingGrant {
                id: id.clone(),
                method: method.to_owned(),
                params,
                confirmed,
            });
        }
        let names: Vec<String> = places.iter().map(ToString::to_string).collect();
        let expected = number.clone();
        // The question ends after a few minutes, also if the command is gone.
        let asking: BoxFuture<'static, ()> = Box::pin(async move {
            let asked = places
                .into_iter()
                .map(|chat| questions.ask_owner(chat, title.clone(), numbers.1.clone()));
            let mut answers: FuturesUnordered<_> = asked.collect();
            let choice = async {
                while let Some(answered) = answers.next().await {
                    if answered.is_some() {
                        return answered;
                    }
                }
                None
            };
            let chosen = stop.run_until_cancelled(choice).await.flatten();
            answer.send_replace(Some(chosen.as_ref() == Some(&expected)));
        });
        let begun = json!({ "request": id, "number": number, "asked": names });
        Ok((begun, asking))
    }

    /// Checks the proof in the parameters of a request that gives rights, and removes it from them.
    /// While the gateway is being set up, none is needed.
    pub(crate) async fn check(
        &self,
        is_set_up: bool,
        method: &str,
        mut params: Value,
    ) -> Result<GrantOutcome, String> {
        let proof = params.as_object_mut().and_then(|it| it.remove(PROOF));
        let proof: Option<Proof> = match proof {
            Some(proof) => Some(
                serde_json::from_value(proof).map_err(|error| format!("invalid proof: {error}"))?,
            ),
            None => None,
        };
        match proof {
            Some(Proof::Passphrase(text)) => {
                let check = self.passphrase.lock().clone();
                let check = check.ok_or(NO_PASSPHRASE)?;
                let checked = tokio::task::spawn_blocking(move || check(&text)).await;
                checked
                    .unwrap_or_else(|_| Err("the passphrase could not be checked".to_owned()))?;
                Ok(GrantOutcome::Granted(params))
            }
            Some(Proof::Request(id)) => self.confirmed(&id, method, params).await,
            None if !is_set_up => Ok(GrantOutcome::Granted(params)),
            None => Err(NO_OWNER.to_owned()),
        }
    }

    async fn confirmed(
        &self,
        id: &str,
        method: &str,
        params: Value,
    ) -> Result<GrantOutcome, String> {
        let mut confirmed = {
            let pending = self.pending.lock();
            let is_it =
                |it: &&PendingGrant| it.id == id && it.method == method && it.params == params;
            let found = pending.as_ref().filter(is_it);
            found
                .ok_or("this request does not wait for an owner")?
                .confirmed
                .clone()
        };
        let answered = tokio::time::timeout(PATIENCE, confirmed.wait_for(Option::is_some)).await;
        let is_confirmed = match answered {
            Err(_) => return Ok(GrantOutcome::Waiting),
            Ok(answer) => answer.is_ok_and(|answer| *answer == Some(true)),
        };
        // A confirmation counts once.
        let mut pending = self.pending.lock();
        let is_first = pending.take_if(|it| it.id == id).is_some();
        if is_confirmed && is_first {
            Ok(GrantOutcome::Granted(params))
        } else {
            Err("no owner confirmed the number, so nothing was done".to_owned())
        }
    }
}

const NO_OWNER: &str = "an owner has to confirm this, and none can be asked now; open the page or write to the agent as \
    its owner, or set a passphrase with `tenterhook protect` and restart the gateway";

const NO_PASSPHRASE: &str =
    "the passphrase was set after the gateway had started; restart the gateway, then try again";

/// Returns an id, and a number among others from which an owner chooses it. `None` if the system has no random numbers.
fn random_numbers() -> Option<(String, (String, Vec<String>))> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok()?;
    let id = format!("{:032x}", u128::from_be_bytes(bytes));
    let mut numbers: Vec<String> = Vec::new();
    while numbers.len() < CHOICES {
        let mut random = [0; 2];
        getrandom::fill(&mut random).ok()?;
        let number = (10 + u16::from_le_bytes(random) % 90).to_string();
        if !numbers.contains(&number) {
            numbers.push(number);
        }
    }
    // The numbers are in random order, so any of them can be the one.
    let number = numbers.get(usize::from(*bytes.first()?) % CHOICES)?.clone();
    Some((id, (number, numbers)))
}

/// Describes for an owner what a request gives to whom.
fn describe(method: &str, params: &Value, person: Option<&str>) -> String {
    let none = JsonObject::new();
    let params = params.as_object().unwrap_or(&none);
    let text = |name: &str| {
        let text = params.get(name).and_then(Value::as_str).unwrap_or_default();
        format!("`{}`", escape_for_approval(text))
    };
    let is = |name: &str| params.get(name) == Some(&Value::Bool(true));
    match method {
        "open" if is("admin") => format!(
            "a link with which {} decides in the inspector",
            text("user")
        ),
        "open" if is("inspect") => format!("a link with which {} sees the inspector", text("user")),
        "open" => format!("a link that signs in {}", text("user")),
        "token.create" => {
            let scopes = params.get("scopes").and_then(Value::as_array);
            let scopes = scopes.into_iter().flatten().filter_map(Value::as_str);
            let scopes: Vec<String> = scopes.map(escape_for_approval).collect();
            format!(
                "an access token {} for {} with the rights {}",
                text("name"),
                text("user"),
                scopes.join(", ")
            )
        }
        _ => format!(
            "the admission of {} to {} as {}",
            match person {
                Some(person) => escape_for_approval(person),
                None => format!("the person with the code {}", text("code")),
            },
            text("channel"),
            text("role")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_right_number_is_among_others_and_does_not_show_by_its_place() {
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..200 {
            let (_, (number, numbers)) = random_numbers().unwrap();
            assert_eq!(numbers.len(), CHOICES);
            seen.insert(numbers.iter().position(|other| *other == number).unwrap());
        }
        assert_eq!(seen.len(), CHOICES);
    }

    #[test]
    fn an_owner_reads_what_is_asked_for_and_cannot_be_misled_by_it() {
        let params = json!({"name": "x\u{202e}\n\n", "user": "owner", "scopes": ["chat", "admin"]});
        assert_eq!(
            describe("token.create", &params, None),
            "an access token `x\\u{202e}\\n\\n` for `owner` with the rights chat, admin"
        );
        let params = json!({"user": "owner", "inspect": true, "admin": true});
        assert_eq!(
            describe("open", &params, None),
            "a link with which `owner` decides in the inspector"
        );
        let params = json!({"channel": "tg", "code": "7K3M9QXA", "role": "member"});
        assert_eq!(
            describe("pair.approve", &params, Some("Ada\u{202e} (1001)")),
            "the admission of Ada\\u{202e} (1001) to `tg` as `member`"
        );
        assert_eq!(
            describe("pair.approve", &params, None),
            "the admission of the person with the code `7K3M9QXA` to `tg` as `member`"
        );
    }
}
