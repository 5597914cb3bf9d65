-- acknowledge: store the results of tasks that a worker finished.
--
-- KEYS: channel worker (running successful failed)* (task result)*
-- ARGV: mark result_ttl queues (queue)* (queue_number id token outcome result)*
--   mark        sequence number up to which this worker has started its leases; '' leaves it as it is
--   result_ttl  milliseconds that a result is kept
--   queues      how many queues are named
--   outcome     'successful' or 'failed'
-- Answer: one code a task: 'stored'; 'replayed' where this very result is stored already; 'lost' where the lease is
--   no longer the caller's, so that its result is discarded.
-- Safe: ownership (token and running membership) is read for all before the first write; the result, which needs the
--   memory, is written before the hash goes.
--@include clock
local mark, result_ttl, queues = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local first_arg, first_key = 3 + queues, 2 + queues * 3
local count = (#ARGV - first_arg) / 5

local ids, places = {}, {}
for i = 1, count do
  local at = first_arg + (i - 1) * 5
  local q = tonumber(ARGV[at + 1])
  ids[q] = ids[q] or {}
  ids[q][#ids[q] + 1] = ARGV[at + 2]
  places[i] = #ids[q]
end
local running = {}
for q, list in pairs(ids) do
  running[q] = redis.call('ZMSCORE', KEYS[2 + q * 3 - 2], unpack(list))
  redis.call('ZCARD', KEYS[2 + q * 3 - 1])
  redis.call('ZCARD', KEYS[2 + q * 3])
end
local answer, stored = {}, 0
for i = 1, count do
  local at, key = first_arg + (i - 1) * 5, first_key + (i - 1) * 2
  local q = tonumber(ARGV[at + 1])
  if running[q][places[i]] and redis.call('HGET', KEYS[key + 1], 'lease_token') == ARGV[at + 3] then
    answer[i] = 'stored'
    stored = stored + 1
  elseif redis.call('GET', KEYS[key + 2]) == ARGV[at + 5] then
    answer[i] = 'replayed'
  else
    answer[i] = 'lost'
  end
end
local raise = false
if mark ~= '' then
  local worker = redis.call('HMGET', KEYS[2], 'id', 'dead', 'mark')
  if not worker[1] or worker[2] then
    answer[count + 1] = 'unregistered'
  else
    raise = tonumber(mark) > tonumber(worker[3] or -1)
  end
end

-- Whole milliseconds, the same for all of one call: cheap to read, and ids of version 7 keep their order.
local finish = string.format('%.0f', now)
local history, done, removed = {}, {}, {}
for i = 1, count do
  if answer[i] == 'stored' then
    local at, key = first_arg + (i - 1) * 5, first_key + (i - 1) * 2
    local q = tonumber(ARGV[at + 1])
    redis.call('SET', KEYS[key + 2], ARGV[at + 5], 'PX', result_ttl)
    local set = KEYS[2 + q * 3 - (ARGV[at + 4] == 'successful' and 1 or 0)]
    history[set] = history[set] or {}
    history[set][#history[set] + 1] = finish
    history[set][#history[set] + 1] = ARGV[at + 2]
    done[q] = done[q] or {}
    done[q][#done[q] + 1] = ARGV[at + 2]
    removed[#removed + 1] = KEYS[key + 1]
  end
end
if raise then
  redis.call('HSET', KEYS[2], 'mark', mark)
end
if stored == 0 then
  return answer
end
for set, members in pairs(history) do
  redis.call('ZADD', set, unpack(members))
  redis.call('ZREMRANGEBYSCORE', set, '-inf', '(' .. score_text(now - result_ttl))
end
for q, list in pairs(done) do
  redis.call('ZREM', KEYS[2 + q * 3 - 2], unpack(list))
end
redis.call('DEL', unpack(removed))
for q, list in pairs(done) do
  local message = 'egress:' .. ARGV[3 + q]
  for _ = 1, #list do
    redis.call('PUBLISH', KEYS[1], message)
  end
end
return answer
