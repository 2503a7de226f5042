package contexts

import (
	"context"
	"time"
)

func bad(ctx context.Context) {
	context.WithCancel(ctx)                // want `use of context.WithCancel: use WithCancel or WithTimeout of ground/loop`
	context.WithTimeout(ctx, time.Second)  // want `use of context.WithTimeout`
	context.WithDeadline(ctx, time.Time{}) // want `use of context.WithDeadline`
	context.WithoutCancel(ctx)             // want `use of context.WithoutCancel`
	context.WithCancelCause(ctx)           // want `use of context.WithCancelCause`
	context.AfterFunc(ctx, func() {})      // want `use of context.AfterFunc`
	<-ctx.Done()                           // want `a channel receive`
}

type key struct{}

func fine(ctx context.Context) error {
	ctx = context.WithValue(ctx, key{}, 1)
	_ = context.Background()
	if ctx.Err() == context.Canceled {
		return context.Cause(ctx)
	}
	return ctx.Err()
}
