package wire

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

func seconds(f float64) time.Duration {
	if !(f > 0 && f < 1e9) {
		return 0
	}
	return time.Duration(f * float64(time.Second))
}

// retryAfter reads the headers by which a service says how long to wait.
func retryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms >= 0 {
		return seconds(ms / 1000), true
	}
	value := strings.TrimSpace(h.Get("Retry-After"))
	if s, err := strconv.ParseFloat(value, 64); err == nil && s >= 0 {
		return seconds(s), true
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now)), true
	}
	return 0, false
}

// limitReset reads the headers that say when a limit of a plan is lifted. They
// are there with every answer, so they only mean something with a refusal.
func limitReset(h http.Header, now time.Time) time.Duration {
	for _, name := range []string{"Anthropic-Ratelimit-Unified-Reset", "X-Codex-Primary-Reset-At"} {
		if s, err := strconv.ParseInt(h.Get(name), 10, 64); err == nil && s > 0 {
			return max(0, time.Unix(s, 0).Sub(now))
		}
	}
	return seconds(number(h.Get("X-Codex-Primary-Reset-After-Seconds")))
}

func number(s string) float64 {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0
	}
	return f
}

var (
	waitVerb = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)(?:try again|retry) (?:in|after) `) })
	waitPart = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)^[ ,]*(?:and )?(\d+(?:\.\d+)?) ?(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hours?|d|days?)(?:[^a-z]|$)`)
	})
)

// unitSeconds are the units of time, by how their names begin.
var unitSeconds = map[string]float64{"ms": 0.001, "mil": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}

// waitIn finds the wait that a message names: "try again in 1.5s", "… in 7m12.3s",
// "… in 2 days 3 hours".
func waitIn(message string) time.Duration {
	at := waitVerb().FindStringIndex(message)
	if at == nil {
		return 0
	}
	var total time.Duration
	for rest := message[at[1]:]; ; {
		m := waitPart().FindStringSubmatchIndex(rest)
		if m == nil {
			return total
		}
		n, unit := number(rest[m[2]:m[3]]), strings.ToLower(rest[m[4]:m[5]])
		for _, prefix := range []string{"mil", "ms", "s", "m", "h", "d"} {
			if strings.HasPrefix(unit, prefix) {
				total += seconds(n * unitSeconds[prefix])
				break
			}
		}
		rest = rest[m[5]:]
	}
}
