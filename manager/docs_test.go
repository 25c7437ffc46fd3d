package manager_test

import (
	"os"
	"reflect"
	"regexp"
	"testing"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/manager"
	"github.com/coppice-go/coppice/transcript"
	"github.com/coppice-go/coppice/transcript/view"
)

// The names in docs/coming-from.md exist.
func TestThePageNamesWhatIsThere(t *testing.T) {
	page, err := os.ReadFile("../docs/coming-from.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for word, typ := range map[string]reflect.Type{
		"m": reflect.TypeFor[*manager.Manager](), "s": reflect.TypeFor[*coppice.Session](), "store": reflect.TypeFor[*coppice.Store](),
		"t": reflect.TypeFor[*transcript.Tree](), "v": reflect.TypeFor[*view.View](),
	} {
		for _, m := range regexp.MustCompile("[`( ]"+word+`\.([A-Z]\w*)`).FindAllSubmatch(page, -1) {
			seen++
			if _, ok := typ.MethodByName(string(m[1])); !ok {
				t.Errorf("%v has no method %s", typ, m[1])
			}
		}
	}
	hooks := reflect.TypeFor[manager.Hooks]()
	for _, m := range regexp.MustCompile(`Hooks\.([A-Z]\w*)`).FindAllSubmatch(page, -1) {
		seen++
		if _, ok := hooks.FieldByName(string(m[1])); !ok {
			t.Errorf("there is no hook %s", m[1])
		}
	}
	if seen < 100 {
		t.Errorf("only %d names were found on the page", seen)
	}
	for f := range hooks.Fields() {
		if name := f.Name; !regexp.MustCompile(`Hooks\.` + name).Match(page) {
			t.Errorf("the page does not name hook %s", name)
		}
	}
}
