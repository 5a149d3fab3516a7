-- Drops the input of a job that will not run, and tells its client that the job has ended.
-- KEYS: input, index of inputs, counter of input bytes, completion list
-- ARGV: id, bound of the list (0: nobody to tell), life of the list in s
local size = redis.call('HGET', KEYS[2], ARGV[1])
redis.call('UNLINK', KEYS[1])
-- The counter follows the index alone: whoever removes the entry lowers it, once.
if redis.call('HDEL', KEYS[2], ARGV[1]) == 1 then redis.call('DECRBY', KEYS[3], size) end
local bound = tonumber(ARGV[2])
if bound > 0 then
  redis.call('RPUSH', KEYS[4], ARGV[1])
  redis.call('LTRIM', KEYS[4], -bound, -1)
  redis.call('EXPIRE', KEYS[4], ARGV[3])
end
return 1
