//! A program in a pseudo-terminal, and what a person would see there.

use super::binary::{BINARY, Home};
use super::wait::LIMIT;
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::LocalModes;
use std::io::{Read as _, Write};
use std::num::NonZeroU16;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// What the keys of a keyboard send.
pub mod keys {
    pub const ENTER: &str = "\r";
    pub const ESCAPE: &str = "\x1b";
    pub const TAB: &str = "\t";
    pub const BACK_TAB: &str = "\x1b[Z";
    pub const BACKSPACE: &str = "\x7f";
    pub const UP: &str = "\x1b[A";
    pub const DOWN: &str = "\x1b[B";
    pub const RIGHT: &str = "\x1b[C";
    pub const LEFT: &str = "\x1b[D";
    pub const HOME: &str = "\x1b[H";
    pub const END: &str = "\x1b[F";
    pub const PAGE_UP: &str = "\x1b[5~";
    pub const PAGE_DOWN: &str = "\x1b[6~";
    pub const CTRL_C: &str = "\x03";
    pub const CTRL_Z: &str = "\x1a";
}

/// A running program and its screen; killed on drop.
pub struct Screen {
    child: Box<dyn Child + Send + Sync>,
    master: Box<dyn MasterPty + Send>,
    keyboard: Box<dyn Write + Send>,
    terminal: Arc<Terminal>,
}

#[derive(Default)]
struct Terminal {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    parser: vt100::Parser,
    raw: Vec<u8>,
    closed: bool,
}

impl Screen {
    /// Starts the binary under test in a terminal of this size.
    pub fn threadmill(home: &Home, args: &[&str], columns: u16, rows: u16) -> Self {
        let mut command = CommandBuilder::new(BINARY);
        command.args(args);
        Self::start(home, command, columns, rows)
    }

    /// Starts any program there, with the environment of this home.
    pub fn start(home: &Home, mut command: CommandBuilder, columns: u16, rows: u16) -> Self {
        command.env_clear();
        command.env("TERM", "xterm-256color");
        command.env("COLORTERM", "truecolor");
        for (name, value) in home.environment() {
            command.env(name, value);
        }
        command.cwd(home.path());
        let pair = native_pty_system().openpty(size(columns, rows)).expect("a pseudo-terminal");
        let child = pair.slave.spawn_command(command).expect("the program can be started");
        // Ours must be closed for the end of the program's to be seen.
        drop(pair.slave);
        let terminal = Arc::new(Terminal::default());
        resize_parser(&mut terminal.state().parser, columns, rows);
        let mut output = pair.master.try_clone_reader().expect("the terminal can be read");
        let shared = Arc::clone(&terminal);
        std::thread::spawn(move || {
            let mut chunk = [0; 8192];
            while let Ok(read @ 1..) = output.read(&mut chunk) {
                let mut state = shared.state();
                state.parser.process(&chunk[..read]);
                state.raw.extend_from_slice(&chunk[..read]);
                shared.changed.notify_all();
            }
            shared.state().closed = true;
            shared.changed.notify_all();
        });
        let keyboard = pair.master.take_writer().expect("the terminal can be written");
        Screen { child, master: pair.master, keyboard, terminal }
    }

    /// Types this; [`keys`] has those that are no letters.
    #[track_caller]
    pub fn send(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).expect("the terminal takes input");
        self.keyboard.flush().expect("the terminal takes input");
    }

    /// What stands on the screen: a line a row, without spaces at the ends.
    pub fn text(&self) -> String {
        self.look(|screen| screen.contents())
    }

    /// Looks at more than the text: colours, the cursor, whether the alternate screen is on.
    pub fn look<T>(&self, at: impl FnOnce(&vt100::Screen) -> T) -> T {
        at(self.terminal.state().parser.screen())
    }

    /// Every byte that the program wrote since the start.
    pub fn raw(&self) -> Vec<u8> {
        self.terminal.state().raw.clone()
    }

    /// Waits until the text on the screen is as wanted, and returns it; fails with the screen where that never comes.
    #[track_caller]
    pub fn wait_for(&self, what: &str, wanted: impl Fn(&str) -> bool) -> String {
        self.wait_until(what, |screen| {
            let text = screen.contents();
            wanted(&text).then_some(text)
        })
    }

    /// Waits until this text is on the screen.
    #[track_caller]
    pub fn wait_for_text(&self, text: &str) -> String {
        self.wait_for(&format!("the screen shows {text:?}"), |screen| screen.contains(text))
    }

    /// Waits until a look at the screen finds something.
    #[track_caller]
    pub fn wait_until<T>(&self, what: &str, find: impl Fn(&vt100::Screen) -> Option<T>) -> T {
        let start = Instant::now();
        let mut state = self.terminal.state();
        loop {
            if let Some(found) = find(state.parser.screen()) {
                return found;
            }
            if state.closed || start.elapsed() > LIMIT {
                let end = if state.closed { "the program ended" } else { "waited in vain" };
                let screen = state.parser.screen().contents();
                drop(state);
                panic!("{end}: {what}\n--- screen\n{screen}\n---");
            }
            let waited = self.terminal.changed.wait_timeout(state, Duration::from_millis(200));
            state = waited.unwrap_or_else(|poisoned| poisoned.into_inner()).0;
        }
    }

    /// Gives the terminal another size; the program is told.
    pub fn resize(&self, columns: u16, rows: u16) {
        resize_parser(&mut self.terminal.state().parser, columns, rows);
        self.master.resize(size(columns, rows)).expect("the terminal can be resized");
    }

    pub fn pid(&self) -> u32 {
        self.child.process_id().expect("the program was started")
    }

    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.pid().cast_signed()).expect("a process id");
        let _ = kill_process(pid, signal);
    }

    /// Whether the terminal is as a shell leaves it: lines are edited and echoed.
    pub fn is_cooked(&self) -> bool {
        let Some(fd) = self.master.as_raw_fd() else { return false };
        // SAFETY: the descriptor belongs to `self.master`, which outlives this borrow.
        let fd = unsafe { std::os::fd::BorrowedFd::borrow_raw(fd) };
        rustix::termios::tcgetattr(fd)
            .is_ok_and(|settings| settings.local_modes.contains(LocalModes::ICANON | LocalModes::ECHO))
    }

    /// Waits for the program's end and returns its exit code; fails where a signal ended it. All output has been read then.
    #[track_caller]
    pub fn wait_exit(&mut self) -> i32 {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("the child can be waited for") {
                break status;
            }
            assert!(start.elapsed() < LIMIT, "the program does not end\n--- screen\n{}\n---", self.text());
            std::thread::sleep(Duration::from_millis(5));
        };
        let mut state = self.terminal.state();
        while !state.closed && start.elapsed() < LIMIT {
            let waited = self.terminal.changed.wait_timeout(state, Duration::from_millis(200));
            state = waited.unwrap_or_else(|poisoned| poisoned.into_inner()).0;
        }
        match status.signal() {
            None => status.exit_code().cast_signed(),
            Some(name) => panic!("a signal ended the program: {name}\n{}", state.parser.screen().contents()),
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Terminal {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

fn size(columns: u16, rows: u16) -> PtySize {
    PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 }
}

fn resize_parser(parser: &mut vt100::Parser, columns: u16, rows: u16) {
    let at_least_one = |number| NonZeroU16::new(number).unwrap_or(NonZeroU16::MIN);
    parser.set_size(at_least_one(rows), at_least_one(columns));
}
