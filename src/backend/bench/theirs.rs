//! Transitions of the shape of the Python package 0.8.4: what it sends for each step, in scripts of our own, as the
//! yardstick. They are measured, never used.

use super::{BenchOptions, Sample, ours, sample};
use crate::backend::answer::Answer;
use crate::backend::codec::{Attempt, decode, encode, queued, success};
use crate::backend::connection::Resend;
use crate::backend::retry::score_of;
use crate::backend::{Backend, BackendError, Token};
use crate::task::{RawJson, Segment};
use chrono::Utc;
use futures_util::{TryStreamExt, stream};
use redis::Cmd;

/// One pop after the other, each with its lease: KEYS ready running, ARGV count deadline worker started_at token prefix.
const ACQUIRE: &str = r"
local got = {}
while #got < tonumber(ARGV[1]) do
  local top = redis.call('ZPOPMIN', KEYS[1])
  if #top == 0 then break end
  local key = ARGV[6] .. top[1]
  local data = redis.call('HGET', key, 'data')
  redis.call('ZADD', KEYS[2], ARGV[2], top[1])
  redis.call('HSET', key, 'lease_worker', ARGV[3], 'lease_started_at', ARGV[4], 'lease_token', ARGV[5])
  got[#got + 1] = { top[1], data, ARGV[5] }
end
return got
";

/// One result: KEYS task result running history channel, ARGV id token result ttl finish oldest message.
const ACKNOWLEDGE: &str = r"
if redis.call('HGET', KEYS[1], 'lease_token') ~= ARGV[2] then return 0 end
if not redis.call('ZSCORE', KEYS[3], ARGV[1]) then return 0 end
redis.call('ZREM', KEYS[3], ARGV[1])
redis.call('SET', KEYS[2], ARGV[3], 'EX', ARGV[4])
redis.call('DEL', KEYS[1])
redis.call('ZADD', KEYS[4], ARGV[5], ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[4], '-inf', ARGV[6])
redis.call('PUBLISH', KEYS[5], ARGV[7])
return 1
";

/// Enqueues by one transaction a task, pipelined.
pub async fn enqueue(backend: &Backend, queue: &str, options: BenchOptions) -> Result<Sample, BackendError> {
    let now = Utc::now();
    let cmds: Vec<Cmd> = (0..options.tasks)
        .flat_map(|n| {
            let task = ours::task(queue, n);
            let record = queued(&task, backend.alias(), now);
            transaction(backend, queue, task.id.as_str(), &encode(&record), &score_of(&record))
        })
        .collect();
    let work = stream::iter(cmds.chunks(6 * options.batch).map(Ok))
        .try_for_each_concurrent(options.in_flight, async |cmds| {
            backend.link().commands(cmds.to_vec(), Resend::Never).await.map(|_| ())
        });
    sample(backend, work).await
}

fn transaction(backend: &Backend, queue: &str, id: &str, data: &str, score: &str) -> [Cmd; 6] {
    let keys = backend.keys();
    let cmd = |name: &str, args: &[&str]| {
        let mut cmd = redis::cmd(name);
        args.iter().for_each(|arg| {
            cmd.arg(*arg);
        });
        cmd
    };
    let task = keys.task(id);
    [
        cmd("MULTI", &[]),
        cmd("HSET", &[&task, "data", data, "score", score]),
        cmd("EXPIRE", &[&task, "97200"]),
        cmd("PUBLISH", &[&keys.telemetry(), &format!("ingress:{queue}")]),
        cmd("ZADD", &[&keys.segment(queue, Segment::Ready), score, id]),
        cmd("EXEC", &[]),
    ]
}

/// Acquires in batches and acknowledges one by one, pipelined, until the queue is empty.
pub async fn drain(backend: &Backend, queue: &str, options: BenchOptions) -> Result<Sample, BackendError> {
    let shas = [load(backend, ACQUIRE).await?, load(backend, ACKNOWLEDGE).await?];
    let lanes = stream::iter((0..options.in_flight).map(Ok));
    let work =
        lanes.try_for_each_concurrent(options.in_flight, async |_| lane(backend, queue, options.batch, &shas).await);
    sample(backend, work).await
}

async fn load(backend: &Backend, script: &str) -> Result<String, BackendError> {
    let mut cmd = redis::cmd("SCRIPT");
    cmd.arg("LOAD").arg(script);
    Answer::new("bench", backend.link().command(cmd, Resend::Safe).await?).text()
}

async fn lane(backend: &Backend, queue: &str, batch: usize, shas: &[String; 2]) -> Result<(), BackendError> {
    let keys = backend.keys();
    let (running, history) = (keys.segment(queue, Segment::Running), keys.segment(queue, Segment::Successful));
    loop {
        let (token, now) = (Token::new(), Utc::now());
        let at = now.timestamp_millis();
        let mut cmd = redis::cmd("EVALSHA");
        cmd.arg(&shas[0]).arg(2).arg(keys.segment(queue, Segment::Ready)).arg(&running);
        cmd.arg(batch).arg(at + 3_600_000).arg("bench").arg(now.to_rfc3339()).arg(&token.as_str()[..24]);
        cmd.arg(keys.task_prefix());
        let got = Answer::new("bench", backend.link().command(cmd, Resend::Never).await?).list()?;
        if got.is_empty() {
            return Ok(());
        }
        let attempt = Attempt { worker: "bench".into(), started_at: now, finished_at: now };
        let mut cmds = Vec::with_capacity(got.len());
        for task in got {
            let [id, data, token] = task.array()?;
            let (id, token) = (id.text()?, token.text()?);
            let Ok(record) = decode(&data.bytes()?) else { continue };
            let mut cmd = redis::cmd("EVALSHA");
            cmd.arg(&shas[1]).arg(5).arg(keys.task(&id)).arg(keys.result(&id)).arg(&running).arg(&history);
            cmd.arg(keys.telemetry()).arg(&id).arg(&token).arg(encode(&success(&record, &attempt, RawJson::null())));
            cmd.arg(86_400).arg(at).arg(at - 86_400_000).arg(format!("egress:{queue}"));
            cmds.push(cmd);
        }
        backend.link().commands(cmds, Resend::Never).await?;
    }
}
