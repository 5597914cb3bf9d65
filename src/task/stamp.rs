//! A moment as a task's record stores it.

use chrono::{DateTime, FixedOffset, SecondsFormat, Timelike, Utc};
use std::fmt;

/// A moment and its stored text.
///
/// The text is kept, since another program may have written a finer fraction or another offset, and what is carried
/// is carried byte for byte.
#[derive(Clone, PartialEq, Eq)]
pub struct Stamp {
    text: String,
    at: DateTime<FixedOffset>,
}

impl Stamp {
    /// A moment of our own, in the stored form: milliseconds truncated, `Z`; no fraction where the microseconds are
    /// zero, `.000Z` where they are under 1000.
    pub fn new(at: DateTime<Utc>) -> Self {
        let format = if at.nanosecond() / 1_000 == 0 { SecondsFormat::Secs } else { SecondsFormat::Millis };
        // The stored text is the truth: what is read back has its precision, so ours has too.
        let text = at.to_rfc3339_opts(format, true);
        let millis = at.timestamp_millis();
        let at = DateTime::<Utc>::from_timestamp_millis(millis).unwrap_or(at);
        Self { text, at: at.into() }
    }

    /// Reads a stored moment: ISO 8601 with an offset.
    pub fn parse(text: &str) -> Option<Self> {
        let at = DateTime::parse_from_rfc3339(text).ok()?;
        Some(Self { text: text.to_owned(), at })
    }

    /// The stored text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The moment in UTC.
    pub fn at(&self) -> DateTime<Utc> {
        self.at.with_timezone(&Utc)
    }

    /// The moment with the offset that it was stored with.
    pub fn with_offset(&self) -> DateTime<FixedOffset> {
        self.at
    }

    /// Milliseconds since 1970, with their fraction.
    pub fn millis(&self) -> f64 {
        self.at.timestamp_micros() as f64 / 1_000.0
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utc(micros: i64) -> DateTime<Utc> {
        DateTime::from_timestamp_micros(micros).unwrap()
    }

    #[test]
    fn written_as_the_python_package_writes_it() {
        assert_eq!(Stamp::new(utc(1_893_553_445_678_901)).as_str(), "2030-01-02T03:04:05.678Z");
        assert_eq!(Stamp::new(utc(1_893_553_445_000_000)).as_str(), "2030-01-02T03:04:05Z");
        assert_eq!(Stamp::new(utc(1_893_553_445_000_900)).as_str(), "2030-01-02T03:04:05.000Z");
    }

    #[test]
    fn other_offsets_and_finer_fractions_are_kept() {
        for text in ["2030-01-02T03:04:05.678+05:30", "2030-01-02T03:04:05.678901Z", "2026-11-30T19:39:31.425734+00:00"]
        {
            assert_eq!(Stamp::parse(text).unwrap().as_str(), text);
        }
        assert_eq!(Stamp::parse("2030-01-02T03:04:05.678+05:30").unwrap().millis(), 1_893_533_645_678.0);
        assert!(Stamp::parse("yesterday").is_none());
    }
}
