package determinism

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"
)

// What is refused is named here, as data: whoever finds another source of
// difference between two runs adds a row and is done. The tables name what the
// standard library and Kubernetes' have; a library that is new to go.mod is to be
// looked through for more.

// ban says why something is refused and what to use instead. A message that
// only refuses would have its reader find a way around.
type ban struct {
	class   class
	instead string
}

// The bans that several things share: each names its cure.
var (
	useLoopSync   = ban{concurrency, "a loop runs one step at a time and needs no locks"}
	useLoopTime   = ban{clock, "use the loop's clock and timers"}
	useLoopRandom = ban{randomness, "draw with Loop.Uint64, Between or Jitter, which hash the seed"}
	useLoopCtx    = ban{contexts, "use WithCancel or WithTimeout of ground/loop"}
	useOrder      = ban{order, "the order differs from run to run; sort, or say //drydock:unordered <reason>"}
	useLoopTask   = ban{library, "it starts goroutines or reads the wall clock; use the loop's tasks, timers and queues"}
	useLog        = ban{clock, "it stamps lines with the wall clock; log through the node's log function"}
	useFS         = ban{machine, "use the file system that the constructor was given"}
	useOS         = ban{machine, "files, environment and process are the edges' business; use what the constructor was given"}
	useNet        = ban{machine, "the network is reached through an interface only"}
	useMachine    = ban{machine, "facts of the machine come from the scenario"}
)

// bannedPackages are refused as a whole, at their import: what little of them
// is harmless is not worth a look at each use.
var bannedPackages = map[string]ban{
	// A lock that is never contended does no harm, but it says that somebody
	// believes in two goroutines: then the bug is there already.
	"sync":        useLoopSync,
	"sync/atomic": useLoopSync,

	"golang.org/x/sync/errgroup":     useLoopSync,
	"golang.org/x/sync/semaphore":    useLoopSync,
	"golang.org/x/sync/singleflight": useLoopSync,

	// A stream of random numbers shifts with every draw that is left out or added,
	// also a seeded one (docs/decisions/hashes.md). UUIDs and generated names are
	// draws of the loop as well.
	"math/rand":                             useLoopRandom,
	"math/rand/v2":                          useLoopRandom,
	"crypto/rand":                           useLoopRandom,
	"hash/maphash":                          useLoopRandom,
	"github.com/google/uuid":                useLoopRandom,
	"k8s.io/apimachinery/pkg/util/rand":     useLoopRandom,
	"k8s.io/apimachinery/pkg/util/uuid":     useLoopRandom,
	"k8s.io/apiserver/pkg/storage/names":    useLoopRandom,
	"k8s.io/apimachinery/pkg/util/wait":     useLoopTask,
	"k8s.io/client-go/util/workqueue":       useLoopTask,
	"k8s.io/client-go/util/flowcontrol":     useLoopTask,
	"k8s.io/client-go/informers":            useLoopTask,
	"k8s.io/client-go/kubernetes":           useLoopTask,
	"k8s.io/client-go/rest":                 useLoopTask,
	"log":                                   useLog,
	"log/slog":                              useLog,
	"io/ioutil":                             useFS,
	"os/exec":                               useMachine,
	"os/signal":                             useMachine,
	"os/user":                               useMachine,
	"net/rpc":                               useNet,
	"net/http/httptest":                     useNet,
	"github.com/fsnotify/fsnotify":          useFS,
	"k8s.io/client-go/tools/leaderelection": useLoopTask,
}

// bannedObjects are refused wherever they are named: "package.Name" or
// "package.Type.Method". To name one without a call is enough, since a function
// value is called out of sight.
var bannedObjects = map[string]ban{
	// Of package time the types and the arithmetic stay: durations, and times that
	// come from a loop.
	"time.Now":          useLoopTime,
	"time.Sleep":        useLoopTime,
	"time.After":        useLoopTime,
	"time.AfterFunc":    useLoopTime,
	"time.Tick":         useLoopTime,
	"time.NewTimer":     useLoopTime,
	"time.NewTicker":    useLoopTime,
	"time.Since":        useLoopTime,
	"time.Until":        useLoopTime,
	"time.Local":        {clock, "the machine's time zone must not show; use UTC"},
	"time.Time.Local":   {clock, "the machine's time zone must not show; use UTC"},
	"time.LoadLocation": {clock, "it reads the machine's time zones; use UTC"},

	// A context of the standard library ends by a timer of the runtime, or wakes a
	// goroutine. context.Background and WithValue do neither.
	"context.WithCancel":        useLoopCtx,
	"context.WithCancelCause":   useLoopCtx,
	"context.WithDeadline":      useLoopCtx,
	"context.WithDeadlineCause": useLoopCtx,
	"context.WithTimeout":       useLoopCtx,
	"context.WithTimeoutCause":  useLoopCtx,
	"context.WithoutCancel":     useLoopCtx,
	"context.AfterFunc":         useLoopCtx,

	// A map's order, behind a function: rangeOver sees the range statements.
	"maps.Keys":                    useOrder,
	"maps.Values":                  useOrder,
	"maps.All":                     useOrder,
	"maps.Collect":                 useOrder,
	"maps.Insert":                  useOrder,
	"golang.org/x/exp/maps.Keys":   useOrder,
	"golang.org/x/exp/maps.Values": useOrder,
	"reflect.Value.MapRange":       useOrder,
	"reflect.Value.MapKeys":        useOrder,

	"k8s.io/apimachinery/pkg/util/sets.Set.UnsortedList": useOrder,
	"k8s.io/apimachinery/pkg/util/sets.Set.PopAny":       useOrder,
	"k8s.io/utils/set.Set.UnsortedList":                  useOrder,
	"k8s.io/utils/set.Set.PopAny":                        useOrder,

	// Channels and goroutines by other names. A finalizer runs when the garbage
	// collector likes, and how many cores there are must never show.
	"reflect.Select":        useLoopSync,
	"reflect.MakeChan":      useLoopSync,
	"reflect.ChanOf":        useLoopSync,
	"reflect.Value.Send":    useLoopSync,
	"reflect.Value.Recv":    useLoopSync,
	"reflect.Value.TrySend": useLoopSync,
	"reflect.Value.TryRecv": useLoopSync,
	"runtime.Goexit":        {concurrency, "a task ends by returning; Group.Kill unwinds it"},
	"runtime.Gosched":       {concurrency, "use Loop.Yield"},
	"runtime.LockOSThread":  {concurrency, "a loop may move from core to core"},
	"runtime.SetFinalizer":  {concurrency, "a finalizer runs on a goroutine, at any time"},
	"runtime.AddCleanup":    {concurrency, "a cleanup runs on a goroutine, at any time"},
	"runtime.NumCPU":        useMachine,
	"runtime.GOMAXPROCS":    useMachine,
	"runtime.NumGoroutine":  useMachine,
	"iter.Pull":             {concurrency, "a coroutine that is not a task; use Group.Go of ground/loop"},
	"iter.Pull2":            {concurrency, "a coroutine that is not a task; use Group.Go of ground/loop"},

	// The clock as Kubernetes' libraries read it.
	"k8s.io/apimachinery/pkg/apis/meta/v1.Now":      useLoopTime,
	"k8s.io/apimachinery/pkg/apis/meta/v1.NowMicro": useLoopTime,
	"k8s.io/utils/clock.RealClock":                  useLoopTime,

	// Constructors that start goroutines. The types beside them are harmless, and
	// some interfaces are made of them.
	"k8s.io/client-go/tools/record.NewBroadcaster":                      useLoopTask,
	"k8s.io/client-go/tools/record.NewBroadcasterForTests":              useLoopTask,
	"k8s.io/client-go/tools/record.NewBroadcasterWithCorrelatorOptions": useLoopTask,
	"k8s.io/client-go/tools/events.NewBroadcaster":                      useLoopTask,
	"k8s.io/client-go/tools/events.NewEventBroadcasterAdapter":          useLoopTask,
	"k8s.io/client-go/tools/cache.NewInformer":                          useLoopTask,
	"k8s.io/client-go/tools/cache.NewSharedInformer":                    useLoopTask,
	"k8s.io/client-go/tools/cache.NewSharedIndexInformer":               useLoopTask,
	"k8s.io/client-go/tools/cache.NewReflector":                         useLoopTask,
	"k8s.io/apimachinery/pkg/watch.NewBroadcaster":                      useLoopTask,
	"k8s.io/apimachinery/pkg/watch.NewLongQueueBroadcaster":             useLoopTask,
	"k8s.io/apimachinery/pkg/watch.NewStreamWatcher":                    useLoopTask,
	"k8s.io/apimachinery/pkg/watch.Filter":                              useLoopTask,

	// The methods that ask the wall clock; AllowN and ReserveN are given a time.
	"golang.org/x/time/rate.Limiter.Allow":    useLoopTime,
	"golang.org/x/time/rate.Limiter.Reserve":  useLoopTime,
	"golang.org/x/time/rate.Limiter.Wait":     useLoopTime,
	"golang.org/x/time/rate.Limiter.WaitN":    useLoopTime,
	"golang.org/x/time/rate.Limiter.SetLimit": useLoopTime,
	"golang.org/x/time/rate.Limiter.SetBurst": useLoopTime,
	"golang.org/x/time/rate.Limiter.Tokens":   useLoopTime,

	// These look at the machine's files; Join, Rel and their like only at names.
	"path/filepath.Abs":          useFS,
	"path/filepath.EvalSymlinks": useFS,
	"path/filepath.Glob":         useFS,
	"path/filepath.Walk":         useFS,
	"path/filepath.WalkDir":      useFS,

	// Headers, status codes and requests are data; what opens a socket is not.
	"net/http.Client":                    useNet,
	"net/http.DefaultClient":             useNet,
	"net/http.DefaultServeMux":           useNet,
	"net/http.DefaultTransport":          useNet,
	"net/http.Get":                       useNet,
	"net/http.Handle":                    useNet,
	"net/http.HandleFunc":                useNet,
	"net/http.Head":                      useNet,
	"net/http.ListenAndServe":            useNet,
	"net/http.ListenAndServeTLS":         useNet,
	"net/http.Post":                      useNet,
	"net/http.PostForm":                  useNet,
	"net/http.Serve":                     useNet,
	"net/http.ServeTLS":                  useNet,
	"net/http.Server":                    useNet,
	"net/http.Transport":                 useNet,
	"google.golang.org/grpc.Dial":        useNet,
	"google.golang.org/grpc.DialContext": useNet,
	"google.golang.org/grpc.NewClient":   useNet,
	"google.golang.org/grpc.NewServer":   useNet,
}

// allowedOf lists, for packages of which little is harmless, the functions,
// variables and types that are. Constants always are, and methods of what is
// allowed.
var allowedOf = map[string]struct {
	ban   ban
	names []string
}{
	// Errors, modes and signals, which interfaces of files and processes speak in.
	"os": {useOS, []string{
		"DirEntry", "FileInfo", "FileMode", "LinkError", "PathError", "SyscallError", "Signal",
		"ErrClosed", "ErrDeadlineExceeded", "ErrExist", "ErrInvalid", "ErrNoDeadline", "ErrNotExist", "ErrPermission", "ErrProcessDone",
		"Expand", "IsExist", "IsNotExist", "IsPathSeparator", "IsPermission", "IsTimeout",
	}},
	// Addresses and their errors.
	"net": {useNet, []string{
		"Addr", "AddrError", "DNSError", "Error", "HardwareAddr", "IP", "IPAddr", "IPMask", "IPNet", "OpError", "ParseError", "TCPAddr", "UDPAddr", "UnknownNetworkError",
		"CIDRMask", "IPv4", "IPv4Mask", "JoinHostPort", "ParseCIDR", "ParseIP", "ParseMAC", "SplitHostPort",
		"ErrClosed", "IPv4allsys", "IPv4allrouter", "IPv4bcast", "IPv4zero", "IPv6zero", "IPv6loopback", "IPv6unspecified",
	}},
	// Some helpers of k8s.io/component-helpers want a logger; the zero one is
	// silent.
	"k8s.io/klog/v2": {useLog, []string{"KObj", "KRef", "Logger", "ObjectRef"}},
	"syscall":        {useMachine, []string{"Errno", "Signal"}},
}

// use reports a name that stands for something refused. It goes by what the type
// checker found, so that neither an import's other name nor a method value hides
// anything.
func (c *checker) use(id *ast.Ident) {
	obj := c.pass.TypesInfo.Uses[id]
	if obj == nil || obj.Pkg() == nil {
		return
	}
	// An instance of a generic function is banned with it.
	if f, ok := obj.(*types.Func); ok {
		obj = f.Origin()
	}
	path := obj.Pkg().Path()
	key, top := nameOf(obj)
	if key == "" {
		return
	}
	if b, ok := bannedObjects[path+"."+key]; ok {
		c.report(b.class, id.Pos(), id.Pos(), "use of %s.%s: %s", path, key, b.instead)
		return
	}
	a, ok := allowedOf[path]
	if !ok || !top {
		return
	}
	// A constant is the same on every machine that the program was built for.
	if _, isConst := obj.(*types.Const); isConst {
		return
	}
	if slices.Contains(a.names, key) {
		return
	}
	c.report(a.ban.class, id.Pos(), id.Pos(), "use of %s.%s: %s", path, key, a.ban.instead)
}

// nameOf returns Name for a thing of package scope (then top is true) and
// Type.Method for a method; "" for fields and locals.
func nameOf(obj types.Object) (name string, top bool) {
	if obj.Parent() == obj.Pkg().Scope() {
		return obj.Name(), true
	}
	f, ok := obj.(*types.Func)
	if !ok {
		return "", false
	}
	recv := f.Signature().Recv()
	if recv == nil {
		return "", false
	}
	t := recv.Type()
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	n, ok := types.Unalias(t).(*types.Named)
	if !ok {
		return "", false
	}
	return strings.Join([]string{n.Obj().Name(), f.Name()}, "."), false
}
