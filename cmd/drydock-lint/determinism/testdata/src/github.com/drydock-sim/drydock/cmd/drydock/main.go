// Command drydock is an edge.
package main

import (
	"os"
	"time"

	_ "github.com/drydock-sim/drydock/kubelet/app"
	_ "github.com/drydock-sim/drydock/sim"
)

var last time.Time

func main() {
	last = time.Now()
	os.Exit(0)
}
