-- Works what happened to a person into the copy of who wrote to them, or into what will be one. Where there is neither, it
-- makes none. Positions are compared as numbers, and stored as they came.
--
-- KEYS: the person's set. ARGV: how many senders at the most, acknowledged up to or 0, and then each sender's position and
-- id.
local set = KEYS[1]
local top = redis.pcall('ZREVRANGE', set, 0, 1)
if top.err then -- it is no sorted set, and so no copy
  redis.call('DEL', set)
  return 0
end
if not top[1] or string.sub(top[1], 1, 4) ~= 'warm' then
  return 0
end
local acknowledged = 0
if top[2] then
  acknowledged = tonumber(string.match(top[2], '^acknowledged:(%d+):')) or 0
end
local members = 2
if string.sub(top[1], 1, 8) == 'warming:' then
  members = 1
end
if tonumber(ARGV[2]) > acknowledged then
  -- It was made from what was before that, or may have been, and may lack a sender whose later message was not written.
  redis.call('DEL', set)
  return 0
end
local changed = 0
for i = 3, #ARGV, 2 do
  if tonumber(ARGV[i]) > acknowledged then
    changed = changed + redis.call('ZADD', set, 'GT', 'CH', ARGV[i], ARGV[i + 1])
  end
end
redis.call('ZREMRANGEBYRANK', set, 0, -1 - members - tonumber(ARGV[1]))
return changed
