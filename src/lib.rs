//! A durable task queue on Redis.
pub mod backend;
pub mod cli;
pub mod demo;
pub mod filter;
pub mod inspector;
pub mod native;
pub mod task;
pub mod worker;
