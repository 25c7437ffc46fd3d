package main

import (
	"context"
	"log"
	"os"
)

func Example() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
	// Output:
	// since green: 4 entries, state [{"op":"replace","path":"/step","value":4}]
	// rolled back: step 2 on rollback-2
	// back again: step 4 on main
	// a fork: step 1 on main
	// 6 branch on main
	// 5 rollback on rollback-2
	// 4 turn on main
	// 3 turn on main
	// 2 turn on main
	// 1 turn on main
	// 0 create on main
	// prune would drop 0 snapshots
}
