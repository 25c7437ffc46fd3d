package codec

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
)

func smallContainer(t testing.TB) []byte {
	t.Helper()
	p, err := EncodeContainer(KindCheckpoint, []byte("the summary"), []byte(strings.Repeat("the body, ", 20)), Default)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestContainerRoundTrip(t *testing.T) {
	golden(t, "container.bin", smallContainer(t))
	r := newRand(4)
	for _, n := range []int{0, 1, 100, 4064} {
		for _, size := range []int{0, 1, 5000, 200_000} {
			want, body := bytes.Repeat([]byte{'s'}, n), []byte(words(r, 1+size))[:size]
			p, err := EncodeContainer(KindSnapshot, want, body, Default)
			if err != nil {
				t.Fatal(err)
			}
			summary, got, err := DecodeContainer(p, KindSnapshot, size)
			if err != nil || !bytes.Equal(summary, want) || !bytes.Equal(got, body) {
				t.Fatalf("summary of %d, body of %d: %v", n, size, err)
			}
			summary, err = DecodeSummary(p[:min(len(p), 4096)], KindSnapshot)
			if err != nil || !bytes.Equal(summary, want) {
				t.Fatalf("summary of %d from the first 4 KiB: %v", n, err)
			}
		}
	}
}

// reseal sets the two checksums of a container after a change.
func reseal(p []byte) []byte {
	n := int(binary.LittleEndian.Uint32(p[16:]))
	if n <= len(p)-36 {
		binary.LittleEndian.PutUint32(p[28:], CRC(p[:28], p[32:32+n]))
	}
	binary.LittleEndian.PutUint32(p[len(p)-4:], CRC(p[:len(p)-4]))
	return p
}

func TestContainerRefuses(t *testing.T) {
	change := func(at int, b byte) func([]byte) []byte {
		return func(p []byte) []byte { p[at] = b; return reseal(p) }
	}
	tests := []struct {
		name string
		do   func([]byte) []byte
		want error
		text string
	}{
		{"other kind", func(p []byte) []byte { copy(p[8:], KindIndex); return reseal(p) }, ErrFormat, `holds "indx"`},
		{"newer format", change(12, 2), ErrVersion, "too new to read: written in format 2, this program reads up to 1"},
		{"format 0", change(12, 0), ErrVersion, "too old to read"},
		{"reserved bytes", change(14, 1), ErrFormat, "reserved"},
		{"other magic", change(0, 'x'), ErrFormat, "not a container"},
		{"summary over the object", change(18, 1), ErrFormat, "summary"},
		{"summary over the prefix", change(17, 0x10), ErrFormat, "summary"},
		{"body length", change(20, 1), ErrFormat, "body"},
		{"body length of 2^56", change(27, 1), ErrFormat, "body"},
		{"body is no frame", func(p []byte) []byte { p[32+11] = 'x'; return reseal(p) }, ErrFormat, "no frame"},
		{"flipped version, no new checksum", func(p []byte) []byte { p[12] = 3; return p }, ErrChecksum, "crc32c"},
		{"empty", func([]byte) []byte { return nil }, ErrFormat, "too short"},
		{"checksum only", func([]byte) []byte { return []byte{0, 0, 0, 0} }, ErrFormat, "not a container"},
	}
	for _, tt := range tests {
		p := tt.do(smallContainer(t))
		_, _, err := DecodeContainer(p, KindCheckpoint, 1<<20)
		if !errors.Is(err, tt.want) || !isOurs(err) || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: %v, want %v and %q", tt.name, err, tt.want, tt.text)
		}
	}
	if _, _, err := DecodeContainer(smallContainer(t), KindCheckpoint, 199); !errors.Is(err, ErrLimit) {
		t.Errorf("200 bytes against a limit of 199: %v", err)
	}
	if _, err := EncodeContainer(KindCheckpoint, make([]byte, 4065), nil, Default); !errors.Is(err, ErrLimit) {
		t.Errorf("a summary that does not fit: %v", err)
	}
	if _, err := EncodeContainer("checkpoint", nil, nil, Default); !errors.Is(err, ErrFormat) {
		t.Errorf("a kind that is not four bytes: %v", err)
	}
}

// A listing reads only the summary, from the prefix alone.
func TestSummaryAlone(t *testing.T) {
	p := smallContainer(t)
	for n := range p {
		summary, err := DecodeSummary(p[:n], KindCheckpoint)
		if n < 32+11 && !isOurs(err) || n >= 32+11 && (err != nil || string(summary) != "the summary") {
			t.Fatalf("first %d bytes: %q, %v", n, summary, err)
		}
	}
	for bit := range 8 * (32 + 11) {
		p[bit/8] ^= 1 << (bit % 8)
		if _, err := DecodeSummary(p, KindCheckpoint); !isOurs(err) {
			t.Fatalf("bit %d flipped: %v", bit, err)
		}
		p[bit/8] ^= 1 << (bit % 8)
	}
}

// A hostile body is intact by its checksums; its declared sizes are still not trusted.
func TestContainerBomb(t *testing.T) {
	bomb := frameHead(false, 0x38, 1<<30)
	for i := range 8192 {
		bomb = append(bomb, block(i == 8191, 1, 128<<10, 'x')...)
	}
	for _, limit := range []int{0, 64 << 20, 1<<30 - 1} {
		p, err := packContainer(KindIndex, nil, bomb)
		if err != nil {
			t.Fatal(err)
		}
		taken := allocated(func() { _, _, err = DecodeContainer(p, KindIndex, limit) })
		if !errors.Is(err, ErrLimit) || taken > 64<<10 {
			t.Errorf("limit of %d: %d bytes allocated, %v", limit, taken, err)
		}
	}
}

// A body may be several frames, end to end: together they follow the rules of one.
func TestContainerOfFrames(t *testing.T) {
	a, b, c := []byte(strings.Repeat("the first, ", 500)), []byte("x"), []byte(strings.Repeat("the third, ", 900))
	frames := func(parts ...[]byte) (out []byte) {
		for i, p := range parts {
			out = Compress(out, p, Level(i%2))
		}
		return out
	}
	pack := func(body []byte) []byte {
		p, err := KindSnapshot.Container([]byte("s"), body)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	all := len(a) + len(b) + len(c)
	summary, got, err := DecodeContainer(pack(frames(a, b, nil, c)), KindSnapshot, all)
	if err != nil || string(summary) != "s" || string(got) != string(a)+string(b)+string(c) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	for name, body := range map[string][]byte{
		"a cut frame":     frames(a, b, c)[:len(frames(a, b))+20],
		"a flipped bit":   func() []byte { p := frames(a, b, c); p[len(p)-6] ^= 4; return p }(),
		"a skippable one": append(frames(a), 0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0),
		"bytes behind":    append(frames(a, c), 1, 2, 3),
		"no frame":        nil,
	} {
		if _, _, err := DecodeContainer(pack(body), KindSnapshot, all); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := DecodeContainer(pack(frames(a, b, c)), KindSnapshot, all-1); !errors.Is(err, ErrLimit) {
		t.Errorf("a byte over the limit together: %v", err)
	}
	bomb := pack(bytes.Repeat(frames(nil), 64<<10+1))
	taken := allocated(func() { _, _, err = DecodeContainer(bomb, KindSnapshot, 1<<20) })
	if !errors.Is(err, ErrLimit) || taken > 64<<10 {
		t.Errorf("65,537 frames: %d bytes allocated, %v", taken, err)
	}
	if _, _, err := DecodeContainer(pack(frames(bytes.Repeat([]byte{'x'}, 1<<20), make([]byte, 1<<20))), KindSnapshot, 1<<20); !errors.Is(err, ErrLimit) {
		t.Errorf("frames that fit one by one: %v", err)
	}
}
