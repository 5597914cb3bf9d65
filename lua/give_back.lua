-- give_back: return leases whose work has not started to READY, with no attempt spent.
--
-- KEYS: wake running ready (task)*
-- ARGV: queue (id token score)*
--   score  the READY score to use where the hash has none
-- Answer: one code a task: 'given_back'; 'replayed' where this lease was ended before; 'lost' where it is no longer
--   the caller's.
-- Safe: only the holder's leases move; the record is not touched, so nothing is charged.
--@include fields
local count = (#ARGV - 1) / 3
local answer, given = {}, {}
redis.call('ZCARD', KEYS[3])
for i = 1, count do
  local at = 1 + (i - 1) * 3
  local task = fields_of(KEYS[3 + i], 'data', 'lease_token', 'rs_ended', 'score')
  if task and task[2] == ARGV[at + 2] and redis.call('ZSCORE', KEYS[2], ARGV[at + 1]) then
    answer[i] = 'given_back'
    given[#given + 1] = { i, task[4] or ARGV[at + 3] }
  else
    answer[i] = task and task[3] == ARGV[at + 2] and 'replayed' or 'lost'
  end
end
for _, lease in ipairs(given) do
  local at = 1 + (lease[1] - 1) * 3
  end_lease(KEYS[3 + lease[1]], ARGV[at + 2])
  redis.call('ZADD', KEYS[3], lease[2], ARGV[at + 1])
  redis.call('ZREM', KEYS[2], ARGV[at + 1])
end
if #given > 0 then
  redis.call('PUBLISH', KEYS[1], ARGV[1])
end
return answer
