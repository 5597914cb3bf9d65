//! Plain functions as handlers.
//!
//! A handler takes its task's arguments first (or nothing of them, where they are `()`), then up to six things that
//! implement [`Extract`], and returns a `Result`.

use crate::native::arguments::join;
use crate::native::{Extract, Input, IntoTaskError, States, TaskError};
use futures_util::future::{BoxFuture, FutureExt as _};
use serde::de::DeserializeOwned;
use std::future::Future;

/// An async function that runs a task. `M` only tells its shapes apart.
pub trait Handler<A, O, M>: Clone + Send + Sync + 'static {
    /// Begins an attempt.
    fn call(&self, input: Input) -> BoxFuture<'static, Result<O, TaskError>>;

    /// What its further arguments would miss.
    fn missing(states: &States) -> Option<&'static str>;
}

/// A blocking function that runs a task, on a thread of its own. `M` only tells its shapes apart.
pub trait BlockingHandler<A, O, M>: Clone + Send + Sync + 'static {
    /// Makes an attempt.
    ///
    /// # Errors
    /// Why the attempt failed.
    fn call(&self, input: Input) -> Result<O, TaskError>;

    /// What its further arguments would miss.
    fn missing(states: &States) -> Option<&'static str>;
}

/// Tells handlers that take the arguments from those that do not.
pub struct WithArguments;
/// Tells handlers that take the arguments from those that do not.
pub struct WithoutArguments;

/// The arguments as the handler's type; one that does not fit is a `TypeError`, as in Python.
fn arguments<A: DeserializeOwned>(input: &Input) -> Result<A, TaskError> {
    join(&input.args, &input.kwargs).map_err(|error| error.into_task_error().class("builtins.TypeError"))
}

macro_rules! handlers {
    ($($E:ident),*) => {
        impl<F, Fut, A, O, X, $($E,)*> Handler<A, O, (WithArguments, $($E,)*)> for F
        where
            F: Fn(A, $($E,)*) -> Fut + Clone + Send + Sync + 'static,
            Fut: Future<Output = Result<O, X>> + Send + 'static,
            A: DeserializeOwned + Send + 'static,
            X: IntoTaskError,
            O: 'static,
            $($E: Extract,)*
        {
            fn call(&self, input: Input) -> BoxFuture<'static, Result<O, TaskError>> {
                let handler = self.clone();
                async move {
                    let arguments = arguments::<A>(&input)?;
                    handler(arguments, $($E::extract(&input.context)?,)*).await.map_err(X::into_task_error)
                }
                .boxed()
            }

            fn missing(_states: &States) -> Option<&'static str> {
                None$(.or_else(|| $E::missing(_states)))*
            }
        }

        impl<F, Fut, O, X, $($E,)*> Handler<(), O, (WithoutArguments, $($E,)*)> for F
        where
            F: Fn($($E,)*) -> Fut + Clone + Send + Sync + 'static,
            Fut: Future<Output = Result<O, X>> + Send + 'static,
            X: IntoTaskError,
            O: 'static,
            $($E: Extract,)*
        {
            fn call(&self, input: Input) -> BoxFuture<'static, Result<O, TaskError>> {
                let handler = self.clone();
                async move {
                    arguments::<()>(&input)?;
                    handler($($E::extract(&input.context)?,)*).await.map_err(X::into_task_error)
                }
                .boxed()
            }

            fn missing(_states: &States) -> Option<&'static str> {
                None$(.or_else(|| $E::missing(_states)))*
            }
        }

        impl<F, A, O, X, $($E,)*> BlockingHandler<A, O, (WithArguments, $($E,)*)> for F
        where
            F: Fn(A, $($E,)*) -> Result<O, X> + Clone + Send + Sync + 'static,
            A: DeserializeOwned + Send + 'static,
            X: IntoTaskError,
            $($E: Extract,)*
        {
            fn call(&self, input: Input) -> Result<O, TaskError> {
                let arguments = arguments::<A>(&input)?;
                self(arguments, $($E::extract(&input.context)?,)*).map_err(X::into_task_error)
            }

            fn missing(_states: &States) -> Option<&'static str> {
                None$(.or_else(|| $E::missing(_states)))*
            }
        }

        impl<F, O, X, $($E,)*> BlockingHandler<(), O, (WithoutArguments, $($E,)*)> for F
        where
            F: Fn($($E,)*) -> Result<O, X> + Clone + Send + Sync + 'static,
            X: IntoTaskError,
            $($E: Extract,)*
        {
            fn call(&self, input: Input) -> Result<O, TaskError> {
                arguments::<()>(&input)?;
                self($($E::extract(&input.context)?,)*).map_err(X::into_task_error)
            }

            fn missing(_states: &States) -> Option<&'static str> {
                None$(.or_else(|| $E::missing(_states)))*
            }
        }
    };
}

handlers!();
handlers!(E1);
handlers!(E1, E2);
handlers!(E1, E2, E3);
handlers!(E1, E2, E3, E4);
handlers!(E1, E2, E3, E4, E5);
handlers!(E1, E2, E3, E4, E5, E6);
