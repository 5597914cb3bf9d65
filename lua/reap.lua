-- reap: claim leases of one queue whose time is over.
--
-- KEYS: running quarantine
-- ARGV: limit token claim_ttl task_prefix result_prefix
--   token      128 random bits; the fence of the claim: the former holder's result is refused from now on
--   claim_ttl  milliseconds that the claimer has to settle each; then another may claim it
-- Answer: {claimed, ghosts, finished, more}
--   claimed   {id, data, lease_worker, lease_started_at, sequence} each, to be sent through the retry policy
--   ghosts    ids without a record, set aside in quarantine
--   finished  how many were finished already and only lost their running entry
--   more      1 where more is over
-- Safe: a claim is a lease of its own; a claimer that dies leaves a claim that ends.
--@include clock
--@include fields
local limit, token, claim_ttl, task_prefix, result_prefix = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5]
local over = redis.call('ZRANGE', KEYS[1], '-inf', score_text(now), 'BYSCORE', 'LIMIT', 0, limit)
local claimed, ghosts, finished = {}, {}, {}
redis.call('ZCARD', KEYS[2])
for _, id in ipairs(over) do
  local task = fields_of(task_prefix .. id, 'data', 'lease_worker', 'lease_started_at', 'rs_sequence')
  if task then
    claimed[#claimed + 1] = { id, task[1], task[2] or '', task[3] or '', task[4] or '' }
  elseif redis.call('EXISTS', result_prefix .. id) == 1 then
    finished[#finished + 1] = id
  else
    ghosts[#ghosts + 1] = id
  end
end
for _, lease in ipairs(claimed) do
  redis.call('HSET', task_prefix .. lease[1], 'lease_token', token)
  redis.call('ZADD', KEYS[1], score_text(now + claim_ttl), lease[1])
end
for _, id in ipairs(ghosts) do
  redis.call('ZADD', KEYS[2], score_text(now), id)
  redis.call('ZREM', KEYS[1], id)
end
for _, id in ipairs(finished) do
  redis.call('ZREM', KEYS[1], id)
end
return { claimed, ghosts, #finished, #over == limit and 1 or 0 }
