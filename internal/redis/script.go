package redis

import (
	"context"
	"fmt"

	goredis "github.com/redis/go-redis/v9"
)

// runEach runs one script many times in a pipeline, and again where the server did not know it any more.
func runEach(ctx context.Context, rdb *goredis.Client, what string, script *goredis.Script, each func(run func(key string, args ...any))) error {
	run := func() error {
		_, err := rdb.Pipelined(ctx, func(pipe goredis.Pipeliner) error {
			each(func(key string, args ...any) { script.EvalSha(ctx, pipe, []string{key}, args...) })
			return nil
		})
		return err
	}
	err := run()
	if goredis.HasErrorPrefix(err, "NOSCRIPT") {
		if err = script.Load(ctx, rdb).Err(); err == nil {
			err = run()
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
