//go:build !linux

package hugepages

import "errors"

// Advise asks for huge pages; there is no way to here.
func Advise(int64) (int64, error) { return 0, errors.ErrUnsupported }
