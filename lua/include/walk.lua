-- The rank at which a walk through a sorted set goes on behind this member. Ranks shift while tasks come and go, so a
-- walk remembers the member; where it has left, its score says where it stood. '' for both is the beginning.
local function rank_after(key, score, id)
  if score == '' then
    return 0
  end
  local rank = redis.call('ZRANK', key, id)
  if rank and tonumber(redis.call('ZSCORE', key, id)) == tonumber(score) then
    return rank + 1
  end
  return redis.call('ZCOUNT', key, '-inf', '(' .. score)
end

-- A slice of a walk: ids, their scores, and the score and id to go on behind ('' and '' at the end).
local function walk(key, score, id, limit)
  local from = rank_after(key, score, id)
  local found = redis.call('ZRANGE', key, from, from + limit - 1, 'WITHSCORES')
  local ids, scores = {}, {}
  for i = 1, #found, 2 do
    ids[#ids + 1] = found[i]
    scores[#scores + 1] = found[i + 1]
  end
  if #ids < limit then
    return ids, scores, '', ''
  end
  return ids, scores, scores[#ids], ids[#ids]
end
