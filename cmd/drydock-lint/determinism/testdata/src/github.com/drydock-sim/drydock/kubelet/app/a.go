// Package app is an edge: it may have goroutines, but keeps to its floor.
package app

import (
	"sync"
	"time"

	_ "github.com/drydock-sim/drydock/sim/apiserver" // want `kubelet/app imports sim/apiserver, which stands higher`
)

var mu sync.Mutex

func serve(c chan int) {
	go func() { c <- 1 }()
	time.Sleep(time.Second)
	for range map[string]int{} { //drydock:unordered needless here // want `escapes nothing`
	}
}
