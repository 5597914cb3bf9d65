//! Durations, as people and programs write them.

use jiff::{Span, SpanRelativeTo, Unit};
use std::time::Duration;

/// Reads a duration: `5m`, `2h30m`, `1d`, `1.5h`, `PT5M`.
///
/// # Errors
/// Says what is expected. Months and years, which have no fixed length, are refused, and so are negative durations.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is no duration; write it like 30s, 5m, 2h30m, 1d or PT5M");
    let span: Span = text.trim().parse().map_err(|_| wrong())?;
    if span.is_negative() {
        return Err(format!("`{text}` lies in the past; a duration is not negative"));
    }
    let seconds = span.total((Unit::Second, SpanRelativeTo::days_are_24_hours())).map_err(|_| wrong())?;
    Duration::try_from_secs_f64(seconds).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_as_people_write_them() {
        let check = |text: &str, seconds: u64| assert_eq!(parse_duration(text), Ok(Duration::from_secs(seconds)));
        check("30s", 30);
        check("2h30m", 9_000);
        check("1d", 86_400);
        check("PT5M", 300);
        for text in ["", "5", "-5m", "1y", "soon"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }
}
