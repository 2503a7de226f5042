package calls

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

var (
	errDown = status.Error(codes.Unavailable, `connection error: desc = "transport: Error while dialing: dial unix /run/containerd/containerd.sock: connect: connection refused"`)
	errLost = status.Error(codes.Unavailable, "error reading from server: EOF")
	errDead = status.Error(codes.Canceled, "grpc: the client connection is closing")
)

// IsDown reports whether an error is a call's while the runtime's daemon is down.
func IsDown(err error) bool { return err == errDown }

// CtxError turns a context's error into a status error; others stay.
func CtxError(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return status.FromContextError(err).Err()
	}
	return err
}
