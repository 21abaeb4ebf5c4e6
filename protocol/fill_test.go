package protocol

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"
)

// A filler gives every field of a value something that is not its zero value,
// and never the same twice, so that a field that is lost or mixed up shows.
type filler struct{ n int }

var rawMessage = reflect.TypeFor[json.RawMessage]()

func (f *filler) fill(t testing.TB, v reflect.Value) {
	t.Helper()
	f.n++
	if v.Type() == rawMessage {
		v.SetBytes(fmt.Appendf(nil, `{"k":%d}`, f.n))
		return
	}
	if v.Type() == reflect.TypeFor[time.Time]() {
		v.Set(reflect.ValueOf(someTime))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("s%d", f.n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(f.n))
	case reflect.Uint64:
		v.SetUint(uint64(f.n))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(t, v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		f.fill(t, v.Index(0))
		f.fill(t, v.Index(1))
	case reflect.Array:
		for i := range v.Len() {
			f.fill(t, v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f.fill(t, v.Field(i))
		}
	default:
		t.Fatalf("fill cannot make a %s", v.Type())
	}
}

// filled returns a new value of the type that example has, with every field set.
func filled[T any](t testing.TB, example T) T {
	t.Helper()
	typ := reflect.TypeOf(example)
	f := &filler{}
	if typ.Kind() == reflect.Pointer {
		v := reflect.New(typ.Elem())
		f.fill(t, v.Elem())
		return v.Interface().(T)
	}
	v := reflect.New(typ).Elem()
	f.fill(t, v)
	return v.Interface().(T)
}
