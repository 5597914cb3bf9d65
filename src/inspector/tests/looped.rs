//! The whole loop on a screen in memory, with a source that hangs, fails or is late. The time is tokio's, stood still.

use crate::inspector::msg::Query;
use crate::inspector::options::Options;
use crate::inspector::runner::{InspectorError, run_on};
use crate::inspector::source::{Body, TelemetryEvent};
use crate::inspector::terminal::Screen;
use crate::inspector::tests::fake::{Fake, Mode, NOW, Shop};
use crate::inspector::tests::stage::parse;
use crate::task::Segment;
use crossterm::event::Event;
use futures_util::Stream;
use futures_util::stream;
use ratatui::Terminal;
use ratatui::backend::{Backend, ClearType, TestBackend, WindowSize};
use ratatui::buffer::Cell;
use ratatui::layout::{Position, Size};
use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

/// A screen in memory that counts what it costs.
struct Counted {
    inner: TestBackend,
    seen: Arc<Seen>,
}

/// What was seen on it.
#[derive(Default)]
struct Seen {
    state: Mutex<State>,
    drawn: Notify,
}

#[derive(Clone, Default)]
struct State {
    text: String,
    frames: u64,
    cells: u64,
    clears: u64,
    copied: Vec<String>,
}

impl Seen {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

impl Backend for Counted {
    type Error = Infallible;

    fn draw<'a, I: Iterator<Item = (u16, u16, &'a Cell)>>(&mut self, content: I) -> Result<(), Infallible> {
        let cells: Vec<_> = content.collect();
        self.seen.state().cells += cells.len() as u64;
        self.inner.draw(cells.into_iter())
    }

    fn hide_cursor(&mut self) -> Result<(), Infallible> {
        self.inner.hide_cursor()
    }

    fn show_cursor(&mut self) -> Result<(), Infallible> {
        self.inner.show_cursor()
    }

    fn get_cursor_position(&mut self) -> Result<Position, Infallible> {
        self.inner.get_cursor_position()
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> Result<(), Infallible> {
        self.inner.set_cursor_position(position)
    }

    fn clear(&mut self) -> Result<(), Infallible> {
        self.seen.state().clears += 1;
        self.inner.clear()
    }

    fn clear_region(&mut self, clear_type: ClearType) -> Result<(), Infallible> {
        self.seen.state().clears += 1;
        self.inner.clear_region(clear_type)
    }

    fn size(&self) -> Result<Size, Infallible> {
        self.inner.size()
    }

    fn window_size(&mut self) -> Result<WindowSize, Infallible> {
        self.inner.window_size()
    }

    fn flush(&mut self) -> Result<(), Infallible> {
        self.inner.flush()
    }
}

impl Screen for Counted {
    fn to_io(error: Infallible) -> io::Error {
        match error {}
    }

    fn begin(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        let mut state = self.seen.state();
        state.frames += 1;
        state.text = self.inner.to_string();
        drop(state);
        self.seen.drawn.notify_waiters();
        Ok(())
    }

    fn copy(&mut self, text: &str) -> io::Result<()> {
        self.seen.state().copied.push(text.to_owned());
        Ok(())
    }

    fn suspend(&mut self, _: bool) -> io::Result<()> {
        Ok(())
    }
}

/// A running inspector.
struct Live {
    fake: Fake,
    seen: Arc<Seen>,
    events: Arc<Mutex<Option<mpsc::UnboundedSender<io::Result<Event>>>>>,
    ended: JoinHandle<Result<(), InspectorError>>,
}

impl Live {
    fn start(fake: Fake) -> Self {
        let seen = Arc::new(Seen::default());
        let screen = Counted { inner: TestBackend::new(80, 24), seen: Arc::clone(&seen) };
        let mut terminal = Terminal::new(screen).unwrap();
        let events: Arc<Mutex<Option<_>>> = Arc::default();
        let open = Arc::clone(&events);
        let source = fake.clone();
        let options = Options { queue: Some("emails".into()), ..Options::default() };
        let ended = tokio::spawn(async move {
            let started = Instant::now();
            let wall = move || NOW + started.elapsed().as_secs_f64() * 1_000.0;
            let open = || Box::pin(stream_of(&open)) as std::pin::Pin<Box<dyn Stream<Item = io::Result<Event>> + Send>>;
            run_on(&mut terminal, open, std::future::pending(), wall, source, options).await
        });
        Self { fake, seen, events, ended }
    }

    fn keys(&self, keys: &str) {
        let events = self.events.lock().unwrap();
        for key in parse(keys) {
            events.as_ref().unwrap().send(Ok(Event::Key(key))).unwrap();
        }
    }

    /// Waits until the screen shows this.
    async fn shows(&self, text: &str) {
        self.until(|state| state.text.contains(text), text).await;
    }

    async fn until(&self, condition: impl Fn(&State) -> bool, what: &str) {
        // Generous in tokio's time, which passes only while nothing else is to be done.
        let end = Instant::now() + Duration::from_secs(600);
        loop {
            let drawn = self.seen.drawn.notified();
            if condition(&self.seen.state()) {
                return;
            }
            let late = tokio::time::timeout_at(end, drawn).await.is_err();
            assert!(!late, "{what} was never shown:\n{}", self.seen.state().text);
        }
    }

    async fn quits(self) {
        self.keys("q");
        self.ended.await.unwrap().unwrap();
    }
}

fn stream_of(
    slot: &Arc<Mutex<Option<mpsc::UnboundedSender<io::Result<Event>>>>>,
) -> impl Stream<Item = io::Result<Event>> + use<> {
    let (sender, receiver) = mpsc::unbounded_channel();
    *slot.lock().unwrap() = Some(sender);
    stream::unfold(receiver, |mut receiver| async move { receiver.recv().await.map(|event| (event, receiver)) })
}

#[tokio::test(start_paused = true)]
async fn starts_shows_and_quits() {
    let live = Live::start(Fake::new(Shop::busy()));
    live.shows("1-13 of 412").await;
    live.keys("<enter>jj<enter>");
    live.shows("Traceback").await;
    live.keys("y");
    live.until(|state| state.copied.len() == 1, "the copy").await;
    live.keys("<c-z>");
    live.until(|state| state.clears > 0, "the screen after a suspension").await;
    live.quits().await;
}

#[tokio::test(start_paused = true)]
async fn with_redis_frozen_keys_still_draw_and_it_comes_back() {
    let live = Live::start(Fake::new(Shop::busy()));
    live.shows("1-13 of 412").await;
    live.fake.shop().mode = Mode::Hangs;
    live.shows("no answer for 7 s, trying").await;
    live.keys("?");
    live.shows("Go to the tasks").await;
    live.keys("<esc><enter>R");
    live.shows("locked until Redis answers").await;
    live.keys("jj");
    live.fake.shop().mode = Mode::Answers;
    live.shows("live").await;
    live.quits().await;
}

#[tokio::test(start_paused = true)]
async fn with_redis_gone_from_the_start_it_says_so_and_quits() {
    let fake = Fake::new(Shop::busy());
    fake.shop().mode = Mode::Fails("connection refused".into());
    let live = Live::start(fake);
    live.shows("connection refused").await;
    live.shows("no answer for 12 s, trying").await;
    live.fake.shop().mode = Mode::Answers;
    live.shows("1-13 of 412").await;
    live.quits().await;
    let fake = Fake::new(Shop::busy());
    fake.shop().mode = Mode::Hangs;
    let live = Live::start(fake);
    live.shows("connecting").await;
    live.quits().await;
}

#[tokio::test(start_paused = true)]
async fn with_redis_far_away_everything_still_arrives() {
    let fake = Fake::new(Shop::busy());
    fake.shop().mode = Mode::Late(Duration::from_millis(200));
    let live = Live::start(fake);
    live.shows("1-13 of 412").await;
    live.keys("<enter>jjjjjjj<enter>");
    live.shows("Traceback").await;
    // The tasks that were only passed by were not read.
    let read = live.fake.shop().asked.iter().filter(|query| matches!(query, Query::Detail(_))).count();
    assert!(read <= 2, "{read}");
    live.quits().await;
}

#[tokio::test(start_paused = true)]
async fn an_idle_inspector_draws_nothing() {
    let mut shop = Shop::busy();
    // Ages change each second and are worth a drawing; without tasks and with the same answers nothing is.
    shop.queues.values_mut().for_each(|(lists, _)| *lists = Default::default());
    let live = Live::start(Fake::new(shop));
    live.shows("nothing has failed").await;
    live.shows(" -      0      0      0      0").await;
    sleep(Duration::from_secs(3)).await;
    let before = live.seen.state().clone();
    let asked = live.fake.shop().asked.len();
    sleep(Duration::from_secs(30)).await;
    let after = live.seen.state().clone();
    assert!(live.fake.shop().asked.len() >= asked + 60, "it did look");
    assert_eq!(after.cells, before.cells, "equal answers draw no cell");
    assert_eq!(after.clears, 0);
    live.quits().await;
}

#[tokio::test(start_paused = true)]
async fn reads_are_bounded_by_what_is_on_the_screen() {
    let live = Live::start(Fake::new(Shop::busy()));
    live.shows("1-13 of 412").await;
    live.fake.shop().asked.clear();
    sleep(Duration::from_secs(20)).await;
    let asked = live.fake.shop().asked.clone();
    // Counts and the page each second, how the queues fare every other, the workers and the server every fifth.
    assert!(asked.len() <= 20 * 2 + 10 + 4 + 4 + 4, "{}", asked.len());
    assert!(!asked.iter().any(|query| matches!(query, Query::Survey { .. } | Query::Detail(_))));
    live.quits().await;
}

#[tokio::test(start_paused = true)]
async fn requeue_of_many_reports_each_end() {
    let live = Live::start(Fake::new(Shop::busy()));
    live.shows("1-13 of 412").await;
    live.keys("<enter>aR200");
    live.shows("Enter do it").await;
    {
        let mut shop = live.fake.shop();
        let failed = shop.list("emails", Segment::Failed);
        failed.drain(..3);
        failed[0].places[0].1 += 1.0;
        failed[9].body = Body::Unreadable("no JSON".into());
    }
    live.keys("<enter>");
    live.shows("195 requeued, 1 had moved, 3 gone, 1 failed: its record cannot be read").await;
    assert_eq!(live.fake.shop().done.len(), 195);
    live.quits().await;
}

#[tokio::test(start_paused = true)]
async fn a_purge_runs_in_slices_and_is_stopped() {
    let fake = Fake::new(Shop::busy());
    fake.shop().slice = 10;
    fake.shop().mode = Mode::Late(Duration::from_millis(300));
    let live = Live::start(fake);
    live.shows("1-13 of 412").await;
    live.keys("<enter>Pemails<enter>");
    live.shows("of 412  Esc stops").await;
    live.shows("30 of 412").await;
    live.keys("<esc>");
    live.shows("purged, stopped").await;
    let left = live.fake.shop().list("emails", Segment::Failed).len();
    assert!((1..400).contains(&left), "{left}");
    live.keys("Pemails<enter>");
    live.shows(&format!("{left} purged")).await;
    assert!(live.fake.shop().list("emails", Segment::Failed).is_empty());
    live.quits().await;
}

#[tokio::test(start_paused = true)]
async fn an_action_without_an_answer_is_unsure() {
    let live = Live::start(Fake::new(Shop::busy()));
    live.shows("1-13 of 412").await;
    live.keys("<enter>aD200");
    live.shows("Enter do it").await;
    live.fake.shop().mode = Mode::Hangs;
    live.keys("<enter>");
    live.shows("0 dropped, 200 unsure, look again").await;
    live.quits().await;
}

#[tokio::test(start_paused = true)]
async fn telemetry_becomes_rates() {
    let live = Live::start(Fake::new(Shop::busy()));
    live.shows("1-13 of 412").await;
    sleep(Duration::from_secs(2)).await;
    for _ in 0..10 {
        let events = vec![TelemetryEvent::Ingress("two words".into()); 70];
        live.fake.shop().events.extend(events);
        sleep(Duration::from_secs(1)).await;
    }
    live.until(|state| state.text.lines().any(|line| line.contains("two words") && line.contains('█')), "bars").await;
    live.quits().await;
}

#[tokio::test(start_paused = true)]
async fn the_end_of_events_and_of_the_process_end_it() {
    let live = Live::start(Fake::new(Shop::busy()));
    live.shows("1-13 of 412").await;
    *live.events.lock().unwrap() = None;
    assert!(matches!(live.ended.await.unwrap(), Err(InspectorError::Input(_))));
    let mut terminal = Terminal::new(Counted { inner: TestBackend::new(80, 24), seen: Arc::default() }).unwrap();
    let never = || stream::pending::<io::Result<Event>>();
    let asked = std::future::ready(());
    run_on(&mut terminal, never, asked, || NOW, Fake::default(), Options::default()).await.unwrap();
}
