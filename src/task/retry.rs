//! When a failed task runs again.

use crate::task::{RawJson, is_subclass};
use std::time::Duration;

/// The dotted name under which [`ExponentialBackoff`] is stored.
const BACKOFF_PATH: &str = "threadmill.retry.ExponentialBackoff";

/// Delays retries exponentially; stored so that workers of the Python package can evaluate it too.
///
/// The delay before the next attempt is `min(base_delay * factor ^ attempt, max_delay)`, and it is granted while
/// `attempt < max_retries`. The attempt number is how many attempts have been made, so the first retry waits
/// `base_delay * factor`, and `max_retries` of 5 gives four retries: five attempts in all.
#[derive(Clone, Debug, PartialEq)]
pub struct ExponentialBackoff {
    /// Seconds that the delay grows from.
    pub base_delay: f64,
    /// The longest delay, in seconds.
    pub max_delay: f64,
    /// What each attempt multiplies the delay by.
    pub factor: f64,
    /// Granted while fewer attempts than this have been made.
    pub max_retries: u32,
    /// Class paths of the Python exceptions that are retried, with whatever derives from them.
    pub expected_exceptions: Vec<String>,
}

impl Default for ExponentialBackoff {
    fn default() -> Self {
        Self {
            base_delay: 1.0,
            max_delay: 3600.0,
            factor: 2.0,
            max_retries: 5,
            expected_exceptions: vec!["builtins.Exception".into()],
        }
    }
}

/// What a retry policy says of a failure.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Run again after this long.
    RetryIn(Duration),
    /// It has failed for good.
    Fail,
    /// Only Python can tell: the policy is a function of the site, or it asks for the ancestors of its own classes.
    Unknown,
}

impl ExponentialBackoff {
    /// The defaults: base 1 s, factor 2, at most an hour, five attempts, every exception.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the delay that the others grow from.
    pub fn base_delay(mut self, delay: Duration) -> Self {
        self.base_delay = delay.as_secs_f64();
        self
    }

    /// Bounds the delay.
    pub fn max_delay(mut self, delay: Duration) -> Self {
        self.max_delay = delay.as_secs_f64();
        self
    }

    /// Sets what each attempt multiplies the delay by.
    pub fn factor(mut self, factor: f64) -> Self {
        self.factor = factor;
        self
    }

    /// Sets how many attempts are made at most.
    pub fn max_retries(mut self, max_retries: u32) -> Self {
        self.max_retries = max_retries;
        self
    }

    /// Retries only these Python classes and what derives from them.
    pub fn expected_exceptions<S: Into<String>>(mut self, classes: impl IntoIterator<Item = S>) -> Self {
        self.expected_exceptions = classes.into_iter().map(Into::into).collect();
        self
    }

    /// The verdict on a failure of class `class` after `attempt` attempts.
    pub fn verdict(&self, attempt: u32, class: &str) -> Verdict {
        if attempt >= self.max_retries {
            return Verdict::Fail;
        }
        let answers: Vec<_> = self.expected_exceptions.iter().map(|base| is_subclass(class, base)).collect();
        if answers.contains(&Some(true)) {
            Verdict::RetryIn(self.delay(attempt))
        } else if answers.contains(&None) {
            Verdict::Unknown
        } else {
            Verdict::Fail
        }
    }

    /// The delay after `attempt` attempts: `min(base_delay * factor ^ attempt, max_delay)`.
    pub fn delay(&self, attempt: u32) -> Duration {
        let seconds = (self.base_delay * self.factor.powf(f64::from(attempt))).min(self.max_delay);
        // Negative, infinite or NaN settings come from stored text; they mean no delay and not a panic.
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::ZERO)
    }
}

/// A stored retry policy: its text, and what of it is understood.
#[derive(Clone, Debug, PartialEq)]
pub enum Retry {
    /// The built-in backoff, which needs no Python.
    Backoff(ExponentialBackoff, RawJson),
    /// A function or class of the site, by its dotted name; it is never called from here.
    Callback(String, RawJson),
}

impl Retry {
    /// Whether `path` is the stored name of the built-in backoff.
    pub fn is_backoff_path(path: &str) -> bool {
        path == BACKOFF_PATH
    }

    /// The stored name of the built-in backoff.
    pub const fn backoff_path() -> &'static str {
        BACKOFF_PATH
    }

    /// The text as it is stored.
    pub fn raw(&self) -> &RawJson {
        match self {
            Retry::Backoff(_, raw) | Retry::Callback(_, raw) => raw,
        }
    }

    /// The verdict on a failure of class `class` after `attempt` attempts.
    pub fn verdict(&self, attempt: u32, class: &str) -> Verdict {
        match self {
            Retry::Backoff(backoff, _) => backoff.verdict(attempt, class),
            Retry::Callback(..) => Verdict::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_max_retries_are_four_retries_and_the_first_waits_base_times_factor() {
        let backoff = ExponentialBackoff::new();
        let verdicts: Vec<_> = (1..=5).map(|attempt| backoff.verdict(attempt, "builtins.ValueError")).collect();
        let seconds = |n| Verdict::RetryIn(Duration::from_secs(n));
        assert_eq!(verdicts, [seconds(2), seconds(4), seconds(8), seconds(16), Verdict::Fail]);
    }

    #[test]
    fn only_expected_classes_and_only_python_knows_the_site_s() {
        let backoff = ExponentialBackoff::new().expected_exceptions(["builtins.LookupError"]);
        assert_eq!(backoff.verdict(1, "builtins.KeyError"), Verdict::RetryIn(Duration::from_secs(2)));
        assert_eq!(backoff.verdict(1, "builtins.ValueError"), Verdict::Fail);
        assert_eq!(backoff.verdict(1, "shop.errors.Mine"), Verdict::Unknown);
    }

    #[test]
    fn absurd_settings_give_a_delay_and_no_panic() {
        for (base, factor, max) in [(f64::NAN, 2.0, 1.0), (-5.0, 2.0, 9.0), (1e300, 1e300, f64::INFINITY)] {
            let backoff = ExponentialBackoff { base_delay: base, factor, max_delay: max, ..Default::default() };
            backoff.delay(u32::MAX);
        }
        assert_eq!(ExponentialBackoff::new().max_delay(Duration::from_secs(3)).delay(9), Duration::from_secs(3));
    }
}
