//! The shop's customers.

use crate::backend::{Backend, BackendError};
use crate::demo::tasks::{CONFIRM, FORGOTTEN, Image, Order, REPORT, Report, SANDWICH, SEND, STOCK, THUMBNAIL};
use crate::native::Call;
use crate::task::NewTask;
use std::time::Duration;

/// The shop's queues: one has a colon in its name, one a space, one letters beyond ASCII.
pub const QUEUES: [&str; 5] = ["default", "emails", "media:thumbs", "daily reports", "räksmörgås"];

const DAY: Duration = Duration::from_secs(24 * 3600);
const CUSTOMERS: [&str; 6] = ["ada", "björn", "chen", "dolores", "emeka", "françois"];
/// Milliseconds between two arrivals, and how many come together at most.
const PAUSE_MS: std::ops::Range<u64> = 120..450;
const TOGETHER_MAX: usize = 4;
/// One arrival in so many is a burst, and how large it is.
const BURST_ONE_IN: u32 = 50;
const BURST: std::ops::Range<usize> = 40..110;

/// A call of any of the tasks.
struct Arrival(Result<NewTask, BackendError>);

impl<O> From<Call<O>> for Arrival {
    fn from(call: Call<O>) -> Self {
        Self(call.into_new_task())
    }
}

/// Makes arrivals and enqueues them.
pub(super) struct Traffic {
    backend: Backend,
}

impl Traffic {
    pub fn new(backend: Backend) -> Self {
        Self { backend }
    }

    /// What the shop did before anybody looked.
    pub async fn history(&self, count: usize) -> Result<(), BackendError> {
        let mut arrivals: Vec<Arrival> = (0..count).map(|_| arrival()).collect();
        arrivals.push(Arrival::from(FORGOTTEN.with(("customers-2019.csv".to_owned(),))));
        arrivals.push(Arrival::from(SEND.with(("ada at shop.example".to_owned(), "welcome".to_owned()))));
        arrivals.push(Arrival::from(SANDWICH.with((3,))));
        self.enqueue(arrivals).await
    }

    /// What waits, in seconds and in days.
    pub async fn backlog(&self, count: usize) -> Result<(), BackendError> {
        let mut arrivals: Vec<Arrival> = (0..count).map(|_| arrival()).collect();
        for days in [1, 2, 7, 30] {
            let report = Report { day: format!("in {days} days"), rows: 1000 * days };
            arrivals.push(Arrival::from(REPORT.with(report).run_in(DAY * days)));
        }
        for seconds in [15, 30, 45, 60, 90, 120, 600] {
            let call = STOCK.with(()).run_in(Duration::from_secs(seconds));
            arrivals.push(Arrival::from(call));
        }
        self.enqueue(arrivals).await
    }

    /// Goes on until it is dropped.
    pub async fn run(self) {
        loop {
            tokio::time::sleep(Duration::from_millis(fastrand::u64(PAUSE_MS))).await;
            let arrivals = match fastrand::u32(0..BURST_ONE_IN) {
                0 => burst(),
                _ => (0..fastrand::usize(1..=TOGETHER_MAX)).map(|_| arrival()).collect(),
            };
            if let Err(error) = self.enqueue(arrivals).await {
                tracing::warn!(error = %error, "customers are turned away");
            }
        }
    }

    async fn enqueue(&self, arrivals: Vec<Arrival>) -> Result<(), BackendError> {
        let mut tasks = arrivals.into_iter().map(|arrival| arrival.0).collect::<Result<Vec<_>, _>>()?;
        // Those of one queue travel together.
        tasks.sort_by(|a, b| a.queue.cmp(&b.queue));
        self.backend.enqueue(&tasks).await.map(drop)
    }
}

/// Somebody sends a newsletter, or uploads a folder.
fn burst() -> Vec<Arrival> {
    let mails = fastrand::bool();
    let one = |_| if mails { mail("newsletter") } else { image() };
    (0..fastrand::usize(BURST)).map(one).collect()
}

fn arrival() -> Arrival {
    match fastrand::u32(0..100) {
        0..40 => order(),
        40..62 => mail(["welcome", "receipt", "newsletter"][fastrand::usize(0..3)]),
        62..78 => image(),
        78..88 => {
            let slices = if fastrand::u32(0..12) == 0 { 3 } else { fastrand::u32(0..3) };
            Arrival::from(SANDWICH.with((slices,)))
        }
        88..97 => {
            let call = STOCK.with(());
            let later = fastrand::bool();
            Arrival::from(if later { call.run_in(Duration::from_secs(fastrand::u64(3..60))) } else { call })
        }
        _ => {
            let report =
                Report { day: format!("2026-{:02}-{:02}", fastrand::u8(1..13), fastrand::u8(1..29)), rows: 365 };
            Arrival::from(REPORT.with(report))
        }
    }
}

fn order() -> Arrival {
    let order = Order {
        order: fastrand::u32(10_000..99_999),
        customer: customer(),
        total: f64::from(fastrand::u16(..)) / 100.0,
    };
    let call = CONFIRM.with(order);
    // Some customers have paid for speed.
    Arrival::from(if fastrand::u32(0..6) == 0 { call.priority(9) } else { call })
}

fn mail(template: &str) -> Arrival {
    Arrival::from(SEND.with((format!("{}@example.org", customer()), template.to_owned())))
}

fn image() -> Arrival {
    let ending = if fastrand::u32(0..15) == 0 { "tiff" } else { "jpg" };
    let path = format!("/uploads/{:06x}.{ending}", fastrand::u32(0..0x00ff_ffff));
    Arrival::from(THUMBNAIL.with(Image { path, width: 320, height: 240 }))
}

fn customer() -> String {
    CUSTOMERS[fastrand::usize(0..CUSTOMERS.len())].to_owned()
}
