package layout

import (
	"math/rand/v2"
	"testing"
)

// The two ways to read a time must agree, also for names that are none.
func TestStartsWithTime(t *testing.T) {
	const valid = "2024-02-29T23-59-59"
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 50_000 {
		name := []byte(valid)
		for range i % 4 {
			name[random.IntN(len(name))] = "0123456789-Tt: "[random.IntN(15)]
		}
		_, want := Start(string(name))
		if got := startsWithTime(string(name) + "-x"); got != want {
			t.Fatalf("%q begins with a time: %v, want %v", name, got, want)
		}
	}
}
