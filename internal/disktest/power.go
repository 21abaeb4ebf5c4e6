package disktest

import (
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
)

// A change is a change of names: a node gets a name, loses one, or both.
type change struct {
	node     *node
	from, to string   // either may be empty
	synced   []string // directories that were synced since
	durable  bool
}

// dirs returns the directories that have to be synced.
func (c *change) dirs() []string {
	var dirs []string
	for _, path := range []string{c.from, c.to} {
		if path != "" {
			dirs = append(dirs, filepath.Dir(path))
		}
	}
	return slices.Compact(dirs)
}

// change carries a change out, and remembers it until it is durable.
func (p *platter) change(c *change) {
	c.apply(p.names)
	p.changes = append(p.changes, c)
}

// set changes a name durably; nil removes it.
func (p *platter) set(path string, n *node) {
	for _, names := range []map[string]*node{p.names, p.durable} {
		if n == nil {
			delete(names, path)
		} else {
			names[path] = n
		}
	}
}

// apply carries a change out. It does nothing if that is not possible, because
// another change, on which it depends, was lost.
func (c *change) apply(names map[string]*node) {
	if c.from != "" && (names[c.from] != c.node || c.node.mode.IsDir() && !empty(names, c.from)) {
		return
	}
	if c.to != "" {
		dir, over := names[filepath.Dir(c.to)], names[c.to]
		if dir == nil || !dir.mode.IsDir() || over != nil && over.mode.IsDir() {
			return
		}
	}
	if c.from != "" {
		delete(names, c.from)
	}
	if c.to != "" {
		names[c.to] = c.node
	}
}

// sync makes durable all that was done in a directory; with the removal of a
// directory also what was done in that one.
func (p *platter) sync(dir string) {
	for _, c := range p.changes {
		dirs := c.dirs()
		if c.durable || !slices.Contains(dirs, dir) || slices.Contains(c.synced, dir) {
			continue
		}
		c.synced = append(c.synced, dir)
		c.durable = len(c.synced) == len(dirs)
		if c.durable && c.to == "" && c.node.mode.IsDir() {
			p.sync(c.from)
		}
	}
	for len(p.changes) > 0 && p.changes[0].durable {
		p.changes[0].apply(p.durable)
		p.changes = p.changes[1:]
	}
}

// PowerCut returns a disk as a power cut at this moment might leave it. The one
// it is called on is not changed; whoever uses it should be killed.
func (d *Disk) PowerCut(r *rand.Rand) *Disk {
	d.disk.mu.Lock()
	defer d.disk.mu.Unlock()
	names := maps.Clone(d.disk.durable)
	for _, c := range d.disk.changes {
		if c.durable || r.IntN(2) == 0 {
			c.apply(names)
		}
	}
	after := make(map[*node]*node)
	for _, path := range slices.Sorted(maps.Keys(names)) { // in order, so that a seed means one outcome
		n := names[path]
		if after[n] == nil {
			data := n.afterCut(r)
			after[n] = &node{mode: n.mode, data: data, synced: slices.Clone(data), modified: n.modified}
		}
		names[path] = after[n]
	}
	return &Disk{disk: &platter{names: names, durable: maps.Clone(names)}}
}

// CutFile changes the content of one file to what a power cut might leave of it on
// a file system that writes in order: some of the changes since the last sync, and
// zeros, or nothing, in the place of the rest.
func (d *Disk) CutFile(path string, r *rand.Rand) {
	d.disk.mu.Lock()
	defer d.disk.mu.Unlock()
	n := d.disk.names[path]
	if n == nil {
		return
	}
	size := int64(len(n.data))
	n.data = slices.Clone(n.synced)
	for i, last := 0, r.IntN(len(n.writes)+1); i <= last && i < len(n.writes); i++ {
		w := n.writes[i]
		if i == last && len(w.data) > 0 {
			w.data = w.data[:r.IntN(len(w.data))]
		}
		n.data = w.apply(n.data)
	}
	if int64(len(n.data)) < size && r.IntN(2) == 0 {
		n.data = resize(n.data, size)
	}
	n.synced, n.written, n.writes = slices.Clone(n.data), n.written+len(n.writes), nil
}

// afterCut returns what is left of a file's content: the durable part; of what
// was written since, the first few changes of its size; and of the bytes that belong to
// these all, none, or some, with zeros where there was nothing before.
func (n *node) afterCut(r *rand.Rand) []byte {
	data := slices.Clone(n.synced)
	if len(n.writes) == 0 {
		return data
	}
	keep := r.IntN(3) // 0 all, 1 none, 2 some
	for i, last := 0, r.IntN(len(n.writes)+1); i < len(n.writes) && i <= last; i++ {
		w := n.writes[i]
		if i == last { // half of it
			if len(w.data) == 0 {
				break
			}
			w.data = w.data[:r.IntN(len(w.data))]
		}
		if !w.truncate && (keep == 1 || keep == 2 && r.IntN(2) == 0) {
			if end := w.at + int64(len(w.data)); end > int64(len(data)) {
				data = resize(data, end)
			}
			continue
		}
		data = w.apply(data)
	}
	return data
}
