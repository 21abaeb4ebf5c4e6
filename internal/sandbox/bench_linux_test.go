package sandbox

import (
	"slices"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/internal/proc"
	"github.com/fermata-agent/fermata/protocol"
)

// pause lets the spare shim come up, as it does between the commands of a model.
const pause = 20 * time.Millisecond

// BenchmarkConfinement runs a command without and with each confinement in turn,
// so that all see the same load, and reports the medians and their ratios to the
// first.
func BenchmarkConfinement(b *testing.B) {
	best := canConfine(b)
	noMounts := best
	noMounts.Mounts, noMounts.ByUser = false, false
	w := newWorld(b)
	s, err := proc.NewSpawner()
	must(b, err)
	defer s.Close()

	hidden, seeing := w.confinement(b, best, onlyWorkspace()), w.confinement(b, best, onlyWorkspace())
	seeing.pids = false
	readOnly := w.confinement(b, best, protocol.SandboxPolicy{Mode: protocol.SandboxReadOnly})
	readOnly.pids = false
	kinds := []struct {
		name string
		c    *Confinement
	}{
		{"full-access", nil},
		{"read-only", readOnly},
		{"workspace-write", seeing},
		{"with-pids", hidden},
		{"no-mounts", w.confinement(b, noMounts, protocol.SandboxPolicy{Mode: protocol.SandboxReadOnly})},
	}
	times := make([][]time.Duration, len(kinds))
	for b.Loop() {
		for i, k := range kinds {
			spec := proc.Spec{Argv: []string{"true"}, Dir: w.ws, Env: []string{"PATH=/usr/bin:/bin"}}
			must(b, k.c.Set(&spec))
			<-time.After(pause)
			began := time.Now()
			if r := s.Run(b.Context(), spec, nil); r.Err != nil || r.ExitCode != 0 {
				b.Fatalf("%s: result %+v", k.name, r)
			}
			times[i] = append(times[i], time.Since(began))
		}
	}
	median := func(i int) float64 {
		slices.Sort(times[i])
		return float64(times[i][len(times[i])/2])
	}
	for i, k := range kinds {
		b.ReportMetric(median(i)/1e6, k.name+"-ms")
		b.ReportMetric(median(i)/median(0), k.name+"-ratio")
	}
}

// BenchmarkNew makes the confinement of a command.
func BenchmarkNew(b *testing.B) {
	best := canConfine(b)
	w := newWorld(b)
	b.ReportAllocs()
	for b.Loop() {
		spec := proc.Spec{Argv: []string{"true"}}
		must(b, w.confinement(b, best, onlyWorkspace()).Set(&spec))
	}
}
