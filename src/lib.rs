//! A durable task queue on Redis, on the layout of the Python package `threadmill` 0.8.4.
//!
//! A task is one value; the same value enqueues it and registers its function:
//!
//! ```no_run
//! use std::time::Duration;
//! use threadmill::backend::{Backend, RedisUrl, Settings};
//! use threadmill::native::{Task, TaskError};
//! use threadmill::worker::Worker;
//!
//! const ADD: Task<(i64, i64), i64> = Task::new("shop.tasks.add");
//!
//! async fn add((a, b): (i64, i64)) -> Result<i64, TaskError> {
//!     Ok(a + b)
//! }
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let backend = Backend::new(Settings::new(RedisUrl::parse("redis://localhost:6379/0")?))?;
//! let handle = backend.enqueue_task(&ADD.with((40, 2))).await?;
//! // Here, or in another process:
//! tokio::spawn(Worker::new(backend.clone()).task(ADD, add).run());
//! assert_eq!(handle.wait(Duration::from_secs(10)).await?, 42);
//! # Ok(())
//! # }
//! ```
//!
//! The rooms of the crate, from the bottom up; `ARCHITECTURE.md` says what each may touch and why:
//!
//! - [`task`]: what a task is; pure values.
//! - [`backend`]: the only room that knows Redis; every transition is one atomic script with a typed wrapper.
//! - [`filter`]: which tasks are meant, and which failures belong together.
//! - [`native`]: what a Rust program says: tasks, handlers, extractors, handles.
//! - [`worker`]: takes tasks, runs them, tells Redis how they ended, keeps the queues in order.
//! - [`inspector`]: the terminal dashboard.
//! - [`demo`]: a small living shop on a private Redis.
//! - [`cli`]: the command line; [`cli::main_with`] gives a program of yours every verb.

pub mod backend;
pub mod cli;
pub mod demo;
pub mod filter;
pub mod inspector;
pub mod native;
pub mod task;
pub mod worker;
