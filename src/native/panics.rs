//! Panics of tasks: a failure of the task, and nothing more.

use crate::native::TaskError;
use crate::native::backtrace::captured_backtrace;
use crate::native::error::Place;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Once;
use std::task::{Context, Poll};

struct Noted {
    place: Option<Place>,
    backtrace: Option<String>,
}

thread_local! {
    /// Whether this thread runs a task at the moment.
    static IN_TASK: Cell<bool> = const { Cell::new(false) };
    static NOTED: RefCell<Option<Noted>> = const { RefCell::new(None) };
}

/// Puts a hook before the present one, once: the panic of a task is noted and not printed, since its failure tells it;
/// any other panic goes to the hook that was there.
pub(crate) fn install_hook() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !IN_TASK.get() {
                return previous(info);
            }
            let place = info.location().map(|at| Place { file: at.file().to_owned().into(), line: at.line() });
            let backtrace = captured_backtrace();
            NOTED.set(Some(Noted { place, backtrace }));
        }));
    });
}

/// Calls a task's code; a panic in it becomes an error.
pub(crate) fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, TaskError> {
    let before = IN_TASK.replace(true);
    // What the task shares with others it shares behind their own locks, which tell them of the panic.
    let answer = catch_unwind(AssertUnwindSafe(work));
    IN_TASK.set(before);
    answer.map_err(error_of)
}

fn error_of(payload: Box<dyn Any + Send>) -> TaskError {
    let message = match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (_, Some(text)) => text.clone(),
        _ => "a value that is no text".to_owned(),
    };
    let noted = NOTED.take();
    let (place, backtrace) = noted.map_or((None, None), |noted| (noted.place, noted.backtrace));
    let at = place.as_ref().map_or_else(String::new, |place| format!(" at {}:{}", place.file, place.line));
    TaskError::new(format!("panicked{at}: {message}")).kind("panic").at(place, backtrace)
}

/// A future of a task's code, whose panics become errors. It is not polled again after one.
pub(crate) struct Guarded<F>(pub Pin<Box<F>>);

impl<T, F: Future<Output = Result<T, TaskError>>> Future for Guarded<F> {
    type Output = Result<T, TaskError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match guarded(|| self.0.as_mut().poll(cx)) {
            Ok(poll) => poll,
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}
