-- expire: give records that nothing lists an end.
--
-- KEYS: (segment)*
-- ARGV: task_prefix ttl (id)*
--   ttl  milliseconds
-- Answer: the ids whose records will end.
-- Safe: checks in one step that no segment of KEYS (every segment of every queue that may hold them) lists the id and that
--   its record has no TTL; the record stays readable until then, and what lists it again takes the TTL off.
local task_prefix, ttl = ARGV[1], ARGV[2]
local ids, listed, ended = {}, {}, {}
for i = 3, #ARGV do
  ids[#ids + 1] = ARGV[i]
end
for _, key in ipairs(KEYS) do
  -- A key of another type stops it here: then nobody can say that the id is listed nowhere.
  local scores = redis.call('ZMSCORE', key, unpack(ids))
  for i = 1, #ids do
    listed[i] = listed[i] or scores[i]
  end
end
for i, id in ipairs(ids) do
  if not listed[i] and redis.call('PTTL', task_prefix .. id) == -1 then
    redis.call('PEXPIRE', task_prefix .. id, ttl)
    ended[#ended + 1] = id
  end
end
return ended
