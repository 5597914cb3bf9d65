//! The demo: a shop that lives, and leaves nothing behind.

use crate::common::eventually_async;
use std::path::Path;
use threadmill::backend::{Backend, RedisUrl, Settings, Summary};
use threadmill::demo::{DemoOptions, QUEUES, start};
use threadmill::task::Segment;

#[tokio::test(flavor = "multi_thread")]
async fn the_shop_has_every_segment_and_is_gone_at_the_end() {
    let demo = start(DemoOptions { history: 200, backlog: 60 }).await.unwrap();
    let backend = Backend::new(Settings::new(RedisUrl::parse(&demo.redis_url).unwrap())).unwrap();
    let queues = demo.queues.clone();
    assert_eq!(queues, QUEUES);
    let all = async || {
        let counts = backend.counts(&queues).await.unwrap();
        Segment::ALL.map(|segment| counts.iter().map(|queue| queue.of(segment)).sum::<u64>())
    };
    eventually_async("all segments hold tasks", async || all().await.iter().all(|count| *count > 0)).await;

    let classes = async || {
        let mut classes = std::collections::BTreeSet::new();
        for queue in &queues {
            for row in backend.page(queue, Segment::Failed, 0, 200).await.unwrap().rows {
                let Summary::Readable(readable) = row.summary else { panic!("{row:?}") };
                let error = readable.last_error.expect("a failed task has an error");
                assert!(error.summary().starts_with(&format!("{}: ", error.class_name())), "{}", error.traceback);
                classes.insert(error.class_path);
            }
        }
        classes
    };
    eventually_async("failures of several kinds", async || {
        let classes = classes().await;
        classes.contains("builtins.LookupError") && classes.len() >= 3
    })
    .await;

    let socket = demo.redis_url.strip_prefix("unix://").unwrap().to_owned();
    let folder = Path::new(&socket).parent().unwrap();
    assert!(folder.exists());
    demo.stop().await;
    assert!(!folder.exists());
    assert!(backend.ping().await.is_err());
}
