-- oldest: tell since when the oldest READY task waits.
--
-- KEYS: ready
-- ARGV: step limit
--   step   how far one step of priority moves a score
--   limit  priorities to look at, at most
-- Answer: {at, whole}: milliseconds since 1970, '' where nothing waits; whole is 0 where there are more priorities.
-- Safe: only reads: of each priority that occurs the first entry, which has waited longest. Scores mix priority and time:
--   -priority * step + enqueued. Priorities that are no whole numbers lie between the steps and are looked at likewise.
local step, limit = tonumber(ARGV[1]), tonumber(ARGV[2])
local oldest, after = nil, '-inf'
for _ = 1, limit do
  local found = redis.call('ZRANGE', KEYS[1], after, '+inf', 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')
  if #found == 0 then
    return { oldest or '', 1 }
  end
  -- The time is what is left over whole steps: enqueued lies between 0 and one step.
  local score = tonumber(found[2])
  local band = math.floor(score / step)
  local at = score - band * step
  if not oldest or at < tonumber(oldest) then
    oldest = string.format('%.3f', at)
  end
  after = string.format('%.0f', (band + 1) * step)
end
return { oldest or '', redis.call('ZCOUNT', KEYS[1], after, '+inf') == 0 and 1 or 0 }
