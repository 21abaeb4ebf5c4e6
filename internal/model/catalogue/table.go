package catalogue

import (
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
)

// The columns of the table.
const (
	colProvider = iota
	colID
	colContext
	colInputLimit
	colOutputLimit
	colReasoning
	colEfforts
	colVision
	colPriceIn
	colPriceOut
	colPriceCacheRead
	colPriceCacheWrite
	colReleased
	columns
)

const header = "provider\tid\tcontext\tinput_limit\toutput_limit\treasoning\tefforts\tvision\tprice_in\tprice_out\tprice_cache_read\tprice_cache_write\treleased"

// rows gives the lines of a table that are neither comments nor its header.
func rows(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for line := range strings.Lines(text) {
			line = strings.TrimRight(line, "\r\n")
			if line == "" || line[0] == '#' || strings.HasPrefix(line, "provider\t") {
				continue
			}
			if !yield(line) {
				return
			}
		}
	}
}

// Check reports what is wrong with the text of a table of models.
func Check(text string) error {
	if !strings.Contains(text, header) {
		return errors.New("this is not a table of models: the line with the names of the columns is missing")
	}
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimRight(line, "\r\n")
		if line == "" || line[0] == '#' || line == header {
			continue
		}
		if _, err := parse(line); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	return nil
}

func parse(line string) (Model, error) {
	f := strings.Split(line, "\t")
	if len(f) != columns {
		return Model{}, fmt.Errorf("%d columns, want %d", len(f), columns)
	}
	if f[colProvider] == "" || f[colID] == "" {
		return Model{}, errors.New("provider or id is missing")
	}
	m := Model{Provider: f[colProvider], ID: f[colID], Reasoning: f[colReasoning] == "y", Vision: f[colVision] == "y", Released: f[colReleased]}
	if f[colEfforts] != "" {
		m.Efforts = strings.Split(f[colEfforts], "/")
	}
	for _, c := range []struct {
		column int
		to     *int64
	}{{colContext, &m.Context}, {colInputLimit, &m.InputLimit}, {colOutputLimit, &m.OutputLimit}} {
		if f[c.column] == "" {
			continue
		}
		n, err := strconv.ParseInt(f[c.column], 10, 64)
		if err != nil || n < 0 {
			return Model{}, fmt.Errorf("%q is not a number of tokens", f[c.column])
		}
		*c.to = n
	}
	var err error
	m.Price, err = parsePrice(f)
	return m, err
}

// parsePrice reads the four prices. What is read from a cache, or written to it,
// costs as much as other input unless the table says otherwise.
func parsePrice(f []string) (Price, error) {
	p := Price{Known: f[colPriceIn] != "" && f[colPriceOut] != ""}
	for _, c := range []struct {
		column int
		to     *float64
	}{{colPriceIn, &p.Input}, {colPriceOut, &p.Output}, {colPriceCacheRead, &p.CacheRead}, {colPriceCacheWrite, &p.CacheWrite}} {
		if f[c.column] == "" {
			*c.to = p.Input
			continue
		}
		v, err := strconv.ParseFloat(f[c.column], 64)
		if err != nil || !(v >= 0 && v < 1e6) {
			return Price{}, fmt.Errorf("%q is not a price", f[c.column])
		}
		*c.to = v
	}
	if !p.Known {
		return Price{}, nil
	}
	return p, nil
}
