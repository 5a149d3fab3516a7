-- Renews the leases of a worker's jobs in flight.
-- KEYS: worker, worker's executions
-- ARGV: rq prefixes (job, wip, execution, executions), lease in s, lease offset, now as RQ writes times, now
--       in epoch seconds, worker ttl in s, then a job: id, queue, token
-- Reply: 1 where the worker is registered still, Redis's time in s, then ids that are not this worker's any
--        more
local JOB, WIP, EXECUTION, EXECUTIONS = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local lease, offset, now_text, now_epoch = tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7], ARGV[8]
-- EXPIRE is no denyoom command: with it first, beats go on under maxmemory.
redis.call('EXPIRE', KEYS[1], ARGV[9])
redis.call('EXPIRE', KEYS[2], ARGV[9])
-- Counters and states revive the key after Redis lost it, but not what registering wrote.
local alive = redis.call('HEXISTS', KEYS[1], 'birth')
if alive == 1 then redis.call('HSET', KEYS[1], 'last_heartbeat', now_text) end
local time = tonumber(redis.call('TIME')[1])
local expiry = time + lease
local reply = {alive, time}
for i = 10, #ARGV, 3 do
  local id, queue, token = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local member = id .. ':' .. token
  local score = tonumber(redis.call('ZSCORE', WIP .. queue, member) or '0')
  if score == 0 then
    -- One that this worker finished a moment ago is not lost.
    local state = redis.call('HMGET', JOB .. id, 'status', 'tensorq_execution')
    if state[1] ~= 'finished' or state[2] ~= token then
      reply[#reply + 1] = id
      -- A stock cancel or delete leaves these behind.
      redis.call('SREM', KEYS[2], member)
      redis.call('UNLINK', EXECUTION .. member)
      redis.call('ZREM', EXECUTIONS .. id, token)
    end
  else
    redis.call('ZADD', WIP .. queue, 'XX', score >= offset and expiry + offset or expiry, member)
    if redis.call('EXPIRE', EXECUTION .. member, lease + 60) == 1 then
      redis.call('HSET', EXECUTION .. member, 'last_heartbeat', now_epoch)
    end
    redis.call('ZADD', EXECUTIONS .. id, 'XX', expiry + 120, token)
    redis.call('EXPIRE', EXECUTIONS .. id, lease + 120)
    if redis.call('EXISTS', JOB .. id) == 1 then
      redis.call('HSET', JOB .. id, 'last_heartbeat', now_text)
    end
  end
end
return reply
