package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/layout"
)

const partSize = 100

func newStore() *Store {
	return &Store{
		Backend: memory.New(), Session: "s", Attempts: 3, Part: partSize, Rand: rand.NewChaCha8([32]byte{1}),
		Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	}
}

func bytesOf(n int) []byte {
	p := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(n), 7}).Read(p)
	return p
}

func keysOf(t *testing.T, b backend.Backend) (keys []string) {
	t.Helper()
	for info, err := range b.List(t.Context(), backend.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, strings.TrimPrefix(info.Key, "sessions/s/originals/"))
	}
	return keys
}

func get(t *testing.T, b backend.Backend, key string) []byte {
	t.Helper()
	p, _, err := b.Get(t.Context(), key, backend.Range{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func put(t *testing.T, b backend.Backend, key string, p []byte) {
	t.Helper()
	if _, err := b.Put(t.Context(), key, p, backend.Cond{}); err != nil {
		t.Fatal(err)
	}
}

// Files of any size come back; one that fits is one object, as it has been since format 1.
func TestOriginals(t *testing.T) {
	for size, objects := range map[int]int{0: 1, 1: 1, partSize - 1: 1, partSize: 1, partSize + 1: 3, 2 * partSize: 3, 20*partSize + 7: 22} {
		s, raw := newStore(), bytesOf(size)
		sum, err := s.PutOriginal(t.Context(), iotest.HalfReader(bytes.NewReader(raw)))
		if h := sha256.Sum256(raw); err != nil || sum != hex.EncodeToString(h[:]) {
			t.Fatalf("%d bytes: %q, %v", size, sum, err)
		}
		var back bytes.Buffer
		if err := s.WriteOriginal(t.Context(), sum, &back); err != nil || !bytes.Equal(back.Bytes(), raw) {
			t.Errorf("%d bytes: %d came back, %v", size, back.Len(), err)
		}
		keys := keysOf(t, s.Backend)
		if one := slices.Contains(keys, sum+".zst"); len(keys) != objects || one != (objects == 1) {
			t.Errorf("%d bytes are stored as %q", size, keys)
		}
		if again, err := s.PutOriginal(t.Context(), bytes.NewReader(raw)); err != nil || again != sum {
			t.Errorf("%d bytes, stored twice: %v", size, err)
		}
	}
}

// The error of a reader that fails, or a store that refuses, is returned; nothing names the file then.
func TestOriginalThatCannotBeStored(t *testing.T) {
	broken := errors.New("broken")
	s := newStore()
	if _, err := s.PutOriginal(t.Context(), io.MultiReader(bytes.NewReader(bytesOf(5*partSize)), iotest.ErrReader(broken))); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.PutOriginal(ctx, bytes.NewReader(bytesOf(50*partSize))); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	for _, key := range keysOf(t, s.Backend) {
		if strings.HasSuffix(key, ".parts") {
			t.Errorf("%s is there", key)
		}
	}
}

// Damage to a list or a part is told by the object's name, and no byte of a damaged part is written.
func TestDamagedOriginals(t *testing.T) {
	whole := bytesOf(3*partSize + 1)
	h := sha256.Sum256(whole)
	sum := hex.EncodeToString(h[:])
	list := layout.OriginalListKey("s", 0, sum)
	second := sha256.Sum256(whole[partSize : 2*partSize])
	partKey := layout.OriginalKey("s", 0, hex.EncodeToString(second[:]))
	relisted := func(edit func(*partList, []byte) []byte) func([]byte) []byte {
		return func(p []byte) []byte {
			_, sums, err := codec.DecodeContainer(p, codec.KindOriginal, listBytes)
			if err != nil {
				t.Fatal(err)
			}
			l := partList{Sum: sum, Size: int64(len(whole)), Part: partSize}
			sums = edit(&l, sums)
			summary, err := codec.Marshal(l)
			if err != nil {
				t.Fatal(err)
			}
			if p, err = codec.EncodeContainer(codec.KindOriginal, summary, sums, codec.Default); err != nil {
				t.Fatal(err)
			}
			return p
		}
	}
	for _, c := range []struct {
		name, key, object string
		edit              func(p []byte) []byte
		written           int // bytes before the damage was seen, at most
	}{
		{"a part is gone", partKey, "", nil, partSize},
		{"a part has other bytes", partKey, partKey, func([]byte) []byte { return codec.Compress(nil, bytesOf(partSize+5), codec.Default) }, partSize},
		{"a part is no frame", partKey, partKey, func(p []byte) []byte { return p[:len(p)-1] }, partSize},
		{"the list is torn", list, list, func(p []byte) []byte { return p[:len(p)-1] }, 0},
		{"the list is another's", list, list, relisted(func(l *partList, sums []byte) []byte { l.Sum = strings.Repeat("0", 64); return sums }), 0},
		{"a part too few", list, list, relisted(func(_ *partList, sums []byte) []byte { return sums[32:] }), 0},
		{"no parts", list, list, relisted(func(l *partList, _ []byte) []byte { l.Size = 0; return nil }), 0},
		{"half a hash", list, list, relisted(func(_ *partList, sums []byte) []byte { return sums[:len(sums)-5] }), 0},
		{"parts of no size", list, list, relisted(func(l *partList, sums []byte) []byte { l.Part = 0; return sums }), 0},
		{"in another order", list, list, relisted(func(_ *partList, sums []byte) []byte {
			return slices.Concat(sums[32:64], sums[:32], sums[64:])
		}), len(whole)},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStore()
			if _, err := s.PutOriginal(t.Context(), bytes.NewReader(whole)); err != nil {
				t.Fatal(err)
			}
			if c.edit == nil {
				if err := s.Backend.Delete(t.Context(), c.key); err != nil {
					t.Fatal(err)
				}
			} else {
				put(t, s.Backend, c.key, c.edit(get(t, s.Backend, c.key)))
			}
			var back bytes.Buffer
			err := s.WriteOriginal(t.Context(), sum, &back)
			f := new(Failure)
			switch {
			case c.edit == nil:
				if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(fmt.Sprint(err), c.key) {
					t.Errorf("got %v", err)
				}
			case !errors.As(err, &f) || !errors.Is(err, ErrCorrupt) || f.Object != c.object:
				t.Errorf("got %v, want damage of %s", err, c.object)
			}
			if back.Len() > c.written {
				t.Errorf("%d bytes were written", back.Len())
			}
		})
	}
}

// A writer that fails is no damage.
func TestOriginalToAWriterThatFails(t *testing.T) {
	for _, size := range []int{partSize, 3 * partSize} {
		s := newStore()
		sum, err := s.PutOriginal(t.Context(), bytes.NewReader(bytesOf(size)))
		if err != nil {
			t.Fatal(err)
		}
		err = s.WriteOriginal(t.Context(), sum, full{})
		if !errors.Is(err, errFull) || errors.Is(err, ErrCorrupt) || errors.Is(err, codec.ErrFormat) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	if err := newStore().WriteOriginal(t.Context(), strings.Repeat("0", 64), io.Discard); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing is there: %v", err)
	}
}

var errFull = errors.New("no space left")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

// A file that grew is its old parts and new ones; of these small ones become one, and no large one is written again.
func TestGrowOriginal(t *testing.T) {
	for _, begin := range []int{1, partSize, 3*partSize + 7} {
		s, raw := newStore(), bytesOf(begin)
		s.Part = wholePart
		if begin > partSize {
			s.Part = partSize // more than one part
		}
		sum, err := s.PutOriginal(t.Context(), bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		s.Part = wholePart
		for i := range 60 {
			more := bytesOf(1 + i*i*i%(3*leastPart))
			was := Original{sum, int64(len(raw))}
			raw = append(raw, more...)
			h := sha256.Sum256(raw)
			now := Original{hex.EncodeToString(h[:]), int64(len(raw))}
			if err := s.GrowOriginal(t.Context(), was, now, iotest.HalfReader(bytes.NewReader(more))); err != nil {
				t.Fatal(err)
			}
			sum = now.Sum
			var back bytes.Buffer
			if i%6 > 0 {
				continue
			}
			if err := s.WriteOriginal(t.Context(), sum, &back); err != nil || !bytes.Equal(back.Bytes(), raw) {
				t.Fatalf("growth %d: %d of %d bytes came back, %v", i, back.Len(), len(raw), err)
			}
			parts, err := s.partsOf(t.Context(), now)
			if err != nil || len(parts) > 5*mergedParts {
				t.Fatalf("growth %d: %d parts, %v", i, len(parts), err)
			}
		}
	}
}

// Small growths do not write a large last part again: what is stored in all is that part, and each growth a few times.
func TestGrowOriginalLeavesLargeParts(t *testing.T) {
	s, raw := newStore(), bytesOf(wholePart-1)
	s.Part = wholePart
	sum, err := s.PutOriginal(t.Context(), bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	const growths, size = 100, 300
	for i := range growths {
		more := bytesOf(size + i)
		was := Original{sum, int64(len(raw))}
		raw = append(raw, more...)
		h := sha256.Sum256(raw)
		sum = hex.EncodeToString(h[:])
		if err := s.GrowOriginal(t.Context(), was, Original{sum, int64(len(raw))}, bytes.NewReader(more)); err != nil {
			t.Fatal(err)
		}
	}
	stored := 0
	for _, key := range keysOf(t, s.Backend) {
		if part, ok := strings.CutSuffix(key, ".zst"); ok {
			stored += len(get(t, s.Backend, layout.OriginalKey("s", 0, part)))
		}
	}
	if most := len(raw) + 5*growths*size; stored > most {
		t.Errorf("%d bytes of parts for a file of %d; want at most %d", stored, len(raw), most)
	}
}

// A growth leaves the list of an earlier try in force, however that cut the same bytes, and refuses what does not fit.
func TestGrowOriginalAgain(t *testing.T) {
	s, raw := newStore(), bytesOf(5*partSize)
	h := sha256.Sum256(raw)
	now := Original{hex.EncodeToString(h[:]), int64(len(raw))}
	if _, err := s.PutOriginal(t.Context(), bytes.NewReader(raw)); err != nil { // another cut
		t.Fatal(err)
	}
	old := raw[:2*partSize+3]
	was := Original{Size: int64(len(old))}
	var err error
	if was.Sum, err = s.PutOriginal(t.Context(), bytes.NewReader(old)); err != nil {
		t.Fatal(err)
	}
	var back bytes.Buffer
	err = s.GrowOriginal(t.Context(), was, now, bytes.NewReader(raw[len(old):]))
	werr := s.WriteOriginal(t.Context(), now.Sum, &back)
	if err != nil || werr != nil || !bytes.Equal(back.Bytes(), raw) {
		t.Errorf("%v, %v, %d bytes", err, werr, back.Len())
	}
	err = s.GrowOriginal(t.Context(), was, now, bytes.NewReader(raw[len(old)+1:]))
	if !errors.Is(err, codec.ErrLimit) {
		t.Errorf("a byte is missing: %v", err)
	}
	was.Size++
	err = s.GrowOriginal(t.Context(), was, now, bytes.NewReader(raw[len(old):]))
	if !errors.Is(err, ErrCorrupt) {
		t.Errorf("of another size: %v", err)
	}
}
