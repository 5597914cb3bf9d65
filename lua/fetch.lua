-- fetch: read the records of ids that the caller saw in one segment, as many as fit a budget.
--
-- KEYS: segment
-- ARGV: kind prefix byte_budget (id)*
--   kind         'pending' (records are hashes) or 'finished' (results are strings)
--   prefix       what the key of a record begins with
--   byte_budget  stops once what was read exceeds it; the first is always read
-- Answer: a record each, for as many ids from the first as fit; '' where there is none.
-- Safe: only reads.
--@include fields
local kind, prefix, budget = ARGV[1], ARGV[2], tonumber(ARGV[3])
local found, bytes = {}, 0
for i = 4, #ARGV do
  local text = false
  if kind == 'finished' then
    text = only_wrong_type(redis.pcall('GET', prefix .. ARGV[i]))
  else
    text = only_wrong_type(redis.pcall('HGET', prefix .. ARGV[i], 'data'))
  end
  if type(text) ~= 'string' then
    text = ''
  end
  if #found > 0 and bytes + #text > budget then
    break
  end
  bytes = bytes + #text
  found[#found + 1] = text
end
return found
