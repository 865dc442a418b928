//! Requests to the model server, and what they show the model.

use serde_json::Value;

/// A request to the model.
#[derive(Debug, Clone)]
pub struct RecordedRequest {
    /// The path of the request.
    pub path: String,
    /// The body.
    pub body: Value,
    /// The number of the scripted turn that answered it, from 0. `None` if the request offers no tools,
    /// such as a request for a title.
    pub turn: Option<usize>,
}

impl RecordedRequest {
    /// Returns whether the model sees this text in the conversation. Descriptions of tools do not count.
    pub fn shows(&self, text: &str) -> bool {
        let fields = self.body.as_object().into_iter().flatten();
        fields
            .filter(|(key, _)| key.as_str() != "tools")
            .any(|(_, value)| contains(value, text))
    }

    /// Returns the names of the tools that the request offers.
    pub fn offered_tools(&self) -> Vec<&str> {
        let mut names = Vec::new();
        if let Some(tools) = self.body.get("tools").and_then(Value::as_array) {
            for tool in tools {
                collect_names(tool, &mut names);
            }
        }
        names
    }
}

fn contains(value: &Value, text: &str) -> bool {
    match value {
        Value::String(found) => found.contains(text),
        Value::Array(list) => list.iter().any(|item| contains(item, text)),
        Value::Object(fields) => fields.values().any(|item| contains(item, text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// The APIs nest declarations differently: `{name}`, `{function: {name}}`, `{functionDeclarations: [{name}]}`,
/// `{type: "namespace", tools: [{name}]}`.
fn collect_names<'a>(tool: &'a Value, names: &mut Vec<&'a str>) {
    for key in ["functionDeclarations", "tools"] {
        if let Some(list) = tool.get(key).and_then(Value::as_array) {
            for inner in list {
                collect_names(inner, names);
            }
            return;
        }
    }
    let declaration = tool.get("function").unwrap_or(tool);
    names.extend(declaration.get("name").and_then(Value::as_str));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn request(body: Value) -> RecordedRequest {
        RecordedRequest {
            path: "/v1/x".to_owned(),
            body,
            turn: None,
        }
    }

    #[test]
    fn tools_are_found_in_the_form_of_each_api() {
        let forms = [
            json!([{ "name": "Bash", "input_schema": {} }]),
            json!([{ "type": "function", "function": { "name": "Bash" } }]),
            json!([{ "type": "function", "name": "Bash", "parameters": {} }]),
            json!([{ "functionDeclarations": [{ "name": "Bash" }] }]),
            json!([{ "type": "namespace", "name": "x", "tools": [{ "name": "Bash" }] }]),
        ];
        for tools in forms {
            let request = request(json!({ "tools": tools }));
            assert_eq!(request.offered_tools(), ["Bash"], "{}", request.body);
        }
    }

    #[test]
    fn a_text_in_a_tool_description_is_not_shown_in_the_conversation() {
        let request = request(json!({
            "tools": [{ "name": "Bash", "description": "canary" }],
            "messages": [{ "role": "user", "content": [{ "type": "text", "text": "a mark" }] }],
        }));
        assert!(request.shows("mark"));
        assert!(!request.shows("canary"));
    }
}
