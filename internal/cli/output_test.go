package cli

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
)

// A list is one document, whatever happens on the way.
func TestArray(t *testing.T) {
	fields := struct {
		A string `json:"a"`
	}{"<x>"}
	for _, tt := range []struct {
		fields any
		items  int
		err    error
		want   string
	}{
		{nil, 0, nil, `{"list":[]}`},
		{nil, 2, nil, `{"list":[0,1]}`},
		{fields, 1, nil, `{"a":"<x>","list":[0]}`},
		{fields, 0, nil, `{"a":"<x>","list":[]}`},
		{struct{}{}, 0, nil, `{"list":[]}`},
		{nil, 2, errors.New("broken"), `{"list":[0,1],"error":{"code":"failed","message":"broken"}}`},
		{nil, 0, errors.New("broken"), `{"error":{"code":"failed","message":"broken"}}`},
	} {
		c, out, _ := bare()
		c.json = true
		arr := c.arrayAfter(tt.fields, "list")
		for i := range tt.items {
			if err := arr.add(i); err != nil {
				t.Fatal(err)
			}
		}
		err := arr.end(tt.err)
		if (err != nil) != (tt.err != nil) {
			t.Errorf("error %v, want %v", err, tt.err)
		}
		if err != nil {
			c.fail(err)
		}
		if got := strings.TrimSpace(out.String()); got != tt.want || !json.Valid([]byte(got)) {
			t.Errorf("%s, want %s", got, tt.want)
		}
	}
	c, _, _ := bare()
	if err := c.array("x").add(func() {}); err == nil {
		t.Error("what is no JSON is taken")
	}
	if err := c.arrayAfter(func() {}, "x").end(nil); err == nil {
		t.Error("what is no JSON is taken")
	}
}

func TestValuesForPeopleAndJSON(t *testing.T) {
	if got := titleOf(checkpoint.Summary{Preview: "p\nq"}) + "," + titleOf(checkpoint.Summary{Title: "t", Preview: "p"}); got != "p q,t" {
		t.Error(got)
	}
	if got := costText(backend.IO{Get: 1, BytesRead: 2048, Append: 2}); got != "1 read of 2.0 KiB, 2 appends" {
		t.Error(got)
	}
	if orNull("") != nil || *orNull("x") != "x" || orList[int](nil) == nil {
		t.Error("null is not where it should be")
	}
}
