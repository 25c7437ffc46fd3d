package rollout

import (
	"bytes"
	"unicode/utf8"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// appendText appends what a JSON string says, as rawjson.Text gives it, but into room that is there already.
func appendText(dst, val []byte) []byte {
	if !rawjson.IsString(val) {
		return dst
	}
	start, in := len(dst), val[1:len(val)-1]
	for {
		i := bytes.IndexByte(in, '\\')
		if i < 0 || i+1 == len(in) {
			break
		}
		c := in[i+1]
		dst, in = append(dst, in[:i]...), in[i+2:]
		switch c {
		case 'u':
			r, ok := hexRune(in)
			if !ok {
				return append(dst[:start], rawjson.Text(val)...) // half of a pair, or of no use
			}
			dst, in = utf8.AppendRune(dst, r), in[4:]
		case 'b', 'f', 'n', 'r', 't':
			dst = append(dst, controls[c-'b'])
		default:
			dst = append(dst, c)
		}
	}
	if dst = append(dst, in...); !utf8.Valid(dst[start:]) {
		return append(dst[:start], rawjson.Text(val)...)
	}
	return dst
}

// controls are the characters that have a letter as their escape, from b on.
const controls = "\b   \f       \n   \r \t"

// hexRune reads four hexadecimal digits; false = they are none, or half of a pair.
func hexRune(p []byte) (rune, bool) {
	if len(p) < 4 {
		return 0, false
	}
	var r rune
	for _, c := range p[:4] {
		d, ok := rawjson.HexDigit(c)
		if !ok {
			return 0, false
		}
		r = r<<4 | d
	}
	return r, r < 0xd800 || r > 0xdfff
}

// appendQuoted appends text as a JSON string, byte for byte as rawjson.AppendString does, which makes a text
// with a quote in it by way of package json: a thought's signature is one, of kilobytes.
func appendQuoted(dst, text []byte) []byte {
	plain := true
	for _, c := range text {
		if c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			plain = false
			break
		}
	}
	dst = append(dst, '"')
	if plain {
		return append(append(dst, text...), '"')
	}
	done := 0
	for i := 0; i < len(text); {
		c, size := text[i], 1
		if as := escapes[c]; as == "" && c < utf8.RuneSelf {
			i++
			continue
		} else if c >= utf8.RuneSelf {
			var r rune
			if r, size = utf8.DecodeRune(text[i:]); (r != utf8.RuneError || size != 1) && r != '\u2028' && r != '\u2029' {
				i += size
				continue
			}
			const hex = "0123456789abcdef"
			dst = append(append(dst, text[done:i]...), '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
		} else {
			dst = append(append(dst, text[done:i]...), as...)
		}
		i += size
		done = i
	}
	return append(append(dst, text[done:]...), '"')
}

// escapes are the ASCII characters that do not stand for themselves where package json quotes a text.
var escapes = func() (table [256]string) {
	for c := range byte(' ') {
		table[c] = `\u00` + string("01"[c>>4]) + string("0123456789abcdef"[c&15])
	}
	for i, c := range "\b\f\n\r\t\"\\" {
		table[c] = `\` + string("bfnrt\"\\"[i])
	}
	table['<'], table['>'], table['&'] = `\u003c`, `\u003e`, `\u0026`
	return table
}()
