//! A filter as it is decided: three answers, since not everything is known of every task.

use crate::backend::Summary;
use crate::filter::field::Field;
use crate::filter::pattern::Pattern;
use crate::filter::{Candidate, Fingerprint, data};
use crate::task::{ErrorRecord, RawJson, Segment, Stamp};

/// What a filter reads of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Needs {
    /// What lists read of it.
    Excerpt,
    /// Its whole record.
    Record,
}

/// A filter, or a part of one.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expr {
    /// Every one holds.
    All(Vec<Expr>),
    /// One holds.
    Any(Vec<Expr>),
    /// It does not hold.
    Not(Box<Expr>),
    /// One thing is asked.
    Test(Test),
}

/// One thing that is asked of a task.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Test {
    /// The words stand in what a person sees of it.
    Words(Pattern),
    /// A field is this.
    Field(Field, Pattern),
    /// A number compares like this.
    Number(Field, Op, f64),
    /// A moment, in milliseconds since 1970, compares like this.
    Moment(Field, Op, f64),
    /// It is in this segment.
    Segment(Segment),
    /// The value at a path of user data.
    Path(Field, Vec<String>, Wanted),
}

/// How two values compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Equal,
    Unequal,
    Less,
    AtMost,
    More,
    AtLeast,
}

/// What the value at a path should be.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Wanted {
    /// Anything at all.
    Any,
    /// This word or number.
    Word(Pattern),
    /// A number that compares like this.
    Number(Op, f64),
}

impl Op {
    fn holds(self, left: f64, right: f64) -> bool {
        match self {
            Op::Equal => left == right,
            Op::Unequal => left != right,
            Op::Less => left < right,
            Op::AtMost => left <= right,
            Op::More => left > right,
            Op::AtLeast => left >= right,
        }
    }
}

impl Expr {
    pub fn needs(&self) -> Needs {
        match self {
            Expr::All(parts) | Expr::Any(parts) => parts.iter().map(Expr::needs).max().unwrap_or(Needs::Excerpt),
            Expr::Not(part) => part.needs(),
            Expr::Test(test) => test.needs(),
        }
    }

    /// Whether it holds; none where that is not known.
    pub fn holds(&self, task: &Candidate) -> Option<bool> {
        match self {
            Expr::All(parts) => decided(parts, task, false),
            Expr::Any(parts) => decided(parts, task, true),
            Expr::Not(part) => part.holds(task).map(|holds| !holds),
            Expr::Test(test) => test.holds(task),
        }
    }
}

/// The answer of several: one that `decides` is enough; else every one must be known.
fn decided(parts: &[Expr], task: &Candidate, decides: bool) -> Option<bool> {
    let mut known = true;
    for part in parts {
        match part.holds(task) {
            Some(answer) if answer == decides => return Some(decides),
            Some(_) => {}
            None => known = false,
        }
    }
    known.then_some(!decides)
}

impl Test {
    fn needs(&self) -> Needs {
        match self {
            Test::Words(_) | Test::Path(..) => Needs::Record,
            Test::Field(field, _) => match field {
                Field::Worker | Field::Traceback | Field::Args | Field::Kwargs | Field::Result => Needs::Record,
                _ => Needs::Excerpt,
            },
            Test::Number(..) | Test::Moment(..) | Test::Segment(_) => Needs::Excerpt,
        }
    }

    fn holds(&self, task: &Candidate) -> Option<bool> {
        match self {
            Test::Words(pattern) => words(task, pattern),
            Test::Field(field, pattern) => field_is(task, *field, pattern),
            Test::Number(field, op, value) => number(task, *field).map(|found| {
                // What has none, such as the run time of what has not run, compares with nothing.
                found.is_some_and(|found| op.holds(found, *value))
            }),
            Test::Moment(field, op, value) => {
                moment(task, *field).map(|found| found.is_some_and(|found| op.holds(found, *value)))
            }
            Test::Segment(segment) => Some(task.row().segment == *segment),
            Test::Path(field, path, wanted) => at_path(task, *field, path, wanted),
        }
    }
}

fn words(task: &Candidate, pattern: &Pattern) -> Option<bool> {
    let row = task.row();
    if pattern.is_within(row.id.as_str()) {
        return Some(true);
    }
    match &row.summary {
        Summary::Missing => return Some(false),
        Summary::Unreadable { reason, head } => {
            return Some(pattern.is_within(reason) || pattern.is_within(head));
        }
        Summary::Readable(readable) if pattern.is_within(&readable.func) => return Some(true),
        Summary::Readable(_) => {}
    }
    let error = |error: &ErrorRecord| pattern.is_within(&error.class_path) || pattern.is_within(error.summary());
    if task.last_error().flatten().is_some_and(error) {
        return Some(true);
    }
    let record = task.record()?;
    let holds = |raw: &RawJson| within(raw.as_str(), pattern);
    Some(holds(&record.args) || holds(&record.kwargs) || holds(&record.return_value))
}

/// Whether raw JSON holds the words, as it is stored or as it reads.
fn within(raw: &str, pattern: &Pattern) -> bool {
    pattern.is_within(raw) || (raw.contains("\\u") && pattern.is_within(&data::plain(&format!("\"{raw}\""))))
}

fn field_is(task: &Candidate, field: Field, pattern: &Pattern) -> Option<bool> {
    let error = |holds: &dyn Fn(&ErrorRecord) -> bool| Some(task.last_error()?.is_some_and(holds));
    match field {
        Field::Id => Some(pattern.is_within(task.row().id.as_str())),
        Field::Queue => Some(pattern.is_whole(&task.row().queue)),
        Field::Func => Some(pattern.is_name(&task.readable()?.func)),
        Field::Error => error(&|error| pattern.is_name(&error.class_path)),
        Field::Message => error(&|error| pattern.is_within(error.summary())),
        Field::Incident => error(&|error| pattern.is_word(&Fingerprint::of(error).id())),
        Field::Traceback => Some(task.traceback()?.is_some_and(|text| pattern.is_within(text))),
        Field::Worker => {
            let held = task.row().lease.as_ref().is_some_and(|lease| pattern.is_word(&lease.worker));
            if held {
                return Some(true);
            }
            Some(task.record()?.worker_ids.iter().any(|worker| pattern.is_word(worker)))
        }
        Field::Args => {
            let record = task.record()?;
            Some(within(record.args.as_str(), pattern) || within(record.kwargs.as_str(), pattern))
        }
        Field::Kwargs => Some(within(task.record()?.kwargs.as_str(), pattern)),
        Field::Result => Some(within(task.record()?.return_value.as_str(), pattern)),
        _ => Some(false),
    }
}

/// A number of the task: none in the inner option where it has none, in the outer where that is not known.
fn number(task: &Candidate, field: Field) -> Option<Option<f64>> {
    match field {
        Field::Attempt => {
            let leased = u32::from(task.row().lease.is_some());
            let read = task.record().map(|record| record.attempts() + leased);
            Some(Some(f64::from(read.or(task.readable()?.attempts)?)))
        }
        Field::Priority => Some(Some(task.readable()?.priority)),
        Field::Size => Some(task.row().length.map(|length| length as f64)),
        Field::Age => {
            let known = task.readable().is_some() || task.row().segment.is_finished();
            known.then(|| task.since().map(|since| task.now_ms() - since))
        }
        Field::Took => {
            let readable = task.readable()?;
            let stamps = readable.started_at.as_ref().zip(readable.finished_at.as_ref());
            Some(stamps.map(|(started, finished)| finished.millis() - started.millis()))
        }
        // How far a moment is from now: back for what was, ahead for what is to come.
        Field::Due => Some(moment(task, field)?.map(|at| at - task.now_ms())),
        Field::Enqueued | Field::Started | Field::Finished => Some(moment(task, field)?.map(|at| task.now_ms() - at)),
        _ => Some(None),
    }
}

fn moment(task: &Candidate, field: Field) -> Option<Option<f64>> {
    let row = task.row();
    match field {
        Field::Due => Some((row.segment == Segment::Scheduled).then_some(row.score)),
        Field::Finished if row.segment.is_finished() => Some(task.since()),
        Field::Finished => Some(None),
        Field::Enqueued => Some(task.readable()?.enqueued_at.as_ref().map(Stamp::millis)),
        Field::Started => {
            task.readable()?;
            Some(task.started())
        }
        _ => Some(None),
    }
}

fn at_path(task: &Candidate, field: Field, path: &[String], wanted: &Wanted) -> Option<bool> {
    let record = task.record()?;
    let found = match field {
        Field::Args => data::in_arguments(record.args.as_str(), record.kwargs.as_str(), path),
        Field::Kwargs => data::at_path(record.kwargs.as_str(), path),
        _ => data::at_path(record.return_value.as_str(), path),
    };
    Some(found.into_iter().any(|raw| match wanted {
        Wanted::Any => true,
        Wanted::Word(pattern) => pattern.is_whole(&data::plain(raw)),
        Wanted::Number(op, value) => data::plain(raw).parse().is_ok_and(|found| op.holds(found, *value)),
    }))
}
