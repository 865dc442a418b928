//! Removes a key from an object.

use serde_json::Value;
use tenterhook_protocol::JsonObject;

/// Removes a key and returns its value. Keeps the order of the other keys, if objects are ordered. With
/// `preserve_order`, `serde_json`'s own `remove` would move the last key into the gap.
pub(crate) fn take_key(object: &mut JsonObject, key: &str) -> Option<Value> {
    let mut taken = None;
    object.retain(|name, value| {
        let is_other = name != key;
        if !is_other {
            taken = Some(value.take());
        }
        is_other
    });
    taken
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_key_is_removed_and_the_others_stay_as_they_are() {
        let Value::Object(mut object) = json!({ "a": 1, "b": 2, "c": 3 }) else {
            panic!("not an object");
        };
        assert_eq!(take_key(&mut object, "a"), Some(json!(1)));
        assert_eq!(take_key(&mut object, "a"), None);
        assert_eq!(Value::Object(object).to_string(), r#"{"b":2,"c":3}"#);
    }
}
