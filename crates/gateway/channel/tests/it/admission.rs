//! Who may talk to the agent.

use tenterhook_channel::admission::{
    Admission, AdmissionFacts, AdmissionRefusal, admit, control_role,
};
use tenterhook_channel::chat::{ChannelId, Sender};
use tenterhook_channel::settings::{
    AccessRules, ChannelKind, ChannelSettings, CommandSettings, DirectPolicy, GroupRules,
    SecretSource, WebhookSettings,
};
use tenterhook_protocol::event::SenderRole;

use Admission::{Admitted, Pair, Refused};
use AdmissionRefusal::{
    Bot, DirectChatsOff, GroupNotListed, NoIdentity, NotAddressed, NotAdmitted,
};
use DirectPolicy::{Allow, Off, Open, Pairing};
use SenderRole::{Guest, Member, Owner};

fn list(ids: &[&str]) -> Vec<String> {
    ids.iter().map(ToString::to_string).collect()
}

fn channel(kind: ChannelKind, access: AccessRules) -> ChannelSettings {
    ChannelSettings {
        access,
        ..ChannelSettings::new(ChannelId::new("x").unwrap(), kind)
    }
}

fn program(access: AccessRules) -> ChannelSettings {
    let argv = list(&["program"]);
    channel(ChannelKind::Command(CommandSettings { argv }), access)
}

/// Owner 1, member 2, everyone else a stranger.
fn rules(direct: DirectPolicy) -> AccessRules {
    AccessRules {
        direct,
        owners: list(&["1"]),
        members: list(&["2"]),
        groups: Some(GroupRules {
            allow: list(&["-100"]),
            needs_mention: true,
            senders: Some(list(&["3"])),
        }),
        bots: list(&["9"]),
    }
}

fn sender(id: &str) -> Sender {
    Sender {
        id: id.to_owned(),
        name: Some("1".to_owned()),
        is_bot: false,
    }
}

fn direct(sender: &Sender) -> AdmissionFacts<'_> {
    AdmissionFacts {
        chat: &sender.id,
        sender,
        is_direct: true,
        is_addressed: true,
        paired: None,
        authenticated: None,
    }
}

fn group<'a>(sender: &'a Sender, chat: &'a str) -> AdmissionFacts<'a> {
    AdmissionFacts {
        chat,
        is_direct: false,
        ..direct(sender)
    }
}

// G21, G74
#[test]
fn a_direct_chat_is_admitted_by_its_policy() {
    for (policy, id, paired, expected) in [
        (Pairing, "1", None, Admitted(Owner)),
        (Pairing, "2", None, Admitted(Member)),
        (Pairing, "3", None, Pair),
        (Pairing, "4", None, Pair),
        (Pairing, "4", Some(Member), Admitted(Member)),
        (Pairing, "4", Some(Owner), Admitted(Owner)),
        (Pairing, "1", Some(Guest), Admitted(Owner)),
        // `allow` means the lists and nothing else: no code, and earlier pairings do not count.
        (Allow, "1", None, Admitted(Owner)),
        (Allow, "2", None, Admitted(Member)),
        (Allow, "4", None, Refused(NotAdmitted)),
        (Allow, "4", Some(Owner), Refused(NotAdmitted)),
        (Open, "1", None, Admitted(Owner)),
        (Open, "2", None, Admitted(Member)),
        (Open, "4", None, Admitted(Guest)),
        (Open, "4", Some(Owner), Admitted(Guest)),
        (Off, "1", None, Refused(DirectChatsOff)),
        (Off, "4", Some(Owner), Refused(DirectChatsOff)),
        // Ids are compared exactly.
        (Allow, "01", None, Refused(NotAdmitted)),
        (Allow, " 1", None, Refused(NotAdmitted)),
        (Allow, "11", None, Refused(NotAdmitted)),
        (Allow, "*", None, Refused(NotAdmitted)),
        (Pairing, "", Some(Owner), Refused(NoIdentity)),
        (Open, "", None, Refused(NoIdentity)),
        (Open, &"x".repeat(257), None, Refused(NoIdentity)),
    ] {
        let sender = sender(id);
        let facts = AdmissionFacts {
            paired,
            ..direct(&sender)
        };
        let decided = admit(&program(rules(policy)), facts);
        assert_eq!(decided, expected, "{policy:?} {id} {paired:?}");
    }
}

// G56, G75
#[test]
fn a_group_is_admitted_by_its_own_lists_only() {
    for (chat, id, is_addressed, expected) in [
        ("-100", "1", true, Admitted(Owner)),
        ("-100", "3", true, Admitted(Member)),
        ("-100", "2", true, Refused(NotAdmitted)),
        ("-100", "4", true, Refused(NotAdmitted)),
        ("-100", "1", false, Refused(NotAddressed)),
        ("-100", "3", false, Refused(NotAddressed)),
        ("-1", "1", true, Refused(GroupNotListed)),
        ("-1000", "3", true, Refused(GroupNotListed)),
        ("100", "3", true, Refused(GroupNotListed)),
    ] {
        for (policy, paired) in [(Pairing, Some(Owner)), (Open, Some(Owner)), (Off, None)] {
            let sender = sender(id);
            let facts = AdmissionFacts {
                is_addressed,
                paired,
                ..group(&sender, chat)
            };
            let decided = admit(&program(rules(policy)), facts);
            assert_eq!(decided, expected, "{policy:?} {chat} {id} {is_addressed}");
        }
    }
}

#[test]
fn a_group_can_admit_everyone_as_a_guest_and_without_a_mention() {
    let mut access = rules(Pairing);
    access.groups = Some(GroupRules {
        allow: list(&["-100"]),
        needs_mention: false,
        senders: None,
    });
    for (id, expected) in [("1", Owner), ("2", Guest), ("4", Guest)] {
        let sender = sender(id);
        let facts = AdmissionFacts {
            is_addressed: false,
            ..group(&sender, "-100")
        };
        let decided = admit(&program(access.clone()), facts);
        assert_eq!(decided, Admitted(expected), "{id}");
    }
}

// G72
#[test]
fn empty_lists_admit_no_one() {
    let mut access = AccessRules {
        direct: Allow,
        ..AccessRules::default()
    };
    let someone = sender("1");
    let refused = Refused(NotAdmitted);
    assert_eq!(admit(&program(access.clone()), direct(&someone)), refused);
    let not_listed = Refused(GroupNotListed);
    let in_group = group(&someone, "-100");
    assert_eq!(admit(&program(access.clone()), in_group), not_listed);
    access.groups = Some(GroupRules {
        allow: Vec::new(),
        needs_mention: false,
        senders: None,
    });
    assert_eq!(admit(&program(access.clone()), in_group), not_listed);
    access.groups = Some(GroupRules {
        allow: list(&["-100"]),
        needs_mention: false,
        senders: Some(Vec::new()),
    });
    assert_eq!(admit(&program(access), in_group), refused);
}

#[test]
fn a_bot_needs_to_be_listed_as_one_and_gets_no_code() {
    for (policy, id, expected) in [
        (Open, "8", Refused(Bot)),
        (Open, "1", Refused(Bot)),
        (Open, "9", Admitted(Guest)),
        (Pairing, "9", Refused(NotAdmitted)),
        (Allow, "9", Refused(NotAdmitted)),
    ] {
        let bot = Sender {
            is_bot: true,
            ..sender(id)
        };
        let decided = admit(&program(rules(policy)), direct(&bot));
        assert_eq!(decided, expected, "{policy:?} {id}");
    }
}

#[test]
fn web_and_http_ask_for_a_token_stdio_is_the_owner_and_a_webhook_has_its_setting() {
    let webhook = ChannelKind::Webhook(WebhookSettings {
        secret: SecretSource::Environment("KEY".to_owned()),
        header: String::new(),
        prefix: String::new(),
        timestamp_header: None,
        delivery_header: String::new(),
        event_header: "x-github-event".to_owned(),
        events: Vec::new(),
        template: String::new(),
        chat: "ops".to_owned(),
        role: Guest,
    });
    let not_admitted = Refused(NotAdmitted);
    for (kind, authenticated, expected) in [
        (ChannelKind::Web, Some(Owner), Admitted(Owner)),
        (ChannelKind::Web, None, not_admitted),
        (ChannelKind::Http, Some(Member), Admitted(Member)),
        (ChannelKind::Http, None, not_admitted),
        (ChannelKind::Stdio, None, Admitted(Owner)),
        (webhook, Some(Owner), Admitted(Guest)),
    ] {
        // Access rules do not open such a channel.
        let channel = channel(kind, rules(Open));
        let sender = sender("1");
        let facts = AdmissionFacts {
            authenticated,
            paired: Some(Owner),
            ..direct(&sender)
        };
        assert_eq!(admit(&channel, facts), expected, "{:?}", channel.kind);
    }
}

#[test]
fn a_tap_on_a_button_has_the_role_that_a_message_would_have() {
    let channel = program(rules(Pairing));
    for (chat, id, paired, expected) in [
        ("1", "1", None, Some(Owner)),
        ("-100", "1", None, Some(Owner)),
        ("-100", "3", None, Some(Member)),
        ("-100", "2", None, None),
        ("-100", "4", Some(Owner), None),
        ("4", "4", Some(Member), Some(Member)),
        ("4", "4", None, None),
    ] {
        let role = control_role(&channel, chat, &sender(id), paired, None);
        assert_eq!(role, expected, "{chat} {id}");
    }
}
