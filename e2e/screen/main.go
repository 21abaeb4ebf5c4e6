// Command screen measures terminal UIs side by side, each in a terminal of its own,
// against one model that answers at once: how soon the first screen is there, how soon
// a key is seen, what an idle program does, long replies, memory.
//
//	cd e2e && go run ./screen --bin fermata=../fermata --bin codex=/path/to/codex
//
// It needs Linux, and programs with Codex's command line and config.toml. Each gets a home of its own, which is removed in the end
// with every process that was started in it. Numbers are of this machine, now: compare columns, not runs.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// A peer is a program with Codex's command line and config.toml.
type peer struct{ name, path string }

type peers []peer

func (p *peers) String() string { return fmt.Sprint(*p) }

func (p *peers) Set(s string) error {
	name, path, ok := strings.Cut(s, "=")
	if !ok {
		return fmt.Errorf("want NAME=PATH, got %q", s)
	}
	abs, err := filepath.Abs(path)
	*p = append(*p, peer{name, abs})
	return err
}

// A row is one thing that is measured.
type row struct {
	name string
	run  func(*session) (string, error)
}

func main() {
	var list peers
	flag.Var(&list, "bin", "a program to measure, as `NAME=PATH`; may be given more than once")
	keys := flag.Int("keys", 100, "how many keys to press")
	idle := flag.Duration("idle", 5*time.Second, "how long to watch an idle program")
	flag.Parse()
	if len(list) == 0 || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	go func() { // ends with the program
		<-stop
		for _, dir := range made() {
			remove(dir)
		}
		os.Exit(1)
	}()
	if err := run(list, *keys, *idle); err != nil {
		fmt.Fprintln(os.Stderr, "screen:", err)
		os.Exit(1)
	}
}

func run(list peers, keys int, idle time.Duration) error {
	m, err := startModel()
	if err != nil {
		return err
	}
	defer m.Close()
	rows := []row{
		{"first paint", func(s *session) (string, error) { return ms(s.painted), nil }},
		{"reply of 24 kB: until shown, CPU", func(s *session) (string, error) { return s.reply(24) }},
		{"reply of 240 kB: until shown, CPU", func(s *session) (string, error) { return s.reply(240) }},
		{"key to screen, median (90 %)", func(s *session) (string, error) { return s.echo(keys) }},
		{"idle: wake-ups/s", func(s *session) (string, error) { return s.wakeups(idle) }},
		{"memory afterwards (at most)", func(s *session) (string, error) { return s.memory() }},
	}
	table := make([][]string, len(rows))
	for i, r := range rows {
		table[i] = []string{r.name}
	}
	head := []string{""}
	for _, p := range list {
		head = append(head, p.name)
		s, err := start(p, m.URL)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		for i, r := range rows {
			cell, err := r.run(s)
			if err != nil {
				cell = "– (" + err.Error() + ")"
			}
			table[i] = append(table[i], cell)
		}
		s.close()
	}
	print(head)
	print(slices.Repeat([]string{"---"}, len(head)))
	for _, line := range table {
		print(line)
	}
	return nil
}

func print(cells []string) { fmt.Println("| " + strings.Join(cells, " | ") + " |") }

func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000) }
