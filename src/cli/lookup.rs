//! A task by its id, or by a part of it that names one task only.
//!
//! Ids that were made together share their head, and lists show their tail, so a part is what a person has at hand.
//! Redis cannot search by it: the newest tasks of each segment are looked through, and no more than that.

use crate::backend::{BackendError, TaskDetail};
use crate::cli::context::{Context, SEARCH};
use crate::cli::error::CliError;
use crate::task::{Segment, TaskId, visible};

/// Tasks that are looked through for a part of an id.
const LOOKED_AT: u64 = 5_000;
/// Tasks of one page.
const PAGE: u64 = 500;
/// The shortest part that is looked for.
const SHORTEST: usize = 4;
/// Ids that an ambiguous part is told with.
const TOLD: usize = 10;

/// Whether a part of an id that was not looked for everywhere may stand for a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// It may: nothing happens to the task.
    Looks,
    /// It may not: the task is changed.
    Acts,
}

/// The task of this id, or of the one id that this is a part of.
///
/// # Errors
/// Exit code 3 where there is none, 2 where several ids have that part.
pub async fn task(cx: &Context, id: &str, part: Part) -> Result<TaskDetail, CliError> {
    if let Some(detail) = cx.backend().find(&TaskId::from(id), None).await? {
        return Ok(detail);
    }
    let shown = visible(id);
    let missing = || CliError::not_found(format!("there is no task `{shown}` on backend `{}`", cx.backend().alias()));
    if !may_be_a_part(id) {
        return Err(missing().hint("results expire; a finished task is gone with its result"));
    }
    let (found, whole) = ids_with(cx, id).await?;
    match &found[..] {
        [] if whole => Err(missing().hint("no task that is listed has this as a part of its id")),
        [] => Err(missing().hint("not every task was looked at; give the whole id")),
        [_] if !whole && part == Part::Acts => {
            Err(CliError::refused(format!("`{shown}` is a part of an id, and not every task was looked at"))
                .hint(format!("give the whole id; {} has this part", visible(found[0].as_str()))))
        }
        [one] => cx.backend().find(one, None).await?.ok_or_else(missing),
        several => Err(CliError::usage(ambiguous(id, several))),
    }
}

fn ambiguous(part: &str, ids: &[TaskId]) -> String {
    let mut text = format!("`{}` is a part of several ids:", visible(part));
    for id in ids.iter().take(TOLD) {
        text.push_str(&format!("\n  {}", visible(id.as_str())));
    }
    if ids.len() > TOLD {
        text.push_str(&format!("\n  and {} more", ids.len() - TOLD));
    }
    text
}

/// Whether this can be a part of an id and not a whole one.
fn may_be_a_part(id: &str) -> bool {
    (SHORTEST..36).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

/// The ids that have this part, and whether every task was looked at.
async fn ids_with(cx: &Context, part: &str) -> Result<(Vec<TaskId>, bool), CliError> {
    let part = part.to_ascii_lowercase();
    let mut found = Vec::new();
    let (mut left, mut whole) = (LOOKED_AT, true);
    for queue in cx.queues(SEARCH).await? {
        for segment in Segment::ALL {
            let mut offset = 0;
            loop {
                let page = match cx.backend().page(&queue, segment, offset, PAGE.min(left.max(1))).await {
                    Ok(page) => page,
                    // A key of another type hides no task.
                    Err(BackendError::Refused { code, .. }) if code == "WRONGTYPE" => break,
                    Err(error) => return Err(error.into()),
                };
                let rows = page.rows.len() as u64;
                found.extend(page.rows.into_iter().map(|row| row.id).filter(|id| id.as_str().contains(&part)));
                offset += rows;
                left = left.saturating_sub(rows);
                if rows == 0 || offset >= page.total {
                    break;
                }
                if left == 0 {
                    whole = false;
                    break;
                }
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    Ok((found, whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_told_from_a_whole_id() {
        assert!(may_be_a_part("d320e7d4"));
        assert!(may_be_a_part("01a22df8-34ed"));
        assert!(!may_be_a_part("01a22df8-34ed-7724-a9cf-37fad320e7d4"));
        assert!(!may_be_a_part("abc"));
        assert!(!may_be_a_part("no-hex-here"));
    }

    #[test]
    fn many_ids_are_told_in_short() {
        let ids: Vec<TaskId> = (0..12).map(|n| TaskId::from(format!("abcd{n}"))).collect();
        let text = ambiguous("abcd", &ids);
        assert!(text.contains("abcd9") && !text.contains("abcd10") && text.ends_with("and 2 more"), "{text}");
    }
}
