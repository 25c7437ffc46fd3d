package server_test

import (
	"fmt"
	"testing"
)

// A move leaves no line without a name, and moves no branch off the line that it names: the answer has the name that
// the line that was left got.
func TestMovesNameWhatTheyLeave(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		s := newSite(t, url)
		ids := longer(s, 6)
		branches := func() string {
			r := s.do("GET", "/v1/sessions/s/branches", "")
			heads := r.ids(t, "branches", "head")
			of := map[string]string{}
			for i, name := range r.ids(t, "branches", "name") {
				of[name] = heads[i]
			}
			return fmt.Sprint(of)
		}
		moved := s.do("POST", "/v1/sessions/s/branch", `{"entry":"`+ids[3]+`"}`, "If-Match: *").want(t, 200)
		left, _ := moved["kept"].(string)
		if want := fmt.Sprint(map[string]string{"main": ids[3], left: ids[5]}); left == "" || branches() != want {
			t.Errorf("after branch: %v, want %s", branches(), want)
		}
		edited := s.do("POST", "/v1/sessions/s/edit", `{"entry":"`+ids[1]+`","message":{"role":"user","content":"x"}}`,
			"If-Match: *").want(t, 200)
		again, _ := edited["kept"].(string)
		want := fmt.Sprint(map[string]string{"main": edited["head"].(string), left: ids[5]})
		if again != "" || branches() != want { // what is left is on the way to a branch
			t.Errorf("after edit: %v, want %s; kept %q", branches(), want, again)
		}
		// A version of an entry of another line moves no branch that names another one.
		other := s.do("POST", "/v1/sessions/s/edit", `{"entry":"`+ids[5]+`","message":{"role":"user","content":"y"}}`,
			"If-Match: *").want(t, 200)
		if now := branches(); other["branch"] == left || other["branch"] == "main" {
			t.Errorf("the new version is on %v: %s", other["branch"], now)
		}
	})
}
