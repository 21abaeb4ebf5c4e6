package journaltest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fermata-agent/fermata/internal/journal"
)

// A model is what a journal should hold.
type model struct {
	mu    sync.Mutex
	kinds []string // of the records
	items map[string]*modelItem
	last  map[string]string // latest item of each scope
}

type modelItem struct {
	before   string // item of the same scope before it
	text     string
	closedBy uint64
}

// followSeesEverythingOnce lets a writer do random things while readers, who
// come at random times with random cursors and are more or less slow, check
// that each sees everything once and in order.
func followSeesEverythingOnce(e *env) {
	for seed := range uint64(10) {
		r := rand.New(rand.NewPCG(seed, 7))
		e.id, e.syncTime = newID(), time.Duration(r.IntN(30))*time.Millisecond
		j := e.create()
		m := &model{items: make(map[string]*modelItem), last: make(map[string]string)}
		var readers sync.WaitGroup
		for i := range 6 {
			wait, pace := time.Duration(r.IntN(2000))*time.Millisecond, r.IntN(3)*r.IntN(100)
			own := rand.New(rand.NewPCG(seed, uint64(i)))
			readers.Go(func() {
				time.Sleep(wait)
				m.follow(e, j, own, pace)
			})
		}
		m.write(e, j, r)
		e.must(j.Close())
		readers.Wait()
	}
}

func (m *model) write(e *env, j journal.Journal, r *rand.Rand) {
	scopes := []string{"a", "b", "c"}
	open := make(map[string]journal.Scope)
	for _, s := range scopes {
		open[s] = j.Open(s)
	}
	for step := range 400 {
		name := scopes[r.IntN(3)]
		switch r.IntN(10) {
		case 0:
			m.append(j, entry(fmt.Sprint("plain", step), step))
		case 1:
			m.mu.Lock()
			item := fmt.Sprint(name, ".", step)
			m.items[item] = &modelItem{before: m.last[name]}
			m.last[name] = item
			m.mu.Unlock()
		case 2:
			if item := m.oldest(name); item != "" {
				m.append(j, entry("also", step), closing(fmt.Sprint("close", step), item))
			}
		case 3:
			if r.IntN(10) == 0 {
				m.append(j, closing("all", name+"."))
				open[name].Seal()
				open[name] = j.Open(name)
			}
		case 4:
			time.Sleep(time.Duration(r.IntN(100)) * time.Millisecond)
		default:
			m.mu.Lock()
			item := m.last[name]
			text := strings.Repeat("ä", r.IntN(4)) + fmt.Sprint(step)
			if it := m.items[item]; it != nil && it.closedBy == 0 {
				it.text += text
				if !open[name].Write(item, "t", text) {
					e.Errorf("Write to %s refused", item)
				}
			}
			m.mu.Unlock()
		}
	}
}

// append appends entries with the model locked, so that no reader sees a record
// that the model does not know.
func (m *model) append(j journal.Journal, entries ...journal.Entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	last := j.Append(entries...)
	for i, en := range entries {
		m.kinds = append(m.kinds, en.Kind)
		seq := last - uint64(len(entries)-1-i)
		for name, it := range m.items {
			if it.closedBy == 0 && (name == en.Closes || strings.HasSuffix(en.Closes, ".") && strings.HasPrefix(name, en.Closes)) {
				it.closedBy = seq
			}
		}
	}
}

// oldest returns the first item of a scope that is not closed.
func (m *model) oldest(scope string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var found string
	for item := m.last[scope]; item != "" && m.items[item].closedBy == 0; item = m.items[item].before {
		found = item
	}
	return found
}

func (m *model) follow(e *env, j journal.Journal, r *rand.Rand, pace int) {
	visible, _ := j.Durable()
	after := r.Uint64N(visible + 1)
	offsets := make(map[string]int64)
	reader := j.Follow(after)
	for {
		recs, chunks, err := reader.Next(e.Context())
		if err == journal.ErrClosed {
			break
		}
		e.must(err)
		if (len(recs) == 0) == (len(chunks) == 0) {
			e.Errorf("Next returned %d records and %d chunks", len(recs), len(chunks))
		}
		m.mu.Lock()
		for _, rec := range recs {
			after++
			if rec.Seq != after || rec.Kind != m.kinds[after-1] {
				e.Errorf("record %d is %d %s, want %s", after, rec.Seq, rec.Kind, m.kinds[after-1])
			}
		}
		for _, c := range chunks {
			m.check(e, c, after, offsets)
		}
		m.mu.Unlock()
		time.Sleep(time.Duration(pace) * time.Millisecond)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	e.equal("records seen", after, len(m.kinds))
	for name, it := range m.items {
		first := it.before == "" || m.items[it.before].closedBy != 0
		if it.closedBy == 0 && first && offsets[name] != int64(len(it.text)) {
			e.Errorf("saw %d bytes of %s, want %d", offsets[name], name, len(it.text))
		}
	}
}

// check looks at a chunk that a reader was given after the record of that number.
func (m *model) check(e *env, c journal.Chunk, after uint64, offsets map[string]int64) {
	it := m.items[c.Item]
	end := c.Offset + int64(len(c.Text))
	if c.Offset != offsets[c.Item] || end > int64(len(it.text)) || it.text[c.Offset:end] != c.Text || c.Text == "" {
		e.Errorf("chunk %+v after offset %d, item is %q", c, offsets[c.Item], it.text)
	}
	offsets[c.Item] = end
	if it.closedBy != 0 && it.closedBy <= after {
		e.Errorf("chunk %+v after record %d, which closed it", c, it.closedBy)
	}
	if b := m.items[it.before]; b != nil && b.text != "" && (b.closedBy == 0 || b.closedBy > after) {
		e.Errorf("chunk %+v before %s was seen to be closed", c, it.before)
	}
	if !slices.Contains([]string{"a", "b", "c"}, c.Item[:1]) || c.Tag != "t" {
		e.Errorf("chunk %+v", c)
	}
}
