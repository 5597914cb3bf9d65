//! What children are asked beside running tasks: verdicts on attempts that were cut off, what a decorator says.

use super::answer::{Described, answer, verdict};
use super::frame::encode;
use super::pool::Ended;
use bytes::{Bytes, BytesMut};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use tokio::sync::oneshot;

/// A question that ended this many children is not asked again.
const MOST_TRIES: u32 = 3;

/// Who waits for the answer.
#[derive(Debug)]
pub(crate) enum Asker {
    /// Somebody outside, for a verdict.
    Verdict(oneshot::Sender<Option<Duration>>),
    /// Somebody outside, for a description.
    Description(oneshot::Sender<Result<Described, String>>),
    /// An attempt whose error is known and whose retry is not.
    Attempt(Box<Ended>),
}

/// One question.
#[derive(Debug)]
pub(crate) struct Question {
    pub kind: u8,
    pub payload: Bytes,
    pub asker: Asker,
    pub tries: u32,
}

/// The questions that wait, and those that were asked of a child.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    waiting: VecDeque<Question>,
    asked: BTreeMap<u64, (u32, Question)>,
}

impl Questions {
    pub fn push(&mut self, question: Question) {
        self.waiting.push_back(question);
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.asked.is_empty()
    }

    /// Asks a child all that waits.
    pub fn ask(&mut self, child: u32, mut number: impl FnMut() -> u64, out: &mut BytesMut) {
        for question in self.waiting.drain(..) {
            let number = number();
            encode(out, question.kind, number, &question.payload);
            self.asked.insert(number, (child, question));
        }
    }

    /// Takes an answer; what it ends for the pool is returned.
    pub fn answered(&mut self, number: u64, payload: &[u8]) -> Option<Ended> {
        let (_, question) = self.asked.remove(&number)?;
        settle(question, Some(payload))
    }

    /// A child is gone: what it was asked is asked again, or answered with no.
    pub fn lost(&mut self, child: u32) -> Vec<Ended> {
        let lost: Vec<u64> = self.asked.iter().filter(|(_, (of, _))| *of == child).map(|(number, _)| *number).collect();
        let mut ended = Vec::new();
        for number in lost {
            let Some((_, mut question)) = self.asked.remove(&number) else { continue };
            question.tries += 1;
            if question.tries < MOST_TRIES {
                self.waiting.push_back(question);
            } else {
                ended.extend(settle(question, None));
            }
        }
        ended
    }

    /// Nobody will answer any more.
    pub fn give_up(&mut self) -> Vec<Ended> {
        let asked = std::mem::take(&mut self.asked).into_values().map(|(_, question)| question);
        self.waiting.drain(..).chain(asked).filter_map(|question| settle(question, None)).collect()
    }
}

fn settle(question: Question, payload: Option<&[u8]>) -> Option<Ended> {
    let retry = || {
        let read = payload.map(verdict).unwrap_or(Ok(None));
        read.unwrap_or_else(|traceback| {
            tracing::error!(target: "threadmill::python", "a retry cannot be decided, so there is none:\n{traceback}");
            None
        })
    };
    match question.asker {
        Asker::Verdict(sender) => drop(sender.send(retry())),
        Asker::Description(sender) => {
            let gone = || Err("the Python process ended before it answered".to_owned());
            drop(sender.send(payload.map_or_else(gone, answer)));
        }
        Asker::Attempt(mut ended) => {
            ended.decide(retry());
            return Some(*ended);
        }
    }
    None
}
