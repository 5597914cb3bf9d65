-- settle: bring one id back into exactly one place.
--
-- KEYS: task result ready scheduled running successful failed quarantine
-- ARGV: id history finished
--   history   'successful' or 'failed', as the caller read in the result; '' where it read none
--   finished  the finish time in that result, in milliseconds, '' likewise
-- Answer: {code, place, removed}
--   code     'fine': nothing to repair; 'busy': it runs, and is left to its holder; 'kept': the place stays and the others
--            are removed; 'set_aside': no record, now in quarantine; 'forgotten': no result, its history entries removed;
--            'restored': its result is listed again; 'unlisted': nothing lists its record, which stays; 'unknown': its
--            result is in no history and the caller could not read it
--   place    where it is now, '' for nowhere
--   removed  the places that it was removed from
-- Safe: judges and acts in one step, on what is there now. A result wins over a copy that waits, since whoever requeues a
--   task on purpose removes its result; a record that waits wins over a history entry without a result; a lease wins over
--   a copy that waits; nothing that holds the only copy of a task is deleted.
--@include clock
--@include fields
local NAMES = { 'ready', 'scheduled', 'running', 'successful', 'failed', 'quarantine' }
local id, history, finished = ARGV[1], ARGV[2], ARGV[3]
local scores, listed = {}, 0
for i, name in ipairs(NAMES) do
  scores[name] = redis.call('ZSCORE', KEYS[2 + i], id)
  listed = listed + (scores[name] and 1 or 0)
end
local task = fields_of(KEYS[1], 'data', 'lease_token')
local exists = redis.call('EXISTS', KEYS[1]) == 1
local result = redis.call('EXISTS', KEYS[2]) == 1

local removed = {}
local function keep_only(place)
  for i, name in ipairs(NAMES) do
    if scores[name] and name ~= place then
      redis.call('ZREM', KEYS[2 + i], id)
      removed[#removed + 1] = name
    end
  end
end
local function answer(code, place)
  return { code, place, removed }
end

if scores.running and (task or not result) then
  if not task and tonumber(scores.running) > now then
    -- Its record is gone, but a worker of the Python package can still deliver its result.
    keep_only('running')
    return answer(#removed > 0 and 'kept' or 'busy', 'running')
  end
  if task and result then
    return answer('busy', 'running')
  end
  if task then
    keep_only('running')
    return answer(#removed > 0 and 'kept' or 'fine', 'running')
  end
end
if result then
  local place = history
  if place == '' then
    place = scores.successful and not scores.failed and 'successful' or scores.failed and not scores.successful
      and 'failed' or ''
  end
  if place == '' then
    return answer('unknown', scores.successful and 'successful' or '')
  end
  local code = exists and 'kept' or 'fine'
  if not scores[place] then
    redis.call('ZADD', KEYS[place == 'successful' and 6 or 7], finished == '' and score_text(now) or finished, id)
    code = 'restored'
  end
  keep_only(place)
  redis.call('UNLINK', KEYS[1])
  return answer(code == 'fine' and #removed > 0 and 'kept' or code, place)
end
if task then
  local place = scores.ready and 'ready' or scores.scheduled and 'scheduled' or scores.quarantine and 'quarantine'
  if not place then
    keep_only('')
    return answer(#removed > 0 and 'forgotten' or 'unlisted', '')
  end
  keep_only(place)
  return answer(#removed > 0 and 'kept' or 'fine', place)
end
-- Neither a readable record nor a result.
if scores.ready or scores.scheduled or scores.running then
  if not scores.quarantine then
    redis.call('ZADD', KEYS[8], score_text(now), id)
  end
  keep_only('quarantine')
  return answer('set_aside', 'quarantine')
end
if scores.successful or scores.failed then
  keep_only('quarantine')
  return answer('forgotten', scores.quarantine and 'quarantine' or '')
end
return answer(exists and listed == 0 and 'unlisted' or 'fine', scores.quarantine and 'quarantine' or '')
