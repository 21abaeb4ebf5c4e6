package journal

// A Pending is a record and what only a backend needs to know of it.
type Pending struct {
	Record
	Closes string // as in Entry
	More   bool   // the next record is of the same batch: a crash leaves both or none
}

// entryBytes is about what an entry costs besides its body.
const entryBytes = 160

func (e *Pending) size() int { return entryBytes + len(e.Body) }

// A window holds the latest records. It is guarded by the log's mutex.
type window struct {
	first   uint64 // number of entries[0], or the next number if there is none
	entries []Pending
	bytes   int
	keep    int // bytes that trim leaves; 0 keeps everything
}

func (w *window) push(e Pending) {
	w.entries = append(w.entries, e)
	w.bytes += e.size()
}

// trim forgets the oldest of the records up to saved, those that can be read
// from elsewhere.
func (w *window) trim(saved uint64) {
	if w.keep == 0 {
		return
	}
	n := 0
	for w.bytes > w.keep && n < len(w.entries) && w.entries[n].Seq <= saved {
		w.bytes -= w.entries[n].size()
		w.entries[n] = Pending{} // the array lives on until the next growth; the body need not
		n++
	}
	w.entries = w.entries[n:]
	w.first += uint64(n)
}

// after returns at most limit records after and up to the given numbers, which
// the window must hold.
func (w *window) after(after, upTo uint64, limit int) []Record {
	if after >= upTo || limit <= 0 {
		return nil
	}
	from := after + 1 - w.first
	n := min(upTo-after, uint64(limit))
	recs := make([]Record, n)
	for i := range recs {
		recs[i] = w.entries[from+uint64(i)].Record
	}
	return recs
}

// pending returns the entries after the given number.
func (w *window) pending(after uint64) []Pending {
	return append([]Pending(nil), w.entries[after+1-w.first:]...)
}

// unsave marks everything after the given number.
func (w *window) unsave(after uint64) {
	for i := range w.entries {
		if w.entries[i].Seq > after {
			w.entries[i].Unsaved = true
		}
	}
}
