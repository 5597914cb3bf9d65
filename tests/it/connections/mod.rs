//! Everywhere that Redis runs, and what happens when it does not: each test with servers of its own.

mod acl;
mod cluster;
mod durable;
mod faults;
mod outages;
mod sentinel;
mod servers;
mod table;
mod tls;
