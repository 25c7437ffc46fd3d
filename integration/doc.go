// Package integration holds coppice to its promises on real S3 servers, under faults: the contract of
// the backend, races for one object, answers that get lost, servers and clients that are killed, and
// whole sessions. It is a module of its own, so that the library does not see what it depends on.
//
// `go test ./...` in this folder starts its own servers, in a container too where there is Docker; see
// package s3test for other stores, and for how to run all tests over TLS or in the container.
// COPPICE_LONG=1 runs all sizes and races in full, COPPICE_CHAOS_TIME=60s the random faults for longer.
package integration
