package fleet

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// serverBinary builds the NATS server that go.mod names. It is kept between runs: the go command
// builds it again only if it is out of date.
var serverBinary = sync.OnceValues(func() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	name := filepath.Join(dir, "fermata-e2e", "nats-server-"+runtime.Version())
	cmd := exec.Command("go", "build", "-o", name, "github.com/nats-io/nats-server/v2")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build nats-server: %v\n%s", err, out)
	}
	return name, nil
})

// servers are processes of the real nats-server, one or a cluster.
type servers struct {
	dir string
	all []*natsServer
}

type natsServer struct {
	port, cluster int
	config        string
	cmd           *exec.Cmd
	log           bytes.Buffer
	mu            sync.Mutex // guards cmd
}

// freePorts returns ports that nobody listens on.
func freePorts(t testing.TB, n int) []int {
	t.Helper()
	var ports []int
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() // when all are known
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports
}

// three are servers that tests use together, each with streams of its own names.
var three struct {
	once sync.Once
	*servers
}

// threeServers returns a cluster that is not to be disturbed.
func threeServers(t testing.TB) *servers {
	t.Helper()
	three.once.Do(func() {
		dir, err := os.MkdirTemp("", "fleet")
		if err != nil {
			t.Fatal(err)
		}
		three.servers = newServers(t, dir, 3)
		for _, s := range three.all {
			three.start(t, s)
		}
	})
	three.ready(t)
	return three.servers
}

// endThree ends what threeServers began.
func endThree() {
	if three.servers == nil {
		return
	}
	for _, s := range three.all {
		s.kill()
	}
	os.RemoveAll(three.dir)
}

// startServers starts n servers, which are a cluster if n > 1, and waits until they store
// messages.
func startServers(t testing.TB, n int) *servers {
	t.Helper()
	c := newServers(t, t.TempDir(), n)
	t.Cleanup(func() {
		for _, s := range c.all {
			s.kill()
		}
	})
	for _, s := range c.all {
		c.start(t, s)
	}
	c.ready(t)
	return c
}

func newServers(t testing.TB, dir string, n int) *servers {
	t.Helper()
	if _, err := serverBinary(); err != nil {
		t.Fatal(err)
	}
	c := &servers{dir: dir}
	ports := freePorts(t, 2*n)
	var routes []string
	for i := range n {
		routes = append(routes, fmt.Sprintf("nats://127.0.0.1:%d", ports[2*i+1]))
	}
	for i := range n {
		s := &natsServer{port: ports[2*i], cluster: ports[2*i+1], config: filepath.Join(dir, fmt.Sprintf("n%d.conf", i))}
		text := fmt.Sprintf("server_name: n%d\nlisten: 127.0.0.1:%d\njetstream { store_dir: %q }\n", i, s.port, filepath.Join(dir, fmt.Sprint(i)))
		if n > 1 {
			text += fmt.Sprintf("cluster { name: fleet, no_advertise: true, listen: 127.0.0.1:%d, routes: [%s] }\n", s.cluster, strings.Join(routes, ", "))
		}
		if err := os.WriteFile(s.config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c.all = append(c.all, s)
	}
	return c
}

func (c *servers) start(t testing.TB, s *natsServer) {
	t.Helper()
	name, _ := serverBinary()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cmd = exec.Command(name, "-c", s.config)
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
}

// kill ends a server as a power failure would, and waits for it.
func (s *natsServer) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return
	}
	s.cmd.Process.Kill()
	s.cmd.Wait()
	s.cmd = nil
}

func (s *natsServer) signal(sig syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd != nil {
		s.cmd.Process.Signal(sig)
	}
}

func (s *natsServer) url() string { return fmt.Sprintf("nats://127.0.0.1:%d", s.port) }

func (c *servers) url() string {
	var all []string
	for _, s := range c.all {
		all = append(all, s.url())
	}
	return strings.Join(all, ",")
}

// ready waits until a stream with as many replicas as there are servers stores messages.
func (c *servers) ready(t testing.TB) {
	t.Helper()
	eventually(t, "the NATS servers work together", func() bool {
		nc, err := natsgo.Connect(c.url())
		if err != nil {
			return false
		}
		defer nc.Close()
		js, err := jetstream.New(nc)
		if err != nil {
			return false
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if _, err := js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{Name: "ready", Subjects: []string{"ready"}, Replicas: len(c.all)}); err != nil {
			return false
		}
		_, err = js.Publish(ctx, "ready", nil)
		return err == nil
	})
}
