// Package observe lets operators see what a server does: numbers in the text format of Prometheus, whether it is healthy, and a log of
// lines of JSON that is rotated. Every server of the program uses it. It never blocks what it observes.
package observe

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A Registry is a set of metrics. The zero value is an empty one.
type Registry struct {
	mu   sync.Mutex
	list []*metric // guarded by mu
}

// A metric has a value for each set of values of its labels.
type metric struct {
	name, help, kind string
	labels           []string
	buckets          []float64        // of a histogram: upper bounds, in order
	read             func() []Sample  // of a gauge
	values           map[string]value // of a counter or histogram, by the labels as they are written; guarded by Registry.mu
}

type value struct {
	sum    float64
	counts []uint64 // of a histogram: how many are within each bucket, and in all
}

// A Sample is a value of a gauge.
type Sample struct {
	Labels []string // in the order of the metric's
	Value  float64
}

// A Counter only grows.
type Counter struct {
	r *Registry
	m *metric
}

// Counter adds a counter, whose name ends in _total.
func (r *Registry) Counter(name, help string, labels ...string) Counter {
	return Counter{r, r.add(&metric{name: name, help: help, kind: "counter", labels: labels, values: map[string]value{}})}
}

// Add counts n, for the values of the labels.
func (c Counter) Add(n float64, labels ...string) {
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	key := pairs(c.m.labels, labels)
	v := c.m.values[key]
	v.sum += n
	c.m.values[key] = v
}

// A Histogram counts values by their size.
type Histogram struct {
	r *Registry
	m *metric
}

// Histogram adds a histogram with the upper bounds of its buckets, in order.
func (r *Registry) Histogram(name, help string, buckets []float64, labels ...string) Histogram {
	return Histogram{r, r.add(&metric{name: name, help: help, kind: "histogram", labels: labels, buckets: buckets, values: map[string]value{}})}
}

// Observe counts a value, for the values of the labels.
func (h Histogram) Observe(x float64, labels ...string) {
	h.r.mu.Lock()
	defer h.r.mu.Unlock()
	key := pairs(h.m.labels, labels)
	v, ok := h.m.values[key]
	if !ok {
		v.counts = make([]uint64, len(h.m.buckets)+1)
	}
	for i, bound := range h.m.buckets {
		if x <= bound {
			v.counts[i]++
		}
	}
	v.counts[len(h.m.buckets)]++
	v.sum += x
	h.m.values[key] = v
}

// Gauge adds a metric that is read when it is asked for.
func (r *Registry) Gauge(name, help string, labels []string, read func() []Sample) {
	r.add(&metric{name: name, help: help, kind: "gauge", labels: labels, read: read})
}

// GaugeOf adds a gauge with one value.
func (r *Registry) GaugeOf(name, help string, read func() float64) {
	r.Gauge(name, help, nil, func() []Sample { return []Sample{{Value: read()}} })
}

func (r *Registry) add(m *metric) *metric {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, m)
	return m
}

// pairs writes labels with their values as Prometheus reads them.
func pairs(names, values []string) string {
	var b strings.Builder
	for i, name := range names {
		if i > 0 {
			b.WriteByte(',')
		}
		v := ""
		if i < len(values) {
			v = strings.ToValidUTF8(values[i], "\uFFFD")
		}
		fmt.Fprintf(&b, `%s="%s"`, name, escapeLabel.Replace(v))
	}
	return b.String()
}

var (
	escapeLabel = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
	escapeHelp  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
)

// WriteText writes all metrics in the text format of Prometheus, version 0.0.4.
func (r *Registry) WriteText(w io.Writer) error {
	r.mu.Lock()
	list := slices.Clone(r.list)
	r.mu.Unlock()
	var b strings.Builder
	for _, m := range list {
		var samples []Sample
		if m.read != nil {
			samples = m.read() // not with the mutex: it is the caller's
		}
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", m.name, escapeHelp.Replace(m.help), m.name, m.kind)
		for _, s := range samples {
			line(&b, m.name, pairs(m.labels, s.Labels), s.Value)
		}
		r.mu.Lock()
		m.write(&b)
		r.mu.Unlock()
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// write writes the values of a counter or histogram.
func (m *metric) write(b *strings.Builder) {
	keys := make([]string, 0, len(m.values))
	for key := range m.values {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		v := m.values[key]
		if m.kind != "histogram" {
			line(b, m.name, key, v.sum)
			continue
		}
		with := func(bound string) string { return strings.TrimPrefix(key+`,le="`+bound+`"`, ",") }
		for i, bound := range m.buckets {
			line(b, m.name+"_bucket", with(number(bound)), float64(v.counts[i]))
		}
		line(b, m.name+"_bucket", with("+Inf"), float64(v.counts[len(m.buckets)]))
		line(b, m.name+"_sum", key, v.sum)
		line(b, m.name+"_count", key, float64(v.counts[len(m.buckets)]))
	}
}

func line(b *strings.Builder, name, labels string, value float64) {
	if labels != "" {
		labels = "{" + labels + "}"
	}
	fmt.Fprintf(b, "%s%s %s\n", name, labels, number(value))
}

func number(x float64) string {
	switch {
	case math.IsInf(x, 1):
		return "+Inf"
	case math.IsInf(x, -1):
		return "-Inf"
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}
