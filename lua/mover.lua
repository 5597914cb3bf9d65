-- mover: move what is due in several queues from SCHEDULED to READY.
--
-- KEYS: wake (scheduled ready running quarantine)*
-- ARGV: limit task_prefix (queue)*
--   limit  how many due entries to look at, in all queues together; the first queues have the first turn
-- Answer: {code, moved, ghosts, more, next_due} for each queue, one after the other in one flat list
--   code      'moved'; 'wrong_type' where a key of the queue holds another type, and it was left alone
--   moved     how many moved
--   ghosts    the ids without a record, set aside in quarantine
--   more      1 where more is due
--   next_due  when the next one is due ('' where nothing waits)
-- Safe: each id enters READY with the score of its own hash in the same script that takes it from SCHEDULED; one that
--   runs at this moment only loses its SCHEDULED entry; pending work loses a TTL that it had.
--@include clock
--@include fields
local left, task_prefix = tonumber(ARGV[1]), ARGV[2]
local queues = (#KEYS - 1) / 4

-- Read phase, of all queues: what is refused is refused before anything is written.
local function look(scheduled, ready_key, running_key, quarantine)
  local found = { due = {}, ready = {}, ghosts = {}, alive = {} }
  local function is_broken(answer)
    return type(only_wrong_type(answer)) == 'table' and answer.err
  end
  if left > 0 then
    found.due = redis.pcall('ZRANGE', scheduled, '-inf', score_text(now), 'BYSCORE', 'LIMIT', 0, left)
    if is_broken(found.due) then
      return false
    end
  end
  -- What is left afterwards begins here.
  found.first = redis.pcall('ZRANGE', scheduled, #found.due, #found.due, 'WITHSCORES')
  if is_broken(found.first) then
    return false
  end
  if #found.due > 0 then
    local running = redis.pcall('ZMSCORE', running_key, unpack(found.due))
    local ready, set_aside = redis.pcall('ZCARD', ready_key), redis.pcall('ZCARD', quarantine)
    if is_broken(running) or is_broken(ready) or is_broken(set_aside) then
      return false
    end
    for i, id in ipairs(found.due) do
      local task = fields_of(task_prefix .. id, 'data', 'score')
      if not task then
        found.ghosts[#found.ghosts + 1] = id
      elseif not running[i] then
        found.ready[#found.ready + 1] = tonumber(task[2]) and task[2] or score_text(now)
        found.ready[#found.ready + 1] = id
        found.alive[#found.alive + 1] = id
      end
    end
  end
  left = left - #found.due
  return found
end
local looks = {}
for q = 1, queues do
  local at = q * 4 - 2
  looks[q] = look(KEYS[at], KEYS[at + 1], KEYS[at + 2], KEYS[at + 3])
end

-- Write phase.
local answer = {}
local function tell(...)
  for _, value in ipairs({ ... }) do
    answer[#answer + 1] = value
  end
end
for q = 1, queues do
  local at, found = q * 4 - 2, looks[q]
  if not found then
    tell('wrong_type', 0, {}, 0, '')
  else
    if #found.ready > 0 then
      redis.call('ZADD', KEYS[at + 1], unpack(found.ready))
    end
    for _, id in ipairs(found.ghosts) do
      redis.call('ZADD', KEYS[at + 3], score_text(now), id)
    end
    if #found.due > 0 then
      redis.call('ZREM', KEYS[at], unpack(found.due))
    end
    for _, id in ipairs(found.alive) do
      redis.call('PERSIST', task_prefix .. id)
    end
    if #found.alive > 0 then
      redis.call('PUBLISH', KEYS[1], ARGV[q + 2])
    end
    local next_due = tonumber(found.first[2] or '')
    tell('moved', #found.alive, found.ghosts, next_due and next_due <= now and 1 or 0,
      next_due and score_text(next_due) or '')
  end
end
return answer
