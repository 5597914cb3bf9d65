-- The server's clock, in milliseconds since 1970 with their fraction. It alone decides leases and due times.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + tonumber(time[2]) / 1000

-- A score as text: a double crosses the wire without an exponent and reads back to the same value.
local function score_text(score)
  return string.format('%.3f', score)
end

