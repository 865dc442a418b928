//! Asks local model servers to unload the models of the previous agent, so that the next agent's models fit.

use std::time::Duration;

use futures_util::future::{BoxFuture, join_all};
use reqwest::Url;
use serde_json::json;
use tenterhook_engine::event::{AgentModel, AgentSwitch};
use tenterhook_engine::{Call, HandlerError};
use tenterhook_protocol::{AnyEffect, EventKind};

use super::row::{Builtin, EventRunner, takes_none};
use tenterhook_runners::http::{Headers, Target, drain, post};

pub(super) const BUILTIN: Builtin = Builtin {
    name: "unload",
    events: &[EventKind::AgentSwitch],
    arguments: "none",
    make: |setup| {
        takes_none(setup.arguments)?;
        Ok(Box::new(Unload))
    },
};

/// The provider whose servers can unload models: Docker Model Runner.
const PROVIDER: &str = "dmr";
/// How long one request may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum number of bytes of a response that are read.
const DRAINED: usize = 64 << 10;

struct Unload;

impl EventRunner for Unload {
    fn run<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<AnyEffect, HandlerError>> {
        Box::pin(async move {
            let Some(event) = call.event.downcast::<AgentSwitch>() else {
                return Ok(AnyEffect::default());
            };
            if event.from_agent.is_empty() || event.from_agent == event.to_agent {
                return Ok(AnyEffect::default());
            }
            let models = event.from_agent_models.iter();
            let unloading = models
                .filter(|model| model.provider == PROVIDER)
                .map(unload);
            let problems: Vec<String> = join_all(unloading).await.into_iter().flatten().collect();
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

/// Asks one server to unload a model, and returns what went wrong.
async fn unload(model: &AgentModel) -> Option<String> {
    let asking = async {
        let url = url(model)?;
        // Private addresses are fine here: the agent's own configuration names this server, and the agent already calls
        // models there.
        let target = Target::parse(&url, true).map_err(|error| format!("`{url}`: {error}"))?;
        let body = json!({ "model": model.model }).to_string().into_bytes();
        let headers = Headers::default();
        let posted = post(&target, &headers, body).await;
        let posted = posted.map_err(|error| error.to_string())?;
        let drained = drain(posted, &headers, DRAINED).await;
        drained.map_err(|error| error.to_string())
    };
    let asked = tokio::time::timeout(TIMEOUT, asking).await;
    let asked = asked.unwrap_or_else(|_| Err(format!("no answer within {}s", TIMEOUT.as_secs())));
    asked
        .err()
        .map(|problem| format!("model `{}`: {problem}", model.model))
}

/// Returns the URL that unloads a model.
fn url(model: &AgentModel) -> Result<String, String> {
    let given = model.unload_api.as_deref().filter(|url| !url.is_empty());
    if let Some(url) = given.filter(|url| url.contains("://")) {
        return Ok(url.to_owned());
    }
    let base = model.base_url.as_deref().filter(|url| !url.is_empty());
    let base = base.ok_or("expected a `base_url` in its configuration, found none")?;
    let trimmed = base.trim_end_matches('/');
    let trimmed = trimmed.strip_suffix("/v1").unwrap_or(trimmed);
    let Some(path) = given else {
        return Ok(format!("{trimmed}/_unload"));
    };
    let parsed = Url::parse(&format!("{trimmed}/"));
    let joined = parsed.and_then(|base| base.join(path));
    joined
        .map(String::from)
        .map_err(|error| format!("invalid `base_url` `{base}`: {error}"))
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
            (
                None,
                None,
                Err("expected a `base_url` in its configuration, found none"),
            ),
            (
                Some(""),
                Some("/free"),
                Err("expected a `base_url` in its configuration, found none"),
            ),
            (
                Some("nowhere"),
                Some("/free"),
                Err("invalid `base_url` `nowhere`: relative URL without a base"),
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
