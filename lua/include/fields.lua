-- Empties the lease fields of a task, as the Python package does: to '', never removed. rs_ended keeps the token of
-- the lease that ended, so that the same request sent again is seen to be the same.
local function end_lease(task, token)
  redis.call('HSET', task, 'lease_worker', '', 'lease_started_at', '', 'lease_token', '', 'rs_sequence', '',
    'rs_ended', token)
end

-- Reads fields of a hash; false where the key is missing or is no hash.
local function fields_of(key, ...)
  local values = redis.pcall('HMGET', key, ...)
  if values.err or not values[1] then
    return false
  end
  return values
end

