package handle

import "strings"

// programs are what is searched: every pair of short lanes, on one handle and on two, with one failure and one
// cancellation, and every single lane of up to three calls, on both kinds of store.
func programs(e engine) (list []program) {
	add := func(text string) {
		p, err := parse(text)
		if err != nil {
			panic(err)
		}
		for _, l := range p.lanes {
			for _, o := range l.ops {
				if !in(o.kind, e.Supported) {
					return
				}
			}
		}
		list = append(list, p)
	}
	for _, store := range []string{"replace", "append", "append power d1"} {
		for i, a := range one {
			for k, b := range one {
				if k >= i && store != "append power d1" {
					add(store + " f1 c1 | 1:" + a + " | 1:" + b)
				}
				if !strings.Contains(b, "W") && !strings.Contains(b, "O") {
					add(store + " f1 | 1:" + strings.ReplaceAll(a, "!", "") + ",R | 2:" + strings.ReplaceAll(b, "!", ""))
				}
			}
		}
	}
	for _, text := range special {
		add(text)
	}
	return list
}

// one are the lanes that are paired.
var one = []string{"A,C!", "A,K!", "A,L", "A,S", "A,R!", "A,D", "A,M", "A,X", "A,C,A,C", "E!,E", "B,C", "Q!,Q", "N,C", "P,C", "W", "O"}

// special are programs that once showed something, and kinds of programs that pairs do not make.
var special = []string{
	"replace f1 c1 | 1:A,C! | 1:A,C | 1:A,C",
	"append f1 c1 | 1:A,C! | 1:A,C | 1:A,C",
	"replace f1 | 1:C | 1:K | 1:K",
	"append f1 | 1:C | 1:K | 1:K",
	"replace both f1 | 1:A,C | 1:A,C | 2:A,C",
	"append both f1 | 1:A,C | 1:A,C | 2:A,C",
	"append both f1 | 1:N,C | 1:A,C | 2:A,C",
	"append power f1 d1 | 1:A,C | 2:X | 3:A,C",
	"append power f1 d1 | 1:A,C | 2:O,W",
	"replace new f1 c1 | 1:A,C! | 1:A,C",
	"append new f1 c1 | 1:A,C! | 1:A,C",
	"replace new f1 | 1:A,C | 2:A,C",
	"append new f1 | 1:A,C | 2:A,C",
	"replace reads f1 c1 | 1:A,C!,R | 2:A,C",
	"append reads f1 c1 | 1:A,C!,R | 2:A,C",
}
