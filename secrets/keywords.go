package secrets

// keywords finds words in a text in one pass, whatever their number: the automaton of Aho and Corasick. Letters of
// ASCII are found in either case.
type keywords struct {
	class   [256]uint8 // of each byte; 0 = it is in no word
	classes int
	next    []uint16 // by state and class
	ends    [][]end  // the words that end in each state
}

// end is a word that ends in a state.
type end struct {
	word, length int
}

// newKeywords makes the automaton. The words are in lower case, and their characters together fewer than 65,536.
func newKeywords(words []string) *keywords {
	k := &keywords{classes: 1, ends: make([][]end, 1)}
	for _, w := range words {
		for i := range len(w) {
			if k.class[w[i]] == 0 {
				k.class[w[i]] = uint8(k.classes) //nolint:gosec // at most 255 bytes besides class 0
				k.classes++
			}
		}
	}
	for c := 'a'; c <= 'z'; c++ {
		k.class[c-'a'+'A'] = k.class[c]
	}
	k.next = make([]uint16, k.classes)
	for w, word := range words {
		k.add(w, word)
	}
	k.link()
	return k
}

// add adds a word to the tree of words.
func (k *keywords) add(w int, word string) {
	state := 0
	for i := range len(word) {
		slot := state*k.classes + int(k.class[word[i]])
		if k.next[slot] == 0 {
			k.next[slot] = uint16(len(k.ends)) //nolint:gosec // see newKeywords
			k.ends = append(k.ends, nil)
			k.next = append(k.next, make([]uint16, k.classes)...)
		}
		state = int(k.next[slot])
	}
	k.ends[state] = append(k.ends[state], end{w, len(word)})
}

// link completes the tree: from every state with every class to the state of the longest end that a word begins with.
func (k *keywords) link() {
	back := make([]uint16, len(k.ends)) // the state of the longest proper end
	var queue []uint16
	for c := range k.classes {
		if to := k.next[c]; to != 0 {
			queue = append(queue, to)
		}
	}
	for len(queue) > 0 { // each state is in it once
		state := int(queue[0])
		queue = queue[1:]
		k.ends[state] = append(k.ends[state], k.ends[back[state]]...)
		for c := range k.classes {
			slot, other := state*k.classes+c, k.next[int(back[state])*k.classes+c]
			if to := k.next[slot]; to != 0 {
				back[to] = other
				queue = append(queue, to)
			} else {
				k.next[slot] = other
			}
		}
	}
}

// each calls found for each word in the text, with its place.
func (k *keywords) each(text string, found func(word, at int)) {
	state := 0
	for i := range len(text) {
		state = int(k.next[state*k.classes+int(k.class[text[i]])])
		for _, e := range k.ends[state] {
			found(e.word, i+1-e.length)
		}
	}
}

// in reports whether the text has one of the words.
func (k *keywords) in(text string) bool {
	state := 0
	for i := range len(text) {
		if state = int(k.next[state*k.classes+int(k.class[text[i]])]); k.ends[state] != nil {
			return true
		}
	}
	return false
}
