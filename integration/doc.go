// Package integration tests coppice on real S3 servers, under faults: the contract of the backend, races for one
// object, lost answers, servers and clients that are killed, and whole sessions. It is a separate module, so that the
// library does not have its dependencies.
//
// `go test ./...` in this folder starts its own servers, in a container too if there is Docker; see package s3test for
// other stores, and for how to run all tests over TLS or in the container. COPPICE_LONG=1 runs all sizes and races in
// full, COPPICE_CHAOS_TIME=60s the random faults for longer.
package integration
