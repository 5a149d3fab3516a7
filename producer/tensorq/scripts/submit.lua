-- Stores jobs of one model on one queue, in order; a job that does not fit its queue is left out.
-- A job whose hash exists is not stored again, so a client may repeat the call after a lost reply.
-- KEYS: queue, set of queues, index of inputs, counter of input bytes, wake stream
-- ARGV: job prefix, input prefix, model, max jobs (0: any), max bytes (0: any), ttl in s (0: none),
--       at front (0 or 1), result prefix (empty: the ids are new), count of common fields and values, those,
--       then a job: id, rows, bytes, payload (an empty payload was SET before this call; at most 1,000 jobs)
-- Reply: jobs waiting, bytes stored, then a job: 1 stored, 2 known already, 0 full, -1 payload lost
local queue, queues, index, counter, wake = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local job_prefix, input_prefix, model = ARGV[1], ARGV[2], ARGV[3]
local max_jobs, max_bytes, ttl = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local push = ARGV[7] == '1' and 'LPUSH' or 'RPUSH'
local result_prefix, common = ARGV[8], tonumber(ARGV[9])
local fields = {'tensorq_rows', '', 'tensorq_bytes', ''}
for i = 1, common do fields[4 + i] = ARGV[9 + i] end

-- An input outlives its job's ttl a little, so that a job taken at the last moment still finds it.
local function keep(key)
  if ttl > 0 then redis.call('EXPIRE', key, ttl + 600) else redis.call('PERSIST', key) end
end

local function in_parts(command, key, list)
  for first = 1, #list, 1000 do
    redis.call(command, key, unpack(list, first, math.min(first + 999, #list)))
  end
end

local hashes = {}
for i = 10 + common, #ARGV, 4 do hashes[#hashes + 1] = job_prefix .. ARGV[i] end
local some_known = #hashes > 0 and redis.call('EXISTS', unpack(hashes)) > 0

local jobs = redis.call('LLEN', queue)
local bytes = tonumber(redis.call('GET', counter) or '0')
local was_empty, added, reply = jobs == 0, 0, {0, 0}
local ids, sizes, inputs = {}, {}, {}
for i = 10 + common, #ARGV, 4 do
  local id, size, payload = ARGV[i], tonumber(ARGV[i + 2]), ARGV[i + 3]
  local job, input = job_prefix .. id, input_prefix .. id
  -- What a job of this id that is gone has left in the index, until a sweep.
  local left = result_prefix ~= '' and tonumber(redis.call('HGET', index, id) or '0') or 0
  local outcome = 1
  if some_known and redis.call('EXISTS', job) == 1 then
    outcome = 2
    if payload == '' then
      -- A repeated SET gave the input a short life again.
      if redis.call('HEXISTS', index, id) == 1 then keep(input) else redis.call('UNLINK', input) end
    end
  elseif (max_jobs > 0 and jobs >= max_jobs) or (max_bytes > 0 and bytes + size - left > max_bytes) then
    outcome = 0
    if payload == '' then redis.call('UNLINK', input) end
  elseif payload == '' and redis.call('EXISTS', input) == 0 then
    outcome = -1
  else
    -- The result of a job of this id that is gone would be taken for this one's.
    if result_prefix ~= '' and redis.call('EXISTS', result_prefix .. id) == 1 then
      redis.call('UNLINK', result_prefix .. id)
    end
    fields[2], fields[4] = ARGV[i + 1], size
    redis.call('HSET', job, unpack(fields))
    if payload == '' then
      keep(input)
    elseif ttl > 0 then
      redis.call('SET', input, payload, 'EX', ttl + 600)
    else
      inputs[#inputs + 1] = input
      inputs[#inputs + 1] = payload
    end
    if ttl > 0 then redis.call('EXPIRE', job, ttl) end
    ids[#ids + 1] = id
    sizes[#sizes + 1] = id
    sizes[#sizes + 1] = size
    jobs, bytes, added = jobs + 1, bytes + size - left, added + size - left
  end
  reply[#reply + 1] = outcome
end
if #ids > 0 then
  if #inputs > 0 then redis.call('MSET', unpack(inputs)) end
  in_parts('HSET', index, sizes)
  in_parts(push, queue, ids)
  redis.call('INCRBY', counter, added)
  redis.call('SADD', queues, queue)
  if was_empty then redis.call('XADD', wake, 'MAXLEN', '~', 1000, '*', 'model', model) end
end
reply[1], reply[2] = jobs, bytes
return reply
