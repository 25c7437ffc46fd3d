package codec

import (
	"encoding/binary"
	"fmt"
)

// containerMagic starts every container. Its first byte is not text, its last ends a line: a transfer that changes
// either is detected at once.
const containerMagic = "\x89cop\r\n\x1a\n"

const (
	containerHeader = 32
	// summaryPrefix is the length of the prefix that contains the header and the whole summary.
	summaryPrefix = 4 << 10
	maxSummary    = summaryPrefix - containerHeader
)

// EncodeContainer packs a summary, kept readable within the first 4 KiB, and a body, compressed as
// one zstd frame. A summary of over 4,064 bytes is ErrLimit. Both may be empty.
func EncodeContainer(k Kind, summary, body []byte, l Level) ([]byte, error) {
	if len(body) > maxFrame {
		return nil, fmt.Errorf("encode %q container: body of %d bytes, at most %d are allowed: %w", k, len(body),
			maxFrame, ErrLimit)
	}
	return packContainer(k, summary, Compress(nil, body, l))
}

// Container packs a summary as EncodeContainer does, around a body that is one or more frames of Compress
// already, end to end.
func (k Kind) Container(summary, frames []byte) ([]byte, error) {
	return packContainer(k, summary, frames)
}

// packContainer writes the container around a body of zstd frames.
func packContainer(k Kind, summary, frame []byte) ([]byte, error) {
	if len(k) != 4 {
		return nil, fmt.Errorf("encode container: kind %q is not four bytes: %w", k, ErrFormat)
	}
	if len(summary) > maxSummary {
		return nil, fmt.Errorf("encode %q container: summary of %d bytes, at most %d are allowed: %w", k, len(summary),
			maxSummary, ErrLimit)
	}
	p := make([]byte, 0, containerHeader+len(summary)+len(frame)+4)
	p = append(p, containerMagic...)
	p = append(p, k...)
	p = binary.LittleEndian.AppendUint16(p, version)
	p = binary.LittleEndian.AppendUint16(p, 0)
	p = binary.LittleEndian.AppendUint32(p, uint32(len(summary)))
	p = binary.LittleEndian.AppendUint64(p, uint64(len(frame)))
	p = binary.LittleEndian.AppendUint32(p, CRC(p, summary))
	p = append(p, summary...)
	p = append(p, frame...)
	return appendChecksum(p, 0), nil
}

// DecodeContainer checks a whole container of kind k and returns its summary, a view of p, and its body, which is newly
// allocated: the content of its frames, end to end. A body of over maxBody bytes is ErrLimit; nothing except the body
// is allocated.
func DecodeContainer(p []byte, k Kind, maxBody int) (summary, body []byte, err error) {
	what := fmt.Sprintf("%q container", k)
	summary, frame, err := openContainer(what, p, k)
	if err != nil {
		return nil, nil, err
	}
	if body, err = decompressAll(nil, frame, maxBody); err != nil {
		return nil, nil, fmt.Errorf("%s: body: %w", what, err)
	}
	return summary, body, nil
}

// DecodeSummary returns the summary of a container of kind k, a view of prefix, from its first 4 KiB, or all of it if
// it is shorter. It does not check the bytes after the summary.
func DecodeSummary(prefix []byte, k Kind) (summary []byte, err error) {
	summary, _, err = containerHead(fmt.Sprintf("%q container", k), prefix, k)
	return summary, err
}

// openContainer verifies a whole container: first the checksum over everything, so that damage is reported as such,
// then its lengths.
func openContainer(what string, p []byte, k Kind) (summary, frame []byte, err error) {
	rest, err := splitChecksum(what, p)
	if err != nil {
		return nil, nil, err
	}
	summary, frameLen, err := containerHead(what, rest, k)
	if err != nil {
		return nil, nil, err
	}
	frame = rest[containerHeader+len(summary):]
	if uint64(len(frame)) != frameLen {
		return nil, nil, fmt.Errorf("%s: body of %d bytes instead of %d: %w", what, len(frame), frameLen, ErrFormat)
	}
	return summary, frame, nil
}

// containerHead verifies header and summary. Their layout is the same in every format version.
func containerHead(what string, p []byte, k Kind) (summary []byte, frameLen uint64, err error) {
	if len(p) < containerHeader || string(p[:8]) != containerMagic {
		return nil, 0, fmt.Errorf("%s: not a container: %w", what, ErrFormat)
	}
	n := binary.LittleEndian.Uint32(p[16:])
	if n > maxSummary || int(n) > len(p)-containerHeader {
		return nil, 0,
			fmt.Errorf("%s: summary of %d bytes where %d remain: %w", what, n, len(p)-containerHeader, ErrFormat)
	}
	summary = p[containerHeader : containerHeader+n : containerHeader+n]
	if want, got := binary.LittleEndian.Uint32(p[28:]), CRC(p[:28], summary); got != want {
		return nil, 0, fmt.Errorf("%s: crc32c %08x of its head instead of %08x: %w", what, got, want, ErrChecksum)
	}
	if err := checkVersion(what, binary.LittleEndian.Uint16(p[12:])); err != nil {
		return nil, 0, err
	}
	if binary.LittleEndian.Uint16(p[14:]) != 0 {
		return nil, 0, fmt.Errorf("%s: reserved bytes are set: %w", what, ErrFormat)
	}
	if Kind(p[8:12]) != k {
		return nil, 0, fmt.Errorf("%s: holds %q: %w", what, p[8:12], ErrFormat)
	}
	return summary, binary.LittleEndian.Uint64(p[20:]), nil
}
