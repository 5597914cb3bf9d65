-- heartbeat: say that a worker is alive, and what it is.
--
-- KEYS: workers worker
-- ARGV: worker mode ttl mark (field value)*
--   mode   'register' makes the record anew; 'beat' keeps it; 'leave' removes it
--   ttl    milliseconds that the record outlives the last beat
--   mark   sequence number up to which the worker has started its leases; '' leaves it as it is
--   field  what the record says: host, pid, version, queues and the like
-- Answer: {code, now}: 'alive' with the server's clock in milliseconds; 'unregistered' where the record is gone or its
--   worker was declared dead: its leases have been taken over; 'left'.
-- Safe: a worker that was declared dead cannot come back under the same id by beating.
--@include clock
local worker_id, mode, ttl, mark = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local record = redis.call('HMGET', KEYS[2], 'id', 'dead', 'mark')
redis.call('ZCARD', KEYS[1])
if mode == 'leave' then
  redis.call('UNLINK', KEYS[2])
  redis.call('ZREM', KEYS[1], worker_id)
  return { 'left', score_text(now) }
end
if record[2] or (mode == 'beat' and not record[1]) then
  return { 'unregistered', score_text(now) }
end
local values = { 'id', worker_id }
for i = 5, #ARGV do
  values[#values + 1] = ARGV[i]
end
redis.call('HSET', KEYS[2], unpack(values))
if mark ~= '' and tonumber(mark) > tonumber(record[3] or -1) then
  redis.call('HSET', KEYS[2], 'mark', mark)
end
redis.call('PEXPIRE', KEYS[2], ttl)
redis.call('ZADD', KEYS[1], score_text(now), worker_id)
return { 'alive', score_text(now) }
