//! Reads values that several keys of the settings have: durations, ids, addresses, secrets.

use std::ops::RangeInclusive;
use std::time::Duration;

use tenterhook_hookfile::fields::{Fields, Text, wrong};
use tenterhook_hookfile::tree::Node;
use tenterhook_hookfile::{Problem, Report, Severity, Span, shorten};
use url::Url;

use crate::chat::MAX_FOREIGN_ID;
use crate::settings::SecretSource;

/// Keys of other programs under which people write a secret itself.
pub(crate) const INLINE_SECRETS: [&str; 6] =
    ["token", "bot_token", "secret", "key", "api_key", "password"];

/// Reads a duration: a number of seconds, or a number with one of the units `ms`, `s`, `m` and `h`.
pub(crate) fn duration(
    report: &mut Report,
    fields: &Fields<'_>,
    key: &str,
    allowed: RangeInclusive<Duration>,
) -> Option<Duration> {
    let node = &fields.entry(key)?.value;
    let found = match node.as_number() {
        Some(number) => Duration::try_from_secs_f64(number.float).ok(),
        None => node.as_text().and_then(parse_duration),
    };
    let found = found.filter(|duration| allowed.contains(duration));
    if found.is_none() {
        let (least, most) = (written(*allowed.start()), written(*allowed.end()));
        let expected =
            format!("a number with a unit (`500ms`, `2s`, `1m`, `1h`) from `{least}` to `{most}`");
        return wrong(report, key, node, &expected);
    }
    found
}

fn parse_duration(text: &str) -> Option<Duration> {
    let at = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at_checked(at)?;
    let number: f64 = number
        .parse()
        .ok()
        .filter(|_| number.starts_with(|c: char| c.is_ascii_digit()))?;
    let seconds = match unit {
        "ms" => number / 1000.0,
        "s" => number,
        "m" => number * 60.0,
        "h" => number * 3600.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(seconds).ok()
}

fn written(duration: Duration) -> String {
    match duration.as_secs() {
        seconds if seconds > 0 && seconds.is_multiple_of(3600) => format!("{}h", seconds / 3600),
        seconds if seconds > 0 && seconds.is_multiple_of(60) => format!("{}m", seconds / 60),
        seconds => format!("{seconds}s"),
    }
}

/// Reads a list of strings, and reports those that `check` refuses with what is allowed instead.
pub(crate) fn checked_list(
    report: &mut Report,
    fields: &Fields<'_>,
    key: &str,
    check: impl Fn(&str) -> Result<(), String>,
) -> Option<Vec<String>> {
    let texts = fields.texts(report, key)?;
    let items: &[Node] = fields.entry(key)?.value.as_list()?;
    for (text, item) in texts.iter().zip(items) {
        if let Err(allowed) = check(text) {
            let message = format!("an item of `{key}` cannot be `{}`", shorten(text));
            report.add(report.problem(item.span, message).allowed(allowed));
        }
    }
    Some(texts)
}

/// Returns what is allowed in a list of ids, if `id` is not. `*` never means everyone.
pub(crate) fn check_id(id: &str) -> Result<(), String> {
    if id == "*" {
        return Err(
            "ids, each compared exactly; `*` is allowed only in `members` with `dm: open`"
                .to_owned(),
        );
    }
    if id.is_empty() || id.len() > MAX_FOREIGN_ID || id.trim() != id {
        return Err(format!(
            "an id of 1 to {MAX_FOREIGN_ID} bytes without spaces around it"
        ));
    }
    Ok(())
}

/// Reads a list of ids.
pub(crate) fn ids(report: &mut Report, fields: &Fields<'_>, key: &str) -> Option<Vec<String>> {
    checked_list(report, fields, key, check_id)
}

/// Returns what is allowed as a name of the server, if `host` is not.
pub(crate) fn check_host(host: &str) -> Result<(), String> {
    let is_exact = |scheme: &str| {
        let url = format!("{scheme}://{host}");
        Url::parse(&url).is_ok_and(|parsed| parsed.origin().ascii_serialization() == url)
    };
    if !host.contains('*') && (is_exact("http") || is_exact("https")) {
        return Ok(());
    }
    Err("`HOST` or `HOST:PORT` in lower case, without a scheme and a path".to_owned())
}

/// Returns what is allowed as the name of an environment variable, if `name` is not.
pub(crate) fn check_variable(name: &str) -> Result<(), String> {
    let is_name = name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if is_name && !name.is_empty() {
        return Ok(());
    }
    Err("the name of an environment variable, such as `OPENAI_API_KEY`".to_owned())
}

/// Returns what is allowed as an origin, if `origin` is not.
pub(crate) fn check_origin(origin: &str) -> Result<(), String> {
    let parsed = Url::parse(origin).ok();
    let is_exact = parsed.is_some_and(|url| {
        ["http", "https"].contains(&url.scheme()) && url.origin().ascii_serialization() == origin
    });
    if is_exact && !origin.contains('*') {
        return Ok(());
    }
    Err("`https://HOST` or `https://HOST:PORT`, without a path and a final slash".to_owned())
}

/// Reads the address of a service: `https`, or `http` on the loopback. Returns it without a slash at its end.
pub(crate) fn base_url(report: &mut Report, fields: &Fields<'_>, key: &str) -> Option<String> {
    let text = fields.full_text(report, key)?;
    let parsed = Url::parse(text.text).ok();
    let is_valid = parsed.is_some_and(|url| {
        let host = url.host_str().unwrap_or_default();
        let address = host.trim_matches(['[', ']']).parse();
        let is_local =
            host == "localhost" || address.is_ok_and(|ip: std::net::IpAddr| ip.is_loopback());
        let has_extras = !url.username().is_empty()
            || url.password().is_some()
            || url.query().is_some()
            || url.fragment().is_some();
        !has_extras && (url.scheme() == "https" || (url.scheme() == "http" && is_local))
    });
    if is_valid {
        return Some(text.text.trim_end_matches('/').to_owned());
    }
    // The address could contain a password.
    hidden(
        report,
        text.span,
        &format!("the value of `{key}` is not a valid address"),
        "an address that begins with `https://`, or with `http://` on the loopback, without a query",
    );
    None
}

/// Reads the name of a header, in lower case.
pub(crate) fn header_name(report: &mut Report, fields: &Fields<'_>, key: &str) -> Option<String> {
    let Text { text, span } = fields.full_text(report, key)?;
    if http::HeaderName::from_bytes(text.as_bytes()).is_ok() {
        return Some(text.to_ascii_lowercase());
    }
    let message = format!("`{key}` cannot be `{}`", shorten(text));
    report.add(
        report
            .problem(span, message)
            .allowed("the name of a header"),
    );
    None
}

/// Reads where a secret is: `NAME_env` or `NAME_file`.
pub(crate) fn secret_source(
    report: &mut Report,
    fields: &Fields<'_>,
    name: &str,
) -> Option<SecretSource> {
    let (env, file) = (format!("{name}_env"), format!("{name}_file"));
    let expected = format!("either `{env}` or `{file}`");
    match (fields.entry(&env), fields.entry(&file)) {
        (Some(_), Some(second)) => {
            let message = format!("`{file}` cannot be combined with `{env}`");
            report.add(report.problem(second.key_span, message).allowed(expected));
            None
        }
        (Some(_), None) => variable(report, fields, &env),
        (None, Some(_)) => {
            let path = fields.full_text(report, &file)?.text;
            let folder = report
                .source()
                .path()
                .parent()
                .unwrap_or_else(|| "".as_ref());
            Some(SecretSource::File(folder.join(path)))
        }
        (None, None) => {
            if !INLINE_SECRETS.iter().any(|key| fields.has(key)) {
                let message = format!("the channel has no `{env}`");
                report.add(report.problem(fields.span, message).allowed(expected));
            }
            None
        }
    }
}

/// Reads the name of an environment variable.
pub(crate) fn variable(
    report: &mut Report,
    fields: &Fields<'_>,
    key: &str,
) -> Option<SecretSource> {
    let text = fields.full_text(report, key)?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if text.text.chars().all(is_name) && !text.text.starts_with(|c: char| c.is_ascii_digit()) {
        return Some(SecretSource::Environment(text.text.to_owned()));
    }
    // It may be the secret itself.
    hidden(
        report,
        text.span,
        &format!("the value of `{key}` is not the name of an environment variable"),
        "letters, digits and `_`; the secret itself belongs into the variable",
    );
    None
}

/// Reports secrets that are written directly, without showing them.
pub(crate) fn refuse_inline_secrets(report: &mut Report, fields: &Fields<'_>, allowed: &str) {
    for key in INLINE_SECRETS {
        if let Some(entry) = fields.entry(key) {
            hidden(
                report,
                entry.key_span,
                &format!("`{key}`: a secret cannot be written into the settings"),
                allowed,
            );
        }
    }
}

/// Reports a problem with the number of its line but without the line itself, which may show a secret.
pub(crate) fn hidden(report: &mut Report, span: Span, message: &str, allowed: &str) {
    let line = report.source().line_of(span.start);
    let message = format!("line {line}: {message}");
    let problem = Problem::new(Severity::Error, report.source(), None, message);
    report.add(problem.allowed(allowed));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_a_number_and_a_unit() {
        for (text, expected) in [
            ("500ms", Some(500)),
            ("1.5s", Some(1500)),
            ("2m", Some(120_000)),
            ("1h", Some(3_600_000)),
            ("1d", None),
            ("-1s", None),
            ("infs", None),
            ("s", None),
            ("10", None),
            ("", None),
        ] {
            assert_eq!(
                parse_duration(text),
                expected.map(Duration::from_millis),
                "{text}"
            );
        }
        let texts = [0, 1, 90, 600, 86400].map(|seconds| written(Duration::from_secs(seconds)));
        assert_eq!(texts, ["0s", "1s", "90s", "10m", "24h"]);
    }

    #[test]
    fn hosts_and_origins_are_written_as_browsers_send_them() {
        for host in [
            "chat.example.org",
            "box",
            "box:8080",
            "[fd00::1]:80",
            "10.0.0.1",
            "box:80",
            "box:443",
        ] {
            assert_eq!(check_host(host), Ok(()), "{host}");
        }
        for host in [
            "",
            "*",
            "*.example.org",
            "http://box",
            "box/",
            "Box",
            "a@box",
            "box:x",
            "a b",
        ] {
            assert!(check_host(host).is_err(), "{host}");
        }
        for origin in [
            "https://chat.example.org",
            "http://box:8080",
            "http://[::1]",
        ] {
            assert_eq!(check_origin(origin), Ok(()), "{origin}");
        }
        for origin in [
            "",
            "*",
            "null",
            "https://box/",
            "https://box:443",
            "HTTPS://box",
            "ftp://box",
            "box",
            "https://*",
        ] {
            assert!(check_origin(origin).is_err(), "{origin}");
        }
    }
}
