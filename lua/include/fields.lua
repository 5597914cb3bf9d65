-- Empties the lease fields of a task, as the Python package does: to '', never removed. rs_ended keeps the token of
-- the lease that ended, so that the same request sent again is seen to be the same.
local function end_lease(task, token)
  redis.call('HSET', task, 'lease_worker', '', 'lease_started_at', '', 'lease_token', '', 'rs_sequence', '',
    'rs_ended', token)
end

-- Lets a key of another type pass. Any other refusal ends the script, before it has written: in a cluster that moves the
-- slot a key may be at another node, and what is not here is not gone.
local function only_wrong_type(answer)
  if type(answer) == 'table' and answer.err and not string.find(answer.err, 'WRONGTYPE', 1, true) then
    error(answer)
  end
  return answer
end

-- Reads fields of a hash; false where the key is missing or is no hash.
local function fields_of(key, ...)
  local values = only_wrong_type(redis.pcall('HMGET', key, ...))
  if values.err or not values[1] then
    return false
  end
  return values
end

