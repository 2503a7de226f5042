//go:build linux

package iptables

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// code is an error with an exit code.
type code int

func (c code) Error() string   { return fmt.Sprintf("exit status %d", int(c)) }
func (c code) ExitStatus() int { return int(c) }

// fake are tables in memory: chains by "table chain", each with its rules.
type fake struct {
	mu     sync.Mutex // the test changes tables beside the keeper
	chains map[string][]string
	// fail are errors by "verb table".
	fail map[string]error
}

// change changes the tables.
func (f *fake) change(fn func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fn()
}

func (f *fake) ChainExists(table, chain string) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.fail["exists "+table]; err != nil {
		return false, err
	}
	_, ok := f.chains[table+" "+chain]
	return ok, nil
}

func (f *fake) NewChain(table, chain string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.fail["new "+table]; err != nil {
		return err
	}
	if _, ok := f.chains[table+" "+chain]; ok {
		return code(exitOther)
	}
	f.chains[table+" "+chain] = nil
	return nil
}

func (f *fake) InsertUnique(table, chain string, _ int, rule ...string) error {
	return f.add(table, chain, rule, func(rules []string, r string) []string { return slices.Insert(rules, 0, r) })
}

func (f *fake) AppendUnique(table, chain string, rule ...string) error {
	return f.add(table, chain, rule, func(rules []string, r string) []string { return append(rules, r) })
}

func (f *fake) add(table, chain string, rule []string, how func([]string, string) []string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.fail["add "+table]; err != nil {
		return err
	}
	key, text := table+" "+chain, strings.Join(rule, " ")
	if !slices.Contains(f.chains[key], text) {
		f.chains[key] = how(f.chains[key], text)
	}
	return nil
}

func (f *fake) has() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for key, rules := range f.chains {
		out = append(out, strings.Join(append([]string{key}, rules...), ": "))
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

const (
	rule = "-m comment --comment block incoming localnet connections --dst 127.0.0.0/8 ! --src 127.0.0.0/8 -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP"
	ipv4 = "filter INPUT: -j KUBE-FIREWALL\nfilter KUBE-FIREWALL: " + rule + "\nfilter KUBE-KUBELET-CANARY\nfilter OUTPUT: -j KUBE-FIREWALL\nmangle KUBE-IPTABLES-HINT\nmangle KUBE-KUBELET-CANARY\nnat KUBE-KUBELET-CANARY"
	ipv6 = "filter KUBE-KUBELET-CANARY\nmangle KUBE-IPTABLES-HINT\nmangle KUBE-KUBELET-CANARY\nnat KUBE-KUBELET-CANARY"
)

// keeping runs one family on f, in virtual time, while do changes the tables; it returns the log.
func keeping(t *testing.T, protocol string, f *fake, do func()) string {
	t.Helper()
	var log []string
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		fam := family{tables: f, protocol: protocol, period: time.Minute, flush: 100 * time.Millisecond, flushed: 5 * time.Second,
			log: func(format string, args ...any) {
				log = append(log, fmt.Sprintf("%v "+format, append([]any{time.Since(begun)}, args...)...))
			}}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { fam.keep(ctx) })
		synctest.Wait()
		do()
		synctest.Wait()
		cancel()
		wg.Wait()
	})
	return strings.Join(log, "\n")
}

func TestKept(t *testing.T) {
	for _, protocol := range []string{"IPv4", "IPv6"} {
		want := map[string]string{"IPv4": ipv4, "IPv6": ipv6}[protocol]
		f := &fake{chains: map[string][]string{}}
		log := keeping(t, protocol, f, func() {
			if got := f.has(); got != want {
				t.Errorf("%s, at first:\n%s\nwant\n%s", protocol, got, want)
			}
			time.Sleep(10*time.Minute + 30*time.Second) // between two looks
			f.change(func() {
				if protocol == "IPv4" { // somebody else's rule comes first, and one is lost
					f.chains["filter INPUT"] = []string{"-j OTHERS"}
				}
				delete(f.chains, "mangle KUBE-KUBELET-CANARY") // a flush begins
			})
			time.Sleep(31*time.Second + 50*time.Millisecond)
			f.change(func() {
				if _, ok := f.chains["mangle KUBE-KUBELET-CANARY"]; ok {
					t.Errorf("%s: made in the middle of a flush", protocol)
				}
				for key := range f.chains {
					if key != "filter INPUT" {
						delete(f.chains, key)
					}
				}
			})
			time.Sleep(time.Second)
			if got, want := f.has(), strings.ReplaceAll(want, "INPUT: -j KUBE-FIREWALL", "INPUT: -j KUBE-FIREWALL: -j OTHERS"); got != want {
				t.Errorf("%s, after a flush:\n%s\nwant\n%s", protocol, got, want)
			}
		})
		if want := "0s Initialized iptables rules. protocol=\"" + protocol + "\"\n11m1.1s Reloading after iptables flush protocol=\"" + protocol + "\""; log != want {
			t.Errorf("%s: log\n%s\nwant\n%s", protocol, log, want)
		}
	}
}

// TestTroubles: what can't be made, or looked at, and what the log says.
func TestTroubles(t *testing.T) {
	for _, tc := range []struct {
		name string
		fail map[string]error // from the start
		do   func(f *fake)
		want string
	}{
		{"no hint", map[string]error{"new mangle": code(4)}, func(*fake) {},
			"0s failed to ensure that iptables hint chain exists: error creating chain \"KUBE-IPTABLES-HINT\": exit status 4\n" +
				"0s Failed to initialize iptables rules; some functionality may be missing. protocol=\"IPv4\""},
		{"no conntrack", map[string]error{"add filter": code(2)}, func(*fake) {},
			"0s failed to ensure that OUTPUT chain jumps to KUBE-FIREWALL: exit status 2\n" +
				"0s Failed to initialize iptables rules; some functionality may be missing. protocol=\"IPv4\""},
		{"no canary at first", map[string]error{"new nat": code(4)}, func(f *fake) {
			time.Sleep(90 * time.Second)
			f.change(func() { f.fail = nil })
			time.Sleep(10 * time.Minute)
		}, "0s Initialized iptables rules. protocol=\"IPv4\"\n" +
			"0s Could not set up iptables canary table=\"nat\" chain=\"KUBE-KUBELET-CANARY\": error creating chain \"KUBE-KUBELET-CANARY\": exit status 4\n" +
			"1m0s Could not set up iptables canary table=\"nat\" chain=\"KUBE-KUBELET-CANARY\": error creating chain \"KUBE-KUBELET-CANARY\": exit status 4"},
		{"somebody holds the lock", nil, func(f *fake) {
			f.change(func() { f.fail = map[string]error{"exists mangle": code(4)} })
			time.Sleep(10 * time.Minute)
		}, "0s Initialized iptables rules. protocol=\"IPv4\""},
		{"only one table is flushed", nil, func(f *fake) {
			f.change(func() { delete(f.chains, "mangle KUBE-KUBELET-CANARY") })
			time.Sleep(90 * time.Second)
		}, "0s Initialized iptables rules. protocol=\"IPv4\"\n1m5s Inconsistent iptables state detected protocol=\"IPv4\"\n1m5s Reloading after iptables flush protocol=\"IPv4\""},
		{"no way to tell", nil, func(f *fake) {
			f.change(func() { f.fail = map[string]error{"exists mangle": errors.New("no such program")} })
			time.Sleep(90 * time.Second)
		}, "0s Initialized iptables rules. protocol=\"IPv4\"\n1m5s Inconsistent iptables state detected protocol=\"IPv4\"\n1m5s Reloading after iptables flush protocol=\"IPv4\""},
	} {
		f := &fake{chains: map[string][]string{}, fail: tc.fail}
		if got := keeping(t, "IPv4", f, func() { tc.do(f) }); got != tc.want {
			t.Errorf("%s: log\n%s\nwant\n%s", tc.name, got, tc.want)
		}
	}
}

// TestWithoutIPTables: a machine without the programs, and a kubelet without the right.
func TestWithoutIPTables(t *testing.T) {
	dir := t.TempDir()
	for _, script := range []string{"", "#!/bin/sh\n[ $1 = --version ] && echo 'iptables v1.8.9 (nf_tables)' && exit\necho 'Permission denied (you must be root)' >&2\nexit 4\n"} {
		if script != "" {
			for _, name := range []string{"iptables", "ip6tables"} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
					t.Fatal(err)
				}
			}
		}
		t.Setenv("PATH", dir)
		var log []string
		Keep(t.Context(), func(format string, args ...any) { log = append(log, fmt.Sprintf(format, args...)) })
		if want := []string{"No iptables support on this system; not creating the KUBE-IPTABLES-HINT chain"}; !slices.Equal(log, want) {
			t.Errorf("log %q", log)
		}
	}
}

// netnsVar tells a test that it runs in a network namespace of its own: which one is the machine's.
const netnsVar = "DRYDOCK_TEST_MACHINE_NETNS"

func netns(t *testing.T) string {
	t.Helper()
	name, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// TestRealTables makes the chains in a network namespace of its own, never in the
// machine's: by each iptables that the machine has.
func TestRealTables(t *testing.T) {
	if machines := os.Getenv(netnsVar); machines != "" {
		if netns(t) == machines {
			t.Fatal("these are the machine's own tables")
		}
		testRealTables(t)
		return
	}
	for _, kind := range []string{"legacy", "nft"} {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			for _, name := range []string{"iptables", "ip6tables"} {
				program, err := exec.LookPath(name + "-" + kind)
				if err != nil {
					t.Skipf("no %s: %v", name, err)
				}
				if err := os.Symlink(program, filepath.Join(dir, name)); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.Command(os.Args[0], "-test.run=^TestRealTables$", "-test.v")
			cmd.Env = append(os.Environ(), netnsVar+"="+netns(t), "PATH="+dir+":"+os.Getenv("PATH"))
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
			out, err := cmd.CombinedOutput()
			switch {
			case errors.Is(err, syscall.EPERM):
				t.Skip("no right to make a network namespace")
			case err != nil:
				t.Errorf("%v\n%s", err, out)
			case strings.Contains(string(out), "--- SKIP"):
				t.Skipf("%s", out)
			}
		})
	}
}

func testRealTables(t *testing.T) {
	run := func(args ...string) string {
		t.Helper()
		out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	if out, err := exec.Command("iptables", "-w", "-t", "nat", "-S").CombinedOutput(); err != nil {
		t.Skipf("no iptables in this kernel: %v\n%s", err, out)
	}
	run("iptables", "-w", "-A", "INPUT", "-j", "ACCEPT")
	var log []string
	var mu sync.Mutex
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() {
		keep(ctx, family{period: 50 * time.Millisecond, flush: 10 * time.Millisecond, flushed: time.Second, log: func(format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			log = append(log, fmt.Sprintf(format, args...))
		}})
	})
	const lines = `-A INPUT -j KUBE-FIREWALL
-A INPUT -j ACCEPT
-A OUTPUT -j KUBE-FIREWALL
-A KUBE-FIREWALL ! -s 127.0.0.0/8 -d 127.0.0.0/8 -m comment --comment "block incoming localnet connections" -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP`
	state := func() string {
		var out []string
		for _, l := range strings.Split(run("iptables", "-w", "-S"), "\n") {
			if strings.HasPrefix(l, "-A") {
				out = append(out, l)
			}
		}
		return strings.Join(out, "\n")
	}
	chains := func(program, table string) string {
		var out []string
		for _, l := range strings.Split(run(program, "-w", "-t", table, "-S"), "\n") {
			if name, ok := strings.CutPrefix(l, "-N "); ok {
				out = append(out, name)
			}
		}
		slices.Sort(out)
		return strings.Join(out, " ")
	}
	all := func() string {
		return state() + "\n" + strings.Join([]string{chains("iptables", mangle), chains("iptables", nat), chains("iptables", filter),
			chains("ip6tables", mangle), chains("ip6tables", nat), chains("ip6tables", filter)}, "\n")
	}
	const names = "KUBE-IPTABLES-HINT KUBE-KUBELET-CANARY\nKUBE-KUBELET-CANARY\nKUBE-FIREWALL KUBE-KUBELET-CANARY\n" +
		"KUBE-IPTABLES-HINT KUBE-KUBELET-CANARY\nKUBE-KUBELET-CANARY\nKUBE-KUBELET-CANARY"
	wait := func(what string) {
		t.Helper()
		got := ""
		for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			if got = all(); got == lines+"\n"+names {
				return
			}
		}
		mu.Lock()
		defer mu.Unlock()
		t.Fatalf("%s:\n%s\nwant\n%s\n%s\nlog\n%s", what, got, lines, names, strings.Join(log, "\n"))
	}
	wait("at first")
	for _, program := range []string{"iptables", "ip6tables"} {
		for _, table := range []string{mangle, nat, filter} {
			run(program, "-w", "-t", table, "-F")
			run(program, "-w", "-t", table, "-X")
		}
	}
	run("iptables", "-w", "-A", "INPUT", "-j", "ACCEPT")
	wait("after a flush")
	cancel()
	wg.Wait()
	wait("at the end") // the chains stay
}
