// Package loop is the ground: goroutines and the clock are its business, but
// it keeps to its floor, and to order and randomness.
package loop

import (
	"context"
	"math/rand/v2" // want `import of math/rand/v2`
	"os"
	"sync"
	"time"

	_ "github.com/drydock-sim/drydock/ground/trace" // want `ground/loop imports ground/trace, which stands higher`
)

var mu sync.Mutex

func f(ctx context.Context, m map[string]int) {
	go time.Sleep(1)
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	<-ctx.Done()
	_ = os.Stderr
	_ = rand.Int()
	for range m { // want `range over a map`
	}
}
