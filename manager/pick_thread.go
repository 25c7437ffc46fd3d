package manager

import (
	"slices"
	"strings"
)

// threaded puts forks below their parents. A family has the place of its first member.
func threaded(all []Found) []Found {
	at := map[string]int{}
	for i, f := range all {
		at[f.ID] = i
	}
	kids := make([][]int, len(all))
	root := make([]int, len(all)) // index of the topmost session of each family
	for i, f := range all {
		if p, ok := at[parent(f)]; ok && !leads(all, at, p, i) {
			kids[p] = append(kids[p], i)
		}
		root[i] = i
		for up, steps := parent(f), 0; steps < len(all); steps++ {
			p, ok := at[up]
			if !ok {
				break
			}
			root[i], up = p, parent(all[p])
		}
	}
	var out []Found
	done := make([]bool, len(all))
	for i := range all {
		stack := []Found{}
		for _, top := range []int{root[i], i} { // in a cycle of parents the newest is the top
			if !done[top] {
				stack = append(stack, all[top])
				break
			}
		}
		for len(stack) > 0 {
			f := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			n := at[f.ID]
			if done[n] {
				continue
			}
			done[n] = true
			out = append(out, f)
			for _, k := range slices.Backward(kids[n]) {
				kid := all[k]
				kid.Depth = f.Depth + 1
				stack = append(stack, kid)
			}
		}
	}
	return out
}

// leads reports whether the chain of parents of from reaches a session.
func leads(all []Found, at map[string]int, from, to int) bool {
	for steps := 0; steps <= len(all); steps++ {
		if from == to {
			return true
		}
		p, ok := at[parent(all[from])]
		if !ok {
			return false
		}
		from = p
	}
	return false // a cycle without it
}

// parent returns the id of the parent session. Files of pi and related programs name the parent by its path, which
// contains the id after a time: /a/2026-01-02T03-04-05-000Z_<id>.jsonl.
func parent(f Found) string {
	name, isFile := strings.CutSuffix(f.Parent, ".jsonl")
	if !isFile {
		return f.Parent
	}
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	return name[strings.LastIndexByte(name, '_')+1:]
}
