package codec

import (
	"bytes"
	"fmt"
	"reflect"
	"sync"

	"github.com/vmihailenco/msgpack/v5"
)

// Marshal returns v as msgpack: integers in their shortest form, struct fields in the order of their declaration, map
// keys sorted. Equal values produce equal bytes; a map whose order would be random (any but map[string]string,
// map[string]bool and map[string]any) is refused with ErrFormat: use a sorted slice. A value that Unmarshal would
// refuse is refused too, with the same error: for example a time.Time (an ext type; store its Unix milliseconds).
func Marshal(v any) ([]byte, error) {
	if err := checkOrder(reflect.ValueOf(v), 0); err != nil {
		return nil, fmt.Errorf("msgpack: encode %T: %w", v, err)
	}
	var buf bytes.Buffer
	e := msgpack.GetEncoder()
	e.Reset(&buf)
	e.SetSortMapKeys(true)
	e.UseCompactInts(true)
	err := e.Encode(v)
	msgpack.PutEncoder(e)
	if err != nil {
		return nil, fmt.Errorf("msgpack: encode %T: %w: %w", v, err, ErrFormat)
	}
	if err := scan(buf.Bytes()); err != nil {
		return nil, fmt.Errorf("msgpack: encode %T: %w", v, err)
	}
	return buf.Bytes(), nil
}

// Unmarshal decodes p, which has to be one msgpack value, into v, a pointer. Fields that v does not have are skipped.
// Before anything is allocated the structure is scanned: nesting of at most 64, lengths of at most the remaining bytes,
// at most 1,048,576 elements in the whole value, no ext types, no bytes after the value. So it allocates at most twice
// the size of one element of v's slices for each of those elements, in addition to the bytes of p. It never panics;
// after an error v may be partly filled.
func Unmarshal(p []byte, v any) (err error) {
	if err := scan(p); err != nil {
		return fmt.Errorf("msgpack: decode %T: %w", v, err)
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("msgpack: decode %T: %v: %w", v, r, ErrFormat)
		}
	}()
	d := msgpack.GetDecoder()
	d.Reset(bytes.NewReader(p))
	err = d.Decode(v)
	msgpack.PutDecoder(d)
	if err != nil {
		return fmt.Errorf("msgpack: decode %T: %w: %w", v, err, ErrFormat)
	}
	return nil
}

// Whether the encoding of a type is deterministic, by the type alone.
type order uint8

const (
	orderFixed   order = iota // always the same bytes
	orderDynamic              // contains interface values: the values have to be checked
	orderRandom               // contains a map that is written in random order
)

// typeOrders caches orderOf by type. A program has a bounded number of types that it stores.
var typeOrders sync.Map // reflect.Type -> order

var customEncoder = reflect.TypeFor[msgpack.CustomEncoder]()

// orderOf returns the order of t. seen breaks recursive types.
func orderOf(t reflect.Type, seen map[reflect.Type]bool) order {
	if o, ok := typeOrders.Load(t); ok {
		return o.(order)
	}
	if seen[t] || t.Implements(customEncoder) || reflect.PointerTo(t).Implements(customEncoder) {
		return orderFixed
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Interface:
		return orderDynamic
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return orderOf(t.Elem(), seen)
	case reflect.Map:
		if t.Key() == reflect.TypeFor[string]() {
			switch t.Elem() {
			case reflect.TypeFor[string](), reflect.TypeFor[bool]():
				return orderFixed
			case reflect.TypeFor[any]():
				return orderDynamic
			}
		}
		return orderRandom
	case reflect.Struct:
		worst := orderFixed
		for f := range t.Fields() {
			if f.IsExported() || f.Anonymous {
				worst = max(worst, orderOf(f.Type, seen))
			}
		}
		return worst
	default:
		return orderFixed
	}
}

// checkOrder refuses values without a fixed order, checking values only if types are not enough.
func checkOrder(v reflect.Value, depth int) error {
	if !v.IsValid() {
		return nil
	}
	o := orderOf(v.Type(), map[reflect.Type]bool{})
	typeOrders.LoadOrStore(v.Type(), o)
	switch {
	case o == orderFixed:
		return nil
	case o == orderRandom:
		return fmt.Errorf("%s has no fixed order: %w", v.Type(), ErrFormat)
	case depth > 2*maxDepth:
		return fmt.Errorf("nested over %d deep: %w", maxDepth, ErrLimit)
	}
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		return checkOrder(v.Elem(), depth+1)
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if err := checkOrder(v.Index(i), depth+1); err != nil {
				return err
			}
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			if err := checkOrder(it.Value(), depth+1); err != nil {
				return err
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); !f.IsExported() && !f.Anonymous {
				continue
			}
			if err := checkOrder(v.Field(i), depth+1); err != nil {
				return err
			}
		}
	default:
	}
	return nil
}
