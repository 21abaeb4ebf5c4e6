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
)

// A part is a span of a file that is to be repaired.
type part struct {
	off, size int64
	kind      lineKind
	ended     bool
	keep      bool
	seq       uint64
	time      int64 // Unix microseconds
}

// A plan says what a repair will do.
type plan struct {
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
func (s *Store) repair(path string, f File, ck *checkpoint, rec *journal.Recovery) error {
	p, err := makePlan(f, ck.scan())
	if err != nil {
		return err
	}
	if !p.inPlace && ck.scan().off > 0 || p.last() < ck.Seq {
		*ck = checkpoint{}
		return nil
	}
	if err := s.setAside(path, f, p); err != nil {
		return fmt.Errorf("set damage aside: %w", err)
	}
	for i := range p.damaged {
		p.damaged[i].File = path + damagedSuffix
	}
	rec.Damaged = append(rec.Damaged, p.damaged...)
	rec.Torn += p.torn
	if p.inPlace {
		return p.cutEnd(f)
	}
	if err := s.rewrite(path, f, p); err != nil {
		return fmt.Errorf("repair journal: %w", err)
	}
	return nil
}

func makePlan(f File, from position) (*plan, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	p := &plan{from: from, lost: make(map[int]lostRecords)}
	sc := newScanner(f, from.off, st.Size())
	for {
		sp, err := sc.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read journal: %w", err)
		}
		pt := part{off: sp.off, size: sp.size, kind: sp.kind, ended: sp.ended, seq: sp.seq}
		if sp.kind == recordLine {
			pt.time = sp.decode().Time.UnixMicro()
		}
		pt.keep = sp.kind == progressLine
		p.parts = append(p.parts, pt)
	}
	p.chooseRecords(st.Size())
	p.assess()
	return p, nil
}

// implausible bounds the numbers that a file of that size can hold, so that one
// wrong number does not cause a million records. Some room is left for lines
// that somebody took out by hand.
func implausible(seq uint64, size int64) bool { return seq > uint64(size)/lineBytes+1<<14 }

// chooseRecords keeps the largest set of records whose numbers increase. What
// does not fit in is a repetition, or a line with a wrong number.
func (p *plan) chooseRecords(size int64) {
	var tails []int // index of the part with the smallest number that ends a run of length i+1
	before := make([]int, len(p.parts))
	for i, pt := range p.parts {
		if pt.kind != recordLine || pt.seq < p.from.next || implausible(pt.seq-p.from.next, size) {
			continue
		}
		k := sort.Search(len(tails), func(k int) bool { return p.parts[tails[k]].seq >= pt.seq })
		if k < len(tails) && p.parts[tails[k]].seq == pt.seq {
			continue // the first of two equals
		}
		before[i] = -1
		if k > 0 {
			before[i] = tails[k-1]
		}
		if k == len(tails) {
			tails = append(tails, i)
		}
		tails[k] = i
	}
	if len(tails) == 0 {
		return
	}
	for i := tails[len(tails)-1]; i >= 0; i = before[i] {
		p.parts[i].keep = true
	}
}

// assess finds out what is lost and how to go about it.
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
		if pt.kind == recordLine {
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

// tear takes the unfinished last line out of the damage.
func (p *plan) tear() {
	for _, pt := range slices.Backward(p.parts[p.kept:]) {
		if pt.ended {
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
		if pt.kind == recordLine {
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
	to, err := s.fs.OpenFile(path+damagedSuffix, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
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

// rewrite puts a whole file in the place of the damaged one.
func (s *Store) rewrite(path string, f File, p *plan) (err error) {
	temp := path + tempSuffix
	to, err := s.fs.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	err = p.copyTo(to, f, filepath.Base(path+damagedSuffix))
	err = errors.Join(err, to.Sync(), to.Close())
	if err == nil {
		err = s.fs.Rename(temp, path)
	}
	if err != nil {
		s.fs.Remove(temp)
		return err
	}
	return s.fs.SyncDir(filepath.Dir(path))
}

// copyTo writes the parts that are kept, in runs, and records for the lost ones.
func (p *plan) copyTo(to io.Writer, f File, aside string) error {
	var at int64
	for i := 0; i < len(p.parts); i++ {
		if l, ok := p.lost[i]; ok {
			if err := l.writeTo(to, time.UnixMicro(p.parts[i].time).UTC(), aside); err != nil {
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

func (l lostRecords) writeTo(to io.Writer, at time.Time, aside string) error {
	var b []byte
	for n := range l.n {
		b = appendRecord(b, &journal.Pending{Record: damagedRecord(l.first+n, at, l.bytes, aside)})
	}
	_, err := to.Write(b)
	return err
}
