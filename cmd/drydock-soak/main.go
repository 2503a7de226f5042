//go:build linux

// Command drydock-soak runs the kubelet for a while over a real container runtime, kills and
// restarts it meanwhile, and says what went wrong. hack/soak.sh calls it.
//
// It is a test of what a simulation can't show: real time, a real kernel, a process that dies at
// any point. What it holds a kubelet to is that a restart must not be noticed: containers run on,
// no attempt is made twice, hooks run once, and in the end nothing is left over.
//
// A reading order: pods.go are the static pods and what should become of them; soak.go is what
// happens when; world.go is what the runtime says of the pods; process.go and kubelet.go are the
// kubelet, as a process or in this one; image.go makes the image that the pods run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// settings are the flags. With makeImage nothing runs: an image is written and
// that is all. kubelet is a command line; inProcess takes this program's own
// kubelet instead. length counts from the start, settling included.
type settings struct {
	endpoint, dir, image, kubelet string
	makeImage, busybox            string
	length                        time.Duration
	inProcess                     bool
}

// main exits 1 if anything went wrong, with what on stderr. Exit code 2 is a mistake in flags, as
// in drydock.
func main() {
	var s settings
	// The flags are few, and hack/soak.sh is who sets them: no library is needed.
	flag.StringVar(&s.endpoint, "runtime-endpoint", "", "the CRI socket, unix:///PATH")
	flag.StringVar(&s.dir, "dir", "", "where the kubelet keeps its files; made if it is not there")
	flag.StringVar(&s.image, "image", "", "an image with busybox's commands that the runtime has")
	flag.StringVar(&s.kubelet, "kubelet", "", "the kubelet's command, to which flags are added, such as 'bin/drydock kubelet'")
	flag.DurationVar(&s.length, "for", 10*time.Minute, "how long the pods run, at least 2m")
	flag.BoolVar(&s.inProcess, "run-kubelet", false, "be the kubelet (for use by this command)")
	flag.StringVar(&s.makeImage, "make-image", "", "write the image of --image to this archive, and end")
	flag.StringVar(&s.busybox, "busybox", "/bin/busybox", "a static busybox, for --make-image")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	err := s.check()
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "drydock-soak:", err)
		os.Exit(2)
	case s.makeImage != "":
		err = makeImage(s.makeImage, s.busybox, s.image)
	case s.inProcess:
		err = runKubelet(ctx, s.endpoint, s.dir)
	default:
		err = soak(ctx, &s)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "drydock-soak:", err)
		os.Exit(1)
	}
}

// check says which flag is missing. It makes dir absolute too: the kubelet's configuration wants
// absolute paths.
func (s *settings) check() error {
	switch {
	case s.makeImage != "":
		return nil
	case s.endpoint == "":
		return errors.New("--runtime-endpoint is needed: the CRI socket, unix:///PATH")
	case s.dir == "":
		return errors.New("--dir is needed: where the kubelet keeps its files")
	case flag.NArg() > 0:
		return fmt.Errorf("there are no arguments, but %q is one", flag.Arg(0))
	case s.inProcess:
		return nil
	case s.image == "":
		return errors.New("--image is needed: one with busybox's commands that the runtime has")
	case s.length < 2*time.Minute:
		return fmt.Errorf("--for=%s is too short: the pods and the restarts need 2m", s.length)
	}
	var err error
	s.dir, err = filepath.Abs(s.dir)
	return err
}
