package config

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fermata-agent/fermata/internal/secrets"
)

// A kind is what sort of value a key takes.
type kind int

const (
	textKind   kind = iota // string
	boolKind               // bool
	wholeKind              // int64
	listKind               // []string
	enumKind               // string, one of those allowed
	pathKind               // string, made absolute
	pathsKind              // []string, made absolute
	urlKind                // string
	secretKind             // Secret
)

// A key is one thing that can be configured.
type key struct {
	path       []string // "*" stands for any name
	kind       kind
	allowed    []string // enumKind
	min, max   int64    // wholeKind
	cap        int64    // wholeKind: more is taken as this
	def        any      // nil: none
	global     bool     // has no effect in a profile
	secretFile bool     // pathKind: the file holds a secret
	lists      bool     // boolKind: a list is true if it names anything

	// warning says why a value has no effect; a value among fine needs no warning.
	warning string
	fine    []any
	order   int // in the table

	// put stores a value that has been converted. The names are those that the
	// stars stand for.
	put func(c *Config, names []string, v any)

	// alias translates to another key, which wins in the same place.
	alias func(v any) (path []string, value any)
}

func (k key) or(def any) key                { k.def = def; return k }
func (k key) onlyGlobal() key               { k.global = true; return k }
func (k key) within(least, most int64) key  { k.min, k.max = least, most; return k }
func (k key) cappedAt(most int64) key       { k.cap = most; return k }
func (k key) as(kind kind) key              { k.kind = kind; return k }
func (k key) oneOf(allowed ...string) key   { k.kind, k.allowed = enumKind, allowed; return k }
func newKey(path string, kind kind) key     { return key{path: strings.Split(path, "."), kind: kind} }
func (k key) name() string                  { return strings.Join(k.path, ".") }
func (k key) last() string                  { return k.path[len(k.path)-1] }
func (k key) orList() key                   { k.lists = true; return k }
func of[T any](f func(*Config) *T) place[T] { return func(c *Config, _ []string) *T { return f(c) } }

// without marks a key that is accepted, because people have it in their files, and has no
// effect here unless its value is among those that are fine.
func (k key) without(warning string, fine ...any) key {
	k.warning, k.fine = warning, fine
	return k
}

// warns reports whether a value is one without effect.
func (k *key) warns(v any) bool {
	return k.warning != "" && !slices.ContainsFunc(k.fine, func(f any) bool { return f == v })
}

// A place is where a value is stored.
type place[T any] func(c *Config, names []string) *T

func inProvider[T any](f func(*Provider) *T) place[T] {
	return func(c *Config, names []string) *T { return f(c.provider(names[0])) }
}

func text[T ~string](path string, at place[T]) key {
	k := newKey(path, textKind)
	k.put = func(c *Config, names []string, v any) { *at(c, names) = T(v.(string)) }
	return k
}

func secret(path string, at place[Secret]) key {
	k := newKey(path, secretKind)
	k.put = func(c *Config, names []string, v any) { *at(c, names) = v.(Secret) }
	return k
}

// secretFile is a key that names a file with a secret. Commands cannot read it.
func secretFile(path string, at place[secrets.File]) key {
	k := newKey(path, pathKind)
	k.secretFile = true
	k.put = func(c *Config, names []string, v any) { *at(c, names) = secrets.NewFile(v.(string)) }
	return k
}

func yesNo(path string, at place[bool]) key {
	k := newKey(path, boolKind)
	k.put = func(c *Config, names []string, v any) { *at(c, names) = v.(bool) }
	return k
}

const unlimited = 1<<63 - 1

func whole[T ~int | ~int64](path string, at place[T]) key {
	k := newKey(path, wholeKind).within(0, unlimited)
	k.put = func(c *Config, names []string, v any) { *at(c, names) = T(v.(int64)) }
	return k
}

// maxMillis is a day: nothing here waits longer, and no product overflows.
const maxMillis = 24 * 60 * 60 * 1000

func millis(path string, at place[time.Duration]) key {
	k := newKey(path, wholeKind).within(1, maxMillis)
	k.put = func(c *Config, names []string, v any) { *at(c, names) = time.Duration(v.(int64)) * time.Millisecond }
	return k
}

func list(path string, at place[[]string]) key {
	k := newKey(path, listKind)
	k.put = func(c *Config, names []string, v any) { *at(c, names) = v.([]string) }
	return k
}

// entry is a key whose last part is any name: an entry of a map.
func entry[T any](path string, kind kind, at place[map[string]T]) key {
	k := newKey(path, kind)
	k.put = func(c *Config, names []string, v any) {
		m := at(c, names)
		if *m == nil {
			*m = map[string]T{}
		}
		(*m)[names[len(names)-1]] = v.(T)
	}
	return k
}

// A branch is a table of keys, or a key.
type branch struct {
	key   *key // nil for a table
	child map[string]*branch
	any   *branch
	names []string // of child, as the table of keys has them
}

func (b *branch) down(name string) *branch {
	if c, ok := b.child[name]; ok {
		return c
	}
	return b.any
}

// find returns the key of a path that is known to be one.
func (b *branch) find(path []string) *key {
	for _, name := range path {
		b = b.down(name)
	}
	return b.key
}

// schema is made when it is first needed: not every command reads the
// configuration.
var schema = sync.OnceValue(newSchema)

func newSchema() *branch {
	root := &branch{}
	keys := slices.Concat(modelKeys(), commandKeys(), serverKeys(), storeKeys(), otherKeys())
	for i := range keys {
		keys[i].order = i
		root.add(&keys[i])
	}
	return root
}

// add puts a key into the tree. A key under a name that already is a key (the
// switch tools.web_search, say) would be a mistake in the table.
func (b *branch) add(k *key) {
	for _, name := range k.path {
		next := b.any
		if name != "*" {
			next = b.child[name]
		}
		if next == nil {
			next = &branch{}
			b.attach(name, next)
		}
		b = next
	}
	b.key = k
}

func (b *branch) attach(name string, c *branch) {
	if name == "*" {
		b.any = c
		return
	}
	if b.child == nil {
		b.child = map[string]*branch{}
	}
	b.child[name] = c
	b.names = append(b.names, name)
}

// each calls f for every key, in the order of the table within each branch.
func (b *branch) each(f func(*key)) {
	if b.key != nil {
		f(b.key)
	}
	for _, name := range b.names {
		b.child[name].each(f)
	}
	if b.any != nil {
		b.any.each(f)
	}
}
