-- Takes jobs from the queues of several models and leases them to one worker.
-- KEYS: token of the worker's last claim, worker's executions, wake stream
-- ARGV: rq prefixes (job, queue, wip, execution, executions), input prefix, worker, token, lease in s,
--       lease offset, now as RQ writes times, now in epoch seconds, max bytes, inline bytes, aging in ms,
--       then a model: name, max jobs, max rows
-- Reply: a job: id, queue, token, status word, payload or false, then the FIELDS below; of a job marked as
--        plain, which has none of the others, only the first 9
--        status words: ok, foreign (not a tensorq job), alone (a suspect)
-- A repeat with the token of the last claim returns that batch again: redis-py retries a command whose
-- reply was lost, and a batch popped by the first try must not be forgotten.
local JOB, QUEUE, WIP, EXECUTION, EXECUTIONS, INPUT = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local worker, token, lease, offset = ARGV[7], ARGV[8], tonumber(ARGV[9]), tonumber(ARGV[10])
local now_text, now_epoch = ARGV[11], ARGV[12]
local max_bytes, inline_bytes, aging = tonumber(ARGV[13]), tonumber(ARGV[14]), tonumber(ARGV[15])
local FIELDS = {
  'status', 'tensorq_model', 'tensorq_rows', 'tensorq_bytes', 'tensorq_client', 'tensorq_at_ms', 'timeout',
  'tensorq_plain', 'group_id', 'tensorq_suspect', 'tensorq_deadline_ms', 'result_ttl',
  'success_callback_name', 'webhooks', 'repeats_left', 'rate_limit_key', 'tensorq_poison', 'ttl', 'ended_at'
}
local STATUS, MODEL, ROWS, BYTES, PLAIN, SAVED, SUSPECT, TTL, ENDED = 1, 2, 3, 4, 8, 9, 10, 18, 19
local reply = {}

local small, places = {}, {}

-- A field that is absent costs as much as the whole hash is long, and most jobs lack all of the later ones.
local function read(id)
  local fields = redis.call('HMGET', JOB .. id, unpack(FIELDS, 1, SAVED))
  -- RQ's Job.save always writes a group_id: somebody may have asked for more since the job was submitted.
  if fields[PLAIN] == '1' and not fields[SAVED] then return fields end
  return redis.call('HMGET', JOB .. id, unpack(FIELDS))
end

local function record(id, queue, fields)
  local word = 'ok'
  if not fields[MODEL] then word = 'foreign' elseif fields[SUSPECT] then word = 'alone' end
  reply[#reply + 1] = {id, queue, token, word, false, fields}
  if fields[MODEL] and (tonumber(fields[BYTES]) or 0) <= inline_bytes then
    small[#small + 1] = INPUT .. id
    places[#places + 1] = #reply
  end
end

local function with_payloads()
  for first = 1, #small, 1000 do
    local last = math.min(first + 999, #small)
    for n, payload in ipairs(redis.call('MGET', unpack(small, first, last))) do
      reply[places[first + n - 1]][5] = payload
    end
  end
  return reply
end

if redis.call('GET', KEYS[1]) == token then
  for _, member in ipairs(redis.call('SMEMBERS', KEYS[2])) do
    local id, execution = member:match('^(.*):([^:]*)$')
    if execution == token then
      local queue = redis.call('HGET', JOB .. id, 'origin')
      if queue then record(id, queue, read(id)) end
    end
  end
  return with_payloads()
end

-- A first write that memory limits do not refuse lets the rest run under maxmemory: a claim must go on there,
-- for it is by finishing jobs that their inputs go.
redis.call('UNLINK', KEYS[1] .. ':')

local time = redis.call('TIME')
local expiry = tonumber(time[1]) + lease
local marked, members, bytes, wip = false, {}, 0, {}
-- As text: Lua's numbers are written out anew at each call. Ours are out of the reach of stock cleanup; a
-- function job keeps RQ's own rules.
local our_score, plain_score = string.format('%.0f', expiry + offset), string.format('%.0f', expiry)
local registry_score = string.format('%.0f', expiry + 120)
local execution_ttl, registry_ttl = string.format('%.0f', lease + 60), string.format('%.0f', lease + 120)

local function lease_to_us(id, queue, fields)
  if not marked then
    redis.call('SET', KEYS[1], token, 'EX', 3600)
    marked = true
  end
  local job, member = JOB .. id, id .. ':' .. token
  local execution = EXECUTION .. member
  redis.call('HSET', job, 'status', 'started', 'started_at', now_text, 'last_heartbeat', now_text,
    'worker_name', worker)
  -- One with a ttl, or requeued after a failure whose ttl it still has.
  if fields[TTL] or fields[ENDED] then
    redis.call('PERSIST', job)
    redis.call('PERSIST', INPUT .. id)
  end
  redis.call('HSET', execution, 'id', token, 'job_id', id, 'created_at', now_epoch, 'last_heartbeat',
    now_epoch, 'worker_name', worker)
  redis.call('EXPIRE', execution, execution_ttl)
  -- Lua keeps what was written before an error: a key of another type must not leave the batch half leased.
  local added = redis.pcall('ZADD', EXECUTIONS .. id, registry_score, token)
  if type(added) == 'table' and added.err then
    redis.call('UNLINK', EXECUTIONS .. id)
    redis.call('ZADD', EXECUTIONS .. id, registry_score, token)
  end
  redis.call('EXPIRE', EXECUTIONS .. id, registry_ttl)
  local scores = wip[queue]
  if not scores then
    scores = {}
    wip[queue] = scores
  end
  scores[#scores + 1] = fields[MODEL] and our_score or plain_score
  scores[#scores + 1] = member
  members[#members + 1] = member
end

-- Queues of a model, by the age of their heads: a level counts as `aging` ms of waiting.
local function by_age(model)
  local heads = {}
  for level, suffix in ipairs({'@high', '', '@low'}) do
    local queue = model .. suffix
    local id = redis.pcall('LINDEX', QUEUE .. queue, 0)
    if type(id) == 'string' then
      local at = tonumber(redis.call('HGET', JOB .. id, 'tensorq_at_ms') or '0') or 0
      heads[#heads + 1] = {queue, at + level * aging}
    end
  end
  table.sort(heads, function(a, b) return a[2] < b[2] end)
  return heads
end

for i = 16, #ARGV, 3 do
  local max_jobs, max_rows = tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
  local jobs, rows, full = 0, 0, false
  for _, head in ipairs(by_age(ARGV[i])) do
    if full or jobs >= max_jobs then break end
    local queue, popped = head[1], 0
    for _, id in ipairs(redis.call('LRANGE', QUEUE .. queue, 0, max_jobs - jobs - 1)) do
      local fields = read(id)
      if fields[STATUS] ~= 'queued' or id:find('[\128-\255]') then
        -- Deleted, cancelled or running elsewhere, only the id was left here; or no id that RQ would take.
        popped = popped + 1
      else
        local row_count, size = tonumber(fields[ROWS]) or 1, tonumber(fields[BYTES]) or 0
        local single = not fields[MODEL] or fields[SUSPECT]
        if single and jobs > 0
          or jobs > 0 and rows + row_count > max_rows
          or #members > 0 and bytes + size > max_bytes then
          full = true
          break
        end
        popped, jobs, rows, bytes = popped + 1, jobs + 1, rows + row_count, bytes + size
        lease_to_us(id, queue, fields)
        record(id, queue, fields)
        if single then
          full = true
          break
        end
      end
    end
    if popped > 0 then redis.call('LTRIM', QUEUE .. queue, popped, -1) end
  end
end

for queue, scores in pairs(wip) do
  for first = 1, #scores, 1000 do
    redis.call('ZADD', WIP .. queue, unpack(scores, first, math.min(first + 999, #scores)))
  end
end
for first = 1, #members, 1000 do
  redis.call('SADD', KEYS[2], unpack(members, first, math.min(first + 999, #members)))
end
if #members > 0 then redis.call('EXPIRE', KEYS[2], lease + 180) end
return with_payloads()
