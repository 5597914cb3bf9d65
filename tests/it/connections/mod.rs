//! Everywhere that Redis runs, and what happens when it does not: each test with servers of its own.

mod cluster;
mod faults;
mod outages;
mod sentinel;
mod table;
