package rawjson

// Visitor receives the tokens of a value, in order. A literal is the text between quotes, not unescaped.
type Visitor interface {
	Open(object bool)                                // an object or an array begins
	Close()                                          // the innermost open one ends
	Text(from, to int, literal []byte, escaped bool) // a key or a string value, from and to without its quotes
	Scalar()                                         // a number, true, false or null
}

// Visit reads a line once, with at most MaxDepth levels and without copying; ok is false if tokens or nesting are not
// JSON: the tokens before that do not count.
func Visit(line []byte, w Visitor) bool {
	depth := 0
	for i := Space(line, 0); i < len(line); i = Space(line, i) {
		switch c := line[i]; c {
		case '{', '[':
			if depth++; depth > MaxDepth {
				return false
			}
			w.Open(c == '{')
			i++
		case '}', ']':
			if depth--; depth < 0 {
				return false
			}
			w.Close()
			i++
		case ',', ':':
			i++
		case '"':
			end, escaped, err := StringEnd(line, i)
			if err != nil {
				return false
			}
			w.Text(i+1, end-1, line[i+1:end-1], escaped)
			i = end
		default:
			end, err := ScalarEnd(line, i)
			if err != nil {
				return false
			}
			w.Scalar()
			i = end
		}
	}
	return depth == 0
}
