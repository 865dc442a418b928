//! Stores the model's answers, so that the same conversation gets the same answer without a model call.

use futures_util::future::BoxFuture;
use tenterhook_engine::{Call, HandlerError};
use tenterhook_protocol::event::Stop;
use tenterhook_protocol::{AnyEffect, EventKind, Role};

use super::row::{Builtin, EventRunner, takes_none};
use crate::response_cache::ResponseCache;

pub(super) const BUILTIN: Builtin = Builtin {
    name: "cache_response",
    events: &[EventKind::Stop],
    arguments: "none",
    make: |setup| {
        takes_none(setup.arguments)?;
        let dir = setup.services.data_dir.as_deref();
        let dir = dir.ok_or("this program has no data folder")?;
        Ok(Box::new(CacheResponse {
            cache: ResponseCache::new(dir),
        }))
    },
};

struct CacheResponse {
    cache: ResponseCache,
}

impl EventRunner for CacheResponse {
    fn run<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<AnyEffect, HandlerError>> {
        Box::pin(async move {
            let Some(event) = call.event.downcast::<Stop>() else {
                return Ok(AnyEffect::default());
            };
            let agent = &call.event.envelope().origin.agent.name;
            if let Some((last, before)) = event.messages.split_last()
                && last.role == Role::Assistant
            {
                let kept = self.cache.keep(agent, before, &event.response).await;
                kept.map_err(|error| HandlerError::Other {
                    problem: format!("cannot store the answer: {error}"),
                })?;
            }
            Ok(AnyEffect::default())
        })
    }
}
