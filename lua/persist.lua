-- persist: take the TTL off the records of listed pending tasks.
--
-- KEYS: segment
-- ARGV: cursor limit task_prefix
--   cursor  how many entries to pass over, 0 at first
-- Answer: {persisted, cursor}: how many had a TTL; where to go on, -1 at the end.
-- Safe: only records that a segment lists; nothing else of them changes.
local cursor, limit, task_prefix = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
local ids = redis.call('ZRANGE', KEYS[1], cursor, cursor + limit - 1)
local keys = {}
for i, id in ipairs(ids) do
  keys[i] = task_prefix .. id
end
if #keys > 0 then
  redis.call('EXISTS', unpack(keys))
end
local persisted = 0
for _, key in ipairs(keys) do
  persisted = persisted + redis.call('PERSIST', key)
end
return { persisted, #ids == limit and cursor + limit or -1 }
