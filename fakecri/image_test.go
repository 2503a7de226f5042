package fakecri

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/records"
	"github.com/drydock-sim/drydock/ground/loop"
)

func TestImages(t *testing.T) {
	opts := Options{Images: []Image{
		{Name: "app:1", Aliases: []string{"quay.io/x/app:1", "app:stable"}, Size: 100, User: "1003:7", Pull: Exactly(8 * time.Second)},
		{Name: "web", Present: true, Pinned: true, User: "www-data:www"},
		{Name: "flaky:1", Fail: &PullFailure{Times: 2, Message: "no route"}},
		{Name: "gone:1", Fail: &PullFailure{Code: "NotFound"}},
	}}
	run(t, opts, func(e *env) {
		pull := func(name string) string {
			t.Helper()
			id, err := e.c.PullImage(e.ctx, spec(name), nil, nil)
			e.ok(err)
			return id
		}
		get := func(name string) *runtimeapi.Image {
			t.Helper()
			resp, err := e.c.ImageStatus(e.ctx, spec(name), false)
			e.ok(err)
			return resp.Image
		}
		if im := get("docker.io/library/web:latest"); im == nil || !im.Pinned || im.Username != "www-data" || im.Uid != nil || im.Size != 50_000_000 {
			t.Errorf("present: %+v", im)
		}
		if get("app:1") != nil {
			t.Error("app:1 is there before it was pulled")
		}
		var id string
		e.within(e.took(func() { id = pull("app:1") }), 8*time.Second, 8*time.Second+time.Millisecond)
		e.within(e.took(func() { pull("docker.io/library/app:1") }), time.Second, time.Second+time.Millisecond)
		if pull("quay.io/x/app:1") != id || pull("app:stable") != id || !strings.HasPrefix(id, "sha256:") || len(id) != 71 {
			t.Errorf("id %s", id)
		}
		im := get(id)
		if !slices.Equal(im.RepoTags, []string{"docker.io/library/app:1", "quay.io/x/app:1", "docker.io/library/app:stable"}) || im.Uid.GetValue() != 1003 || im.Username != "" || im.Size != 100 {
			t.Errorf("image %+v", im)
		}
		for _, name := range append(slices.Concat(im.RepoTags, im.RepoDigests), strings.TrimPrefix(id, "sha256:")) {
			if get(name) != im {
				t.Errorf("status of %s differs", name)
			}
			list, err := e.c.ListImages(e.ctx, &runtimeapi.ImageFilter{Image: spec(name)})
			e.ok(err)
			if len(list) != 1 || list[0] != im {
				t.Errorf("list of %s: %v", name, list)
			}
		}
		fs, err := e.c.ImageFsInfo(e.ctx)
		e.ok(err)
		if got := fs.ImageFilesystems[0]; got.UsedBytes.Value != 50_000_100 || got.FsId.Mountpoint == "" || got.Timestamp == 0 {
			t.Errorf("fs %+v", got)
		}
		digest := im.RepoDigests[0]
		e.ok(e.c.RemoveImage(e.ctx, spec("quay.io/x/app:1")))
		for _, name := range append(im.RepoTags, id, digest) {
			if get(name) != nil {
				t.Errorf("%s is there after its removal", name)
			}
		}
		// By digest it is the same image, without tags.
		if pull(digest) != id {
			t.Error("another id by digest")
		}
		if im := get(digest); len(im.RepoTags) != 0 || !slices.Equal(im.RepoDigests, []string{digest}) {
			t.Errorf("by digest: %+v", im)
		}
		for i, want := range []codes.Code{codes.Unknown, codes.Unknown, codes.OK} {
			_, err := e.c.PullImage(e.ctx, spec("flaky:1"), nil, nil)
			e.code(err, want)
			if i == 0 && !strings.Contains(err.Error(), "no route") {
				t.Errorf("error %v", err)
			}
		}
		for range 4 {
			_, err := e.c.PullImage(e.ctx, spec("gone:1"), nil, nil)
			e.code(err, codes.NotFound)
		}
		for _, bad := range []string{"", "UPPER:1", "a b", "x:", strings.Repeat("a", 64)} {
			_, err := e.c.PullImage(e.ctx, spec(bad), nil, nil)
			e.code(err, codes.InvalidArgument)
			if get(bad) != nil {
				t.Errorf("%q is there", bad)
			}
		}
		ctx, cancel := loop.WithTimeout(e.ctx, time.Millisecond)
		defer cancel()
		_, err = e.c.PullImage(ctx, spec("any:1"), nil, nil)
		e.code(err, codes.DeadlineExceeded)
		if pull("any:1") == pull("any:2") {
			t.Error("two images with one id")
		}
		// The identity rule, also for what a container runs that was made by id.
		cfg := containerConfig("web", "main", 0)
		cfg.Image = &runtimeapi.ImageSpec{Image: id, UserSpecifiedImage: "app:1"}
		cid, err := e.c.CreateContainer(e.ctx, e.sandbox("web", 0), cfg, nil)
		e.ok(err)
		st := e.status(cid)
		if st.ImageId != id || e.rt.recs.ListContainers(nil)[0].ImageId != id || st.User.Linux.Uid != 1003 || st.User.Linux.Gid != 7 {
			t.Errorf("container %+v", st)
		}
	})
	run(t, Options{OnlyListedImages: true, Images: []Image{appImage}}, func(e *env) {
		_, err := e.c.PullImage(e.ctx, spec("other:1"), nil, nil)
		e.code(err, codes.NotFound)
	})
}

func TestOptionsValidate(t *testing.T) {
	for _, tc := range []struct {
		o    Options
		want string
	}{
		{Options{}, ""},
		{Options{PodCIDR: "x"}, "podCIDR"},
		{Options{PodCIDR: "10.0.0.0/32"}, "podCIDR"},
		{Options{Latency: map[string]Range{"Stop": {}}}, `latency: no CRI method "Stop"`},
		{Options{Images: []Image{{Name: "A"}}}, `images[0]: name: "A"`},
		{Options{Images: []Image{{Name: "a", Fail: &PullFailure{Code: "x"}}}}, "images[0]: fail.code"},
		{Options{Programs: []Program{{Behaviour: Behaviour{ExitCode: 1}}}}, "programs[0]: exitCode"},
		{Options{CgroupDriver: "x"}, "cgroupDriver"},
	} {
		err := tc.o.Validate()
		if (err == nil) != (tc.want == "") || err != nil && !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("%+v: %v, want %q", tc.o, err, tc.want)
		}
	}
}

func TestOutside(t *testing.T) {
	opts := Options{Images: []Image{appImage}, Programs: []Program{{Match: Match{Container: "slow"}, Behaviour: Behaviour{OnTerm: OnTerm{Exit: 2, After: Exactly(time.Second)}}}}}
	for _, tc := range []struct {
		name   string
		act    func(r *Runtime) error
		code   int32
		reason string // "" when it still runs, "gone" when it is removed
		ready  bool
	}{
		{"stop container", func(r *Runtime) error { return r.StopContainerOutside("default/web", "slow") }, 137, "Error", true},
		{"signal", func(r *Runtime) error { return r.SignalContainerOutside("default/web", "slow", records.SigTERM) }, 2, "Error", true},
		{"exit", func(r *Runtime) error { return r.ExitContainerOutside("default/web", "slow", 0) }, 0, "Completed", true},
		{"oom", func(r *Runtime) error { return r.OOMKillContainerOutside("default/web", "slow") }, 137, "OOMKilled", true},
		{"remove container", func(r *Runtime) error { return r.RemoveContainerOutside("default/web", "slow") }, 0, "gone", true},
		{"stop sandbox", func(r *Runtime) error { return r.StopSandboxOutside("default/web") }, 137, "Error", false},
		{"kill sandbox", func(r *Runtime) error { return r.KillSandboxOutside("default/web") }, 137, "Error", false},
		{"stop all", func(r *Runtime) error { r.StopAllOutside(); return nil }, 137, "Error", false},
		{"remove sandbox", func(r *Runtime) error { return r.RemoveSandboxOutside("default/web") }, 0, "gone", false},
		{"no such pod", func(r *Runtime) error {
			if r.StopSandboxOutside("default/x") == nil || r.StopContainerOutside("default/web", "x") == nil {
				return nil
			}
			return nil
		}, 0, "", true},
		{"power cut", func(r *Runtime) error { r.PowerCut(); r.StartDaemon(); return nil }, 255, "Unknown", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			run(t, opts, func(e *env) {
				sb := e.sandbox("web", 0)
				id := e.start(sb, "web", "slow", 0)
				gen := e.c.Generation()
				e.ok(tc.act(e.rt))
				e.sleep(2 * time.Second)
				if grew := e.c.Generation() > gen; grew != (tc.reason != "") {
					t.Errorf("the generation grew: %v", grew)
				}
				switch tc.reason {
				case "gone":
					_, err := e.c.ContainerStatus(e.ctx, id, false)
					e.code(err, codes.NotFound)
				case "":
					if st := e.status(id); st.State != records.StateRunning {
						t.Errorf("it is %s", st.State)
					}
				default:
					e.exited(id, tc.code, tc.reason)
				}
				resp, err := e.c.PodSandboxStatus(e.ctx, sb, false)
				if ready := err == nil && resp.Status.State == records.SandboxReady; ready != tc.ready {
					t.Errorf("sandbox ready: %v", ready)
				}
			})
		})
	}
}

// Records and images survive a power cut, what was under way doesn't, and a
// lost container can be stopped.
func TestPowerCut(t *testing.T) {
	run(t, Options{Images: []Image{appImage}}, func(e *env) {
		sb := e.sandbox("web", 0)
		e.start(sb, "web", "main", 0)
		idle := e.create(sb, "web", "idle", 0)
		done := e.start(sb, "web", "done", 0)
		e.ok(e.c.StopContainer(e.ctx, done, 1))
		before := e.status(done).FinishedAt
		e.l.Root().After(50*time.Millisecond, func() { e.rt.PowerCut() })
		_, err := e.c.RunPodSandbox(e.ctx, podConfig("db", 0), "")
		e.code(err, codes.Unavailable)
		e.sleep(time.Minute)
		e.rt.StartDaemon()
		up := e.l.UnixNano()
		if got := fmt.Sprintf("%+v", e.rt.State()); got != "{Sandboxes:1 ReadySandboxes:0 Containers:3 RunningContainers:0 Images:1}" {
			t.Errorf("state %s", got)
		}
		if e.status(idle).State != records.StateCreated || e.status(done).FinishedAt != before {
			t.Error("what didn't run changed")
		}
		for _, c := range e.rt.recs.Containers {
			if c.Config.Metadata.Name == "main" && c.FinishedAt != up {
				t.Error("the end of what was lost is when the daemon came back")
			}
		}
		e.ok(e.c.StopPodSandbox(e.ctx, sb))
		id := e.start(e.sandbox("web", 1), "web", "main", 1)
		e.ok(e.rt.LoseContainerOutside("default/web", "main"))
		if st := e.status(id); st.State != records.StateUnknown {
			t.Errorf("lost: %s", st.State)
		}
		e.ok(e.c.StopContainer(e.ctx, id, 5))
		e.exited(id, 255, "Unknown")
	})
}
