//! The order in which READY tasks are taken.

use std::fmt;

/// How far one step of priority moves a task ahead, in milliseconds of waiting: about 317 years, so that a higher
/// priority always goes first.
pub const PRIORITY_STEP: f64 = 1e13;

/// A score of one of a queue's sorted sets, in milliseconds.
///
/// It crosses the wire as text that reads back to the same double, and never with an exponent.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
pub struct Score(pub f64);

/// The score of a READY task: `-priority * 1e13 + enqueued_at`, with `enqueued_at` in milliseconds since 1970.
/// The lowest score is taken first.
pub fn ready_score(priority: f64, enqueued_at_ms: f64) -> Score {
    Score(-priority * PRIORITY_STEP + enqueued_at_ms)
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_infinite() {
            return f.write_str(if self.0 > 0.0 { "inf" } else { "-inf" });
        }
        // Rust prints the shortest decimal that reads back to the same double, without an exponent.
        write!(f, "{}", self.0)
    }
}

impl fmt::Debug for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Score({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_a_score_reads_back_and_has_no_exponent() {
        for value in [0.0, 1796067570881.194, -48_203_932_428_572.24, 1e15, -1e17, 5e-7, 1e300] {
            let text = Score(value).to_string();
            assert!(!text.contains(['e', 'E']), "{text}");
            assert_eq!(text.parse::<f64>().unwrap(), value);
        }
        assert_eq!(Score(f64::NEG_INFINITY).to_string(), "-inf");
    }

    #[test]
    fn a_higher_priority_goes_first_whenever_it_came() {
        assert!(ready_score(5.0, 1_900_000_000_000.0) < ready_score(4.0, 1.0));
        assert!(ready_score(0.0, 1.0) < ready_score(0.0, 2.0));
    }
}
