package server_test

import (
	"fmt"
	"testing"
)

// stretch is an answer of rows.
type stretch struct {
	View        string
	Total, From int
	At          *int
	Rows        []struct{ ID string }
}

func (s *site) around(query string) (out stretch) {
	s.t.Helper()
	r := s.do("GET", "/v1/sessions/s/rows?"+query, "")
	r.want(s.t, 200)
	decodeInto(s.t, r.body, &out)
	return out
}

// A stretch of rows around an entry has it in the middle, or at the ends all rows there are; what a filter or a fold
// hides is at its nearest ancestor that is shown. A view keeps its rows.
func TestRowsAround(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		s := newSite(t, url)
		ids := longer(s, 30)
		for entry, want := range map[int][2]int{0: {0, 0}, 2: {0, 2}, 15: {11, 15}, 27: {22, 27}, 29: {22, 29}} {
			got := s.around("count=8&around=" + ids[entry])
			if got.At == nil || got.From != want[0] || *got.At != want[1] || len(got.Rows) != 8 ||
				got.Rows[*got.At-got.From].ID != ids[entry] {
				t.Errorf("%d: %+v", entry, got)
			}
		}
		if got := s.around("count=500&around=" + ids[15]); got.From != 0 || *got.At != 15 || len(got.Rows) != 30 {
			t.Errorf("all: %+v", got)
		}
		if got := s.around("count=4&fold=" + ids[9] + "&around=" + ids[20]); got.From != 6 || *got.At != 9 || got.Rows[3].ID != ids[9] {
			t.Errorf("folded: %+v", got)
		}
		s.do("POST", commits, `{"entries":[{"role":"assistant","content":"an answer"}]}`, "If-Match: *").want(t, 200)
		last := s.around("filter=user-only&count=1&around=" + s.head())
		if *last.At != 29 || last.From != 29 || last.Rows[0].ID != ids[29] {
			t.Errorf("filtered: %+v", last)
		}
		pinned := s.around("count=4")
		s.do("POST", commits, hello("later"), "If-Match: *").want(t, 200)
		if got := s.around("count=4&view=" + pinned.View + "&around=" + ids[15]); *got.At != 15 || got.Total != 31 || got.View != pinned.View {
			t.Errorf("pinned: %+v", got)
		}
		for query, status := range map[string]int{
			"around=none": 422, "around=" + s.head() + "&view=" + pinned.View: 422, "from=1&around=" + ids[3]: 400,
			"around=" + ids[3] + "&view=none": 410, "count=0&around=" + ids[3]: 400,
		} {
			s.do("GET", "/v1/sessions/s/rows?"+query, "").want(t, status)
		}
		none := s.around("filter=labeled-only&around=" + ids[3])
		if none.At != nil || none.From != 0 || len(none.Rows) != 0 {
			t.Errorf("nothing is shown: %+v", none)
		}
	})
}

// head returns the id of the head.
func (s *site) head() string {
	s.t.Helper()
	return s.do("GET", "/v1/sessions/s/resume", "").want(s.t, 200)["head"].(string)
}

// A map has labels and the head in their buckets, and the hits of a text, which the search of rows finds too.
func TestMapMarks(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		s := newSite(t, url)
		ids := longer(s, 40)
		for _, i := range []int{3, 4, 25} {
			s.do("POST", "/v1/sessions/s/label", `{"entry":"`+ids[i]+`","label":"x"}`, "If-Match: *").want(t, 200)
		}
		s.do("POST", "/v1/sessions/s/label", `{"entry":"`+ids[25]+`","label":""}`, "If-Match: *").want(t, 200)
		s.do("POST", "/v1/sessions/s/switch", `{"to":"`+ids[39]+`"}`, "If-Match: *").want(t, 200)
		buckets := func(query string) (labels, hits, heads string) {
			r := s.do("GET", "/v1/sessions/s/map?buckets=4&"+query, "")
			r.want(t, 200)
			var doc struct {
				Buckets []struct {
					Labels, Hits int
					Head         bool
				}
			}
			decodeInto(t, r.body, &doc)
			for _, b := range doc.Buckets {
				labels += fmt.Sprint(b.Labels)
				hits += fmt.Sprintf("%d ", b.Hits)
				heads += fmt.Sprint(b.Head)[:1]
			}
			return labels, hits, heads
		}
		for query, want := range map[string][3]string{ // texts are m0 to m39
			"": {"2000", "0 0 0 0 ", "ffft"}, "mark=m2": {"2000", "1 0 10 0 ", "ffft"},
			"mark=user+M3": {"2000", "1 0 0 10 ", "ffft"}, "mark=no+m3": {"2000", "0 0 0 0 ", "ffft"},
			"mark=+": {"2000", "0 0 0 0 ", "ffft"}, "mark=m1&search=m1": {"0000", "2 3 3 3 ", "ffft"},
		} {
			for range 2 { // searched, and remembered
				labels, hits, heads := buckets(query)
				if labels != want[0] || hits != want[1] || heads != want[2] {
					t.Errorf("%q: labels %s, hits %s, head %s, want %v", query, labels, hits, heads, want)
				}
			}
		}
		for query, want := range map[string]string{ // labels are no rows: m0 is row 0
			"mark=m2&near=0": "2 29", "mark=m2&near=2": "20 29", "mark=m2&near=29": "2 28", "mark=m2&near=39": "2 29",
			"mark=m7&near=3": "7 7", "mark=m7&near=7": "7 7", "mark=nothing&near=3": "- -", "near=3": "- -",
		} {
			var doc struct{ NextHit, PreviousHit *int }
			decodeInto(t, s.do("GET", "/v1/sessions/s/map?buckets=1&"+query, "").body, &doc)
			if got := rowOf(doc.NextHit) + " " + rowOf(doc.PreviousHit); got != want {
				t.Errorf("%s: next and previous are %s, want %s", query, got, want)
			}
		}
		for i := range 12 { // more than are remembered
			if _, hits, _ := buckets(fmt.Sprintf("mark=m%d", 20+i%9)); hits == "0 0 0 0 " {
				t.Errorf("m%d: none", 20+i%9)
			}
		}
		if n := len(s.around("search=m2").Rows); n != 11 {
			t.Errorf("%d rows, the marks have 11 hits", n)
		}
	})
}

// rowOf returns the number of a row; "-" = none.
func rowOf(row *int) string {
	if row == nil {
		return "-"
	}
	return fmt.Sprint(*row)
}
