-- persist: take the TTL off the records of listed pending tasks.
--
-- KEYS: segment
-- ARGV: score id limit task_prefix
--   score, id  the entry to go on behind, '' for the beginning
--   limit      how many entries to look at
-- Answer: {persisted, soonest, score, id, seen}: how many had a TTL; the shortest that one of them had left, in
--   milliseconds ('' where none had); the entry to go on behind ('' at the end); how many were looked at.
-- Safe: only records that a segment lists; nothing else of them changes. A record without a TTL costs one read.
--@include walk
local ids, _, score, id = walk(KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3]))
local keys, persisted, soonest = {}, 0, ''
for _, next_id in ipairs(ids) do
  local key = ARGV[4] .. next_id
  local left = redis.call('PTTL', key)
  if left >= 0 then
    keys[#keys + 1] = key
    if soonest == '' or left < soonest then
      soonest = left
    end
  end
end
for _, key in ipairs(keys) do
  persisted = persisted + redis.call('PERSIST', key)
end
return { persisted, soonest, score, id, #ids }
