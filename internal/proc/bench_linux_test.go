package proc

import (
	"io"
	"os/exec"
	"slices"
	"testing"
	"time"
)

// BenchmarkSpawn compares commands through the shim with bare os/exec. It also
// reports the median, since a mean says little on a busy machine.
func BenchmarkSpawn(b *testing.B) {
	env := []string{"PATH=/usr/bin:/bin", "HOME=/nonexistent"}
	for _, c := range []struct {
		name string
		argv []string
	}{
		{"true", []string{"true"}},
		{"bash", []string{"bash", "-lc", "true"}},
	} {
		spec := Spec{Argv: c.argv, Env: env}
		b.Run(c.name+"/bare", func(b *testing.B) { benchmarkBare(b, spec) })
		b.Run(c.name+"/cold", func(b *testing.B) { benchmarkShim(b, spec, coolDown) })
		b.Run(c.name+"/warm", func(b *testing.B) { benchmarkShim(b, spec, warmUp) })
		spec.Confine = noConfinement
		b.Run(c.name+"/staged", func(b *testing.B) { benchmarkShim(b, spec, warmUp) })
	}
}

func benchmarkBare(b *testing.B, spec Spec) {
	var m medians
	for b.Loop() {
		m.measure(func() {
			cmd := exec.Command(spec.Argv[0], spec.Argv[1:]...)
			cmd.Env = spec.Env
			cmd.Stdout, cmd.Stderr = io.MultiWriter(), io.MultiWriter() // pipes, as we have
			if err := cmd.Run(); err != nil {
				b.Fatal(err)
			}
		})
	}
	m.report(b)
}

func benchmarkShim(b *testing.B, spec Spec, prepare func(testing.TB, *Spawner, kind)) {
	s, err := NewSpawner()
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()

	var m medians
	for b.Loop() {
		prepare(b, s, s.kindFor(spec))
		m.measure(func() {
			if r := s.Run(b.Context(), spec, func(Stream, []byte) {}); r.Err != nil || r.ExitCode != 0 {
				b.Fatalf("result %+v", r)
			}
		})
	}
	m.report(b)
}

// medians collects times of single rounds, without their preparation.
type medians []time.Duration

func (m *medians) measure(f func()) {
	began := time.Now()
	f()
	*m = append(*m, time.Since(began))
}

func (m medians) report(b *testing.B) {
	slices.Sort(m)
	b.ReportMetric(float64(m[len(m)/2].Nanoseconds()), "p50-ns")
	b.ReportMetric(float64(m[0].Nanoseconds()), "min-ns")
}

// coolDown takes the spare away.
func coolDown(_ testing.TB, s *Spawner, k kind) {
	if sh := s.takeSpare(k); sh != nil {
		sh.dismiss()
	}
}

// warmUp waits until there is a spare of a kind that has said hello.
func warmUp(tb testing.TB, s *Spawner, k kind) {
	tb.Helper()
	s.warm(k)
	sh := s.takeSpare(k)
	if sh == nil {
		tb.Fatal("no spare shim")
	}

	eventually(tb, "the spare says hello", func() bool { return len(sh.reports) > 0 })
	back := make(chan *shim, 1)
	back <- sh
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spares[k] = back
}
