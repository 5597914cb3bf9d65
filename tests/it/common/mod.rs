//! What the integration tests share: servers, a faulty network, the Python package, the binary, waiting.
#![allow(dead_code, unused_imports, reason = "parts of a harness wait for their first user")]

pub mod binary;
pub mod cluster;
pub mod process;
pub mod proxy;
pub mod python;
pub mod screen;
pub mod sentinels;
pub mod server;
pub mod snapshot;
pub mod wait;

pub use binary::{Home, Output, Running};
pub use cluster::Cluster;
pub use proxy::{Lose, Proxy};
pub use python::{Django, PythonWorker};
pub use screen::{Screen, keys};
pub use sentinels::Sentinels;
pub use server::TestRedis;
pub use snapshot::{Entry, Snapshot, Value};
pub use wait::{eventually, eventually_async, eventually_some};
