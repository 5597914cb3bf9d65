-- turn: let one of many maintenances go on with the slow sweep.
--
-- KEYS: sweep
-- ARGV: interval
--   interval  milliseconds between two turns
-- Answer: {code, state}: 'go' with what the last turn left; 'wait' where another had its turn within the interval.
-- Safe: two at once would only look twice; nothing depends on the turn.
--@include clock
local saved = redis.call('HMGET', KEYS[1], 'last', 'state')
local last = tonumber(saved[1] or '')
if last and now >= last and now - last < tonumber(ARGV[1]) then
  return { 'wait', '' }
end
redis.call('HSET', KEYS[1], 'last', score_text(now))
return { 'go', saved[2] or '' }
