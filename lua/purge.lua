-- purge: remove a slice of one segment, with the records or results that belong to it.
--
-- KEYS: segment (elsewhere)*
-- ARGV: kind limit max_score task_prefix result_prefix
--   elsewhere  the other segments that list records: what they list as well keeps its record
--   kind       'pending' (records) or 'finished' (results)
--   limit      members at most in this call
--   max_score  only members with at most this score; '+inf' for all
-- Answer: {removed, left}: how many went, and how many of the named ones are left.
-- Safe: takes ids from this one set only, never by pattern; leaves the record of an id that runs or waits elsewhere at
--   the same time.
local kind, limit, max_score = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local ids = redis.call('ZRANGE', KEYS[1], '-inf', max_score, 'BYSCORE', 'LIMIT', 0, limit)
if #ids == 0 then
  return { 0, 0 }
end
local elsewhere = {}
for i = 2, #KEYS do
  for n, score in ipairs(redis.call('ZMSCORE', KEYS[i], unpack(ids))) do
    elsewhere[n] = elsewhere[n] or score
  end
end
local keys = {}
for i, id in ipairs(ids) do
  if kind == 'finished' then
    keys[#keys + 1] = ARGV[5] .. id
  elseif not elsewhere[i] then
    keys[#keys + 1] = ARGV[4] .. id
  end
end
-- Read before anything is removed: a record that is on its way to another node of a cluster stops the script here.
local left = redis.call('ZCOUNT', KEYS[1], '-inf', max_score) - #ids
if #keys > 0 then
  redis.call('EXISTS', unpack(keys))
end
redis.call('ZREM', KEYS[1], unpack(ids))
if #keys > 0 then
  redis.call('UNLINK', unpack(keys))
end
return { #ids, left }
