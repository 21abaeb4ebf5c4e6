package patch

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"github.com/fermata-agent/fermata/internal/longtest"
)

func TestPowerCutAtEveryStep(t *testing.T) {
	w := newTwenty(t)
	total := w.steps(t)
	rounds := longtest.Default(8, 4)
	if testing.Short() {
		rounds = 4
	}
	for k := range total + 1 {
		for round := range rounds {
			r := rand.New(rand.NewPCG(uint64(k), uint64(round)))
			what := fmt.Sprintf("power cut at %d, round %d", k, round)
			w.powerCut(t, what, k, round%2 == 1, r)
		}
	}
}

// powerCut runs the patch until the cut at operation k. If bad, a step after
// the commit fails, so that the cut hits the retreat.
func (w *twenty) powerCut(t *testing.T, what string, k int, bad bool, r *rand.Rand) {
	t.Helper()
	mem := w.fresh()
	n, committed := 0, false
	broken := !bad
	p := &hookFS{FS: mem}
	p.hook = func(op, path, _ string) error {
		p.dead = n == k
		n++
		step := op == "rename" || op == "remove" && !strings.Contains(path, ".fermata-")
		if committed && !broken && step && r.IntN(10) == 0 {
			broken = true
			return syscall.EIO
		}
		return nil
	}
	plan := w.verify(t, mem)
	rec := plan.Record()
	err := Apply(t.Context(), p, plan, rec, func(Record) error {
		committed = true // durable, says the contract
		return nil
	})
	left := &Mem{mem.PowerCut(r)}
	var incomplete *IncompleteError
	if !p.dead && !errors.As(err, &incomplete) {
		w.expect(t, what+", after the end", left, err == nil)
		return
	}
	applied, err := Recover(left, rec, committed)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	w.expect(t, what, left, applied)
}
