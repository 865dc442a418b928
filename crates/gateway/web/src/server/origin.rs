//! Which names and pages the server answers. These checks come before all others, also for files of the page.
//!
//! A page of another site can make a browser send requests to this computer. Its requests have a foreign `Origin`, or,
//! if the site points its own name at this computer, a foreign `Host`.

use std::net::{IpAddr, SocketAddr};

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, Uri, header};
use axum::response::{Html, IntoResponse as _, Response};

use super::http_error::HttpError;

/// The query parameters in which programs put secrets.
const SECRET_PARAMETERS: &[&str] = &["token", "access_token", "api_key", "key", "code", "secret"];

/// What every secret of the gateway begins with.
const TOKEN_PREFIX: &str = "thg_";

/// Where a request comes from, after the checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Caller {
    /// The address of the client. Behind a trusted proxy, the address that the proxy forwards.
    pub(crate) address: IpAddr,
    /// Whether the client reached the server, or a trusted proxy, over TLS.
    pub(crate) is_secure: bool,
    /// Whether a browser says that the request is of a page that may use the server. Only then a cookie counts.
    pub(crate) is_page: bool,
}

/// The names and pages that the server answers.
#[derive(Debug)]
pub(crate) struct AllowedOrigins {
    hosts: Vec<String>,
    origins: Vec<String>,
    proxies: Vec<IpAddr>,
    /// Whether the server itself speaks TLS.
    has_tls: bool,
}

impl AllowedOrigins {
    /// Returns what is allowed for a server on `port`: the names of the loopback with this port, and `hosts`, which
    /// count with this port and as they are.
    pub(crate) fn new(
        hosts: &[String],
        origins: &[String],
        proxies: &[IpAddr],
        port: u16,
        has_tls: bool,
    ) -> Self {
        let mut names: Vec<String> = hosts.iter().map(|host| host.to_ascii_lowercase()).collect();
        let with_port = names.iter().filter(|host| !has_port(host));
        let with_port: Vec<String> = with_port.map(|host| format!("{host}:{port}")).collect();
        names.extend(with_port);
        for host in ["localhost", "127.0.0.1", "[::1]"] {
            names.push(format!("{host}:{port}"));
            if port == if has_tls { 443 } else { 80 } {
                names.push(host.to_owned());
            }
        }
        let lower = |origin: &String| origin.trim_end_matches('/').to_ascii_lowercase();
        Self {
            hosts: names,
            origins: origins.iter().map(lower).collect(),
            proxies: proxies.iter().map(IpAddr::to_canonical).collect(),
            has_tls,
        }
    }

    /// Checks `Host`, `Origin` and the query of a request.
    ///
    /// # Errors
    ///
    /// Fails with 421 for a foreign host, 403 for a foreign origin, and 400 for a secret in the address.
    pub(crate) fn check(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
        peer: IpAddr,
    ) -> Result<Caller, HttpError> {
        let is_proxied = self.proxies.contains(&peer.to_canonical());
        let is_secure = if is_proxied {
            single(headers, &FORWARDED_PROTO) == Ok(Some("https"))
        } else {
            self.has_tls
        };
        let host = self.check_host(uri, headers)?;
        let is_page = match single(headers, &header::ORIGIN) {
            Ok(None) => is_safe(method) && is_same_origin(headers),
            Ok(Some(origin)) if self.allows(origin, &host, is_secure) => true,
            _ => {
                return Err(HttpError::new(
                    StatusCode::FORBIDDEN,
                    "foreign_origin",
                    "pages of this origin may not use the server; `origins` in gateway.yaml can allow it",
                ));
            }
        };
        check_query(uri)?;
        let forwarded = is_proxied.then(|| self.forwarded_address(headers));
        Ok(Caller {
            address: forwarded.flatten().unwrap_or(peer),
            is_secure,
            is_page,
        })
    }

    fn check_host(&self, uri: &Uri, headers: &HeaderMap) -> Result<String, HttpError> {
        let host = single(headers, &header::HOST).ok().flatten();
        let host = host.map(str::to_ascii_lowercase);
        let is_same = |host: &String| {
            uri.authority()
                .is_none_or(|named| named.as_str().eq_ignore_ascii_case(host))
        };
        host.filter(|host| self.hosts.contains(host) && is_same(host))
            .ok_or_else(|| {
                HttpError::new(
                    StatusCode::MISDIRECTED_REQUEST,
                    "unknown_host",
                    "the server has another name; `hosts` in gateway.yaml can add one",
                )
            })
    }

    fn allows(&self, origin: &str, host: &str, is_secure: bool) -> bool {
        let origin = origin.to_ascii_lowercase();
        let scheme = if is_secure { "https" } else { "http" };
        origin == format!("{scheme}://{host}") || self.origins.contains(&origin)
    }

    /// Returns the last address that is not one of our proxies: each proxy appends the address it was reached from.
    fn forwarded_address(&self, headers: &HeaderMap) -> Option<IpAddr> {
        let values = headers.get_all(&FORWARDED_FOR).into_iter();
        let text: Vec<&str> = values.filter_map(|value| value.to_str().ok()).collect();
        let addresses = text.iter().flat_map(|line| line.split(','));
        let addresses: Vec<Option<IpAddr>> = addresses.map(read_address).collect();
        let mut from_last = addresses.into_iter().rev();
        from_last.find(|one| !one.is_some_and(|one| self.proxies.contains(&one)))?
    }
}

const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// Where the inspector is.
const INSPECTOR: &str = "/inspect";

/// Reads an address that a proxy forwards. Some proxies add the port.
fn read_address(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let with_port = || text.parse::<SocketAddr>().ok().map(|both| both.ip());
    let address = text.parse().ok().or_else(with_port);
    address.map(|address: IpAddr| address.to_canonical())
}

/// Returns whether a name has a port. Addresses of IPv6 have colons within brackets.
fn has_port(host: &str) -> bool {
    let after_address = host.rsplit_once(']').map_or(host, |(_, rest)| rest);
    after_address.contains(':')
}

/// Returns whether requests of this method change nothing.
pub(crate) fn is_safe(method: &Method) -> bool {
    *method == Method::GET || *method == Method::HEAD
}

/// Browsers send no `Origin` when a page loads something of its own server; they send this instead.
fn is_same_origin(headers: &HeaderMap) -> bool {
    single(headers, &FETCH_SITE) == Ok(Some("same-origin"))
}

/// Returns whether a page of another server makes a browser open an address of this one. Its link can have a code that signs
/// the browser in as someone else. A link that a person opens in a program, or enters, is not of another page.
pub(super) fn is_link_from_elsewhere(request: &Request) -> bool {
    let headers = request.headers();
    let site = single(headers, &FETCH_SITE);
    let is_of_other_page = matches!(site, Ok(Some("cross-site" | "same-site")) | Err(()));
    is_of_other_page && single(headers, &FETCH_MODE) == Ok(Some("navigate"))
}

/// Asks the person before a page is opened. The link here has no code.
pub(super) fn ask_before_opening(path: &str) -> Response {
    let page = if path.starts_with(INSPECTOR) {
        "/inspect/"
    } else {
        "/"
    };
    Html(format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Tenterhook</title>\
         <p>Another page has led you here. <a href=\"{page}\">Open Tenterhook</a></p>\
         <p>If you were given this link to sign in, copy it into the address bar.</p></html>"
    ))
    .into_response()
}

/// Returns the value of a header that may occur once. The error is a header that occurs twice, or is not text.
fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, ()> {
    let mut values = headers.get_all(name).into_iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| ()),
        (Some(_), Some(_)) => Err(()),
    }
}

/// Addresses end up in logs and histories, so a secret in one is refused even if it is right.
fn check_query(uri: &Uri) -> Result<(), HttpError> {
    let query = uri.query().unwrap_or_default();
    let has_secret = query.split('&').any(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        SECRET_PARAMETERS
            .iter()
            .any(|secret| name.eq_ignore_ascii_case(secret))
            || value.starts_with(TOKEN_PREFIX)
    });
    if has_secret {
        return Err(HttpError::bad_request(
            "secret_in_address",
            "a token does not belong into the address; send it as `Authorization: Bearer TOKEN`",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn check(
        proxies: &[IpAddr],
        method: &Method,
        uri: &str,
        headers: &[(&str, &str)],
    ) -> Result<Caller, u16> {
        let hosts = ["Bot.example".to_owned(), "other.example:444".to_owned()];
        let origins = ["https://ui.example".to_owned()];
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name: HeaderName = name.parse().unwrap();
            map.append(name, value.parse().unwrap());
        }
        AllowedOrigins::new(&hosts, &origins, proxies, 7878, false)
            .check(method, &uri.parse().unwrap(), &map, PEER)
            .map_err(|refusal| refusal.status.as_u16())
    }

    type Row = (
        &'static str,
        &'static [(&'static str, &'static str)],
        Result<bool, u16>,
    );

    const OWN: (&str, &str) = ("host", "127.0.0.1:7878");
    const EVIL: (&str, &str) = ("host", "evil.example");

    /// The path, the headers, and whether the request is of a page, or the status of its refusal.
    const ROWS: &[Row] = &[
        ("/", &[OWN], Ok(false)),
        ("/", &[("host", "localhost:7878")], Ok(false)),
        ("/", &[("host", "LocalHost:7878")], Ok(false)),
        ("/", &[("host", "[::1]:7878")], Ok(false)),
        ("/", &[("host", "bot.example")], Ok(false)),
        ("/", &[("host", "bot.example:7878")], Ok(false)),
        ("/", &[("host", "other.example:444")], Ok(false)),
        ("/", &[("host", "other.example")], Err(421)),
        ("/", &[("host", "evil.example")], Err(421)),
        ("/", &[("host", "evil.example:7878")], Err(421)),
        ("/", &[("host", "localhost")], Err(421)),
        ("/", &[("host", "localhost:80")], Err(421)),
        ("/", &[("host", "localhost.:7878")], Err(421)),
        ("/", &[("host", "")], Err(421)),
        ("/", &[], Err(421)),
        ("/", &[OWN, OWN], Err(421)),
        ("http://evil.example/", &[OWN], Err(421)),
        ("/", &[OWN, ("origin", "http://127.0.0.1:7878")], Ok(true)),
        ("/", &[OWN, ("origin", "https://ui.example")], Ok(true)),
        ("/", &[OWN, ("origin", "http://localhost:7878")], Err(403)),
        ("/", &[OWN, ("origin", "https://127.0.0.1:7878")], Err(403)),
        ("/", &[OWN, ("origin", "http://127.0.0.1")], Err(403)),
        ("/", &[OWN, ("origin", "http://evil.example")], Err(403)),
        ("/", &[OWN, ("origin", "https://ui.example.evil")], Err(403)),
        ("/", &[OWN, ("origin", "null")], Err(403)),
        ("/", &[OWN, ("origin", "")], Err(403)),
        ("/", &[EVIL, ("origin", "null")], Err(421)),
        ("/?token=x", &[OWN, ("origin", "null")], Err(403)),
        ("/?token=x", &[OWN], Err(400)),
        ("/v1/ws?a=1&Access_Token=x", &[OWN], Err(400)),
        ("/?session=thg_abc", &[OWN], Err(400)),
        ("/?before=3&limit=2", &[OWN], Ok(false)),
        ("/", &[OWN, ("sec-fetch-site", "same-origin")], Ok(true)),
        ("/", &[OWN, ("sec-fetch-site", "cross-site")], Ok(false)),
    ];

    // G68, G67
    #[test]
    fn each_request_is_checked_for_host_then_origin_then_query() {
        for (uri, headers, expected) in ROWS {
            let found = check(&[], &Method::GET, uri, headers).map(|caller| caller.is_page);
            assert_eq!(found, *expected, "{uri} {headers:?}");
        }
        let same = [OWN, ("sec-fetch-site", "same-origin")];
        let found = check(&[], &Method::POST, "/", &same).unwrap();
        assert!(
            !found.is_page,
            "a request that changes something needs an origin"
        );
    }

    #[test]
    fn forwarded_headers_count_only_from_trusted_proxies() {
        let headers = [
            ("host", "127.0.0.1:7878"),
            ("x-forwarded-proto", "https"),
            ("x-forwarded-for", "9.9.9.9, 203.0.113.7, 127.0.0.1"),
        ];
        let caller = check(&[], &Method::GET, "/", &headers).unwrap();
        assert_eq!((caller.address, caller.is_secure), (PEER, false));

        let caller = check(&[PEER], &Method::GET, "/", &headers).unwrap();
        assert_eq!(caller.address.to_string(), "203.0.113.7");
        assert!(caller.is_secure);

        for (forwarded, expected) in [
            ("9.9.9.9, 203.0.113.7:4711", "203.0.113.7"),
            ("9.9.9.9, [2001:db8::1]:4711", "2001:db8::1"),
            (
                "9.9.9.9, ::ffff:203.0.113.7, ::ffff:127.0.0.1",
                "203.0.113.7",
            ),
            ("9.9.9.9, unknown", "127.0.0.1"),
        ] {
            let headers = [("host", "127.0.0.1:7878"), ("x-forwarded-for", forwarded)];
            let caller = check(&[PEER], &Method::GET, "/", &headers).unwrap();
            assert_eq!(caller.address.to_string(), expected, "{forwarded}");
        }
    }
}
