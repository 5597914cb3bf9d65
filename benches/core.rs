//! The core on a private Redis: our transitions beside those of the Python package's shape. Prints ratios.

use std::process::{Child, Command, Stdio};
use threadmill::backend::bench::{BenchOptions, DRAIN_OURS, DRAIN_THEIRS, ENQUEUE_BULK, ENQUEUE_ONE};
use threadmill::backend::{Backend, RedisUrl, Settings};

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let port = fastrand::u16(20_000..30_000);
    let server = Command::new("redis-server")
        .args(["--port", &port.to_string(), "--save", "", "--bind", "127.0.0.1"])
        .stdout(Stdio::null())
        .spawn()
        .expect("redis-server is on PATH");
    let _server = Server(server);
    let url = RedisUrl::parse(&format!("redis://127.0.0.1:{port}/0")).expect("a plain URL");
    let backend = Backend::new(Settings::new(url)).expect("plain settings");
    while backend.ping().await.is_err() {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let report = backend.bench(BenchOptions::default(), |run| eprintln!("{run}")).await.expect("the bench runs");
    for figure in &report.figures {
        println!("{:<28} {:>9.0} tasks/s {:>7.2} us of the server a task", figure.name, figure.rate, figure.server_us);
    }
    for (name, base) in [(DRAIN_OURS, DRAIN_THEIRS), (ENQUEUE_BULK, ENQUEUE_ONE)] {
        println!("{name} / {base}: {:.2} of the server's time", report.server_ratio(name, base).unwrap_or(0.0));
    }
}
