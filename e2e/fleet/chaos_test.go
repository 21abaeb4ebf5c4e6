package fleet

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/engine"
	"github.com/fermata-agent/fermata/internal/remote"
)

var (
	chaosFor   = flag.Duration("chaos", 0, "for how long TestChaos breaks things; 0 is a short time with few conversations, and only with -full")
	chaosConvs = flag.Int("conversations", 200, "how many conversations -chaos has")
	chaosBusy  = flag.Int("busy", 16, "in how many of them a turn is run at once")
	chaosSeed  = flag.Uint64("seed", 0, "of -chaos; 0 is one of its own")
	chaosLease = flag.Int("lease", 1500, "milliseconds that leases last")
)

// Three servers and three nodes, all of them processes. Some are killed, halted and cut off at random
// while clients run turns. Nothing that a client saw is lost, there is one writer at a time, each turn
// ends once, and no command runs when another node has its conversation.
func TestChaos(t *testing.T) {
	d, convs, seed := *chaosFor, *chaosConvs, *chaosSeed
	if d == 0 {
		needsFull(t)
		d, convs, seed = 6*time.Second, 6, 1
	}
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-chaos %v -conversations %d -seed %d", d, convs, seed)
	w := newWorld(t)
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	var clients, breaking sync.WaitGroup
	breaking.Go(func() { w.breakThings(ctx, rand.New(rand.NewPCG(seed, 1<<32)), w.breakNode) })
	breaking.Go(func() { w.breakThings(ctx, rand.New(rand.NewPCG(seed, 2<<32)), w.breakServer) })
	slots := make(chan struct{}, *chaosBusy)
	var all []*chaosClient
	for i := range convs {
		c := newChaosClient(w, i, rand.New(rand.NewPCG(seed, uint64(i)+1)))
		all = append(all, c)
		clients.Go(func() { c.run(ctx, slots) })
	}
	breaking.Wait()
	w.logf("everything works again")
	clients.Wait()
	for _, n := range w.nodes {
		n.end()
	}
	w.judge(all)
}

// A world is everything that can break.
type world struct {
	t       *testing.T
	servers *servers
	nodes   []*chaosNode
	beat    string // the program whose beats say until when a command ran
	dir     string // where commands run
	began   time.Time

	mu     sync.Mutex
	faults map[string]int
	took   []time.Duration
	errs   map[string]int // what clients were answered, without the names in it
}

func newWorld(t *testing.T) *world {
	t.Helper()
	bin, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: t.TempDir(), began: time.Now(), faults: make(map[string]int), errs: make(map[string]int)}
	w.beat = filepath.Join(w.dir, "heartbeat")
	if out, err := exec.Command("go", "build", "-o", w.beat, "./heartbeat").CombinedOutput(); err != nil {
		t.Fatalf("build heartbeat: %v\n%s", err, out)
	}
	w.servers = startServers(t, 3)
	for i := range 3 {
		n := &chaosNode{world: w, i: i, fermata: bin, home: t.TempDir()}
		var urls []string
		for _, s := range w.servers.all {
			p := newProxy(t, s.port)
			n.proxies, urls = append(n.proxies, p), append(urls, p.url())
		}
		text := fmt.Sprintf("[store]\nurl = %q\nreplicas = 3\nlease_ms = %d\n", strings.Join(urls, ","), *chaosLease)
		if err := os.WriteFile(filepath.Join(n.home, "config.toml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		w.nodes = append(w.nodes, n)
		n.start()
		t.Cleanup(n.kill)
	}
	for _, n := range w.nodes {
		eventually(t, "each node serves", func() bool {
			e, _, err := n.connect(t.Context())
			if err == nil {
				_, err = e.List(t.Context(), engine.ListOptions{})
			}
			if err != nil {
				w.logf("node %d: %v", n.i, err)
			}
			return err == nil
		})
	}
	w.began = time.Now()
	return w
}

func (w *world) logf(format string, args ...any) {
	w.t.Logf("%8.3f "+format, append([]any{time.Since(w.began).Seconds()}, args...)...)
}

// A chaosNode is a process that owns conversations, on a machine of its own as far as it can know.
type chaosNode struct {
	world   *world
	i       int
	fermata string
	home    string
	proxies []*proxy

	mu     sync.Mutex
	cmd    *exec.Cmd
	exited chan struct{}
	down   time.Time     // when it last became useless; zero while it works
	broken chan struct{} // closed then
	engine *remote.Engine
}

// mayRename reports whether a process can be given a host name of its own.
var mayRename = sync.OnceValue(func() bool { return exec.Command("unshare", "-u", "hostname", "node").Run() == nil })

func (n *chaosNode) start() {
	n.mu.Lock()
	defer n.mu.Unlock()
	log, err := os.OpenFile(filepath.Join(n.home, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		n.world.t.Error(err)
		return
	}
	defer log.Close()
	args := []string{n.fermata, "serve", "--demo", "--idle", "0"}
	if mayRename() { // with a name of its own, so that the others do not use its socket
		args = append([]string{"unshare", "-u", "sh", "-c", fmt.Sprintf("hostname node%d && exec \"$@\"", n.i), "sh"}, args...)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Env = n.world.dir, append(os.Environ(), "FERMATA_HOME="+n.home)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		n.world.t.Error(err)
		return
	}
	exited := make(chan struct{})
	go func() { // ends with the process
		cmd.Wait()
		close(exited)
	}()
	n.cmd, n.exited, n.down, n.broken, n.engine = cmd, exited, time.Time{}, make(chan struct{}), nil
}

// breaks notes that nothing can be expected of the node any more.
func (n *chaosNode) breaks() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.down.IsZero() {
		n.down = time.Now()
		close(n.broken)
	}
}

func (n *chaosNode) works() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down, n.broken = time.Time{}, make(chan struct{})
}

func (n *chaosNode) signal(s syscall.Signal) {
	n.mu.Lock()
	defer n.mu.Unlock()
	_ = n.cmd.Process.Signal(s)
}

// kill ends the process at once, end lets it end.
func (n *chaosNode) kill() {
	n.signal(syscall.SIGKILL)
	<-n.exited
}

func (n *chaosNode) end() {
	n.signal(syscall.SIGTERM)
	select {
	case <-n.exited:
	case <-time.After(time.Minute):
		n.world.t.Errorf("node %d does not end", n.i)
	}
}

// connect returns the node's engine, and what is closed when the node becomes useless.
func (n *chaosNode) connect(ctx context.Context) (*remote.Engine, <-chan struct{}, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.down.IsZero() {
		return nil, nil, fmt.Errorf("node %d is down", n.i)
	}
	if e := n.engine; e != nil {
		select {
		case <-e.Ended():
		default:
			return e, n.broken, nil
		}
	}
	sockets, _ := filepath.Glob(filepath.Join(n.home, "run", "*.sock"))
	slices.Reverse(sockets)
	err := fmt.Errorf("node %d does not listen", n.i)
	for _, s := range sockets {
		var e *remote.Engine
		if e, err = remote.Dial(ctx, s, remote.Options{Client: "chaos", Bound: time.Minute}); err == nil {
			n.engine = e
			return e, n.broken, nil
		}
	}
	return nil, nil, err
}

// breakThings breaks one thing after the other, and mends it, until ctx ends.
func (w *world) breakThings(ctx context.Context, r *rand.Rand, choose func(*rand.Rand) fault) {
	for pauseFor(ctx, time.Duration(200+r.IntN(2500))*time.Millisecond) {
		f, lasts := choose(r), time.Duration(100+r.IntN(5000))*time.Millisecond
		w.logf("%s for %v", f.name, lasts)
		w.mu.Lock()
		w.faults[strings.TrimRight(f.name, " 0123456789")]++
		w.mu.Unlock()
		f.breaks()
		pauseFor(ctx, lasts)
		f.mends()
	}
}

// pauseFor reports whether ctx has not ended before.
func pauseFor(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// A fault is something to break, and to mend.
type fault struct {
	name   string
	breaks func()
	mends  func()
}

func (w *world) breakNode(r *rand.Rand) fault {
	n := w.nodes[r.IntN(len(w.nodes))]
	down := func(f func()) func() { return func() { f(); n.breaks() } }
	halt := fault{"halt node", down(func() { n.signal(syscall.SIGSTOP) }), func() { n.signal(syscall.SIGCONT); n.works() }}
	kill := fault{"kill node", down(n.kill), n.start}
	faults := []fault{
		kill, kill, halt, halt,
		{"end node", down(n.end), n.start},
		{"cut off node", down(func() { n.each((*proxy).cut) }), func() { n.each((*proxy).mend); n.works() }},
		{"mute node", down(func() { n.each(func(p *proxy) { p.pass(false) }) }), func() { n.each(func(p *proxy) { p.pass(true) }); n.works() }},
		{"drop connections of node", func() { n.each((*proxy).cut); n.each((*proxy).mend) }, func() {}},
	}
	f := faults[r.IntN(len(faults))]
	f.name += fmt.Sprintf(" %d", n.i)
	return f
}

func (w *world) breakServer(r *rand.Rand) fault {
	i := r.IntN(len(w.servers.all))
	s := w.servers.all[i]
	faults := []fault{
		{"kill server", s.kill, func() { w.servers.start(w.t, s) }},
		{"halt server", func() { s.signal(syscall.SIGSTOP) }, func() { s.signal(syscall.SIGCONT) }},
	}
	f := faults[r.IntN(len(faults))]
	f.name += fmt.Sprintf(" %d", i)
	return f
}

func (n *chaosNode) each(f func(*proxy)) {
	for _, p := range n.proxies {
		f(p)
	}
}

func (w *world) tookOver(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.took = append(w.took, d)
}

var names = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}|process \d+|nats://\S+|node \d|\(\w{26}\)|/\S+`)

// refused notes what a client was answered.
func (w *world) refused(err error) {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.errs[names.ReplaceAllString(err.Error(), "…")]++
}
