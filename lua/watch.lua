-- watch: note that maintenance looks, and name the workers that have been silent for too long.
--
-- KEYS: workers watch
-- ARGV: silence gap
--   silence  milliseconds without a heartbeat after which a worker counts as gone
--   gap      milliseconds between two looks after which the watch begins anew
-- Answer: {now, since, silent, workers}: the server's clock; since when somebody has looked without a gap; the workers
--   that were silent all that time; how many workers are on record.
-- Safe: a server that was down, frozen or failed over makes a gap, and after a gap nobody is declared gone until a whole
--   interval has been watched again: workers that could not beat are not punished for it.
--@include clock
local silence, gap = tonumber(ARGV[1]), tonumber(ARGV[2])
local state = redis.call('HMGET', KEYS[2], 'last', 'since')
local workers = redis.call('ZCARD', KEYS[1])
local since = tonumber(state[2] or '')
if not since or now - tonumber(state[1]) > gap or now < tonumber(state[1]) then
  since = now
end
redis.call('HSET', KEYS[2], 'last', score_text(now), 'since', score_text(since))
local silent = {}
if now - since >= silence then
  silent = redis.call('ZRANGE', KEYS[1], '-inf', '(' .. score_text(now - silence), 'BYSCORE', 'LIMIT', 0, 100)
end
return { score_text(now), score_text(since), silent, workers }
