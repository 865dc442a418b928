//! Shows what the client library sends and gets, which it does not do itself.
//!
//! The library keeps the request that it builds and the head of the response to itself. A call that somebody wants to
//! see goes to a port of this process instead, that of one relay: it shows the request, sends it to the service with
//! this crate's own client, shows the response, and hands its body through as it arrives.
//!
//! The port is on loopback, is open for this call only, and answers no one who does not know its secret path. Without
//! that anyone on the machine could have requests sent; there is no key in it, that is in the library's request.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Empty, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, COOKIE, HOST, HeaderMap, HeaderName,
    PROXY_AUTHORIZATION, SET_COOKIE, TRANSFER_ENCODING,
};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use reqwest::Url;
use serde_json::Value;
use tenterhook_protocol::{JsonObject, SessionId};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;

use super::exchange::Exchange;
use super::{ModelError, ModelErrorKind};

/// The most connections at a time. The library makes one.
const MOST_CONNECTIONS: usize = 4;

/// How long a connection may take to say what it wants. The library says it at once; others must not keep its place.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Headers that are credentials, or repeat those of the request.
const CREDENTIALS: [HeaderName; 7] = [
    AUTHORIZATION,
    COOKIE,
    PROXY_AUTHORIZATION,
    SET_COOKIE,
    HeaderName::from_static("set-cookie2"),
    HeaderName::from_static("x-api-key"),
    HeaderName::from_static("x-goog-api-key"),
];

/// Headers that belong to one connection, not to the message.
const OF_CONNECTION: [HeaderName; 4] = [CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING];

type Body = UnsyncBoxBody<Bytes, reqwest::Error>;

/// A relay of one call. It ends when it is dropped.
pub(super) struct Relay {
    /// What the library takes for the service's base URL.
    pub(super) base_url: String,
    /// Why the request did not reach the service.
    failure: Failure,
    _serving: AbortOnDropHandle<Infallible>,
}

/// What went wrong on the way to the service: the library only sees that its connection broke.
#[derive(Clone, Default)]
struct Failure(Arc<Mutex<Option<ModelError>>>);

impl Failure {
    fn set(&self, error: ModelError) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }

    fn take(&self) -> Option<ModelError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Where a call goes, and who hears of it.
#[derive(Clone)]
pub(super) struct Route {
    pub(super) http: reqwest::Client,
    /// The base URL of the service, with a slash at its end.
    pub(super) service: Url,
    pub(super) exchange: Exchange,
    /// How long the service may take to begin its answer.
    pub(super) header_timeout: Duration,
    /// How a failure of the HTTP client is told.
    pub(super) tell: fn(&reqwest::Error) -> ModelError,
}

impl Relay {
    /// Opens a relay for one call.
    pub(super) async fn open(route: Route) -> Result<Self, ModelError> {
        let refused = |error: std::io::Error| {
            let message = format!("cannot show hooks the request: {error}");
            ModelError::new(ModelErrorKind::Unavailable, message)
        };
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let prefix = format!("/{}/", SessionId::generate());
        let failure = Failure::default();
        let call = Arc::new(Call {
            base_url: format!("http://{address}{prefix}"),
            prefix,
            route,
            failure: failure.clone(),
        });
        Ok(Self {
            base_url: call.base_url.clone(),
            failure,
            _serving: AbortOnDropHandle::new(tokio::spawn(serve(listener, call))),
        })
    }

    /// Returns why the request did not reach the service, or the response not the library, once.
    pub(super) fn take_failure(&self) -> Option<ModelError> {
        self.failure.take()
    }
}

async fn serve(listener: TcpListener, call: Arc<Call>) -> Infallible {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if connections.len() < MOST_CONNECTIONS => {
                if let Ok((connection, _)) = accepted {
                    connections.spawn(Arc::clone(&call).lead(connection));
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

struct Call {
    base_url: String,
    prefix: String,
    route: Route,
    failure: Failure,
}

impl Call {
    async fn lead(self: Arc<Self>, connection: TcpStream) {
        let service = service_fn(|request| self.answer(request));
        let connection = hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(REQUEST_TIMEOUT)
            .keep_alive(false)
            .serve_connection(TokioIo::new(connection), service);
        // What ends a connection early is in `failure`, or the library went away.
        connection.await.unwrap_or_default();
    }

    /// Passes a request on. An error breaks the connection.
    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Body>, ModelError> {
        let path = request.uri().path_and_query();
        let path = path.map_or("", |path| path.as_str());
        let Some(path) = path.strip_prefix(&self.prefix) else {
            return Ok(not_found());
        };
        let url = format!("{}{path}", self.route.service);
        let passed = self.pass(&url, request).await;
        passed.inspect_err(|error| self.failure.set(error.clone()))
    }

    async fn pass(
        &self,
        url: &str,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, ModelError> {
        let (head, body) = request.into_parts();
        let body = body.collect().await;
        let body = body.map_err(|error| broken(&error.to_string()))?.to_bytes();
        let sent = self.replace(&body).await?.unwrap_or(body);
        let sending = self
            .route
            .http
            .request(head.method, url)
            .headers(of_message(head.headers))
            .body(sent)
            .send();
        let response = tokio::time::timeout(self.route.header_timeout, sending).await;
        let response = response
            .map_err(|_| broken("model response headers timed out"))?
            .map_err(|error| (self.route.tell)(&error))?;
        let status = response.status();
        let headers = of_message(response.headers().clone());
        let exchange = &self.route.exchange;
        exchange.response(status.as_u16(), shown(&headers)).await;
        let mut answer = Response::new(body_of(response, self.failure.clone(), self.route.tell));
        *answer.status_mut() = status;
        *answer.headers_mut() = headers;
        Ok(answer)
    }

    /// Returns the body with which hooks replaced the library's. A body that hooks cannot see is not sent: one of
    /// them may be there to take secrets out of it.
    async fn replace(&self, body: &Bytes) -> Result<Option<Bytes>, ModelError> {
        if !self.route.exchange.sees_payload() || body.is_empty() {
            return Ok(None);
        }
        let payload: Value = serde_json::from_slice(body).map_err(|error| {
            let message = format!("cannot show hooks the request: its body is not JSON: {error}");
            ModelError::new(ModelErrorKind::Refused, message)
        })?;
        let replaced = self.route.exchange.request(payload).await?;
        Ok(replaced.map(|replaced| replaced.to_string().into()))
    }
}

fn broken(message: &str) -> ModelError {
    ModelError::new(ModelErrorKind::Broken, message)
}

fn not_found() -> Response<Body> {
    let nothing = Empty::new().map_err(|never: Infallible| match never {});
    let mut response = Response::new(nothing.boxed_unsync());
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
}

fn of_message(mut headers: HeaderMap) -> HeaderMap {
    for name in OF_CONNECTION {
        headers.remove(name);
    }
    headers
}

/// Returns headers as hooks see them.
fn shown(headers: &HeaderMap) -> JsonObject {
    let mut shown = JsonObject::new();
    for name in headers.keys().filter(|name| !CREDENTIALS.contains(name)) {
        let values = headers.get_all(name).iter();
        let values: Vec<_> = values
            .map(|value| String::from_utf8_lossy(value.as_bytes()))
            .collect();
        shown.insert(name.as_str().to_owned(), values.join(", ").into());
    }
    shown
}

/// Hands a body through as it arrives.
fn body_of(
    response: reqwest::Response,
    failure: Failure,
    tell: fn(&reqwest::Error) -> ModelError,
) -> Body {
    let frames = stream::unfold(Some((response, failure)), move |state| async move {
        let (mut response, failure) = state?;
        match response.chunk().await {
            Ok(Some(bytes)) => Some((Ok(Frame::data(bytes)), Some((response, failure)))),
            Ok(None) => None,
            Err(error) => {
                failure.set(tell(&error));
                Some((Err(error), None))
            }
        }
    });
    StreamBody::new(frames).boxed_unsync()
}

#[cfg(test)]
mod tests {
    use hyper::header::{CONTENT_TYPE, HeaderValue};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::super::remote::http_client;
    use super::*;

    #[test]
    fn hooks_see_no_credentials() {
        let mut headers = HeaderMap::new();
        for name in CREDENTIALS {
            headers.insert(name, HeaderValue::from_static("canary"));
        }
        headers.append(CONTENT_TYPE, HeaderValue::from_static("a"));
        headers.append(CONTENT_TYPE, HeaderValue::from_static("b"));
        let shown = shown(&headers);
        assert_eq!(
            Value::from(shown),
            serde_json::json!({ "content-type": "a, b" })
        );
    }

    // Nothing else happens meanwhile, so the time passes at once.
    #[tokio::test(start_paused = true)]
    async fn who_connects_and_says_nothing_keeps_nobody_out() {
        let service = Url::parse("http://127.0.0.1:1/").unwrap();
        let (exchange, _hearing) = Exchange::new(false);
        let relay = Relay::open(Route {
            http: http_client(&service).unwrap(),
            service,
            exchange,
            header_timeout: REQUEST_TIMEOUT,
            tell: |error| broken(&error.to_string()),
        });
        let relay = relay.await.unwrap();
        let url = Url::parse(&relay.base_url).unwrap();
        let address = ("127.0.0.1", url.port().unwrap());
        let mut silent = Vec::new();
        for _ in 0..MOST_CONNECTIONS {
            silent.push(TcpStream::connect(address).await.unwrap());
        }
        let mut caller = TcpStream::connect(address).await.unwrap();
        let request = b"POST /other/ HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n";
        caller.write_all(request).await.unwrap();
        let mut answer = String::new();
        let read = tokio::time::timeout(2 * REQUEST_TIMEOUT, caller.read_to_string(&mut answer));
        read.await.unwrap().unwrap();
        assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
    }
}
