package wire

import (
	"net/http"
	"regexp"
	"strings"
	"sync"
)

// An Optional is a member of a request that it can do without, or a form that it can have in another way. Services that do not
// take it may refuse the whole request.
type Optional struct {
	Name  string
	Words []string // what a refusal calls it, if not by its name
}

// Optionals remembers which members a service refuses. The zero value is ready; it
// may be used from any goroutine.
type Optionals struct {
	mu      sync.Mutex
	refused map[string]bool // guarded by mu
}

// Refused reports whether the service refuses the member.
func (o *Optionals) Refused(name string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.refused[name]
}

// Remember notes that the service refuses the member.
func (o *Optionals) Remember(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.refused == nil {
		o.refused = map[string]bool{}
	}
	o.refused[name] = true
}

// unwantedForms fit refusals that are about the form of a request.
var unwantedForms = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)unsupported|unrecogni[sz]ed|unknown|unexpected|not (?:supported|permitted|allowed|available)|n't support|does not support|extra (?:inputs|fields)|extra_forbidden|` +
		`invalid|additional propert|expected|must |should be|required|null|validation error|cannot|only support|missing`)
})

// unwantedMember is the optional member that a refusal is about, or nothing.
func unwantedMember(c Complaint, optional []Optional) string {
	switch c.Status {
	case 0, http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusNotFound, http.StatusInternalServerError:
	default:
		return ""
	}
	text := strings.ToLower(c.allText())
	if !unwantedForms().MatchString(text) {
		return ""
	}
	member, longest := "", 0
	for _, o := range optional {
		for _, word := range append([]string{o.Name}, o.Words...) {
			word = strings.ToLower(word)
			named := strings.Contains(text, word) || c.Param != "" && strings.HasPrefix(strings.ToLower(c.Param), word)
			if named && len(word) > longest { // "reasoning_effort" is not "reasoning"
				member, longest = o.Name, len(word)
			}
		}
	}
	return member
}
