//! Every integration test, in one binary so that it is linked once.
//!
//! Each test that needs Redis starts a private server; the tests against the Python package start that, too. Run them
//! by `script/test`, which gets what is missing.

mod cli;
mod common;
mod connections;
mod demo;
mod django;
mod doctor;
mod harness;
mod inspector;
mod interop;
mod model;
mod readers;
mod rooms;
mod states;
mod transitions;
mod worker;
