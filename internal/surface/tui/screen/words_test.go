package screen

import (
	"testing"
	"time"
)

func TestFit(t *testing.T) {
	facts := []Fact{{"model", 9}, {"place", 7}, {"context", 6}, {"tokens", 3}}
	for width, want := range map[int]string{
		100: "model · place · context · tokens", 32: "model · place · context · tokens", 31: "model · place · context", 22: "model · place", 12: "model", 4: "", -1: "",
	} {
		if got := Fit(facts, width); got != want {
			t.Errorf("in %d columns: %q, want %q", width, got, want)
		}
	}
}

func TestNumbers(t *testing.T) {
	for n, want := range map[int64]string{7: "7", 999: "999", 1500: "1.5 k", 15_400: "15 k", 1_500_000: "1.5 M", 25_000_000: "25 M"} {
		if got := Tokens(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
	for d, want := range map[time.Duration]string{
		-time.Second: "0 s", 900 * time.Millisecond: "0 s", 59 * time.Second: "59 s", 61 * time.Second: "1 min 01 s", 3661 * time.Second: "1 h 01 min",
	} {
		if got := Clock(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.Local)
	for d, want := range map[time.Duration]string{
		time.Second: "just now", 5 * time.Minute: "5 min ago", 3 * time.Hour: "3 h ago", 50 * time.Hour: "2 d ago", 30 * 24 * time.Hour: "2026-10-16",
	} {
		if got := Ago(now, now.Add(-d)); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}
