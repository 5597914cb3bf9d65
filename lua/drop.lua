-- drop: remove one task, wherever it is, with its record and its result.
--
-- KEYS: task result ready scheduled running successful failed quarantine
-- ARGV: id expected seen
--   expected  the segment that the caller saw it in, '' for any but running
--   seen      the score that it had there, '' for any
-- Answer: {code, segment}: 'dropped'; 'running' where it runs and the caller did not say so; 'moved' where it is not
--   where the caller saw it; 'gone' where there is nothing of that id.
-- Safe: touches exactly the keys of this id; a running task goes only where running was expected, and its holder
--   then finds its lease lost.
local NAMES = { 'ready', 'scheduled', 'running', 'successful', 'failed', 'quarantine' }
local id, expected, seen = ARGV[1], ARGV[2], ARGV[3]
local found, scores = nil, {}
for i, name in ipairs(NAMES) do
  scores[name] = redis.call('ZSCORE', KEYS[2 + i], id)
  if scores[name] then
    found = found or name
  end
end
local stored = redis.call('EXISTS', KEYS[1], KEYS[2]) > 0
if not found and not stored then
  return { 'gone', '' }
end
if scores.running and expected ~= 'running' then
  return { 'running', 'running' }
end
if expected ~= '' and not scores[expected] then
  return { 'moved', found or 'orphan' }
end
if seen ~= '' and tonumber(scores[expected] or '') ~= tonumber(seen) then
  return { 'moved', found or 'orphan' }
end
for i, name in ipairs(NAMES) do
  if scores[name] then
    redis.call('ZREM', KEYS[2 + i], id)
  end
end
redis.call('UNLINK', KEYS[1], KEYS[2])
return { 'dropped', expected ~= '' and expected or found or 'orphan' }
