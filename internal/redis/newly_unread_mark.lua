-- Notes up to where a partition's copies lack nothing, unless a later note is there: one of a larger generation, or of
-- the same one and a larger position. Those of another store are no more.
--
-- KEYS: the mark. ARGV: store, generation, position, how long it is good for in milliseconds.
local store, generation, position = string.match(redis.call('GET', KEYS[1]) or '', '^([^:]+):(%d+):(%d+)$')
if store == ARGV[1] then
  local newer = tonumber(generation) - tonumber(ARGV[2])
  if newer > 0 or newer == 0 and tonumber(position) > tonumber(ARGV[3]) then
    return 0
  end
end
redis.call('SET', KEYS[1], ARGV[1] .. ':' .. ARGV[2] .. ':' .. ARGV[3], 'PX', ARGV[4])
return 1
