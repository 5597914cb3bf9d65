-- acquire: lease READY tasks of several queues to one worker, one from each in rotation.
--
-- KEYS: worker (ready running quarantine)*
-- ARGV: worker token request count start_now sequence lease_ttl byte_budget task_prefix
--   token        128 random bits of the client; the fence of every lease that this request grants
--   request      number of this request of the worker, rising; the same number is the same request
--   start_now    how many of the granted begin at once: the watermark of started work
--   sequence     the first sequence number to give out, above all given before
--   lease_ttl    milliseconds
--   byte_budget  stops granting once the data of the granted exceeds it; the first is always granted
--   task_prefix  what the key of a task begins with
-- Answer: {code, started_at, granted, notes}
--   code     'granted'; 'superseded' where a later request of this worker was served; 'unregistered' where the
--            worker is not (or no longer) registered, so that it may hold nothing
--   granted  queue number, id, sequence, data, trace, one lease after the other in one flat list
--   notes    {queue number, what, id} each: 'ghost' (no hash), 'not_a_hash', 'duplicate' (already running; the READY
--            entry was removed), 'wrong_type' (the queue's own key, left alone)
-- Safe: reads all before the first write; an id leaves READY in the same script that lists it as running; ghosts go to
--   quarantine; the same request answers the same leases that it still holds.
--@include clock
--@include fields
local worker_id, token, request = ARGV[1], ARGV[2], tonumber(ARGV[3])
local count, start_now, sequence = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local lease_ttl, byte_budget, task_prefix = tonumber(ARGV[7]), tonumber(ARGV[8]), ARGV[9]
-- How many READY entries one call looks at: a head of ghosts is passed in slices.
local SCAN_LIMIT = 4000

local worker = redis.call('HMGET', KEYS[1], 'id', 'dead', 'request', 'token', 'granted', 'started_at')
if not worker[1] or worker[2] then
  return { 'unregistered', '', {}, {} }
end
local last = tonumber(worker[3] or 0)
if request < last or (request == last and worker[4] ~= token) then
  return { 'superseded', '', {}, {} }
end
if request == last then
  local granted, leases = {}, cmsgpack.unpack(worker[5])
  for i = 1, #leases, 2 do
    local task = fields_of(task_prefix .. leases[i + 1], 'data', 'lease_token', 'rs_trace', 'rs_sequence')
    if task and task[2] == token then
      for _, value in ipairs({ leases[i], leases[i + 1], tonumber(task[4]), task[1], task[3] or '' }) do
        granted[#granted + 1] = value
      end
    end
  end
  return { 'granted', worker[6], granted, {} }
end

-- Read phase. heads[q] is a window of READY ids of queue q, taken from the front.
local notes, heads, open = {}, {}, {}
local queues = (#KEYS - 1) / 3
local scanned = 0
local function refill(q)
  local head = heads[q]
  local size = math.max(count, 16)
  if scanned >= SCAN_LIMIT then
    return false
  end
  local ids = only_wrong_type(redis.pcall('ZRANGE', KEYS[q * 3 - 1], head.from, head.from + size - 1))
  local running = not ids.err and #ids > 0 and only_wrong_type(redis.pcall('ZMSCORE', KEYS[q * 3], unpack(ids))) or ids
  if ids.err or running.err then
    notes[#notes + 1] = { q, 'wrong_type', '' }
    return false
  end
  head.ids, head.running, head.at, head.from = ids, running, 0, head.from + #ids
  scanned = scanned + #ids
  return #ids > 0
end
for q = 1, queues do
  heads[q] = { ids = {}, running = {}, at = 0, from = 0, taken = 0, ghosts = {}, leases = {} }
  open[q] = q
end
-- Five values a lease in one list: the server looks into each table that it answers, which costs more than it holds.
local granted, leased, bytes = {}, 0, 0
local turn = 1
while leased < count and #open > 0 and (bytes < byte_budget or leased == 0) do
  if turn > #open then
    turn = 1
  end
  local q = open[turn]
  local head = heads[q]
  if head.at >= #head.ids and not refill(q) then
    table.remove(open, turn)
  else
    head.at = head.at + 1
    local id = head.ids[head.at]
    if head.running[head.at] then
      head.taken = head.taken + 1
      notes[#notes + 1] = { q, 'duplicate', id }
    else
      local task = only_wrong_type(redis.pcall('HMGET', task_prefix .. id, 'data', 'rs_trace'))
      if task.err or not task[1] then
        head.taken = head.taken + 1
        head.ghosts[#head.ghosts + 1] = id
        notes[#notes + 1] = { q, task.err and 'not_a_hash' or 'ghost', id }
      elseif leased > 0 and bytes + #task[1] > byte_budget then
        break
      else
        head.taken = head.taken + 1
        head.leases[#head.leases + 1] = id
        local at = leased * 5
        granted[at + 1], granted[at + 2], granted[at + 3] = q, id, sequence + leased
        granted[at + 4], granted[at + 5] = task[1], task[2] or ''
        leased = leased + 1
        bytes = bytes + #task[1]
        turn = turn + 1
      end
    end
  end
end
for q = 1, queues do
  if #heads[q].ghosts > 0 then
    redis.call('ZCARD', KEYS[q * 3 + 1])
  end
end
if leased == 0 and #notes == 0 then
  -- Recorded as well: were it to arrive once more, late, it must not be granted what its sender no longer waits for.
  redis.call('HSET', KEYS[1], 'request', request, 'token', token, 'granted', cmsgpack.pack({}), 'started_at', '')
  return { 'granted', '', {}, {} }
end

-- Write phase.
--@include iso
local started_at = iso_text(time)
local record = {}
for i = 1, leased do
  record[2 * i - 1], record[2 * i] = granted[5 * i - 4], granted[5 * i - 3]
end
redis.call('HSET', KEYS[1], 'request', request, 'token', token, 'granted', cmsgpack.pack(record),
  'started_at', started_at)
if leased > 0 and start_now > 0 then
  redis.call('HSET', KEYS[1], 'mark', sequence + math.min(start_now, leased) - 1)
end
-- Whole milliseconds: a score with a fraction takes the server several times as long to read and to print.
local deadline = string.format('%.0f', now + lease_ttl)
for i = 1, leased do
  redis.call('HSET', task_prefix .. granted[5 * i - 3], 'lease_worker', worker_id, 'lease_started_at', started_at,
    'lease_token', token, 'rs_sequence', sequence + i - 1)
end
for q = 1, queues do
  local head = heads[q]
  for first = 1, #head.leases, 1000 do
    local members = {}
    for i = first, math.min(first + 999, #head.leases) do
      members[#members + 1] = deadline
      members[#members + 1] = head.leases[i]
    end
    redis.call('ZADD', KEYS[q * 3], unpack(members))
  end
  for _, id in ipairs(head.ghosts) do
    redis.call('ZADD', KEYS[q * 3 + 1], score_text(now), id)
  end
  if head.taken > 0 then
    redis.call('ZREMRANGEBYRANK', KEYS[q * 3 - 1], 0, head.taken - 1)
  end
end
return { 'granted', started_at, granted, notes }
