//! Everywhere that Redis runs, and what happens when it does not: each test with servers of its own.

mod faults;
mod table;
