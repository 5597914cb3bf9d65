-- retry: send a task that its worker failed (or that a reaper claimed) to its next attempt.
--
-- KEYS: channel task running scheduled ready
-- ARGV: queue id token data score delay
--   data   the record of the next attempt
--   score  its READY score
--   delay  milliseconds from now by the server's clock; 0 puts it into READY at once
-- Answer: {code, due}: 'retried' with the due time; 'replayed' where this lease was ended by this request before;
--   'lost' where the lease is no longer the caller's.
-- Safe: only the holder of the lease (token and running membership) moves the task; the token of the ended lease is
--   kept, so that a second try is recognised. Pending work gets no TTL, and loses one that it had.
--@include clock
--@include fields
local queue, id, token, data, score = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local task = fields_of(KEYS[2], 'data', 'lease_token', 'rs_ended')
local running = redis.call('ZSCORE', KEYS[3], id)
redis.call('ZCARD', KEYS[4])
redis.call('ZCARD', KEYS[5])
if not (task and running and task[2] == token) then
  return { task and task[3] == token and 'replayed' or 'lost', '' }
end
local delay = tonumber(ARGV[6])
local due = score_text(now + delay)
redis.call('HSET', KEYS[2], 'data', data, 'score', score)
end_lease(KEYS[2], token)
redis.call('PERSIST', KEYS[2])
if delay > 0 then
  redis.call('ZADD', KEYS[4], due, id)
else
  redis.call('ZADD', KEYS[5], score, id)
end
redis.call('ZREM', KEYS[3], id)
redis.call('PUBLISH', KEYS[1], 'ingress:' .. queue)
return { 'retried', due }
