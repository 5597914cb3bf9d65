//! Reads: counts, pages, one task.

use crate::backend::answer::Answer;
use crate::backend::codec::{decode, excerpt};
use crate::backend::connection::Resend;
use crate::backend::scripts::{COUNT, PEEK};
use crate::backend::{Backend, BackendError, Body, Page, PurgeScope, QueueCounts, Summary, TaskDetail, TaskRow};
use crate::task::{Lease, Segment, Stamp, TaskId};
use redis::{Cmd, ErrorKind, RedisResult, Value};
use std::time::Duration;

/// Bytes of a long record's beginning and end that a list reads.
const HEAD: usize = 2048;
const TAIL: usize = 4096;
/// Rows of one page at most.
const PAGE: u64 = 500;

impl Backend {
    /// The counts of these queues, in one round trip.
    ///
    /// # Errors
    /// Why the server could not be asked. A key of another type makes no error: its count is missing.
    pub async fn counts(&self, queues: &[String]) -> Result<Vec<QueueCounts>, BackendError> {
        let keys = self.keys();
        let card = |key: String| {
            let mut cmd = redis::cmd("ZCARD");
            cmd.arg(key);
            cmd
        };
        let mut cmds = Vec::with_capacity(queues.len() * 6);
        for queue in queues {
            cmds.extend(Segment::ALL.map(|segment| card(keys.segment(queue, segment))));
            cmds.push(card(keys.quarantine(queue)));
        }
        let mut answers = self.link().commands(cmds, Resend::Safe).await?.into_iter();
        let mut counts = Vec::with_capacity(queues.len());
        for queue in queues {
            let mut next = || self.count_of(answers.next());
            let mut segments = [None; 5];
            for count in &mut segments {
                *count = next()?;
            }
            counts.push(QueueCounts { queue: queue.clone(), segments, quarantined: next()?.unwrap_or(0) });
        }
        Ok(counts)
    }

    /// As [`Self::counts`], in one command however many queues there are: for what looks again and again.
    pub(super) async fn counts_at_once(&self, queues: &[String]) -> Result<Vec<QueueCounts>, BackendError> {
        let mut names = Vec::with_capacity(queues.len() * 6);
        for queue in queues {
            names.extend(Segment::ALL.map(|segment| self.keys().segment(queue, segment)));
            names.push(self.keys().quarantine(queue));
        }
        let counts = self.call("count", COUNT.call(&names)).await?.groups::<6>()?;
        let counts = queues.iter().zip(counts).map(|(queue, counts)| {
            let [ready, scheduled, running, successful, failed, quarantined] = counts.map(|count| count.count().ok());
            let segments = [ready, scheduled, running, successful, failed];
            QueueCounts { queue: queue.clone(), segments, quarantined: quarantined.unwrap_or(0) }
        });
        Ok(counts.collect())
    }

    /// A count; none where the key holds another type.
    fn count_of(&self, answer: Option<RedisResult<Value>>) -> Result<Option<u64>, BackendError> {
        match answer {
            Some(Ok(value)) => Answer::new("counts", value).count().map(Some),
            Some(Err(error)) => match BackendError::sort(error, self.endpoint()) {
                BackendError::Refused { code, .. } if code == "WRONGTYPE" => Ok(None),
                other => Err(other),
            },
            None => Err(BackendError::Unexpected { what: "counts" }),
        }
    }

    /// A page of a segment: pending tasks in the order in which they will run, finished ones newest first. Long records
    /// are not loaded whole.
    ///
    /// # Errors
    /// `WRONGTYPE` where the segment's key holds another type.
    pub async fn page(&self, queue: &str, segment: Segment, offset: u64, limit: u64) -> Result<Page, BackendError> {
        self.page_of(queue, PurgeScope::Segment(segment), false, offset, limit).await
    }

    /// As [`Backend::page`], of a segment or of what was set aside (newest first; its rows say READY), and from its other
    /// end where `reversed`.
    ///
    /// # Errors
    /// As there.
    pub async fn page_of(
        &self,
        queue: &str,
        scope: PurgeScope,
        reversed: bool,
        offset: u64,
        limit: u64,
    ) -> Result<Page, BackendError> {
        let keys = self.keys();
        let (key, segment, newest_first) = match scope {
            PurgeScope::Segment(segment) => (keys.segment(queue, segment), segment, segment.is_finished()),
            PurgeScope::Quarantine => (keys.quarantine(queue), Segment::Ready, true),
        };
        let (kind, prefix) = match segment.is_finished() {
            true => ("finished", keys.result_prefix()),
            false => ("pending", keys.task_prefix()),
        };
        let limit = limit.clamp(1, PAGE);
        // Ranks are signed for the server: one beyond its numbers names nothing, and must not wrap to the end.
        let offset = offset.min(i64::MAX as u64 - PAGE);
        let mut cmd = PEEK.call(&[key]);
        cmd.arg(kind).arg(offset).arg(offset + limit - 1).arg(if newest_first != reversed { "1" } else { "" });
        cmd.arg(HEAD).arg(TAIL).arg(prefix);
        let [total, entries] = self.call("peek", cmd).await?.array()?;
        let rows = entries.list()?.into_iter().map(|entry| row(entry, queue, segment)).collect::<Result<_, _>>()?;
        Ok(Page { total: total.count()?, offset, rows })
    }

    /// Everything about one task, in whatever state; `None` where there is nothing of that id.
    ///
    /// `queue` says where to look where the record cannot tell; records tell it themselves.
    ///
    /// # Errors
    /// Why the server could not be asked.
    pub async fn find(&self, id: &TaskId, queue: Option<&str>) -> Result<Option<TaskDetail>, BackendError> {
        let keys = self.keys();
        let (task, result) = (keys.task(id.as_str()), keys.result(id.as_str()));
        let mut hash = redis::cmd("HMGET");
        hash.arg(&task);
        for field in ["data", "lease_worker", "lease_started_at", "lease_token", "rs_sequence"] {
            hash.arg(field);
        }
        let simple = |name: &str, key: &str| {
            let mut cmd = redis::cmd(name);
            cmd.arg(key);
            cmd
        };
        let cmds = vec![hash, simple("GET", &result), simple("PTTL", &task), simple("PTTL", &result)];
        let mut answers = self.link().commands(cmds, Resend::Safe).await?.into_iter();
        let mut next = || answers.next().unwrap_or(Ok(Value::Nil));
        let (hash, text) = (self.typed(next())?, self.typed(next())?);
        let ttls = [self.typed(next())?, self.typed(next())?];
        let pending = match hash {
            Typed::Value(value) => Some(Answer::new("find", value).list()?),
            Typed::OtherType => None,
        };
        let wrong_type = pending.is_none() || matches!(text, Typed::OtherType);
        let mut fields = pending.unwrap_or_default().into_iter();
        let data = fields.next().and_then(Answer::optional).map(Answer::bytes).transpose()?;
        let lease = lease_of(fields)?;
        let stored_result = match text {
            Typed::Value(value) => Answer::new("find", value).optional().map(Answer::bytes).transpose()?,
            Typed::OtherType => None,
        };
        let is_pending = data.is_some();
        let stored = data.or(stored_result);
        let body = match &stored {
            Some(stored) => {
                decode(stored).map_or_else(|e| Body::Unreadable(e.to_string()), |r| Body::Record(Box::new(r)))
            }
            None if wrong_type => Body::Unreadable("its key holds another type than the layout says".into()),
            None => Body::Missing,
        };
        let mut detail = TaskDetail {
            id: id.clone(),
            queue: None,
            places: Vec::new(),
            quarantined: false,
            body,
            stored: stored.unwrap_or_default(),
            lease,
            expires_in: ttls.into_iter().nth(usize::from(!is_pending)).and_then(expiry_of),
        };
        self.locate(&mut detail, queue).await?;
        let nothing = detail.places.is_empty() && !detail.quarantined && detail.body == Body::Missing;
        Ok((!nothing).then_some(detail))
    }

    /// Fills in where a task is listed: in the queue that its record names, or else in the first known one that has it.
    async fn locate(&self, detail: &mut TaskDetail, hint: Option<&str>) -> Result<(), BackendError> {
        let mut queues: Vec<String> =
            detail.record().map(|record| record.spec.queue_name.clone()).into_iter().collect();
        queues.extend(hint.map(str::to_owned));
        if queues.is_empty() {
            queues = self.known_queues().await?;
        }
        let id = detail.id.as_str();
        let keys = self.keys();
        let score = |key: String| {
            let mut cmd = redis::cmd("ZSCORE");
            cmd.arg(key).arg(id);
            cmd
        };
        let mut cmds: Vec<Cmd> = Vec::with_capacity(queues.len() * 6);
        for queue in &queues {
            cmds.extend(Segment::ALL.map(|segment| score(keys.segment(queue, segment))));
            cmds.push(score(keys.quarantine(queue)));
        }
        let mut answers = self.link().commands(cmds, Resend::Safe).await?.into_iter();
        for queue in &queues {
            let mut places = Vec::new();
            let mut number = || -> Result<Option<f64>, BackendError> {
                match self.typed(answers.next().unwrap_or(Ok(Value::Nil)))? {
                    Typed::Value(value) => Answer::new("find", value).optional().map(Answer::number).transpose(),
                    Typed::OtherType => Ok(None),
                }
            };
            for segment in Segment::ALL {
                if let Some(score) = number()? {
                    places.push((segment, score));
                }
            }
            let quarantined = number()?.is_some();
            if detail.places.is_empty() && !detail.quarantined && (!places.is_empty() || quarantined) {
                (detail.places, detail.quarantined, detail.queue) = (places, quarantined, Some(queue.clone()));
            }
        }
        if detail.queue.is_none() {
            detail.queue = detail.record().map(|record| record.spec.queue_name.clone());
        }
        Ok(())
    }

    /// The answer to one command of a pipeline, with a key of another type told apart.
    fn typed(&self, answer: RedisResult<Value>) -> Result<Typed, BackendError> {
        match answer {
            Ok(value) => Ok(Typed::Value(value)),
            Err(error) if error.code() == Some("WRONGTYPE") => Ok(Typed::OtherType),
            Err(error) if error.kind() == ErrorKind::UnexpectedReturnType => Ok(Typed::OtherType),
            Err(error) => Err(BackendError::sort(error, self.endpoint())),
        }
    }
}

enum Typed {
    Value(Value),
    OtherType,
}

fn expiry_of(ttl: Typed) -> Option<Duration> {
    match ttl {
        Typed::Value(value) => Answer::new("find", value).count().ok().map(Duration::from_millis),
        Typed::OtherType => None,
    }
}

pub(super) fn row(entry: Answer, queue: &str, segment: Segment) -> Result<TaskRow, BackendError> {
    let [id, score, length, head, tail, fields @ ..] = entry.array::<9>()?;
    let lease = lease_of(fields.into_iter())?;
    let length = length.integer()?;
    let summary = match length {
        -1 => Summary::Missing,
        -2 => Summary::Unreadable {
            reason: "its key holds another type than the layout says".into(),
            head: String::new(),
        },
        _ => excerpt(&head.bytes()?, &tail.bytes()?, lease.is_some()),
    };
    Ok(TaskRow {
        id: TaskId::new(id.text()?),
        queue: queue.to_owned(),
        segment,
        score: score.number()?,
        length: u64::try_from(length).ok(),
        summary,
        lease,
    })
}

/// The lease that these fields tell: worker, start, token, sequence. None where there is no worker.
pub(super) fn lease_of(mut fields: impl Iterator<Item = Answer>) -> Result<Option<Lease>, BackendError> {
    let mut text = || fields.next().map_or(Ok(None), Answer::text_or_none);
    let (worker, started_at, token, sequence) = (text()?, text()?, text()?, text()?);
    Ok(worker.map(|worker| Lease {
        worker,
        started_at: started_at.and_then(|text| Stamp::parse(&text)),
        token: token.unwrap_or_default(),
        sequence: sequence.and_then(|text| text.parse().ok()),
    }))
}
