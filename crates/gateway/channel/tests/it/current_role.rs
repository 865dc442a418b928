//! The role of someone whose message was admitted earlier.

use jiff::Timestamp;
use tenterhook_channel::admission::AdmissionRefusal;
use tenterhook_channel::chat::{ChannelId, ChatRef, Sender};
use tenterhook_channel::current_role::{CurrentRoleError, CurrentRoles};
use tenterhook_channel::live_settings::LiveSettings;
use tenterhook_channel::message::IncomingMessage;
use tenterhook_channel::pairing::Pairings;
use tenterhook_channel::settings::{
    ChannelKind, ChannelSettings, CommandSettings, DirectPolicy, GroupRules, Settings,
};
use tenterhook_channel::store::Store;
use tenterhook_channel::token::{AccessScope, DEFAULT_USER, Tokens};
use tenterhook_protocol::event::SenderRole::{Member, Owner};

fn id(channel: &str) -> ChannelId {
    ChannelId::new(channel).unwrap()
}

fn message(channel: &str, sender: &str) -> IncomingMessage {
    IncomingMessage {
        dedupe: "1".to_owned(),
        message_id: "1".to_owned(),
        chat: ChatRef {
            channel: id(channel),
            chat: "c".to_owned(),
            thread: None,
        },
        sender: Sender {
            id: sender.to_owned(),
            name: None,
            is_bot: false,
        },
        is_direct: true,
        is_addressed: true,
        parts: Vec::new(),
        reply_to: None,
        at: Timestamp::now(),
    }
}

fn settings(owners: &[&str], members: &[&str]) -> Settings {
    let argv = vec!["program".to_owned()];
    let kind = ChannelKind::Command(CommandSettings { argv });
    let mut program = ChannelSettings::new(id("p"), kind);
    program.access.direct = DirectPolicy::Pairing;
    program.access.owners = owners.iter().map(|&it| it.to_owned()).collect();
    program.access.members = members.iter().map(|&it| it.to_owned()).collect();
    Settings {
        channels: vec![program, ChannelSettings::new(id("web"), ChannelKind::Web)],
        ..Settings::default()
    }
}

#[tokio::test]
async fn an_earlier_role_never_grows_and_shrinks_to_the_current_one() {
    let pairings = Pairings::new(Store::in_memory().unwrap());
    let roles = CurrentRoles::new(settings(&["ada"], &["bob"]).into(), pairings);
    for (earlier, sender, now) in [
        (Owner, "ada", Owner),
        (Member, "ada", Member),
        (Owner, "bob", Member),
        (Member, "bob", Member),
    ] {
        let role = roles.at_most(earlier, &message("p", sender)).await;
        assert_eq!(role, Ok(now), "{sender}");
    }
    let removed = roles.at_most(Owner, &message("p", "eve")).await;
    assert_eq!(removed, Err(NOT_ADMITTED));
}

const NOT_ADMITTED: CurrentRoleError = CurrentRoleError::Refused {
    refusal: AdmissionRefusal::NotAdmitted,
};

#[tokio::test]
async fn the_settings_in_force_decide_about_a_sender_of_earlier() {
    let folder = tempfile::tempdir().unwrap();
    let live = LiveSettings::from(settings(&["ann"], &[]));
    let pairings = Pairings::new(Store::open(folder.path()).unwrap());
    let roles = CurrentRoles::new(live.clone(), pairings);
    let earlier = message("p", "ann");
    assert_eq!(roles.of(&earlier).await, Ok(Owner));
    live.replace(settings(&[], &["ann"]));
    assert_eq!(roles.of(&earlier).await, Ok(Member));
    live.replace(settings(&[], &[]));
    assert_eq!(roles.of(&earlier).await, Err(NOT_ADMITTED));
    let mut off = settings(&["ann"], &[]);
    off.channels[0].is_enabled = false;
    live.replace(off);
    let error = roles.of(&earlier).await.unwrap_err().to_string();
    assert_eq!(error, "the channel `p` is not in use any more");
}

// Otherwise, a message that waits would be lost if the group's rule about mentions changed during a restart.
#[tokio::test]
async fn a_message_in_a_group_need_not_have_mentioned_the_agent() {
    let mut settings = settings(&["ann"], &[]);
    settings.channels[0].access.groups = Some(GroupRules {
        allow: vec!["c".to_owned()],
        needs_mention: true,
        senders: Some(Vec::new()),
    });
    let pairings = Pairings::new(Store::in_memory().unwrap());
    let roles = CurrentRoles::new(settings.into(), pairings);
    let earlier = IncomingMessage {
        is_direct: false,
        is_addressed: false,
        ..message("p", "ann")
    };
    assert_eq!(roles.of(&earlier).await, Ok(Owner));
}

#[tokio::test]
async fn the_program_that_starts_the_gateway_is_always_the_owner() {
    let started = Settings::default().with_stdio().unwrap();
    let pairings = Pairings::new(Store::in_memory().unwrap());
    let roles = CurrentRoles::new(started.into(), pairings);
    assert_eq!(roles.of(&message("stdio", "ann")).await, Ok(Owner));
}

#[tokio::test]
async fn a_pairing_that_was_revoked_no_longer_counts() {
    let folder = tempfile::tempdir().unwrap();
    let pairings = Pairings::new(Store::open(folder.path()).unwrap());
    let roles = CurrentRoles::new(settings(&[], &[]).into(), pairings.clone());
    let earlier = message("p", "bob");
    let asked = pairings.request(&id("p"), &earlier.sender).await;
    let code = asked.unwrap().unwrap();
    let admitted = pairings.approve(&id("p"), &code, Member, "ann").await;
    admitted.unwrap();
    assert_eq!(roles.of(&earlier).await, Ok(Member));
    pairings.revoke(&id("p"), "bob").await.unwrap();
    assert_eq!(roles.of(&earlier).await, Err(NOT_ADMITTED));
}

#[tokio::test]
async fn the_tokens_in_force_decide_about_a_user_of_earlier() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let tokens = Tokens::open(store.clone()).await.unwrap();
    let roles = CurrentRoles::new(settings(&[], &[]).into(), Pairings::new(store));
    let earlier = message("web", "ann");
    let scopes = [AccessScope::Chat, AccessScope::Approve];
    for (name, scopes) in [("member", &scopes[..1]), ("owner", &scopes[..])] {
        tokens.create(name, "ann", scopes, None).await.unwrap();
    }
    let approve = [AccessScope::Approve];
    tokens.create("page", "ann", &approve, None).await.unwrap();
    assert_eq!(roles.of(&earlier).await, Err(NOT_ADMITTED), "no tokens");
    let roles = roles.with_tokens(tokens.clone());
    assert_eq!(roles.of(&earlier).await, Ok(Owner));
    tokens.revoke("owner").await.unwrap();
    assert_eq!(roles.of(&earlier).await, Ok(Member));
    tokens.revoke("member").await.unwrap();
    assert_eq!(roles.of(&earlier).await, Err(NOT_ADMITTED));
}

// A browser stays logged in for a day. A timer of the owner's chat may run later.
#[tokio::test]
async fn the_end_of_a_login_does_not_remove_the_one_who_runs_the_gateway() {
    let store = Store::in_memory().unwrap();
    let tokens = Tokens::open(store.clone()).await.unwrap();
    let roles = CurrentRoles::new(settings(&[], &[]).into(), Pairings::new(store));
    let roles = roles.with_tokens(tokens);
    let earlier = message("web", DEFAULT_USER);
    assert_eq!(roles.at_most(Owner, &earlier).await, Ok(Owner));
    assert_eq!(roles.at_most(Member, &earlier).await, Ok(Member));
    assert_eq!(roles.of(&message("web", "ann")).await, Err(NOT_ADMITTED));
}
