-- records: of these records, read the beginning of those that no segment at hand lists.
--
-- KEYS: (segment)*
-- ARGV: prefix kind head (id)*
--   prefix  what the key of a record begins with
--   kind    'endless': only records without a TTL; 'all'
--   head    bytes of each record to read
--   id      candidates; one that a segment of KEYS lists is passed over
-- Answer: {id, head, ttl} each; head is '' where it holds none; ttl in milliseconds, -1 for no end.
-- Safe: only reads.
--@include fields
local prefix, kind, head = ARGV[1], ARGV[2], tonumber(ARGV[3])
local ids, listed = {}, {}
for i = 4, #ARGV do
  ids[#ids + 1] = ARGV[i]
end
if #ids == 0 then
  return {}
end
for _, key in ipairs(KEYS) do
  local scores = only_wrong_type(redis.pcall('ZMSCORE', key, unpack(ids)))
  if not scores.err then
    for i = 1, #ids do
      listed[i] = listed[i] or scores[i]
    end
  end
end
local found = {}
for i, id in ipairs(ids) do
  local key = prefix .. id
  local ttl = not listed[i] and redis.call('PTTL', key) or -2
  if ttl == -1 or (ttl >= 0 and kind == 'all') then
    local text = only_wrong_type(redis.pcall('HGET', key, 'data'))
    if type(text) == 'table' then
      text = only_wrong_type(redis.pcall('GETRANGE', key, 0, head))
    end
    if type(text) == 'string' then
      found[#found + 1] = { id, string.sub(text, 1, head), ttl }
    else
      found[#found + 1] = { id, '', ttl }
    end
  end
end
return found
