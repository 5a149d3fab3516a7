-- Stores results and ends the leases of finished jobs, each fenced by its execution id and idempotent.
-- KEYS: worker, worker's executions, index of inputs, counter of input bytes, stats of the model
-- ARGV: rq prefixes (job, wip, finished, execution, executions, results), ours (input, result, staged,
--       done), worker, now as RQ writes times, now in epoch seconds, limit of a completion list,
--       tiles, padding rows, rows, busy seconds, then groups of jobs: queue, token, result ttl in s, client,
--       started in epoch seconds, how many, and a job: id, packed result (empty: under the staged key)
-- Reply, a job: 1 finished, 2 finished before (a repeat), 0 not ours any more, 3 has dependents: not done
-- here, 4 cancelled meanwhile: result dropped. An error, with nothing written, where a staged result is gone
local JOB, WIP, FINISHED, EXECUTION, EXECUTIONS, RESULTS =
  ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local INPUT, RESULT, STAGED, DONE = ARGV[7], ARGV[8], ARGV[9], ARGV[10]
local worker, now_text, now_epoch, done_limit = ARGV[11], ARGV[12], ARGV[13], tonumber(ARGV[14])
local now = tonumber(now_epoch)
local reply, finished, ended, dead, ids = {}, {}, {}, {}, {}
local done, ended_of, count, repeated = {}, {}, 0, false

-- A first write that memory limits do not refuse lets the rest run under maxmemory: results must get out.
redis.call('UNLINK', STAGED)

-- Places in ARGV of each job's id, and its group.
local places, groups = {}, {}
local at = 19
while at <= #ARGV do
  local ttl = tonumber(ARGV[at + 2])
  local group = {
    queue = ARGV[at], token = ARGV[at + 1], suffix = ':' .. ARGV[at + 1], ttl = ARGV[at + 2],
    client = ARGV[at + 3], started = ARGV[at + 4], forever = ttl < 0,
    expiry = ttl < 0 and '+inf' or string.format('%.6f', now + ttl)
  }
  local last = at + 4 + 2 * tonumber(ARGV[at + 5])
  for place = at + 6, last, 2 do
    places[#places + 1] = place
    groups[#groups + 1] = group
  end
  at = last + 2
end

-- Lua keeps what was written before an error, so what may be missing is looked for first.
for n, place in ipairs(places) do
  local id = ARGV[place]
  if ARGV[place + 1] == '' and redis.call('EXISTS', STAGED .. id .. groups[n].suffix) == 0 then
    return redis.error_reply('UNSTAGED the result of job ' .. id .. ' is not there: send it inline')
  end
end

local function append(lists, key, ...)
  local list = lists[key]
  if not list then
    list = {}
    lists[key] = list
  end
  local first, second = ...
  list[#list + 1] = first
  if second then list[#list + 1] = second end
end

local function in_parts(command, key, list)
  for first = 1, #list, 1000 do
    redis.call(command, key, unpack(list, first, math.min(first + 999, #list)))
  end
end

local function end_lease(id, queue, token, member)
  append(ended_of, queue, member)
  ended[#ended + 1] = member
  dead[#dead + 1] = EXECUTION .. member
  dead[#dead + 1] = EXECUTIONS .. id
  dead[#dead + 1] = INPUT .. id
  ids[#ids + 1] = id
end

-- The fence, for all jobs at once: a stock cancel or delete, and a reaper, take the entry out of rq:wip.
local held, of_queue, dependents = {}, {}, {}
for n, place in ipairs(places) do
  append(of_queue, groups[n].queue, ARGV[place] .. groups[n].suffix)
  dependents[#dependents + 1] = JOB .. ARGV[place] .. ':dependents'
end
for queue, list in pairs(of_queue) do
  for first = 1, #list, 1000 do
    local last = math.min(first + 999, #list)
    for n, score in ipairs(redis.call('ZMSCORE', WIP .. queue, unpack(list, first, last))) do
      held[list[first + n - 1]] = score
    end
  end
end
local some_dependents = false
for first = 1, #dependents, 1000 do
  local last = math.min(first + 999, #dependents)
  if redis.call('EXISTS', unpack(dependents, first, last)) > 0 then some_dependents = true end
end

-- For a job that is not ours any more: tells a repeat and a cancelled job from one that somebody else has.
local function not_held(id, queue, token, member)
  local state = redis.call('HMGET', JOB .. id, 'status', 'tensorq_execution')
  if state[1] == 'finished' and state[2] == token then return 2 end
  -- What ended elsewhere keeps its input: one that failed may be requeued.
  if state[1] and state[1] ~= 'canceled' then return 0 end
  end_lease(id, queue, token, member)
  return state[1] and 4 or 0
end

for n, place in ipairs(places) do
  local id, result, group = ARGV[place], ARGV[place + 1], groups[n]
  local queue, token, ttl = group.queue, group.token, group.ttl
  local job, member = JOB .. id, id .. group.suffix
  local outcome = 1
  if not held[member] then
    outcome = not_held(id, queue, token, member)
    repeated = repeated or outcome == 2
  elseif some_dependents and redis.call('EXISTS', job .. ':dependents') == 1 then
    outcome = 3
  end
  if outcome == 1 then
    if result == '' then
      redis.call('RENAME', STAGED .. member, RESULT .. id)
    elseif group.forever then
      redis.call('SET', RESULT .. id, result)
    else
      redis.call('SET', RESULT .. id, result, 'EX', ttl)
    end
    redis.call('HSET', job, 'status', 'finished', 'ended_at', now_text, 'tensorq_execution', token)
    redis.call('XADD', RESULTS .. id, 'MAXLEN', '~', 10, '*', 'type', 1, 'worker_name', worker,
      'execution_id', token, 'execution_started_at', group.started, 'execution_ended_at', now_epoch)
    if group.forever then
      if result == '' then redis.call('PERSIST', RESULT .. id) end
      redis.call('PERSIST', RESULTS .. id)
    else
      if result == '' then redis.call('EXPIRE', RESULT .. id, ttl) end
      redis.call('EXPIRE', job, ttl)
      redis.call('EXPIRE', RESULTS .. id, ttl)
    end
    append(finished, queue, group.expiry, id)
    if group.client ~= '' then append(done, group.client, id) end
    end_lease(id, queue, token, member)
    held[member] = nil
    count = count + 1
  elseif result == '' and outcome ~= 3 then
    redis.call('UNLINK', STAGED .. member)
  end
  reply[#reply + 1] = outcome
end

for queue, list in pairs(finished) do in_parts('ZADD', FINISHED .. queue, list) end
for queue, list in pairs(ended_of) do in_parts('ZREM', WIP .. queue, list) end
if #ids > 0 then
  in_parts('SREM', KEYS[2], ended)
  local freed = 0
  for first = 1, #ids, 1000 do
    local last = math.min(first + 999, #ids)
    for _, size in ipairs(redis.call('HMGET', KEYS[3], unpack(ids, first, last))) do
      freed = freed + (tonumber(size) or 0)
    end
    redis.call('HDEL', KEYS[3], unpack(ids, first, last))
  end
  if freed > 0 then redis.call('DECRBY', KEYS[4], freed) end
  for first = 1, #dead, 1000 do
    redis.call('UNLINK', unpack(dead, first, math.min(first + 999, #dead)))
  end
end
for client, list in pairs(done) do
  local key = DONE .. client
  in_parts('RPUSH', key, list)
  redis.call('LTRIM', key, -done_limit, -1)
  redis.call('EXPIRE', key, 3600)
end
if count > 0 then
  redis.call('HINCRBY', KEYS[1], 'successful_job_count', count)
  redis.call('HINCRBYFLOAT', KEYS[1], 'total_working_time', ARGV[18])
  redis.call('HINCRBY', KEYS[5], 'jobs', count)
end
if not repeated then
  redis.call('HINCRBY', KEYS[5], 'tiles', ARGV[15])
  redis.call('HINCRBY', KEYS[5], 'padding', ARGV[16])
  redis.call('HINCRBY', KEYS[5], 'rows', ARGV[17])
end
return reply
