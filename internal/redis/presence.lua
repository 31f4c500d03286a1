-- Notes that a process serves a person for so long from now, or for no time that it no longer does. The key lives as long
-- as the last of its entries, so whoever asks whether somebody is connected asks whether there is a key.
--
-- KEYS[1]  the processes that serve the person, scored by when their entries expire, in milliseconds of this server's clock
-- ARGV     the process, for how many milliseconds
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local length = tonumber(ARGV[2])

redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
if length > 0 then
  redis.call('ZADD', KEYS[1], now + length, ARGV[1])
else
  redis.call('ZREM', KEYS[1], ARGV[1])
end
local last = redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')
if last[2] then
  redis.call('PEXPIREAT', KEYS[1], string.format('%.0f', tonumber(last[2])))
end
return 0
