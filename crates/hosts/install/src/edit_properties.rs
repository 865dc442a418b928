//! Properties of adding and removing entries, for generated settings.

use proptest::prelude::*;
use serde_json::json;

use crate::entry::{LinePrefix, NewEntry};
use crate::json_settings;
use crate::list_form::ListForm;

const OURS: LinePrefix<'static> = LinePrefix("'/d/bin/tenterhook-shim' acme ");
const OTHER: LinePrefix<'static> = LinePrefix("'/other/bin/guard' acme ");

fn entries(prefix: LinePrefix<'_>, events: &[&str]) -> Vec<NewEntry> {
    let entry = |event: &&str| {
        let command = format!("{}{event}", prefix.0);
        NewEntry {
            event: (*event).to_owned(),
            value: json!({"matcher": "*", "hooks": [{"command": command, "timeout": 30}]}),
        }
    };
    events.iter().map(entry).collect()
}

fn tables(prefix: LinePrefix<'_>, events: &[&str]) -> Vec<NewEntry> {
    let entry = |event: &&str| NewEntry {
        event: (*event).to_owned(),
        value: json!({"command": format!("{}{event}", prefix.0), "event": event}),
    };
    events.iter().map(entry).collect()
}

/// Returns white space and comments. A line comment ends with its line.
fn gap() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        4 => Just(String::new()),
        2 => Just(" ".to_owned()),
        2 => Just("\n  ".to_owned()),
        1 => Just("\n\n\t".to_owned()),
        1 => Just(" // mine, {[\n".to_owned()),
        1 => Just("/* \", */".to_owned()),
    ];
    proptest::collection::vec(part, 0..3).prop_map(|parts| parts.concat())
}

/// Returns members between brackets, each with gaps around it, and perhaps a trailing comma.
fn between(
    open: &'static str,
    members: impl Strategy<Value = Vec<String>>,
    close: &'static str,
) -> impl Strategy<Value = String> {
    let gaps = proptest::collection::vec((gap(), gap()), 6);
    (members, gaps, gap(), any::<bool>()).prop_map(move |(members, gaps, end, has_trailing)| {
        let count = members.len();
        let mut text = open.to_owned();
        for (index, (member, (before, after))) in members.into_iter().zip(gaps).enumerate() {
            text.extend([before, member, after]);
            if index + 1 < count || has_trailing {
                text.push(',');
            }
        }
        text + &end + close
    })
}

fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("1.50".to_owned()),
        Just("null".to_owned()),
        Just(r#""a // \"b\" ö""#.to_owned()),
        Just(r#"{"command": "mine", "hooks": [{"command": "mine"}]}"#.to_owned()),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        let list = proptest::collection::vec(inner.clone(), 0..3);
        let members = proptest::collection::vec((gap(), inner), 0..3);
        let members = members.prop_map(|members| {
            let member = |(index, (gap, value)): (usize, (String, String))| {
                format!("\"k{index}\":{gap}{value}")
            };
            members
                .into_iter()
                .enumerate()
                .map(member)
                .collect::<Vec<_>>()
        });
        prop_oneof![between("[", list, "]"), between("{", members, "}")]
    })
}

/// Returns a list of values and entries of Tenterhook.
fn list_with_entries() -> impl Strategy<Value = String> {
    let entry = entries(OURS, &["Pre"]).remove(0).value.to_string();
    let element = prop_oneof![value(), Just(entry)];
    between("[", proptest::collection::vec(element, 0..4), "]")
}

fn lists() -> impl Strategy<Value = String> {
    let list = || between("[", proptest::collection::vec(value(), 0..3), "]");
    let pre = proptest::option::of(list());
    let post = proptest::option::of(list());
    let members = (pre, post).prop_map(|(pre, post)| {
        let pre = pre.map(|list| format!("\"Pre\": {list}"));
        pre.into_iter()
            .chain(post.map(|list| format!("\"Post\" :{list}")))
            .collect::<Vec<_>>()
    });
    between("{", members, "}")
}

fn settings() -> impl Strategy<Value = String> {
    let members = (
        value(),
        proptest::option::of(lists()),
        proptest::option::of(value()),
    );
    let members = members.prop_map(|(first, hooks, last)| {
        let first = format!("\"first\": {first}");
        let hooks = hooks.map(|hooks| format!("\"hooks\": {hooks}"));
        let last = last.map(|last| format!("\"last\": {last}"));
        [Some(first), hooks, last]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
    });
    (gap(), between("{", members, "}"), gap(), any::<bool>()).prop_map(
        |(before, body, after, is_crlf)| {
            let text = format!("{before}{body}{after}\n");
            if is_crlf {
                text.replace('\n', "\r\n")
            } else {
                text
            }
        },
    )
}

fn toml_settings() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just("\n"),
        Just("# mine [[hooks]]\n"),
        Just("[[hooks]]\nevent = \"Pre\" # why\ncommand = \"mine\"\n"),
        Just("[[hooks]]\ncommand = \"mine\"\n[hooks.env]\na = \"[[hooks]]\"\n"),
        Just("\t# end\n"),
    ];
    let parts = proptest::collection::vec(part, 0..5);
    let tables = proptest::option::of(Just(
        "[p.\"q r\"]\nlist = [\n  1, # one\n]\ntext = '''\n[[hooks]]\n'''\n",
    ));
    (parts.clone(), tables, parts, any::<bool>()).prop_map(|(first, table, last, is_crlf)| {
        let text = format!(
            "model = 'x'\n{}{}{}",
            first.concat(),
            table.unwrap_or(""),
            last.concat()
        );
        if is_crlf {
            text.replace('\n', "\r\n")
        } else {
            text
        }
    })
}

/// Returns whether all bytes of a text are in another one, in the same order.
fn is_within(text: &str, other: &str) -> bool {
    let mut rest = other.bytes();
    text.bytes().all(|byte| rest.any(|it| it == byte))
}

fn dense(text: &str) -> String {
    text.split_whitespace().collect()
}

fn check(form: ListForm, text: &str, ours: &[NewEntry], others: &[NewEntry]) {
    let all = |_: &str| true;
    let added = form.add(text, ours).unwrap();
    assert!(is_within(text, &added.text), "{text}\n{}", added.text);
    let found = form.find(&added.text, OURS).unwrap();
    let values: Vec<_> = found.iter().map(|it| &it.value).collect();
    assert!(ours.iter().all(|it| values.contains(&&it.value)) && values.len() == ours.len());
    assert_eq!(form.add(&added.text, &[]).unwrap().text, added.text);

    let removed = form
        .remove(&added.text, OURS, &all, &added.created)
        .unwrap();
    assert_eq!(dense(&removed), dense(text), "{}", added.text);

    // Others' entries that were added later stay, and so does everything else.
    let both = form.add(&added.text, others).unwrap();
    let rest = form.remove(&both.text, OURS, &all, &added.created).unwrap();
    assert!(form.find(&rest, OURS).unwrap().is_empty());
    assert_eq!(form.find(&rest, OTHER).unwrap().len(), others.len());
    let created: Vec<_> = added.created.into_iter().chain(both.created).collect();
    let nothing = form.remove(&rest, OTHER, &all, &created).unwrap();
    assert_eq!(dense(&nothing), dense(text), "{rest}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn entries_in_json_come_and_go_without_a_trace(text in settings()) {
        let form = ListForm::Json(&["hooks"]);
        check(form, &text, &entries(OURS, &["Pre", "Stop"]), &entries(OTHER, &["Pre", "Post", "Stop"]));
    }

    #[test]
    fn comments_and_values_next_to_an_entry_survive_its_removal(list in list_with_entries()) {
        let text = format!("{{\"hooks\": {{\"Pre\": {list}}}}}");
        let rest = ListForm::Json(&["hooks"]).remove(&text, OURS, &|_| true, &[]).unwrap();
        for comment in ["// mine, {[", "/* \", */"] {
            prop_assert_eq!(rest.matches(comment).count(), text.matches(comment).count(), "{}", text);
        }
        let mut expected = json_settings::value(&text).unwrap().unwrap();
        let elements = expected["hooks"]["Pre"].as_array_mut().unwrap();
        elements.retain(|it| !OURS.is_whole(it));
        prop_assert_eq!(json_settings::value(&rest).unwrap().unwrap(), expected);
    }

    #[test]
    fn tables_in_toml_come_and_go_without_a_trace(text in toml_settings()) {
        let form = ListForm::Toml("hooks");
        check(form, &text, &tables(OURS, &["Pre", "Stop"]), &tables(OTHER, &["Pre"]));
    }
}
