//! The terminal: taken, and given back in every case.

use crossterm::clipboard::CopyToClipboard;
use crossterm::cursor::{Hide, Show};
use crossterm::event::{
    DisableBracketedPaste, DisableFocusChange, DisableMouseCapture, EnableBracketedPaste, EnableFocusChange,
    EnableMouseCapture,
};
use crossterm::terminal::{
    BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode,
    enable_raw_mode,
};
use crossterm::{execute, queue};
use ratatui::backend::{Backend, CrosstermBackend};
use std::cell::Cell;
use std::future::Future;
use std::io::{self, BufWriter, IsTerminal, Stdout, Write};
use std::panic::PanicHookInfo;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once, PoisonError};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// A frame is written at once where it is not larger than this.
const FRAME_BYTES: usize = 64 * 1_024;
/// Panics of other threads that are kept until the screen is given back.
const WITHHELD_MAX: usize = 8;
/// Time for a stop to take hold; the rest of it passes after the process is continued.
const STOP_TAKES: Duration = Duration::from_millis(100);

/// Whether the screen is ours.
static OURS: AtomicBool = AtomicBool::new(false);
/// What other threads had to say of their panics meanwhile.
static WITHHELD: Mutex<Vec<String>> = Mutex::new(Vec::new());

thread_local! {
    /// Whether this thread is in the middle of what makes the screen.
    static ON_SCREEN: Cell<bool> = const { Cell::new(false) };
}

/// A screen that can do more than draw.
pub trait Screen: Backend {
    /// The error of the backend as one of input and output.
    fn to_io(error: Self::Error) -> io::Error;
    /// What follows is one picture.
    fn begin(&mut self) -> io::Result<()>;
    /// The picture is complete.
    fn end(&mut self) -> io::Result<()>;
    /// Puts a text on the clipboard of the terminal, over ssh too.
    fn copy(&mut self, text: &str) -> io::Result<()>;
    /// Gives the terminal back, stops the process, and takes the terminal again when it is continued.
    fn suspend(&mut self, mouse: bool) -> io::Result<()>;
}

impl<W: Write> Screen for CrosstermBackend<W> {
    fn to_io(error: io::Error) -> io::Error {
        error
    }

    fn begin(&mut self) -> io::Result<()> {
        queue!(self, BeginSynchronizedUpdate)
    }

    fn end(&mut self) -> io::Result<()> {
        execute!(self, EndSynchronizedUpdate)
    }

    fn copy(&mut self, text: &str) -> io::Result<()> {
        execute!(self, CopyToClipboard::to_clipboard_from(text))
    }

    fn suspend(&mut self, mouse: bool) -> io::Result<()> {
        leave();
        // As the terminal would do it: the whole foreground group stops, so that the shell sees the job stopped.
        rustix::process::kill_current_process_group(rustix::process::Signal::TSTP)?;
        std::thread::sleep(STOP_TAKES);
        enter(mouse)
    }
}

/// A backend on the standard output that writes a frame at once.
pub fn backend() -> CrosstermBackend<BufWriter<Stdout>> {
    CrosstermBackend::new(BufWriter::with_capacity(FRAME_BYTES, io::stdout()))
}

/// Whether input and output are a terminal.
pub fn is_terminal() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Ends when the process is asked to end: SIGTERM, or SIGHUP when the terminal is closed.
pub fn asked_to_end() -> io::Result<impl Future<Output = ()>> {
    let mut terminated = signal(SignalKind::terminate())?;
    let mut hung_up = signal(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
            _ = terminated.recv() => {}
            _ = hung_up.recv() => {}
        }
    })
}

/// Holds the terminal; dropping it gives the terminal back.
pub struct Guard(());

impl Guard {
    /// Takes the terminal.
    pub fn enter(mouse: bool) -> io::Result<Self> {
        install_hook();
        let guard = Self(());
        enter(mouse)?;
        Ok(guard)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        leave();
        // After a panic in the middle of a picture, its beginning may have been written after all.
        drop(execute!(io::stdout(), EndSynchronizedUpdate));
        let withheld = std::mem::take(&mut *WITHHELD.lock().unwrap_or_else(PoisonError::into_inner));
        for panic in withheld {
            // Where there is nowhere to write it, nobody can be told.
            let _ = writeln!(io::stderr(), "{panic}");
        }
    }
}

/// Runs a part of making the screen; a panic within it gives the terminal back before it is printed.
pub fn on_screen<T>(part: impl FnOnce() -> T) -> T {
    struct Reset;
    impl Drop for Reset {
        fn drop(&mut self) {
            ON_SCREEN.set(false);
        }
    }
    ON_SCREEN.set(true);
    let _reset = Reset;
    part()
}

fn enter(mouse: bool) -> io::Result<()> {
    OURS.store(true, Ordering::SeqCst);
    enable_raw_mode()?;
    let mut out = io::stdout();
    execute!(out, EnterAlternateScreen, EnableBracketedPaste, EnableFocusChange, Hide)?;
    if mouse {
        execute!(out, EnableMouseCapture)?;
    }
    Ok(())
}

/// Gives the terminal back, as far as there still is one; once only.
fn leave() {
    if OURS.swap(false, Ordering::SeqCst) {
        let mut out = io::stdout();
        let all = execute!(
            out,
            EndSynchronizedUpdate,
            DisableMouseCapture,
            DisableFocusChange,
            DisableBracketedPaste,
            LeaveAlternateScreen,
            Show
        );
        // A terminal that is gone needs nothing back.
        drop(all);
        drop(disable_raw_mode());
    }
}

/// Puts itself before the panic hook that is there, once.
///
/// A panic of the screen's own code gives the terminal back first. One of another thread must not write over the
/// screen, which lives on; it is kept until the end.
fn install_hook() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info: &PanicHookInfo| {
            if !OURS.load(Ordering::SeqCst) {
                before(info);
            } else if ON_SCREEN.get() {
                leave();
                before(info);
            } else {
                let mut withheld = WITHHELD.lock().unwrap_or_else(PoisonError::into_inner);
                if withheld.len() < WITHHELD_MAX {
                    withheld.push(info.to_string());
                }
            }
        }));
    });
}
