package file

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"time"

	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/internal/journal/file/disk"
	"github.com/fermata-agent/fermata/internal/journal/file/format"
)

// A part is a span of a file that is to be repaired.
type part struct {
	off, size int64
	kind      format.LineKind
	ended     bool
	keep      bool
	seq       uint64
	time      int64 // Unix microseconds
	sum       uint32
	linked    bool
	prev      uint32
	lost      bool // a record that stands for a lost one
	more      bool // the next record is of the same batch
	torn      bool // it is of a batch that was not finished
}

// A plan says what a repair will do.
type plan struct {
	of      uint32
	from    position
	parts   []part
	damaged []journal.Damage
	torn    int64
	lost    map[int]lostRecords // by the index of the part that they go before
	kept    int                 // parts up to and including the last that is kept
	inPlace bool                // only the end has to go
}

// lostRecords are numbers that get a record of the kind "damaged".
type lostRecords struct {
	first, n uint64
	bytes    int64
}

// repair sets aside what is damaged and makes the file whole. If the damage lies
// before the end, it gives up the checkpoint and does nothing if there was one:
// what is before the checkpoint has to be looked at too.
func (s *Store) repair(h *held, ck *checkpoint, rec *journal.Recovery) error {
	path, of := h.path, format.IDSum(h.id)
	p, err := makePlan(h.file, of, ck.scan(of))
	if err != nil {
		return err
	}
	if !p.inPlace && p.from.off > 0 || p.last() < ck.Seq {
		*ck = checkpoint{}
		return nil
	}
	if err := s.setAside(path, h.file, p); err != nil {
		return fmt.Errorf("set damage aside: %w", err)
	}
	for i := range p.damaged {
		p.damaged[i].File = path + damagedSuffix
	}
	rec.Damaged = append(rec.Damaged, p.damaged...)
	rec.Torn += p.torn
	if p.inPlace {
		return p.cutEnd(h.file)
	}
	return s.rewrite(h, func(to File) error { return p.copyTo(to, h.file, filepath.Base(path+damagedSuffix)) })
}

func makePlan(f File, of uint32, from position) (*plan, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	p := &plan{of: of, from: from, lost: make(map[int]lostRecords)}
	sc := format.NewScanner(f, of, from.off, st.Size())
	for {
		sp, err := sc.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read journal: %w", err)
		}
		pt := part{off: sp.Off, size: sp.Size, kind: sp.Kind, ended: sp.Ended, seq: sp.Seq, sum: sp.Sum, linked: sp.Linked, prev: sp.Prev, more: sp.More}
		if sp.Kind == format.RecordLine {
			pt.time = sp.Decode().Time.UnixMicro()
			pt.lost = string(sp.Name) == format.KindDamaged
			pt.linked = pt.linked && !pt.lost
		}
		p.parts = append(p.parts, pt)
	}
	p.chooseRecords(st.Size())
	p.dropUnfinishedBatch()
	p.chooseProgress()
	p.assess()
	return p, nil
}

// implausible bounds the numbers that a file of that size can hold, so that one
// wrong number does not cause a million records. Some room is left for lines
// that were removed by hand.
func implausible(seq uint64, size int64) bool { return seq > uint64(size)/format.LineBytes+1<<14 }

// A recordKey is what the record after it knows of a record.
type recordKey struct {
	seq uint64
	sum uint32
}

// chooseRecords keeps the longest run of records whose numbers increase and of
// which each was written after the one before. What does not fit in is a
// repetition, a line with a wrong number, or what another writer wrote.
func (p *plan) chooseRecords(size int64) {
	c := chooser{plan: p, at: make(map[recordKey]int), lengths: make([]int, len(p.parts)), before: make([]int, len(p.parts))}
	for i, pt := range p.parts {
		if pt.kind == format.RecordLine && pt.seq >= p.from.next && !implausible(pt.seq-p.from.next, size) {
			c.add(i)
		}
	}
	if len(c.tails) == 0 {
		return
	}
	for i := c.tails[len(c.tails)-1]; i >= 0; i = c.before[i] {
		p.parts[i].keep = true
	}
}

// A chooser finds the longest run. For each length it knows the run that ends
// with the smallest number.
type chooser struct {
	*plan
	at      map[recordKey]int // where a record is; of several equal ones, the one that ends the longest run
	tails   []int             // index of the part that ends the best run of length i+1
	lengths []int             // of the longest run that ends with a part; 0 if there is none
	before  []int             // the part before it in that run, or -1
}

// add considers one more record.
func (c *chooser) add(i int) {
	pt := &c.parts[i]
	below := pt.seq
	if pt.linked && pt.seq == c.from.next && c.from.sum != 0 && pt.prev != c.from.sum {
		return // written after something else than what is there
	}
	if pt.linked && pt.seq > c.from.next {
		if parent, ok := c.at[recordKey{pt.seq - 1, pt.prev}]; ok {
			c.set(i, parent)
			return
		}
		// What it was written after is lost, so no other record of that number
		// goes before it, but for one that stands for it.
		below--
	}
	k := sort.Search(len(c.tails), func(k int) bool { return c.parts[c.tails[k]].seq >= below })
	if k < len(c.tails) && c.parts[c.tails[k]].seq == below && (below == pt.seq || c.parts[c.tails[k]].lost) {
		if below == pt.seq {
			return // the first of two equals
		}
		k++
	}
	if k == 0 {
		c.set(i, -1)
		return
	}
	c.set(i, c.tails[k-1])
}

// set notes that part i follows another one.
func (c *chooser) set(i, before int) {
	n := 0
	if before >= 0 {
		n = c.lengths[before]
	}
	c.lengths[i], c.before[i] = n+1, before
	key := recordKey{c.parts[i].seq, c.parts[i].sum}
	if same, ok := c.at[key]; !ok || c.lengths[same] <= n {
		c.at[key] = i
	}
	if n == len(c.tails) {
		c.tails = append(c.tails, i)
		return
	}
	if c.parts[i].seq < c.parts[c.tails[n]].seq {
		c.tails[n] = i
	}
}

// dropUnfinishedBatch drops the records at the end whose batch was not finished: whoever appended
// them was told nothing, and may append them again.
func (p *plan) dropUnfinishedBatch() {
	for i := range slices.Backward(p.parts) {
		pt := &p.parts[i]
		if !pt.keep {
			continue // also text, which is chosen later
		}
		if !pt.more {
			return
		}
		pt.keep, pt.torn = false, true
	}
}

// chooseProgress keeps what was written to open items, unless it was by a writer
// whose records are not kept.
func (p *plan) chooseProgress() {
	dropped := make(map[uint32]bool)
	for _, pt := range p.parts {
		if pt.kind == format.RecordLine && !pt.keep {
			dropped[pt.sum] = true
		}
	}
	for _, pt := range p.parts {
		if pt.kind == format.RecordLine && pt.keep {
			delete(dropped, pt.sum) // a repetition of a record that is kept
		}
	}
	for i := range p.parts {
		pt := &p.parts[i]
		pt.keep = pt.keep || pt.kind == format.ProgressLine && !(pt.linked && dropped[pt.prev])
	}
}

// assess finds out what is lost, and whether truncating the file is enough.
func (p *plan) assess() {
	p.inPlace = true
	next, gap := p.from.next, 0 // gap: damage from there on is behind the last kept record
	var end int64 = -1          // of the damage that the next bad part may continue
	for i, pt := range p.parts {
		if !pt.keep {
			if end != pt.off {
				p.damaged = append(p.damaged, journal.Damage{Offset: pt.off})
			}
			p.damaged[len(p.damaged)-1].Bytes += pt.size
			end = pt.off + pt.size
			continue
		}
		if i > p.kept || i > 0 && !p.parts[i-1].ended {
			p.inPlace = false
		}
		p.kept = i + 1
		if pt.kind == format.RecordLine {
			if pt.seq > next {
				p.inPlace = false
				p.lose(i, gap, next)
			}
			next, gap = pt.seq+1, len(p.damaged)
		}
	}
	p.tear()
}

// lose notes that the numbers from first on up to the part's are missing.
func (p *plan) lose(i, gap int, first uint64) {
	if gap == len(p.damaged) {
		p.damaged = append(p.damaged, journal.Damage{Offset: p.parts[i].off})
	}
	l := lostRecords{first: first, n: p.parts[i].seq - first}
	for _, d := range p.damaged[gap:] {
		l.bytes += d.Bytes
	}
	p.damaged[gap].Records = int(l.n)
	p.lost[i] = l
}

// tear takes the unfinished last line, or batch, out of the damage.
func (p *plan) tear() {
	for _, pt := range slices.Backward(p.parts[p.kept:]) {
		if pt.ended && !pt.torn {
			break
		}
		p.torn += pt.size
	}
	if p.torn == 0 {
		return
	}
	d := &p.damaged[len(p.damaged)-1]
	d.Bytes -= p.torn
	if d.Bytes == 0 {
		p.damaged = p.damaged[:len(p.damaged)-1]
	}
}

// last is the number of the last record that will be there.
func (p *plan) last() uint64 {
	for _, pt := range slices.Backward(p.parts[:p.kept]) {
		if pt.kind == format.RecordLine {
			return pt.seq
		}
	}
	return p.from.next - 1
}

// setAside appends the damaged bytes to the file beside the journal. If the
// journal is to be rewritten, there is such a file even if it has nothing in it: settle
// needs to know.
func (s *Store) setAside(path string, f File, p *plan) error {
	if p.inPlace && !slices.ContainsFunc(p.parts, func(pt part) bool { return !pt.keep }) {
		return nil
	}
	to, err := disk.OpenBeside(s.fs, path+damagedSuffix, os.O_WRONLY|os.O_APPEND)
	if err != nil {
		return err
	}
	defer to.Close()
	for _, pt := range p.parts {
		if pt.keep {
			continue
		}
		if _, err := io.Copy(to, io.NewSectionReader(f, pt.off, pt.size)); err != nil {
			return err
		}
	}
	return errors.Join(to.Sync(), s.fs.SyncDir(filepath.Dir(path)))
}

// cutEnd removes what is behind the last part that is kept, and ends its line.
func (p *plan) cutEnd(f File) error {
	size, ended := p.from.off, true
	if p.kept > 0 {
		pt := p.parts[p.kept-1]
		size, ended = pt.off+pt.size, pt.ended
	}
	if err := f.Truncate(size); err != nil {
		return err
	}
	if !ended {
		if _, err := f.Write([]byte("\n")); err != nil {
			return err
		}
	}
	return nil // settle makes it durable
}

// rewrite puts a whole file in the place of the damaged one. It
// is locked before anybody else can find it.
func (s *Store) rewrite(h *held, write func(to File) error) error {
	f, err := s.replace(h.path, write)
	if err != nil {
		return fmt.Errorf("repair journal: %w", err)
	}
	h.file.Close()
	h.file = f
	return nil
}

func (s *Store) replace(path string, write func(to File) error) (File, error) {
	temp := path + tempSuffix
	to, err := disk.OpenBeside(s.fs, temp, os.O_RDWR|os.O_APPEND|os.O_TRUNC)
	if err != nil {
		return nil, err
	}
	err = errors.Join(to.Lock(), write(to), to.Sync())
	if err == nil {
		err = s.fs.Rename(temp, path)
	}
	if err != nil {
		to.Close()
		s.fs.Remove(temp)
		return nil, err
	}
	if err := s.fs.SyncDir(filepath.Dir(path)); err != nil {
		to.Close()
		return nil, err
	}
	return to, nil
}

// copyTo writes the parts that are kept, in runs, and records for the lost ones.
func (p *plan) copyTo(to io.Writer, f File, aside string) error {
	var at int64
	for i := 0; i < len(p.parts); i++ {
		if l, ok := p.lost[i]; ok {
			if err := l.writeTo(to, time.UnixMicro(p.parts[i].time).UTC(), aside, p.of); err != nil {
				return err
			}
		}
		if !p.parts[i].keep {
			continue
		}
		first := p.parts[i].off
		for p.parts[i].ended && i+1 < len(p.parts) && p.parts[i+1].keep && p.lost[i+1].n == 0 {
			i++
		}
		at = p.parts[i].off + p.parts[i].size
		if _, err := io.Copy(to, io.NewSectionReader(f, first, at-first)); err != nil {
			return err
		}
		if !p.parts[i].ended {
			if _, err := to.Write([]byte("\n")); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeTo writes records for the lost ones. What they follow does not matter:
// nothing was said about what follows them.
func (l lostRecords) writeTo(to io.Writer, at time.Time, aside string, of uint32) error {
	var b []byte
	var prev uint32
	for n := range l.n {
		b, prev = format.AppendRecord(b, &journal.Pending{Record: format.DamagedRecord(l.first+n, at, l.bytes, aside)}, format.Link{Of: of, Prev: prev})
	}
	_, err := to.Write(b)
	return err
}
