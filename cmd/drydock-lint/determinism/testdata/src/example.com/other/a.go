// Package other is not ours.
package other

import "sync"

var mu sync.Mutex

func f() { go f() }
