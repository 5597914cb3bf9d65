//! What 0.8.4 does to the same keys, command for command: unconditional, and without asking who holds a task.

use super::state::{QUEUES, Spot};
use redis::Connection;

fn prefix() -> &'static str {
    "threadmill:{default}:task:"
}

fn eval<T: redis::FromRedisValue>(connection: &mut Connection, script: &str, keys: &[String], args: &[&str]) -> T {
    let mut cmd = redis::cmd("EVAL");
    cmd.arg(script).arg(keys.len()).arg(keys).arg(args);
    cmd.query(connection).expect("the script of the Python package runs")
}

/// Its retry and its requeue: a MULTI that asks nothing.
pub fn requeue(connection: &mut Connection, queue: usize, id: &str, data: &[u8]) {
    let name = QUEUES[queue];
    let task = format!("{}{id}", prefix());
    redis::pipe()
        .atomic()
        .cmd("ZREM")
        .arg(Spot::Running.key(name))
        .arg(id)
        .cmd("ZREM")
        .arg(Spot::Failed.key(name))
        .arg(id)
        .cmd("DEL")
        .arg(format!("threadmill:{{default}}:result:{id}"))
        .cmd("HSET")
        .arg(&task)
        .arg("data")
        .arg(data)
        .arg("score")
        .arg("1796067570881.0")
        .arg("lease_worker")
        .arg("")
        .arg("lease_started_at")
        .arg("")
        .arg("lease_token")
        .arg("")
        .cmd("EXPIRE")
        .arg(&task)
        .arg(97_200)
        .cmd("ZADD")
        .arg(Spot::Scheduled.key(name))
        .arg(1000)
        .arg(id)
        .query::<()>(connection)
        .expect("a MULTI of plain commands");
}

/// Its acquire of one task: pops first, looks afterwards. Answers the id that it popped, and the token where it leased it.
pub fn acquire(connection: &mut Connection, queue: usize, token: &str) -> Option<(String, bool)> {
    let script = "local popped = redis.call('ZPOPMIN', KEYS[2]) \
        if #popped == 0 then return {} end \
        local time = redis.call('TIME') \
        if not redis.call('HGET', ARGV[1] .. popped[1], 'data') then return { popped[1], 0 } end \
        redis.call('ZADD', KEYS[1], time[1] * 1000 + 3600000, popped[1]) \
        redis.call('HSET', ARGV[1] .. popped[1], 'lease_worker', 'django:1-0', \
          'lease_started_at', '2026-11-30T19:39:31.425734+00:00', 'lease_token', ARGV[2]) \
        return { popped[1], 1 }";
    let name = QUEUES[queue];
    let keys = [Spot::Running.key(name), Spot::Ready.key(name)];
    let answer: Vec<redis::Value> = eval(connection, script, &keys, &[prefix(), token]);
    let id = redis::from_redis_value_ref(answer.first()?).expect("an id");
    let leased: i64 = redis::from_redis_value_ref(&answer[1]).expect("a flag");
    Some((id, leased == 1))
}

/// Its acknowledge. Answers whether the result was stored.
pub fn acknowledge(connection: &mut Connection, queue: usize, id: &str, token: &str, result: &str, good: bool) -> bool {
    let script = "local token = redis.call('HGET', KEYS[3], 'lease_token') \
        if token and token ~= ARGV[3] then return 0 end \
        if redis.call('ZREM', KEYS[1], ARGV[1]) == 0 then return 0 end \
        redis.call('SET', KEYS[2], ARGV[2], 'EX', 86400) \
        redis.call('DEL', KEYS[3]) \
        local time = redis.call('TIME') \
        redis.call('ZADD', KEYS[4], time[1] * 1000, ARGV[1]) \
        return 1";
    let name = QUEUES[queue];
    let history = if good { Spot::Successful } else { Spot::Failed };
    let keys = [
        Spot::Running.key(name),
        format!("threadmill:{{default}}:result:{id}"),
        format!("{}{id}", prefix()),
        history.key(name),
    ];
    eval::<i64>(connection, script, &keys, &[id, result, token]) == 1
}

/// Its mover: what is due goes to READY whether it runs or not; an id without a record vanishes.
pub fn mover(connection: &mut Connection, queue: usize) {
    let script = "local time = redis.call('TIME') \
        local due = redis.call('ZRANGEBYSCORE', KEYS[1], 0, time[1] * 1000, 'LIMIT', 0, 100) \
        for _, id in ipairs(due) do \
          redis.call('ZREM', KEYS[1], id) \
          local score = redis.call('HGET', ARGV[1] .. id, 'score') \
          if score then redis.call('ZADD', KEYS[2], score, id) end \
        end return #due";
    let name = QUEUES[queue];
    eval::<i64>(connection, script, &[Spot::Scheduled.key(name), Spot::Ready.key(name)], &[prefix()]);
}

/// Its reaper's claim: the deadline moves, the token stays; a running id without a record vanishes.
pub fn reaper(connection: &mut Connection, queue: usize) {
    let script = "local time = redis.call('TIME') \
        for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], 0, time[1] * 1000, 'LIMIT', 0, 100)) do \
          if redis.call('EXISTS', ARGV[1] .. id) == 1 then redis.call('ZADD', KEYS[1], time[1] * 1000 + 60000, id) \
          else redis.call('ZREM', KEYS[1], id) end \
        end return 1";
    eval::<i64>(connection, script, &[Spot::Running.key(QUEUES[queue])], &[prefix()]);
}

/// Its drop: only the entry goes.
pub fn dequeue(connection: &mut Connection, queue: usize, spot: Spot, id: &str) {
    redis::cmd("ZREM").arg(spot.key(QUEUES[queue])).arg(id).query::<()>(connection).expect("ZREM");
}

/// The end of a record that it gave one.
pub fn expire(connection: &mut Connection, id: &str) {
    redis::cmd("DEL").arg(format!("{}{id}", prefix())).query::<()>(connection).expect("DEL");
}

/// A lease whose time is over.
pub fn overrun(connection: &mut Connection, queue: usize, id: &str) {
    redis::cmd("ZADD")
        .arg(Spot::Running.key(QUEUES[queue]))
        .arg("XX")
        .arg(1000)
        .arg(id)
        .query::<()>(connection)
        .expect("ZADD");
}
