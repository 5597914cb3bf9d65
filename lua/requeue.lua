-- requeue: run finished tasks of one segment again.
--
-- KEYS: channel history ready scheduled running
-- ARGV: queue due task_prefix result_prefix (id seen data score)*
--   due    milliseconds since 1970, '' for at once
--   seen   the finish score that the caller saw: it names exactly this finish of this task
--   data   the record to wait with, '' where the caller found no result
--   score  its READY score
-- Answer: one code a task: 'requeued'; 'replayed' where this request was served before; 'moved' where the task is not (or
--   no longer) finished with that score, or waits or runs as well; 'gone' where its result has expired.
-- Safe: compares the finish score, so that a late second try, or a second operator, changes nothing; reads all before the
--   first write; the record, which needs the memory, is written before the result goes.
--@include fields
local queue, due, task_prefix, result_prefix = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local count = (#ARGV - 4) / 4
local ids, answer, chosen, once = {}, {}, {}, {}
for i = 1, count do
  ids[i] = ARGV[4 + (i - 1) * 4 + 1]
end
if count == 0 then
  return answer
end
local finished = redis.call('ZMSCORE', KEYS[2], unpack(ids))
local ready = redis.call('ZMSCORE', KEYS[3], unpack(ids))
local scheduled = redis.call('ZMSCORE', KEYS[4], unpack(ids))
local running = redis.call('ZMSCORE', KEYS[5], unpack(ids))
for i, id in ipairs(ids) do
  local seen = ARGV[4 + (i - 1) * 4 + 2]
  local task = fields_of(task_prefix .. id, 'data', 'rs_requeued')
  local result = redis.call('EXISTS', result_prefix .. id) == 1
  if once[id] or (task and task[2] == seen) then
    answer[i] = 'replayed'
  elseif ready[i] or scheduled[i] or running[i] then
    answer[i] = 'moved'
  elseif not finished[i] then
    answer[i] = (task or result) and 'moved' or 'gone'
  elseif tonumber(finished[i]) ~= tonumber(seen) then
    answer[i] = 'moved'
  elseif not result or ARGV[4 + (i - 1) * 4 + 3] == '' then
    answer[i] = 'gone'
  else
    answer[i] = 'requeued'
    once[id] = true
    chosen[#chosen + 1] = i
  end
end
if #chosen == 0 then
  return answer
end
local added, left, results = {}, {}, {}
for _, i in ipairs(chosen) do
  local at = 4 + (i - 1) * 4
  local key = task_prefix .. ids[i]
  redis.call('HSET', key, 'data', ARGV[at + 3], 'score', ARGV[at + 4], 'rs_requeued', ARGV[at + 2], 'lease_worker', '',
    'lease_started_at', '', 'lease_token', '', 'rs_sequence', '', 'rs_ended', '')
  redis.call('PERSIST', key)
  added[#added + 1] = due == '' and ARGV[at + 4] or due
  added[#added + 1] = ids[i]
  left[#left + 1] = ids[i]
  results[#results + 1] = result_prefix .. ids[i]
end
redis.call('ZADD', due == '' and KEYS[3] or KEYS[4], unpack(added))
redis.call('ZREM', KEYS[2], unpack(left))
redis.call('UNLINK', unpack(results))
for _ = 1, #chosen do
  redis.call('PUBLISH', KEYS[1], 'ingress:' .. queue)
end
return answer
