-- reap: claim leases of several queues whose time is over.
--
-- KEYS: (running quarantine)*
-- ARGV: limit token claim_ttl task_prefix result_prefix
--   limit      how many leases to look at, in all queues together
--   token      128 random bits; the fence of each claim: the former holder's result is refused from now on
--   claim_ttl  milliseconds that the claimer has to settle each; then another may claim it
-- Answer: {code, claimed, ghosts, finished, more} for each queue, one after the other in one flat list
--   code      'reaped'; 'wrong_type' where a key of the queue holds another type, and it was left alone
--   claimed   {id, data, lease_worker, lease_started_at, sequence} each, to be sent through the retry policy
--   ghosts    ids without a record, set aside in quarantine
--   finished  how many were finished already and only lost their running entry
--   more      1 where more may be over
-- Safe: a claim is a lease of its own; a claimer that dies leaves a claim that ends.
--@include clock
--@include fields
local left, token, claim_ttl = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local task_prefix, result_prefix = ARGV[4], ARGV[5]

-- Read phase, of all queues: what is refused is refused before anything is written.
local function look(running, quarantine)
  local found = { claimed = {}, ghosts = {}, finished = {}, more = 1 }
  if left == 0 then
    return found
  end
  local over = only_wrong_type(redis.pcall('ZRANGE', running, '-inf', score_text(now), 'BYSCORE', 'LIMIT', 0, left))
  if over.err then
    return false
  end
  local set_aside = only_wrong_type(redis.pcall('ZCARD', quarantine))
  if type(set_aside) == 'table' then
    return false
  end
  for _, id in ipairs(over) do
    local task = fields_of(task_prefix .. id, 'data', 'lease_worker', 'lease_started_at', 'rs_sequence')
    if task then
      found.claimed[#found.claimed + 1] = { id, task[1], task[2] or '', task[3] or '', task[4] or '' }
    elseif redis.call('EXISTS', result_prefix .. id) == 1 then
      found.finished[#found.finished + 1] = id
    else
      found.ghosts[#found.ghosts + 1] = id
    end
  end
  found.more = #over == left and 1 or 0
  left = left - #over
  return found
end
local looks = {}
for q = 1, #KEYS / 2 do
  looks[q] = look(KEYS[q * 2 - 1], KEYS[q * 2])
end

-- Write phase.
local answer = {}
for q = 1, #KEYS / 2 do
  local running, quarantine, found = KEYS[q * 2 - 1], KEYS[q * 2], looks[q]
  local values = { 'wrong_type', {}, {}, 0, 0 }
  if found then
    for _, lease in ipairs(found.claimed) do
      redis.call('HSET', task_prefix .. lease[1], 'lease_token', token)
      redis.call('ZADD', running, score_text(now + claim_ttl), lease[1])
    end
    for _, id in ipairs(found.ghosts) do
      redis.call('ZADD', quarantine, score_text(now), id)
      redis.call('ZREM', running, id)
    end
    for _, id in ipairs(found.finished) do
      redis.call('ZREM', running, id)
    end
    values = { 'reaped', found.claimed, found.ghosts, #found.finished, found.more }
  end
  for _, value in ipairs(values) do
    answer[#answer + 1] = value
  end
end
return answer
