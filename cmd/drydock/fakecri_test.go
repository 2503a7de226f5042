//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// notes is a writer for several goroutines.
type notes struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (n *notes) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.b.Write(p)
}

func (n *notes) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.b.String()
}

// socketDir is a directory whose name is short enough for sockets.
func socketDir(t *testing.T) string {
	dir, err := os.MkdirTemp("", "dd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// startFakecri runs the command until stop, which returns its exit code.
func startFakecri(t *testing.T, args ...string) (out *notes, stop func() int) {
	t.Helper()
	out = &notes{}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan int, 1)
	go func() { ended <- execute(ctx, append([]string{"fakecri"}, args...), out, out) }()
	stop = sync.OnceValue(func() int {
		cancel()
		return <-ended
	})
	t.Cleanup(func() { _ = stop() })
	for deadline := time.Now().Add(30 * time.Second); !strings.Contains(out.String(), "ready, listening on"); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not ready: %s", out.String())
		}
	}
	return out, stop
}

func dialSocket(t *testing.T, socket string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestFakecri(t *testing.T) {
	dir := socketDir(t)
	file := func(name, text string) string {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	socket, control, record, root := filepath.Join(dir, "s", "cri.sock"), filepath.Join(dir, "control"), filepath.Join(dir, "record"), filepath.Join(dir, "root")
	out, stop := startFakecri(t, "--listen", "unix://"+socket, "--control", "unix://"+control, "--record", record, "--root", root,
		"--images", file("images.yaml", "- {name: app:1, present: true, size: 12M}\n"),
		"--program", file("programs.yaml", "- {match: {image: 'app*'}, runFor: 10ms, exit: 3}\n"),
		"--faults", file("faults.yaml", "- {method: ListImages, error: Aborted, count: 1}\n"),
		"--latency", "none", "--only-listed-images", "--pod-cidr", "127.99.0.0/24", "--seed", "1")
	if st, err := os.Stat(socket); err != nil || st.Mode().Perm() != 0o660 {
		t.Errorf("socket: %v, %v", st, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn := dialSocket(t, socket)
	rt, img := runtimeapi.NewRuntimeServiceClient(conn), runtimeapi.NewImageServiceClient(conn)
	if _, err := img.ListImages(ctx, &runtimeapi.ListImagesRequest{}); status.Code(err) != codes.Aborted {
		t.Errorf("ListImages with a fault: %v", err)
	}
	images, err := img.ListImages(ctx, &runtimeapi.ListImagesRequest{Filter: &runtimeapi.ImageFilter{Image: &runtimeapi.ImageSpec{Image: "app:1"}}})
	if err != nil || len(images.Images) != 1 || images.Images[0].Size != 12_000_000 {
		t.Errorf("ListImages: %v, %v", images, err)
	}
	if _, err := img.PullImage(ctx, &runtimeapi.PullImageRequest{Image: &runtimeapi.ImageSpec{Image: "other"}}); status.Code(err) != codes.NotFound {
		t.Errorf("PullImage of what is not listed: %v", err)
	}
	fs, err := img.ImageFsInfo(ctx, &runtimeapi.ImageFsInfoRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if at := fs.ImageFilesystems[0].FsId.Mountpoint; !strings.HasPrefix(at, root) {
		t.Errorf("ImageFsInfo: %s, want %s", at, root)
	} else if _, err := os.Stat(at); err != nil {
		t.Error(err)
	}
	if v, err := rt.Version(ctx, &runtimeapi.VersionRequest{}); err != nil || v.RuntimeName != "fakecri" {
		t.Errorf("Version: %v, %v", v, err)
	}

	web := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", control)
	}}}
	defer web.CloseIdleConnections()
	post := func(path, body string, want int) string {
		t.Helper()
		resp, err := web.Post("http://drydock"+path, "", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		if resp.StatusCode != want {
			t.Errorf("%s: %d %s", path, resp.StatusCode, b)
		}
		return string(b)
	}
	post("/faults", "method: Status\nerror: DataLoss\n", 200)
	if _, err := rt.Status(ctx, &runtimeapi.StatusRequest{}); status.Code(err) != codes.DataLoss {
		t.Errorf("Status with a fault: %v", err)
	}
	if got := post("/faults", "method: Sttaus\nhang: true\n", 400); !strings.Contains(got, `body:1:9: faults[0].method: there is no CRI method`) {
		t.Errorf("a mistake: %s", got)
	}

	if code := execute(context.Background(), []string{"fakecri", "--listen", "unix://" + socket}, io.Discard, out); code != exitBadInput || !strings.Contains(out.String(), "is in use by another server") {
		t.Errorf("a second server: %d, %s", code, out.String())
	}
	if code := stop(); code != exitOK {
		t.Errorf("exit code %d: %s", code, out.String())
	}
	if _, err := os.Stat(socket); !os.IsNotExist(err) {
		t.Errorf("the socket is still there: %v", err)
	}
	data, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		if !json.Valid([]byte(line)) {
			t.Errorf("recorded: %s", line)
		}
	}
	if n := bytes.Count(data, []byte("\n")); n != 6 {
		t.Errorf("%d calls recorded, want 6", n)
	}
}

// A socket that a killed server has left is replaced.
func TestFakecriStaleSocket(t *testing.T) {
	socket := filepath.Join(socketDir(t), "cri.sock")
	lis, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	lis.(*net.UnixListener).SetUnlinkOnClose(false)
	_ = lis.Close()
	_, stop := startFakecri(t, "--listen", socket, "--socket-mode", "600", "--pod-cidr", "127.99.1.0/24")
	if st, err := os.Stat(socket); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("socket: %v, %v", st, err)
	}
	if code := stop(); code != exitOK {
		t.Errorf("exit code %d", code)
	}
}

func TestFakecriMistakes(t *testing.T) {
	dir := socketDir(t)
	socket := "unix://" + filepath.Join(dir, "cri.sock")
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, []byte("- method: StopContianer\n  hang: true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	for _, tc := range []struct {
		args []string
		want string
	}{
		{nil, "drydock: --listen: say where, such as --listen unix:///tmp/cri.sock"},
		{[]string{"--listen", "cri.sock"}, `drydock: --listen: "cri.sock" has no scheme; want unix:///PATH`},
		{[]string{"--listen", "unix://cri.sock"}, `drydock: --listen: the socket's path "cri.sock" is not absolute; want unix:///PATH`},
		{[]string{"--listen", "http://x"}, `drydock: --listen: "http://x" is neither unix:///PATH nor tcp://HOST:PORT`},
		{[]string{"--listen", "tcp://0.0.0.0:1"}, "drydock: --listen: 0.0.0.0:1 is not an address of the loopback interface"},
		{[]string{"--listen", "tcp://127.0.0.1"}, `drydock: --listen: "127.0.0.1" is no HOST:PORT`},
		{[]string{"--listen", "unix://" + plain}, "drydock: --listen: " + plain + " is there and is no socket"},
		{[]string{"--listen", "unix:///" + strings.Repeat("x", 200)}, "drydock: --listen: the path /xxx"},
		{[]string{"--listen", socket, "--socket-mode", "rw"}, `drydock: --socket-mode: "rw" is no mode such as 0660`},
		{[]string{"--listen", socket, "--speed", "0"}, "drydock: --speed: 0 is not within 0.001 and 10000"},
		{[]string{"--listen", socket, "--speed", "NaN"}, "drydock: --speed: NaN is not within 0.001 and 10000"},
		{[]string{"--listen", socket, "--latency", "some"}, `drydock: --latency: "some" is neither realistic nor none`},
		{[]string{"--listen", socket, "--pull-latency", "4s..2s"}, `drydock: --pull-latency: "4s..2s" is no time`},
		{[]string{"--listen", socket, "--cgroup-driver", "x"}, `drydock: --cgroup-driver: "x" is neither cgroupfs nor systemd`},
		{[]string{"--listen", socket, "--pod-cidr", "10.0.0.0"}, `drydock: --pod-cidr: "10.0.0.0" is no range of addresses such as 127.244.0.0/16`},
		{[]string{"--listen", socket, "--pod-cidr", "10.0.0.0/32"}, "drydock: --pod-cidr: 10.0.0.0/32 has no room for pods"},
		{[]string{"--listen", socket, "--control", "0.0.0.0:80"}, "drydock: --control: 0.0.0.0:80 is not an address of the loopback interface"},
		{[]string{"--listen", socket, "--faults", filepath.Join(dir, "none")}, "drydock: --faults: open "},
		{[]string{"--listen", socket, "--faults", plain}, plain + `:1:11: faults[0].method: there is no CRI method "StopContianer"`},
		{[]string{"--listen", socket, "--images", plain}, plain + `:1:3: images[0]`},
		{[]string{"--listen", socket, "--record", dir}, "drydock: --record: open " + dir},
		{[]string{"--listen", socket, "--root", plain}, "drydock: --root: mkdir " + plain},
		{[]string{"--listen", socket, "--streaming-address", "x"}, "drydock: --streaming-address: listen tcp: address x: missing port in address"},
		{[]string{"--listen", socket, "--streaming-address", taken.Addr().String()}, "drydock: --streaming-address: listen tcp " + taken.Addr().String() + ": bind: address already in use"},
		{[]string{"--listen", socket, "--control", taken.Addr().String()}, "drydock: --control: listen tcp " + taken.Addr().String() + ": bind: address already in use"},
		{[]string{"--listen", socket, "more"}, "drydock: unknown command"},
	} {
		var out notes
		code := execute(context.Background(), append([]string{"fakecri"}, tc.args...), io.Discard, &out)
		if got := out.String(); code != exitBadInput || !strings.HasPrefix(got, tc.want) || strings.Contains(got, "goroutine") {
			t.Errorf("%v: exit code %d\n got %swant %s", tc.args, code, got, tc.want)
		}
	}
}
