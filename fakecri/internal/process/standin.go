package process

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/records"
	"github.com/drydock-sim/drydock/fakecri/kernel"
)

// clientAnswers is what well-known clients of databases say when all is well,
// for probes that look at it.
var clientAnswers = []struct {
	command string
	arg     string // one of its arguments, compared without case; "" for whatever they are
	output  string
}{
	{"redis-cli", "ping", "PONG\n"},
	{"valkey-cli", "ping", "PONG\n"},
	{"pg_isready", "", "/var/run/postgresql:5432 - accepting connections\n"},
	{"mysqladmin", "ping", "mysqld is alive\n"},
	{"mariadb-admin", "ping", "mysqld is alive\n"},
}

// standIn says what comes of commands that are run beside a program that is
// stated, and that nobody knows: they exit 0, as they do in a container without
// processes. It is nil where the image's commands are known.
func standIn(in *records.Interpreted) func(name string) kernel.Command {
	src := in.Container.Image.Source
	if in.Stated == nil || src.Commands != nil || src.Known != nil && src.Known.Closed {
		return nil
	}
	return func(name string) kernel.Command {
		return func(ctx context.Context, p *kernel.Process) int {
			if out := clientAnswer(p.Argv); out != "" {
				_, _ = p.FD(1).Write(ctx, []byte(out))
				return 0
			}
			p.Container().Warn("the command " + name + " is not known here, and neither are the image's; it exits 0 (a stated program can say what comes of it)")
			return 0
		}
	}
}

func clientAnswer(argv []string) string {
	for _, a := range clientAnswers {
		if len(argv) > 0 && path.Base(argv[0]) == a.command &&
			(a.arg == "" || slices.ContainsFunc(argv[1:], func(s string) bool { return strings.EqualFold(s, a.arg) })) {
			return a.output
		}
	}
	return ""
}
