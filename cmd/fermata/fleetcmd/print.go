package fleetcmd

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/fermata-agent/fermata/cmd/fermata/cli"
	"github.com/fermata-agent/fermata/internal/app/work"
	"github.com/fermata-agent/fermata/internal/fleet"
	"github.com/fermata-agent/fermata/internal/humanize"
	"github.com/fermata-agent/fermata/internal/journal/nats"
	"github.com/fermata-agent/fermata/internal/safetext"
)

// table prints rows whose first is the heading. What comes from other machines is text that is not trusted.
func table(w io.Writer, rows [][]string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i, text := range row {
			row[i] = strings.Join(strings.Fields(safetext.Strip(text)), " ")
		}
		if _, err := fmt.Fprintln(t, strings.Join(row, "\t")); err != nil {
			return err
		}
	}
	return t.Flush()
}

// age is how long ago something was, by clocks of two machines.
func age(now, then time.Time) string { return max(0, now.Sub(then)).Round(time.Second).String() }

func printNodes(w io.Writer, st work.Status) error {
	if len(st.Nodes) == 0 {
		_, err := fmt.Fprintln(w, "no node takes part (fermata serve --node NAME)")
		return err
	}
	rows := [][]string{{"NODE", "HOST", "PID", "LABELS", "VERSION", "TURNS", "WAITING", "STATE", "SEEN"}}
	for _, n := range st.Nodes {
		state := "takes work"
		switch {
		case n.Draining:
			state = "draining"
		case n.Running() >= n.Turns:
			state = "busy"
		}
		rows = append(rows, []string{
			n.Name, n.Host, fmt.Sprint(n.PID), cmp.Or(strings.Join(n.Labels, ","), "-"), cmp.Or(n.Version, "unknown"),
			fmt.Sprintf("%d of %d", n.Running(), n.Turns), fmt.Sprint(len(n.Work) - n.Running()), state, age(st.Compare, n.Seen) + " ago",
		})
	}
	return table(w, rows)
}

func printQueue(w io.Writer, st work.Status) error {
	if len(st.Queue) == 0 {
		_, err := fmt.Fprintln(w, "nothing waits for a node")
		return err
	}
	return table(w, queueRows(st, st.Queue, st.WaitsFor))
}

func queueRows(st work.Status, list []fleet.Waiting, why func(fleet.Waiting) string) [][]string {
	rows := [][]string{{"NUMBER", "AGE", "CLIENT", "LABEL", "CONVERSATION", "WORKS IN", "WHY"}}
	for _, q := range list {
		rows = append(rows, []string{
			fmt.Sprint(q.Number), age(st.Compare, q.Since), cmp.Or(q.Client, "-"), cmp.Or(q.Label, "any"),
			cmp.Or(string(q.Conversation), "-"), worksIn(q.Work), why(q),
		})
	}
	return rows
}

// worksIn says where a turn is to run.
func worksIn(w fleet.Work) string {
	if w.Git != nil {
		return strings.TrimSuffix(filepath.Base(w.Git.URL), ".git")
	}
	return cmp.Or(w.Dir, "-")
}

func lastFailure(w fleet.Waiting) string {
	if len(w.Failures) == 0 {
		return "-"
	}
	last := w.Failures[len(w.Failures)-1]
	return cmp.Or(last.Node, "a node") + ": " + last.Why
}

func printStatus(w io.Writer, st work.Status) error {
	running, turns, draining := 0, 0, 0
	for _, n := range st.Nodes {
		running += n.Running()
		if n.Draining {
			draining++
		} else {
			turns += n.Turns
		}
	}
	line := humanize.Count(len(st.Nodes), "node")
	if draining > 0 {
		line += fmt.Sprintf(" (%d draining)", draining)
	}
	fmt.Fprintf(w, "%s, %d of %s running; %s with conversations open\n", line, running, humanize.Count(turns, "turn"), humanize.Count(st.Others, "other process"))
	fmt.Fprintln(w, storeLine(st.Store))
	waiting := fmt.Sprintf("%d", uint64(len(st.Queue))+st.More)
	if len(st.Queue) == 0 {
		fmt.Fprintln(w, "queue: empty")
	} else {
		fmt.Fprintf(w, "queue: %s waiting, the oldest for %s\n", waiting, age(st.Compare, st.Queue[0].Since))
		if err := table(w, queueRows(st, st.Queue[:min(len(st.Queue), 10)], st.WaitsFor)); err != nil {
			return err
		}
	}
	if len(st.Failed) == 0 {
		_, err := fmt.Fprintln(w, "failed work: none")
		return err
	}
	fmt.Fprintf(w, "failed work: %d (fermata fleet retry NUMBER tries again, fermata fleet drop NUMBER gives up)\n", len(st.Failed))
	return table(w, queueRows(st, st.Failed, lastFailure))
}

func storeLine(u nats.Usage) string {
	line := fmt.Sprintf("store: %d bytes in %s", u.Bytes, humanize.Count(int(u.Messages), "message"))
	if u.Max > 0 {
		line += fmt.Sprintf(", %d %% of %d", u.Bytes*100/uint64(u.Max), u.Max)
	}
	return line + ", on " + humanize.Count(u.Replicas, "server")
}

// printTop shows the status in place of the one before, on a terminal.
func printTop(s cli.Streams, st work.Status) error {
	var b bytes.Buffer
	if err := printStatus(&b, st); err != nil {
		return err
	}
	fmt.Fprintln(&b)
	if err := printNodes(&b, st); err != nil {
		return err
	}
	rows := [][]string{{"NODE", "CONVERSATION", "CLIENT", "FOR", "STATE"}}
	for _, n := range st.Nodes {
		for _, t := range n.Work {
			state := "running"
			if t.Waiting {
				state = "waiting"
			}
			rows = append(rows, []string{n.Name, t.Conversation, cmp.Or(t.Client, "-"), (time.Duration(t.Seconds) * time.Second).String(), state})
		}
	}
	if len(rows) > 1 {
		fmt.Fprintln(&b)
		if err := table(&b, rows); err != nil {
			return err
		}
	}
	text := b.String()
	if cli.Terminal(s.RawOut) {
		text = ansi.CursorHomePosition + ansi.EraseEntireScreen + text
	}
	_, err := io.WriteString(s.RawOut, text) // the tables were sanitized
	return err
}

// printJSON prints the status for programs.
func printJSON(w io.Writer, st work.Status) error {
	type turn struct {
		Number       uint64 `json:"number"`
		Conversation string `json:"conversation"`
		Client       string `json:"client,omitempty"`
		Label        string `json:"label,omitempty"`
		Dir          string `json:"dir,omitempty"`
		Repo         string `json:"repo,omitempty"`
		AgeSeconds   int64  `json:"age_seconds"`
		Failures     int    `json:"failures,omitempty"`
		Why          string `json:"why,omitempty"`
	}
	turns := func(list []fleet.Waiting, why func(fleet.Waiting) string) []turn {
		out := []turn{}
		for _, q := range list {
			t := turn{
				Number: q.Number, Conversation: string(q.Conversation), Client: q.Client, Label: q.Label, Dir: q.Dir,
				AgeSeconds: int64(max(0, st.Compare.Sub(q.Since)).Seconds()), Failures: len(q.Failures), Why: why(q),
			}
			if q.Git != nil {
				t.Dir, t.Repo = "", q.Git.URL
			}
			out = append(out, t)
		}
		return out
	}
	type node struct {
		nats.Node
		SeenSeconds int64 `json:"seen_seconds"`
	}
	nodes := []node{}
	for _, n := range st.Nodes {
		nodes = append(nodes, node{n, int64(max(0, st.Compare.Sub(n.Seen)).Seconds())})
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(map[string]any{
		"nodes": nodes, "others": st.Others, "queue": turns(st.Queue, st.WaitsFor), "more": st.More, "failed": turns(st.Failed, lastFailure),
		"store": map[string]any{"messages": st.Store.Messages, "bytes": st.Store.Bytes, "max_bytes": st.Store.Max, "replicas": st.Store.Replicas},
	})
}
