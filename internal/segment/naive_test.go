package segment_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"strconv"
	"strings"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// naive reads a log strictly by docs/format/commit-line.md: with encoding/json, line by line, sharing no code with the
// scanner. It returns the ids of the commits and the offset after the last.
func naive(data []byte, key uint64, self uint32) (ids []string, good int) {
	pos := 0
	for line := range bytes.Lines(data) {
		pos += len(line)
		line, whole := bytes.CutSuffix(line, []byte("\n"))
		if !whole {
			return ids, good
		}
		own, mine := selfOf(line, key)
		if !mine {
			continue
		}
		var l struct {
			ID   string
			Data struct {
				Len int64
				CRC string
			}
		}
		if json.Unmarshal(line, &l) != nil {
			return ids, good
		}
		since := data[good : pos-len(line)-1]
		chained := crc32.Checksum(append(binary.LittleEndian.AppendUint32(nil, self), since...), castagnoli)
		if crc, err := strconv.ParseUint(l.Data.CRC, 16, 32); err != nil || uint32(crc) != chained || l.Data.Len != int64(len(since)) {
			return ids, good
		}
		ids, good, self = append(ids, l.ID), pos, own
	}
	return ids, good
}

// selfOf returns the self of a line that ends like a commit line and whose self verifies under the key.
func selfOf(line []byte, key uint64) (uint32, bool) {
	const tail = len(`,"self":"01234567"}}`)
	if len(line) < tail || !bytes.HasPrefix(line, []byte(`{"type":"custom","id":`)) || !bytes.Contains(line, []byte(`,"customType":"coppice.commit","data":{`)) {
		return 0, false
	}
	body, end := line[:len(line)-tail], string(line[len(line)-tail:])
	hex, begins := strings.CutPrefix(end, `,"self":"`)
	hex, ends := strings.CutSuffix(hex, `"}}`)
	if !begins || !ends || strings.ToLower(hex) != hex {
		return 0, false
	}
	self, err := strconv.ParseUint(hex, 16, 32)
	if err != nil {
		return 0, false
	}
	return uint32(self), crc32.Checksum(append(binary.LittleEndian.AppendUint64(nil, key), body...), castagnoli) == uint32(self)
}
