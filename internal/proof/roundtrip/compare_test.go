package roundtrip

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/coppice-go/coppice/internal/message"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/transcript"
)

// The aspects in which a message may differ: the fields of a unit, and whether it has a counterpart.
const (
	role = iota
	text
	calls  // names and arguments
	answer // of a result: the call, and whether it failed
	images // their types
	gone
	added
	aspects
)

var aspectNames = [aspects]string{"role", "text", "calls", "answer", "images", "gone", "added"}

// unit is one message as the model sees it, or one result of a tool.
type unit [gone]string

// messages returns the messages of a context. Each result is a separate one: programs differ in how many they put into
// a message. The results of a call directly follow it, as APIs require. Thinking is not compared: a provider reads only
// its own.
func messages(c transcript.Context) (list []unit) {
	asked := map[string]string{} // the calls by their ids
	for _, of := range c.Messages {
		m := message.Decode(of.Raw)
		own := unit{role: "user"} // messages of programs and summaries are sent with this role, too
		if m.Speaker == message.Assistant || m.Speaker == message.System {
			own[role] = fmt.Sprint(m.Speaker)
		}
		empty := own
		for _, b := range m.Blocks {
			switch b.Kind {
			case message.Result:
				failed := b.Failed || m.Speaker == message.Tool && m.Failed
				result := unit{role: "tool", answer: fmt.Sprint(failed, asked[rawjson.Text(b.ID)])}
				for in := b.Content(); in.Next(); {
					result.add(in.Block)
				}
				result.join()
				at := len(list)
				for asked[rawjson.Text(b.ID)] != "" && at > 0 && list[at-1][role] == "user" {
					at--
				}
				list = slices.Insert(list, at, result)
			case message.Call:
				call := rawjson.Text(b.Name) + sorted(message.Arguments(b.Body)) + "\n"
				asked[rawjson.Text(b.ID)] = call
				own[calls] += call
			case message.Thinking:
			default:
				own.add(b)
			}
		}
		if own.join(); own != empty {
			list = append(list, own)
		}
	}
	return list
}

func (u *unit) add(b message.Block) {
	if b.Kind == message.Attached {
		u[images] += b.Media().Mime + "\n"
	} else {
		u[text] += rawjson.Text(b.Text) + "\n"
	}
}

var blankLines = regexp.MustCompile(`\n+`)

// join removes the empty lines that blocks without text leave in some formats.
func (u *unit) join() { u[text] = strings.TrimSpace(blankLines.ReplaceAllString(u[text], "\n")) }

// sorted returns JSON with sorted object keys, and unchanged numbers.
func sorted(val []byte) string {
	var v any
	d := json.NewDecoder(bytes.NewReader(val))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return string(val)
	}
	return fmt.Sprint(v)
}

// compare counts the differences between two contexts. After messages that differ it continues at the nearest two that
// are equal; the messages between are compared in order.
func compare(was, is []unit) (n [aspects]int) {
	for len(was)+len(is) > 0 {
		i, j := nearest(was, is)
		for k := range min(i, j) {
			for a := range gone {
				if was[k][a] != is[k][a] {
					n[a]++
				}
			}
		}
		n[gone] += max(i-j, 0)
		n[added] += max(j-i, 0)
		was, is = was[min(i+1, len(was)):], is[min(j+1, len(is)):]
	}
	return n
}

// nearest returns the indexes of the first two messages that are equal; the lengths if none are.
func nearest(was, is []unit) (i, j int) {
	for sum := range len(was) + len(is) {
		for i := max(0, sum-len(is)+1); i <= min(sum, len(was)-1); i++ {
			if was[i] == is[sum-i] {
				return i, sum - i
			}
		}
	}
	return len(was), len(is)
}

// explained maps prefixes of kinds of losses to the aspects in which each changes one message. Those of many change any
// number.
var explained = []struct {
	kind    string
	aspects []int
	many    bool
}{
	{"failures of tools", []int{answer}, false},
	{"commands of the user", []int{text}, false},
	{"messages of role", []int{role, text}, false},
	{"messages of programs", []int{role}, false},
	{"blocks that the format has no form for", []int{text}, false},
	{"images that the program's API does not take", []int{text, images}, false},
	{"documents", []int{text, images}, false},
	{"images in results of tools", []int{text, images}, false},
	{"results whose call is not there", []int{role, text, answer, gone, added}, false},
	{"calls that nobody answered", []int{text, answer, added}, false},
	{"entries whose parent is not before them", []int{text, gone}, true},
	{"answers that failed or were aborted before a tool ran", []int{text, gone}, false},
	{"answers that failed after some words", []int{text, gone}, false},
	{"answers that failed, with the results of their calls", []int{text, calls, gone, added}, false},
}

// applies reports whether the two programs apply different compactions.
func applies(losses interop.Losses) bool {
	for kind := range losses {
		if strings.HasPrefix(kind, "compactions that atomic does not apply") {
			return true
		}
	}
	return false
}

// unexplained describes the differences that the listed losses do not explain.
func unexplained(n [aspects]int, losses interop.Losses) string {
	var out []string
	for a := range aspects {
		most := 0
		for _, e := range explained {
			for kind, of := range losses {
				if strings.HasPrefix(kind, e.kind) && slices.Contains(e.aspects, a) {
					if most += of; e.many {
						most += n[a]
					}
				}
			}
		}
		if n[a] > most {
			out = append(out, fmt.Sprintf("%s %d, losses explain %d", aspectNames[a], n[a], most))
		}
	}
	return strings.Join(out, "; ")
}
