//! The tests of the script itself, which are Python's.

use crate::common::{Django, Running};
use std::process::Stdio;

#[test]
fn the_child_s_script_by_itself() {
    let site = Django::on("redis://127.0.0.1:1/0");
    std::fs::write(site.dir().join("child_test.py"), include_str!("../site/child_test.py")).unwrap();
    let mut command = site.python("child_test.py");
    command.env("CHILD_SCRIPT", concat!(env!("CARGO_MANIFEST_DIR"), "/assets/child.py"));
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    Running::start(command, Stdio::null()).wait().expect(0);
}
