-- inspect: look at a slice of one segment for ids that break the rules.
--
-- KEYS: ready scheduled running successful failed quarantine
-- ARGV: segment score id limit task_prefix result_prefix
--   segment    which of KEYS, from 1
--   score, id  the entry to go on behind, '' for the beginning
--   limit      how many entries to look at
-- Answer: {seen, faults, leases, score, id}
--   faults  {id, score, places, record, result} each: places has '1' for each of KEYS that lists the id; record is 'ok',
--           'none' or 'bad' (another type, or no data in it); result is 1 where there is one
--   leases  only for running: {id, deadline, worker, sequence, claimed} each; claimed is 1 where a maintenance settles it
--   score, id  the entry to go on behind, '' at the end
-- Safe: only reads.
--@include walk
--@include fields
local segment, task_prefix, result_prefix = tonumber(ARGV[1]), ARGV[5], ARGV[6]
local ids, scores, score, id = walk(KEYS[segment], ARGV[2], ARGV[3], tonumber(ARGV[4]))
local faults, leases = {}, {}
if #ids == 0 then
  return { 0, faults, leases, score, id }
end
local places = {}
for i, key in ipairs(KEYS) do
  local listed = i == segment and scores or only_wrong_type(redis.pcall('ZMSCORE', key, unpack(ids)))
  -- A key of another type lists nothing; the counts tell of it.
  places[i] = listed.err and {} or listed
end
local function state_of(key)
  local found = only_wrong_type(redis.pcall('HEXISTS', key, 'data'))
  if type(found) == 'table' then
    return 'bad'
  end
  return found == 1 and 'ok' or redis.call('EXISTS', key) == 1 and 'bad' or 'none'
end
for n, next_id in ipairs(ids) do
  local mask, listed = {}, 0
  for i = 1, #KEYS do
    mask[i] = places[i][n] and '1' or '0'
    listed = listed + tonumber(mask[i])
  end
  local record, result = state_of(task_prefix .. next_id), redis.call('EXISTS', result_prefix .. next_id)
  local fine = listed == 1
  if segment <= 3 then
    fine = fine and record == 'ok' and result == 0
  elseif segment <= 5 then
    fine = fine and record == 'none' and result == 1
  else
    fine = fine and result == 0
  end
  if not fine then
    faults[#faults + 1] = { next_id, scores[n], table.concat(mask), record, result }
  end
  if segment == 3 and record == 'ok' then
    local lease = fields_of(task_prefix .. next_id, 'data', 'lease_worker', 'rs_sequence', 'lease_token', 'rs_claimed')
    local claimed = lease[4] and lease[4] == lease[5] and 1 or 0
    leases[#leases + 1] = { next_id, scores[n], lease[2] or '', lease[3] or '', claimed }
  end
end
return { #ids, faults, leases, score, id }
