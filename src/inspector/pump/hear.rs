//! Listening to telemetry: many events become few messages.

use crate::inspector::msg::Msg;
use crate::inspector::source::{Source, TelemetryEvent};
use std::collections::HashMap;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until};

/// How long events gather before they are told.
const GATHER: Duration = Duration::from_millis(200);
/// A subscription that has not failed within this time is taken to stand, though nothing was heard yet.
const STANDS_AFTER: Duration = Duration::from_secs(1);
/// The pauses before a lost channel is asked for again: at first, and at most.
const PAUSE: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(10));

/// Listens until nobody wants to hear it.
pub async fn listen<S: Source>(source: &S, out: &mpsc::Sender<Msg>) {
    let mut counts: HashMap<String, (u32, u32)> = HashMap::new();
    let mut stands = false;
    let mut pause = PAUSE.0;
    loop {
        let asked = Instant::now();
        let mut told = asked;
        let next = source.telemetry();
        tokio::pin!(next);
        let heard = loop {
            tokio::select! {
                heard = &mut next => break heard,
                () = sleep_until(asked + STANDS_AFTER), if !stands => {
                    stands = true;
                    if out.send(Msg::TelemetryBack).await.is_err() {
                        return;
                    }
                }
                () = sleep_until(told + GATHER), if !counts.is_empty() => {
                    told = Instant::now();
                    let flows = counts.drain().map(|(queue, (entered, left))| (queue, entered, left)).collect();
                    if out.send(Msg::Telemetry(flows)).await.is_err() {
                        return;
                    }
                }
            }
        };
        match heard {
            Ok(events) => {
                if !stands {
                    stands = true;
                    if out.send(Msg::TelemetryBack).await.is_err() {
                        return;
                    }
                }
                pause = PAUSE.0;
                events.into_iter().for_each(|event| count(&mut counts, event));
            }
            Err(why) => {
                stands = false;
                counts.clear();
                if out.send(Msg::TelemetryLost(why)).await.is_err() {
                    return;
                }
                sleep(pause).await;
                pause = (pause * 2).min(PAUSE.1);
            }
        }
    }
}

fn count(counts: &mut HashMap<String, (u32, u32)>, event: TelemetryEvent) {
    match event {
        TelemetryEvent::Ingress(queue) => counts.entry(queue).or_default().0 += 1,
        TelemetryEvent::Egress(queue) => counts.entry(queue).or_default().1 += 1,
        // What became due, or was given back, had come in before.
        TelemetryEvent::Wake(_) => {}
    }
}
