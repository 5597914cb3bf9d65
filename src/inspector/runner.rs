//! The loop: what comes in is taken in, and when something has changed it is drawn, at most once a frame.

use crate::inspector::model::Model;
use crate::inspector::msg::{Clock, Effect, Msg};
use crate::inspector::options::Options;
use crate::inspector::pump::Pump;
use crate::inspector::source::Source;
use crate::inspector::terminal::{self, Guard, Screen};
use crate::inspector::update::update;
use crate::inspector::view::view;
use crossterm::event::{Event, EventStream};
use futures_util::{Stream, StreamExt};
use ratatui::Terminal;
use std::future::Future;
use std::io;
use std::task::Poll;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

/// The shortest time between two drawings.
const FRAME: Duration = Duration::from_millis(16);
/// The same where a key waits to be seen: a frame for an answer a moment ago must not hold it up.
const HURRIED_FRAME: Duration = Duration::from_millis(3);
/// How often the time is looked at.
const TICK: Duration = Duration::from_millis(250);
/// Messages that are taken in before the next drawing, at most.
const BATCH_MAX: usize = 512;

/// Why an inspector ended otherwise than by being told to.
#[derive(Debug, thiserror::Error)]
pub enum InspectorError {
    /// Input or output is no terminal.
    #[error("the inspector needs a terminal for its input and its output")]
    NotATerminal,
    /// The terminal cannot be set up or written to.
    #[error("cannot use the terminal")]
    Terminal(#[source] io::Error),
    /// The terminal sends no events any more.
    #[error("cannot read from the terminal")]
    Input(#[source] io::Error),
    /// The task that asks Redis has ended; its panic was printed.
    #[error("the task that asks Redis has ended")]
    Pump,
}

/// Shows `source` in this terminal until it is quit, or the process is asked to end.
///
/// The terminal is given back in every case, a panic included. Handlers for SIGTERM and SIGHUP are installed and stay:
/// the caller is expected to end the process afterwards.
pub async fn run<S: Source>(source: S, options: Options) -> Result<(), InspectorError> {
    if !terminal::is_terminal() {
        return Err(InspectorError::NotATerminal);
    }
    let quit = terminal::asked_to_end().map_err(InspectorError::Terminal)?;
    let guard = Guard::enter(options.mouse).map_err(InspectorError::Terminal)?;
    let mut screen = Terminal::new(terminal::backend()).map_err(InspectorError::Terminal)?;
    let ended = run_on(&mut screen, EventStream::new, quit, wall_ms, source, options).await;
    drop(guard);
    ended
}

/// The same on any screen, with any events; `quit` ends it, `wall_ms` tells the time.
pub async fn run_on<B, E, S>(
    screen: &mut Terminal<B>,
    open_events: impl Fn() -> E,
    quit: impl Future<Output = ()>,
    wall_ms: impl Fn() -> f64,
    source: S,
    options: Options,
) -> Result<(), InspectorError>
where
    B: Screen,
    E: Stream<Item = io::Result<Event>> + Unpin,
    S: Source,
{
    let (pump, inbox) = Pump::start(source);
    let started = Instant::now();
    let clock = move || Clock { mono: started.elapsed(), wall_ms: wall_ms() };
    let size = screen.size().map_err(|error| InspectorError::Terminal(B::to_io(error)))?;
    let model = Model::new(options, (size.width, size.height), clock());
    let events = Some(open_events());
    let mut looped = Loop { screen, pump, inbox, model, events, open_events, clock, drawn: None, is_hurried: false };
    looped.run(quit).await
}

struct Loop<'a, B: Screen, E, O, C> {
    screen: &'a mut Terminal<B>,
    pump: Pump,
    inbox: mpsc::Receiver<Msg>,
    model: Model,
    /// Absent only while the process is suspended.
    events: Option<E>,
    open_events: O,
    clock: C,
    drawn: Option<Instant>,
    /// Whether a person has done something since then.
    is_hurried: bool,
}

/// Whether to go on.
#[derive(PartialEq)]
enum Next {
    On,
    End,
}

impl<B, E, O, C> Loop<'_, B, E, O, C>
where
    B: Screen,
    E: Stream<Item = io::Result<Event>> + Unpin,
    O: Fn() -> E,
    C: Fn() -> Clock,
{
    async fn run(&mut self, quit: impl Future<Output = ()>) -> Result<(), InspectorError> {
        tokio::pin!(quit);
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        if self.take(Vec::new())? == Next::End {
            return Ok(());
        }
        loop {
            let frame = if self.is_hurried { HURRIED_FRAME } else { FRAME };
            let frame_at = self.drawn.map_or_else(Instant::now, |drawn| drawn + frame);
            if self.model.changed && Instant::now() >= frame_at {
                self.draw()?;
                continue;
            }
            let mut batch = Vec::new();
            tokio::select! {
                biased;
                () = &mut quit => batch.push(Msg::Quit),
                event = next(&mut self.events) => batch.extend(heard(event)?),
                msg = self.inbox.recv() => batch.push(msg.ok_or(InspectorError::Pump)?),
                () = sleep_until(frame_at), if self.model.changed => {}
                _ = tick.tick() => {}
            }
            // Whatever waits is taken in before the next drawing, so that a flood costs one frame.
            while batch.len() < BATCH_MAX {
                let Some(event) = waiting(&mut self.events).await else { break };
                batch.extend(heard(event)?);
            }
            while batch.len() < BATCH_MAX {
                let Ok(msg) = self.inbox.try_recv() else { break };
                batch.push(msg);
            }
            if self.take(batch)? == Next::End {
                return Ok(());
            }
        }
    }

    /// Takes messages in, the time first, and does what they ask for.
    fn take(&mut self, batch: Vec<Msg>) -> Result<Next, InspectorError> {
        let time = Msg::Tick((self.clock)());
        self.is_hurried |= batch.iter().any(|msg| matches!(msg, Msg::Key(_) | Msg::Mouse(_) | Msg::Resized(..)));
        for msg in std::iter::once(time).chain(batch) {
            let effects = terminal::on_screen(|| update(&mut self.model, msg));
            for effect in effects {
                if self.perform(effect)? == Next::End {
                    return Ok(Next::End);
                }
            }
        }
        Ok(Next::On)
    }

    fn perform(&mut self, effect: Effect) -> Result<Next, InspectorError> {
        match effect {
            Effect::Read(lane, id, query) => self.pump.read(lane, id, query),
            Effect::Act(id, action) => {
                if let Some(refused) = self.pump.act(id, action) {
                    return self.take(vec![refused]);
                }
            }
            Effect::Stop(id) => self.pump.stop(id),
            Effect::Copy(text) => self.screen.backend_mut().copy(&text).map_err(InspectorError::Terminal)?,
            Effect::Suspend => {
                // The stream has a thread that reads the terminal; it must be gone before the terminal is another's, and
                // before there can be a second stream.
                self.events = None;
                self.screen.backend_mut().suspend(self.model.options.mouse).map_err(InspectorError::Terminal)?;
                self.events = Some((self.open_events)());
                return self.take(vec![Msg::Resumed]);
            }
            Effect::Redraw => {
                // `Terminal::clear` asks where the cursor is, and the answer would end up among the events. So what was
                // drawn last is forgotten by hand.
                self.screen.backend_mut().clear().map_err(|error| InspectorError::Terminal(B::to_io(error)))?;
                self.screen.current_buffer_mut().reset();
                self.screen.swap_buffers();
                self.model.changed = true;
            }
            Effect::Quit => return Ok(Next::End),
        }
        Ok(Next::On)
    }

    fn draw(&mut self) -> Result<(), InspectorError> {
        self.model.changed = false;
        self.is_hurried = false;
        self.drawn = Some(Instant::now());
        self.screen.backend_mut().begin().map_err(InspectorError::Terminal)?;
        let model = &self.model;
        let drawn = terminal::on_screen(|| self.screen.draw(|frame| view(model, frame)).map(drop));
        let ended = self.screen.backend_mut().end();
        drawn.map_err(|error| InspectorError::Terminal(B::to_io(error)))?;
        ended.map_err(InspectorError::Terminal)
    }
}

/// The next event; there is none where there is no stream.
async fn next<E: Stream + Unpin>(events: &mut Option<E>) -> Option<E::Item> {
    match events {
        Some(events) => events.next().await,
        None => None,
    }
}

/// The event that waits already, where one does.
///
/// The stream keeps the waker of whoever asked it last and found nothing, so it must be asked in the name of this task:
/// with another's waker, the next key would not be noticed before something else happens.
async fn waiting<E: Stream + Unpin>(events: &mut Option<E>) -> Option<Option<E::Item>> {
    std::future::poll_fn(|context| {
        Poll::Ready(match events.as_mut().map(|events| events.poll_next_unpin(context)) {
            Some(Poll::Ready(event)) => Some(event),
            Some(Poll::Pending) | None => None,
        })
    })
    .await
}

/// An event of the terminal as a message; that there will be no more is the end.
fn heard(event: Option<io::Result<Event>>) -> Result<Option<Msg>, InspectorError> {
    let event = event.unwrap_or_else(|| Err(io::ErrorKind::UnexpectedEof.into())).map_err(InspectorError::Input)?;
    Ok(match event {
        Event::Key(key) => Some(Msg::Key(key)),
        Event::Paste(text) => Some(Msg::Paste(text)),
        Event::Mouse(mouse) => Some(Msg::Mouse(mouse)),
        Event::Resize(width, height) => Some(Msg::Resized(width, height)),
        Event::FocusGained => Some(Msg::Focus(true)),
        Event::FocusLost => Some(Msg::Focus(false)),
    })
}

/// Milliseconds since 1970.
fn wall_ms() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64() * 1_000.0)
}
