package secrets

import (
	"hash/maphash"
	"strconv"
	"strings"

	"github.com/coppice-go/coppice/internal/rawjson"
)

const (
	maxNested  = 4       // levels of JSON in strings of JSON
	maxContext = 2 << 10 // bytes of a text that is also looked at together with the name of its member
)

// Place is a credential in JSON.
type Place struct {
	Rule    string // id of the rule
	Path    string // JSON pointer to the text, also into JSON within a string; of the name of a member, to its object
	Preview string // the first characters of the credential, at most four and a quarter of it, and its length in bytes
	Hash    uint64 // of the credential: equal for equal ones in one process, and different in another
}

// FindJSON returns the credentials in the texts of a JSON value, in their order: in strings as they are decoded, in
// names of members, and in strings that are JSON themselves. A text is also looked at with the name of its member,
// such as "password". What is not JSON is a text.
func FindJSON(raw []byte) []Place {
	_, found := RedactJSON(raw)
	return found
}

// walk is one pass over a JSON value.
type walk struct {
	raw    []byte
	out    []byte // raw as it becomes, up to at; nil = nothing was replaced
	at     int
	path   []byte
	depth  int // number of strings around it
	places []Place
}

// RedactJSON replaces credentials in the texts of a JSON value by their Stub, and returns what it replaced. All other
// bytes stay. Without credentials the result is raw itself.
func RedactJSON(raw []byte) ([]byte, []Place) {
	w := walk{raw: raw}
	if w.run() {
		return w.result(), w.places
	}
	text, changed := w.redacted(string(raw), "")
	if !changed {
		return raw, nil
	}
	return []byte(text), w.places
}

// run looks at the whole value. It reports false, and does nothing, if it is no JSON.
func (w *walk) run() bool {
	end, _, err := rawjson.Scan(w.raw, 0, rawjson.MaxDepth)
	if err != nil || rawjson.Space(w.raw, end) != len(w.raw) {
		return false
	}
	w.value(rawjson.Space(w.raw, 0), "")
	return true
}

func (w *walk) result() []byte {
	if w.out == nil {
		return w.raw
	}
	return append(w.out, w.raw[w.at:]...)
}

// value looks at the value at a place, and returns its end. name is that of its member. Scan bounds the depth.
func (w *walk) value(i int, name string) int {
	switch w.raw[i] {
	case '{':
		return w.object(i)
	case '[':
		return w.array(i, name)
	case '"':
		return w.str(i, name)
	}
	end, err := rawjson.SkipEnd(w.raw, i)
	if err != nil {
		return len(w.raw)
	}
	return end
}

func (w *walk) object(i int) int {
	for i = rawjson.Space(w.raw, i+1); i < len(w.raw) && w.raw[i] != '}'; i = rawjson.Space(w.raw, i) {
		if w.raw[i] == ',' {
			i = rawjson.Space(w.raw, i+1)
		}
		end := w.str(i, "")
		name := rawjson.Text(w.raw[i:end])
		i = rawjson.Space(w.raw, rawjson.Space(w.raw, end)+1) // after the colon
		was := len(w.path)
		w.path = append(append(w.path, '/'), pointer.Replace(name)...)
		i = w.value(i, name)
		w.path = w.path[:was]
	}
	return i + 1
}

func (w *walk) array(i int, name string) int {
	n := int64(0)
	for i = rawjson.Space(w.raw, i+1); i < len(w.raw) && w.raw[i] != ']'; i = rawjson.Space(w.raw, i) {
		if w.raw[i] == ',' {
			i = rawjson.Space(w.raw, i+1)
		}
		was := len(w.path)
		w.path = strconv.AppendInt(append(w.path, '/'), n, 10)
		i = w.value(i, name)
		w.path = w.path[:was]
		n++
	}
	return i + 1
}

// str looks at the string at a place, and returns its end.
func (w *walk) str(i int, name string) int {
	end, escaped, err := rawjson.StringEnd(w.raw, i)
	if err != nil {
		return len(w.raw)
	}
	text := string(w.raw[i+1 : end-1])
	if escaped {
		text = rawjson.Text(w.raw[i:end])
	}
	if text, changed := w.redacted(text, name); changed {
		w.out = append(w.out, w.raw[w.at:i]...)
		w.out = rawjson.AppendString(w.out, text)
		w.at = end
	}
	return end
}

// redacted replaces the credentials in a text, and reports whether there were any.
func (w *walk) redacted(text, name string) (string, bool) {
	before := len(w.places)
	if w.depth < maxNested && len(text) > 1 && (text[0] == '{' || text[0] == '[') {
		in := walk{raw: []byte(text), path: w.path, depth: w.depth + 1, places: w.places}
		if in.run() && len(in.places) > before {
			text, w.places = string(in.result()), in.places
		}
	}
	text = w.replace(text, Find(text))
	if len(w.places) == before && name != "" && len(text) <= maxContext && engine().words.in(name) {
		text = w.replace(text, findNamed(text, name))
	}
	return text, len(w.places) > before
}

// findNamed returns the credentials in a text that its name shows.
func findNamed(text, name string) (own []Finding) {
	before := name + `": "`
	for _, f := range Find(before + text + `"`) {
		f.Start, f.End = f.Start-len(before), f.End-len(before)
		if f.Start >= 0 && f.End <= len(text) {
			own = append(own, f)
		}
	}
	return own
}

// replace replaces findings in a text, and adds their places.
func (w *walk) replace(text string, found []Finding) string {
	for _, f := range found {
		secret := text[f.Start:f.End]
		w.places = append(w.places, Place{f.Rule, string(w.path), preview(secret), maphash.String(seed, secret)})
	}
	return replace(text, found)
}

// seed makes hashes of credentials worthless outside of the process.
var seed = maphash.MakeSeed()

var pointer = strings.NewReplacer("~", "~0", "/", "~1")
