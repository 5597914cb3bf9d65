//! What the server holds, as sets of places; and the check that an operation explains every change of it.

use std::collections::{BTreeMap, BTreeSet};

pub const QUEUES: [&str; 2] = ["default", "a:b"];

/// Where an id can be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Spot {
    Ready,
    Scheduled,
    Running,
    Successful,
    Failed,
    Quarantine,
}

impl Spot {
    pub const ALL: [Spot; 6] =
        [Spot::Ready, Spot::Scheduled, Spot::Running, Spot::Successful, Spot::Failed, Spot::Quarantine];

    pub fn is_finished(self) -> bool {
        matches!(self, Spot::Successful | Spot::Failed)
    }

    pub fn key(self, queue: &str) -> String {
        let suffix = match self {
            Spot::Ready => "ready",
            Spot::Scheduled => "deferred",
            Spot::Running => "running",
            Spot::Successful => "successful",
            Spot::Failed => "failed",
            Spot::Quarantine => return format!("threadmill-rs:{{default}}:quarantine:{queue}"),
        };
        format!("threadmill:{{default}}:{queue}:{suffix}")
    }
}

/// A queue by its number, and where in it.
pub type At = (usize, Spot);
/// Everywhere that an id is listed.
pub type Places = BTreeSet<At>;

/// What the server holds.
#[derive(Clone, Debug, Default)]
pub struct State {
    pub places: BTreeMap<String, Places>,
    /// The score of each entry, as the server writes it.
    pub scores: BTreeMap<(At, String), f64>,
    /// Pending records, and whether each expires.
    pub records: BTreeMap<String, bool>,
    pub results: BTreeSet<String>,
}

/// The parts of a stored state as the script below answers them.
type Dump = (Vec<Vec<String>>, Vec<(String, i64)>, Vec<String>);

impl State {
    pub fn read(connection: &mut redis::Connection) -> Self {
        const DUMP: &str = "local sets, tasks, results = {}, {}, {} \
            for i, key in ipairs(KEYS) do sets[i] = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES') end \
            for _, key in ipairs(redis.call('KEYS', ARGV[1] .. '*')) do \
              tasks[#tasks + 1] = { string.sub(key, #ARGV[1] + 1), redis.call('PTTL', key) } end \
            for _, key in ipairs(redis.call('KEYS', ARGV[2] .. '*')) do \
              results[#results + 1] = string.sub(key, #ARGV[2] + 1) end \
            return { sets, tasks, results }";
        let ats: Vec<At> = (0..QUEUES.len()).flat_map(|queue| Spot::ALL.map(|spot| (queue, spot))).collect();
        let mut cmd = redis::cmd("EVAL");
        cmd.arg(DUMP).arg(ats.len());
        for (queue, spot) in &ats {
            cmd.arg(spot.key(QUEUES[*queue]));
        }
        cmd.arg("threadmill:{default}:task:").arg("threadmill:{default}:result:");
        let (sets, tasks, results): Dump = cmd.query(connection).expect("the server answers");
        let mut state = State::default();
        for (at, members) in ats.into_iter().zip(sets) {
            for pair in members.chunks_exact(2) {
                state.places.entry(pair[0].clone()).or_default().insert(at);
                state.scores.insert((at, pair[0].clone()), pair[1].parse().expect("a score"));
            }
        }
        state.records = tasks.into_iter().map(|(id, ttl)| (id, ttl >= 0)).collect();
        state.results = results.into_iter().collect();
        state
    }

    pub fn of(&self, id: &str) -> Places {
        self.places.get(id).cloned().unwrap_or_default()
    }
}

/// How an operation accounts for what it changed. Whatever is not accounted for must not have changed.
#[derive(Clone, Debug, Default)]
pub struct Account {
    /// By id: the places that it left, and those that it entered.
    pub named: BTreeMap<String, (Places, Places)>,
    /// So many ids, each from the one place to the other (or to none).
    pub counted: Vec<(At, Option<At>, u64)>,
    /// Ids listed in both leave the first without being counted.
    pub unless_in: Option<(At, At)>,
}

impl Account {
    pub fn name(&mut self, id: impl Into<String>, left: &[At], entered: &[At]) {
        let entry = self.named.entry(id.into()).or_default();
        entry.0.extend(left.iter().copied());
        entry.1.extend(entered.iter().copied());
    }

    /// Checks every change between the two states; the error says which is not accounted for.
    pub fn check(&self, before: &State, after: &State) -> Result<(), String> {
        let ids: BTreeSet<&String> = before.places.keys().chain(after.places.keys()).chain(self.named.keys()).collect();
        let mut left: Vec<u64> = self.counted.iter().map(|(_, _, count)| *count).collect();
        for id in ids {
            let (was, is) = (before.of(id), after.of(id));
            if let Some((gone, new)) = self.named.get(id) {
                let expected: Places = was.difference(gone).chain(new).copied().collect();
                if is != expected {
                    return Err(format!("{id} was in {was:?}, is in {is:?}, and was reported to be in {expected:?}"));
                }
                continue;
            }
            if was == is {
                continue;
            }
            if let Some((from, held)) = self.unless_in
                && was.contains(&from)
                && was.contains(&held)
                && is == was.iter().copied().filter(|at| *at != from).collect()
            {
                continue;
            }
            let matches = |(from, to, _): &(At, Option<At>, u64)| {
                let mut expected = was.clone();
                let present = expected.remove(from);
                expected.extend(*to);
                present && expected == is
            };
            match self.counted.iter().position(matches) {
                Some(at) if left[at] > 0 => left[at] -= 1,
                _ => return Err(format!("{id} went from {was:?} to {is:?} and nobody said so")),
            }
        }
        if left.iter().any(|left| *left > 0) {
            return Err(format!("more was reported than happened: {:?}, left over {left:?}", self.counted));
        }
        Ok(())
    }
}
