-- requeue: run a finished task again.
--
-- KEYS: channel task result history ready scheduled running
-- ARGV: queue id seen data score due
--   seen   the finish score that the caller saw: it names exactly this finish of this task
--   data   the record to wait with
--   score  its READY score
--   due    milliseconds since 1970, '' for at once
-- Answer: 'requeued'; 'replayed' where this request was served before; 'moved' where the task is not (or no longer)
--   finished with that score, or waits or runs as well; 'gone' where its result has expired.
-- Safe: compares the finish score, so that a late second try, or a second operator, changes nothing.
--@include fields
local queue, id, seen = ARGV[1], ARGV[2], ARGV[3]
local finished = redis.call('ZSCORE', KEYS[4], id)
local waits = redis.call('ZSCORE', KEYS[5], id) or redis.call('ZSCORE', KEYS[6], id)
local runs = redis.call('ZSCORE', KEYS[7], id)
local result = redis.call('EXISTS', KEYS[3]) == 1
local task = fields_of(KEYS[2], 'data', 'rs_requeued')
if task and task[2] == seen then
  return 'replayed'
end
if waits or runs then
  return 'moved'
end
if not finished then
  return (task or result) and 'moved' or 'gone'
end
if tonumber(finished) ~= tonumber(seen) then
  return 'moved'
end
if not result then
  return 'gone'
end
redis.call('HSET', KEYS[2], 'data', ARGV[4], 'score', ARGV[5], 'rs_requeued', seen)
end_lease(KEYS[2], '')
redis.call('PERSIST', KEYS[2])
if ARGV[6] == '' then
  redis.call('ZADD', KEYS[5], ARGV[5], id)
else
  redis.call('ZADD', KEYS[6], ARGV[6], id)
end
redis.call('ZREM', KEYS[4], id)
redis.call('UNLINK', KEYS[3])
redis.call('PUBLISH', KEYS[1], 'ingress:' .. queue)
return 'requeued'
