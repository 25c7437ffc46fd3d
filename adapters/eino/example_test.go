package eino_test

import (
	"context"
	"fmt"

	"github.com/cloudwego/eino/compose"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/adapters/eino"
	"github.com/coppice-go/coppice/backend/memory"
)

// steps returns a graph that is interrupted before its second and its third node.
func steps(ctx context.Context, store compose.CheckPointStore) (compose.Runnable[string, string], error) {
	g := compose.NewGraph[string, string]()
	last := compose.START
	for _, name := range []string{"a", "b", "c"} {
		add := func(_ context.Context, in string) (string, error) { return in + name, nil }
		if err := g.AddLambdaNode(name, compose.InvokableLambda(add)); err != nil {
			return nil, err
		}
		if err := g.AddEdge(last, name); err != nil {
			return nil, err
		}
		last = name
	}
	if err := g.AddEdge(last, compose.END); err != nil {
		return nil, err
	}
	return g.Compile(ctx, compose.WithCheckPointStore(store), compose.WithInterruptBeforeNodes([]string{"b", "c"}))
}

// A graph is interrupted twice. Each part of the run could be another process, on another host.
func Example() {
	ctx := context.Background()
	store, err := coppice.New(memory.New(), nil) // or coppice.Open with a folder or s3://bucket/prefix
	if err != nil {
		panic(err)
	}
	defer store.Close()
	in := "x-"
	for {
		graph, err := steps(ctx, eino.New(store)) // the line to change
		if err != nil {
			panic(err)
		}
		out, err := graph.Invoke(ctx, in, compose.WithCheckPointID("run/1"))
		if info, ok := compose.ExtractInterruptInfo(err); ok {
			fmt.Println("interrupted before", info.BeforeNodes)
			in = ""
			continue
		}
		fmt.Println(out, err)
		return
	}
	// Output:
	// interrupted before [b]
	// interrupted before [c]
	// x-abc <nil>
}
