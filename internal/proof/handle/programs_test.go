package handle

import "strings"

// parseAll are the programs of which the engine supports every call.
func parseAll(e engine, texts []string) (list []program) {
	for _, text := range texts {
		p, err := parse(text)
		if err != nil {
			panic(err)
		}
		if p.runsOn(e) {
			list = append(list, p)
		}
	}
	return list
}

func (p program) runsOn(e engine) bool {
	for _, l := range p.lanes {
		for _, o := range l.ops {
			if !in(o.kind, e.Supported) {
				return false
			}
		}
	}
	return true
}

// pairs are programs of two short lanes: on one handle, with lanes that go on at once and lanes that wait, and on
// two, on both kinds of store.
func pairs() (list []string) {
	for _, store := range []string{"replace", "append"} {
		for i, a := range lanes {
			for _, b := range lanes[i:] {
				list = append(list, store+" f1 c1 | 1:"+a+" | 1:"+b, store+" eager f1 c1 | 1:"+a+" | 1:"+b)
			}
		}
	}
	for _, store := range []string{"replace", "append", "append power d1", "append both", "replace both"} {
		for _, a := range lanes {
			for _, b := range others {
				list = append(list, store+" f1 | 1:"+strings.ReplaceAll(a, "!", "")+",R | 2:"+b)
			}
		}
	}
	return list
}

// lanes are paired with each other, and with those of another handle.
var (
	lanes  = []string{"A,C!", "A,K!", "A,L", "A,S", "A,R!", "A,D", "A,M", "A,X", "A,C,A,C", "E!,E", "B,C", "Q!,Q", "J,K", "N,C", "P,C", "W", "O"}
	others = []string{"A,C", "L", "A,K", "S", "M"}
)

// deep are programs that are searched further: what most programs do, and what pairs do not make.
var deep = []string{
	"replace f1 c1 | 1:A,C! | 1:A,C",
	"append f1 c1 | 1:A,C! | 1:A,C",
	"replace eager f1 c1 | 1:C | 1:A,C! | 1:A,C",
	"append eager f1 c1 | 1:C | 1:A,C! | 1:A,C",
	"replace eager f1 | 1:C | 1:K | 1:K",
	"append eager f1 | 1:C | 1:K | 1:K",
	"replace eager f1 c1 | 1:E! | 1:E | 1:A,C",
	"append eager f1 c1 | 1:E! | 1:E | 1:A,C",
	"append eager f1 c1 | 1:B! | 1:B | 2:E",
	"append eager both f1 c1 | 1:B! | 1:B | 2:E",
	"replace eager f1 | 1:C | 1:Q | 1:Q,C",
	"replace eager both f1 | 1:A,C | 1:A,C | 2:A,C",
	"append eager both f1 | 1:A,C | 1:N,C | 2:A,C",
	"append power f1 d1 | 1:A,C | 2:X | 3:A,C",
	"append power f1 d1 | 1:A,C | 2:O,W",
	"append power big f1 d1 | 1:A,C,X | 2:O,W",
	"append big f1 | 1:A,C | 1:X",
	"replace big f1 | 1:A,C | 1:A,C,X",
	"replace new f1 c1 | 1:A,C! | 1:A,C",
	"append new f1 c1 | 1:A,C! | 1:A,C",
	"append new eager f1 | 1:A,C | 2:A,C",
	"replace reads f1 c1 | 1:A,C!,R | 2:A,C",
	"append reads f1 c1 | 1:A,C!,R | 2:A,C",
	"replace snaps eager f1 c1 | 1:A,C! | 1:C,S",
	"replace reads eager c1 | 1:K | 2:C,A | 2:K,R!",
}
