-- Puts claimed jobs back at the heads of their queues, uncharged; those first in ARGV come out first.
-- KEYS: worker's executions, wake stream
-- ARGV: rq prefixes (job, queue, wip, execution, executions), input prefix, then a job: id, queue, token
-- Reply: how many were given back
local JOB, QUEUE, WIP, EXECUTION, EXECUTIONS, INPUT = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local count, rest, first = 0, (#ARGV - 6) / 3, 7
for n = rest - 1, 0, -1 do
  local id, queue, token = ARGV[first + n * 3], ARGV[first + n * 3 + 1], ARGV[first + n * 3 + 2]
  local member = id .. ':' .. token
  redis.call('SREM', KEYS[1], member)
  redis.call('UNLINK', EXECUTION .. member)
  -- Not the whole set: the job may be another worker's by now.
  redis.call('ZREM', EXECUTIONS .. id, token)
  if redis.call('ZREM', WIP .. queue, member) == 1 then
    local state = redis.call('HMGET', JOB .. id, 'status', 'ttl')
    -- Queued: somebody saved the job as it was read before it was claimed.
    if state[1] == 'started' or state[1] == 'queued' then
      redis.call('LPUSH', QUEUE .. queue, id)
      redis.call('HSET', JOB .. id, 'status', 'queued', 'started_at', '', 'worker_name', '')
      local ttl = tonumber(state[2])
      if ttl and ttl > 0 then
        redis.call('EXPIRE', JOB .. id, ttl)
        redis.call('EXPIRE', INPUT .. id, ttl + 600)
      end
      count = count + 1
    end
  end
end
if count > 0 then redis.call('XADD', KEYS[2], 'MAXLEN', '~', 1000, '*', 'model', '') end
return count
