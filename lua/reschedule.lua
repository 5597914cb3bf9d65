-- reschedule: let SCHEDULED tasks of one queue run at once, or at another time.
--
-- KEYS: wake scheduled ready running
-- ARGV: queue due task_prefix (id seen)*
--   due   milliseconds since 1970, '' for at once
--   seen  the due time that the caller saw
-- Answer: one code a task: 'rescheduled'; 'replayed' where it waits like that already; 'changed' where it does not wait as
--   the caller saw it; 'gone' where it has no record.
-- Safe: compares the due time that was seen; an id enters READY, with the score of its own hash, in the script that takes
--   it from SCHEDULED; pending work loses a TTL that it had.
--@include clock
--@include fields
local queue, due, task_prefix = ARGV[1], ARGV[2], ARGV[3]
local ids, seen, answer, once = {}, {}, {}, {}
for i = 4, #ARGV, 2 do
  ids[#ids + 1] = ARGV[i]
  seen[#seen + 1] = ARGV[i + 1]
end
if #ids == 0 then
  return answer
end
local scheduled = redis.call('ZMSCORE', KEYS[2], unpack(ids))
local ready = redis.call('ZMSCORE', KEYS[3], unpack(ids))
local running = redis.call('ZMSCORE', KEYS[4], unpack(ids))
local added, left = {}, {}
for i, id in ipairs(ids) do
  local task = fields_of(task_prefix .. id, 'data', 'score')
  if once[id] then
    answer[i] = 'replayed'
  elseif not task then
    answer[i] = 'gone'
  elseif running[i] then
    answer[i] = 'changed'
  elseif due == '' and ready[i] then
    answer[i] = scheduled[i] and 'changed' or 'replayed'
  elseif due ~= '' and scheduled[i] and tonumber(scheduled[i]) == tonumber(due) then
    answer[i] = 'replayed'
  elseif ready[i] or not scheduled[i] or tonumber(scheduled[i]) ~= tonumber(seen[i]) then
    answer[i] = 'changed'
  else
    answer[i] = 'rescheduled'
    once[id] = true
    added[#added + 1] = due ~= '' and due or tonumber(task[2]) and task[2] or score_text(now)
    added[#added + 1] = id
    left[#left + 1] = id
  end
end
if #left == 0 then
  return answer
end
redis.call('ZADD', due == '' and KEYS[3] or KEYS[2], unpack(added))
if due == '' then
  redis.call('ZREM', KEYS[2], unpack(left))
  redis.call('PUBLISH', KEYS[1], queue)
end
for _, id in ipairs(left) do
  redis.call('PERSIST', task_prefix .. id)
end
return answer
