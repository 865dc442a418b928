//! Shows hooks what the client library sends and receives, which the library itself does not offer.
//!
//! The library does not expose the requests that it builds or the headers of responses. To observe a call, the library
//! is pointed at a relay on a local port. The relay shows the request, sends it to the service with this crate's own
//! client, shows the response, and passes its body on as it arrives.
//!
//! The port is on the loopback interface, is open for this call only, and requires a secret path. Otherwise any program
//! on the machine could send requests through it. The relay itself has no key; the key is in the library's request.

use std::convert::Infallible;
use std::sync::Arc;
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
use parking_lot::Mutex;
use reqwest::Url;
use serde_json::Value;
use tenterhook_protocol::{JsonObject, SessionId};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;

use crate::error::{ProviderError, ProviderErrorKind};
use crate::exchange::ProviderExchange;

/// The maximum number of simultaneous connections. The library opens one.
const MAX_CONNECTIONS: usize = 4;

/// How long a connection may take to send its request. The library sends it at once. Other programs that connect must
/// not occupy a connection for long.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Headers that are credentials or may echo them.
const CREDENTIALS: [HeaderName; 7] = [
    AUTHORIZATION,
    COOKIE,
    PROXY_AUTHORIZATION,
    SET_COOKIE,
    HeaderName::from_static("set-cookie2"),
    HeaderName::from_static("x-api-key"),
    HeaderName::from_static("x-goog-api-key"),
];

/// Headers of a single connection, which are not passed on.
const OF_CONNECTION: [HeaderName; 4] = [CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING];

type Body = UnsyncBoxBody<Bytes, reqwest::Error>;

/// A relay for one call. Dropping it closes the port.
pub(crate) struct Relay {
    /// The base URL that the library uses instead of the service's.
    pub(crate) base_url: String,
    /// The error that kept the request from reaching the service, if any.
    failure: Failure,
    _serving: AbortOnDropHandle<Infallible>,
}

/// The error between relay and service. The library itself only sees a broken connection.
#[derive(Clone, Default)]
struct Failure(Arc<Mutex<Option<ProviderError>>>);

impl Failure {
    fn set(&self, error: ProviderError) {
        *self.0.lock() = Some(error);
    }

    fn take(&self) -> Option<ProviderError> {
        self.0.lock().take()
    }
}

/// The destination of a call, and its observer.
#[derive(Clone)]
pub(crate) struct Route {
    pub(crate) http: reqwest::Client,
    /// The base URL of the service, ending with a slash.
    pub(crate) service: Url,
    pub(crate) exchange: ProviderExchange,
    /// How long the service may take to start its answer.
    pub(crate) header_timeout: Duration,
    /// Converts an error of the HTTP client.
    pub(crate) tell: fn(&reqwest::Error) -> ProviderError,
}

impl Relay {
    /// Opens a relay for one call.
    pub(crate) async fn open(route: Route) -> Result<Self, ProviderError> {
        let refused = |error: std::io::Error| {
            let message = format!("cannot pass the request to hooks: {error}");
            ProviderError::new(ProviderErrorKind::Unavailable, message)
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

    /// Takes the error that kept the request from the service, or the response from the library.
    pub(crate) fn take_failure(&self) -> Option<ProviderError> {
        self.failure.take()
    }
}

async fn serve(listener: TcpListener, call: Arc<Call>) -> Infallible {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if connections.len() < MAX_CONNECTIONS => {
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
        // Errors here are already recorded in `failure`, or the library closed the connection.
        connection.await.unwrap_or_default();
    }

    /// Forwards a request. An error breaks the connection.
    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Body>, ProviderError> {
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
    ) -> Result<Response<Body>, ProviderError> {
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

    /// Returns the body that hooks want to send instead, if any. If hooks cannot see the body, the request fails,
    /// because one of them may be there to remove secrets from it.
    async fn replace(&self, body: &Bytes) -> Result<Option<Bytes>, ProviderError> {
        if !self.route.exchange.sees_payload() || body.is_empty() {
            return Ok(None);
        }
        let payload: Value = serde_json::from_slice(body).map_err(|error| {
            let message =
                format!("cannot pass the request to hooks: its body is not JSON: {error}");
            ProviderError::new(ProviderErrorKind::Refused, message)
        })?;
        let replaced = self.route.exchange.request(payload).await?;
        Ok(replaced.map(|replaced| replaced.to_string().into()))
    }
}

fn broken(message: &str) -> ProviderError {
    ProviderError::new(ProviderErrorKind::Broken, message)
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

/// Returns headers in the form that hooks see, without credentials.
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

/// Passes a body on as it arrives.
fn body_of(
    response: reqwest::Response,
    failure: Failure,
    tell: fn(&reqwest::Error) -> ProviderError,
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

    use super::*;
    use crate::http_client::http_client;

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

    // With paused time and nothing else to do, the timeout passes immediately.
    #[tokio::test(start_paused = true)]
    async fn who_connects_and_says_nothing_keeps_nobody_out() {
        let service = Url::parse("http://127.0.0.1:1/").unwrap();
        let (exchange, _hearing) = ProviderExchange::new(false);
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
        for _ in 0..MAX_CONNECTIONS {
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
