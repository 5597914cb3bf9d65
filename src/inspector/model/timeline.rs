//! What happened to a task, one attempt under the other; and what its tracebacks say, the site's own frames set apart.

use crate::filter::frames;
use crate::inspector::format;
use crate::inspector::model::detail::VALUES;
use crate::inspector::model::doc::{Doc, Live};
use crate::inspector::model::tree::Folds;
use crate::inspector::source::TaskDetail;
use crate::inspector::theme::Role;
use crate::task::{Segment, Stamp, TaskRecord};

/// Attempts that are told one by one.
const ATTEMPTS_MAX: usize = 50;

/// The attempts: who, how they ended, and when, as far as the record keeps it.
pub fn attempts(doc: &mut Doc, detail: &TaskDetail, record: &TaskRecord) {
    doc.blank();
    let workers = detail.workers();
    let enqueued = record.enqueued_at.as_ref().map(Stamp::millis);
    if let Some(at) = enqueued {
        doc.live("attempts", VALUES, Role::Dim, Live::Moment(at, Some(format!("enqueued {}", stored(record)))));
    } else {
        doc.text("attempts", VALUES, Role::Dim, if workers.is_empty() { "none yet" } else { "" });
    }
    if enqueued.is_some() && workers.is_empty() {
        doc.text("", VALUES, Role::Dim, "none yet");
    }
    let skipped = workers.len().saturating_sub(ATTEMPTS_MAX);
    if skipped > 0 {
        doc.text("", VALUES, Role::Dim, format!("{} earlier ones", format::exact(skipped as u64)));
    }
    for (at, worker) in workers.iter().enumerate().skip(skipped) {
        let (role, ended) = ended(at, &workers, detail, record);
        let text = format!("{:<3} {worker}   {ended}", at + 1);
        doc.text("", VALUES, role, text);
    }
}

/// The moment of the enqueue as it is stored.
fn stored(record: &TaskRecord) -> &str {
    record.enqueued_at.as_ref().map_or("", Stamp::as_str)
}

/// How the attempt at this place ended.
fn ended(at: usize, workers: &[String], detail: &TaskDetail, record: &TaskRecord) -> (Role, String) {
    let last = at + 1 == workers.len();
    if last && detail.lease.is_some() {
        return (Role::Good, "runs now".into());
    }
    let offset = record.started_at.as_ref().zip(record.enqueued_at.as_ref());
    let waited = offset.map(|(started, enqueued)| format!("+{}, ", format::span(started.millis() - enqueued.millis())));
    let took = record.started_at.as_ref().zip(record.finished_at.as_ref());
    let took = took.map(|(started, finished)| format!("took {}, ", format::span(finished.millis() - started.millis())));
    // Only of the last attempt are the times kept.
    let times =
        if last { format!("{}{}", waited.unwrap_or_default(), took.unwrap_or_default()) } else { String::new() };
    if last && detail.segment() == Some(Segment::Successful) {
        return (Role::Good, format!("{times}returned"));
    }
    // Errors are one for each failed attempt; where there are fewer, it is the earliest attempts that left none.
    let finished = workers.len() - usize::from(detail.lease.is_some() || detail.segment() == Some(Segment::Successful));
    let error = (at + record.errors.len()).checked_sub(finished).and_then(|nth| record.errors.get(nth));
    match error {
        Some(error) => (Role::Text, format!("{times}{}", error.summary())),
        None => (Role::Dim, format!("{times}no error is kept")),
    }
}

/// A traceback: the site's own frames bright, runs of library frames on one line until they are opened.
pub fn traceback(doc: &mut Doc, text: &str, name: &str, folds: &Folds, signs: [&'static str; 2]) {
    let text = text.trim_end();
    let frames = frames(text);
    let mut at = 0;
    let mut nth = 0;
    while nth < frames.len() {
        let frame = &frames[nth];
        plain(doc, text.get(at..frame.at.start), Role::Text);
        if frame.own {
            plain(doc, text.get(frame.at.start..frame.at.end.min(text.len())), Role::Bright);
            at = frame.at.end;
            nth += 1;
            continue;
        }
        // Frames that follow each other without anything between.
        let mut end = nth + 1;
        while end < frames.len() && !frames[end].own && frames[end].at.start == frames[end - 1].at.end {
            end += 1;
        }
        let group = format!("{name}/frames/{nth}");
        let is_open = folds.is_open(&group, folds.frames);
        let count = end - nth;
        let places: Vec<_> = frames[nth..end].iter().map(crate::filter::Frame::place).collect();
        let what = if count == 1 { "library frame" } else { "library frames" };
        let line = format!("{} {count} {what}: {}", signs[usize::from(is_open)], places.join(", "));
        doc.fold("", 4, Role::Dim, group, line);
        at = frames[end - 1].at.end;
        if is_open {
            plain(doc, text.get(frames[nth].at.start..at.min(text.len())), Role::Dim);
        }
        nth = end;
    }
    plain(doc, text.get(at.min(text.len())..), Role::Text);
}

/// Text as it stands, where there is any.
fn plain(doc: &mut Doc, text: Option<&str>, role: Role) {
    if let Some(text) = text.map(|text| text.trim_end_matches('\n')).filter(|text| !text.trim().is_empty()) {
        doc.text("", 2, role, text);
    }
}
