//! Tells local model servers to drop the models of the agent that was active, so that the next one finds room.

use std::time::Duration;

use futures_util::future::{BoxFuture, join_all};
use reqwest::Url;
use serde_json::json;
use tenterhook::event::{AgentModel, AgentSwitch};
use tenterhook::{Call, HandlerError};
use tenterhook_protocol::{AnyEffect, EventKind};

use super::{Builtin, Run, takes_none};
use crate::http::{Headers, Target, drain, post};

pub(super) const BUILTIN: Builtin = Builtin {
    name: "unload",
    events: &[EventKind::AgentSwitch],
    arguments: "none",
    make: |setup| {
        takes_none(setup.arguments)?;
        Ok(Box::new(Unload))
    },
};

/// The provider whose servers can be told: Docker Model Runner.
const PROVIDER: &str = "dmr";
/// How long one server may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How much of an answer is waited for.
const DRAINED: usize = 64 << 10;

struct Unload;

impl Run for Unload {
    fn run<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<AnyEffect, HandlerError>> {
        Box::pin(async move {
            let Some(event) = call.event.downcast::<AgentSwitch>() else {
                return Ok(AnyEffect::default());
            };
            if event.from_agent.is_empty() || event.from_agent == event.to_agent {
                return Ok(AnyEffect::default());
            }
            let models = event.from_agent_models.iter();
            let told = models.filter(|model| model.provider == PROVIDER).map(tell);
            let problems: Vec<String> = join_all(told).await.into_iter().flatten().collect();
            if problems.is_empty() {
                Ok(AnyEffect::default())
            } else {
                Err(HandlerError::Other {
                    problem: problems.join("; "),
                })
            }
        })
    }
}

/// Tells one server, and returns what went wrong.
async fn tell(model: &AgentModel) -> Option<String> {
    let telling = async {
        let url = url(model)?;
        // The address is the agent's own configuration, and its models are asked there anyway.
        let target = Target::parse(&url, true).map_err(|error| format!("`{url}`: {error}"))?;
        let body = json!({ "model": model.model }).to_string().into_bytes();
        let headers = Headers::default();
        let posted = post(&target, &headers, body).await;
        let posted = posted.map_err(|error| error.to_string())?;
        let drained = drain(posted, &headers, DRAINED).await;
        drained.map_err(|error| error.to_string())
    };
    let told = tokio::time::timeout(TIMEOUT, telling).await;
    let told = told.unwrap_or_else(|_| Err(format!("no answer within {}s", TIMEOUT.as_secs())));
    told.err()
        .map(|problem| format!("model `{}`: {problem}", model.model))
}

/// Returns where the server of a model is told.
fn url(model: &AgentModel) -> Result<String, String> {
    let given = model.unload_api.as_deref().filter(|url| !url.is_empty());
    if let Some(url) = given.filter(|url| url.contains("://")) {
        return Ok(url.to_owned());
    }
    let base = model.base_url.as_deref().filter(|url| !url.is_empty());
    let base = base.ok_or("it has no `base_url`")?;
    let trimmed = base.trim_end_matches('/');
    let trimmed = trimmed.strip_suffix("/v1").unwrap_or(trimmed);
    let Some(path) = given else {
        return Ok(format!("{trimmed}/_unload"));
    };
    let parsed = Url::parse(&format!("{trimmed}/"));
    let joined = parsed.and_then(|base| base.join(path));
    joined
        .map(String::from)
        .map_err(|error| format!("`{base}` is no base URL: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_told_below_its_base_url_or_where_its_author_says() {
        for (base_url, unload_api, expected) in [
            (
                Some("http://h:1/engines/v1"),
                None,
                Ok("http://h:1/engines/_unload"),
            ),
            (
                Some("http://h:1/engines/v1/"),
                None,
                Ok("http://h:1/engines/_unload"),
            ),
            (Some("http://h:1"), None, Ok("http://h:1/_unload")),
            (Some("http://h:1/v10"), None, Ok("http://h:1/v10/_unload")),
            (Some("http://h:1/v1"), Some(""), Ok("http://h:1/_unload")),
            (
                Some("http://h:1/a/v1"),
                Some("/free"),
                Ok("http://h:1/free"),
            ),
            (
                Some("http://h:1/a/v1"),
                Some("free"),
                Ok("http://h:1/a/free"),
            ),
            (Some("http://h:1"), Some("https://k/x"), Ok("https://k/x")),
            (None, Some("https://k/x"), Ok("https://k/x")),
            (None, None, Err("it has no `base_url`")),
            (Some(""), Some("/free"), Err("it has no `base_url`")),
            (
                Some("nowhere"),
                Some("/free"),
                Err("`nowhere` is no base URL: relative URL without a base"),
            ),
        ] {
            let model = AgentModel {
                provider: "dmr".to_owned(),
                model: "m".to_owned(),
                base_url: base_url.map(str::to_owned),
                unload_api: unload_api.map(str::to_owned),
            };
            let expected = expected.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(url(&model), expected, "{model:?}");
        }
    }
}
