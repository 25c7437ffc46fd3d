package rawjson

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// Marshal returns v as JSON, without the escapes of HTML: raw messages in it keep their bytes, except white space. Text
// that is not valid UTF-8 is a *codec.TextError with its path in v, which begins with what; package json would replace
// it silently. A Marshaler in v has to check its own text.
func Marshal(what string, v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	p := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	if err := CheckText(what, p); err != nil {
		return nil, err // of a raw message
	}
	if bytes.Contains(p, []byte(`\ufffd`)) || bytes.Contains(p, []byte("\ufffd")) { // otherwise nothing was replaced
		if err := checkStrings(what, reflect.ValueOf(v), MaxDepth); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// checkStrings finds text that is not valid UTF-8 in everything that package json writes of v, up to a number of
// levels. It also checks fields that package json leaves out because others have their name.
func checkStrings(what string, v reflect.Value, levels int) error {
	if levels == 0 || !v.IsValid() {
		return nil
	}
	switch k := v.Kind(); {
	case (k == reflect.Pointer || k == reflect.Interface) && v.IsNil():
		return nil
	case k == reflect.Interface:
		return checkStrings(what, v.Elem(), levels-1)
	}
	if own, text := ownText(v); own {
		return CheckText(what, text)
	}
	switch k := v.Kind(); {
	case k == reflect.String:
		return CheckText(what, v.String())
	case k == reflect.Pointer:
		return checkStrings(what, v.Elem(), levels-1)
	case (k == reflect.Slice || k == reflect.Array) && v.Type().Elem().Kind() != reflect.Uint8:
		return checkList(what, v, levels)
	case k == reflect.Map:
		return checkMap(what, v, levels)
	case k == reflect.Struct:
		return checkFields(what, v, levels)
	}
	return nil
}

func checkList(what string, v reflect.Value, levels int) error {
	for i := range v.Len() {
		if err := checkStrings(fmt.Sprintf("%s[%d]", what, i), v.Index(i), levels-1); err != nil {
			return err
		}
	}
	return nil
}

func checkMap(what string, v reflect.Value, levels int) error {
	for m := v.MapRange(); m.Next(); {
		if err := checkStrings("name in "+what, m.Key(), levels-1); err != nil {
			return err
		}
		if err := checkStrings(fmt.Sprintf("%s.%v", what, m.Key()), m.Value(), levels-1); err != nil {
			return err
		}
	}
	return nil
}

func checkFields(what string, v reflect.Value, levels int) error {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Tag.Get("json") == "-", !f.IsExported() && !f.Anonymous:
			continue
		case name == "" && f.Anonymous:
			name = what
		case name == "":
			name = what + "." + f.Name
		default:
			name = what + "." + name
		}
		if err := checkStrings(name, v.Field(i), levels-1); err != nil {
			return err
		}
	}
	return nil
}

var jsonMarshaler = reflect.TypeFor[json.Marshaler]()

// ownText reports whether package json calls a method of the value to encode it. text is the result, if that is not
// JSON.
func ownText(v reflect.Value) (own bool, text []byte) {
	if v.CanAddr() && v.Kind() != reflect.Pointer && v.Type().Name() != "" {
		v = v.Addr()
	}
	switch {
	case !v.CanInterface():
		return false, nil // an embedded struct that is not exported
	case v.Type().Implements(jsonMarshaler):
		return true, nil
	}
	m, ok := reflect.TypeAssert[encoding.TextMarshaler](v)
	if !ok {
		return false, nil
	}
	text, err := m.MarshalText()
	if err != nil {
		return true, nil // package json has called it without an error
	}
	return true, text
}
