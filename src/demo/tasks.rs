//! The shop's tasks: they take a while, they fail in several ways, and some ask for more time.

use crate::native::{Backoff, Failure, Registry, State, Task, TaskContext, TaskError};
use serde::{Deserialize, Serialize};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Soon again, and not often: the demo is looked at for minutes.
const SOON: Backoff =
    Backoff::new().base_delay(Duration::from_secs(2)).max_delay(Duration::from_secs(60)).max_retries(4);
/// Only what may pass by itself is tried again.
const IF_IT_PASSES: Backoff = SOON.expected(&["builtins.ConnectionError", "builtins.TimeoutError"]);

pub(super) const CONFIRM: Task<Order, Receipt> = Task::new("shop.orders.confirm").priority(5).retry(SOON);
pub(super) const SEND: Task<(String, String), String> =
    Task::new("shop.emails.send").queue("emails").retry(IF_IT_PASSES);
pub(super) const THUMBNAIL: Task<Image, Thumbnail> =
    Task::new("shop.media.thumbnail").queue("media:thumbs").time_limit(Duration::from_secs(30));
pub(super) const REPORT: Task<Report, Vec<Line>> =
    Task::new("shop.reports.build").queue("daily reports").priority(-5).time_limit(Duration::from_secs(60));
pub(super) const SANDWICH: Task<(u32,), String> = Task::new("shop.kitchen.spread").queue("räksmörgås").retry_by(twice);
pub(super) const STOCK: Task<(), u32> = Task::new("shop.stock.sync");
/// Nobody registers this one: somebody forgot to deploy it.
pub(super) const FORGOTTEN: Task<(String,), ()> = Task::new("shop.legacy.import_csv");

/// A customer's order.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Order {
    pub order: u32,
    pub customer: String,
    pub total: f64,
}

/// What the payment provider answers.
#[derive(Debug, Serialize)]
pub(super) struct Receipt {
    order: u32,
    reference: String,
    paid: bool,
}

/// A picture to be made small.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Image {
    pub path: String,
    pub width: u32,
    pub height: u32,
}

/// The small picture.
#[derive(Debug, Serialize)]
pub(super) struct Thumbnail {
    path: String,
    bytes: u64,
}

/// A report to be made.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Report {
    pub day: String,
    pub rows: u32,
}

/// A line of a report.
#[derive(Debug, Serialize)]
pub(super) struct Line {
    department: String,
    revenue: f64,
}

#[derive(Debug, thiserror::Error)]
#[error("the payment of order {order} was not taken")]
struct PaymentError {
    order: u32,
    #[source]
    source: GatewayError,
}

#[derive(Debug, thiserror::Error)]
enum GatewayError {
    #[error("the card was declined (code {0})")]
    Declined(u16),
    #[error("the gateway gave no answer")]
    Silent(#[source] io::Error),
}

#[derive(Debug, thiserror::Error)]
#[error("{path} is no image that can be read")]
struct ImageError {
    path: String,
    #[source]
    source: io::Error,
}

#[derive(Debug, thiserror::Error)]
#[error("the figures of {day} cannot be added up")]
struct ReportError {
    day: String,
    #[source]
    source: std::num::ParseFloatError,
}

/// How fast the shop works: in a hurry while its history is made.
#[derive(Clone)]
pub(super) struct Pace(Arc<AtomicBool>);

impl Pace {
    pub fn hurried() -> Self {
        Self(Arc::new(AtomicBool::new(true)))
    }

    pub fn relax(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// How long a piece of work takes of between `from` and `to` milliseconds.
    fn of(&self, from: u64, to: u64) -> Duration {
        let ms = if self.0.load(Ordering::Relaxed) { 0 } else { fastrand::u64(from..to) };
        Duration::from_millis(ms)
    }
}

/// Every task of the shop. They need a `Pace` as state, which [`super::start`] gives.
pub fn registry() -> Registry {
    let mut registry = Registry::new();
    registry.task(CONFIRM, confirm);
    registry.task(SEND, send);
    registry.blocking_task(THUMBNAIL, thumbnail);
    registry.task(REPORT, report);
    registry.task(SANDWICH, spread);
    registry.task(STOCK, sync);
    registry
}

/// One in so many.
fn one_in(many: u32) -> bool {
    fastrand::u32(0..many) == 0
}

async fn confirm(order: Order, State(pace): State<Pace>) -> Result<Receipt, TaskError> {
    tokio::time::sleep(pace.of(40, 400)).await;
    if one_in(12) {
        let silent = io::Error::new(io::ErrorKind::TimedOut, "no bytes in 30 s");
        let source = if one_in(2) { GatewayError::Declined(51) } else { GatewayError::Silent(silent) };
        let is_final = matches!(source, GatewayError::Declined(_));
        let error = TaskError::from(PaymentError { order: order.order, source });
        return Err(if is_final { error.class("builtins.ValueError").never_retry() } else { error });
    }
    let reference = format!("pay_{:08x}", fastrand::u32(..));
    Ok(Receipt { order: order.order, reference, paid: order.total > 0.0 })
}

async fn send((to, template): (String, String), State(pace): State<Pace>) -> Result<String, TaskError> {
    tokio::time::sleep(pace.of(80, 600)).await;
    if template == "newsletter" && one_in(8) {
        let refused = io::Error::new(io::ErrorKind::ConnectionRefused, "smtp.shop.example:587 refused the connection");
        return Err(TaskError::from(refused).class("builtins.ConnectionRefusedError"));
    }
    if !to.contains('@') {
        return Err(TaskError::new(format!("{to:?} is no address")).class("builtins.ValueError"));
    }
    Ok(format!("<{:016x}@shop.example>", fastrand::u64(..)))
}

fn thumbnail(image: Image, State(pace): State<Pace>, context: TaskContext) -> Result<Thumbnail, TaskError> {
    std::thread::sleep(pace.of(100, 700));
    if context.is_cancelled() {
        return Err(TaskError::new("the time is over").class("builtins.TimeoutError"));
    }
    if image.path.ends_with(".tiff") {
        let source = io::Error::new(io::ErrorKind::InvalidData, "byte 8: unknown compression 34712");
        return Err(ImageError { path: image.path, source }.into());
    }
    let path = format!("{}@{}x{}.webp", image.path, image.width, image.height);
    Ok(Thumbnail { path, bytes: u64::from(image.width) * u64::from(image.height) / 7 })
}

async fn report(report: Report, State(pace): State<Pace>, context: TaskContext) -> Result<Vec<Line>, TaskError> {
    let end = tokio::time::sleep(pace.of(6_000, 25_000));
    tokio::select! {
        () = end => {}
        () = context.cancellation().cancelled() => {
            return Err(TaskError::new("asked to stop before the last page").class("builtins.TimeoutError"));
        }
    }
    if one_in(5) {
        let source = "1,204.50".parse::<f64>().err();
        return Err(source
            .map_or_else(|| TaskError::new("no figures"), |source| ReportError { day: report.day, source }.into()));
    }
    let departments = ["shoes", "hats", "räksmörgåsar", "garden"];
    let line = |name: &str| Line { department: name.to_owned(), revenue: f64::from(report.rows) * 12.5 };
    Ok(departments.map(line).into())
}

async fn spread((slices,): (u32,), State(pace): State<Pace>) -> Result<String, TaskError> {
    tokio::time::sleep(pace.of(100, 900)).await;
    let shrimps = [7_u32, 5, 3];
    // A defect, as they happen: nobody thought of a fourth slice.
    let per_slice = shrimps[slices as usize];
    Ok(format!("räksmörgås, {per_slice} räkor per skiva"))
}

/// A policy of the program itself: twice, quickly.
fn twice(failure: &Failure<'_>) -> Option<Duration> {
    (failure.attempt < 3).then_some(Duration::from_secs(3))
}

async fn sync(State(pace): State<Pace>, context: TaskContext) -> Result<u32, TaskError> {
    tokio::time::sleep(pace.of(20, 80)).await;
    if context.attempt() == 1 && one_in(4) {
        return Err(TaskError::snooze(Duration::from_secs(5)));
    }
    if one_in(15) {
        return Err(TaskError::new("the stock list is locked by another process")
            .class("builtins.BlockingIOError")
            .retry_in(Duration::from_secs(8)));
    }
    Ok(fastrand::u32(1..500))
}
