-- quarantine: set a leased task aside that its worker cannot read.
--
-- KEYS: task running quarantine
-- ARGV: id token
-- Answer: 'set_aside'; 'replayed' where this lease was ended before; 'lost' where it is no longer the caller's.
-- Safe: the record stays byte for byte and loses its TTL; only the holder of the lease moves it.
--@include clock
--@include fields
local id, token = ARGV[1], ARGV[2]
local task = fields_of(KEYS[1], 'data', 'lease_token', 'rs_ended')
local running = redis.call('ZSCORE', KEYS[2], id)
redis.call('ZCARD', KEYS[3])
if not (task and running and task[2] == token) then
  return task and task[3] == token and 'replayed' or 'lost'
end
redis.call('ZADD', KEYS[3], score_text(now), id)
redis.call('ZREM', KEYS[2], id)
end_lease(KEYS[1], token)
redis.call('PERSIST', KEYS[1])
return 'set_aside'
