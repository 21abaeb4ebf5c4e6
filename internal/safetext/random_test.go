package safetext

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/fermata-agent/fermata/internal/longtest"
)

// The pieces that make trouble: controls, wide characters, characters that join
// their neighbours.
var pieces = []string{
	"\x1b", "[", "]", "K", "\r", "\b", "\t", "漢", "a", " ", "\n", "\u0301", "\u200d", "👨", "🇩", "\xff", "\u009b", "\u202e", "1", ";", "\x00",
	"ก็", "\ufe0f", "\u20e3", "\u1100", "\u1161",
}

func randomText(r *rand.Rand, most int) string {
	var b strings.Builder
	for range r.IntN(most) {
		b.WriteString(pieces[r.IntN(len(pieces))])
	}
	return b.String()
}

func TestRandomText(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range longtest.Default(20_000, 6000) {
		check(t, randomText(r, 30), 1+r.IntN(9))
		if t.Failed() {
			return
		}
	}
}
