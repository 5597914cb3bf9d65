-- drop: remove tasks of one queue, wherever they are, with their records and their results.
--
-- KEYS: ready scheduled running successful failed quarantine
-- ARGV: expected task_prefix result_prefix (id seen)*
--   expected  the segment that the caller saw them in, '' for any but running
--   seen      the score that it had there, '' for any
-- Answer: {code, segment} each: 'dropped'; 'running' where it runs and the caller did not say so; 'moved' where it is not
--   where the caller saw it; 'gone' where there is nothing of that id.
-- Safe: touches exactly the keys of these ids; a running task goes only where running was expected, and its holder
--   then finds its lease lost.
local NAMES = { 'ready', 'scheduled', 'running', 'successful', 'failed', 'quarantine' }
local expected, task_prefix, result_prefix = ARGV[1], ARGV[2], ARGV[3]
local ids, seen = {}, {}
for i = 4, #ARGV, 2 do
  ids[#ids + 1] = ARGV[i]
  seen[#seen + 1] = ARGV[i + 1]
end
local answer, scores, left, keys = {}, {}, {}, {}
if #ids == 0 then
  return answer
end
for i, name in ipairs(NAMES) do
  scores[name] = redis.call('ZMSCORE', KEYS[i], unpack(ids))
  left[i] = {}
end
for n, id in ipairs(ids) do
  local found = nil
  for _, name in ipairs(NAMES) do
    found = found or (scores[name][n] and name)
  end
  local task, result = task_prefix .. id, result_prefix .. id
  if not found and redis.call('EXISTS', task, result) == 0 then
    answer[n] = { 'gone', '' }
  elseif scores.running[n] and expected ~= 'running' then
    answer[n] = { 'running', 'running' }
  elseif expected ~= '' and (not scores[expected][n]
    or (seen[n] ~= '' and tonumber(scores[expected][n]) ~= tonumber(seen[n]))) then
    answer[n] = { 'moved', found or 'orphan' }
  else
    for i, name in ipairs(NAMES) do
      if scores[name][n] then
        left[i][#left[i] + 1] = id
      end
    end
    keys[#keys + 1] = task
    keys[#keys + 1] = result
    answer[n] = { 'dropped', expected ~= '' and expected or found or 'orphan' }
  end
end
-- Read before anything is removed: a record that is on its way to another node of a cluster stops the script here.
if #keys > 0 then
  redis.call('EXISTS', unpack(keys))
end
for i, members in ipairs(left) do
  if #members > 0 then
    redis.call('ZREM', KEYS[i], unpack(members))
  end
end
if #keys > 0 then
  redis.call('UNLINK', unpack(keys))
end
return answer
