package journal

import (
	"context"
	"time"
)

// PollEvery is how often whoever cannot be notified looks for something new.
const PollEvery = 200 * time.Millisecond

// Poll returns a follower for a reader that cannot say when there is something
// new: it looks again and again.
func Poll(r Reader, after uint64) Follower {
	return &poller{reader: r, after: after, given: make(map[string]int64)}
}

type poller struct {
	reader Reader
	after  uint64
	given  map[string]int64 // how much of each open item was returned
}

// Next implements Follower.
func (p *poller) Next(ctx context.Context) ([]Record, []Chunk, error) {
	for {
		recs, err := p.reader.Read(ctx, p.after, readBatch)
		if err != nil {
			return nil, nil, err
		}
		if len(recs) > 0 {
			p.after = recs[len(recs)-1].Seq
			return recs, nil, nil
		}
		chunks, err := p.chunks(ctx)
		if err != nil || len(chunks) > 0 {
			return nil, chunks, err
		}

		select {
		case <-time.After(PollEvery):
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		}
	}
}

// chunks returns what is new of open items.
func (p *poller) chunks(ctx context.Context) ([]Chunk, error) {
	open, err := p.reader.OpenItems(ctx)
	if err != nil {
		return nil, err
	}
	given := make(map[string]int64, len(open))
	var fresh []Chunk
	for _, c := range open {
		end := c.Offset + int64(len(c.Text))
		from := max(p.given[c.Item], given[c.Item])
		given[c.Item] = max(from, end)
		if end <= from {
			continue
		}
		if skip := from - c.Offset; skip > 0 {
			c.Offset, c.Text = from, c.Text[skip:]
		}
		fresh = append(fresh, c)
	}
	p.given = given // items that are closed are forgotten
	return fresh, nil
}
