//! What came in and went out, second by second, as telemetry told it.

use std::collections::HashMap;
use std::time::Duration;

/// The seconds that a rate looks back.
pub const WINDOW: u64 = 60;
/// Seconds kept: the window, the one under way and what a sparkline's alignment needs.
const KEPT: usize = 128;
/// Queues that are followed at most.
const QUEUES_MAX: usize = 4_096;

/// The flow of every queue.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Flows {
    queues: HashMap<String, Series>,
    /// Since when the channel has been heard without a gap.
    pub since: Option<Duration>,
    /// Why it is lost, where it is.
    pub lost: Option<String>,
}

/// The flow of one queue.
#[derive(Clone, Debug, PartialEq)]
struct Series {
    head: u64,
    seconds: [(u32, u32); KEPT],
}

/// One queue's flow as it is shown.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Shown {
    /// In a second, mean of the last minute.
    pub rate_in: f64,
    /// Out a second, mean of the last minute.
    pub rate_out: f64,
    /// In, oldest first, one number for each cell.
    pub cells_in: Vec<u32>,
    /// Out, oldest first.
    pub cells_out: Vec<u32>,
}

impl Flows {
    /// Counts tasks that came in and went out now.
    pub fn record(&mut self, queue: &str, now: Duration, entered: u32, left: u32) {
        if !self.queues.contains_key(queue) {
            if self.queues.len() >= QUEUES_MAX {
                return;
            }
            self.queues.insert(queue.to_owned(), Series { head: now.as_secs(), seconds: [(0, 0); KEPT] });
        }
        if let Some(series) = self.queues.get_mut(queue) {
            series.add(now.as_secs(), entered, left);
        }
    }

    /// Starts counting, at the beginning or after a gap.
    pub fn opened(&mut self, now: Duration) {
        self.lost = None;
        self.since = Some(now);
        self.queues.clear();
    }

    /// The flow of a queue with `cells` cells of sparkline; `None` while nothing is known.
    pub fn shown(&self, queue: &str, now: Duration, cells: usize) -> Option<Shown> {
        let since = self.since?;
        // The second under way is not over, so it is not counted.
        let covered = now.as_secs().saturating_sub(since.as_secs()).min(WINDOW);
        if self.lost.is_some() || covered == 0 {
            return None;
        }
        let Some(series) = self.queues.get(queue) else {
            return Some(Shown { cells_in: vec![0; cells], cells_out: vec![0; cells], ..Shown::default() });
        };
        let end = now.as_secs();
        let (entered, left) = series.sum(end - covered, end);
        let step = (WINDOW / cells.max(1) as u64).max(1);
        // Cells begin at multiples of their length, so that a bar keeps its height while it moves.
        let aligned = end / step * step;
        let sums: Vec<(u32, u32)> = (0..cells as u64)
            .rev()
            .map(|back| {
                let to = aligned.saturating_sub(back * step);
                series.sum(to.saturating_sub(step), to)
            })
            .collect();
        Some(Shown {
            rate_in: f64::from(entered) / covered as f64,
            rate_out: f64::from(left) / covered as f64,
            cells_in: sums.iter().map(|(entered, _)| *entered).collect(),
            cells_out: sums.iter().map(|(_, left)| *left).collect(),
        })
    }
}

impl Series {
    fn add(&mut self, second: u64, entered: u32, left: u32) {
        let ahead = second.saturating_sub(self.head).min(KEPT as u64);
        for passed in 1..=ahead {
            self.seconds[((self.head + passed) % KEPT as u64) as usize] = (0, 0);
        }
        if second.saturating_sub(self.head) > ahead {
            self.seconds = [(0, 0); KEPT];
        }
        self.head = self.head.max(second);
        let slot = &mut self.seconds[(self.head % KEPT as u64) as usize];
        slot.0 = slot.0.saturating_add(entered);
        slot.1 = slot.1.saturating_add(left);
    }

    /// The sums over the seconds `from..to`.
    fn sum(&self, from: u64, to: u64) -> (u32, u32) {
        let oldest = (self.head + 1).saturating_sub(KEPT as u64);
        (from.max(oldest)..to.min(self.head + 1)).fold((0, 0), |(entered, left): (u32, u32), second| {
            let (more_in, more_out) = self.seconds[(second % KEPT as u64) as usize];
            (entered.saturating_add(more_in), left.saturating_add(more_out))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn rates_are_means_of_what_was_heard() {
        let mut flows = Flows::default();
        assert_eq!(flows.shown("a", at(5), 6), None);
        flows.opened(at(0));
        for second in 0..10 {
            flows.record("a", at(second), 20, 5);
        }
        let shown = flows.shown("a", at(10), 6).unwrap();
        assert_eq!((shown.rate_in, shown.rate_out), (20.0, 5.0));
        assert_eq!(shown.cells_in, [0, 0, 0, 0, 0, 200]);
        let later = flows.shown("a", at(60), 6).unwrap();
        assert_eq!(later.cells_in, [200, 0, 0, 0, 0, 0]);
        assert!((later.rate_in - 200.0 / 60.0).abs() < 1e-9);
        assert_eq!(flows.shown("a", at(4_000), 6).unwrap().rate_in, 0.0);
        assert_eq!(flows.shown("other", at(10), 3).unwrap().cells_out, [0, 0, 0]);
    }

    #[test]
    fn a_gap_is_not_read_as_silence() {
        let mut flows = Flows::default();
        flows.opened(at(0));
        flows.record("a", at(1), 1, 1);
        flows.lost = Some("gone".into());
        assert_eq!(flows.shown("a", at(2), 6), None);
        flows.opened(at(9));
        assert_eq!(flows.shown("a", at(9), 6), None);
        flows.record("a", at(9), 3, 0);
        assert_eq!(flows.shown("a", at(10), 6).unwrap().rate_in, 3.0);
    }

    #[test]
    fn long_silences_and_time_that_stands_still_are_harmless() {
        let mut flows = Flows::default();
        flows.opened(at(0));
        for second in [0, 500, 499, 500, u64::MAX / 2] {
            flows.record("a", at(second), u32::MAX, u32::MAX);
            flows.shown("a", at(second), 7);
            flows.shown("a", at(second), 0);
        }
    }
}
