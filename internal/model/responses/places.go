package responses

import "github.com/fermata-agent/fermata/internal/model/wire"

// places finds the item that an event is about. Services number items, or give all the number 0, or none; they name
// them in every event, in some, or in none. A name counts first, then the number, then the kind.
type places struct {
	byID  map[string]int
	byPos map[int64]int  // output_index to item
	open  map[string]int // kind to item, for services that send no output_index
	kinds []string       // of each item
	ids   []string       // of each item; "" if it is not known
}

func newPlaces() places {
	return places{byID: map[string]int{}, byPos: map[int64]int{}, open: map[string]int{}}
}

// find returns the number of an item, which is a new one if the event is the first about it. closed says which are finished.
func (p *places) find(e event, kind string, closed []bool) int {
	if i, ok := p.byID[e.id]; ok && e.id != "" {
		return i
	}
	i, ok := p.open[kind]
	if e.output >= 0 {
		i, ok = p.byPos[e.output]
	}
	// Another name begins another item, if the event says that one begins or the one in this place is finished. Else it is
	// the same: there are services that rename items.
	renamed := e.id != "" && ok && p.ids[i] != ""
	if !ok || p.kinds[i] != kind || renamed && (e.kind == "response.output_item.added" || closed[i]) {
		i = len(p.kinds)
		p.kinds, p.ids = append(p.kinds, kind), append(p.ids, "")
	}
	if e.id != "" {
		p.ids[i], p.byID[e.id] = e.id, i
	}
	if e.output >= 0 {
		p.byPos[e.output] = i
	} else {
		p.open[kind] = i
	}
	return i
}

// named is an event about a whole item, with the name that the item has.
func named(e event) event {
	if e.id != "" {
		return e
	}
	m := wire.Scan(e.item)
	for m.Next() {
		if k := string(m.Key); k == "id" || k == "call_id" && e.id == "" {
			if id, ok := wire.String(m.Value); ok && id != "" {
				e.id = id
			}
		}
	}
	return e
}
