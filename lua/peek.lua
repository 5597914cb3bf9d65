-- peek: read a page of one segment, in the order in which it is shown, without the payloads that are not.
--
-- KEYS: segment
-- ARGV: kind first last reverse head tail prefix
--   kind     'pending' (records are hashes) or 'finished' (results are strings)
--   first    rank of the first entry, last that of the last one
--   reverse  '1' counts from the highest score
--   head     bytes of a long record's beginning to send, tail of its end; one that is no longer than both is sent whole
--   prefix   what the key of a record begins with
-- Answer: {total, entries}; an entry is {id, score, length, head, tail, lease_worker, lease_started_at, lease_token,
--   sequence}. length is that of the whole record in bytes, -1 where there is none, -2 where the key has another type.
-- Safe: only reads.
--@include fields
local kind, first, last, reverse = ARGV[1], ARGV[2], ARGV[3], ARGV[4] == '1'
local head, tail, prefix = tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7]
local ids
if reverse then
  ids = redis.call('ZRANGE', KEYS[1], first, last, 'REV', 'WITHSCORES')
else
  ids = redis.call('ZRANGE', KEYS[1], first, last, 'WITHSCORES')
end
local entries = {}
for i = 1, #ids, 2 do
  local key = prefix .. ids[i]
  local text, lease = false, {}
  if kind == 'finished' then
    text = only_wrong_type(redis.pcall('GET', key))
  else
    lease = only_wrong_type(redis.pcall('HMGET', key, 'data', 'lease_worker', 'lease_started_at', 'lease_token',
      'rs_sequence'))
    if lease.err then
      text, lease = lease, {}
    else
      text = lease[1]
    end
  end
  local length, front, back = -1, '', ''
  if type(text) == 'table' then
    length = -2
  elseif text then
    length = #text
    if length <= head + tail then
      front = text
    else
      front, back = string.sub(text, 1, head), string.sub(text, -tail)
    end
  end
  entries[#entries + 1] = { ids[i], ids[i + 1], length, front, back, lease[2] or '', lease[3] or '', lease[4] or '',
    lease[5] or '' }
end
return { redis.call('ZCARD', KEYS[1]), entries }
