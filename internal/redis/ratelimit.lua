-- Takes from a person's allowance and returns 0, or takes nothing and returns how many microseconds to wait.
-- This is the generic cell rate algorithm, as in internal/ratelimit/memory.go.
--
-- KEYS[1]  when the allowance is whole again, in microseconds of this server's clock; absent where it is whole
-- ARGV     the microseconds in which the allowance grows by one, how many ones it holds, how many to take
local interval, burst, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local span = interval * burst
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])

local whole = tonumber(redis.call('GET', KEYS[1]) or now)
-- More than a span ahead it can only be where the clock went back, or the limit was lowered.
whole = math.min(math.max(whole, now), now + span) + interval * cost
if whole - now > span then
  return whole - now - span
end
redis.call('SET', KEYS[1], string.format('%.0f', whole), 'PX', math.ceil((whole - now) / 1000))
return 0
