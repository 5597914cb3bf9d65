-- take_over: settle the leases of one queue that a silent worker of ours held.
--
-- KEYS: workers worker running ready wake
-- ARGV: worker queue silence token claim_ttl score id limit task_prefix
--   silence    milliseconds without a heartbeat after which a worker counts as gone
--   token      128 random bits; the fence of each claim
--   claim_ttl  milliseconds that the claimer has to settle each
--   score, id  the running entry to go on behind, '' for the beginning
--   limit      how many entries to look at
-- Answer: {code, claimed, given_back, score, id}
--   code        'taken'; 'alive' where the worker has been heard of
--   claimed     {id, data, lease_worker, lease_started_at, sequence} each: started, to be sent through the retry policy
--   given_back  how many had not started and are READY again, uncharged
--   score, id   the entry to go on behind, '' at the end
-- Safe: the first call marks the worker as dead, so that one that wakes up is refused until it registers anew; each
--   lease is given back or claimed in one step.
--@include clock
--@include fields
--@include walk
local worker_id, queue, silence, token = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local claim_ttl, task_prefix = tonumber(ARGV[5]), ARGV[9]
local beat = redis.call('ZSCORE', KEYS[1], worker_id)
local record = redis.call('HMGET', KEYS[2], 'dead', 'mark', 'id')
if not record[1] and beat and tonumber(beat) > now - silence then
  return { 'alive', {}, 0, '', '' }
end
local mark = tonumber(record[2] or -1)
-- Where the worker's record is gone, nothing says what had started: all counts as started.
local known = record[3] and true or false
local ids, _, next_score, next_id = walk(KEYS[3], ARGV[6], ARGV[7], tonumber(ARGV[8]))
redis.call('ZCARD', KEYS[4])
local claimed, given = {}, {}
for _, id in ipairs(ids) do
  local task = fields_of(task_prefix .. id, 'data', 'lease_worker', 'lease_started_at', 'rs_sequence', 'score',
    'lease_token', 'rs_claimed')
  if task and task[2] == worker_id and not (task[7] and task[7] == task[6]) then
    local sequence = tonumber(task[4] or '')
    if known and sequence and sequence > mark then
      given[#given + 1] = { id, tonumber(task[5] or '') and task[5] or score_text(now), task[6] }
    else
      claimed[#claimed + 1] = { id, task[1], task[2], task[3] or '', task[4] or '' }
    end
  end
end
if known and not record[1] then
  redis.call('HSET', KEYS[2], 'dead', score_text(now))
end
for _, lease in ipairs(claimed) do
  redis.call('HSET', task_prefix .. lease[1], 'lease_token', token, 'rs_claimed', token)
  redis.call('ZADD', KEYS[3], score_text(now + claim_ttl), lease[1])
end
for _, lease in ipairs(given) do
  end_lease(task_prefix .. lease[1], lease[3])
  redis.call('ZADD', KEYS[4], lease[2], lease[1])
  redis.call('ZREM', KEYS[3], lease[1])
end
if #given > 0 then
  redis.call('PUBLISH', KEYS[5], queue)
end
return { 'taken', claimed, #given, next_score, next_id }
