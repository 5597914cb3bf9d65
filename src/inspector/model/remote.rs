//! A piece of Redis as it was last seen, and the question that is under way for it.

use crate::inspector::msg::{Effect, Lane, Query};
use std::time::Duration;

/// The first pause after a failure; it doubles with each further one.
const BACKOFF_MIN: Duration = Duration::from_millis(250);
/// The longest pause after a failure, before the jitter.
const BACKOFF_MAX: Duration = Duration::from_secs(2);

/// What is known of one lane.
#[derive(Clone, Debug, PartialEq)]
pub struct Remote<T> {
    lane: Lane,
    /// The last good answer.
    pub value: Option<T>,
    /// When it came.
    pub at: Option<Duration>,
    /// Why the last question failed, where it did.
    pub error: Option<String>,
    /// The question that is under way: its number, its start and what it asks.
    asked: Option<(u64, Duration, Query)>,
    /// The question that the value answers, or that failed.
    answered: Option<Query>,
    due: Duration,
    failures: u32,
}

impl<T> Remote<T> {
    /// Nothing known yet.
    pub fn new(lane: Lane) -> Self {
        Self { lane, value: None, at: None, error: None, asked: None, answered: None, due: Duration::ZERO, failures: 0 }
    }

    /// Asks, where this question is not under way and it is time, or it is a new one.
    pub fn want(&mut self, query: Query, now: Duration, next_id: &mut u64) -> Option<Effect> {
        match &self.asked {
            Some((_, _, under_way)) if *under_way == query => return None,
            None if self.answered.as_ref() == Some(&query) && now < self.due => return None,
            _ => {}
        }
        *next_id += 1;
        self.asked = Some((*next_id, now, query.clone()));
        Some(Effect::Read(self.lane, *next_id, query))
    }

    /// Whether the answer numbered `id` is the one that is awaited; it no longer is afterwards.
    pub fn awaited(&mut self, id: u64) -> bool {
        match self.asked.take_if(|(asked, ..)| *asked == id) {
            Some((_, _, query)) => {
                self.answered = Some(query);
                true
            }
            None => false,
        }
    }

    /// Takes a good answer; the next question is due after `every`.
    pub fn good(&mut self, value: T, now: Duration, every: Duration) {
        self.value = Some(value);
        self.at = Some(now);
        self.error = None;
        self.failures = 0;
        self.due = now + every;
    }

    /// Takes a failure. `chance` in 0..1 spreads the next question, so that many inspectors do not come at once.
    pub fn failed(&mut self, error: String, now: Duration, chance: f64) {
        self.error = Some(error);
        let pause = (BACKOFF_MIN * 2u32.pow(self.failures.min(8))).min(BACKOFF_MAX);
        self.failures = self.failures.saturating_add(1);
        self.due = now + pause.mul_f64(0.5 + chance.clamp(0.0, 1.0));
    }

    /// Makes the next question due at once.
    pub fn hurry(&mut self) {
        self.due = Duration::ZERO;
    }

    /// Forgets what is known; an answer under way is no longer awaited.
    pub fn forget(&mut self) {
        *self = Self::new(self.lane);
    }

    /// Since when a question is under way.
    pub fn waiting_since(&self) -> Option<Duration> {
        self.asked.as_ref().map(|(_, since, _)| *since)
    }

    /// Whether the question under way asks for something else than is known.
    pub fn is_turning(&self) -> bool {
        self.asked.as_ref().is_some_and(|(_, _, query)| self.answered.as_ref() != Some(query))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn one_question_at_a_time_and_the_newest_wins() {
        let mut remote = Remote::<u8>::new(Lane::Detail);
        let mut ids = 0;
        let first = Query::Detail("a".into());
        assert!(remote.want(first.clone(), Duration::ZERO, &mut ids).is_some());
        assert!(remote.want(first.clone(), SECOND, &mut ids).is_none());
        assert!(remote.want(Query::Detail("b".into()), SECOND, &mut ids).is_some());
        assert!(!remote.awaited(1), "the answer to a question that was replaced is late");
        assert!(remote.awaited(2));
        assert!(!remote.awaited(2));
        remote.good(7, SECOND, SECOND);
        assert!(remote.want(Query::Detail("b".into()), SECOND, &mut ids).is_none());
        assert!(remote.want(Query::Detail("b".into()), 2 * SECOND, &mut ids).is_some());
    }

    #[test]
    fn failures_back_off_up_to_a_bound() {
        let mut remote = Remote::<u8>::new(Lane::Queues);
        let mut pauses = Vec::new();
        for _ in 0..40 {
            remote.failed("gone".into(), Duration::ZERO, 0.5);
            pauses.push(remote.due.as_millis());
        }
        assert_eq!(pauses[..5], [250, 500, 1_000, 2_000, 2_000]);
        assert_eq!(pauses.last(), Some(&2_000));
    }
}
