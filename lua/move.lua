-- move: put waiting tasks into the same segment of another queue.
--
-- KEYS: wake source target running target_running
-- ARGV: queue wakes task_prefix (id seen old new)*
--   queue   the queue that they go to
--   wakes   '1' where they are READY, so that an idle worker of that queue looks
--   seen    the score that the caller saw
--   old     the record that the caller saw
--   new     the same record with the other queue's name in it
-- Answer: one code a task: 'moved'; 'replayed' where it is there already, by this request; 'running'; 'changed' where it
--   does not wait there as the caller saw it; 'gone' where it has no record.
-- Safe: compares score and record with what was seen; an id enters one queue in the script that takes it from the other;
--   reads all before the first write, and the record, which needs the memory, is written first.
--@include fields
local queue, task_prefix = ARGV[1], ARGV[3]
local count = (#ARGV - 3) / 4
local ids, answer, chosen, once = {}, {}, {}, {}
for i = 1, count do
  ids[i] = ARGV[3 + (i - 1) * 4 + 1]
end
if count == 0 then
  return answer
end
local source = redis.call('ZMSCORE', KEYS[2], unpack(ids))
local target = redis.call('ZMSCORE', KEYS[3], unpack(ids))
local running = redis.call('ZMSCORE', KEYS[4], unpack(ids))
local taken = redis.call('ZMSCORE', KEYS[5], unpack(ids))
for i, id in ipairs(ids) do
  local at = 3 + (i - 1) * 4
  local task = fields_of(task_prefix .. id, 'data')
  if once[id] then
    answer[i] = 'replayed'
  elseif not task then
    answer[i] = 'gone'
  elseif running[i] or taken[i] then
    answer[i] = 'running'
  elseif target[i] then
    answer[i] = not source[i] and task[1] == ARGV[at + 4] and 'replayed' or 'changed'
  elseif not source[i] or tonumber(source[i]) ~= tonumber(ARGV[at + 2]) or task[1] ~= ARGV[at + 3] then
    answer[i] = 'changed'
  else
    answer[i] = 'moved'
    once[id] = true
    chosen[#chosen + 1] = i
  end
end
if #chosen == 0 then
  return answer
end
local added, left = {}, {}
for _, i in ipairs(chosen) do
  local key = task_prefix .. ids[i]
  redis.call('HSET', key, 'data', ARGV[3 + (i - 1) * 4 + 4])
  redis.call('PERSIST', key)
  added[#added + 1] = source[i]
  added[#added + 1] = ids[i]
  left[#left + 1] = ids[i]
end
redis.call('ZADD', KEYS[3], unpack(added))
redis.call('ZREM', KEYS[2], unpack(left))
if ARGV[2] == '1' then
  redis.call('PUBLISH', KEYS[1], queue)
end
return answer
