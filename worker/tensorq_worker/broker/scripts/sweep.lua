-- Drops what the index of inputs holds of jobs that are gone or cancelled (stock Queue.empty, Job.delete and
-- Job.cancel leave their inputs behind) and of inputs that have expired.
-- KEYS: index of inputs, counter of input bytes
-- ARGV: job prefix, input prefix, then ids to look at
-- Reply: how many were dropped
local dropped, freed = 0, 0
for i = 3, #ARGV do
  local id = ARGV[i]
  local status = redis.call('HGET', ARGV[1] .. id, 'status')
  if not status or status == 'canceled' or redis.call('EXISTS', ARGV[2] .. id) == 0 then
    local size = redis.call('HGET', KEYS[1], id)
    if redis.call('HDEL', KEYS[1], id) == 1 then
      freed = freed + (tonumber(size) or 0)
      dropped = dropped + 1
    end
    redis.call('UNLINK', ARGV[2] .. id)
  end
end
if freed > 0 then redis.call('DECRBY', KEYS[2], freed) end
return dropped
