//! Numbers and times as a person reads them: short, of a steady width, with their units.

use chrono::{DateTime, FixedOffset, Local, Utc};

/// The largest number that is written out.
const WRITTEN_OUT_MAX: u64 = 9_999;

/// A count: thousands set apart up to 9,999, then `12.3k`, `4.56M`, in at most five columns.
pub fn count(value: u64) -> String {
    match value {
        0..=999 => value.to_string(),
        1_000..=WRITTEN_OUT_MAX => format!("{},{:03}", value / 1_000, value % 1_000),
        _ => scaled(value as f64),
    }
}

/// A count with every digit, thousands set apart, for where there is room and it matters.
pub fn exact(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A rate a second, in at most five columns.
pub fn rate(value: f64) -> String {
    if value <= 0.0 || !value.is_finite() {
        "0".into()
    } else if value < 0.095 {
        "<0.1".into()
    } else if value < 99.95 {
        format!("{value:.1}")
    } else {
        count(value.round() as u64)
    }
}

/// Bytes, in binary units as `redis-cli` gives them.
pub fn bytes(value: u64) -> String {
    const UNITS: [&str; 4] = ["KB", "MB", "GB", "TB"];
    if value < 1_024 {
        return format!("{value} B");
    }
    let mut scaled = value as f64 / 1_024.0;
    let mut unit = 0;
    while scaled >= 1_000.0 && unit + 1 < UNITS.len() {
        scaled /= 1_024.0;
        unit += 1;
    }
    if scaled < 9.95 { format!("{scaled:.1} {}", UNITS[unit]) } else { format!("{scaled:.0} {}", UNITS[unit]) }
}

/// A span in its two largest units, at most six columns: `80ms`, `2.1s`, `12s`, `4m12s`, `3h05m`, `2d04h`, `412d`,
/// `56y`.
pub fn span(millis: f64) -> String {
    if !millis.is_finite() {
        return "-".into();
    }
    let millis = millis.abs();
    if millis < 999.5 {
        return format!("{millis:.0}ms");
    }
    if millis < 9_950.0 {
        return format!("{:.1}s", millis / 1_000.0);
    }
    whole_span(millis)
}

/// A span in whole seconds: what is redrawn each second must not show more.
pub fn whole_span(millis: f64) -> String {
    if !millis.is_finite() {
        return "-".into();
    }
    let seconds = (millis.abs() / 1_000.0) as u64;
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{minutes}m{:02}s", seconds % 60),
        3_600..86_400 => format!("{hours}h{minutes:02}m"),
        86_400..8_640_000 => format!("{days}d{hours:02}h"),
        _ if days < 1_000 => format!("{days}d"),
        _ if days < 36_500 => format!("{}y", days / 365),
        _ => ">99y".into(),
    }
}

/// A span in whole seconds and at most five columns, for what is redrawn each second.
pub fn short_span(millis: f64) -> String {
    let text = whole_span(millis);
    if text.len() <= 5 { text } else { text.split_inclusive('d').next().unwrap_or("-").to_owned() }
}

/// A moment seen from `now`: `12s ago`, `in 4m12s`.
pub fn ago(at_ms: f64, now_ms: f64) -> String {
    let gone = now_ms - at_ms;
    if !gone.is_finite() {
        return "-".into();
    }
    if gone > -1_000.0 { format!("{} ago", whole_span(gone.max(0.0))) } else { format!("in {}", whole_span(gone)) }
}

/// How times are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Times {
    /// As ages.
    #[default]
    Ages,
    /// As moments, in UTC.
    Utc,
    /// As moments, in the zone of this machine.
    Local,
}

impl Times {
    /// The next one.
    pub const fn next(self) -> Self {
        match self {
            Times::Ages => Times::Utc,
            Times::Utc => Times::Local,
            Times::Local => Times::Ages,
        }
    }

    /// What it is called.
    pub const fn name(self) -> &'static str {
        match self {
            Times::Ages => "ages",
            Times::Utc => "moments in UTC",
            Times::Local => "moments in the local zone",
        }
    }
}

/// A moment as a list shows it, in at most eleven columns: an age, or the time today, else the day and the time.
pub fn when(at_ms: f64, now_ms: f64, times: Times) -> String {
    if times == Times::Ages { ago(at_ms, now_ms) } else { moment(at_ms, now_ms, times) }
}

/// A moment as a list shows it: the time today, else the day and the time, in at most eleven columns.
pub fn moment(at_ms: f64, now_ms: f64, times: Times) -> String {
    let Some(at) = zoned(at_ms, times) else { return "-".into() };
    let today = zoned(now_ms, times).is_some_and(|now| now.date_naive() == at.date_naive());
    at.format(if today { "%H:%M:%S" } else { "%m-%d %H:%M" }).to_string()
}

/// A moment in milliseconds since 1970 with its date, as RFC 3339; in UTC unless the local zone is asked for.
pub fn full_moment(at_ms: f64, times: Times) -> Option<String> {
    let pattern = if times == Times::Local { "%Y-%m-%d %H:%M:%S%.3f%:z" } else { "%Y-%m-%d %H:%M:%S%.3fZ" };
    zoned(at_ms, times).map(|at| at.format(pattern).to_string())
}

/// A moment from its milliseconds, where it is within what a calendar holds.
fn zoned(at_ms: f64, times: Times) -> Option<DateTime<FixedOffset>> {
    // A cast of a number that is out of range saturates; chrono then refuses it.
    let at: DateTime<Utc> = at_ms.is_finite().then(|| DateTime::from_timestamp_millis(at_ms as i64)).flatten()?;
    let at = if times == Times::Local { at.with_timezone(&Local).fixed_offset() } else { at.fixed_offset() };
    (at.format("%Y").to_string().len() == 4).then_some(at)
}

/// Three digits and a unit.
fn scaled(value: f64) -> String {
    const UNITS: [&str; 5] = ["k", "M", "G", "T", "P"];
    let mut scaled = value / 1_000.0;
    let mut unit = 0;
    while scaled >= 999.5 && unit + 1 < UNITS.len() {
        scaled /= 1_000.0;
        unit += 1;
    }
    let digits = if scaled < 9.995 {
        2
    } else if scaled < 99.95 {
        1
    } else {
        0
    };
    if scaled >= 999.5 { ">999P".into() } else { format!("{scaled:.digits$}{}", UNITS[unit]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_stay_short() {
        let check = |value: u64, expected: &str| {
            assert_eq!(count(value), expected);
            assert!(count(value).len() <= 5, "{value}");
        };
        check(0, "0");
        check(999, "999");
        check(1_204, "1,204");
        check(9_999, "9,999");
        check(10_000, "10.0k");
        check(88_123, "88.1k");
        check(412_000, "412k");
        check(999_999, "1.00M");
        check(12_345_678, "12.3M");
        check(u64::MAX, ">999P");
        assert_eq!(exact(1_234_567), "1,234,567");
        assert_eq!(exact(12), "12");
    }

    #[test]
    fn rates_and_bytes() {
        assert_eq!(
            [rate(0.0), rate(0.01), rate(14.23), rate(120.4), rate(f64::NAN)],
            ["0", "<0.1", "14.2", "120", "0"]
        );
        assert_eq!(
            [bytes(12), bytes(2_048), bytes(1_181_116_006), bytes(4 << 30)],
            ["12 B", "2.0 KB", "1.1 GB", "4.0 GB"]
        );
    }

    #[test]
    fn spans_use_the_two_largest_units() {
        let check = |millis: f64, expected: &str| {
            assert_eq!(span(millis), expected);
            assert!(span(millis).len() <= 6);
        };
        check(80.0, "80ms");
        check(2_100.0, "2.1s");
        check(12_000.0, "12s");
        check(252_000.0, "4m12s");
        check(11_100_000.0, "3h05m");
        check(187_200_000.0, "2d04h");
        check(35_596_800_000.0, "412d");
        check(1_796_067_606_000.0, "56y");
        check(1e18, ">99y");
        check(f64::NAN, "-");
        assert_eq!(whole_span(400.0), "0s");
    }

    #[test]
    fn moments() {
        let now = 1_796_067_606_000.0;
        assert_eq!(ago(now - 12_000.0, now), "12s ago");
        assert_eq!(ago(now + 252_000.0, now), "in 4m12s");
        assert_eq!(moment(now - 12_000.0, now, Times::Utc), "19:39:54");
        assert_eq!(moment(now - 90_000_000.0, now, Times::Utc), "11-29 18:40");
        assert_eq!(full_moment(now, Times::Utc).as_deref(), Some("2026-11-30 19:40:06.000Z"));
        for odd in [f64::NAN, f64::INFINITY, 1e300, -1e300] {
            assert!(moment(odd, now, Times::Local).len() <= 11);
            assert!(ago(odd, now).len() <= 9, "the column of ages");
        }
    }
}
