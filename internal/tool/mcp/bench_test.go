package mcp

import (
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/internal/config"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// A result of 60 MB, of a server that is a process and of one that is a service. peak-MB is the most memory and cpu-ms/op the time that this
// process had, which in the second case is the service too.
func BenchmarkLongResult(b *testing.B) {
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return newTestServer() }, nil)
	service := httptest.NewServer(handler)
	b.Cleanup(service.CloseClientConnections) // before Close, which waits for them
	b.Cleanup(service.Close)
	for name, def := range map[string]config.MCPServer{
		"process": self(b, "plain"),
		"service": {URL: service.URL, StartupTimeout: defaultStartup},
	} {
		b.Run(name, func(b *testing.B) {
			r := open(b, map[string]config.MCPServer{"s": def})
			r.start(b)
			resetPeak()
			kept, began := 0, cpuTime()
			for b.Loop() {
				out := r.call(b.Context(), b, "s__big", `{"Bytes":62914560}`).Output
				if out.Failed || out.MCP == nil {
					b.Fatal(out.Output)
				}
				kept = len(out.MCP.Result)
			}
			b.ReportMetric(float64((cpuTime()-began).Milliseconds())/float64(b.N), "cpu-ms/op")
			b.ReportMetric(float64(peak())/1000, "peak-MB")
			b.ReportMetric(float64(kept), "kept-B")
		})
	}
}

// cpuTime is what this process, without its children, has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // cannot fail
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func resetPeak() { _ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) } // without it the peak is that of the process so far

var peakLine = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// peak is the most memory that this process had, in kB; 0 where that is not known.
func peak() int {
	text, _ := os.ReadFile("/proc/self/status")
	if m := peakLine.FindSubmatch(text); m != nil {
		n, _ := strconv.Atoi(string(m[1]))
		return n
	}
	return 0
}
