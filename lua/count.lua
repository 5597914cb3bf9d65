-- count: count the entries of many segments in one call.
--
-- KEYS: (segment)*
-- ARGV: -
-- Answer: one count a key; '' for a key of another type.
-- Safe: only reads.
--@include fields
local counts = {}
for i, key in ipairs(KEYS) do
  local count = only_wrong_type(redis.pcall('ZCARD', key))
  counts[i] = type(count) == 'table' and '' or count
end
return counts
