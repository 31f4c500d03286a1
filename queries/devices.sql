-- name: TouchDevice :execrows
-- TouchDevice notes that a known device was heard of. A second time on the same day writes nothing.
UPDATE device
SET seen_at = now()
WHERE user_id = @user_id AND device_id = @device_id AND seen_at < now() - interval '1 day';

-- name: KeepDevice :exec
-- KeepDevice makes a device known, or notes that it was heard of, and holds whoever would forget it until the
-- transaction ends.
INSERT INTO device AS d (user_id, device_id, seen_at)
VALUES (@user_id, @device_id, now())
ON CONFLICT (user_id, device_id) DO UPDATE
SET seen_at = excluded.seen_at
WHERE d.seen_at < now() - interval '1 day';

-- name: DeleteDevice :execrows
-- DeleteDevice forgets one device.
DELETE FROM device
WHERE user_id = @user_id AND device_id = @device_id;

-- name: ListUnseenDevices :many
-- ListUnseenDevices locks devices last heard of before a time, for the caller to forget. Those that somebody else
-- holds are left for the next time.
SELECT user_id, device_id
FROM device
WHERE seen_at < @before
ORDER BY user_id, device_id
LIMIT @page_size
FOR UPDATE SKIP LOCKED;
