//! Today's date in the user's time zone, without a search through the system's time zones.
//!
//! `jiff` returns a zone with its name. To find the name, it opens every file of the time zone database. There are
//! hundreds of them, which would take longer than the rest of `tenterhook fire`. A date needs no zone name, so
//! reading the zone's own file is enough.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

/// The file of the machine's time zone.
const LOCAL_ZONE: &str = "/etc/localtime";

/// The folder of time zone files on Unix systems.
const ZONES: &str = "/usr/share/zoneinfo";

/// Returns today's date in the user's time zone.
pub fn today() -> Date {
    Timestamp::now().to_zoned(zone()).date()
}

/// Returns the user's time zone.
pub fn zone() -> TimeZone {
    let variable = std::env::var_os("TZ");
    zone_file(variable.as_deref())
        .and_then(|path| read_zone(&path))
        .unwrap_or_else(TimeZone::system)
}

/// Returns the file of the zone that `TZ` names, or of the machine's zone if the variable is not set. Returns `None`
/// if the variable is a rule or a path, which `jiff` reads.
fn zone_file(variable: Option<&OsStr>) -> Option<PathBuf> {
    let Some(variable) = variable else {
        return cfg!(unix).then(|| LOCAL_ZONE.into());
    };
    let name = variable.to_str()?;
    let is_plain = |part: &str| part.starts_with(|first: char| first.is_ascii_uppercase());
    let is_name = name.contains('/') && name.split('/').all(is_plain);
    (is_name && cfg!(unix)).then(|| Path::new(ZONES).join(name))
}

fn read_zone(path: &Path) -> Option<TimeZone> {
    let bytes = std::fs::read(path).ok()?;
    TimeZone::tzif("", &bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_day_is_that_of_the_system() {
        let expected = || jiff::Zoned::now().date();
        // Midnight may pass between the two calls.
        assert!(today() == expected() || today() == expected());
    }

    #[cfg(unix)]
    #[test]
    fn only_names_of_zones_are_looked_up() {
        let file = |text: &str| zone_file(Some(OsStr::new(text)));
        assert_eq!(zone_file(None), Some(PathBuf::from("/etc/localtime")));
        assert_eq!(
            file("America/Argentina/Salta"),
            Some(PathBuf::from("/usr/share/zoneinfo/America/Argentina/Salta"))
        );
        for text in [
            "",
            "EST5EDT",
            ":Europe/Rome",
            "/etc/localtime",
            "../x",
            "Europe/../../x",
            "<+03>-3/x",
        ] {
            assert_eq!(file(text), None, "{text}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_zone_read_from_its_file_has_the_offsets_of_its_name() {
        let Some(zone) = read_zone(&Path::new(ZONES).join("Pacific/Kiritimati")) else {
            return;
        };
        let named = TimeZone::get("Pacific/Kiritimati").unwrap();
        let now = Timestamp::now();
        assert_eq!(zone.to_offset(now), named.to_offset(now));
    }
}
