-- Notes the tile that a lane is about to run: its jobs are the suspects if the worker dies.
-- KEYS: what the worker runs
-- ARGV: life of the note in s, place, ids, then places whose tiles have ended
-- HDEL is no denyoom command: with it first, what was claimed can run under maxmemory.
redis.call('HDEL', KEYS[1], ARGV[2])
for i = 4, #ARGV do redis.call('HDEL', KEYS[1], ARGV[i]) end
redis.call('HSET', KEYS[1], ARGV[2], ARGV[3])
redis.call('EXPIRE', KEYS[1], ARGV[1])
return 1
