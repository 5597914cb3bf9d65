-- enqueue: store new tasks of one queue and list them as READY or SCHEDULED.
--
-- KEYS: channel ready scheduled (task result idempotency)*
-- ARGV: queue idempotency_ttl (id data score run_after idempotent trace)*
--   idempotency_ttl  milliseconds for which an idempotency key is remembered
--   run_after        due time in milliseconds, '' for at once
--   idempotent       '1' where the idempotency key counts; else KEYS repeats the task's own key there
--   trace            the enqueuer's trace context, '' for none
-- Answer: one {code, id} a task: 'enqueued'; 'replayed' where this id is stored or finished already; 'duplicate'
--   where the idempotency key already names another task, whose id is answered.
-- Safe: every key is read before the first write; the hash, which needs the memory, is written before it is listed;
--   sent again, it finds the id and changes nothing. Pending work gets no TTL.
local queue, idempotency_ttl = ARGV[1], ARGV[2]
local count = (#ARGV - 2) / 6
local answer, fresh, seen = {}, {}, {}
for i = 1, count do
  local at, key = 2 + (i - 1) * 6, 3 + (i - 1) * 3
  local id = ARGV[at + 1]
  local earlier = ARGV[at + 5] == '1' and (redis.call('GET', KEYS[key + 3]) or seen[KEYS[key + 3]])
  if redis.call('EXISTS', KEYS[key + 1], KEYS[key + 2]) > 0 or seen[id] then
    answer[i] = { 'replayed', id }
  elseif earlier then
    answer[i] = { earlier == id and 'replayed' or 'duplicate', earlier }
  else
    answer[i] = { 'enqueued', id }
    fresh[#fresh + 1] = i
    seen[id] = id
    if ARGV[at + 5] == '1' then
      seen[KEYS[key + 3]] = id
    end
  end
end
-- Members of a wrong type would stop the script half-way; a read finds them first.
redis.call('ZCARD', KEYS[2])
redis.call('ZCARD', KEYS[3])

local ready, scheduled = {}, {}
for _, i in ipairs(fresh) do
  local at, key = 2 + (i - 1) * 6, 3 + (i - 1) * 3
  if ARGV[at + 6] == '' then
    redis.call('HSET', KEYS[key + 1], 'data', ARGV[at + 2], 'score', ARGV[at + 3])
  else
    redis.call('HSET', KEYS[key + 1], 'data', ARGV[at + 2], 'score', ARGV[at + 3], 'rs_trace', ARGV[at + 6])
  end
  if ARGV[at + 5] == '1' then
    redis.call('SET', KEYS[key + 3], ARGV[at + 1], 'PX', idempotency_ttl)
  end
  local list, score = ready, ARGV[at + 3]
  if ARGV[at + 4] ~= '' then
    list, score = scheduled, ARGV[at + 4]
  end
  list[#list + 1] = score
  list[#list + 1] = ARGV[at + 1]
end
if #ready > 0 then
  redis.call('ZADD', KEYS[2], unpack(ready))
end
if #scheduled > 0 then
  redis.call('ZADD', KEYS[3], unpack(scheduled))
end
for _ = 1, #fresh do
  redis.call('PUBLISH', KEYS[1], 'ingress:' .. queue)
end
return answer
