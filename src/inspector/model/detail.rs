//! One task as a document: what an operator asks first comes first.

use crate::inspector::format;
use crate::inspector::model::doc::{Doc, Live};
use crate::inspector::model::timeline;
use crate::inspector::model::tree::{Folds, Tree};
use crate::inspector::source::{Body, TaskDetail};
use crate::inspector::theme::Role;
use crate::task::{Lease, Retry, Score, Segment, Stamp, TaskRecord};

/// The column at which values begin.
pub(super) const VALUES: u16 = 14;

/// The document of a task; `arrived_ms` is when it was read, by this machine's clock.
pub fn document(detail: &TaskDetail, arrived_ms: f64, folds: &Folds, ascii: bool) -> Doc {
    let mut doc = Doc::default();
    let signs = if ascii { ["+", "-"] } else { ["▸", "▾"] };
    title(&mut doc, detail);
    if let Some(lease) = &detail.lease {
        held(&mut doc, lease, detail);
    }
    match &detail.body {
        Body::Record(record) => {
            values(&mut doc, detail, record, folds, signs);
            errors(&mut doc, record, folds, signs);
            timeline::attempts(&mut doc, detail, record);
            facts(&mut doc, detail, record);
        }
        Body::Unreadable(reason) => {
            doc.blank();
            doc.text("unreadable", VALUES, Role::Wrong, reason.as_str());
        }
        Body::Missing => {
            doc.blank();
            doc.text("no record", VALUES, Role::Wrong, "this id is listed, and nothing is stored");
        }
    }
    doc.blank();
    places(&mut doc, detail);
    if let Some(left) = detail.expires_in {
        doc.live("expires", VALUES, Role::Text, Live::Moment(arrived_ms + left.as_secs_f64() * 1_000.0, None));
    }
    if matches!(detail.body, Body::Unreadable(_)) || folds.raw {
        doc.blank();
        doc.text("stored", VALUES, Role::Text, &*String::from_utf8_lossy(&detail.stored));
    }
    doc
}

/// Arguments and the result: as a tree, or as they are stored.
fn values(doc: &mut Doc, detail: &TaskDetail, record: &TaskRecord, folds: &Folds, signs: [&'static str; 2]) {
    doc.blank();
    let result = detail.return_value();
    let values = [("args", Some(&record.args)), ("kwargs", Some(&record.kwargs)), ("result", result)];
    for (label, value) in values.into_iter().filter_map(|(label, value)| Some((label, value?))) {
        if folds.raw {
            doc.text(label, VALUES, Role::Text, value.as_str());
        } else {
            Tree { doc, folds, signs }.value(label, VALUES, value.as_str());
        }
    }
}

/// The errors, the last one first, since it is the one that is asked for.
fn errors(doc: &mut Doc, record: &TaskRecord, folds: &Folds, signs: [&'static str; 2]) {
    for (at, error) in record.errors.iter().enumerate().rev() {
        doc.blank();
        let heading = if record.errors.len() == 1 {
            error.class_path.clone()
        } else {
            format!("{}   (error {} of {})", error.class_path, at + 1, record.errors.len())
        };
        doc.text("error", VALUES, Role::Wrong, heading);
        if error.traceback.trim().is_empty() {
            continue;
        }
        // Only the last one is open by itself: the earlier ones mostly say the same.
        let name = format!("error/{at}");
        let last = at + 1 == record.errors.len();
        if !last {
            let is_open = folds.is_open(&name, false);
            let text = format!("{} {}", signs[usize::from(is_open)], error.summary());
            doc.fold("", 2, Role::Text, name.as_str(), text);
            if !is_open {
                continue;
            }
        }
        timeline::traceback(doc, &error.traceback, &name, folds, signs);
    }
}

fn title(doc: &mut Doc, detail: &TaskDetail) {
    if let Some(record) = detail.record() {
        doc.text("", 0, Role::Bright, record.spec.func.as_str());
    }
    let segment = detail.segment();
    let attempts = detail.attempts();
    // How many attempts there were, only the record knows.
    let tries = match (detail.record(), attempts) {
        (None, _) => String::new(),
        (_, 1) => " after 1 attempt".to_owned(),
        _ => format!(" after {attempts} attempts"),
    };
    let finished = detail.record().and_then(|record| record.finished_at.as_ref());
    let enqueued = detail.record().and_then(|record| record.enqueued_at.as_ref());
    let leased = detail.lease.as_ref().and_then(|lease| lease.started_at.as_ref());
    let (role, words, moment) = match segment {
        Some(Segment::Failed) => (Role::Wrong, format!("FAILED{tries}"), finished.map(Stamp::millis)),
        Some(Segment::Successful) => (Role::Good, format!("SUCCESSFUL{tries}"), finished.map(Stamp::millis)),
        Some(Segment::Running) => (Role::Good, format!("RUNNING, attempt {attempts}"), leased.map(Stamp::millis)),
        Some(Segment::Scheduled) => (Role::Text, format!("SCHEDULED{tries}"), detail.score()),
        Some(Segment::Ready) => (Role::Text, format!("READY{tries}"), enqueued.map(Stamp::millis)),
        None if detail.quarantined => (Role::Wrong, "in QUARANTINE".to_owned(), None),
        None => (Role::Soon, "in no segment".to_owned(), None),
    };
    let both = if detail.places.len() > 1 { ", and in another segment too" } else { "" };
    match moment {
        Some(at) => doc.live("", 0, role, Live::Since(format!("{words}{both}"), at)),
        None => doc.text("", 0, role, format!("{words}{both}")),
    }
    doc.text("", 0, Role::Dim, detail.id.as_str());
}

fn held(doc: &mut Doc, lease: &Lease, detail: &TaskDetail) {
    doc.blank();
    doc.text("held by", VALUES, Role::Text, lease.worker.as_str());
    stamp(doc, "held since", lease.started_at.as_ref());
    let deadline = detail.places.iter().find(|(segment, _)| *segment == Segment::Running).map(|(_, score)| *score);
    if let Some(deadline) = deadline {
        doc.live("lease until", VALUES, Role::Text, Live::Moment(deadline, None));
    }
    if let Some(sequence) = lease.sequence {
        doc.text("lease number", VALUES, Role::Text, sequence.to_string());
    }
}

fn facts(doc: &mut Doc, detail: &TaskDetail, record: &TaskRecord) {
    doc.blank();
    stamp(doc, "enqueued", record.enqueued_at.as_ref());
    stamp(doc, "run after", record.spec.run_after.as_ref());
    stamp(doc, "last attempt", record.last_attempted_at.as_ref());
    stamp(doc, "started", record.started_at.as_ref());
    stamp(doc, "finished", record.finished_at.as_ref());
    doc.blank();
    doc.text("status", VALUES, Role::Text, record.status.name());
    doc.text("priority", VALUES, Role::Text, record.spec.priority.raw.as_str());
    doc.text("attempts", VALUES, Role::Text, detail.attempts().to_string());
    doc.text("retry", VALUES, Role::Text, retry(record.spec.retry.as_ref()));
    doc.text("takes context", VALUES, Role::Text, if record.spec.takes_context { "yes" } else { "no" });
    doc.text("backend", VALUES, Role::Text, record.spec.backend.as_str());
}

/// Where it is listed, and with which score.
fn places(doc: &mut Doc, detail: &TaskDetail) {
    doc.text("id", VALUES, Role::Text, detail.id.as_str());
    doc.text("queue", VALUES, Role::Text, detail.queue.as_deref().unwrap_or("none"));
    for (segment, score) in &detail.places {
        doc.text("segment", VALUES, Role::Text, format!("{segment}, score {}", Score(*score)));
    }
    if detail.places.is_empty() {
        doc.text("segment", VALUES, Role::Text, "none");
    }
    if detail.quarantined {
        doc.text("quarantine", VALUES, Role::Wrong, "yes: set aside, since it could not be run");
    }
    doc.text("record", VALUES, Role::Text, format::bytes(detail.stored.len() as u64));
}

fn stamp(doc: &mut Doc, label: &'static str, stamp: Option<&Stamp>) {
    if let Some(stamp) = stamp {
        doc.live(label, VALUES, Role::Text, Live::Moment(stamp.millis(), Some(stamp.as_str().to_owned())));
    }
}

/// A retry policy in words.
fn retry(retry: Option<&Retry>) -> String {
    match retry {
        None => "never".into(),
        Some(Retry::Callback(path, raw)) => format!("{path}\n{raw}"),
        Some(Retry::Backoff(backoff, _)) => {
            let classes = if backoff.expected_exceptions.is_empty() {
                "no error".into()
            } else {
                backoff.expected_exceptions.join(", ")
            };
            format!(
                "up to {} attempts: {}, times {}, at most {}\nfor {classes}",
                backoff.max_retries,
                format::span(backoff.delay(1).as_secs_f64() * 1_000.0),
                backoff.factor,
                format::span(backoff.max_delay * 1_000.0),
            )
        }
    }
}
