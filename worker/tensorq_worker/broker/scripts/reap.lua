-- Gives back the jobs of dead workers: those whose lease has lapsed, by Redis's own clock.
-- KEYS: wake stream
-- ARGV: rq prefixes (job, queue, wip, execution, executions, worker), input and running prefix, lease offset,
--       cap of crashes while alone, how many to reap, Redis's time in s at the caller's last beat or '', then
--       queue names
-- Reply, a job: id, queue, word: returned, suspect, poison
-- A job that was in the tile a dead worker ran is a suspect and runs alone next; only a crash while alone is
-- counted, and at the cap the job is marked poison, for the worker that claims it to fail it. The counter
-- goes then, or one requeue by a person would fail at once.
local JOB, QUEUE, WIP, EXECUTION, EXECUTIONS, WORKER = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local INPUT, RUNNING, offset = ARGV[7], ARGV[8], tonumber(ARGV[9])
local cap, limit = tonumber(ARGV[10]), tonumber(ARGV[11])
-- What lapsed since its last beat may be the caller's own, that a pause kept from renewing it.
local time = math.min(tonumber(redis.call('TIME')[1]), tonumber(ARGV[12]) or math.huge)
local now = string.format('%.0f', offset + time)
local reply, tiles = {}, {}

local function was_running(worker, id)
  local ids = tiles[worker]
  if not ids then
    ids = {}
    for _, tile in ipairs(redis.call('HVALS', RUNNING .. worker)) do
      for running in tile:gmatch('%S+') do ids[running] = true end
    end
    tiles[worker] = ids
  end
  return ids[id]
end

for i = 13, #ARGV do
  local queue = ARGV[i]
  local lapsed = redis.call('ZRANGEBYSCORE', WIP .. queue, ARGV[9], now, 'LIMIT', 0, limit)
  for n = #lapsed, 1, -1 do
    local member = lapsed[n]
    local id, token = member:match('^(.*):([^:]*)$')
    redis.call('ZREM', WIP .. queue, member)
    if id then
      local job = JOB .. id
      local state = redis.call('HMGET', job, 'status', 'worker_name', 'tensorq_suspect', 'tensorq_crashes',
        'ttl')
      local worker = state[2] or ''
      if worker == '' then worker = redis.call('HGET', EXECUTION .. member, 'worker_name') or '' end
      redis.call('SREM', WORKER .. worker .. ':executions', member)
      redis.call('UNLINK', EXECUTION .. member)
      redis.call('ZREM', EXECUTIONS .. id, token)
      -- Queued: somebody saved the job as it was read before it was claimed. It is on no queue, or the claim
      -- drops the second of two places on one.
      if state[1] == 'started' or state[1] == 'queued' then
        local word = 'returned'
        if was_running(worker, id) then
          word = 'suspect'
          redis.call('HDEL', job, 'tensorq_plain')
          local crashes = (tonumber(state[4]) or 0) + (state[3] and 1 or 0)
          if crashes >= cap then
            word = 'poison'
            redis.call('HDEL', job, 'tensorq_crashes')
            redis.call('HSET', job, 'tensorq_poison', crashes)
          else
            redis.call('HSET', job, 'tensorq_suspect', 1, 'tensorq_crashes', crashes)
          end
        end
        redis.call('HSET', job, 'status', 'queued', 'started_at', '', 'worker_name', '')
        redis.call('LPUSH', QUEUE .. queue, id)
        local ttl = tonumber(state[5])
        if ttl and ttl > 0 then
          -- What anybody may have written is not always a time; a job must come back all the same.
          redis.pcall('EXPIRE', job, ttl)
          redis.pcall('EXPIRE', INPUT .. id, ttl + 600)
        end
        reply[#reply + 1] = {id, queue, word}
      end
    end
  end
end
if #reply > 0 then redis.call('XADD', KEYS[1], 'MAXLEN', '~', 1000, '*', 'model', '') end
return reply
