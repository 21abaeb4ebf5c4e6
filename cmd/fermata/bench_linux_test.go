package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/internal/model/demo"
	"github.com/fermata-agent/fermata/internal/proc"
	"github.com/fermata-agent/fermata/internal/tool"
	"github.com/fermata-agent/fermata/protocol"
)

// BenchmarkBinary runs the whole program. CPU includes that of its commands.
func BenchmarkBinary(b *testing.B) {
	runs := []struct {
		name string
		args []string
	}{
		{"version", []string{"version"}},
		{"hello", []string{"exec", "--demo", "what happened?"}},
		{"hello ephemeral", []string{"exec", "--demo", "--ephemeral", "what happened?"}},
		{"run true", []string{"exec", "--demo", "run: true"}},
	}
	for _, run := range runs {
		b.Run(run.name, func(b *testing.B) {
			pl := newPlace(b)
			var cpu time.Duration
			for b.Loop() {
				cmd := pl.command(context.Background(), run.args...)
				if err := cmd.Run(); err != nil {
					b.Fatal(err)
				}
				cpu += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
			}
			b.ReportMetric(cpu.Seconds()*1e3/float64(b.N), "cpu-ms/op")
		})
	}
}

// BenchmarkFirstRequest measures from the start of the program to its first
// request to a model over HTTP, with some MCP servers whose tools are known. That they
// were not started is part of it: the program they name is there for the first run only.
func BenchmarkFirstRequest(b *testing.B) {
	for _, servers := range []int{0, 5, 20} {
		b.Run(strconv.Itoa(servers)+" MCP servers", func(b *testing.B) { benchmarkFirstRequest(b, servers) })
	}
}

func benchmarkFirstRequest(b *testing.B, servers int) {
	asked := make(chan time.Time, 1)
	model := demo.Handler()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			select {
			case asked <- time.Now():
			default: // not the first
			}
		}
		model.ServeHTTP(w, r)
	}))
	defer srv.Close()
	pl := newPlace(b)
	pl.env = append(pl.env, "OPENAI_BASE_URL="+srv.URL+"/v1")
	link := filepath.Join(b.TempDir(), "server")
	if err := os.Symlink(pl.bin, link); err != nil {
		b.Fatal(err)
	}
	var text strings.Builder
	for i := range servers {
		fmt.Fprintf(&text, "[mcp_servers.s%d]\ncommand = %q\nargs = [\"mcp-server\"]\nenv = { HOME = %q }\nstartup_timeout_sec = 600\n", i, link, b.TempDir())
	}
	home := filepath.Join(pl.dir, "home", "fermata")
	if err := errors.Join(os.MkdirAll(home, 0o700), os.WriteFile(filepath.Join(home, "config.toml"), []byte(text.String()), 0o600)); err != nil {
		b.Fatal(err)
	}
	pl.must("exec", "-m", "demo", "what happened?")
	<-asked
	os.Remove(link)
	var sum time.Duration
	for b.Loop() {
		began := time.Now()
		pl.must("exec", "-m", "demo", "what happened?")
		sum += (<-asked).Sub(began)
	}
	b.ReportMetric(sum.Seconds()*1e3/float64(b.N), "first-request-ms")
}

var highWater = regexp.MustCompile(`(?m)^VmHWM:\s+(\d+) kB$`)

// BenchmarkPeak reports the largest resident set of a hello. What wait4 tells
// cannot be used: it counts the memory of whoever started the program. So the program is
// kept from ending, by an output that no client reads, and looked at.
func BenchmarkPeak(b *testing.B) {
	for _, prompt := range []string{"what happened?", "run: true"} {
		b.Run(prompt, func(b *testing.B) {
			var peak float64
			for b.Loop() {
				pl := newPlace(b)
				pr := pl.startUnread("exec", "--demo", prompt)
				pl.awaitEvent(pl.conversation(), "the turn has ended", func(body protocol.Body) bool {
					_, ok := body.(*protocol.TurnEnded)
					return ok
				})
				text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pr.cmd.Process.Pid))
				m := highWater.FindSubmatch(text)
				if err != nil || m == nil {
					b.Fatalf("no peak in %q, %v", text, err)
				}
				kib, err := strconv.Atoi(string(m[1]))
				if err != nil {
					b.Fatal(err)
				}
				peak = max(peak, float64(kib)/1024)
				_ = pr.cmd.Process.Kill()
				<-pr.done
			}
			b.ReportMetric(0, "ns/op") // the waiting says nothing
			b.ReportMetric(peak, "peak-MiB")
		})
	}
}

// A deafHost is a conversation that writes nothing down.
type deafHost struct{}

func (deafHost) Write(protocol.DeltaKind, string) {}

func (deafHost) Record(context.Context, protocol.Body) error { return nil }

func (deafHost) Output(context.Context, protocol.CallID) (string, error) { return "", nil }

func (deafHost) Keep(context.Context, protocol.BackgroundStarted, tool.Background) (protocol.BackgroundID, func(protocol.DeltaKind, string), error) {
	return 0, nil, errors.New("keeps nothing")
}

// BenchmarkSpawn runs commands by the shell tool and, for comparison, without
// anything in between.
func BenchmarkSpawn(b *testing.B) {
	b.Setenv("HOME", b.TempDir()) // a login shell reads the tester's profile
	for _, argv := range [][]string{{"true"}, {"bash", "-lc", "true"}} {
		name := strings.Join(argv, " ")
		b.Run(name+"/shell tool", func(b *testing.B) {
			s, err := proc.NewSpawner()
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			shell := &tool.Shell{Spawner: s}
			arguments := `{"command":["` + strings.Join(argv, `","`) + `"]}`
			call := tool.Call{Name: "shell", Arguments: arguments, Host: deafHost{}, Settings: protocol.Settings{Cwd: b.TempDir()}}
			for b.Loop() {
				if r := shell.Run(b.Context(), call); r.Output.Failed {
					b.Fatal(r.Output.Output)
				}
			}
		})
		b.Run(name+"/bare", func(b *testing.B) {
			for b.Loop() {
				if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
					b.Fatalf("%v\n%s", err, out)
				}
			}
		})
	}
}

// initLine is a line of GODEBUG=inittrace=1.
var initLine = regexp.MustCompile(`(?m)^init (\S+) @\S+ ms, (\S+) ms clock, (\d+) bytes`)

// BenchmarkInit reports how long the packages take to get ready before main: all
// of them, and the slowest but the runtime's own. A busy machine only makes
// it longer, so that the least of all runs counts.
func BenchmarkInit(b *testing.B) {
	pl := newPlace(b)
	pl.env = append(pl.env, "GODEBUG=inittrace=1")
	least := map[string]float64{}
	for b.Loop() {
		_, trace, _ := pl.run("version")
		for _, m := range initLine.FindAllStringSubmatch(trace, -1) {
			ms, err := strconv.ParseFloat(m[2], 64)
			if err != nil {
				b.Fatal(err)
			}
			if old, ok := least[m[1]]; !ok || ms < old {
				least[m[1]] = ms
			}
		}
	}
	var sum, worst float64
	slowest := "none"
	for pkg, ms := range least {
		sum += ms
		if pkg != "runtime" && ms > worst {
			slowest, worst = pkg, ms
		}
	}
	b.ReportMetric(sum, "init-ms")
	b.ReportMetric(worst, "slowest-ms")
	b.Logf("slowest package: %s, %.3f ms of %.3f ms for %d packages", slowest, worst, sum, len(least))
}

// BenchmarkTakeOver is how long it takes from kill -9 of the owner until a process that had joined has recovered the
// conversation. The worst is reported as well: run it with -benchtime 20x.
func BenchmarkTakeOver(b *testing.B) {
	var took []time.Duration
	for range b.N {
		pl := newPlace(b)
		owner := pl.start("exec", "--demo", "run: echo begun; exec sleep 1000")
		id := pl.conversation()
		pl.awaitText(id, "begun")
		joined := pl.start("exec", "resume", id, "--demo", "say something")
		eventually(b, "it has joined", func() bool { return joined.err.has("begun") })
		began := time.Now()
		if err := owner.cmd.Process.Kill(); err != nil {
			b.Fatal(err)
		}
		pl.awaitEvent(id, "the end of the turn", func(body protocol.Body) bool {
			end, ok := body.(*protocol.TurnEnded)
			return ok && end.Reason == protocol.Crashed
		})
		took = append(took, time.Since(began))
		joined.code()
	}
	slices.Sort(took)
	b.ReportMetric(took[len(took)/2].Seconds()*1000, "ms/median")
	b.ReportMetric(took[len(took)-1].Seconds()*1000, "ms/worst")
}
