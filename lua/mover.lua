-- mover: move what is due from SCHEDULED to READY.
--
-- KEYS: scheduled ready running quarantine wake
-- ARGV: queue limit task_prefix
-- Answer: {moved, ghosts, more, next_due}: how many moved; the ids without a record, set aside in quarantine; 1 where
--   more is due; when the next one is due ('' where nothing waits).
-- Safe: each id enters READY with the score of its own hash in the same script that takes it from SCHEDULED; one that
--   runs at this moment only loses its SCHEDULED entry; pending work loses a TTL that it had.
--@include clock
--@include fields
local queue, limit, task_prefix = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local due = redis.call('ZRANGE', KEYS[1], '-inf', score_text(now), 'BYSCORE', 'LIMIT', 0, limit)
-- Read before anything is written, as all else: what is left afterwards begins here.
local first = redis.call('ZRANGE', KEYS[1], #due, #due, 'WITHSCORES')
local ready, ghosts, alive = {}, {}, {}
if #due > 0 then
  local running = redis.call('ZMSCORE', KEYS[3], unpack(due))
  redis.call('ZCARD', KEYS[2])
  redis.call('ZCARD', KEYS[4])
  for i, id in ipairs(due) do
    local task = fields_of(task_prefix .. id, 'data', 'score')
    if not task then
      ghosts[#ghosts + 1] = id
    elseif not running[i] then
      local score = task[2]
      if not tonumber(score) then
        score = score_text(now)
      end
      ready[#ready + 1] = score
      ready[#ready + 1] = id
      alive[#alive + 1] = id
    end
  end
  if #ready > 0 then
    redis.call('ZADD', KEYS[2], unpack(ready))
  end
  for _, id in ipairs(ghosts) do
    redis.call('ZADD', KEYS[4], score_text(now), id)
  end
  redis.call('ZREM', KEYS[1], unpack(due))
  for _, id in ipairs(alive) do
    redis.call('PERSIST', task_prefix .. id)
  end
  if #alive > 0 then
    redis.call('PUBLISH', KEYS[5], queue)
  end
end
local more = first[2] and tonumber(first[2]) <= now and 1 or 0
return { #alive, ghosts, more, first[2] and score_text(tonumber(first[2])) or '' }
