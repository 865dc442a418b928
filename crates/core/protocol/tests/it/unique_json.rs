//! JSON in which a key appears twice.

use serde_json::Value;
use tenterhook_protocol::UniqueObject;

#[test]
fn an_object_is_read_as_it_is() {
    let text = r#"{"a":[null,true,-1,18446744073709551615,1.5,"x",{"b":{}}],"c":"\u00e9"}"#;
    let object: UniqueObject = serde_json::from_str(text).unwrap();
    assert_eq!(
        Value::Object(object.0),
        serde_json::from_str::<Value>(text).unwrap()
    );
}

#[test]
fn a_key_that_stands_twice_is_refused_at_any_depth() {
    for text in [
        r#"{"decision":"deny","decision":"allow"}"#,
        r#"{"tool_input":{"cmd":"sudo x","cmd":"ls"}}"#,
        r#"{"list":[{"a":1,"a":1}]}"#,
        r#"{"a":1,"\u0061":2}"#,
    ] {
        let error = serde_json::from_str::<UniqueObject>(text).unwrap_err();
        assert!(
            error.to_string().contains("appears twice"),
            "{text}: {error}"
        );
    }
    assert!(serde_json::from_str::<UniqueObject>("[]").is_err());
}
