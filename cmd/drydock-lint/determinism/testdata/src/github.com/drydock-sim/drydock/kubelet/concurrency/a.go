package concurrency

import (
	"iter"
	"reflect"
	"runtime"
	"sync"        // want `import of sync: a loop runs one step at a time and needs no locks`
	"sync/atomic" // want `import of sync/atomic`
)

type line chan int // want `a channel: use Queue`

type box struct {
	mu sync.Mutex
	n  atomic.Int64
}

type watch interface {
	ResultChan() <-chan string // want `a channel: use Queue`
}

func goes(f func()) {
	go f() // want `a go statement: start a task with Group.Go`
}

func makes() any {
	_ = make(chan int, 1) // want `a channel: use Queue`
	return make(line)     // want `a channel is made`
}

func sendsAndReceives(l line, w watch) {
	l <- 1   // want `a channel send`
	<-l      // want `a channel receive`
	select { // want `a select statement`
	case v := <-l: // want `a channel receive`
		_ = v
	default:
	}
	for range l { // want `range over a channel`
	}
	for range w.ResultChan() { // want `range over a channel`
	}
	close(l) // want `close of a channel`
}

func generic[C ~chan T, T any](c C) { // want `a channel: use Queue`
	for range c { // want `range over a channel`
	}
}

func reflects(v reflect.Value) {
	v.Send(v)           // want `use of reflect.Value.Send`
	reflect.Select(nil) // want `use of reflect.Select`
}

func others(seq iter.Seq[int]) {
	runtime.Goexit()  // want `use of runtime.Goexit`
	runtime.Gosched() // want `use of runtime.Gosched`
	iter.Pull(seq)    // want `use of iter.Pull`
}

// What only looks alike.
type doors struct{}

func (doors) Send(v int) {}
func (doors) close()     {}

// A library's interface may want a channel; one without a name does nothing.
func (doors) GetEvents(_ chan int, n int) {}
func (doors) GetMore(_ int, c chan int)   {} // want `a channel: use Queue`

func fine(d doors) {
	close := func(int) {}
	close(1)
	d.Send(1)
	d.close()
	x := 1
	p := &x
	_ = -x
	_ = *p
	_ = make([]int, 1)
	for range 3 {
	}
	var pc [4]uintptr
	runtime.Callers(0, pc[:])
}
