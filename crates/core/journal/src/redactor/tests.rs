use proptest::prelude::*;
use serde_json::json;

use super::*;

/// Assembles a secret, so that no file of the repository contains one.
fn fake(parts: &[&str]) -> String {
    parts.concat()
}

fn letters(count: usize) -> String {
    "q7Zk2WvR9xT4bN6mJ1cH8dL5sP3fG0yAuEoIqB7nXr"
        .chars()
        .cycle()
        .take(count)
        .collect()
}

fn lower(count: usize) -> String {
    letters(count).to_ascii_lowercase()
}

fn upper(count: usize) -> String {
    "Q7ZK2WVR4XT6BN5MJ3CHDLSPFGYAUEOI"
        .chars()
        .cycle()
        .take(count)
        .collect()
}

fn hex(count: usize) -> String {
    "7f3a9c1e5b2d8064f9e1a3c5b7d20648"
        .chars()
        .cycle()
        .take(count)
        .collect()
}

fn digits(count: usize) -> String {
    "8042917365".chars().cycle().take(count).collect()
}

/// Texts with a secret, the secret, and the rule that finds it.
#[expect(clippy::too_many_lines, reason = "it is a table")]
fn kinds() -> Vec<(&'static str, String, String)> {
    let line = |rule, before: &str, secret: String| (rule, format!("{before}{secret}"), secret);
    let key = |kind: &str| {
        format!(
            "-----BEGIN {kind}-----\n{}\n{}\n-----END {kind}-----",
            letters(64),
            letters(64)
        )
    };
    vec![
        line("github-pat", "token ", fake(&["gh", "p_", &letters(36)])),
        line("github-oauth", "token ", fake(&["gh", "o_", &letters(36)])),
        line("github-app-token", "x ", fake(&["gh", "s_", &letters(36)])),
        line(
            "github-refresh-token",
            "x ",
            fake(&["gh", "r_", &letters(36)]),
        ),
        line(
            "github-fine-grained-pat",
            "x ",
            fake(&["github", "_pat_", &letters(82)]),
        ),
        line("gitlab-pat", "x ", fake(&["gl", "pat-", &letters(20)])),
        line(
            "gitlab-runner-authentication-token",
            "x ",
            fake(&["gl", "rt-", &letters(20)]),
        ),
        line(
            "gitlab-deploy-token",
            "x ",
            fake(&["gl", "dt-", &letters(20)]),
        ),
        line("aws-access-token", "x ", fake(&["AK", "IA", &upper(16)])),
        line("gcp-api-key", "x ", fake(&["AI", "za", &letters(35)])),
        line(
            "slack-bot-token",
            "x ",
            fake(&[
                "xo",
                "xb-",
                &digits(12),
                "-",
                &digits(12),
                "-",
                &letters(24),
            ]),
        ),
        line(
            "slack-user-token",
            "x ",
            fake(&[
                "xo",
                "xp-",
                &digits(12),
                "-",
                &digits(12),
                "-",
                &digits(12),
                "-",
                &hex(32),
            ]),
        ),
        line(
            "stripe-access-token",
            "x ",
            fake(&["sk", "_live_", &letters(24)]),
        ),
        line("sendgrid-api-token", "x ", fake(&["SG", ".", &lower(66)])),
        line("npm-access-token", "x ", fake(&["np", "m_", &lower(36)])),
        line(
            "pypi-upload-token",
            "x ",
            fake(&["pypi", "-AgEIcHlwaS5vcmc", &letters(60)]),
        ),
        line(
            "rubygems-api-token",
            "x ",
            fake(&["rubygems", "_", &hex(48)]),
        ),
        line(
            "hashicorp-tf-api-token",
            "x ",
            fake(&[&lower(14), ".atlas", "v1.", &lower(64)]),
        ),
        line(
            "vault-batch-token",
            "x ",
            fake(&["hv", "b.", &letters(140)]),
        ),
        line("digitalocean-pat", "x ", fake(&["do", "p_v1_", &hex(64)])),
        line(
            "digitalocean-access-token",
            "x ",
            fake(&["do", "o_v1_", &hex(64)]),
        ),
        line("databricks-api-token", "x ", fake(&["da", "pi", &hex(32)])),
        line(
            "doppler-api-token",
            "x ",
            fake(&["dp", ".pt.", &letters(43)]),
        ),
        line(
            "linear-api-key",
            "x ",
            fake(&["lin", "_api_", &letters(40)]),
        ),
        line(
            "postman-api-token",
            "x ",
            fake(&["PM", "AK-", &hex(24), "-", &hex(34)]),
        ),
        line("pulumi-api-token", "x ", fake(&["pu", "l-", &hex(40)])),
        line(
            "shopify-access-token",
            "x ",
            fake(&["shp", "at_", &hex(32)]),
        ),
        line(
            "shopify-shared-secret",
            "x ",
            fake(&["shp", "ss_", &hex(32)]),
        ),
        line(
            "huggingface-access-token",
            "x ",
            fake(&["h", "f_", "qwErtYuIoPasDfGhjKlzXcVbnMqWeRtyUi"]),
        ),
        line(
            "telegram-bot-api-token",
            "telegram bot = ",
            fake(&[&digits(10), ":A", &letters(34)]),
        ),
        line(
            "anthropic-api-key",
            "x ",
            fake(&["sk-", "ant-api03-", &letters(93), "AA"]),
        ),
        line(
            "openai-api-key",
            "x ",
            fake(&["sk-", "proj-", &letters(74), "T3Blbk", "FJ", &letters(74)]),
        ),
        line(
            "age-secret-key",
            "x ",
            fake(&[
                "AGE-SECRET",
                "-KEY-1",
                "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7LQPZRY9X8GF2TVDW0S3JN54KHCE",
            ]),
        ),
        line(
            "dynatrace-api-token",
            "x ",
            fake(&["dt0", "c01.", &lower(24), ".", &lower(64)]),
        ),
        line(
            "grafana-service-account-token",
            "x ",
            fake(&["gl", "sa_", &letters(32), "_", &hex(8)]),
        ),
        line(
            "new-relic-user-api-key",
            "new_relic = ",
            fake(&["NR", "AK-", &lower(27)]),
        ),
        line(
            "planetscale-password",
            "x ",
            fake(&["pscale", "_pw_", &letters(40)]),
        ),
        line(
            "docker-personal-access-token",
            "docker login -p ",
            fake(&["dckr", "_pat_", &letters(27)]),
        ),
        line(
            "docker-organization-access-token",
            "x ",
            fake(&["dckr", "_oat_", &letters(32)]),
        ),
        line("prefect-api-token", "x ", fake(&["pn", "u_", &lower(36)])),
        line("readme-api-token", "x ", fake(&["rd", "me_", &lower(70)])),
        line("sentry-user-token", "x ", fake(&["sn", "tryu_", &hex(64)])),
        line(
            "jwt",
            "x ",
            fake(&[
                "ey",
                "JhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9",
                ".ey",
                "JzdWIiOiIxMjM0NTY3ODkwIn0",
                ".",
                &letters(43),
            ]),
        ),
        (
            "private-key",
            key(&fake(&["RSA PRIVATE", " KEY"])),
            letters(64),
        ),
        (
            "private-key",
            key(&fake(&["OPENSSH PRIVATE", " KEY"])),
            letters(64),
        ),
        line(
            "generic-api-key",
            "password: ",
            fake(&["x9", "Kq2vR7", "tB4mW8zL1"]),
        ),
        line("generic-api-key", "export API_TOKEN=", letters(32)),
        line(
            "curl-auth-header",
            "curl -H \"Authorization: Bearer ",
            letters(32) + "\" https://example.org/",
        ),
    ]
}

#[test]
fn secrets_of_every_kind_are_taken_out_whole() {
    let kinds = kinds();
    let mut rules = BTreeSet::new();
    let mut missed = Vec::new();
    for (rule, text, secret) in &kinds {
        let redacted = Redactor::shared().redact(text);
        let found: Vec<&str> = Redactor::shared()
            .find(text)
            .iter()
            .map(|secret| secret.rule)
            .collect();
        let secret = secret.split('"').next().unwrap();
        if redacted.contains(secret) || !found.contains(rule) {
            missed.push((rule, found, redacted.into_owned()));
        }
        rules.insert(rule);
    }
    assert!(missed.is_empty(), "{missed:#?}");
    assert!(rules.len() >= 40, "{}", rules.len());
}

#[test]
fn what_stands_around_a_secret_stays() {
    let token = fake(&["gh", "p_", &letters(36)]);
    let text = format!("é before {token} behind\n{token}\nend ü");
    let expected = "é before [REDACTED:github-pat] behind\n[REDACTED:github-pat]\nend ü";
    assert_eq!(Redactor::shared().redact(&text), expected);
}

#[test]
fn ordinary_text_is_left_alone() {
    let ordinary = include_str!("ordinary.txt");
    let texts: Vec<&str> = ordinary.lines().filter(|line| !line.is_empty()).collect();
    assert!(texts.len() >= 200, "{}", texts.len());
    let alarms: Vec<_> = texts
        .iter()
        .map(|text| (text, Redactor::shared().find(text)))
        .filter(|(_, found)| !found.is_empty())
        .collect();
    assert!(alarms.is_empty(), "{alarms:#?}");
    // As one file, where no line may make another look like a secret.
    assert_eq!(Redactor::shared().find(ordinary), []);
}

#[test]
fn a_field_is_read_with_its_name() {
    let secret = fake(&["x9", "Kq2vR7", "tB4mW8zL1"]);
    let mut value = json!({
        "user": "ada",
        "password": secret,
        "nested": [{"api_key": secret, "count": 3}],
        "plain": secret,
    });
    assert!(Redactor::shared().redact_value(&mut value));
    let expected = json!({
        "user": "ada",
        "password": "[REDACTED:generic-api-key]",
        "nested": [{"api_key": "[REDACTED:generic-api-key]", "count": 3}],
        "plain": secret,
    });
    assert_eq!(value, expected);
    assert!(!Redactor::shared().redact_value(&mut json!({"password": "short", "n": null})));
}

#[test]
fn the_name_of_a_field_is_redacted_and_no_field_is_lost() {
    let token = fake(&["gh", "p_", &letters(36)]);
    let other = fake(&[
        "gh",
        "p_",
        &letters(36).to_ascii_uppercase().replace('Q', "z"),
    ]);
    let mut value = json!({"list": [{&token: 1, &other: 2, "plain": 3}]});
    assert!(Redactor::shared().redact_value(&mut value));
    let expected =
        json!({"list": [{"[REDACTED:github-pat]": 1, "[REDACTED:github-pat]_": 2, "plain": 3}]});
    assert_eq!(value, expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_was_redacted_once_stays_as_it_is(
        kind in 0..40_usize, before in "[ -~é]{0,20}", behind in "[ -~é\n]{0,20}",
    ) {
        let kinds = kinds();
        let text = format!("{before} {} {behind}", kinds[kind].1);
        let once = Redactor::shared().redact(&text).into_owned();
        prop_assert_eq!(Redactor::shared().redact(&once), once.as_str());
    }

    #[test]
    fn any_text_is_answered(text in "\\PC{0,200}") {
        let redacted = Redactor::shared().redact(&text);
        prop_assert!(redacted.len() <= text.len() * 40 + 40);
    }
}

// A journal searches its records as JSON before it looks at single texts.
#[test]
fn no_keyword_is_written_in_another_way_in_json() {
    for word in RULES.iter().flat_map(|rule| rule.words) {
        assert_eq!(serde_json::to_string(word).unwrap(), format!("\"{word}\""));
    }
}
