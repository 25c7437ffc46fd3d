package atomic_test

import (
	"fmt"

	"github.com/coppice-go/coppice/interop/atomic"
)

func ExampleDetect() {
	fmt.Println(atomic.Detect([]byte(`{"type":"session_summary","id":"a","parentId":null,"summary":"Done."}`)))
	fmt.Println(atomic.Detect([]byte(`{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":"hi"}}`)))
	// Output:
	// true
	// false
}
