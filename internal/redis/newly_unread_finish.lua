-- Fills in the copy of who wrote to a person, if the note that was left for it is still there. The copy says which server
-- it was made on: one that comes back with old data, or takes over, is another.
--
-- KEYS: the person's set. ARGV: the name of the note, store, generation, position, acknowledged up to, and when, how long
-- the copy is kept in milliseconds, how many senders at the most, and then each sender's position and id.
local set, note = KEYS[1], 'warming:' .. ARGV[1]
if not redis.call('ZSCORE', set, note) then
  return 0
end
redis.call('ZREM', set, note)
for i = 9, #ARGV, 2 do
  redis.call('ZADD', set, 'GT', ARGV[i], ARGV[i + 1])
end
redis.call('ZREMRANGEBYSCORE', set, '-inf', ARGV[5])
redis.call('ZREMRANGEBYRANK', set, 0, -1 - tonumber(ARGV[8]))
local server = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
local state = 'warm:' .. string.sub(server, 1, 12) .. ':' .. ARGV[2] .. ':' .. ARGV[3] .. ':' .. ARGV[4]
redis.call('ZADD', set, '+inf', state, '+inf', 'acknowledged:' .. ARGV[5] .. ':' .. ARGV[6])
redis.call('PEXPIRE', set, ARGV[7])
return 1
