//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	"k8s.io/klog/v2"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/fakecri/server"
	"github.com/drydock-sim/drydock/scenarios"
)

// fakecriFlags are the flags of drydock fakecri. Lists and times are text as the
// user wrote it; options turns them into server.Options, where zero means that
// nothing was said. control is a second listener, for faults; record a file for
// the calls. The zero value is not usable: cobra fills in the defaults.
type fakecriFlags struct {
	// Sockets: listen is the CRI's, control the one for faults, streaming the
	// address of exec, attach and port-forward. socketMode is octal.
	listen     string
	socketMode string
	// root is the directory of logs and files; "" is a temporary one that goes
	// with the process.
	root string
	// Files: images, programs and faults are parts of scenarios; record takes
	// each call. onlyListed refuses images that no file lists.
	images     []string
	onlyListed bool
	programs   []string
	// latency is "realistic" or "none"; pullLatency a range such as "2s..4s".
	// speed is virtual seconds per second.
	latency     string
	pullLatency string
	podCIDR     string
	// seed without seedSet is drawn: a server that is asked by real clients does
	// not repeat anyway.
	seed      uint64
	seedSet   bool
	speed     float64
	cgroups   string
	faults    string
	control   string
	record    string
	streaming string
	name      string
	verbose   bool

	stdout, stderr io.Writer
}

// It is what somebody reads who tests a client and has never seen a scenario.
const fakecriLong = `Serve an in-memory container runtime on a unix socket: the services of the
Container Runtime Interface (runtime.v1), for crictl, for kubelets and for
whoever tests a client of it. It needs no kernel features and no root.

Every well-formed image "pulls". Commands of busybox images are interpreted by
a shell of our own, well-known images (nginx, httpd, pause, ...) behave; others
run until they are stopped. Mounts of the host and container logs are real
files.

--faults FILE sets faults from the start. It has a list of what a scenario's
action has as fault.cri; from counts from the start, with "at" as in a timeline:

  - method: StopContainer
    error: {code: Unavailable, message: try later}
    count: 2
  - at: 30s
    fault: {cri: {method: "List*", latency: 2s, for: 10s}}

--control ADDR (unix:///PATH or HOST:PORT on the loopback interface) opens an
HTTP endpoint that changes things while the runtime runs; answers are JSON:

  GET /state             what there is: sandboxes, containers, images, calls
  GET /faults            the faults that are set, with their numbers
  POST /faults           sets faults; the body is as in --faults, YAML or JSON
  DELETE /faults?id=N    clears a fault; without id all of them
  POST /daemon           {"down": true} has calls fail as Unavailable while
                         containers live on; {"up": true} ends that

  curl --unix-socket /tmp/control -d 'method: PullImage
  hang: true' http://drydock/faults

--speed N runs programs and latencies N times as fast as the wall clock; the
timeouts of requests, and all times that clients see, stay the wall clock's.

--record FILE appends a line of JSON for every call: time, method, request,
response, code, error, tookMs; of streams how many messages were sent.
Credentials are left out, and long outputs are cut.

When it listens it says so on standard output. SIGTERM and SIGINT end it: calls
in flight get two seconds, and the containers end with it.`

// newFakecri is drydock fakecri.
func newFakecri() *cobra.Command {
	var f fakecriFlags
	cmd := &cobra.Command{
		Use:   "fakecri --listen unix:///PATH",
		Short: "Serve an in-memory container runtime on a CRI socket",
		Long:  fakecriLong,
		Example: `  drydock fakecri --listen unix:///tmp/cri.sock
  crictl --runtime-endpoint unix:///tmp/cri.sock pods
  drydock fakecri --listen unix:///tmp/cri.sock --latency none --faults faults.yaml --control unix:///tmp/control`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.seedSet = cmd.Flags().Changed("seed")
			f.stdout, f.stderr = cmd.OutOrStdout(), cmd.ErrOrStderr()
			return f.run(cmd.Context())
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.listen, "listen", "", "where to listen: unix:///PATH, or tcp://HOST:PORT on the loopback interface (required)")
	fl.StringVar(&f.socketMode, "socket-mode", "0660", "the socket's permissions, in octal")
	fl.StringVar(&f.root, "root", "", "the runtime's directory, which ImageFsInfo names; made if need be (default: one that is removed in the end)")
	fl.StringArrayVar(&f.images, "images", nil, "a file with a catalogue of images, as a scenario's spec.images (may be repeated)")
	fl.BoolVar(&f.onlyListed, "only-listed-images", false, "pulls of images that are not in the catalogue fail")
	fl.StringArrayVar(&f.programs, "program", nil, "a file with what containers do, as a scenario's spec.programs (may be repeated)")
	fl.StringVar(&f.latency, "latency", "realistic", "how long calls take: realistic (as on an idle machine) or none")
	fl.StringVar(&f.pullLatency, "pull-latency", "100ms..300ms", "how long pulls take that the catalogue says nothing about: a time or a range")
	fl.StringVar(&f.podCIDR, "pod-cidr", server.DefaultPodCIDR, "the pods' addresses; what pods listen on can be reached only within 127.0.0.0/8")
	fl.Uint64Var(&f.seed, "seed", 0, "decides ids and draws (default: another one each time)")
	fl.Float64Var(&f.speed, "speed", 1, "how many times as fast as the wall clock programs and latencies run")
	fl.StringVar(&f.cgroups, "cgroup-driver", "cgroupfs", "what RuntimeConfig says: cgroupfs or systemd")
	fl.StringVar(&f.faults, "faults", "", "a file with faults that are there from the start")
	fl.StringVar(&f.control, "control", "", "where to open the control endpoint: unix:///PATH or HOST:PORT")
	fl.StringVar(&f.record, "record", "", "append every call to this file, as JSON lines")
	fl.StringVar(&f.streaming, "streaming-address", "127.0.0.1:0", "HOST:PORT on which exec, attach and port-forward are served")
	fl.StringVar(&f.name, "runtime-name", "fakecri", "the runtime's name, as Version has it")
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "show what the streaming library logs, and stacks of what goes wrong inside")
	return cmd
}

// run makes everything that can fail for the user's fault (files, directory,
// listeners) before the server starts, and takes it back in reverse. The control socket is opened
// before the server serves, so that a test that waits for "ready" can set faults at once.
func (f *fakecriFlags) run(ctx context.Context) error {
	opts, err := f.options()
	if err != nil {
		return err
	}
	// Mode 0600: requests hold environments of containers.
	if f.record != "" {
		file, err := os.OpenFile(f.record, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return badInput("--record: %w", err)
		}
		defer file.Close()
		opts.Record = file
	}
	lis, err := f.listener()
	if err != nil {
		return err
	}
	defer lis.Close()
	var ctl net.Listener
	if f.control != "" {
		if ctl, err = controlListener(f.control); err != nil {
			return err
		}
		defer ctl.Close()
	}
	cleanup, err := f.makeRoot(&opts)
	if err != nil {
		return err
	}
	defer cleanup()
	if !f.verbose { // the streaming library logs each client that goes away as an error
		// It is klog of kubelet/pkg/cri/streaming.
		klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	}
	srv, err := server.New(opts)
	var no *net.OpError
	if errors.As(err, &no) { // it opens nothing else
		return badInput("--streaming-address: %w", no)
	}
	if err != nil {
		return badInput("%w", err)
	}
	return f.serve(ctx, srv, lis, ctl)
}

// serve serves until ctx ends. It ends with the first listener that fails. Both
// listeners and the server are down when it returns. "ready" is printed when the sockets listen
// already: clients may connect from then on, and are served as soon as Serve runs.
func (f *fakecriFlags) serve(ctx context.Context, srv *server.Server, lis, ctl net.Listener) error {
	// Room for both, so that neither goroutine waits for a reader that has gone.
	failed := make(chan error, 2)
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		failed <- srv.Serve(lis)
	}()
	closeControl := func() {}
	if ctl != nil {
		// A client that sends nothing must not hold a connection for ever.
		web := &http.Server{Handler: srv.Control(parseControl), ReadHeaderTimeout: 10 * time.Second}
		closeControl = func() { _ = web.Close() }
		wg.Add(1)
		go func() {
			defer wg.Done()
			if err := web.Serve(ctl); !errors.Is(err, http.ErrServerClosed) {
				failed <- fmt.Errorf("the control endpoint: %w", err)
			}
		}()
		fmt.Fprintf(f.stdout, "drydock fakecri: control endpoint on %s\n", address(ctl))
	}
	fmt.Fprintf(f.stdout, "drydock fakecri: ready, listening on %s\n", address(lis))
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	// A panic of the loop: nobody would answer any more.
	case <-srv.Done():
		err = fmt.Errorf("the runtime's loop ended: %w", srv.Err())
	}
	closeControl()
	// The control endpoint goes first, so that nobody sets faults in a server that is going down.
	srv.Stop()
	wg.Wait()
	if err != nil {
		return &codeError{exitInternal, err}
	}
	return nil
}

// parseControl reads the body of POST /faults. They are written as in a scenario;
// positions in errors are those in the body.
func parseControl(body []byte) ([]fakecri.Fault, error) { return scenarios.ParseFaults("body", body) }

// options are what the flags say, but for the files that are written. The
// machine's own figures (processors, memory, host name) stand where flags say
// nothing, because clients compare them with the node they run on. Warnings come
// from more than one goroutine, hence the lock. What flags say is turned into options and
// validated here; the server trusts it.
func (f *fakecriFlags) options() (server.Options, error) {
	var lock sync.Mutex
	o := server.Options{
		Speed: f.speed, Seed: f.seed, StreamAddress: f.streaming, Debug: f.verbose,
		Warn: func(text string) {
			lock.Lock()
			defer lock.Unlock()
			fmt.Fprintf(f.stderr, "drydock fakecri: %s\n", strings.TrimSpace(text))
		},
	}
	// The comparison is negated so that NaN, which compares false, is refused.
	if !(f.speed >= server.MinSpeed && f.speed <= server.MaxSpeed) { // NaN neither
		return o, badInput("--speed: %v is not within %v and %v", f.speed, server.MinSpeed, server.MaxSpeed)
	}
	// Servers beside each other must not draw the same latencies.
	if !f.seedSet {
		o.Seed = rand.Uint64()
	}
	r := &o.Runtime
	r.Name, r.PodCIDR, r.CgroupDriver, r.OnlyListedImages = f.name, f.podCIDR, f.cgroups, f.onlyListed
	r.CPUs, r.NodeIP = runtime.NumCPU(), "127.0.0.1"
	r.Hostname, _ = os.Hostname()
	r.Node = r.Hostname
	var info unix.Sysinfo_t
	// The runtime's machine has this one's memory, as stats are compared with it.
	if unix.Sysinfo(&info) == nil {
		r.Memory = int64(info.Totalram) * int64(info.Unit)
	}
	switch f.latency {
	case "realistic":
	case "none":
		// Zero ranges would mean the defaults, hence options of their own.
		r.Latency = server.NoLatency()
	default:
		return o, badInput("--latency: %q is neither realistic nor none", f.latency)
	}
	if f.cgroups != "cgroupfs" && f.cgroups != "systemd" {
		return o, badInput("--cgroup-driver: %q is neither cgroupfs nor systemd", f.cgroups)
	}
	if f.name == "" {
		return o, badInput("--runtime-name: must not be empty")
	}
	var err error
	if r.ImagePull, err = parseRange(f.pullLatency); err != nil {
		return o, badInput("--pull-latency: %w", err)
	}
	if err := f.files(&o); err != nil {
		return o, err
	}
	if _, err := netip.ParsePrefix(f.podCIDR); err != nil {
		return o, badInput("--pod-cidr: %q is no range of addresses such as %s", f.podCIDR, server.DefaultPodCIDR)
	}
	if err := r.Validate(); err != nil {
		// The runtime names its option; the user knows the flag.
		return o, badInput("%s", strings.Replace(err.Error(), "podCIDR:", "--pod-cidr:", 1))
	}
	return o, nil
}

// files reads the files that flags name. Repeated flags add up, in their order: the first image
// that matches a name is used.
func (f *fakecriFlags) files(o *server.Options) error {
	for _, name := range f.images {
		list, err := readPart("--images", name, scenarios.ParseImages)
		if err != nil {
			return err
		}
		o.Runtime.Images = append(o.Runtime.Images, list...)
	}
	for _, name := range f.programs {
		list, err := readPart("--program", name, scenarios.ParsePrograms)
		if err != nil {
			return err
		}
		o.Runtime.Programs = append(o.Runtime.Programs, list...)
	}
	if f.faults != "" {
		var err error
		o.Faults, err = readPart("--faults", f.faults, scenarios.ParseFaults)
		return err
	}
	return nil
}

// readPart reads a file that is a part of a scenario: images, programs or faults. Errors of the
// parts are LoadErrors with file and line, as of scenarios.
func readPart[T any](flag, name string, parse func(string, []byte) ([]T, error)) ([]T, error) {
	data, err := scenarios.ReadFile(name)
	if err != nil {
		return nil, badInput("%s: %w", flag, err)
	}
	list, err := parse(name, data)
	if err != nil {
		return nil, &codeError{exitBadInput, err}
	}
	return list, nil
}

// parseRange reads "2s" or "2s..4s"; "none" and 0 are no time at all. The least
// that is no default is one nanosecond. A draw is uniform between the two ends.
func parseRange(s string) (fakecri.Range, error) {
	if s == "none" || s == "0" {
		return fakecri.Range{Min: 1, Max: 1}, nil // zero would be the default
	}
	lo, hi, isRange := strings.Cut(s, "..")
	if !isRange {
		hi = lo
	}
	a, err := time.ParseDuration(lo)
	if err == nil {
		var b time.Duration
		if b, err = time.ParseDuration(hi); err == nil && a >= 0 && b >= a {
			return fakecri.Range{Min: max(a, 1), Max: max(b, 1)}, nil
		}
	}
	return fakecri.Range{}, fmt.Errorf("%q is no time: want one such as 2s, a range such as 2s..4s, or none", s)
}

// makeRoot makes the runtime's directory; the function returned removes it if the
// user has named none. One that the user named is left with what is in it: a new
// server begins with it. The mode lets programs that run as another user pass through to their
// own directories. Symbolic links are resolved, since ImageFsInfo's path is compared with mount
// points by clients.
func (f *fakecriFlags) makeRoot(o *server.Options) (func(), error) {
	if f.root == "" {
		dir, err := os.MkdirTemp("", "drydock-fakecri-")
		if err != nil {
			return nil, &codeError{exitInternal, err}
		}
		o.Root = dir
		return func() { _ = os.RemoveAll(dir) }, nil
	}
	dir, err := filepath.Abs(f.root)
	if err == nil {
		err = os.MkdirAll(dir, 0o711)
	}
	if err != nil {
		return nil, badInput("--root: %w", err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, badInput("--root: %w", err)
	}
	o.Root = dir
	return func() {}, nil
}
