-- browse: read a slice of one segment behind an entry, for those who read all of it while tasks come and go.
--
-- KEYS: segment
-- ARGV: kind reverse score id limit head tail byte_budget prefix
--   kind         'pending' (records are hashes) or 'finished' (results are strings)
--   reverse      '1' begins at the highest score
--   score, id    the entry to go on behind, '' for the beginning
--   limit        entries at most
--   head, tail   bytes of a long record's beginning and end to send; one that is no longer than both is sent whole
--   byte_budget  stops once what is sent exceeds it; the first is always sent
--   prefix       what the key of a record begins with
-- Answer: {total, entries, score, id}; an entry as `peek` answers it; score and id of the last one, '' where the segment
--   ends with it.
-- Safe: only reads. Ranks shift while tasks come and go, so it goes on behind a member; where that has left, at its score.
local kind, reverse, score, id = ARGV[1], ARGV[2] == '1', ARGV[3], ARGV[4]
local limit, head, tail, budget, prefix = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8]), ARGV[9]
local from = 0
if score ~= '' then
  local rank = redis.call(reverse and 'ZREVRANK' or 'ZRANK', KEYS[1], id)
  if rank and tonumber(redis.call('ZSCORE', KEYS[1], id)) == tonumber(score) then
    from = rank + 1
  elseif reverse then
    from = redis.call('ZCOUNT', KEYS[1], '(' .. score, '+inf')
  else
    from = redis.call('ZCOUNT', KEYS[1], '-inf', '(' .. score)
  end
end
local ids
if reverse then
  ids = redis.call('ZRANGE', KEYS[1], from, from + limit - 1, 'REV', 'WITHSCORES')
else
  ids = redis.call('ZRANGE', KEYS[1], from, from + limit - 1, 'WITHSCORES')
end
local entries, sent, more = {}, 0, #ids == limit * 2
for i = 1, #ids, 2 do
  local key = prefix .. ids[i]
  local text, lease = false, {}
  if kind == 'finished' then
    text = redis.pcall('GET', key)
  else
    lease = redis.pcall('HMGET', key, 'data', 'lease_worker', 'lease_started_at', 'lease_token', 'rs_sequence')
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
  sent = sent + #front + #back
  if sent > budget and #entries > 0 then
    more = true
    break
  end
  entries[#entries + 1] = { ids[i], ids[i + 1], length, front, back, lease[2] or '', lease[3] or '', lease[4] or '',
    lease[5] or '' }
end
local last = more and entries[#entries] or { '', '' }
return { redis.call('ZCARD', KEYS[1]), entries, last[2], last[1] }
