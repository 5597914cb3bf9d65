//! A Django site's tasks, run by our children and by the Python package's worker.

mod pool;
mod same;
mod script;
mod supervisor;

use crate::common::{Django, TestRedis};
use threadmill::backend::{Backend, RedisUrl, Settings};
use threadmill::worker::python::PythonOptions;
use threadmill::worker::{Stopper, Summary, Worker, WorkerOptions};

/// One child with one thread, for this site.
fn options(site: &Django) -> PythonOptions {
    let mut options = PythonOptions::new(site.dir());
    options.python = Some(crate::common::python::python());
    options.settings = Some("settings".into());
    options.workers = 1;
    options
}

fn backend(redis: &TestRedis) -> Backend {
    Backend::new(Settings::new(RedisUrl::parse(&redis.url()).unwrap())).unwrap()
}

/// A worker of ours for the site, in this process.
struct Ours {
    stopper: Stopper,
    run: tokio::task::JoinHandle<Summary>,
}

impl Ours {
    fn start(backend: Backend, queues: &[&str], python: PythonOptions) -> Self {
        let options = WorkerOptions { queues: queues.iter().map(|q| (*q).to_owned()).collect(), ..Default::default() };
        let worker = Worker::new(backend).options(options).python(python);
        let stopper = Stopper::new();
        let of_worker = stopper.clone();
        let run = tokio::spawn(async move { worker.run_with(of_worker).await.unwrap_or_else(|e| panic!("{e:?}")) });
        Ours { stopper, run }
    }

    async fn stop(self) -> Summary {
        self.stopper.stop();
        self.run.await.unwrap()
    }
}
