package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/transcript"
)

func TestRecordGolden(t *testing.T) {
	for name, r := range map[string]Record{
		"commit-plain.jsonl": plainRecord(), "commit-full.jsonl": fullRecord(), "commit-first.jsonl": firstRecord(),
		"commit-keyed.jsonl": keyedRecord(), "commit-outline.jsonl": outlineRecord(),
		"commit-rules.jsonl": rulesRecord(), "commit-docs.jsonl": docsRecord(),
		"commit-meta.jsonl": metaRecord(), "commit-partial.jsonl": partialRecord(),
		"commit-source.jsonl": sourceRecord(), "commit-resume.jsonl": resumedRecord(),
		"commit-names.jsonl": namesRecord(), "commit-again.jsonl": againRecord(),
		"commit-erase.jsonl": eraseRecord(),
	} {
		line, self := mustLine(t, r, testKey, testPrev, testSince)
		golden(t, name, append(bytes.Clone(line), '\n'))
		got, ours, err := ParseRecord(line, testKey)
		if !ours || err != nil {
			t.Fatalf("%s: ours %v, %v", name, ours, err)
		}
		r.Len, r.CRC, r.Self = int64(len(testSince)), got.CRC, self
		if !reflect.DeepEqual(got, r) {
			t.Errorf("%s:\n got %+v\nwant %+v", name, got, r)
		}
		if !got.Covers(testPrev, testSince) || got.Covers(testPrev+1, testSince) || got.Covers(testPrev, testSince[1:]) {
			t.Errorf("%s: Covers", name)
		}
		if verified, err := VerifiedRecord(line); err != nil || !reflect.DeepEqual(withoutSelf(got), verified) {
			t.Errorf("%s: VerifiedRecord:\n got %+v, %v\nwant %+v", name, verified, err, got)
		}
		if seq, ok := RecordSeq(line); !ok || seq != r.Seq {
			t.Errorf("%s: RecordSeq %d, %v", name, seq, ok)
		}
	}
}

// againRecord is the first commit of a session whose id was used before.
func againRecord() Record {
	r := firstRecord()
	b := *r.Base
	b.Since = 7
	r.Base, r.Epoch = &b, 7
	return r
}

// eraseRecord is a commit that erased entries.
func eraseRecord() Record {
	r := plainRecord()
	r.Reason, r.Erase = "erase", true
	return r
}

// withoutSelf returns the fields that VerifiedRecord reads: all but the checksum that needs the key.
func withoutSelf(r Record) Record {
	r.Self = 0
	return r
}

// VerifiedRecord refuses a line that cannot be a commit line, and one that ParseRecord recognises but cannot read.
func TestVerifiedRecordRefuses(t *testing.T) {
	line, _ := mustLine(t, outlineRecord(), testKey, testPrev, testSince)
	for name, bad := range map[string][]byte{
		"nothing": nil, "an entry": testSince, "cut": line[:len(line)-1], "unknown field": bytes.Replace(line, []byte(`,"docCRC":`), []byte(`,"more":1,"docCRC":`), 1),
		"bad reason": bytes.Replace(line, []byte(`"reason":"rollback"`), []byte(`"reason":"Rollback"`), 1),
	} {
		if r, err := VerifiedRecord(bad); !errors.Is(err, codec.ErrFormat) {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

// The line is an entry that other readers understand.
func TestRecordIsAnEntry(t *testing.T) {
	line, _ := mustLine(t, fullRecord(), testKey, testPrev, testSince)
	l, err := transcript.ParseLine(line)
	if err != nil {
		t.Fatal(err)
	}
	if l.Type != "custom" || l.ID != testID(9) || l.ParentID != testID(8) || !l.Time.Equal(testTime) {
		t.Errorf("read as %+v", l)
	}
	var v struct {
		CustomType string
		Data       struct{ Key, Self string }
	}
	if err := json.Unmarshal(line, &v); err != nil {
		t.Fatal(err)
	}
	if v.CustomType != "coppice.commit" || v.Data.Key != fullRecord().Key || len(v.Data.Self) != 8 {
		t.Errorf("encoding/json reads %+v", v)
	}
}

func TestRecordNullHead(t *testing.T) {
	r := Record{ID: "c", Time: testTime, Reason: "create", HeadOrd: -1}
	line, _ := mustLine(t, r, 0, 0, nil)
	if !bytes.Contains(line, []byte(`"parentId":null,`)) || !bytes.Contains(line, []byte(`"head":null,"headOrd":-1,`)) {
		t.Errorf("line %s", line)
	}
	got, ours, err := ParseRecord(line, 0)
	if !ours || err != nil || got.ParentID != "" || got.Head != "" || got.HeadOrd != -1 || got.Doc != nil || got.Patch != nil || !got.Covers(0, nil) {
		t.Errorf("%+v, %v, %v", got, ours, err)
	}
}

// A commit appends into a buffer that contains the bytes since the previous line.
func TestAppendLineBehindItsBytes(t *testing.T) {
	buf := append(make([]byte, 0, 64<<10), testSince...)
	line, self, err := plainRecord().AppendLine(buf, testKey, testPrev, buf)
	if err != nil {
		t.Fatal(err)
	}
	want, wantSelf := mustLine(t, plainRecord(), testKey, testPrev, testSince)
	if !bytes.Equal(line[:len(testSince)], testSince) || !bytes.Equal(line[len(testSince):], want) || self != wantSelf {
		t.Error("line in a shared buffer differs")
	}
}

// Promise: every bit. A flipped bit, any truncation and any other key make a line not ours.
func TestRecordDamage(t *testing.T) {
	for _, r := range []Record{plainRecord(), fullRecord(), keyedRecord(), outlineRecord()} {
		line, _ := mustLine(t, r, testKey, testPrev, testSince)
		for i := range line {
			for bit := range 8 {
				line[i] ^= 1 << bit
				if _, ours, err := ParseRecord(line, testKey); ours || err != nil {
					t.Fatalf("bit %d of byte %d (%q): ours %v, %v", bit, i, line[i], ours, err)
				}
				line[i] ^= 1 << bit
			}
		}
		for n := range line {
			if _, ours, err := ParseRecord(line[:n], testKey); ours || err != nil {
				t.Fatalf("first %d bytes: ours %v, %v", n, ours, err)
			}
			if _, ours, err := ParseRecord(line[n+1:], testKey); ours || err != nil {
				t.Fatalf("without the first %d bytes: ours %v, %v", n+1, ours, err)
			}
		}
		for bit := range 64 {
			if _, ours, _ := ParseRecord(line, testKey^1<<bit); ours {
				t.Fatalf("ours under a key that differs in bit %d", bit)
			}
		}
	}
}

// The bytes since are covered too, and so is their position after the previous line.
func TestCoversDamage(t *testing.T) {
	line, _ := mustLine(t, plainRecord(), testKey, testPrev, testSince)
	r, _, _ := ParseRecord(line, testKey)
	since := bytes.Clone(testSince)
	for i := range since {
		for bit := range 8 {
			since[i] ^= 1 << bit
			if r.Covers(testPrev, since) {
				t.Fatalf("bit %d of byte %d of the entries passes", bit, i)
			}
			since[i] ^= 1 << bit
		}
	}
	for n := range since {
		if r.Covers(testPrev, since[:n]) {
			t.Fatalf("first %d bytes pass", n)
		}
	}
	for bit := range 32 {
		if r.Covers(testPrev^1<<bit, since) {
			t.Fatalf("a line before that differs in bit %d passes", bit)
		}
	}
}

// An imported export of another session contains intact commit lines: they are entries, not ours.
func TestForeignCommitLine(t *testing.T) {
	line, _ := mustLine(t, plainRecord(), testKey+1, testPrev, testSince)
	if _, ours, err := ParseRecord(line, testKey); ours || err != nil {
		t.Errorf("ours %v, %v", ours, err)
	}
	if l, err := transcript.ParseLine(line); err != nil || l.ID != testID(9) {
		t.Errorf("as an entry: %+v, %v", l, err)
	}
}

// reseal returns a changed line with a Self that verifies, like one of a later format.
func reseal(line []byte) []byte {
	body := line[:len(line)-selfBytes]
	out := append(bytes.Clone(body), selfField...)
	v := keyed(testKey, body)
	for shift := 28; shift >= 0; shift -= 4 {
		out = append(out, "0123456789abcdef"[v>>shift&15])
	}
	return append(out, `"}}`...)
}

// outlineEdits are changes to the line of outlineRecord after which it cannot be read.
var outlineEdits = map[string][2]string{
	"no status":            {`works>","status":"answered"}`, `works>"}`},
	"no preview":           {`"outline":{"preview":"done: \"it\" <works>",`, `"outline":{`},
	"status first":         {`{"preview":"","status":"asked"}`, `{"status":"asked","preview":""}`},
	"more in the outline":  {`"status":"answered"}`, `"status":"answered","more":1}`},
	"empty outline":        {`{"preview":"","status":"asked"}`, `{"preview":"","status":""}`},
	"null outline":         {`{"preview":"","status":"asked"}`, `null`},
	"number for a preview": {`{"preview":"",`, `{"preview":0,`},
	"outline after base":   {`"docCRC":`, `"outline":{"preview":"","status":"asked"},"docCRC":`},
	"digest after kept":    {`,"kept":"conflict-1a2b3c4d"`, `,"kept":"conflict-1a2b3c4d","digest":"00c0ffee00c0ffee"`},
	"empty digest":         {`,"kept":`, `,"digest":"","kept":`},
}

func TestRecordStrictShape(t *testing.T) {
	line, _ := mustLine(t, fullRecord(), testKey, testPrev, testSince)
	if r := reseal(line); !bytes.Equal(r, line) {
		t.Fatal("reseal does not give the line back")
	}
	edits := map[string][2]string{
		"space":              {`,"epoch":`, `, "epoch":`},
		"order":              {`"seq":7,"parent":"` + testID(6) + `"`, `"parent":"` + testID(6) + `","seq":7`},
		"unknown field":      {`,"docCRC":`, `,"more":1,"docCRC":`},
		"leading zero":       {`"seq":7,`, `"seq":07,`},
		"plus":               {`"seq":7,`, `"seq":+7,`},
		"minus zero":         {`"headOrd":12`, `"headOrd":-0`},
		"negative len":       {`"len":`, `"len":-`},
		"too large":          {`"seq":7,`, `"seq":18446744073709551616,`},
		"upper-case hex":     {`"docCRC":"`, `"docCRC":"A`},
		"empty parent":       {`"parent":"` + testID(6) + `"`, `"parent":""`},
		"escape not needed":  {`"writer":"host`, `"writer":"\u0068ost`},
		"reason":             {`"reason":"rollback"`, `"reason":"Rollback"`},
		"claim false":        {`"claim":true`, `"claim":false`},
		"patch with a space": {`"value":9`, `"value": 9`},
		"patch cut":          {`9007199254740993}]`, `9007199254740993]`},
		"doc beside patch":   {`,"patch":`, `,"doc":{},"patch":`},
		"parents unordered":  {`[[0,5],[1,-3]]`, `[[1,5],[0,-3]]`},
		"parents beyond":     {`[[0,5],[1,-3]]`, `[[0,5],[2,-3]]`},
		"parents empty":      {`[[0,5],[1,-3]]`, `[]`},
		"branch no name":     {`["empty",null,-1]`, `["",null,-1]`},
		"negative ordinal":   {`["empty",null,-1]`, `["empty",null,-2]`},
		"text after":         {`,"crc":"`, `,"x":0,"crc":"`},
		"entries huge":       {`"entries":2,`, `"entries":2147483648,`},
		"time in base":       {`"created":"2026-11-20T`, `"created":"2026-11-31T`},
	}
	for name, e := range edits {
		changed := bytes.Replace(line, []byte(e[0]), []byte(e[1]), 1)
		if bytes.Equal(changed, line) {
			t.Errorf("%s: the edit does nothing", name)
			continue
		}
		_, ours, err := ParseRecord(reseal(changed), testKey)
		var limit *codec.LimitError
		if !ours || !errors.Is(err, codec.ErrFormat) && !errors.As(err, &limit) {
			t.Errorf("%s: ours %v, %v", name, ours, err)
		}
	}
	line, _ = mustLine(t, outlineRecord(), testKey, testPrev, testSince)
	for name, e := range outlineEdits {
		changed := bytes.Replace(line, []byte(e[0]), []byte(e[1]), 1)
		if bytes.Equal(changed, line) {
			t.Errorf("%s: the edit does nothing", name)
			continue
		}
		if _, ours, err := ParseRecord(reseal(changed), testKey); !ours || !errors.Is(err, codec.ErrFormat) {
			t.Errorf("%s: ours %v, %v", name, ours, err)
		}
	}
	line, _ = mustLine(t, fullRecord(), testKey, testPrev, testSince)
	for name, e := range map[string][2]string{
		"time without ms": {`10:30:00.123Z`, `10:30:00Z`}, "no such day": {`2026-11-20T10:30:00.123`, `2026-11-31T10:30:00.123`},
		"other type": {`coppice.commit`, `coppice.commie`}, "other shape": {`{"type":"custom","id":"`, `{"id":"`},
	} {
		changed := bytes.Replace(line, []byte(e[0]), []byte(e[1]), 1)
		if _, ours, err := ParseRecord(reseal(changed), testKey); ours || err != nil {
			t.Errorf("%s: ours %v, %v", name, ours, err)
		}
	}
}

func TestAppendLineRefuses(t *testing.T) {
	long := strings.Repeat("x", MaxName+1)
	branches := make([]BranchRef, MaxBranches+1)
	for i := range branches {
		branches[i] = BranchRef{Name: "b", Ord: -1}
	}
	tests := map[string]struct {
		edit  func(*Record)
		limit int64 // of a *codec.LimitError; 0 = codec.ErrFormat
	}{
		"no id":             {func(r *Record) { r.ID = "" }, 0},
		"no reason":         {func(r *Record) { r.Reason = "" }, 0},
		"long reason":       {func(r *Record) { r.Reason = strings.Repeat("a", 33) }, 0},
		"reason with space": {func(r *Record) { r.Reason = "a b" }, 0},
		"year":              {func(r *Record) { r.Time = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }, 0},
		"newline in doc":    {func(r *Record) { r.Doc = json.RawMessage("{\n}") }, 0},
		"doc cut":           {func(r *Record) { r.Doc = json.RawMessage(`{"a":`) }, 0},
		"two values":        {func(r *Record) { r.Doc = json.RawMessage(`{}{}`) }, 0},
		"doc and patch":     {func(r *Record) { r.Patch = json.RawMessage(`[]`) }, 0},
		"sorted, no patch":  {func(r *Record) { r.Sorted = true }, 0},
		"parents":           {func(r *Record) { r.Parents = []ParentDelta{{Index: 2}} }, 0},
		"negative entries":  {func(r *Record) { r.Entries = -1 }, 0},
		"deep doc":          {func(r *Record) { r.Doc = json.RawMessage(strings.Repeat("[", 600) + strings.Repeat("]", 600)) }, MaxDepth - 2},
		"branch":            {func(r *Record) { r.Branch = long }, MaxName},
		"key":               {func(r *Record) { r.Key = long }, MaxName},
		"unnamed branch":    {func(r *Record) { r.Names = []Rename{{To: "b"}} }, 0},
		"renamed branch":    {func(r *Record) { r.Names = []Rename{{From: "b", To: long}} }, MaxName},
		"renamed branches":  {func(r *Record) { r.Names = make([]Rename, MaxBranches+1) }, MaxBranches},
		"branches":          {func(r *Record) { r.Base = &Base{Branches: branches, Created: testTime} }, MaxBranches},
		"year of base":      {func(r *Record) { r.Base = &Base{Created: time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC)} }, 0},
	}
	for name, tt := range tests {
		r := plainRecord()
		tt.edit(&r)
		dst := []byte("before")
		got, _, err := r.AppendLine(dst, testKey, testPrev, testSince)
		if string(got) != "before" {
			t.Errorf("%s: dst came back as %q", name, got)
		}
		var limit *codec.LimitError
		if tt.limit == 0 && !errors.Is(err, codec.ErrFormat) || tt.limit != 0 && (!errors.As(err, &limit) || limit.Limit != tt.limit) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestRecordCommit(t *testing.T) {
	c := fullRecord().Commit()
	if c.Seq != 7 || c.Commit != testID(9) || c.Entry != testID(8) || c.Keyframe || c.Kept != "conflict-1a2b3c4d" || c.HeadOrd != 12 {
		t.Errorf("%+v", c)
	}
}
