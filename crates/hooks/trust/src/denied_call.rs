//! Tool calls that a hook denied, as the user can let them through.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tenterhook_engine::HookDenial;
use tenterhook_files::hex;
use tenterhook_journal::Redactor;
use tenterhook_protocol::excerpt::omit_middle;

/// The version of the stored form.
const VERSION: u32 = 1;
/// The largest part of a call's arguments that is stored, in bytes, of its beginning and of its end.
pub(crate) const MAX_SHOWN: usize = 8 << 10;
/// The digits of an id. Letters that look like digits are left out.
const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/// The number of digits of an id, with 5 bits each.
const ID_LENGTH: usize = 8;

/// The short name of a denial, such as `7K3MZQ2P`. The same denial always has the same id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DenialId(String);

impl DenialId {
    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the id that a SHA-256 begins with. `None` if the text is not the hexadecimal form of one.
    pub(crate) fn of_digest(digest: &str) -> Option<Self> {
        let is_hex = digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
        let start = digest.get(..ID_LENGTH * 5 / 4).filter(|_| is_hex)?;
        let number = u64::from_str_radix(start, 16).ok()?;
        let digits = (0..ID_LENGTH).rev().map(|place| {
            let digit = usize::try_from((number >> (5 * place)) & 31).ok()?;
            DIGITS.get(digit).copied().map(char::from)
        });
        digits.collect::<Option<String>>().map(Self)
    }
}

impl fmt::Display for DenialId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The text is not the id of a denial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an id has {ID_LENGTH} letters and digits, such as `7K3MZQ2P`")]
pub struct DenialIdError;

impl FromStr for DenialId {
    type Err = DenialIdError;

    fn from_str(text: &str) -> Result<Self, DenialIdError> {
        let digit = |letter: char| match letter.to_ascii_uppercase() {
            'O' => Some('0'),
            'I' | 'L' => Some('1'),
            letter => DIGITS
                .iter()
                .map(|digit| char::from(*digit))
                .find(|digit| *digit == letter),
        };
        let id: Option<String> = text.chars().map(digit).collect();
        id.filter(|id| id.len() == ID_LENGTH)
            .map(Self)
            .ok_or(DenialIdError)
    }
}

/// A tool call that a hook denied in a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeniedCall {
    version: u32,
    /// The SHA-256 of the hook, the event, the whole call and the project. The first part of it is the id.
    digest: String,
    /// The root of the project's repository, or the folder in which the agent works.
    pub project: PathBuf,
    /// The hook that denied.
    pub hook: String,
    /// Where that hook is defined.
    pub source: String,
    /// The event of the hook.
    pub event: String,
    /// The tool.
    pub tool: String,
    /// The arguments as JSON, without secrets. Long arguments lack their middle.
    pub input: String,
    /// The hook's reason, without secrets.
    pub reason: Option<String>,
    /// When the hook denied the call.
    pub denied_at: Timestamp,
}

impl DeniedCall {
    /// Describes a denial in the project with this root.
    pub fn new(denial: HookDenial, project: &Path) -> Self {
        let mut input = Value::Object(denial.input);
        // The id must not depend on the order of the keys.
        input.sort_all_objects();
        let path = denial.source.path.as_deref();
        let digest = digest([
            denial.source.layer.as_str().as_bytes(),
            path.map_or(&[], |path| path.as_os_str().as_encoded_bytes()),
            denial.hook.as_str().as_bytes(),
            denial.system.as_bytes(),
            denial.event.as_bytes(),
            denial.tool.as_bytes(),
            input.to_string().as_bytes(),
            project.as_os_str().as_encoded_bytes(),
        ]);
        let redactor = Redactor::shared();
        redactor.redact_value(&mut input);
        redactor.redact_names(&mut input);
        let mut reason = denial.reason;
        if let Some(reason) = &mut reason {
            redactor.redact_text(reason);
        }
        Self {
            version: VERSION,
            digest: hex(&digest),
            project: project.to_owned(),
            hook: denial.hook.as_str().to_owned(),
            source: denial.source.to_string(),
            event: denial.event,
            tool: denial.tool,
            input: omit_middle(&format!("{input:#}"), MAX_SHOWN, MAX_SHOWN).into_owned(),
            reason: reason.map(|reason| omit_middle(&reason, MAX_SHOWN, MAX_SHOWN).into_owned()),
            denied_at: Timestamp::now(),
        }
    }

    /// Returns the SHA-256 of the denial in hexadecimal digits. Calls with the same one are the same.
    pub(crate) fn digest(&self) -> &str {
        &self.digest
    }

    /// Returns the id. Fails if the stored form is damaged.
    pub(crate) fn id(&self) -> Result<DenialId, String> {
        if self.version != VERSION {
            return Err(format!("version {}, expected {VERSION}", self.version));
        }
        DenialId::of_digest(&self.digest)
            .ok_or_else(|| "`digest` is not a SHA-256 in hexadecimal digits".to_owned())
    }
}

/// Returns the SHA-256 of all parts, each after its length.
fn digest(parts: [&[u8]; 8]) -> [u8; 32] {
    let mut sha256 = Sha256::new();
    for part in parts {
        sha256.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        sha256.update(part);
    }
    sha256.finalize().into()
}
