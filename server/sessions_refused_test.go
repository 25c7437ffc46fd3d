package server_test

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/internal/fault"
)

// One object that the store refuses does not hide the other sessions: its session is listed as damaged, with the cause.
func TestListWithAnUnreadableSession(t *testing.T) {
	s, b := newFaulty(t, memory.New())
	for _, id := range []string{"a", "bad", "c"} {
		s.create(id)
	}
	b.Add(fault.Rule{When: fault.On("get", "checkpoint_latest/bad"), Count: -1, Err: fs.ErrPermission})
	list := s.do("GET", "/v1/sessions?order=id", "").want(t, 200)["sessions"].([]any)
	if len(list) != 3 {
		t.Fatalf("listed are %v", list)
	}
	for i, damaged := range []bool{false, true, false} {
		is := list[i].(map[string]any)
		cause, _ := is["cause"].(string)
		if (is["damaged"] == true) != damaged || strings.Contains(cause, "permission denied") != damaged {
			t.Errorf("%v", is)
		}
	}
}
