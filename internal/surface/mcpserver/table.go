package mcpserver

import "sync"

// A table is a map that any goroutine may use. The zero value is empty.
type table[K comparable, V any] struct {
	mu sync.Mutex
	m  map[K]V // guarded by mu
}

// get returns a value, and whether there is one.
func (t *table[K, V]) get(key K) (V, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	v, ok := t.m[key]
	return v, ok
}

func (t *table[K, V]) put(key K, v V) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.m == nil {
		t.m = map[K]V{}
	}
	t.m[key] = v
}

// add puts a value where there is none, returns the one that is there then, and reports whether it
// was there before.
func (t *table[K, V]) add(key K, v V) (V, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if old, ok := t.m[key]; ok {
		return old, true
	}
	if t.m == nil {
		t.m = map[K]V{}
	}
	t.m[key] = v
	return v, false
}

// addUpTo adds a key with the zero value, unless it is there or there are n already. It reports whether it did.
func (t *table[K, V]) addUpTo(n int, key K) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.m[key]; ok || len(t.m) >= n {
		return false
	}
	if t.m == nil {
		t.m = map[K]V{}
	}
	var zero V
	t.m[key] = zero
	return true
}

// remove takes a value out, and returns it, and whether there was one.
func (t *table[K, V]) remove(key K) (V, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	v, ok := t.m[key]
	delete(t.m, key)
	return v, ok
}
