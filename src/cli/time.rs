//! Durations and moments, as people and programs write them.

use chrono::{DateTime, SecondsFormat, Utc};
use std::time::Duration;

pub use crate::task::parse_duration;

/// As [`parse_duration`], for a wait that cannot be empty.
///
/// # Errors
/// As there, and for zero.
pub fn parse_positive(text: &str) -> Result<Duration, String> {
    match parse_duration(text)? {
        Duration::ZERO => Err(format!("`{text}` is no time at all; give a duration above zero")),
        duration => Ok(duration),
    }
}

/// Reads a moment: RFC 3339, such as `2026-12-24T18:00:00Z`.
///
/// # Errors
/// Says what is expected.
pub fn parse_moment(text: &str) -> Result<DateTime<Utc>, String> {
    DateTime::parse_from_rfc3339(text.trim()).map(|at| at.with_timezone(&Utc)).map_err(|_| {
        format!(
            "`{text}` is no moment; write it with its offset, like 2026-12-24T18:00:00Z or 2026-12-24T19:00:00+01:00"
        )
    })
}

/// A moment in milliseconds since 1970, where there is one of that number.
pub fn moment(millis: f64) -> Option<DateTime<Utc>> {
    if !millis.is_finite() {
        return None;
    }
    // A number out of range saturates, and then names no moment.
    DateTime::from_timestamp_micros((millis * 1_000.0) as i64)
}

/// A moment for a program: RFC 3339 in UTC, with milliseconds.
pub fn rfc3339(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// A duration for a person, in its two largest units: `45s`, `2h 5m`, `3d 4h`.
pub fn brief(duration: Duration) -> String {
    const UNITS: [(u64, &str); 4] = [(86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")];
    let seconds = duration.as_secs();
    let Some(first) = UNITS.iter().position(|(size, _)| seconds >= *size) else {
        return if duration.is_zero() { "0s".into() } else { format!("{}ms", duration.as_millis().max(1)) };
    };
    let (size, unit) = UNITS[first];
    let rest = UNITS.get(first + 1).map(|(size, unit)| (seconds % UNITS[first].0 / size, unit));
    match rest {
        Some((count @ 1.., small)) => format!("{}{unit} {count}{small}", seconds / size),
        _ => format!("{}{unit}", seconds / size),
    }
}

/// How far a moment is from `now`, for a person: `5m ago`, `in 2h 5m`.
pub fn relative(at: DateTime<Utc>, now: DateTime<Utc>) -> String {
    let distance = (at - now).abs().to_std().unwrap_or_default();
    match at > now {
        true => format!("in {}", brief(distance)),
        false => format!("{} ago", brief(distance)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_as_people_write_them() {
        let check = |text: &str, seconds: f64| {
            assert_eq!(parse_duration(text), Ok(Duration::from_secs_f64(seconds)), "{text}");
        };
        check("5m", 300.0);
        check("2h30m", 9000.0);
        check("1d", 86_400.0);
        check("1w", 604_800.0);
        check("PT5M", 300.0);
        check("P1DT2H", 93_600.0);
        check("1.5h", 5400.0);
        check("250ms", 0.25);
        check("0s", 0.0);
        for text in ["", "5", "-5m", "1mo", "soon", "1h -5m"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
        assert!(parse_positive("0s").is_err());
    }

    #[test]
    fn moments_need_their_offset() {
        assert_eq!(rfc3339(parse_moment("2026-12-24T19:00:00+01:00").unwrap()), "2026-12-24T18:00:00.000Z");
        assert!(parse_moment("2026-12-24 19:00").is_err());
        assert!(parse_moment("tomorrow").is_err());
    }

    #[test]
    fn numbers_that_name_no_moment_are_none_and_no_panic() {
        assert!(moment(f64::NAN).is_none());
        assert!(moment(f64::INFINITY).is_none());
        assert!(moment(1e300).is_none());
        assert_eq!(rfc3339(moment(1_796_067_570_881.9).unwrap()), "2026-11-30T19:39:30.881Z");
    }

    #[test]
    fn durations_as_people_read_them() {
        let check = |seconds: f64, text: &str| assert_eq!(brief(Duration::from_secs_f64(seconds)), text);
        check(0.0, "0s");
        check(0.25, "250ms");
        check(45.0, "45s");
        check(300.0, "5m");
        check(7500.0, "2h 5m");
        check(273_700.0, "3d 4h");
        let now = moment(1_796_067_570_881.0).unwrap();
        assert_eq!(relative(now - chrono::TimeDelta::seconds(61), now), "1m 1s ago");
        assert_eq!(relative(now + chrono::TimeDelta::seconds(60), now), "in 1m");
    }
}
